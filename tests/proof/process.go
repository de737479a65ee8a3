package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// A process of the plane, in the namespace of its name.
type process struct {
	name, host string
	dir        string
	command    func() (program string, arguments, environment []string)

	mutex   sync.Mutex
	running *exec.Cmd
	ended   chan struct{}
	starts  int
}

func (p *process) start() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.running != nil {
		return nil
	}
	program, arguments, environment := p.command()
	log, err := os.OpenFile(filepath.Join(p.dir, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command("ip", append([]string{"netns", "exec", p.name, program}, arguments...)...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	p.running, p.ended = command, ended
	p.starts++
	return nil
}

// signal fails silently: a fault may have ended the process.
func (p *process) signal(signal syscall.Signal) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.running != nil {
		_ = p.running.Process.Signal(signal)
	}
}

func (p *process) kill() {
	p.mutex.Lock()
	running, ended := p.running, p.ended
	p.running = nil
	p.mutex.Unlock()
	if running != nil {
		_ = running.Process.Signal(syscall.SIGKILL)
		<-ended
	}
}

// hasEnded says whether it ended by itself, which nothing here does.
func (p *process) hasEnded() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.running == nil {
		return false
	}
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

package main

import (
	"sync"
	"time"
)

// Work that is repeated, with a pause before each time, until it is stopped.
type background struct {
	end  chan struct{}
	wait sync.WaitGroup
}

func newBackground() *background { return &background{end: make(chan struct{})} }

// repeat calls with 0, 1, 2, ..., on a goroutine of its own.
func (b *background) repeat(pause time.Duration, work func(i int)) {
	b.wait.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-b.end:
				return
			case <-time.After(pause):
				work(i)
			}
		}
	})
}

func (b *background) stop() {
	close(b.end)
	b.wait.Wait()
}

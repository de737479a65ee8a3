package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// The plane has a network, mounts and processes of its own: nothing of it outlives the program, and
// nothing of the machine's network can reach it. Each part has an address behind one bridge, on which
// packets between any two of them can be dropped.
//
//	10.88.0.1 this program     .11-.13 etcd     .21-.22 kube-apiserver
//	.31-.33 kube-schedulers and controllers     .41-.42 claimguard
const (
	network = "10.88.0."
	self    = "1"
)

const insideVariable = "CLAIMGUARD_PROOF_INSIDE"

// enterSandbox starts this program again, in namespaces of its own, and ends with its status; there,
// it returns.
func enterSandbox() error {
	if os.Getenv(insideVariable) != "" {
		return prepareSandbox()
	}
	flags := []string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Getuid() != 0 {
		flags = append(flags, "--user", "--map-root-user")
	}
	if err := exec.Command("unshare", append(flags, "nft", "add", "table", "bridge", "proof")...).Run(); err != nil {
		fmt.Fprintln(os.Stderr, "SKIPPED: this machine lets nobody have network namespaces with nftables on a bridge")
		os.Exit(77)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command("unshare", append(append(flags, program), os.Args[1:]...)...)
	command.Env = append(os.Environ(), insideVariable+"=1")
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = command.Run()
	if command.ProcessState == nil {
		return err
	}
	os.Exit(command.ProcessState.ExitCode())
	return nil
}

func prepareSandbox() error {
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil { // for ip netns
		return fmt.Errorf("mount /run: %w", err)
	}
	return runAll(
		"ip link set lo up",
		"ip link add br0 type bridge",
		"ip link set br0 up",
		"ip addr add "+network+self+"/24 dev br0",
		"nft add table bridge proof",
		"nft add chain bridge proof forward { type filter hook forward priority 0; }",
		"nft add chain bridge proof input { type filter hook input priority 0; }",
		"nft add chain bridge proof output { type filter hook output priority 0; }",
	)
}

func runAll(commands ...string) error {
	for _, command := range commands {
		words := strings.Fields(command)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
	}
	return nil
}

// addPart gives a part of the plane a namespace and an address.
func addPart(name, host string) error {
	return runAll(
		"ip netns add "+name,
		"ip -n "+name+" link set lo up",
		"ip link add eth0 netns "+name+" type veth peer name v-"+name,
		"ip link set v-"+name+" master br0 up",
		"ip -n "+name+" addr add "+network+host+"/24 dev eth0",
		"ip -n "+name+" link set eth0 up",
	)
}

// drop loses what one host sends to another, from now on.
func drop(from, to string) error {
	chain, rule := "forward", fmt.Sprintf("ip saddr %s ip daddr %s", network+from, network+to)
	switch self {
	case from:
		chain = "output"
	case to:
		chain = "input"
	}
	return runAll("nft add rule bridge proof " + chain + " " + rule + " drop")
}

// heal ends all that is dropped.
func heal() error {
	return runAll("nft flush table bridge proof")
}

// Package siwtest is tests only: a small machine with an unmodified Linux kernel and its own iWARP (siw), emulated by
// qemu without KVM, whose programs are peers of ours.
//
// Guest starts one, as .ci/siw makes it, with a command; Until reads what it says. FARFLASH_SIW names the folder with
// kernel and initrd; without it tests are skipped, by name. No machine outlives the process that started it, however
// that ends.
package siwtest

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience is how long a machine may take for everything, and Deadline what connections to it are given for each
// step: emulation is slow.
const (
	Patience = 5 * time.Minute
	Deadline = time.Minute
)

// Host is where the machine's programs find this one.
const Host = "10.0.2.2"

// Guest starts a machine, and returns its lines of output. Forward is appended to the network's options,
// ",hostfwd=tcp:127.0.0.1:1234-:7174" for a port of ours that leads to one of its. It is stopped with the test.
func Guest(t *testing.T, forward, command string) <-chan string {
	t.Helper()
	dir := os.Getenv("FARFLASH_SIW")
	if dir == "" {
		t.Skip("FARFLASH_SIW names no folder; .ci/siw makes one")
	}
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("qemu-system-x86_64 is not installed")
	}
	ctx, stop := context.WithTimeout(context.Background(), Patience)
	cmd := exec.CommandContext(ctx, qemu, "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "512", "-nographic",
		"-no-reboot", "-nodefaults", "-serial", "stdio",
		"-kernel", filepath.Join(dir, "vmlinuz"), "-initrd", filepath.Join(dir, "initrd.img"),
		"-append", "console=ttyS0 panic=-1 quiet mitigations=off farflash="+strings.ReplaceAll(command, " ", ","),
		"-netdev", "user,id=n"+forward, "-device", "virtio-net-pci,netdev=n")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	wait, err := Tied(cmd)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(out)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			lines <- strings.TrimSpace(s.Text())
		}
	}()
	t.Cleanup(func() {
		stop()
		for range lines {
		}
		_ = wait() // it was killed, or has ended
	})
	return lines
}

// Tied starts a command in a process group of its own, all of which its context's end kills, and which the kernel
// kills when this process has ended: by a time limit of the tests, say, or by a signal that nobody handles. The
// function returned waits for it.
func Tied(cmd *exec.Cmd) (wait func() error, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
	// The kernel looks at the thread that started it, so that has to live as long.
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return func() error { return <-ended }, nil
}

// Until reads lines until one has this, and returns what follows it: the first line has the terminal's codes before it.
func Until(t *testing.T, lines <-chan string, what string) string {
	t.Helper()
	var all []string
	for l := range lines {
		if _, rest, ok := strings.Cut(l, what); ok {
			return rest
		}
		all = append(all, l[:min(len(l), 160)])
	}
	t.Fatalf("the machine has ended without %q:\n%s", what, strings.Join(all, "\n"))
	return ""
}

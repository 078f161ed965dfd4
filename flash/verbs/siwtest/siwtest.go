// Package siwtest provides tests with a real iWARP peer: a small virtual machine with an unmodified Linux kernel and
// its software iWARP (siw), emulated by qemu without KVM.
//
// Guest starts a machine, built by .ci/siw, with a command; Until reads its output. FARFLASH_SIW names the folder with
// kernel and initrd; without it the tests are skipped. No machine outlives the process that started it, however that
// process ends.
package siwtest

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience is the total time limit of a machine, Deadline the time limit of each step of a connection to it; both are
// long because emulation is slow.
const (
	Patience = 5 * time.Minute
	Deadline = time.Minute
)

// Host is the address of the test's machine as seen by the guest.
const Host = "10.0.2.2"

// Guest starts a machine and returns its lines of output. forward is appended to the network options;
// ",hostfwd=tcp:127.0.0.1:1234-:7174" forwards a local port to one of the guest. The machine is stopped when the test
// ends.
func Guest(t *testing.T, forward, command string) <-chan string {
	t.Helper()
	return Machine(t, "siw", forward, command)
}

// Machine is Guest with another machine: that which .ci/NAME creates in the folder that the variable FARFLASH_NAME, in
// capitals, names.
func Machine(t *testing.T, name, forward, command string) <-chan string {
	t.Helper()
	variable := "FARFLASH_" + strings.ToUpper(name)
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skipf("%s is not set; .ci/%s creates the folder to set it to", variable, name)
	}
	return emulated(t, Patience, dir, "initrd.img", command, forward, "-m", "512")
}

// System starts a machine with two processors, a whole Debian and systemd, that runs a script in bash as root, with
// these files in its folder. .ci/nvme creates it. Its disk is as before for each test.
func System(t *testing.T, limit time.Duration, script string, files map[string][]byte) <-chan string {
	t.Helper()
	dir := os.Getenv("FARFLASH_NVME")
	disk := filepath.Join(dir, "debian.img")
	if _, err := os.Stat(disk); dir == "" || err != nil {
		t.Skip("FARFLASH_NVME is no folder with debian.img; .ci/nvme DIR 6.12 debian creates one")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: Deadline, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			b, ok := files[strings.TrimPrefix(r.URL.Path, "/")]
			if r.URL.Path == "/script" {
				b, ok = []byte(script), true
			}
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(b) // whether the machine has it shows there
		})}
	go func() { _ = s.Serve(l) }() // until Close
	t.Cleanup(func() { _ = s.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String()) // it is an address
	return emulated(t, limit, dir, "debian-initrd.img", "http://"+Host+":"+port, "", "-m", "1024", "-smp", "2",
		"-drive", "file="+disk+",if=virtio,format=raw,snapshot=on")
}

// emulated starts a machine.
func emulated(t *testing.T, limit time.Duration, dir, initrd, command, forward string, more ...string) <-chan string {
	t.Helper()
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("qemu-system-x86_64 is not installed")
	}
	ctx, stop := context.WithTimeout(context.Background(), limit)
	// no_timer_check: on a busy machine the emulated timer is too late for the kernel's test of it, which then panics.
	cmd := exec.CommandContext(ctx, qemu, "-accel", "tcg,thread=multi", "-cpu", "max", "-nographic",
		"-no-reboot", "-nodefaults", "-serial", "stdio",
		"-kernel", filepath.Join(dir, "vmlinuz"), "-initrd", filepath.Join(dir, initrd),
		"-append", "console=ttyS0 panic=-1 quiet mitigations=off net.ifnames=0 no_timer_check systemd.show_status=0 farflash="+strings.ReplaceAll(command, " ", ","),
		"-netdev", "user,id=n"+forward, "-device", "virtio-net-pci,netdev=n")
	cmd.Args = append(cmd.Args, more...)
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
		_ = wait() // it was killed, or has exited
	})
	return lines
}

// Tied starts a command in its own process group, so that the end of its context kills the whole group. The kernel
// kills the command when this process dies, for example by a test timeout or an unhandled signal. The returned function
// waits for the command.
func Tied(cmd *exec.Cmd) (wait func() error, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
	// Pdeathsig is tied to the thread that started the command, so that thread must live as long.
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

// Until reads lines until one contains what, and returns the remainder of that line. It searches within the line
// because the first line starts with terminal escape codes.
func Until(t *testing.T, lines <-chan string, what string) string {
	t.Helper()
	var all []string
	for l := range lines {
		if _, rest, ok := strings.Cut(l, what); ok {
			return rest
		}
		all = append(all, l[:min(len(l), 160)])
	}
	t.Fatalf("the machine exited without printing %q:\n%s", what, strings.Join(all, "\n"))
	return ""
}

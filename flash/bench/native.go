package bench

import (
	"bufio"
	_ "embed" // the server's source
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// source is the plain protocol's server in C: a thread per connection, pread and pwrite with direct I/O. It shows
// whether the Go server is a fair baseline.
//
//go:embed c/pread.c
var source []byte

// compiler returns the path of the C compiler, or why there is none.
func compiler() (path, why string) {
	path, err := exec.LookPath("gcc")
	if err != nil {
		return "", "gcc is not installed; it compiles the C server"
	}
	return path, ""
}

// native is the running C server.
type native struct {
	cmd     *exec.Cmd
	stdin   io.Closer // closing it stops the server
	address string
}

// startNative compiles the server in a folder and has it serve a file.
func startNative(gcc, dir, file string, block int) (*native, error) {
	text, program := filepath.Join(dir, "pread.c"), filepath.Join(dir, "pread")
	if err := os.WriteFile(text, source, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command(gcc, "-O2", "-pthread", "-o", program, text).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("bench: %s cannot compile the C server: %w\n%s", gcc, err, out)
	}
	n := &native{cmd: exec.Command(program, file, strconv.Itoa(block))}
	n.cmd.Stderr = os.Stderr
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // this process handles Ctrl-C
	in, err := n.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: C server: %w", err)
	}
	n.stdin = in
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bench: the C server printed no port: %w", err), n.stop())
	}
	n.address = "127.0.0.1:" + strings.TrimSpace(port)
	return n, nil
}

// stop stops the server.
func (n *native) stop() error { return errors.Join(n.stdin.Close(), n.cmd.Wait()) }

// spent is the server's processor time so far, with Linux's resolution of 10 ms.
func (n *native) spent() time.Duration {
	if n == nil {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	// After the name in parentheses comes the state, as field 0; user and system time are fields 11 and 12 (proc(5)).
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(f) < 13 {
		return 0
	}
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err1 != nil || err2 != nil {
		return 0
	}
	return time.Duration(user+system) * time.Second / 100
}

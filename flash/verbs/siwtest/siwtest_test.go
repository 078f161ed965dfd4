package siwtest_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"farflash/flash/verbs/siwtest"
)

// TestTied kills a process that has started another through Tied, and verifies that the child dies too.
func TestTied(t *testing.T) {
	if os.Getenv("FARFLASH_TIED") != "" {
		cmd := exec.Command("sleep", "600")
		if _, err := siwtest.Tied(cmd); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("started %d\n", cmd.Process.Pid)
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestTied$")
	cmd.Env = append(os.Environ(), "FARFLASH_TIED=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for s := bufio.NewScanner(out); pid == 0 && s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "started "); ok {
			if _, err := fmt.Sscan(rest, &pid); err != nil {
				t.Fatal(err)
			}
		}
	}
	if pid == 0 || syscall.Kill(pid, 0) != nil {
		t.Fatalf("nothing was started: %d", pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for i := 0; ; i++ {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(state), ") Z ") {
			// killed, though possibly not yet reaped by its new parent
			return
		}
		if i == 1000 {
			t.Fatalf("process %d has outlived who started it: %s", pid, state)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

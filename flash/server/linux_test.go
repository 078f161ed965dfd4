package server_test

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"farflash/flash/nvme/chap"
	"farflash/flash/verbs/siwtest"
	"farflash/internal/patience"
)

// program is farflash itself, serving a pool.
type program struct {
	t       *testing.T
	path    string
	pool    string
	args    []string // of the daemon
	errors  io.Writer
	metrics string // URL
	cmd     *exec.Cmd
	wait    func() error // for the end of cmd
	out     sync.WaitGroup
	port    string // of NVMe
}

const subsystem = "nqn.2026-01.example:disk"

// build builds the program and serves a pool for an unmodified Linux kernel in a machine of .ci/nvme. flags come on top
// of those that every such daemon has.
func build(t *testing.T, flags ...string) *program {
	t.Helper()
	if os.Getenv("FARFLASH_NVME") == "" {
		t.Skip("FARFLASH_NVME is not set; .ci/nvme creates the folder to set it to")
	}
	p := launch(t, built(t), append(flags, "--size", "256MiB")...)
	p.start()
	return p
}

// built builds the program and returns its path.
func built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "farflash")
	out, err := exec.Command("go", "build", "-pgo=off", "-o", path, "farflash/cmd/farflash").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// launch returns a program that is not started. In the end it must stop by itself, and leave a sound pool.
func launch(t *testing.T, path string, flags ...string) *program {
	t.Helper()
	p := &program{t: t, path: path, pool: filepath.Join(t.TempDir(), "pool.img"), errors: os.Stderr}
	address := lasting(t)
	_, p.port, _ = net.SplitHostPort(address) // it is an address
	p.args = append([]string{"flash", "serve", p.pool, "--listen", "", "--nvme", address, "--nvme-subsystem", subsystem,
		"--memory", "96MiB"}, flags...)
	t.Cleanup(func() {
		if p.cmd == nil {
			return
		}
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		p.out.Wait()
		if err := p.wait(); err != nil {
			t.Errorf("the daemon ends with %v", err)
		}
		if out, err := exec.Command(p.path, "flash", "check", p.pool).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		} else {
			t.Logf("%s", out)
		}
	})
	return p
}

// lasting returns an address for every start of a daemon, because its clients come back to it. No client has its port:
// it is below those that systems choose for clients. Until the test ends a socket of that name keeps other processes of
// tests from choosing the port while the daemon is away.
func lasting(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := 16384 + mathrand.IntN(12000)
		mine, err := net.Listen("unix", fmt.Sprintf("@farflash-test-%d", port))
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = mine.Close() })
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// start starts the daemon, and returns when it serves.
func (p *program) start() {
	p.t.Helper()
	cmd := exec.Command(p.path, p.args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Stderr = p.errors
	if p.wait, err = siwtest.Tied(cmd); err != nil {
		p.t.Fatal(err)
	}
	p.cmd = cmd
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "metrics "); ok {
			p.metrics = at
		}
		if strings.HasPrefix(lines.Text(), "serving") {
			p.out.Go(func() {
				for lines.Scan() {
				}
			})
			return
		}
	}
	p.t.Fatal("the daemon does not serve")
}

// kill ends the daemon without warning.
func (p *program) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.out.Wait()
	_ = p.wait() // killed
}

// TestLinuxKeys lets an unmodified kernel prove who it is, and demand the same of the subsystem. It needs a kernel with
// in-band authentication.
func TestLinuxKeys(t *testing.T) {
	if !strings.Contains(os.Getenv("FARFLASH_NVME"), "6.12") {
		t.Skip("FARFLASH_NVME is no folder with 6.12 in its name; .ci/nvme DIR 6.12 creates one, and Debian's 6.1 " +
			"cannot " +
			"prove who it is")
	}
	var k [2]chap.Key
	for i := range k {
		var err error
		if k[i], err = chap.NewKey(rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	keys := filepath.Join(t.TempDir(), "keys")
	const host = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555" // of .ci/nvme
	if err := os.WriteFile(keys, fmt.Appendf(nil, "%s %s %s\n", host, k[0].Text(), k[1].Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	p := build(t, "--nvme-keys", keys)
	lines := siwtest.Machine(t, "nvme", "", fmt.Sprintf("scenario keys %s %s %s %s", p.port, subsystem, k[0].Text(),
		k[1].Text()))
	t.Logf("Linux %s", siwtest.Until(t, lines, "kernel "))
	siwtest.Until(t, lines, "proved")
	if end := siwtest.Until(t, lines, "ends: "); end != "0" {
		t.Errorf("the scenario ends with %s", end)
	}
}

// TestLinuxKills kills the daemon again and again while an unmodified kernel writes durably and verifies: it reconnects
// by itself, nothing durable is lost, and afterwards the pool is sound. Each daemon lives until its host has written
// through it: a Linux whose daemon dies while it reconnects waits for a minute.
func TestLinuxKills(t *testing.T) {
	limit, least := 30*time.Second, 5
	if patience.Long(t) {
		limit, least = 270*time.Second, 100
	}
	p := build(t, "--metrics", "127.0.0.1:0")
	lines := siwtest.Machine(t, "nvme", "",
		fmt.Sprintf("scenario kills %s %s %d", p.port, subsystem, int(limit/time.Second)+5))
	siwtest.Until(t, lines, "verifying")
	kills := 0
	for began := time.Now(); time.Since(began) < limit; kills++ {
		p.written()
		p.kill()
		p.start()
	}
	if result := siwtest.Until(t, lines, "verified"); result != "" {
		t.Errorf("verified %s", result)
	}
	t.Logf("%d kills, reconnected %s", kills, siwtest.Until(t, lines, "reconnected "))
	if end := siwtest.Until(t, lines, "ends: "); end != "0" || kills < least {
		t.Errorf("the scenario ends with %s after %d kills", end, kills)
	}
}

// written waits until a host has written durably through the daemon.
func (p *program) written() {
	p.t.Helper()
	for range 6000 {
		r, err := http.Get(p.metrics)
		if err != nil {
			p.t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		_ = r.Body.Close() // read to its end
		if err != nil {
			p.t.Fatal(err)
		}
		var n float64
		if _, rest, ok := strings.Cut(string(b),
			`farflash_operations_total{export="disk",kind="write",protocol="nvme"} `); ok {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				p.t.Fatal(err)
			}
		}
		if n >= 20 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.t.Fatal("no host writes")
}

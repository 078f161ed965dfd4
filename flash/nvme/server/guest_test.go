package server_test

import (
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nbd/volume"
	"farflash/flash/nvme"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/server"
	"farflash/flash/nvme/wire"
	"farflash/flash/verbs/siwtest"
)

// guest is a target on a pool for an unmodified Linux kernel in a machine of .ci/nvme. It has two ports.
type guest struct {
	t         *testing.T
	target    *nvme.Target
	subsystem nvme.Subsystem
	pool      *ctl.Pool
	ports     [2]string
	blk       nvme.Subsystem // of blktests
}

const guestSize = 128 << 20

func newGuest(t *testing.T) *guest {
	t.Helper()
	g := &guest{t: t}
	loops := nbdtest.Loops(t)
	g.pool = nbdtest.Pool(t, loops, "", 1<<30, 4096) // a file system fills 400 MiB of it
	g.subsystem = nvme.Subsystem{Name: nvmetest.Subsystem, Serial: "1",
		Namespaces: []nvme.Namespace{g.space(1, 0, guestSize)}}
	var listeners [2]net.Listener
	cfg := nvme.DefaultConfig()
	for i := range listeners {
		var err error
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if _, g.ports[i], err = net.SplitHostPort(listeners[i].Addr().String()); err != nil {
			t.Fatal(err)
		}
		cfg.Ports = append(cfg.Ports, nvme.Port{ID: uint16(i + 1), Address: siwtest.Host, Service: g.ports[i]})
	}
	cfg.Subsystems, cfg.Random = []nvme.Subsystem{g.subsystem}, rand.Reader
	var err error
	if g.target, err = nvme.New(cfg); err != nil {
		t.Fatal(err)
	}
	config := quick(t, g.target, loops)
	config.Handshake, config.Progress = siwtest.Deadline, siwtest.Deadline
	s, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for i, l := range listeners {
		go func() { done <- s.Serve(l, uint16(i+1)) }()
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Errorf("shutting down: %v", err)
		}
		for range listeners {
			if err := <-done; err != nil {
				t.Errorf("serving: %v", err)
			}
		}
	})
	return g
}

// space is a namespace on a range of the pool.
func (g *guest) space(id uint32, base, size uint64) nvme.Namespace {
	return nvme.Namespace{ID: id, UUID: [16]byte{6: 0x40, 8: 0x80, 15: byte(id)}, Size: size,
		Open: func(string) (nbd.Export, error) {
			v, err := volume.New(g.pool, base, size)
			return nbd.Export{Volume: v}, err
		}}
}

// run runs a scenario of .ci/nvme.sh until it says that it verifies, then does what disturbs it, every 1.5 s, until it
// says that it has verified. It returns the lines that follow.
func (g *guest) run(scenario string, disturb func(round int)) <-chan string {
	g.t.Helper()
	lines := siwtest.Machine(g.t, "nvme", "", "scenario "+scenario)
	siwtest.Until(g.t, lines, "verifying")
	ended := make(chan bool)
	stopped := make(chan bool)
	go func() {
		defer close(stopped)
		for round := 0; disturb != nil; round++ {
			select {
			case <-ended:
				return
			case <-time.After(1500 * time.Millisecond):
				disturb(round)
			}
		}
	}()
	result := siwtest.Until(g.t, lines, "verified")
	close(ended)
	<-stopped
	if result != "" {
		g.t.Errorf("verified %s", result)
	}
	return lines
}

// finish reads lines until the scenario's end.
func (g *guest) finish(lines <-chan string) {
	g.t.Helper()
	if end := siwtest.Until(g.t, lines, "ends: "); end != "0" {
		g.t.Errorf("the scenario ends with %s", end)
	}
}

// TestLinux lets an unmodified kernel discover, connect with two queues and both digests, verify its writes, make a
// file system and trim it, use every command of nvme-cli, see a namespace grow, and reset the controller.
func TestLinux(t *testing.T) {
	g := newGuest(t)
	lines := g.run("basic "+g.ports[0], nil)
	siwtest.Until(t, lines, fmt.Sprintf("grow, %d blocks", guestSize/512))
	g.subsystem.Namespaces = []nvme.Namespace{g.space(1, 0, 2*guestSize), g.space(2, 2*guestSize, 1<<20)}
	if err := g.target.Set(g.subsystem); err != nil {
		t.Fatal(err)
	}
	siwtest.Until(t, lines, fmt.Sprintf("grown to %d blocks", 2*guestSize/512))
	g.finish(lines)
}

// TestLinuxDrops ends the association again and again while the kernel writes with 32 commands outstanding. It repeats
// those that were not answered, and every byte is as it wrote it last.
func TestLinuxDrops(t *testing.T) {
	g := newGuest(t)
	var drops atomic.Int32
	lines := g.run("drops "+g.ports[0], func(int) {
		g.target.Remove(g.subsystem.Name)
		if err := g.target.Set(g.subsystem); err != nil {
			t.Error(err)
		}
		drops.Add(1)
	})
	var again int
	for l := range lines {
		if _, err := fmt.Sscanf(strings.TrimSpace(l), "%d", &again); err == nil {
			break
		}
	}
	if again < 3 || again > int(drops.Load()) {
		t.Errorf("the host has connected again %d times after %d drops", again, drops.Load())
	}
	t.Logf("%d drops, connected again %d times", drops.Load(), again)
	g.finish(lines)
}

// TestLinuxPaths makes one of two paths inaccessible, in turns, while the kernel writes.
func TestLinuxPaths(t *testing.T) {
	g := newGuest(t)
	lines := g.run("paths "+g.ports[0], func(round int) {
		g.target.SetState(uint16(round%2+1), wire.Optimized)
		g.target.SetState(uint16((round+1)%2+1), wire.Inaccessible)
	})
	g.target.SetState(1, wire.Optimized)
	g.target.SetState(2, wire.Optimized)
	g.finish(lines)
}

// TestLinuxDrains makes the namespace inaccessible again and again, as draining its export does, while the kernel
// writes: its requests wait, and none fails.
func TestLinuxDrains(t *testing.T) {
	g := newGuest(t)
	set := func(held bool) {
		g.subsystem.Namespaces[0].Inaccessible = held
		if err := g.target.Set(g.subsystem); err != nil {
			t.Error(err)
		}
	}
	var opened atomic.Int32
	open := g.subsystem.Namespaces[0].Open
	g.subsystem.Namespaces[0].Open = func(host string) (nbd.Export, error) {
		opened.Add(1)
		return open(host)
	}
	set(true)
	set(false) // with that Open from now on
	drains := 0
	lines := g.run("paths "+g.ports[0], func(round int) {
		set(round%2 == 0)
		drains = round / 2
	})
	set(false)
	g.finish(lines)
	if n := int(opened.Load()); n < drains || drains < 1 {
		t.Errorf("opened %d times in %d drains", n, drains)
	}
	t.Logf("%d drains, opened %d times", drains, opened.Load())
}

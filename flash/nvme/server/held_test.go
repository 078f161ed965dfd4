package server_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nvme"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/server"
	"farflash/flash/nvme/wire"
)

// TestInaccessible verifies that a namespace which becomes inaccessible completes the commands that it has accepted,
// then closes its export, and makes hosts wait: they learn of it as the state of an ANA group, and every command gets
// the status that a host repeats. It is opened again when it is accessible. Other namespaces do not notice.
func TestInaccessible(t *testing.T) { ways(t, testInaccessible) }

func testInaccessible(t *testing.T, loops *server.Loops) {
	m := nvmetest.NewMemory(1 << 20)
	stuck := make(chan *nbd.Task, 1)
	var hold atomic.Bool
	m.Before = func(x *nbd.Task) bool {
		if hold.Load() {
			stuck <- x
			return false
		}
		return true
	}
	var opened, left, closed atomic.Int32
	x := nvmetest.Space(1, m)
	x.Open = func(host string) (nbd.Export, error) {
		if host != nvmetest.HostName {
			t.Errorf("opened for %s", host)
		}
		opened.Add(1)
		return nbd.Export{Volume: m, Leave: func() { left.Add(1) }, Close: func() { closed.Add(1) }}, nil
	}
	target := nvmetest.Target(t, nvme.DefaultConfig(), x, nvmetest.Space(2, m))
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	h := open(t, addr, login(1))
	if _, err := h.Admin.Feature(wire.FeatureEvents, wire.EventNamespace|wire.EventANA); err != nil {
		t.Fatal(err)
	}
	set := func(held bool) {
		t.Helper()
		x.Inaccessible = held
		if err := h.Admin.Send(&nvmetest.Op{Request: wire.Request{Opcode: wire.AsyncEvent}}); err != nil {
			t.Fatal(err)
		}
		if err := target.Set(nvme.Subsystem{Name: nvmetest.Subsystem,
			Namespaces: []nvme.Namespace{x, nvmetest.Space(2, m)}}); err != nil {
			t.Fatal(err)
		}
		if p, err := h.Admin.Next(); err != nil || wire.Event(p.CQE.Result) != wire.ANAChanged {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	groups := func(h *nvmetest.Host, want ...wire.Group) {
		t.Helper()
		b, err := h.Admin.Log(wire.LogRequest{Log: wire.LogANA, Length: 4176})
		if err != nil {
			t.Fatal(err)
		}
		_, got, ok := wire.DecodeANA(b)
		if !ok || len(got) != len(want) {
			t.Fatalf("groups %+v, want %+v", got, want)
		}
		for i, g := range got {
			if g.ID != want[i].ID || g.State != want[i].State || !slices.Equal(g.Namespaces, want[i].Namespaces) {
				t.Errorf("groups %+v, want %+v", got, want)
			}
		}
		b, err = h.Admin.Identify(wire.CNSNamespace, 1)
		if n := wire.DecodeNamespace(b); err != nil || n.Group != want[len(want)-1].ID {
			t.Errorf("namespace 1 is in group %d, %v", n.Group, err)
		}
	}
	flush := func(h *nvmetest.Host, id uint32) error { return h.IO[0].Do(nvmetest.IOOp(wire.Flush, id, 0, 1, 0)) }
	served := wire.Group{ID: wire.GroupServed, State: wire.Optimized, Namespaces: []uint32{1, 2}}
	groups(h, served)

	hold.Store(true)
	if err := h.IO[0].Send(nvmetest.IOOp(wire.Flush, 1, 0, 1, 0)); err != nil {
		t.Fatal(err)
	}
	task := <-stuck
	hold.Store(false)
	set(true)
	if left.Load() != 0 || closed.Load() != 0 {
		t.Errorf("left %d times, closed %d times with a command outstanding", left.Load(), closed.Load())
	}
	m.Execute(task)
	if p, err := h.IO[0].Next(); err != nil || p.CQE.Status != 0 {
		t.Errorf("the accepted command: %+v, %v", p.CQE, err)
	}
	held := []wire.Group{{ID: wire.GroupServed, State: wire.Optimized, Namespaces: []uint32{2}},
		{ID: wire.GroupHeld, State: wire.Inaccessible, Namespaces: []uint32{1}}}
	groups(h, held...)
	for _, id := range []uint32{1, 0xffffffff} {
		if err := flush(h, id); !errors.Is(err, wire.PathInaccessible) {
			t.Errorf("flush of %#x: %v", id, err)
		}
	}
	if err := flush(h, 2); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	if opened.Load() != 1 || closed.Load() != 1 || left.Load() != 0 {
		t.Errorf("opened %d times, closed %d, left %d", opened.Load(), closed.Load(), left.Load())
	}
	l := login(1)
	l.Identity.HostID[0]++
	other := open(t, addr, l)
	groups(other, held...)
	if err := flush(other, 1); !errors.Is(err, wire.PathInaccessible) {
		t.Errorf("a host that connects meanwhile: %v", err)
	}
	set(false)
	groups(h, served)
	for _, h := range []*nvmetest.Host{h, other} {
		if err := flush(h, 1); err != nil {
			t.Errorf("accessible again: %v", err)
		}
	}

	// An association that ends does not wait for the tasks queued in a replaced namespace.
	hold.Store(true)
	if err := h.IO[0].Send(nvmetest.IOOp(wire.Flush, 1, 0, 1, 0)); err != nil {
		t.Fatal(err)
	}
	task = <-stuck
	hold.Store(false)
	set(true)
	before := left.Load()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); left.Load() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the queued tasks are not asked to fail")
		}
	}
	m.Execute(task)
}

// TestReplacedUnderLoad verifies that no command fails while its namespace is replaced by one of another size or right,
// again and again.
func TestReplacedUnderLoad(t *testing.T) {
	m := nvmetest.NewMemory(1 << 20)
	x := nvmetest.Space(1, m)
	target := nvmetest.Target(t, nvme.DefaultConfig(), x)
	_, addr := nvmetest.Serve(t, quick(t, target, nil))
	h := open(t, addr, login(2))
	ended := make(chan error, 2)
	var over atomic.Bool
	for _, c := range h.IO {
		go func() {
			for !over.Load() {
				if err := c.Do(nvmetest.IOOp(wire.Flush, 1, 0, 1, 0)); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for range 50_000 {
		x.ReadOnly = !x.ReadOnly
		if err := target.Set(nvme.Subsystem{Name: nvmetest.Subsystem, Namespaces: []nvme.Namespace{x}}); err != nil {
			t.Fatal(err)
		}
	}
	over.Store(true)
	for range h.IO {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

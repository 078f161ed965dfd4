package server_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nbd/volume"
	"farflash/flash/nvme"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/server"
	"farflash/flash/nvme/wire"
	"farflash/numeric/rng"
)

// TestPool runs random commands on several queues over ranges of a pool, whose frames are fewer than its pages.
func TestPool(t *testing.T) { ways(t, testPool) }

func testPool(t *testing.T, loops *server.Loops) {
	const part = 2 << 20
	l := login(3)
	l.Digests = wire.Digests{Data: true}
	pool := nbdtest.Pool(t, loops, "", 64<<20, 512)
	var opened atomic.Int32
	space := nvme.Namespace{ID: 1, UUID: [16]byte{15: 1}, Size: uint64(l.Queues * part),
		Open: func(string) (nbd.Export, error) {
			v, err := volume.New(pool, 1<<20, uint64(l.Queues*part))
			opened.Add(1)
			return nbd.Export{Volume: v, Close: func() { opened.Add(-1) }}, err
		}}
	target := nvmetest.Target(t, nvme.DefaultConfig(), space)
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	h := open(t, addr, l)
	var running sync.WaitGroup
	for i, c := range h.IO {
		running.Go(func() {
			draw := rng.NewStream(uint64(i), "ops")
			if err := randomOps(c, die{&draw}, 4, 512, i*part, part); err != nil {
				t.Errorf("queue %d: %v", i+1, err)
			}
		})
	}
	running.Wait()
	if n := opened.Load(); n != 1 {
		t.Errorf("the export is open %d times for one association", n)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); opened.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the export is still open after the association has ended")
		}
	}
}

// TestFaults verifies the statuses of commands whose volume fails, and which of them hosts repeat. A flush must not be
// repeated: a loss of data is reported only once.
func TestFaults(t *testing.T) {
	m := nvmetest.NewMemory(1 << 20)
	var fail atomic.Uint32
	m.Before = func(x *nbd.Task) bool {
		err := nbd.Errno(fail.Load())
		if err != 0 {
			x.Err = err
			x.Done(x) // it may be reused at once
		}
		return err == 0
	}
	broken := nvmetest.Space(2, m)
	broken.Open = func(string) (nbd.Export, error) { return nbd.Export{}, errors.New("no such export") }
	short := nvmetest.Space(3, m)
	short.Size *= 2
	target := nvmetest.Target(t, nvme.DefaultConfig(), nvmetest.Space(1, m), broken, short)
	_, addr := nvmetest.Serve(t, quick(t, target, nil))
	h := open(t, addr, login(1))
	const dnr = wire.NoRetry
	for _, x := range []struct {
		err  nbd.Errno
		op   wire.Opcode
		size int
		want wire.Status
	}{
		{nbd.EIO, wire.Read, 512, wire.UnrecoveredRead | dnr}, {nbd.EIO, wire.Write, 512, wire.WriteFault | dnr},
		{nbd.EIO, wire.Write, 1 << 20, wire.WriteFault | dnr},
		{nbd.EIO, wire.Read, 1 << 20, wire.UnrecoveredRead | dnr},
		{nbd.EIO, wire.Flush, 0, wire.WriteFault | dnr}, {nbd.EIO, wire.Compare, 512, wire.UnrecoveredRead | dnr},
		{nbd.EIO, wire.Verify, 0, wire.UnrecoveredRead | dnr}, {nbd.EIO, wire.WriteZeroes, 0, wire.WriteFault | dnr},
		{nbd.ENOSPC, wire.Write, 512, wire.CapacityExceeded | dnr},
		{nbd.EPERM, wire.Write, 512, wire.WriteProtected | dnr},
		{nbd.ESHUTDOWN, wire.Write, 512, wire.InternalError}, {nbd.EINVAL, wire.Flush, 0, wire.InvalidField | dnr},
	} {
		fail.Store(uint32(x.err))
		o := nvmetest.IOOp(x.op, 1, 0, max(x.size/512, 1), 0)
		switch x.op {
		case wire.Read:
			o.In = make([]byte, x.size)
		case wire.Write, wire.Compare:
			o.Out, o.InCapsule = make([]byte, x.size), x.size <= 8192
		}
		if err := h.IO[0].Run(o); err != nil {
			t.Fatal(err)
		}
		if o.CQE.Status != x.want {
			t.Errorf("%v of %#x, %d bytes: %v, want %v", x.err, x.op, x.size, o.CQE.Status, x.want)
		}
	}
	fail.Store(uint32(nbd.EIO))
	if err := h.IO[0].Do(nvmetest.Ranges(1, wire.Range{Blocks: 8})); !errors.Is(err, wire.WriteFault|dnr) {
		t.Errorf("deallocation: %v", err)
	}
	fail.Store(0)
	for id := uint32(2); id < 4; id++ {
		if err := h.IO[0].Do(nvmetest.IOOp(wire.Flush, id, 0, 1, 0)); !errors.Is(err, wire.NamespaceNotReady) {
			t.Errorf("namespace %d, which cannot be opened: %v", id, err)
		}
	}
	if err := h.IO[0].Do(nvmetest.IOOp(wire.Flush, 1, 0, 1, 0)); err != nil {
		t.Errorf("after the faults: %v", err)
	}
	if n := m.Borrowed(); n != 0 {
		t.Errorf("the memory of %d reads is lent", n)
	}
}

// TestRemoval verifies that a namespace is closed when it is removed, after its last command.
func TestRemoval(t *testing.T) {
	m := nvmetest.NewMemory(1 << 20)
	stuck := make(chan *nbd.Task, 1)
	m.Before = func(x *nbd.Task) bool { stuck <- x; return false }
	var left, closed atomic.Int32
	x := nvmetest.Space(1, m)
	x.Open = func(string) (nbd.Export, error) {
		return nbd.Export{Volume: m, Leave: func() { left.Add(1) }, Close: func() { closed.Add(1) }}, nil
	}
	target := nvmetest.Target(t, nvme.DefaultConfig(), x)
	_, addr := nvmetest.Serve(t, quick(t, target, nil))
	h := open(t, addr, login(1))
	if err := h.IO[0].Send(nvmetest.IOOp(wire.Flush, 1, 0, 1, 0)); err != nil {
		t.Fatal(err)
	}
	task := <-stuck
	if err := target.Set(nvme.Subsystem{Name: nvmetest.Subsystem}); err != nil {
		t.Fatal(err)
	}
	if left.Load() != 1 || closed.Load() != 0 {
		t.Errorf("left %d times, closed %d times while a command is outstanding", left.Load(), closed.Load())
	}
	m.Execute(task)
	if p, err := h.IO[0].Next(); err != nil || p.CQE.Status != 0 {
		t.Errorf("%+v, %v", p.CQE, err)
	}
	o := nvmetest.IOOp(wire.Flush, 1, 0, 1, 0)
	if err := h.IO[0].Do(o); !errors.Is(err, wire.InvalidNamespace|wire.NoRetry) {
		t.Errorf("after the removal: %v", err)
	}
	if closed.Load() != 1 {
		t.Errorf("closed %d times", closed.Load())
	}
}

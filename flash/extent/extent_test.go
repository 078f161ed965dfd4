package extent_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/flash/extent"
	"farflash/flash/verbs"
	"farflash/flash/verbs/stream"
	"farflash/flash/verbs/verbstest"
	"farflash/flash/wire"
	"farflash/numeric/rng"
)

func newPool(t testing.TB, frames int, grains int64) (*ctl.Pool, *device.Mem) {
	t.Helper()
	dev := device.NewMem(grains * device.Grain)
	shape, err := ctl.Layout{UUID: media.UUID{1, 2, 3}, Segment: 16, OverProvision: 0.3, LogPages: 32}.Shape(dev.Size())
	if err != nil {
		t.Fatal(err)
	}
	if err := ctl.Format(shape, dev); err != nil {
		t.Fatal(err)
	}
	return openPool(t, frames, dev), dev
}

func openPool(t testing.TB, frames int, dev device.Device) *ctl.Pool {
	t.Helper()
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Chunk, cfg.Moves = frames, 4, 4
	p, err := ctl.Open(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// closed checks every invariant of a pool and closes it, which fails if a page is held.
func closed(t testing.TB, p *ctl.Pool) {
	t.Helper()
	for _, v := range p.Check(true).Violations {
		t.Error(v)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// waits is a gate that begins accesses later, on another goroutine.
type waits struct {
	t    *testing.T
	mu   sync.Mutex
	held int
}

func (w *waits) Enter(n int, begin func()) {
	w.mu.Lock()
	w.held += n
	w.mu.Unlock()
	go begin()
}

func (w *waits) Leave(n int) {
	w.mu.Lock()
	w.held -= n
	w.mu.Unlock()
}

func (w *waits) inside() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}

// TestConformance runs the store conformance tests on ranges of a pool at various offsets, with as little memory as
// their reads need and with a gate.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		base uint64
		gate bool
	}{{0, false}, {1 << 40, false}, {1<<64 - 1<<20, true}} {
		t.Run(fmt.Sprintf("%x", c.base), func(t *testing.T) {
			pool, _ := newPool(t, 288, 1000)
			var gate extent.Gate
			w := &waits{t: t}
			if c.gate {
				gate = w
			}
			e, err := extent.New(pool, c.base, 1<<20, gate)
			if err != nil {
				t.Fatal(err)
			}
			verbstest.Conformance(t, e)
			for i := 0; w.inside() != 0; i++ { // the last accesses leave shortly after their pages have arrived
				if i == 1000 {
					t.Fatalf("%d bytes have entered and not left", w.inside())
				}
				time.Sleep(time.Millisecond)
			}
			closed(t, pool)
		})
	}
}

func TestRange(t *testing.T) {
	pool, _ := newPool(t, 32, 500)
	defer closed(t, pool)
	if _, err := extent.New(pool, 1, 8, nil); err == nil {
		t.Error("an extent may begin within a page")
	}
	if _, err := extent.New(pool, 1<<64-4096, 4097, nil); err == nil {
		t.Error("an extent may end beyond the address space")
	}
}

// TestRegistration verifies that creating and registering an extent touches no page, whatever its length.
func TestRegistration(t *testing.T) {
	pool, dev := newPool(t, 32, 500)
	before := pool.Stats()
	reads, _ := dev.Operations(device.Read)
	adapter, err := verbs.NewAdapter([16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	d := adapter.NewDomain(4)
	cost := func(size uint64) float64 {
		return testing.AllocsPerRun(10, func() {
			e, err := extent.New(pool, 0, size, nil)
			if err != nil {
				t.Fatal(err)
			}
			g, err := d.Register(verbs.RegionConfig{Store: e, Length: size, Rights: verbs.RemoteRead})
			if err != nil {
				t.Fatal(err)
			}
			g.Deregister()
		})
	}
	if small, large := cost(4096), cost(1<<62); small != large {
		t.Errorf("%v allocations for a page, %v for 4 EiB", small, large)
	}
	if now, _ := dev.Operations(device.Read); now != reads || pool.Stats() != before {
		t.Error("registration reads from the device")
	}
	closed(t, pool)
}

// rig is a client and a server on a pool.
type rig struct {
	t       testing.TB
	adapter *verbs.Adapter
	client  *stream.Conn
	server  *stream.Conn
	region  *verbs.Region
	mu      sync.Mutex
	causes  error // the server's errors
}

// cause returns the error that the server received.
func (r *rig) cause() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.causes
}

func connect(t testing.TB, pool *ctl.Pool, size uint64) *rig {
	t.Helper()
	r := &rig{t: t}
	var err error
	if r.adapter, err = verbs.NewAdapter([16]byte{1}); err != nil {
		t.Fatal(err)
	}
	e, err := extent.New(pool, 0, size, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := r.adapter.NewDomain(1)
	r.region, err = d.Register(verbs.RegionConfig{Store: e, Length: size, Allowed: verbs.AllSemantics,
		Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.DefaultConfig()
	cfg.Verbs.Window = 4096
	cfg.Verbs.IRD, cfg.Verbs.ORD = 4, 4
	told := cfg
	told.Verbs.Notice = func(err error) {
		r.mu.Lock()
		r.causes = errors.Join(r.causes, err)
		r.mu.Unlock()
	}
	up := make(chan error, 1)
	go func() {
		nc, err := l.Accept()
		if err == nil {
			r.server, err = stream.Server(nc, d, told)
		}
		up <- err
	}()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if r.client, err = stream.Client(nc, r.adapter.NewDomain(0), cfg); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-up, l.Close()); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) close() {
	if err := errors.Join(r.client.Close(), r.server.Close()); err != nil {
		r.t.Error(err)
	}
	r.region.Deregister()
	if n := r.adapter.Regions(); n != 0 {
		r.t.Errorf("%d regions are left", n)
	}
}

// do posts work and waits for all of it.
func (r *rig) do(works ...verbs.Work) (verbs.Completion, error) {
	if err := r.client.Post(works...); err != nil {
		return verbs.Completion{}, err
	}
	var out [1]verbs.Completion
	for range works {
		if r.client.Wait(out[:]) == 0 {
			return out[0], r.client.Err()
		}
		if out[0].Err != nil {
			return out[0], out[0].Err
		}
	}
	return out[0], nil
}

func settled(t testing.TB, before int) {
	t.Helper()
	for range 500 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}

// story writes, reads and adds as a client, on a device with the given faults, until an operation fails. Everything
// that a trailing zero-length read confirmed must be there when the pool is reopened without faults.
func story(t *testing.T, label string, faults device.Faults, seed uint64) (failed bool) {
	t.Helper()
	const pages = 60
	before := runtime.NumGoroutine()
	pool, dev := newPool(t, 32, 300)
	draw := rng.NewStream(seed, "story")
	dev.SetFaults(faults)
	sure := make([][]byte, pages)    // contents confirmed to be durable
	maybe := make([][][]byte, pages) // contents written since
	r := connect(t, pool, pages*ctl.Page)
	got := make([]byte, 3*ctl.Page)
	var stopped error
	for i := 0; i < 120 && stopped == nil; i++ {
		page := int(draw.IntN(pages - 2))
		at := uint64(page) * ctl.Page
		switch draw.IntN(4) {
		case 0:
			_, stopped = r.do(verbs.Work{Op: wire.ReadReq, Local: got[:1+draw.IntN(2*ctl.Page)],
				STag: r.region.STag(), Offset: at + uint64(draw.IntN(ctl.Page))})
		case 1: // an atomic on a page of its own is confirmed by its response
			var c verbs.Completion
			last := uint64(pages-1) * ctl.Page
			c, stopped = r.do(verbs.Work{Op: wire.AtomicReq, Operand: wire.Operand{Data: 1},
				STag: r.region.STag() | uint32(verbs.Sync), Offset: last})
			b := make([]byte, ctl.Page)
			binary.LittleEndian.PutUint64(b, c.Original+1)
			if stopped == nil {
				sure[pages-1], maybe[pages-1] = b, nil
			} else if sure[pages-1] != nil {
				binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(sure[pages-1])+1)
				maybe[pages-1] = append(maybe[pages-1], b)
			} else {
				binary.LittleEndian.PutUint64(b, 1)
				maybe[pages-1] = append(maybe[pages-1], b)
			}
		default:
			n := 1 + int(draw.IntN(2))
			sync := draw.IntN(2) == 0
			b := make([]byte, n*ctl.Page)
			for k := range b {
				b[k] = byte(i+k/ctl.Page) | 1
			}
			stag := r.region.STag() | uint32(verbs.Async)
			if sync {
				stag = r.region.STag() | uint32(verbs.Sync)
			}
			for k := range n {
				maybe[page+k] = append(maybe[page+k], b[k*ctl.Page:][:ctl.Page])
			}
			_, stopped = r.do(verbs.Work{Op: wire.Write, Local: b, STag: stag, Offset: at},
				verbs.Work{Op: wire.ReadReq})
			if sync && stopped == nil {
				for k := range n {
					sure[page+k], maybe[page+k] = b[k*ctl.Page:][:ctl.Page], nil
				}
			}
		}
	}
	if stopped != nil && !errors.As(stopped, new(verbs.Terminated)) {
		t.Errorf("%s: the client is told %v", label, stopped)
	}
	r.close()
	for _, v := range pool.Check(false).Violations {
		t.Errorf("%s: %v", label, v)
	}
	if err := pool.Close(); err != nil && strings.Contains(err.Error(), "held") {
		t.Errorf("%s: %v", label, err)
	}
	settled(t, before)
	dev = dev.Crash(&draw)
	pool = openPool(t, 32, dev)
	for i := range pages {
		b := make([]byte, ctl.Page)
		err := pool.ReadAt(b, uint64(i)*ctl.Page)
		ok := err == nil && (bytes.Equal(b, sure[i]) || sure[i] == nil && bytes.Count(b, []byte{0}) == len(b))
		for _, m := range maybe[i] {
			ok = ok || err == nil && bytes.Equal(b, m)
		}
		if !ok {
			t.Errorf("%s: page %d is not what was confirmed, nor what was written since: %v", label, i, err)
		}
	}
	closed(t, pool)
	return stopped != nil
}

// TestFaults fails each operation of the device in turn, then fills the device, fails flushes, and breaks the device
// permanently.
func TestFaults(t *testing.T) {
	failed := 0
	note := func(f bool) {
		if f {
			failed++
		}
	}
	for at := int64(1); at < 120; at += 3 {
		note(story(t, fmt.Sprintf("operation %d", at), device.Faults{FailAt: at}, uint64(at)))
		if at%9 == 1 {
			note(story(t, fmt.Sprintf("from operation %d", at), device.Faults{FailFrom: at}, uint64(at)))
			note(story(t, fmt.Sprintf("full from operation %d", at), device.Faults{FailFrom: at, FailFull: true},
				uint64(at)))
		}
	}
	for seed := uint64(1); seed < 5; seed++ {
		note(story(t, fmt.Sprintf("flushes, seed %d", seed), device.Faults{Seed: seed, FlushError: 0.05}, seed))
		note(story(t, fmt.Sprintf("reads, seed %d", seed), device.Faults{Seed: seed, ReadError: 0.05, Short: 0.02},
			seed))
		note(story(t, fmt.Sprintf("writes, seed %d", seed), device.Faults{Seed: seed, WriteError: 0.2, Full: 0.2},
			seed))
	}
	if failed < 20 {
		t.Errorf("%d stories have come to an error; the faults hit nothing", failed)
	}
}

// TestFull verifies that a full pool terminates the connection of a writer, and that its contents can still be read.
func TestFull(t *testing.T) {
	pool, _ := newPool(t, 64, 300)
	_, capacity := pool.Use()
	r := connect(t, pool, 1<<40)
	b := bytes.Repeat([]byte{7}, ctl.Page)
	var err error
	n := uint64(0)
	for ; err == nil && n < 2*uint64(capacity); n++ {
		_, err = r.do(verbs.Work{Op: wire.Write, Local: b, STag: r.region.STag() | uint32(verbs.Sync),
			Offset: n * ctl.Page}, verbs.Work{Op: wire.ReadReq})
	}
	if !errors.As(err, new(verbs.Terminated)) || n <= uint64(capacity)/2 {
		t.Errorf("after %d pages of %d: %v", n, capacity, err)
	}
	if err := r.cause(); !errors.Is(err, ctl.ErrFull) {
		t.Errorf("the server is told %v", err)
	}
	r.close()
	r = connect(t, pool, 1<<40)
	got := make([]byte, ctl.Page)
	for i := range n - 1 {
		if _, err := r.do(verbs.Work{Op: wire.ReadReq, Local: got, STag: r.region.STag(),
			Offset: i * ctl.Page}); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("page %d of %d: %v", i, n, err)
		}
	}
	r.close()
	closed(t, pool)
}

// TestCause verifies that the server receives the reason why a page is unavailable, for reads and for writes.
func TestCause(t *testing.T) {
	for _, op := range []wire.Op{wire.ReadReq, wire.Write} {
		pool, dev := newPool(t, 32, 300)
		r := connect(t, pool, 1<<20)
		if _, err := r.do(verbs.Work{Op: wire.Write, Local: bytes.Repeat([]byte{7}, ctl.Page),
			STag: r.region.STag() | uint32(verbs.Sync)}, verbs.Work{Op: wire.ReadReq}); err != nil {
			t.Fatal(err)
		}
		r.close()
		closed(t, pool)
		dev = dev.Reopen()
		pool = openPool(t, 32, dev)
		dev.SetFaults(device.Faults{ReadError: 1})
		r = connect(t, pool, 1<<20)
		if _, err := r.do(verbs.Work{Op: op, Local: make([]byte, 100), STag: r.region.STag()},
			verbs.Work{Op: wire.ReadReq}); !errors.As(err, new(verbs.Terminated)) {
			t.Errorf("%v: %v", op, err)
		}
		if err := r.cause(); !errors.Is(err, device.ErrIO) {
			t.Errorf("%v: the server is told %v", op, err)
		}
		r.close()
		dev.SetFaults(device.Faults{})
		closed(t, pool)
	}
}

// TestLostLater verifies that a connection is terminated as soon as one of its unconfirmed changes is lost, whatever
// else it does, and that a connection that only reads continues.
func TestLostLater(t *testing.T) {
	pool, dev := newPool(t, 32, 1000)
	writer, reader := connect(t, pool, 1<<20), connect(t, pool, 1<<20)
	b := bytes.Repeat([]byte{7}, 4*ctl.Page)
	if _, err := writer.do(verbs.Work{Op: wire.Write, Local: b, STag: writer.region.STag() | uint32(verbs.Sync)},
		verbs.Work{Op: wire.ReadReq}); err != nil {
		t.Fatal(err)
	}
	dev.SetFaults(device.Faults{WriteError: 1})
	// The write is placed, and a zero-length Read may be answered before the write-out has failed; later ones are not.
	if _, err := writer.do(verbs.Work{Op: wire.Write, Local: bytes.Repeat([]byte{8}, 4*ctl.Page),
		STag: writer.region.STag() | uint32(verbs.Async)}); err != nil {
		t.Fatal(err)
	}
	var err error
	for begin := time.Now(); err == nil && time.Since(begin) < 20*time.Second; {
		_, err = writer.do(verbs.Work{Op: wire.ReadReq})
	}
	dev.SetFaults(device.Faults{})
	if ended := new(verbs.Terminated); !errors.As(err, ended) || !ended.Remote || ended.Fault != wire.FaultStream {
		t.Errorf("the connection ends with %v", err)
	}
	if err := writer.cause(); !errors.Is(err, device.ErrIO) {
		t.Errorf("the server is told %v", err)
	}
	got := make([]byte, len(b))
	if _, err := reader.do(verbs.Work{Op: wire.ReadReq, Local: got, STag: reader.region.STag()}); err != nil ||
		!bytes.Equal(got, b) {
		t.Errorf("one that only reads has %d, %v", got[0], err)
	}
	writer.close()
	reader.close()
	if err := pool.Close(); !errors.Is(err, device.ErrIO) {
		t.Errorf("closing the pool, which nobody has asked since: %v", err)
	}
}

// TestLongWrites has two connections overwrite the same pages concurrently, in writes that cover all of them, with
// little memory: a holder of one page must not wait for a page whose holder waits for that one.
func TestLongWrites(t *testing.T) {
	if raced {
		t.Skip("who writes the same bytes side by side has what RDMA promises: any of them, in any order; the " +
			"detector calls it a race")
	}
	pool, _ := newPool(t, 96, 1000)
	var all sync.WaitGroup
	for k := range 3 {
		r := connect(t, pool, 1<<20)
		all.Add(1)
		go func() {
			defer all.Done()
			defer r.close()
			b := bytes.Repeat([]byte{byte(k + 1)}, 15*ctl.Page)
			for i := range 60 {
				if _, err := r.do(verbs.Work{Op: wire.Write, Local: b, STag: r.region.STag(),
					Offset: uint64(i%3) * ctl.Page}, verbs.Work{Op: wire.ReadReq}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	all.Wait()
	closed(t, pool)
}

// TestOneAfterTheOther verifies that a write requests its pages in ascending order, each after the previous one was
// given: while it waits for one, the later pages remain available to others.
func TestOneAfterTheOther(t *testing.T) {
	pool, _ := newPool(t, 64, 500)
	r := connect(t, pool, 1<<20)
	for round := range uint64(3) { // including reused accesses
		first := round * 8
		var held ctl.Ref
		pool.Get(first+2, ctl.Whole, func(x ctl.Ref, err error) { held = x })
		if !held.Fill {
			t.Fatal("somebody has the page")
		}
		if err := r.client.Post(verbs.Work{Op: wire.Write, Local: bytes.Repeat([]byte{7}, 5*ctl.Page),
			STag: r.region.STag(), Offset: first * ctl.Page, Quiet: true}, verbs.Work{Op: wire.ReadReq}); err != nil {
			t.Fatal(err)
		}
		for i := 0; !pool.Holds(first + 1); i++ {
			if i == 10_000 {
				t.Fatal("its first pages are never asked for")
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Millisecond) // gives an implementation that does not wait time to fail
		if pool.Holds(first+3) || pool.Holds(first+4) {
			t.Error("a page is asked for before the one before it is there")
		}
		other := make(chan error, 1)
		pool.Get(first+4, ctl.Whole, func(x ctl.Ref, err error) {
			if err == nil {
				pool.Put(x, ctl.Kept, heat.Auto, nil)
			}
			other <- err
		})
		select {
		case err := <-other:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("a page behind the one that is waited for cannot be had")
		}
		pool.Put(held, ctl.Kept, heat.Auto, nil)
		var out [1]verbs.Completion
		if r.client.Wait(out[:]); out[0].Err != nil {
			t.Fatal(out[0].Err)
		}
		got := make([]byte, 5*ctl.Page)
		if err := pool.ReadAt(got, first*ctl.Page); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{7}, len(got))) {
			t.Errorf("what was written is not there: %v", err)
		}
	}
	r.close()
	closed(t, pool)
}

package verbs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"farflash/flash/verbs"
	"farflash/flash/verbs/verbstest"
	"farflash/flash/wire"
)

// random returns n random bytes.
func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestEverything verifies all operations in both directions, for DRAM and for a store whose pages become ready in any
// order, with and without CRCs and markers, however the stream is split.
func TestEverything(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 9))
			r := connected(t, func(a, b *verbs.Config) {
				a.CRC, b.CRC = seed&1 == 0, seed&1 == 0 || seed&2 == 0
				a.Markers, b.Markers = seed&4 != 0, seed&8 != 0
				a.Revision = uint8(1 + seed&1)
				a.Window, b.Window = 8192, 8192
				if seed%3 == 0 {
					a.MaxSegment, b.MaxSegment = 300, 1454
				}
				if seed%5 == 0 && seed&1 == 1 {
					a.PeerToPeer = true
				}
			})
			r.cut = rnd
			from, to := int(seed>>4&1), 1-int(seed>>4&1)
			if from == 1 && (seed%5 != 0 || seed&1 == 0) {
				// A responder sends only after it has received from the initiator.
				r.post(0, verbs.Work{Op: wire.Write, Quiet: true})
				r.pump()
			}
			var g *verbs.Region
			var memory func() []byte
			stores := []*verbstest.Pages{}
			if seed%2 == 0 {
				m := random(rnd, 100_000)
				g = r.region(to, verbs.RegionConfig{Memory: m, Base: 0x7000,
					Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic})
				memory = func() []byte { return m }
			} else {
				p := verbstest.NewPages(1<<20, 4096, seed+1)
				p.Hold = true
				stores = append(stores, p)
				copy(p.Bytes(), random(rnd, 1<<20))
				g = r.region(to, verbs.RegionConfig{Store: p, Offset: 4104, Length: 100_000, Base: 0x7000,
					Allowed: verbs.AllSemantics, Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic})
				memory = func() []byte { return p.Bytes()[4104:104_104] }
			}
			settle := func() {
				r.pump()
				for _, p := range stores {
					for p.Held() > 0 {
						p.Release(rnd.IntN(p.Held()))
						r.step()
					}
				}
			}
			for round := range 40 {
				stag := g.STag()
				if len(stores) > 0 {
					stag |= uint32([]verbs.Semantics{0, verbs.Sync, verbs.Async, verbs.Prefetch,
						verbs.Sync | verbs.Prefetch}[rnd.IntN(5)])
				}
				n := rnd.IntN(30_000)
				if round%4 == 0 {
					n = rnd.IntN(3)
				}
				at := rnd.IntN(100_001 - n)
				switch rnd.IntN(4) {
				case 0:
					want := bytes.Clone(memory()[at : at+n])
					got := make([]byte, n)
					r.post(from, verbs.Work{ID: 7, Op: wire.ReadReq, Local: got, STag: stag,
						Offset: 0x7000 + uint64(at)})
					settle()
					if c := r.one(from); c.ID != 7 || c.Op != wire.ReadReq || int(c.Length) != n ||
						!bytes.Equal(got, want) {
						t.Fatalf("reading %d bytes at %d: %+v, equal: %v", n, at, c, bytes.Equal(got, want))
					}
				case 1:
					b := random(rnd, n)
					r.post(from, verbs.Work{Op: wire.Write, Local: b, STag: stag, Offset: 0x7000 + uint64(at)})
					settle()
					if c := r.one(from); int(c.Length) != n || !bytes.Equal(memory()[at:at+n], b) {
						t.Fatalf("writing %d bytes at %d: %+v", n, at, c)
					}
				case 2:
					got := make([]byte, 30_000)
					if err := r.sides[to].qp.PostReceive(verbs.Receive{ID: 3, Local: got}); err != nil {
						t.Fatal(err)
					}
					b := random(rnd, n)
					r.post(from, verbs.Work{Op: wire.SendSE, Local: b})
					settle()
					r.one(from)
					if c := r.one(to); c.ID != 3 || !c.Receive || int(c.Length) != n || !bytes.Equal(got[:n], b) ||
						c.Op != wire.SendSE {
						t.Fatalf("sending %d bytes: %+v", n, c)
					}
				case 3:
					at &^= 7
					at = min(at, 99_992)
					old := le(memory()[at:])
					o := wire.Operand{Data: rnd.Uint64(), Mask: ^uint64(0), Compare: old, CompareMask: ^uint64(0)}
					w := verbs.Work{Op: wire.AtomicReq, Atomic: wire.CmpSwap, Operand: o, STag: stag,
						Offset: 0x7000 + uint64(at)}
					want := o.Data
					switch rnd.IntN(3) {
					case 0:
						w.Operand.Compare++
						want = old
					case 1:
						w.Atomic, w.Operand.Mask = wire.FetchAdd, 0
						want = old + o.Data
					}
					r.post(from, w)
					settle()
					if c := r.one(from); c.Original != old || le(memory()[at:]) != want {
						t.Fatalf("%+v: found %x, left %x; want %x and %x", w, c.Original, le(memory()[at:]), old, want)
					}
				}
			}
			for i, s := range r.sides {
				if s.qp.State() != verbs.Running {
					t.Errorf("side %d: %v", i, s.qp.Err())
				}
				s.qp.Close()
			}
			for _, p := range stores {
				p.Release(-1)
			}
			r.settled(stores...)
		})
	}
}

func le(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// TestOrder verifies that responses and completions follow the order of the requests, whatever order pages become ready
// in, and that outstanding reads stay within the peer's limit.
func TestOrder(t *testing.T) {
	r := connected(t, func(a, b *verbs.Config) { a.ORD, b.IRD = 16, 3 })
	if _, ord := r.sides[0].qp.Limits(); ord != 3 {
		t.Fatalf("ORD is %d, want the peer's 3", ord)
	}
	p := verbstest.NewPages(1<<16, 4096, 0)
	for i := range p.Bytes() {
		p.Bytes()[i] = byte(i >> 12)
	}
	p.Hold = true
	g := r.region(1, verbs.RegionConfig{Store: p, Length: 1 << 16, Rights: verbs.RemoteRead})
	got := make([][]byte, 8)
	for i := range got {
		got[i] = make([]byte, 8192)
		r.post(0, verbs.Work{ID: uint64(i), Op: wire.ReadReq, Local: got[i], STag: g.STag(), Offset: uint64(i) * 8192})
	}
	r.pump()
	if p.Out() != 3 {
		t.Errorf("%d reads are under way at the store, want 3", p.Out())
	}
	next := uint64(0)
	for p.Held() > 0 {
		// The last page always becomes ready first; no response can start before the first page.
		p.Release(p.Held() - 1)
		r.step()
		for _, c := range r.poll(0) {
			if c.ID != next || c.Err != nil {
				t.Fatalf("completion %+v, want of %d", c, next)
			}
			next++
		}
	}
	if next != 8 {
		t.Errorf("%d reads completed", next)
	}
	for i := range got {
		if got[i][0] != byte(2*i) || got[i][8191] != byte(2*i+1) {
			t.Errorf("read %d got other pages", i)
		}
	}
}

// TestReadyPrefix verifies that the contiguous ready prefix of a read is sent before the rest is ready.
func TestReadyPrefix(t *testing.T) {
	r := connected(t, nil)
	p := verbstest.NewPages(1<<16, 4096, 0)
	p.Hold = true
	g := r.region(1, verbs.RegionConfig{Store: p, Offset: 100, Length: 60_000, Rights: verbs.RemoteRead})
	got := make([]byte, 16384)
	r.post(0, verbs.Work{Op: wire.ReadReq, Local: got, STag: g.STag()})
	r.pump()
	sent := func() uint64 { return r.sides[1].qp.Counters().ReadBytes }
	if p.Held() != 5 {
		t.Fatalf("%d pages, want 5", p.Held())
	}
	for _, step := range []struct {
		release int
		want    uint64
	}{{1, 0}, {1, 0}, {0, 4096*3 - 100}, {1, 4096*3 - 100}, {0, 16384}} {
		p.Release(step.release)
		r.step()
		if sent() != step.want {
			t.Errorf("%d bytes are sent, want %d", sent(), step.want)
		}
	}
	r.one(0)
}

// TestSync verifies FlashNet's rule: operations after a synchronous write start only when its data are on flash, and
// operations after an asynchronous one do not wait; the response to an empty Read shows the difference.
func TestSync(t *testing.T) {
	for _, sync := range []bool{true, false} {
		r := connected(t, nil)
		p := verbstest.NewPages(1<<16, 4096, 0)
		p.HoldPuts = true
		g := r.region(1, verbs.RegionConfig{Store: p, Length: 1 << 16, Rights: verbs.RemoteWrite,
			Allowed: verbs.Sync | verbs.Async})
		stag := g.STag() | uint32(verbs.Async)
		if sync {
			stag = g.STag() | uint32(verbs.Sync)
		}
		data := bytes.Repeat([]byte("x"), 10_000)
		r.post(0, verbs.Work{ID: 1, Op: wire.Write, Local: data, STag: stag})
		r.post(0, verbs.Work{ID: 2, Op: wire.ReadReq, Fence: true})
		r.pump()
		done := r.poll(0)
		// The write itself has completed, which implies nothing about durability (RFC 5040, 5.5).
		if len(done) == 0 || done[0].ID != 1 {
			t.Fatalf("sync %v: %+v", sync, done)
		}
		if fenced := len(done) == 1; fenced != sync {
			t.Errorf("sync %v: the Read of nothing is held back: %v", sync, fenced)
		}
		if bytes.Equal(p.Medium()[:len(data)], data) {
			t.Error("the data are on the medium before the put has ended")
		}
		p.Release(-1)
		r.step()
		if sync {
			if c := r.one(0); c.ID != 2 {
				t.Errorf("%+v", c)
			}
			if !bytes.Equal(p.Medium()[:len(data)], data) {
				t.Error("the Read of nothing was answered, and the data are not on the medium")
			}
		}
		r.settled(p)
	}
}

// TestMessageAfterWrites verifies that a message is delivered only when the store has all writes before it, so that its
// receiver can make them durable.
func TestMessageAfterWrites(t *testing.T) {
	r := connected(t, nil)
	p := verbstest.NewPages(8192, 4096, 0)
	p.HoldPuts = true
	g := r.region(1, verbs.RegionConfig{Store: p, Length: 8192, Rights: verbs.RemoteWrite, Allowed: verbs.Async})
	if err := r.sides[1].qp.PostReceive(verbs.Receive{Local: make([]byte, 8)}); err != nil {
		t.Fatal(err)
	}
	r.post(0, verbs.Work{Op: wire.Write, Local: []byte("x"), STag: g.STag() | uint32(verbs.Async), Quiet: true})
	r.post(0, verbs.Work{Op: wire.Send, Local: []byte("flush"), Quiet: true})
	r.pump()
	if got := r.poll(1); len(got) > 0 {
		t.Errorf("before the put is done: %+v", got)
	}
	p.Release(-1)
	r.step()
	if c := r.one(1); c.Length != 5 {
		t.Errorf("%+v", c)
	}
	r.settled(p)
}

// TestSyncAtomic verifies that the response to a synchronous atomic follows the write of its result to flash, and that
// later work waits for it.
func TestSyncAtomic(t *testing.T) {
	r := connected(t, nil)
	p := verbstest.NewPages(8192, 4096, 0)
	p.HoldPuts = true
	g := r.region(1, verbs.RegionConfig{Store: p, Length: 8192, Rights: verbs.RemoteAtomic | verbs.RemoteWrite,
		Allowed: verbs.Sync})
	r.post(0, verbs.Work{ID: 1, Op: wire.AtomicReq, Operand: wire.Operand{Data: 5},
		STag: g.STag() | uint32(verbs.Sync), Offset: 8})
	r.post(0, verbs.Work{ID: 2, Op: wire.Write, Local: []byte("later"), STag: g.STag(), Offset: 4096})
	r.pump()
	r.poll(0)
	if le(p.Bytes()[8:]) != 5 || p.Bytes()[4096] != 0 {
		t.Errorf("the atomic left %d; the write behind it is placed: %v", le(p.Bytes()[8:]), p.Bytes()[4096] != 0)
	}
	p.Release(-1)
	r.step()
	if le(p.Medium()[8:]) != 5 || string(p.Bytes()[4096:4101]) != "later" {
		t.Error("it is not on the medium, or the write did not come through")
	}
	p.Release(-1)
	r.step()
	r.settled(p)
}

// TestImmediateAndInvalidate verifies both: eight bytes that consume a receive, and an STag that is revoked.
func TestImmediateAndInvalidate(t *testing.T) {
	r := connected(t, nil)
	g := r.region(1, verbs.RegionConfig{Memory: make([]byte, 64), Rights: verbs.RemoteWrite | verbs.RemoteInvalidate})
	for i := range 3 {
		if err := r.sides[1].qp.PostReceive(verbs.Receive{ID: uint64(i), Local: make([]byte, 4)}); err != nil {
			t.Fatal(err)
		}
	}
	r.post(0, verbs.Work{Op: wire.Write, Local: []byte("data"), STag: g.STag(), Quiet: true})
	r.post(0, verbs.Work{Op: wire.ImmSE, Immediate: 0x1122334455667788, Quiet: true})
	r.post(0, verbs.Work{Op: wire.SendSEInv, Local: []byte("bye"), Invalidate: g.STag(), Quiet: true})
	r.pump()
	got := r.poll(1)
	if len(got) != 2 || got[0].Immediate != 0x1122334455667788 || got[0].ID != 0 || got[0].Op != wire.ImmSE ||
		got[1].Invalidated != g.STag() || got[1].Length != 3 {
		t.Fatalf("%+v", got)
	}
	if len(r.poll(0)) != 0 {
		t.Error("quiet work has completions")
	}
	if r.sides[1].domain.Regions() != 0 {
		t.Error("the region is still registered")
	}
	r.post(0, verbs.Work{Op: wire.Write, Local: []byte("data"), STag: g.STag()})
	r.pump()
	r.fault(wire.FaultTaggedSTag)
	if err := r.sides[0].qp.Err(); err != error(verbs.Terminated{Fault: wire.FaultTaggedSTag, Remote: true}) {
		t.Errorf("the initiator ends with %v", err)
	}
}

// TestEvents verifies when an armed completion queue raises its event.
func TestEvents(t *testing.T) {
	events := 0
	a := newAdapter(t, 1)
	cq := verbs.NewCompletionQueue(16, func() { events++ })
	cfg := verbs.DefaultConfig()
	cfg.Sends, cfg.Receives = 8, 8
	qp, err := verbs.NewQueuePair(a.NewDomain(1), cfg, cq, cq)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verbs.NewQueuePair(a.NewDomain(1), cfg, cq, cq); err == nil {
		t.Error("a completion queue is shared by more than it has places for")
	}
	ca := verbs.DefaultConfig()
	ca.Initiator = true
	b := &side{qp: qp, cq: cq, adapter: a}
	r := newRig(t, newSide(t, 3, ca), b)
	for range 4 {
		if err := qp.PostReceive(verbs.Receive{Local: make([]byte, 8)}); err != nil {
			t.Fatal(err)
		}
	}
	step := func(op wire.Op, want int) {
		t.Helper()
		r.post(0, verbs.Work{Op: op, Local: []byte("x")})
		r.pump()
		if events != want {
			t.Errorf("%d events, want %d", events, want)
		}
	}
	step(wire.Send, 0)
	if !cq.Arm(true) {
		t.Error("there is a completion, and Arm does not say so")
	}
	step(wire.Send, 0)
	step(wire.SendSE, 1)
	cq.Arm(false)
	qp.Close()
	if events != 2 {
		t.Errorf("%d events, want one for what failed", events)
	}
	// Once everything is polled, the entries can be reserved again.
	r.poll(1)
	if _, err := verbs.NewQueuePair(a.NewDomain(1), cfg, cq, cq); err != nil {
		t.Error(err)
	}
}

// TestQueuesAreBounded verifies that posted and completed requests share the queue's entries, so that no completion can
// be lost.
func TestQueuesAreBounded(t *testing.T) {
	r := connected(t, func(a, b *verbs.Config) { a.Sends = 4 })
	for range 4 {
		r.post(0, verbs.Work{Op: wire.Write})
	}
	r.pump()
	if err := r.sides[0].qp.Post(verbs.Work{Op: wire.Write}); !errors.Is(err, verbs.ErrFull) {
		t.Errorf("a fifth request: %v", err)
	}
	if n := len(r.poll(0)); n != 4 {
		t.Fatalf("%d completions", n)
	}
	r.post(0, verbs.Work{Op: wire.Write})
}

// TestLost verifies that when the connection is lost, all outstanding requests complete with the error and stores get
// their pages back.
func TestLost(t *testing.T) {
	r := connected(t, nil)
	p := verbstest.NewPages(1<<20, 4096, 0)
	p.Hold = true
	g := r.region(1, verbs.RegionConfig{Store: p, Length: 1 << 20,
		Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic, Allowed: verbs.AllSemantics})
	for i := range 3 {
		r.post(0, verbs.Work{ID: uint64(i), Op: wire.ReadReq, Local: make([]byte, 600_000), STag: g.STag()})
	}
	r.post(0, verbs.Work{ID: 3, Op: wire.AtomicReq, Operand: wire.Operand{Data: 1},
		STag: g.STag() | uint32(verbs.Sync)})
	r.post(0, verbs.Work{ID: 4, Op: wire.Write, Local: []byte("x"), STag: g.STag()})
	r.pump()
	for range 70 {
		p.Release(0)
	}
	r.step()
	r.sides[0].qp.Lost(io.ErrUnexpectedEOF)
	r.sides[1].qp.Lost(io.ErrUnexpectedEOF)
	got := r.poll(0)
	if len(got) != 5 {
		t.Fatalf("%d completions", len(got))
	}
	for i, c := range got {
		if c.ID != uint64(i) || !errors.Is(c.Err, io.ErrUnexpectedEOF) {
			t.Errorf("%+v", c)
		}
	}
	if err := r.sides[0].qp.Post(verbs.Work{Op: wire.Write}); !errors.Is(err, verbs.ErrClosed) {
		t.Error(err)
	}
	if r.sides[1].qp.Settled() {
		t.Error("pages are still to come, and it says that it is settled")
	}
	for p.Held() > 0 {
		p.Release(p.Held() - 1)
		r.sides[1].qp.Step()
	}
	r.settled(p)
}

// TestConformance verifies that the store of these tests is conformant, with pages ready in order and out of order.
func TestConformance(t *testing.T) {
	for seed := range uint64(3) {
		p := verbstest.NewPages(2<<20, 4096, seed)
		verbstest.Conformance(t, p)
		if p.Out() != 0 {
			t.Errorf("%d accesses are left", p.Out())
		}
	}
	held := verbstest.NewPages(300_000, 512, 9)
	held.Hold = true
	stop := make(chan struct{})
	var worker sync.WaitGroup
	worker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				held.Release(-1)
				runtime.Gosched()
			}
		}
	})
	verbstest.Conformance(t, held)
	close(stop)
	worker.Wait()
}

// TestFresh verifies that Fresh also reports a callback that was processed by another call.
func TestFresh(t *testing.T) {
	r := connected(t, nil)
	p := verbstest.NewPages(8192, 4096, 0)
	p.Hold = true
	g := r.region(1, verbs.RegionConfig{Store: p, Length: 8192, Rights: verbs.RemoteWrite})
	r.post(0, verbs.Work{Op: wire.Write, Local: []byte("x"), STag: g.STag()})
	r.pump()
	qp := r.sides[1].qp
	if qp.Fresh(); !qp.Stalled() {
		t.Fatal("the write does not wait for its page")
	}
	p.Release(-1)
	if out := qp.Fill(make([]byte, 0, wire.MaxFPDU)); len(out) != 0 || !qp.Fresh() || qp.Fresh() {
		t.Error("Fill has taken the page in, and does not say so once")
	}
	if qp.Input(r.sides[1].in) == 0 || qp.Stalled() {
		t.Error("the write still waits")
	}
}

// TestAtomicsUnderWay verifies that reads and atomics together stay within the peer's limit on outstanding requests.
func TestAtomicsUnderWay(t *testing.T) {
	r := connected(t, func(a, b *verbs.Config) { b.IRD = 3 })
	g := r.region(1, verbs.RegionConfig{Memory: make([]byte, 64), Rights: verbs.RemoteAtomic | verbs.RemoteRead})
	requests := 0
	var d wire.Deframer
	d.CRC = true
	r.hook = func(from int, b []byte) {
		for from == 0 && len(b) > 0 {
			s, n, err := d.Next(bytes.Clone(b))
			if err != nil || s == nil {
				t.Fatal(err)
			}
			if s.Op() == wire.AtomicReq || s.Op() == wire.ReadReq {
				requests++
			}
			b = b[n:]
		}
	}
	for i := range 8 {
		w := verbs.Work{Op: wire.AtomicReq, Atomic: wire.FetchAdd, STag: g.STag(), Operand: wire.Operand{Data: 1}}
		if i%3 == 2 {
			w = verbs.Work{Op: wire.ReadReq, Local: make([]byte, 8), STag: g.STag()}
		}
		r.post(0, w)
	}
	for want := 3; want <= 8; want++ {
		for r.send(0) {
		}
		if requests != want {
			t.Fatalf("%d reads and atomics are under way, at most %d may be", requests, want)
		}
		for r.receive(1) || r.send(1) {
		}
		out := r.sides[0].in
		_, n, err := (&wire.Deframer{CRC: true}).Next(bytes.Clone(out))
		if err != nil {
			t.Fatal(err)
		}
		if k := r.sides[0].qp.Input(out[:n]); k != n { // one response
			t.Fatalf("%d of %d bytes of an answer are taken", k, n)
		}
		r.sides[0].in = out[n:]
	}
	r.pump()
	if got := r.poll(0); len(got) != 8 {
		t.Errorf("%d of 8 have completed", len(got))
	}
}

// TestLateCallback verifies that Wake is called for a store callback that arrives while the queue pair is at work,
// after its last check of the inbox.
func TestLateCallback(t *testing.T) {
	woken := 0
	store := verbstest.NewPages(8192, 4096, 0)
	cfg := verbs.DefaultConfig()
	cfg.Wake = func() { woken++ }
	b := &side{adapter: newAdapter(t, 2)}
	b.domain = b.adapter.NewDomain(2)
	// The event fires within Input, as if another goroutine called back at that moment.
	b.cq = verbs.NewCompletionQueue(cfg.Sends+cfg.Receives, func() { store.Release(-1) })
	qp, err := verbs.NewQueuePair(b.domain, cfg, b.cq, b.cq)
	if err != nil {
		t.Fatal(err)
	}
	b.qp = qp
	ca := verbs.DefaultConfig()
	ca.Initiator = true
	r := newRig(t, newSide(t, 1, ca), b)
	r.pump()
	g := r.region(1, verbs.RegionConfig{Store: store, Length: 8192, Rights: verbs.RemoteRead})
	if err := qp.PostReceive(verbs.Receive{Local: make([]byte, 1)}); err != nil {
		t.Fatal(err)
	}
	store.Hold = true
	b.cq.Arm(false)
	r.post(0, verbs.Work{Op: wire.ReadReq, Local: make([]byte, 4096), STag: g.STag()})
	r.post(0, verbs.Work{Op: wire.Send, Local: []byte("x")})
	r.send(0)
	woken = 0
	for r.receive(1) {
	}
	if woken == 0 {
		t.Error("a page has come, and nobody is woken for it")
	}
	store.Hold = false
	r.step()
	store.Release(-1)
	r.step()
	if got := r.poll(0); len(got) != 2 {
		t.Errorf("%d of 2 have completed", len(got))
	}
	qp.Close()
	r.settled(store)
}

// TestOneTerminate verifies that a second failure, while the Terminate for the first is pending, sends no second
// Terminate.
func TestOneTerminate(t *testing.T) {
	r := connected(t, nil)
	store := verbstest.NewPages(16384, 4096, 0)
	g := r.region(1, verbs.RegionConfig{Store: store, Length: 16384, Rights: verbs.RemoteWrite,
		Allowed: verbs.AllSemantics})
	store.HoldPuts = true
	for i := range uint64(2) { // segments of one message, so that neither waits for the other
		store.FailPut = verbstest.ErrMedium
		f := wire.TaggedFields{Op: wire.Write, Last: i == 1, STag: g.STag() | uint32(verbs.Sync), Offset: i * 4096}
		s := tagged(f, make([]byte, 4096))
		b := (&wire.Framer{CRC: true}).Begin(make([]byte, 0, 8192), len(s))
		copy(b[len(b)-len(s):], s)
		b = (&wire.Framer{CRC: true}).End(b)
		if n := r.sides[1].qp.Input(b); n != len(b) {
			t.Fatalf("%d of %d bytes are taken", n, len(b))
		}
	}
	buf := make([]byte, 0, 2*wire.MaxFPDU)
	if store.Held() != 2 {
		t.Fatalf("%d writes wait to be durable", store.Held())
	}
	store.Release(0)
	r.sides[1].qp.Step()
	if out := r.sides[1].qp.Fill(buf); len(out) == 0 {
		t.Fatal("nothing is said of the failure")
	}
	store.Release(0) // Sent has not been called for the Terminate yet
	r.sides[1].qp.Step()
	if out := r.sides[1].qp.Fill(buf); len(out) > 0 {
		t.Errorf("%d bytes more are said", len(out))
	}
	r.sides[1].qp.Sent()
	if got := r.sides[1].qp.State(); got != verbs.Closed {
		t.Errorf("the connection is %v", got)
	}
}

// TestMessages counts a peer's requests as it posted them: one for a write of several segments, none for a write whose
// page has not come, and none for one that had to be durable and could not be.
func TestMessages(t *testing.T) {
	for _, fails := range []bool{false, true} {
		r := connected(t, nil)
		store := verbstest.NewPages(1<<18, 4096, 0)
		g := r.region(1, verbs.RegionConfig{Store: store, Length: 1 << 18, Allowed: verbs.AllSemantics,
			Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic})
		if err := r.sides[1].qp.PostReceive(verbs.Receive{Local: make([]byte, 9)}); err != nil {
			t.Fatal(err)
		}
		counts := func(i int) verbs.Counters { return r.sides[i].qp.Counters() }
		before, at := counts(1).Messages, counts(0).Posted
		for i, w := range []verbs.Work{
			{Op: wire.Write, Local: make([]byte, 1<<17), STag: g.STag()},
			{Op: wire.ReadReq, Local: make([]byte, 9000), STag: g.STag()},
			{Op: wire.AtomicReq, Atomic: wire.FetchAdd, STag: g.STag()},
			{Op: wire.Send, Local: []byte("message")},
			{Op: wire.ReadReq},
		} {
			r.post(0, w)
			r.pump()
			if m, p := counts(1).Messages-before, counts(0).Posted-at; m != uint64(i)+1 || p != m {
				t.Errorf("%v: %d messages of %d posted, want %d", w.Op, m, p, i+1)
			}
		}
		store.HoldPuts = true
		if fails {
			store.FailPut = verbstest.ErrMedium
		}
		r.post(0, verbs.Work{Op: wire.Write, Local: make([]byte, 8192), STag: g.STag() | uint32(verbs.Sync)})
		r.pump()
		r.post(0, verbs.Work{Op: wire.Write, Local: make([]byte, 10), STag: g.STag()}) // waits for the other
		r.pump()
		want := uint64(6)
		if got := counts(1).Messages - before; got != want {
			t.Errorf("%d messages before the write is durable, want %d", got, want)
		}
		r.sides[1].qp.Close()
		for store.Held() > 0 {
			store.Release(0)
		}
		r.sides[1].qp.Step()
		if fails {
			want--
		}
		if got := counts(1).Messages - before; got != want || !r.sides[1].qp.Settled() {
			t.Errorf("failure %v: %d messages after the end, want %d", fails, got, want)
		}
	}
	r := connected(t, nil)
	store := verbstest.NewPages(8192, 4096, 0)
	g := r.region(1, verbs.RegionConfig{Store: store, Length: 8192, Rights: verbs.RemoteWrite})
	before := r.sides[1].qp.Counters().Messages
	store.Hold = true
	r.post(0, verbs.Work{Op: wire.Write, Local: make([]byte, 10), STag: g.STag()})
	r.pump()
	r.sides[1].qp.Close()
	store.Hold = false
	store.Release(-1)
	r.settled(store)
	if got := r.sides[1].qp.Counters().Messages; got != before {
		t.Errorf("%d messages, want the %d before the write whose page did not come", got, before)
	}
}

// TestDefaultSemantics verifies that a region's default applies only if the peer sets neither Sync nor Async.
func TestDefaultSemantics(t *testing.T) {
	for _, x := range []struct {
		byDefault, flags verbs.Semantics
		sync             bool
	}{
		{0, 0, false}, {verbs.Sync, 0, true}, {verbs.Sync, verbs.Async, false}, {verbs.Async, 0, false},
		{verbs.Async, verbs.Sync, true}, {verbs.Sync, verbs.Prefetch, true},
	} {
		r := connected(t, nil)
		p := verbstest.NewPages(8192, 4096, 0)
		g := r.region(1, verbs.RegionConfig{Store: p, Length: 8192, Rights: verbs.RemoteWrite,
			Allowed: verbs.AllSemantics, Default: x.byDefault})
		r.post(0, verbs.Work{Op: wire.Write, Local: []byte("data"), STag: g.STag() | uint32(x.flags)})
		r.pump()
		if got := bytes.Equal(p.Medium()[:4], []byte("data")); got != x.sync {
			t.Errorf("default %d, asked for %d: what is written is durable at once: %v", x.byDefault, x.flags, got)
		}
		r.settled(p)
	}
}

// TestFillFits verifies that Fill stays within any capacity and that all output eventually appears, with and without
// markers.
func TestFillFits(t *testing.T) {
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		memory := make([]byte, 1<<18)
		r := connected(t, func(a, b *verbs.Config) {
			a.Markers, b.Markers = seed&1 != 0, seed&2 != 0
			a.MaxSegment = []int{128, 5000, wire.MaxULPDU}[seed%3]
			b.MaxSegment = a.MaxSegment
		})
		g := r.region(1, verbs.RegionConfig{Memory: memory,
			Rights: verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic})
		var want, reads [][]byte
		for i := range 20 {
			n := rnd.IntN(10_000)
			b := random(rnd, n)
			want = append(want, b)
			at := uint64(i) * 10_000
			r.post(0, verbs.Work{Op: wire.Write, Local: b, STag: g.STag(), Offset: at, Quiet: true})
			reads = append(reads, make([]byte, n))
			r.post(0, verbs.Work{Op: wire.ReadReq, Local: reads[i], STag: g.STag(), Offset: at})
			r.post(0, verbs.Work{Op: wire.AtomicReq, STag: g.STag(), Offset: 1<<18 - 8, Operand: wire.Operand{Data: 1}})
		}
		for idle := 0; idle < 300; {
			idle++
			for i, s := range r.sides {
				room := rnd.IntN(100)
				if rnd.IntN(3) == 0 {
					room = rnd.IntN(wire.MaxFPDU + 100)
				}
				before := rnd.IntN(10)
				b := make([]byte, before, before+room)
				out := s.qp.Fill(b)
				if cap(out) != cap(b) { // it was reallocated
					t.Fatalf("seed %d: %d bytes are given where there is room for %d", seed, len(out)-before, room)
				}
				if len(out) > before {
					idle = 0
					s.qp.Sent()
					r.sides[1-i].in = append(r.sides[1-i].in, out[before:]...)
				}
				r.receive(1 - i)
			}
		}
		if done := r.poll(0); len(done) != 40 {
			t.Fatalf("seed %d: %d of 40 have completed: %v, %v", seed, len(done), r.sides[0].err(), r.sides[1].err())
		}
		for i := range want {
			if !bytes.Equal(reads[i], want[i]) {
				t.Errorf("seed %d: read %d is not what was written", seed, i)
			}
		}
	}
}

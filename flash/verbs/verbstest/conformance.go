package verbstest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"farflash/flash/verbs"
	"farflash/flash/wire"
)

// Conformance verifies the contract of a Store as a client observes it: unwritten bytes read as zero, written bytes are
// read back at any offset and length and with several operations outstanding, atomics see earlier results, and every
// access ends. It writes the store's first megabyte, which must not have been written before.
func Conformance(t *testing.T, store verbs.Store) {
	t.Helper()
	p := newPair(t)
	length := int(min(store.Size(), 1<<20)) &^ 7
	g, err := p.domain.Register(verbs.RegionConfig{Store: store, Length: uint64(length), Allowed: verbs.AllSemantics,
		Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic})
	if err != nil {
		t.Fatal(err)
	}
	model := make([]byte, length)
	r := rand.New(rand.NewPCG(1, 1))
	got := make([]byte, length)
	p.do(verbs.Work{Op: wire.ReadReq, Local: got, STag: g.STag()})
	if !bytes.Equal(got, model) {
		t.Error("unwritten bytes are not zero")
	}
	for round := range 200 {
		stag := g.STag() | uint32([]verbs.Semantics{0, verbs.Sync, verbs.Async, verbs.Prefetch}[r.IntN(4)])
		n := 1 + r.IntN(3*store.PageSize())
		if round%3 == 0 {
			n = store.PageSize()
		}
		n = min(n, length)
		at := r.IntN(length - n + 1)
		switch r.IntN(3) {
		case 0: // three concurrent reads
			works, want := make([]verbs.Work, 3), make([][]byte, 3)
			for i := range works {
				at := r.IntN(length - n + 1)
				works[i], want[i] = verbs.Work{Op: wire.ReadReq, Local: make([]byte, n), STag: stag,
					Offset: uint64(at)}, model[at:at+n]
			}
			p.do(works...)
			for i := range works {
				if !bytes.Equal(works[i].Local, want[i]) {
					t.Fatalf("round %d: read of %d bytes at %d differs from the model", round, n, works[i].Offset)
				}
			}
		case 1:
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			copy(model[at:], b)
			p.do(verbs.Work{Op: wire.Write, Local: b, STag: stag, Offset: uint64(at)}, verbs.Work{Op: wire.ReadReq})
		case 2:
			at = min(at&^7, length-8)
			add := r.Uint64()
			c := p.do(verbs.Work{Op: wire.AtomicReq, Operand: wire.Operand{Data: add}, STag: stag, Offset: uint64(at)})
			var old uint64
			for i := range 8 {
				old |= uint64(model[at+i]) << (8 * i)
			}
			if c.Original != old {
				t.Fatalf("round %d: atomic at %d returned %x, want %x", round, at, c.Original, old)
			}
			for i := range 8 {
				model[at+i] = byte((old + add) >> (8 * i))
			}
		}
	}
	p.do(verbs.Work{Op: wire.ReadReq, Local: got, STag: g.STag()})
	if !bytes.Equal(got, model) {
		t.Error("the final content differs from the model")
	}
	p.server.Close()
	for !p.server.Settled() {
		<-p.wake
		p.server.Step()
	}
}

// pair is a client and a server connected through byte slices.
type pair struct {
	t              *testing.T
	client, server *verbs.QueuePair
	cq             *verbs.CompletionQueue
	domain         *verbs.Domain
	wake           chan struct{}
	buffer         []byte
	toServer       []byte
	toClient       []byte
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, wake: make(chan struct{}, 1), buffer: make([]byte, 0, 2*wire.MaxFPDU)}
	a, err := verbs.NewAdapter([16]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	p.domain = a.NewDomain(1)
	cfg := verbs.DefaultConfig()
	cfg.Notice = func(err error) { t.Errorf("unexpected notice: %v", err) }
	cfg.Wake = func() {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	other := verbs.NewCompletionQueue(cfg.Sends+cfg.Receives, nil)
	if p.server, err = verbs.NewQueuePair(p.domain, cfg, other, other); err != nil {
		t.Fatal(err)
	}
	cfg = verbs.DefaultConfig()
	cfg.Initiator = true
	p.cq = verbs.NewCompletionQueue(cfg.Sends+cfg.Receives, nil)
	if p.client, err = verbs.NewQueuePair(a.NewDomain(0), cfg, p.cq, p.cq); err != nil {
		t.Fatal(err)
	}
	return p
}

// do posts works, waits for all, and returns the last completion.
func (p *pair) do(works ...verbs.Work) verbs.Completion {
	p.t.Helper()
	for _, w := range works {
		if err := p.client.Post(w); err != nil {
			p.t.Fatal(err)
		}
	}
	var out [1]verbs.Completion
	for range works {
		for p.cq.Poll(out[:]) == 0 {
			if !p.move() {
				<-p.wake
				p.server.Step()
			}
		}
		if out[0].Err != nil {
			p.t.Fatalf("%v: %v; the server's error is %v", out[0].Op, out[0].Err, p.server.Err())
		}
	}
	return out[0]
}

// move transfers pending bytes in both directions and reports whether there were any.
func (p *pair) move() bool {
	moved := false
	send := func(from, to *verbs.QueuePair, queue *[]byte) {
		b := from.Fill(p.buffer[:0])
		from.Sent()
		*queue = append(*queue, b...)
		n := to.Input(*queue)
		*queue = append((*queue)[:0], (*queue)[n:]...)
		moved = moved || len(b) > 0 || n > 0
	}
	send(p.client, p.server, &p.toServer)
	if p.server.State() == verbs.Asked {
		if err := p.server.Accept(nil); err != nil {
			p.t.Fatal(err)
		}
		moved = true
	}
	send(p.server, p.client, &p.toClient)
	return p.server.Fresh() || moved
}

package verbs_test

import (
	"fmt"
	"io"
	"testing"

	"farflash/flash/verbs"
	"farflash/flash/verbs/verbstest"
	"farflash/flash/wire"
)

// losing is a store that reports the loss of an earlier change within one of its calls of Get or Put.
type losing struct {
	*verbstest.Pages
	get, put int // counts down to the call
	lost     func(error)
}

func (s *losing) Report(f func(error)) (stop func()) {
	s.lost = f
	return func() { s.lost = nil }
}

func (s *losing) count(n *int) {
	if *n--; *n == 0 && s.lost != nil {
		s.lost(io.ErrUnexpectedEOF)
	}
}

func (s *losing) Get(a *verbs.Access) {
	s.Pages.Get(a)
	s.count(&s.get)
}

func (s *losing) Put(a *verbs.Access) {
	s.Pages.Put(a)
	s.count(&s.put)
}

// TestLossWithinCall verifies that a connection that ends within a call to its store, because the store reports a loss
// there, returns all accesses, that one included, whichever operation made the call and whether its pages are ready.
func TestLossWithinCall(t *testing.T) {
	for _, hold := range []bool{false, true} {
		for name, op := range map[string]verbs.Work{
			"write":  {Op: wire.Write, Local: make([]byte, 5000)},
			"sync":   {Op: wire.Write, Local: make([]byte, 5000), STag: uint32(verbs.Sync)},
			"read":   {Op: wire.ReadReq, Local: make([]byte, 600_000)},
			"atomic": {Op: wire.AtomicReq, Operand: wire.Operand{Data: 1}},
			"synced": {Op: wire.AtomicReq, Operand: wire.Operand{Data: 1}, STag: uint32(verbs.Sync)},
		} {
			for at := 1; at <= 12; at++ {
				for _, put := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, call %d, put %v, hold %v", name, at, put, hold), func(t *testing.T) {
						r := connected(t, nil)
						p := &losing{Pages: verbstest.NewPages(1<<20, 4096, 0)}
						g := r.region(1, verbs.RegionConfig{Store: p, Length: 1 << 20,
							Rights:  verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic,
							Allowed: verbs.AllSemantics})
						// The connection subscribes to losses by an asynchronous write.
						r.post(0,
							verbs.Work{ID: 1, Op: wire.Write, Local: []byte("x"), STag: g.STag() | uint32(verbs.Async)})
						r.pump()
						if p.lost == nil {
							t.Fatal("it does not subscribe")
						}
						if put {
							p.put = at
						} else {
							p.get = at
						}
						p.Hold = hold
						for i := range 3 {
							w := op
							w.ID, w.STag = uint64(2+i), w.STag|g.STag()
							r.post(0, w)
						}
						for range 40 {
							r.pump()
							for p.Held() > 0 {
								p.Release(0)
								r.step()
							}
						}
						r.sides[0].qp.Lost(io.ErrUnexpectedEOF)
						r.sides[1].qp.Lost(io.ErrUnexpectedEOF)
						r.settled(p.Pages)
					})
				}
			}
		}
	}
}

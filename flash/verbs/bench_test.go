package verbs_test

import (
	"testing"

	"farflash/flash/verbs"
	"farflash/flash/verbs/verbstest"
	"farflash/flash/wire"
)

// mover moves bytes between two ends without logging.
type mover struct {
	r      *rig
	buffer []byte
	out    []verbs.Completion
}

func newMover(r *rig) *mover {
	return &mover{r, make([]byte, 0, 2*wire.MaxFPDU), make([]verbs.Completion, 4)}
}

func (m *mover) move(from int) {
	m.buffer = m.r.sides[from].qp.Fill(m.buffer[:0])
	m.r.sides[from].qp.Sent()
	m.r.sides[1-from].qp.Input(m.buffer)
}

// op performs one request and returns the number of completions.
func (m *mover) op(w verbs.Work) int {
	if err := m.r.sides[0].qp.Post(w); err != nil {
		return -1
	}
	m.move(0)
	m.move(1)
	return m.r.sides[0].cq.Poll(m.out)
}

func opOf(t testing.TB, store bool, what wire.Op) (*mover, verbs.Work) {
	r := connected(t, nil)
	c := verbs.RegionConfig{Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic,
		Allowed: verbs.AllSemantics}
	if store {
		c.Store, c.Length = &cached{pages: make([]byte, 1<<20)}, 1<<20
	} else {
		c.Memory = make([]byte, 1<<20)
	}
	g := r.region(1, c)
	return newMover(r), verbs.Work{Op: what, Local: make([]byte, 4096), STag: g.STag(), Offset: 8192}
}

// cached is a store whose pages are always ready.
type cached struct{ pages []byte }

func (c *cached) Size() uint64  { return uint64(len(c.pages)) }
func (c *cached) PageSize() int { return 4096 }
func (c *cached) Get(a *verbs.Access) {
	end := a.Offset + uint64(a.Length)
	for at := a.Offset; at < end; {
		to := min(at&^4095+4096, end)
		a.Ready(at, c.pages[at:to])
		at = to
	}
}
func (c *cached) Put(a *verbs.Access) { a.Done(nil) }

// TestNoAllocations verifies that reads, writes and atomics do not allocate at either end, for DRAM and for a store
// whose pages are ready.
func TestNoAllocations(t *testing.T) {
	for _, store := range []bool{false, true} {
		for _, op := range []wire.Op{wire.ReadReq, wire.Write, wire.AtomicReq} {
			m, w := opOf(t, store, op)
			if op == wire.AtomicReq {
				w.Local = nil
			}
			for range 10 {
				m.op(w)
			}
			if n := testing.AllocsPerRun(200, func() {
				if m.op(w) != 1 || m.out[0].Err != nil {
					t.Fatal(m.out[0].Err)
				}
			}); n != 0 {
				t.Errorf("%v, store %v: %v allocations", op, store, n)
			}
		}
	}
}

func BenchmarkPipe(b *testing.B) {
	for _, store := range []bool{false, true} {
		name := "dram"
		if store {
			name = "store"
		}
		for _, op := range []wire.Op{wire.ReadReq, wire.Write, wire.AtomicReq} {
			b.Run(name+"/"+op.String(), func(b *testing.B) {
				m, w := opOf(b, store, op)
				b.ReportAllocs()
				b.SetBytes(4096)
				for b.Loop() {
					if m.op(w) != 1 {
						b.Fatal("no completion")
					}
				}
			})
		}
	}
}

func BenchmarkRegister(b *testing.B) {
	for name, n := range map[string]uint64{"4KiB": 4096, "1PiB": 1 << 50} {
		b.Run(name, func(b *testing.B) {
			d := newAdapter(b, 1).NewDomain(1)
			p := &hugeStore{size: n}
			b.ReportAllocs()
			for b.Loop() {
				g, err := d.Register(verbs.RegionConfig{Store: p, Length: n, Rights: verbs.RemoteRead})
				if err != nil {
					b.Fatal(err)
				}
				g.Deregister()
			}
		})
	}
}

var _ verbs.Store = (*verbstest.Pages)(nil)

package table

import (
	"sync"
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// TestWord verifies which fields each transition of a page's state machine keeps and which it changes.
func TestWord(t *testing.T) {
	for _, p := range []ftl.PPA{0, 1, 1<<48 - 1} {
		if w := At(p); w.State() != OnMedium || w.Place() != p {
			t.Errorf("at %d: %v, %d", p, w.State(), w.Place())
		}
	}
	for _, f := range []int32{0, 1, frames} {
		if w := Coming(f); w.State() != InFlight || w.Frame() != f {
			t.Errorf("coming to %d: %v, %d", f, w.State(), w.Frame())
		}
		w := Held(f, 0, true)
		if _, ok := w.Get(true); ok || !w.Blank() || !w.Idle() {
			t.Error("a blank page is given to a writer without a reservation")
		}
		r, ok := w.Get(false)
		if !ok || r.Refs() != 1 || r.Frame() != f || r.Idle() {
			t.Errorf("a reader gets %v with %d references", r.State(), r.Refs())
		}
		w = w.Reserved()
		a, _ := w.Get(true)
		b, _ := a.Get(false)
		if b.Refs() != 2 || b.Dirty() {
			t.Errorf("%d references, dirty %v", b.Refs(), b.Dirty())
		}
		b = b.Put(true)
		if b.Refs() != 1 || !b.Dirty() || b.Idle() {
			t.Errorf("after a change: %d references, dirty %v", b.Refs(), b.Dirty())
		}
		b = b.Put(false)
		if b.Refs() != 0 || !b.Dirty() || b.Idle() || b.Soil() != b || b.Frame() != f || b.State() != Resident {
			t.Errorf("after the last put: %x", uint64(b))
		}
		if d := b.Expect(); !d.Due() || b.Due() || d.Frame() != f {
			t.Error("a page that something waits for does not say so")
		}
		if full := Held(f, maxRefs, false); full.Refs() != maxRefs || full.Frame() != f {
			t.Error("the most references do not fit")
		} else if _, ok := full.Get(false); ok {
			t.Error("one reference too many is given")
		}
	}
	for _, w := range []Word{0, At(5), Coming(3)} {
		if _, ok := w.Get(false); ok {
			t.Errorf("a page that is %v is given", w.State())
		}
	}
}

// TestTable compares with a map, at both ends of the page range and between.
func TestTable(t *testing.T) {
	table, want := New(48), map[uint64]Word{}
	draw := rng.NewStream(1, "table")
	for range 4000 {
		page := draw.Uint64() >> 12 >> (4 * draw.IntN(13))
		want[page] = At(ftl.PPA(draw.IntN(1 << 47)))
		table.Make(page).Store(want[page])
	}
	for page, w := range want {
		if s := table.Find(page); s == nil || s.Load() != w {
			t.Fatalf("page %d is lost", page)
		}
	}
	if table.Find(1<<51+12345) != nil {
		t.Error("a page that was never used has a slot")
	}
	for _, r := range [][2]uint64{{0, 1<<52 - 1}, {1 << 20, 1 << 40}, {7, 7}, {1 << 51, 1<<52 - 1}} {
		n, last, in := 0, uint64(0), 0
		for page, s := range table.Used(r[0], r[1]) {
			if page < r[0] || page > r[1] || n > 0 && page <= last {
				t.Fatalf("page %d after %d of %v", page, last, r)
			}
			last = page
			n++
			if s.Load() != 0 {
				if s.Load() != want[page] {
					t.Fatalf("page %d is another's", page)
				}
				in++
			}
		}
		all := 0
		for page := range want {
			if page >= r[0] && page <= r[1] {
				all++
			}
		}
		if in != all {
			t.Errorf("%d of %d pages of %v are visited", in, all, r)
		}
	}
}

// TestSwap has goroutines acquire and release references to one page, and verifies that none is left over.
func TestSwap(t *testing.T) {
	table := New(48)
	slot := table.Make(9)
	slot.Store(Held(4, 0, false))
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 2000 {
				for {
					w := slot.Load()
					if next, ok := w.Get(false); ok && slot.Swap(w, next) {
						break
					}
				}
				for {
					w := slot.Load()
					if slot.Swap(w, w.Put(false)) {
						break
					}
				}
			}
		}()
	}
	all.Wait()
	if w := slot.Load(); w != Held(4, 0, false) {
		t.Errorf("%d references are left", w.Refs())
	}
}

func BenchmarkFind(b *testing.B) {
	table := New(48)
	for p := range uint64(1 << 16) {
		table.Make(p)
	}
	b.ReportAllocs()
	for i := range b.N {
		if table.Find(uint64(i)&(1<<16-1)) == nil {
			b.Fatal("lost")
		}
	}
}

package table

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"farflash/flash/ctl/heat"
	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// none knows of no checksum.
func none(ftl.PPA) uint32 { return 0 }

// TestFold compares a table that is folded all the time with a map, while pages get places in order and at random, are
// taken into frames and dropped.
func TestFold(t *testing.T) {
	for seed := range uint64(20) {
		table, want := New(48), map[uint64]Word{}
		draw := rng.NewStream(seed, "fold")
		const pages = 6 * fan
		next := ftl.PPA(0)
		check := func() {
			t.Helper()
			if got := maps.Collect(table.Words(0, 1<<52-1)); !maps.Equal(got, want) {
				t.Fatalf("seed %d: the table has %d pages, not the %d that it should", seed, len(got), len(want))
			}
			in := func(frame int32) ftl.PPA { return ftl.PPA(frame) + 1<<40 }
			places, last := map[uint64]ftl.PPA{}, uint64(0)
			complete := table.Runs(1, in, func(leaf uint64) bool { return leaf == 2 },
				func(page uint64, place ftl.PPA, n int) bool {
					for i := range n {
						places[page+uint64(i)] = place + ftl.PPA(i)
					}
					if page <= last && last > 0 || page == 0 || LeafOf(page) == 2 {
						t.Fatalf("seed %d: a run from page %d after page %d", seed, page, last)
					}
					last = page + uint64(n) - 1
					return true
				})
			for page, w := range want {
				at, ok := places[page]
				if is := placeOf(w, in); page > 0 && LeafOf(page) != 2 && (ok != (is != ftl.NoPPA) || ok && at != is) {
					t.Fatalf("seed %d: page %d has place %d, not %d", seed, page, at, is)
				}
				delete(places, page)
			}
			if len(places) > 0 || !complete {
				t.Fatalf("seed %d: %d more pages are in runs", seed, len(places))
			}
			for page := range uint64(pages) {
				if w, _ := table.Peek(page); w != want[page] {
					t.Fatalf("seed %d: page %d is %x, not %x", seed, page, w, want[page])
				}
			}
		}
		// Before the pool is open: runs.
		for page := uint64(draw.IntN(1000)); page < pages && seed%2 == 0; page += uint64(draw.IntN(700)) {
			n := min(int(1+draw.IntN(1500)), int(pages-page))
			table.Put(page, next, n, none)
			for i := range n {
				want[page+uint64(i)] = At(next + ftl.PPA(i))
			}
			page, next = page+uint64(n), next+ftl.PPA(n)+ftl.PPA(draw.IntN(2))
			check()
		}
		set := func(page uint64, w Word) {
			table.Make(page).Store(w)
			if want[page] = w; w == 0 {
				delete(want, page)
			}
		}
		for range 200 {
			page, n := uint64(draw.IntN(pages)), uint64(1+draw.IntN(900))
			switch draw.IntN(6) {
			case 0: // written in order
				for i := range min(n, pages-page) {
					set(page+i, At(next))
					next++
				}
			case 1: // at random
				for range n / 8 {
					set(uint64(draw.IntN(pages)), At(next))
					next++
				}
			case 2: // in a frame
				w := Held(int32(page), int(draw.IntN(2)), false)
				set(page, w)
			case 3:
				for p, s := range table.Used(page, page+n) {
					if s.Load() != want[p] {
						t.Fatalf("seed %d: the slot of page %d has %x, not %x", seed, p, s.Load(), want[p])
					}
					if draw.IntN(2) == 0 {
						s.Store(0)
						delete(want, p)
					}
				}
			case 4:
				var is Word
				s := table.Find(page)
				if s != nil {
					is = s.Load()
				}
				if is != want[page] {
					t.Fatalf("seed %d: page %d has slot %v", seed, page, s)
				}
			case 5:
				for range 20 {
					table.Fold()
				}
			}
			check()
		}
		var frames []uint64
		for page, w := range want {
			if w.State() > OnMedium {
				frames = append(frames, page)
			}
		}
		for _, page := range slices.Sorted(slices.Values(frames)) {
			set(page, 0)
		}
		for page := range uint64(pages) { // all in order now
			set(page, At(next))
			next++
		}
		table.rest = 0
		for table.Fold() {
		}
		check()
		if table.Loose() != 0 {
			t.Errorf("seed %d: %d bytes are left of slots in order", seed, table.Loose())
		}
	}
}

// TestFoldWhileUsed folds a table while threads take pages into frames and back. No page may be in two frames.
func TestFoldWhileUsed(t *testing.T) {
	const pages, threads = 4 * fan, 4
	table := New(48)
	table.Put(0, 1000, pages, none)
	var users sync.WaitGroup
	var taken [pages]sync.Mutex
	for i := range threads {
		users.Add(1)
		go func() {
			defer users.Done()
			draw := rng.NewStream(uint64(i), "thread")
			for range 20_000 {
				page := uint64(draw.IntN(pages))
				if w, _ := table.Peek(page); w.State() == Invalid {
					t.Errorf("page %d has no place", page)
					return
				}
				s := table.Find(page)
				if s == nil {
					continue // is being folded
				}
				w := s.Load()
				if w.State() != OnMedium || !s.Swap(w, Coming(int32(i))) {
					continue
				}
				if w.Place() != 1000+ftl.PPA(page) || !taken[page].TryLock() {
					t.Errorf("page %d is at place %d, or in two frames", page, w.Place())
					return
				}
				taken[page].Unlock()
				if !s.Swap(Coming(int32(i)), w) {
					t.Errorf("page %d was taken from its frame", page)
					return
				}
			}
		}()
	}
	over := make(chan struct{})
	go func() { users.Wait(); close(over) }()
	for {
		select {
		case <-over:
			table.rest = 0
			for table.Fold() {
			}
			if table.Loose() != 0 {
				t.Errorf("%d bytes are left", table.Loose())
			}
			return
		default:
			table.rest = 0
			table.Fold()
		}
	}
}

// TestPack verifies that pages without order are packed, with their write histories, into less than half of the
// memory, and into runs once they are in order.
func TestPack(t *testing.T) {
	table, draw := New(48), rng.NewStream(1, "random")
	want := map[uint64]Word{}
	for page := range uint64(8 * fan) {
		want[page] = At(ftl.PPA(draw.IntN(1<<48 - 2)))
		s := table.Make(page)
		s.Store(want[page])
		s.SetHeat(uint64((heat.Short(page)<<5 | 7).Page()))
	}
	const nodes = 4 * nodeBytes
	was := table.Bytes() - nodes
	for table.Fold() {
	}
	if is := table.Bytes() - nodes; table.Loose() != 0 || is > was*9/20 {
		t.Errorf("%d bytes of %d are left, %d of them of slots", is, was, table.Loose())
	}
	for range 3 {
		for page, w := range want {
			is, h := table.Peek(page)
			if is != w || heat.Page(h).Short() != heat.Short(page)<<5|7 {
				t.Fatalf("page %d is %x with the history %x, not %x", page, is, h, w)
			}
		}
		for range 100 { // some of them have slots for some time
			page := uint64(draw.IntN(8 * fan))
			want[page] = At(ftl.PPA(draw.IntN(1<<48 - 2)))
			table.Make(page).Store(want[page])
		}
		for table.rest = 0; table.Fold(); {
		}
	}
	for page := range want {
		table.Make(page).Store(At(ftl.PPA(page)))
	}
	for table.rest = 0; table.Fold(); {
	}
	if is := table.Bytes(); is > 5*nodeBytes {
		t.Errorf("%d bytes are left of pages in order", is)
	}
}

// TestFoldNeighbours folds a leaf before one that begins a run of its own.
func TestFoldNeighbours(t *testing.T) {
	table := New(48)
	table.Put(fan, 1000+fan, fan, none)
	for page := range uint64(fan) {
		table.Make(page).Store(At(1000 + ftl.PPA(page)))
	}
	for table.Fold() {
	}
	for page := range uint64(2 * fan) {
		if w, _ := table.Peek(page); w != At(1000+ftl.PPA(page)) {
			t.Fatalf("page %d is %x", page, w)
		}
	}
}

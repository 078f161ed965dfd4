package table

import (
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// TestAway compares with a map while leaves are stored, are away, change and come back. A second map has the entries
// as of the time of Store.
func TestAway(t *testing.T) {
	for seed := range uint64(5) {
		const pages = 3 * fan
		table, want, stored := New(), map[uint64]Word{}, map[uint64]*[fan]ftl.PPA{}
		draw := rng.NewStream(seed, "away")
		frames := map[int32]ftl.PPA{} // places of pages in frames
		resident := 0
		for page := range uint64(pages) {
			want[page] = At(ftl.PPA(draw.IntN(1 << 40)))
			table.Put(page, want[page].Place(), 1)
		}
		bring := func(page uint64) {
			if table.Away(page) {
				table.Arrive(LeafOf(page), stored[LeafOf(page)])
			}
		}
		for range 2000 {
			page := uint64(draw.IntN(pages))
			switch draw.IntN(6) {
			case 0, 1:
				bring(page)
				if want[page].State() == Resident {
					resident--
				}
				want[page] = At(ftl.PPA(draw.IntN(1 << 40)))
				table.Make(page).Store(want[page])
			case 2: // into a frame, or out of it to another place
				bring(page)
				s := table.Make(page)
				switch w := want[page]; w.State() {
				case OnMedium:
					if resident == 6 {
						continue
					}
					resident++
					frames[int32(page)] = w.Place()
					want[page] = Held(int32(page), 0, false)
				case Resident:
					resident--
					want[page] = At(ftl.PPA(draw.IntN(1 << 40)))
				}
				s.Store(want[page])
			case 3:
				table.rest = 0
				table.Fold()
			case 4:
				n := LeafOf(page)
				if places := new([fan]ftl.PPA); table.Store(n, places, func(f int32) ftl.PPA { return frames[f] }) {
					stored[n] = places
				}
			case 5:
				table.Drop(func(n uint64) bool { return stored[n] != nil })
			}
		}
		away := 0
		for page := range uint64(pages) {
			if table.Away(page) {
				away++
				if w, _ := table.Peek(page); !w.Away() && w != want[page] {
					t.Fatalf("seed %d: page %d, which has changed since its leaf was stored, is %x, not %x", seed, page, w,
						want[page])
				}
			}
			bring(page)
			if w, _ := table.Peek(page); w != want[page] {
				t.Fatalf("seed %d: page %d is %x, not %x", seed, page, w, want[page])
			}
		}
		if away == 0 && seed == 0 {
			t.Error("no leaf was away")
		}
	}
}

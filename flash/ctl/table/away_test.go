package table

import (
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// TestAway compares with a map while leaves are stored, are away, change and come back. A second map has the entries
// as of the time of Store. Pages come back to places that they had before, with other checksums: the table has none of
// earlier contents.
func TestAway(t *testing.T) {
	for seed := range uint64(5) {
		const pages = 3 * fan
		table, want, stored := New(36), map[uint64]Word{}, map[uint64]*[fan]uint64{}
		sums, known, away := map[uint64]uint32{}, 0, 0
		draw := rng.NewStream(seed, "away")
		frames := map[int32]ftl.PPA{} // places of pages in frames
		resident := 0
		for page := range uint64(pages) {
			want[page], sums[page] = At(ftl.PPA(draw.IntN(1<<36-2))), uint32(page+1)
			table.Put(page, want[page].Place(), 1, func(ftl.PPA) uint32 { return sums[page] })
		}
		next := uint32(pages)
		// place returns a place of four for the page, the content of which changes.
		place := func(page uint64) ftl.PPA {
			next++
			sums[page] = next
			return ftl.PPA(page*4 + uint64(draw.IntN(4)))
		}
		check := func(page uint64) {
			t.Helper()
			at := want[page]
			if at.State() == Resident {
				at = At(frames[int32(page)])
			}
			if sum, ok := table.Sum(page, at.Place()); ok {
				known++
				if !table.Matches(sums[page], sum) {
					t.Fatalf("seed %d: page %d has checksum %x, not %x", seed, page, sum, sums[page])
				}
			}
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
				want[page] = At(place(page))
				table.Make(page).Store(want[page])
				table.Note(page, want[page].Place(), sums[page])
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
					want[page] = At(frames[int32(page)])
				}
				s.Store(want[page])
				for p := range frames { // those that are in frames change too, also with their leaves away
					if want[uint64(p)].State() == Resident && draw.IntN(4) == 0 {
						frames[p] = place(uint64(p))
						table.Note(uint64(p), frames[p], sums[uint64(p)])
					}
				}
			case 3:
				table.rest = 0
				table.Fold()
			case 4:
				n := LeafOf(page)
				if entries := new([fan]uint64); table.Store(n, entries, func(f int32) ftl.PPA { return frames[f] },
					func(ftl.PPA) uint32 { return 0 }) {
					stored[n] = entries
				}
			case 5:
				table.Drop(1<<20, func(n uint64) bool { return stored[n] != nil })
				for range table.AwayLeaves(0, pages-1) {
					away++
				}
			}
			check(uint64(draw.IntN(pages)))
		}
		for page := range uint64(pages) {
			if table.Away(page) {
				if w, _ := table.Peek(page); !w.Away() && w != want[page] {
					t.Fatalf("seed %d: page %d, which has changed since its leaf was stored, is %x, not %x", seed, page, w,
						want[page])
				}
			}
			bring(page)
			if w, _ := table.Peek(page); w != want[page] {
				t.Fatalf("seed %d: page %d is %x, not %x", seed, page, w, want[page])
			}
			check(page)
		}
		if away == 0 || known < pages {
			t.Errorf("leaves were away %d times, and %d checksums known", away, known)
		}
	}
}

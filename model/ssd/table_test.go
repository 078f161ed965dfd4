package ssd

import (
	"testing"

	"pgregory.net/rapid"

	"farflash/internal/draws"
)

// TestTablesApart writes to a map and to copies of it, each of which must hold the entries it was copied with and those
// written to it, but none of the others: few pages in a hash table and many in arrays, of 8 sectors and of 64.
func TestTablesApart(t *testing.T) {
	t.Parallel()
	var copied, inArrays int
	draws.Until(t, func() bool { return copied > 0 && inArrays > 0 }, func(t *rapid.T) {
		const pages = 3 << chunkBits
		sectors := rapid.SampledFrom([]int{8, 64}).Draw(t, "sectors")
		type entry struct {
			page    uint32
			sectors uint64
		}
		type one struct {
			table table
			holds map[uint32]entry
		}
		all := []*one{{newTable(pages, sectors), map[uint32]entry{}}}
		if rapid.Bool().Draw(t, "in arrays at once") {
			all[0].table.toArrays()
		}
		page := rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32Range(0, pages-1))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			x := rapid.SampledFrom(all).Draw(t, "of")
			l, p := page.Draw(t, "l"), rapid.Uint32Range(0, 1<<20).Draw(t, "p")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				if x.table.chunks == nil {
					x.table.toArrays()
				}
			case 1:
				y := &one{x.table.clone(), map[uint32]entry{}}
				for l, e := range x.holds {
					y.holds[l] = e
				}
				if all = append(all, y); x.table.chunks != nil {
					copied++
				}
			case 2, 3: // another place, the same sectors
				x.table.set(l, p)
				x.holds[l] = entry{p, x.holds[l].sectors}
			default:
				s := rapid.Uint64Range(0, 1<<sectors-1).Draw(t, "which")
				x.table.put(l, p, s)
				x.holds[l] = entry{p, s}
			}
		}
		for k, x := range all {
			if x.table.chunks != nil {
				inArrays++
			}
			for l := range uint32(pages) {
				want, ok := x.holds[l]
				if !ok {
					want.page = noPage
				}
				if page, s := x.table.look(l); page != want.page || s != want.sectors || x.table.get(l) != want.page {
					t.Fatalf("map %d of %d has page %d on %d (%d), sectors %#x; it should be on %d, %#x", k, len(all),
						l, page, x.table.get(l), s, want.page, want.sectors)
				}
			}
		}
	})
}

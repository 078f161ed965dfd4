package ctl

import (
	"farflash/flash/ctl/media"
	"farflash/policy/ftl"
)

// The checkpoint of a pool that is closed has an index, so that the next opening need not read its entries: which
// places are live, and where the pages are of leaves that are not stored. Nothing changes while it is written. It is
// made page by page, as large ones would not fit in the memory for the map.

// indexing is the part of the last checkpoint that writes the index. It uses storing's operation and buffer.
type indexing struct {
	on      bool
	most    int64    // pages that are worth writing
	bits    []uint64 // of a segment
	segment int64    // that comes next
	renamed bool     // and of it, these bits
	word    int      // from this one on
	first   int64    // of whole segments that are not in a page yet
	whole   uint32   // their number
	next    uint64   // the page that comes next
	page    uint64   // of the run that is not in a page yet
	place   ftl.PPA
	n       int // its pages
	ahead   []ftl.PPA
}

// indexWorth is the least number of pages of entries for a page of the index.
const indexWorth = 4

// beginIndex begins to write the index of the last checkpoint, if an opening will have no memory for all checksums, and
// so can do without reading them.
func (c *core) beginIndex() {
	if !c.body.header.Clean || !c.bareAll() {
		c.flushBody()
		return
	}
	pages := media.BodyPages(int64(len(c.segments)), c.shape.Pages)
	c.storing.index = indexing{on: true, most: max(pages/indexWorth, 4), bits: make([]uint64, (c.shape.Pages+63)/64)}
	x := &c.storing.index
	if x.ahead = c.indexPlaces(); len(x.ahead) == 0 {
		c.dropIndex()
		return
	}
	c.body.header.Index = uint64(x.ahead[0]) + 1
	c.writeIndex()
}

// indexPlaces takes places for the pages that are written together. They are the list's from now on.
func (c *core) indexPlaces() []ftl.PPA {
	first, n := c.takePlaces(bodyChunk)
	places := make([]ftl.PPA, n)
	for i := range places {
		places[i] = first + ftl.PPA(i)
	}
	c.storing.list = append(c.storing.list, places...)
	return places
}

// dropIndex does without an index.
func (c *core) dropIndex() {
	x := &c.storing
	c.freePlaces(x.list[x.listed:])
	x.list, x.taken, x.index.on, c.body.header.Index = x.list[:x.listed], x.taken[:0], false, 0
	c.flushBody()
}

// writeIndex writes the next pages of the index.
func (c *core) writeIndex() {
	s := &c.storing
	x := &s.index
	if c.readOnly != nil {
		c.abandonCheckpoint(c.readOnly)
		return
	}
	if len(x.ahead) == 0 {
		x.on = false
		c.flushBody()
		return
	}
	places := x.ahead
	s.taken, x.ahead = s.taken[:0], nil
	for k := range places {
		page := media.NewIndexPage(c.body.buf[k*Page:][:Page])
		full, ok := c.fillIndex(&page)
		if x.most--; !ok || x.most < 0 {
			c.dropIndex()
			return
		}
		next := uint64(0)
		switch {
		case !full:
		case k+1 < len(places):
			next = uint64(places[k+1]) + 1
		default:
			if x.ahead = c.indexPlaces(); len(x.ahead) == 0 {
				c.dropIndex()
				return
			}
			next = uint64(x.ahead[0]) + 1
		}
		page.Seal(c.shape.UUID, c.body.header.Generation, next)
		if s.taken = append(s.taken, places[k]); !full {
			rest := len(places) - k - 1
			c.freePlaces(places[k+1:])
			s.list = s.list[:len(s.list)-rest]
			break
		}
	}
	c.writePlaces()
}

// fillIndex adds what comes next to a page, and reports whether it is full and more is to come. It is not ok if the
// index cannot have all.
func (c *core) fillIndex(p *media.IndexPage) (full, ok bool) {
	if !c.indexSegments(p) {
		return true, true
	}
	return c.indexRuns(p)
}

// indexSegments adds the bits of segments, until the page is full.
func (c *core) indexSegments(p *media.IndexPage) bool {
	x := &c.storing.index
	for ; x.segment < int64(len(c.segments)); x.segment++ {
		if !x.renamed {
			n := c.ledger.Bits(x.segment, false, x.bits)
			switch {
			case n == c.shape.Pages && x.whole > 0 && x.first+int64(x.whole) == x.segment:
				x.whole++
			case !x.addWhole(p):
				return false
			case n == c.shape.Pages:
				x.first, x.whole = x.segment, 1
			case n > 0 && !x.addBits(p, media.IndexLive):
				return false
			}
			x.renamed = true
		}
		if c.ledger.Bits(x.segment, true, x.bits) > 0 && !x.addBits(p, media.IndexRenamed) {
			return false
		}
		x.renamed = false
	}
	return x.addWhole(p)
}

func (x *indexing) addWhole(p *media.IndexPage) bool {
	if x.whole > 0 && !p.Whole(x.first, x.whole) {
		return false
	}
	x.whole = 0
	return true
}

func (x *indexing) addBits(p *media.IndexPage, kind media.IndexKind) bool {
	for x.word < len(x.bits) {
		n := p.Bits(kind, x.segment, x.word, x.bits[x.word:])
		if n == 0 {
			return false
		}
		x.word += n
	}
	x.word = 0
	return true
}

// indexRuns adds the pages that are not in stored leaves, as fillIndex.
func (c *core) indexRuns(p *media.IndexPage) (full, ok bool) {
	x := &c.storing.index
	stored := func(leaf uint64) bool {
		_, _, ok := c.homes.get(leaf)
		return ok && c.listsLeaf(leaf)
	}
	ok = c.table.Runs(x.next, c.placeIn, stored, func(page uint64, place ftl.PPA, n int) bool {
		switch {
		case x.n > 0 && page == x.page+uint64(x.n) && place == x.place+ftl.PPA(x.n):
			x.n += n
		case x.n > 0 && !p.Run(x.page, uint64(x.place), uint32(x.n)):
			full = true
			return false
		default:
			x.page, x.place, x.n = page, place, n
		}
		x.next = page + uint64(n)
		return true
	})
	if full || !ok {
		return full, ok
	}
	if x.n > 0 && !p.Run(x.page, uint64(x.place), uint32(x.n)) {
		return true, true
	}
	x.n = 0
	return false, true
}

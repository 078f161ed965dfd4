package ftl

// Given blocks are filled and emptied by the driver as a whole, as for a zoned namespace. Give hands one out, Fill
// takes its next page (Skip gives up pages), and Return hands it back to be erased once it holds no valid page. The
// translation layer never moves their pages and never considers them as victims. Under Config.Counts it does not know
// the pages of a given block at all: the driver neither calls Fill, nor has NextValid return any.

// Give hands a free block of a pool to the driver. It reports false while the pool has no block for the host, as
// Allocate does.
func (f *FTL) Give(pool int) (Block, bool) {
	p := f.touch(pool)
	if !f.hostMayOpen(p) {
		p.wake = true
		return 0, false
	}
	b := f.takeFree(p)
	m := &p.blocks[b]
	if f.valids == nil {
		f.clearRange(p, b, 0, f.pages)
	}
	m.state, m.stream, m.valid, m.pending = given, 0, 0, 0
	p.wake = true
	f.guard(p)
	f.changed(pool, p)
	return Block(int64(pool)*int64(f.blocks) + int64(b)), true
}

// Fill takes the next page of a given block for the host; it is valid from now on. It needs no call to Programmed.
func (f *FTL) Fill(b Block) PPA {
	if f.valids != nil {
		broken("Fill under Config.Counts")
	}
	p, i := f.givenBlock(b)
	m := &p.blocks[i]
	if m.pending == f.pages {
		broken("given block %d has no page left", b)
	}
	page := m.pending
	m.pending++
	m.valid++
	*f.ownWord(p, i, page>>6) |= 1 << (page & 63)
	p.counts.filled++
	f.changed(f.poolOf(b), p)
	return f.PPA(b, int(page))
}

// Left returns the number of pages of a given block that have been neither taken nor skipped.
func (f *FTL) Left(b Block) int {
	p, i := f.givenBlock(b)
	return int(f.pages - p.blocks[i].pending)
}

// Return hands back a given block whose pages are all invalid and have no program pending. Next then asks for its
// erase.
func (f *FTL) Return(b Block) {
	p, i := f.givenBlock(b)
	m := &p.blocks[i]
	p.counts.abandoned += int64(f.pages - m.pending)
	if m.valid != 0 {
		broken("given block %d was returned with %d valid pages", b, m.valid)
	}
	m.state = victim
	m.next, m.prev, m.pending = 0, int32(Returned), 0
	p.victims = append(p.victims, slot{block: i})
	p.wake = true
	f.guard(p)
	f.changed(f.poolOf(b), p)
}

func (f *FTL) givenBlock(b Block) (*pool, int32) {
	pool, i := f.poolOf(b), int32(int(b)%int(f.blocks))
	p := f.touch(pool)
	if int(i) >= len(p.blocks) || p.blocks[i].state != given {
		broken("block %d was not given to the driver", b)
	}
	return p, i
}

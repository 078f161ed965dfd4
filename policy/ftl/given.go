package ftl

// Blocks that the driver fills and empties as a whole, as a zoned namespace's are: Give hands one out, Fill takes its
// next page (Skip gives up some), and Return gives it back when nothing in it is valid any more, to be erased. The
// translation layer never moves what is in them, and never looks at them for a victim.

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
	f.clearRange(p, b, 0, f.pages)
	m.state, m.stream, m.valid, m.pending = given, 0, 0, 0
	p.wake = true
	f.guard(p)
	f.changed(pool, p)
	return Block(int64(pool)*int64(f.blocks) + int64(b)), true
}

// Fill takes the next page of a given block for the host; it is valid from now on. Programmed need not be called for
// it.
func (f *FTL) Fill(b Block) PPA {
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

// Left is how many pages of a given block were not taken.
func (f *FTL) Left(b Block) int {
	p, i := f.givenBlock(b)
	return int(f.pages - p.blocks[i].pending)
}

// Return gives back a given block whose pages are all invalid and programmed, or will not be. Next asks for its erase.
func (f *FTL) Return(b Block) {
	p, i := f.givenBlock(b)
	m := &p.blocks[i]
	p.counts.abandoned += int64(f.pages - m.pending)
	if m.valid != 0 {
		broken("given block %d is returned with %d valid pages", b, m.valid)
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
		broken("block %d is not the driver's", b)
	}
	return p, i
}

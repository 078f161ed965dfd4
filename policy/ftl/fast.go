package ftl

import (
	"slices"

	"farflash/numeric/units"
)

// Fast is a cache of flash that is written with one bit a cell: the host's data go to fast blocks, which hold a part
// of what others do, and are folded, moved to blocks that hold all, when the driver says that there is time for it or
// space is short. Which blocks are fast changes with each erase. Of a fast block the first Pages pages are used, as
// if the others had been given up when it was opened; so whatever collects blocks collects fast ones as well, most of
// all those by valid pages, and a fast block is always worth collecting.
type Fast struct {
	Streams int // host streams 0 to Streams-1 write to fast blocks; 0: there are none
	Pages   int // pages of a fast block, fewer than PagesPerBlock
	Most    int // fast blocks of a pool; a block is opened fast only while more than GCStart are free
	Least   int // free blocks beyond GCStart that collection keeps for them, less those that are in use
	// while there are Most and more than GCStart blocks are free the host waits for one that is folded; else it goes
	// on in ordinary blocks
	Wait bool
}

// validateFast checks the cache.
func (c Config) validateFast(bad *units.Faults) {
	x := c.Fast
	bad.Hold(x.Streams >= 0 && x.Streams <= c.Streams, "fast.streams",
		"%d are not possible; there are %d of the host", x.Streams, c.Streams)
	if x.Streams <= 0 {
		return
	}
	bad.Hold(x.Pages >= 1 && x.Pages < c.PagesPerBlock, "fast.pages",
		"%d are not possible; use 1 to %d, fewer than a block has", x.Pages, c.PagesPerBlock-1)
	bad.Hold(x.Most >= 1 && x.Most <= c.BlocksPerPool, "fast.most", "%d blocks are not possible; use 1 to %d", x.Most,
		c.BlocksPerPool)
	bad.Hold(x.Least >= 0 && x.Least <= x.Most, "fast.least", "%d blocks are not possible; use 0 to the most, %d",
		x.Least, x.Most)
	bad.Hold(c.Quirks == (Quirks{}), "fast", "there is none with quirks")
	for from, to := range c.survivors() {
		bad.Hold(to >= x.Streams, "survivors",
			"those of stream %d join stream %d, whose blocks are fast; use another", from, to)
	}
}

// fastBlocks are those of a pool.
type fastBlocks struct {
	opened  []int32 // those that are not erased, in the order in which they were opened
	fold    bool    // there is time to fold
	pressed bool    // the host waits for one
	unused  int64   // pages that fast blocks do not use
}

func (x *fastBlocks) clone() *fastBlocks {
	c := *x
	c.opened = slices.Clone(x.opened)
	return &c
}

// UseFast says whether the host's blocks are opened fast from now on, as they are at first. Those that are open stay
// what they are.
func (f *FTL) UseFast(on bool) { f.slow = !on }

// Fold says whether there is time to fold a pool's fast blocks: Next then begins with one, the one that was opened
// first, whenever it has nothing more urgent to begin with. Of a translation layer without fast blocks it changes
// nothing.
func (f *FTL) Fold(pool int, on bool) {
	if x := f.pools[pool].fast; x == nil || x.fold == on {
		return
	}
	p := f.touch(pool)
	p.fast.fold = on
	p.wake = p.wake || on
	f.changed(pool, p)
}

// IsFast reports whether a page lies in a fast block.
func (f *FTL) IsFast(ppa PPA) bool {
	pool, b, _ := f.split(ppa)
	p := f.pools[pool]
	return int(b) < len(p.blocks) && p.blocks[b].fast
}

// FastBlocks returns how many blocks of a pool are fast.
func (f *FTL) FastBlocks(pool int) int {
	if x := f.pools[pool].fast; x != nil {
		return len(x.opened)
	}
	return 0
}

// size is how many pages of a block are used.
func (f *FTL) size(m *block) int32 {
	if m.fast {
		return int32(f.cfg.Fast.Pages)
	}
	return f.pages
}

// mayFast reports whether a frontier's blocks are fast while there may be more such.
func (f *FTL) mayFast(p *pool, to int) bool {
	return to < f.cfg.Fast.Streams && !f.slow && int(p.free) > f.cfg.GCStart
}

// opensFast reports whether a frontier's next block is a fast one.
func (f *FTL) opensFast(p *pool, to int) bool {
	return f.mayFast(p, to) && len(p.fast.opened) < f.cfg.Fast.Most
}

// waitsForFast reports whether the host waits until a fast block has been emptied, although it could have another. It
// does not where none can be yet: all are being written, by programs that may be waiting themselves, or fail.
func (f *FTL) waitsForFast(p *pool, to int) bool {
	if !f.cfg.Fast.Wait || !f.mayFast(p, to) || len(p.fast.opened) < f.cfg.Fast.Most {
		return false
	}
	return slices.ContainsFunc(p.fast.opened, func(b int32) bool {
		s := p.blocks[b].state
		return s != open && s != failing && !slices.Contains(p.failing, b)
	})
}

// makeFast takes the pages that a fast block does not use away from a block that is being opened.
func (f *FTL) makeFast(p *pool, b int32) {
	m := &p.blocks[b]
	m.fast = true
	p.fast.opened = append(p.fast.opened, b)
	p.fast.unused += int64(f.pages - f.size(m))
	f.clearRange(p, b, f.size(m), f.pages)
}

// forgetFast makes a block that holds nothing an ordinary one.
func (p *pool) forgetFast(b int32) {
	p.blocks[b].fast = false
	p.fast.opened = slices.DeleteFunc(p.fast.opened, func(x int32) bool { return x == b })
	p.fast.pressed = false
}

// fastReserve is how many free blocks are kept for fast ones.
func (f *FTL) fastReserve(p *pool) int {
	switch {
	case p.fast == nil:
		return 0
	case f.slow:
		return f.cfg.Fast.Least
	}
	return max(0, f.cfg.Fast.Least-len(p.fast.opened))
}

// startFold begins the fast block that was opened first, if there is time or need, it is a candidate and there is
// room for its pages.
func (f *FTL) startFold(p *pool) bool {
	if !p.fast.fold && !p.fast.pressed {
		return false
	}
	for _, b := range p.fast.opened {
		if m := &p.blocks[b]; m.state == closed || m.state == ranked {
			return f.begin(p, b, Folding)
		}
	}
	return false
}

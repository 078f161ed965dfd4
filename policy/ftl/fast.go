package ftl

import (
	"slices"

	"farflash/numeric/units"
)

// Fast configures an SLC cache: flash written with one bit a cell. The host's data go to fast blocks, which hold only a
// part of a normal block's data, and are later folded, that is, moved to normal blocks, when the driver signals that
// there is time or space is short. Which blocks are fast changes with each erase. Only the first Pages pages of a fast
// block are used, as if the others had been skipped when it was opened. Every victim policy therefore collects fast
// blocks too, those that go by valid pages prefer them, and a fast block is always worth collecting.
type Fast struct {
	Streams int // host streams 0 to Streams-1 write to fast blocks; 0: no cache
	Pages   int // pages of a fast block, fewer than PagesPerBlock
	Most    int // most fast blocks of a pool; a block is opened fast only while more than GCStart are free
	Least   int // free blocks beyond GCStart that collection keeps for fast blocks, less those in use
	// Wait makes the host wait for a fold while Most blocks are fast and more than GCStart blocks are free; otherwise
	// it continues in normal blocks.
	Wait bool
}

// validateFast checks the configuration of the cache.
func (c Config) validateFast(bad *units.Faults) {
	x := c.Fast
	bad.Hold(x.Streams >= 0 && x.Streams <= c.Streams, "fast.streams",
		"%d streams are not possible; the host has %d", x.Streams, c.Streams)
	if x.Streams <= 0 {
		return
	}
	bad.Hold(x.Pages >= 1 && x.Pages < c.PagesPerBlock, "fast.pages",
		"%d pages are not possible; use 1 to %d, fewer than a block has", x.Pages, c.PagesPerBlock-1)
	bad.Hold(x.Most >= 1 && x.Most <= c.BlocksPerPool, "fast.most", "%d blocks are not possible; use 1 to %d", x.Most,
		c.BlocksPerPool)
	bad.Hold(x.Least >= 0 && x.Least <= x.Most, "fast.least", "%d blocks are not possible; use 0 to fast.most, %d",
		x.Least, x.Most)
	bad.Hold(c.Quirks == (Quirks{}), "fast", "fast blocks are not possible with quirks")
	for from, to := range c.survivors() {
		bad.Hold(to >= x.Streams, "survivors",
			"survivors of stream %d join stream %d, whose blocks are fast; use another stream", from, to)
	}
}

// fastBlocks is the state of a pool's fast blocks.
type fastBlocks struct {
	opened  []int32 // fast blocks that have not been erased, oldest first
	fold    bool    // the driver has time to fold
	pressed bool    // the host is waiting for a fast block
	unused  int64   // pages that fast blocks leave unused
}

func (x *fastBlocks) clone() *fastBlocks {
	c := *x
	c.opened = slices.Clone(x.opened)
	return &c
}

// UseFast sets whether the host's blocks are opened fast from now on; they are by default. Blocks that are already open
// do not change.
func (f *FTL) UseFast(on bool) { f.slow = !on }

// Fold sets whether there is time to fold a pool's fast blocks. While there is, Next starts the fast block opened first
// whenever it has no more urgent victim. Fold has no effect without fast blocks.
func (f *FTL) Fold(pool int, on bool) {
	if x := f.at(pool).fast; x == nil || x.fold == on {
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
	p := f.at(pool)
	return int(b) < len(p.blocks) && p.blocks[b].fast
}

// FastBlocks returns how many blocks of a pool are fast.
func (f *FTL) FastBlocks(pool int) int {
	if x := f.at(pool).fast; x != nil {
		return len(x.opened)
	}
	return 0
}

// size returns the number of usable pages of a block.
func (f *FTL) size(m *block) int32 {
	if m.fast {
		return int32(f.cfg.Fast.Pages)
	}
	return f.pages
}

// mayFast reports whether a frontier opens fast blocks, the limit Most aside.
func (f *FTL) mayFast(p *pool, to int) bool {
	return to < f.cfg.Fast.Streams && !f.slow && int(p.free) > f.cfg.GCStart
}

// opensFast reports whether a frontier's next block will be fast.
func (f *FTL) opensFast(p *pool, to int) bool {
	return f.mayFast(p, to) && len(p.fast.opened) < f.cfg.Fast.Most
}

// waitsForFast reports whether the host waits for a fast block to be emptied although a normal block is available. It
// does not wait if no fast block can be folded yet, because all are open (possibly with programs that themselves wait)
// or failing.
func (f *FTL) waitsForFast(p *pool, to int) bool {
	if !f.cfg.Fast.Wait || !f.mayFast(p, to) || len(p.fast.opened) < f.cfg.Fast.Most {
		return false
	}
	return slices.ContainsFunc(p.fast.opened, func(b int32) bool {
		s := p.blocks[b].state
		return s != open && s != failing && !slices.Contains(p.failing, b)
	})
}

// makeFast marks a block that is being opened as fast, and clears the validity bits of the pages it will not use.
func (f *FTL) makeFast(p *pool, b int32) {
	m := &p.blocks[b]
	m.fast = true
	p.fast.opened = append(p.fast.opened, b)
	p.fast.unused += int64(f.pages - f.size(m))
	f.clearRange(p, b, f.size(m), f.pages)
}

// forgetFast makes an empty fast block a normal one again.
func (p *pool) forgetFast(b int32) {
	p.blocks[b].fast = false
	p.fast.opened = slices.DeleteFunc(p.fast.opened, func(x int32) bool { return x == b })
	p.fast.pressed = false
}

// fastReserve returns the number of free blocks that collection keeps for fast blocks.
func (f *FTL) fastReserve(p *pool) int {
	switch {
	case p.fast == nil:
		return 0
	case f.slow:
		return f.cfg.Fast.Least
	}
	return max(0, f.cfg.Fast.Least-len(p.fast.opened))
}

// startFold starts the candidate among the fast blocks that was opened first, if there is time or need to fold and
// space for its pages.
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

package ftl

import (
	"fmt"
	"math/bits"
	"slices"
)

// Use is the role of a restored block.
type Use uint8

// The uses.
const (
	Erased   Use = iota // free
	Open                // a stream's frontier: pages from Written on are erased
	Full                // no longer written; a candidate for collection
	BadBlock            // retired
	Given               // filled and emptied by the driver
)

// Restored describes one block to RestoreBlock.
type Restored struct {
	Use     Use
	Stream  int      // Open, Full: the stream that wrote it
	Erases  int      // erase count
	Written int      // Open: pages written, fewer than a block has; Given: pages taken
	Worn    bool     // Open: it receives data moved to Stream by wear levelling; needs Config.StaticWear
	Failing bool     // Full: it must be emptied and retired; its unwritten pages are not valid
	Fast    bool     // Open, Full: it has one bit a cell and Config.Fast.Pages pages
	Valid   []uint64 // Open, Full, Given: bit i%64 of word i/64 is set if page i is valid; nil: none
	Touched Tick     // when one of its pages was last invalidated, or the last one was written
	Age     int      // Full: erases of the pool since it was filled; used by CostAge only
}

// RestoreBlock puts a block into the state that a scan of the flash found it in, or that preconditioning computed. It
// must be called before the pool's first use of any other kind, at most once a block; blocks that are not restored are
// erased and have never been used. The order of calls matters: full blocks become candidates in that order, so pass
// them in the order in which they were filled (cost-benefit goes by Touched), and erased blocks with equal erase counts
// are used in that order. Each stream has at most one open block a pool. The bitmap is copied.
func (f *FTL) RestoreBlock(b Block, r Restored) error {
	pool, i := int(b)/int(f.blocks), int32(int(b)%int(f.blocks))
	if b < 0 || pool >= len(f.pools) {
		return fmt.Errorf("ftl: restoring block %d: there are %d", b, len(f.pools)*int(f.blocks))
	}
	if err := f.checkRestored(r); err != nil {
		return fmt.Errorf("ftl: restoring block %d: %w", b, err)
	}
	p := f.at(pool)
	switch {
	case p == f.blank:
		p = f.newPool()
		p.restoring = f.owner
		p.wake = true
		f.pools[pool] = p
	case p.restoring == nil || p.restoring != f.owner:
		return fmt.Errorf("ftl: restoring block %d: its pool is already in use", b)
	}
	f.materialise(p, i)
	m := &p.blocks[i]
	if m.state != unknown {
		return fmt.Errorf("ftl: restoring block %d: already restored", b)
	}
	at := r.Stream
	if r.Worn {
		at += len(f.survivors)
	}
	if r.Use == Open && p.frontiers[at].left > 0 {
		return fmt.Errorf("ftl: restoring block %d: stream %d already has an open block in its pool", b, r.Stream)
	}
	m.erases, m.stream, m.stamp = uint32(r.Erases), uint8(r.Stream), r.Touched
	p.mostErases = max(p.mostErases, m.erases)
	switch r.Use {
	case Erased:
		m.stamp = 0
		f.addFree(p, i)
		return nil
	case BadBlock:
		f.retire(p, m)
		p.free--
		return nil
	}
	p.free--
	// A pool being restored shares no bitmaps, so this is the block's own.
	var all []uint64
	if f.valids == nil {
		all = f.bitmap(p, i)
		copy(all, r.Valid)
	}
	for _, w := range r.Valid {
		m.valid += int32(bits.OnesCount64(w))
	}
	if r.Fast {
		m.fast = true
		p.fast.opened = append(p.fast.opened, i)
	}
	if r.Use == Full {
		p.counts.restored += int64(f.pages)
		if r.Failing {
			p.failing = append(p.failing, i)
		}
		f.close(p, i)
		if f.peers != nil {
			f.noteTaken(pool, i)
		}
		if f.cfg.Victim == CostAge {
			m.pending = -int32(min(r.Age, 1<<31-1))
		}
		return nil
	}
	if r.Use == Given {
		p.counts.restored += int64(r.Written)
		m.state, m.pending = given, int32(r.Written)
		return nil
	}
	p.counts.restored += int64(r.Written) + int64(f.pages-f.size(m))
	m.state = open
	// As in openBlock, pages not handed out yet count as valid.
	for page := r.Written; page < int(f.size(m)) && all != nil; page++ {
		all[page>>6] |= 1 << (page & 63)
	}
	left := f.size(m) - int32(r.Written)
	m.valid += left
	m.pending = left
	p.frontiers[at] = frontier{next: f.PPA(b, r.Written), left: left, block: i}
	return nil
}

// Expect preallocates a pool's first blocks, which RestoreBlock is about to be called for, and some beyond.
func (f *FTL) Expect(pool, blocks int) {
	p := f.at(pool)
	if p == f.blank {
		p = f.newPool()
		p.restoring = f.owner
		p.wake = true
		f.pools[pool] = p
	}
	if p.restoring != f.owner || blocks <= cap(p.blocks) {
		return
	}
	blocks = min(int(f.blocks), blocks+blocks/8+1) // plus the blocks that will be opened first
	p.blocks = append(make([]block, 0, blocks), p.blocks...)
	p.bits = append(make([]uint64, 0, blocks*int(f.words)), p.bits...)
}

func (f *FTL) checkRestored(r Restored) error {
	written, pages := 0, int(f.pages)
	if r.Fast {
		if r.Use != Open && r.Use != Full || r.Stream >= f.cfg.Fast.Streams {
			return fmt.Errorf("a fast block must be open or full and have a stream below %[2]d, not %[1]d",
				r.Stream, f.cfg.Fast.Streams)
		}
		pages = f.cfg.Fast.Pages
	}
	switch r.Use {
	case Erased, BadBlock:
	case Open:
		if r.Written < 0 || r.Written >= pages {
			return fmt.Errorf("open with %d written pages; a block has %d", r.Written, pages)
		}
		written = r.Written
	case Full:
		written = pages
	case Given:
		if written = r.Written; written < 0 || written > pages {
			return fmt.Errorf("given with %d written pages; a block has %d", written, pages)
		}
	default:
		return fmt.Errorf("unknown use %d", r.Use)
	}
	if r.Stream < 0 || r.Stream >= len(f.survivors) {
		return fmt.Errorf("unknown stream %d; there are %d", r.Stream, len(f.survivors))
	}
	if r.Worn && (f.cfg.StaticWear == 0 || r.Use != Open) {
		return fmt.Errorf("a wear-levelling frontier must be open, and wear levelling enabled")
	}
	if r.Failing && r.Use != Full {
		return fmt.Errorf("a failing block must be full")
	}
	if r.Age < 0 {
		return fmt.Errorf("age %d is negative", r.Age)
	}
	if r.Erases < 0 || r.Erases > maxErases {
		return fmt.Errorf("%d erases are not possible", r.Erases)
	}
	if len(r.Valid) > int(f.pages+63)/64 {
		return fmt.Errorf("the bitmap has %d words, but a block has %d pages", len(r.Valid), f.pages)
	}
	for i, w := range r.Valid {
		// No page at or beyond written can be valid.
		if beyond := w >> max(0, min(63, written-64*i)); w != 0 &&
			(written <= 64*i || written < 64*(i+1) && beyond != 0) {
			return fmt.Errorf("a valid page lies beyond the %d written ones", written)
		}
	}
	return nil
}

// finishRestoring makes a restored pool f's own. Blocks that were not restored are free.
func (f *FTL) finishRestoring(p *pool) {
	for i := range p.blocks {
		if p.blocks[i].state == unknown {
			f.addFree(p, int32(i))
		}
	}
	if f.order == byValid {
		// Candidates rank in the order of restoring, whenever the first collection takes place. Policies that compare
		// ages go by Touched instead.
		window := f.oldest(p)
		if f.cfg.Victim == CostBenefit {
			window = p.byEvent(window)
		}
		p.rank(f, window)
	}
	p.restoring, p.owner = nil, f.owner
	f.guard(p)
}

// Blocks visits the blocks of a pool that were ever used, in an order in which RestoreBlock rebuilds the pool, until
// visit returns false. Blocks being collected are reported as full, blocks with programs in flight as if those had
// completed. visit must not change or retain r.Valid.
func (f *FTL) Blocks(pool int, visit func(b Block, r Restored) bool) {
	p := f.at(pool)
	each := func(i int32) bool {
		m := &p.blocks[i]
		r := Restored{Stream: int(m.stream), Erases: int(m.erases), Touched: m.stamp}
		switch m.state {
		case free, unknown:
			r.Stream = 0
		case retired:
			r.Use = BadBlock
			r.Stream = 0
		default:
			r.Use, r.Valid, r.Failing, r.Fast = Full, f.bitmap(p, i), slices.Contains(p.failing, i), m.fast
			if m.state == closed && f.cfg.Victim == CostAge {
				r.Age = int(p.erases - uint32(m.pending))
			}
			if m.state == given {
				r.Use, r.Written, r.Failing = Given, int(m.pending), false
			} else if at := f.frontierOf(p, i); at >= 0 {
				r.Use, r.Written = Open, int(f.size(m)-p.frontiers[at].left)
				r.Worn = at >= len(f.survivors)
				valid := make([]uint64, len(r.Valid))
				for page := range r.Written {
					valid[page>>6] |= r.Valid[page>>6] & (1 << (page & 63))
				}
				r.Valid = valid
			}
		}
		return visit(Block(int64(pool)*int64(f.blocks)+int64(i)), r)
	}
	f.inOrder(p, each)
}

// frontierOf returns the frontier that hands out pages of block i, or -1.
func (f *FTL) frontierOf(p *pool, i int32) int {
	for at := int(p.blocks[i].stream); at < len(p.frontiers); at += len(f.survivors) {
		if w := p.frontiers[at]; w.left > 0 && w.block == i {
			return at
		}
	}
	return -1
}

// inOrder visits candidates in the order of their structures, then free blocks in the order of use, then the rest.
func (f *FTL) inOrder(p *pool, each func(i int32) bool) {
	for _, i := range p.array {
		if !each(i) {
			return
		}
	}
	seen := 0
	if f.order == byValid && p.buckets == nil {
		window := p.byEvent(f.oldest(p))
		for _, i := range window {
			if !each(i) {
				return
			}
		}
		seen = len(window)
	}
	for _, l := range append(p.buckets[:len(p.buckets):len(p.buckets)], p.young) {
		for i := l.head; i != none; i = p.blocks[i].next {
			if seen > 0 { // the window's blocks, already visited
				seen--
			} else if !each(i) {
				return
			}
		}
	}
	heap := pool{heap: append([]freeBlock(nil), p.heap...)}
	for len(heap.heap) > 0 {
		if !each(heap.pop(0)) {
			return
		}
	}
	for i := range p.blocks {
		switch p.blocks[i].state {
		case free, closed, ranked:
			continue
		}
		if !each(int32(i)) {
			return
		}
	}
}

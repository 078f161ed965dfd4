package ftl

import (
	"fmt"
	"slices"
)

// Valid returns the number of valid pages that the pool has handed out. While moves are in flight, a page being moved
// counts at both its source and its destination.
func (f *FTL) Valid(pool int) int64 {
	p := f.at(pool)
	n := int64(0)
	for i := range p.blocks {
		n += int64(p.blocks[i].valid)
	}
	for _, w := range p.frontiers {
		n -= int64(w.left)
	}
	return n
}

// ValidPages returns the number of pages of the drive that hold data: Valid summed over all pools, less the moves in
// flight. With no host write in flight it equals the number of mapped pages.
func (f *FTL) ValidPages() int64 {
	n := int64(0)
	for i, p := range f.pools {
		if p != f.blank {
			n += f.Valid(i) - p.counts.relocating
		}
	}
	return n
}

// Exhausted reports whether a pool has no block for the host and collection cannot gain one: every candidate is wholly
// valid, or there is no space to move its pages to. Only Invalidate, or the completion of programs in flight, can
// change that.
func (f *FTL) Exhausted(pool int) bool {
	p := f.at(pool)
	if int(p.free) > f.cfg.HostReserve || len(p.victims) > 0 {
		return false
	}
	return p.validSum == int64(p.candidates)*int64(f.pages) || p.free == 0 && f.affordable(p) == none
}

// Check verifies every invariant and returns the first violation: each block is in exactly one structure, the one for
// its state; valid counts agree with the bitmaps; valid pages at rest agree with the map and its inverse; and programs
// are conserved. It takes time proportional to the pages used.
func (f *FTL) Check() error { return f.check(true, false) }

// CheckBlocks is Check without the map, for a driver that walks its map itself, in an order of its choice, and calls
// IsValid.
func (f *FTL) CheckBlocks() error { return f.check(false, false) }

// CheckTouched is CheckBlocks restricted to pools that are not Untouched, for a driver that has already checked the
// drive it cloned.
func (f *FTL) CheckTouched() error { return f.check(false, true) }

// Untouched reports whether a pool is unchanged since it was restored or cloned.
func (f *FTL) Untouched(pool int) bool { return f.at(pool).owner != f.owner }

// ValidBelow returns the number of valid pages among the first pages of a block that has been used.
func (f *FTL) ValidBelow(b Block, pages int) int {
	pool, i := f.poolOf(b), int32(int(b)%int(f.blocks))
	p := f.at(pool)
	if int(i) >= len(p.blocks) {
		return 0
	}
	return f.countValid(p, i, int32(min(max(0, pages), int(f.pages))))
}

// IsValid reports whether a page that was handed out holds data.
func (f *FTL) IsValid(ppa PPA) bool {
	pool, b, page := f.split(ppa)
	return f.Holds(pool, int(b), int(page))
}

// Holds is IsValid by pool, block and page.
func (f *FTL) Holds(pool, block, page int) bool {
	p := f.at(pool)
	return uint(block) < uint(len(p.blocks)) && uint(page) < uint(f.pages) && f.has(p, int32(block), int32(page))
}

// EachHeld visits the valid pages that a pool has handed out, in order, as 64-bit words of the blocks' bitmaps. Words
// without a valid page are skipped.
func (f *FTL) EachHeld(pool int, visit func(block, page int, held uint64)) {
	p := f.at(pool)
	for i := range p.blocks {
		m, b := &p.blocks[i], int32(i)
		if m.valid == 0 {
			continue
		}
		handed := f.size(m)
		if at := f.frontierOf(p, b); at >= 0 {
			// openBlock sets all bits of a block before its pages are handed out
			handed -= p.frontiers[at].left
		}
		for page := int32(0); page < handed; page += 64 {
			held := f.held(p, b, page>>6)
			if rest := handed - page; rest < 64 {
				held &= 1<<rest - 1
			}
			if held != 0 {
				visit(i, int(page), held)
			}
		}
	}
}

// held returns word w of a block's validity, wherever that is known.
func (f *FTL) held(p *pool, b, w int32) (word uint64) {
	if f.valids == nil {
		return f.word(p, b, w)
	}
	for page := f.nextValid(p, b, w<<6); page < min((w+1)<<6, f.pages); page = f.nextValid(p, b, page+1) {
		word |= 1 << (page & 63)
	}
	return word
}

func (f *FTL) check(withMap, touched bool) error {
	for i, p := range f.pools {
		if p == f.blank || touched && f.Untouched(i) {
			continue
		}
		handed, err := f.checkPool(i, p, withMap)
		if err == nil {
			err = f.checkPrograms(p, handed)
		}
		if err != nil {
			return fmt.Errorf("ftl: pool %d: %w", i, err)
		}
	}
	return nil
}

// checkPrograms compares the pages handed out from a pool's blocks, erased ones included, with the pages that its
// counters account for.
func (f *FTL) checkPrograms(p *pool, handed int64) error {
	host := p.counts.filled
	for i := range f.cfg.Streams {
		host += p.frontiers[i].host
	}
	c := &p.counts
	in := host + c.restored + c.abandoned + c.skipped
	unused := int64(0)
	if p.fast != nil {
		unused = p.fast.unused
	}
	in += unused
	for _, n := range c.moved {
		in += n
	}
	if handed += c.erasedPages; in != handed {
		return fmt.Errorf("%d host, %v moved, %d restored, %d abandoned, %d skipped and %d unused pages, but %d "+
			"allocated", host, c.moved, c.restored, c.abandoned, c.skipped, unused, handed)
	}
	return nil
}

// checkPool checks one pool and returns the pages handed out from its blocks since each block's last erase.
func (f *FTL) checkPool(pool int, p *pool, withMap bool) (handed int64, err error) {
	places, err := f.places(p)
	if err != nil {
		return 0, err
	}
	n := f.blocks - int32(len(p.blocks)) // never used
	var sum int64
	var candidates, bad int32
	most := uint32(0)
	for i := range p.blocks {
		m := &p.blocks[i]
		b := int32(i)
		if !stands(m.state, places[i]) {
			return 0, fmt.Errorf("%v block %d is in %v", m.state, i, places[i])
		}
		most = max(most, m.erases)
		switch m.state {
		case free, unknown:
			n++
		case retired:
			bad++
		case closed, ranked:
			sum += int64(m.valid)
			candidates++
		}
		fails, may := slices.Contains(p.failing, b), m.state == open || m.state == victim || m.state == erasing ||
			m.state == failing || m.state == given
		if fails && !may || !fails && m.state == failing {
			return 0, fmt.Errorf("%v block %d: in the list of failing blocks: %v", m.state, i, fails)
		}
		if m.fast != (p.fast != nil && slices.Contains(p.fast.opened, b)) {
			return 0, fmt.Errorf("%v block %d: marked fast: %v, against the list of fast blocks", m.state, i, m.fast)
		}
		if m.state == free || m.state == unknown || m.state == retired {
			if m.valid != 0 {
				return 0, fmt.Errorf("%v block %d has %d valid pages", m.state, i, m.valid)
			}
			continue
		}
		left := int32(0)
		if at := f.frontierOf(p, b); at >= 0 {
			left = p.frontiers[at].left
		}
		if handed += int64(f.pages - left); m.state == given {
			handed -= int64(f.pages - m.pending)
		}
		if err := f.checkBlock(pool, p, b, left, withMap); err != nil {
			return 0, fmt.Errorf("block %d: %w", i, err)
		}
	}
	switch {
	case n != p.free:
		return 0, fmt.Errorf("%d blocks are free, the count is %d", n, p.free)
	case sum != p.validSum || candidates != p.candidates:
		return 0, fmt.Errorf("%d candidates have %d valid pages, the counts are %d and %d", candidates, sum,
			p.candidates, p.validSum)
	case bad != p.retired:
		return 0, fmt.Errorf("%d blocks are retired, the count is %d", bad, p.retired)
	case most != p.mostErases:
		return 0, fmt.Errorf("the largest erase count is %d, recorded as %d", most, p.mostErases)
	// Admission control: only a failure can make victims owe more than there is.
	case f.reservedFor(p, nil, GC) > p.free && !p.short:
		return 0, fmt.Errorf("victims may need %d blocks, but %d are free", f.reservedFor(p, nil, GC), p.free)
	case p.restoring == nil && p.guarded != (f.mixed && (len(p.victims) > 0 || p.free == 0)):
		return 0, fmt.Errorf("guarded is %v, with %d victims and %d free blocks", p.guarded, len(p.victims), p.free)
	}
	return handed, nil
}

// place is a structure that blocks can be linked into.
type place uint8

const (
	nowhere place = iota
	inHeap
	inFrontier
	inYoung
	inBucket
	inArray
	inVictims
)

var placeNames = [...]string{"no structure", "the free heap", "a frontier", "the list by age", "a bucket",
	"the array", "the victims"}

func (p place) String() string { return placeNames[p] }

// stands reports whether a block in state s can be in place at.
func stands(s state, at place) bool {
	switch s {
	case unknown, failing, retired, given:
		return at == nowhere
	case free:
		return at == inHeap
	case open: // nowhere: full, with programs in flight
		return at == inFrontier || at == nowhere
	case closed:
		return at == inYoung || at == inArray
	case ranked:
		return at == inBucket
	}
	return at == inVictims
}

// places returns the place of every block, or an error if a block is in two.
func (f *FTL) places(p *pool) ([]place, error) {
	at := make([]place, len(p.blocks))
	var err error
	put := func(b int32, where place) {
		switch {
		case err != nil:
		case b < 0 || int(b) >= len(at):
			err = fmt.Errorf("%v contains block %d of %d", where, b, len(at))
		case at[b] != nowhere:
			err = fmt.Errorf("block %d is in both %v and %v", b, at[b], where)
		default:
			at[b] = where
		}
	}
	for i, e := range p.heap {
		put(e.block, inHeap)
		if i > 0 && p.heap[(i-1)/2].order > e.order {
			err = fmt.Errorf("the free heap is out of order at %d", i)
		}
	}
	for s, w := range p.frontiers {
		if w.left > 0 {
			put(w.block, inFrontier)
			if err == nil && int(p.blocks[w.block].stream) != s%len(f.survivors) {
				err = fmt.Errorf("block %d of stream %d is the frontier of stream %d", w.block,
					p.blocks[w.block].stream, s)
			}
		} else if w.block != none {
			err = fmt.Errorf("the frontier of stream %d is full block %d", s, w.block)
		}
	}
	for _, s := range p.victims {
		put(s.block, inVictims)
	}
	for i, b := range p.array {
		put(b, inArray)
		if err == nil && p.blocks[b].next != int32(i) {
			err = fmt.Errorf("block %d has the wrong array index", b)
		}
	}
	walk := func(l list, where place, check func(m *block) bool) int32 {
		n, prev := int32(0), none
		for b := l.head; b != none && err == nil; b = p.blocks[b].next {
			put(b, where)
			if err == nil && (p.blocks[b].prev != prev || !check(&p.blocks[b])) {
				err = fmt.Errorf("block %d is misplaced in %v", b, where)
			}
			prev = b
			n++
		}
		if err == nil && l.tail != prev {
			err = fmt.Errorf("the tail of %v is block %d, want %d", where, l.tail, prev)
		}
		return n
	}
	inBuckets := int32(0)
	for v, l := range p.buckets {
		inBuckets += walk(l, inBucket, func(m *block) bool { return int(m.valid) == v })
		if int32(v) < p.least && l.head != none {
			err = fmt.Errorf("bucket %d is not empty, but the lowest is recorded as %d", v, p.least)
		}
	}
	walk(p.young, inYoung, func(*block) bool { return true })
	if err == nil && inBuckets != p.inBuckets {
		err = fmt.Errorf("%d blocks are in buckets, the count is %d", inBuckets, p.inBuckets)
	}
	if err == nil && p.buckets != nil && p.young.head != none && inBuckets < f.window {
		err = fmt.Errorf("the window has %d of %d blocks while others wait", inBuckets, f.window)
	}
	return at, err
}

// checkBlock compares a block's bitmap with its valid count and with the map. The last left pages have not been handed
// out. Blocks with programs or moves in flight are not compared with the map, because their bitmaps may be ahead of it.
func (f *FTL) checkBlock(pool int, p *pool, b, left int32, withMap bool) error {
	m := &p.blocks[b]
	n := m.valid
	if f.valids == nil {
		n = int32(f.countAll(p, b))
	}
	if n != m.valid {
		return fmt.Errorf("%d pages are valid, the count is %d", n, m.valid)
	}
	if m.fast && f.valids == nil && f.countValid(p, b, f.size(m)) != int(n) {
		return fmt.Errorf("a page beyond the end of a fast block is valid")
	}
	if tail := f.pages & 63; tail != 0 && f.words > 0 && f.word(p, b, f.words-1)>>tail != 0 {
		return fmt.Errorf("a page beyond the end of the block is valid")
	}
	if m.state == open && m.pending < left || m.state != open && left > 0 {
		return fmt.Errorf("%v with %d pages left and %d to be programmed", m.state, left, m.pending)
	}
	atRest := m.state == closed || m.state == ranked || m.state == open && m.pending == left || m.state == failing ||
		m.state == given || m.state == victim && m.pending == 0
	if !atRest || !withMap {
		return nil
	}
	if f.valids != nil {
		if n := int32(f.countValid(p, b, f.size(m)-left)) + left; n != m.valid {
			return fmt.Errorf("the map refers to %d pages or they are not handed out, the count is %d", n, m.valid)
		}
	}
	first := f.PPA(Block(int64(pool)*int64(f.blocks)+int64(b)), 0)
	for page := f.nextValid(p, b, 0); page < f.size(m)-left; page = f.nextValid(p, b, page+1) {
		ppa := first + PPA(page)
		lpa := f.drv.Owner(ppa)
		if at := f.drv.Lookup(lpa); at != ppa {
			return fmt.Errorf("page %d is valid, but its owner %d is mapped to %d", page, lpa, at)
		}
	}
	return nil
}

package ftl

import "slices"

// Blocks can fail early, on a program or erase error. A failing block is no longer written. Its valid pages are moved
// as collection moves them, with Reason Failure, and once empty it is retired without an erase. Until then its data
// remain readable in place.
//
// A failure takes space that was accounted for: the rest of the open block, and the block itself. Victims in progress
// may then need more than there is. Their pages go to any frontier with space left; if there is none, they wait until
// another victim's block has been erased. No data is lost, and the host gets no block until then. With a HostReserve of
// 1+n, n failures between two erases never make collection wait.

// ProgramFailed reports, in place of Programmed, that a page which Allocate returned could not be programmed. The page
// holds no data, the map must not point to it, and the driver allocates another page for the data. Its block becomes
// failing.
func (f *FTL) ProgramFailed(ppa PPA, now Tick) {
	pool, b, _ := f.split(ppa)
	p := f.touch(pool)
	p.known(b)
	p.counts.failed++
	f.condemn(p, b)
	if f.valids != nil || f.IsValid(ppa) { // else overwritten in the meantime
		f.Invalidate(ppa, now)
	}
	f.programmed(p, b)
	f.changed(pool, p)
}

// MoveFailed reports, in place of Moved, that a relocated page could not be programmed at dst. The move is not over:
// the driver calls Relocate for src again, which returns false if the page has been superseded since. The block of dst
// becomes failing.
func (f *FTL) MoveFailed(src, dst PPA, now Tick) {
	pool, b, _ := f.split(src)
	p := f.touch(pool)
	m := p.known(b)
	if m.state != victim || m.pending == 0 {
		broken("page %d is not being moved", src)
	}
	_, to, _ := f.split(dst)
	p.counts.failed++
	p.counts.relocating--
	m.next++
	f.condemn(p, to)
	f.easeShort(p)
	f.Invalidate(dst, now)
	f.programmed(p, to)
	f.changed(pool, p)
}

// Fail reports that a block must not be written any more, for any reason. The block can be in any state. Fail has no
// effect on a block that is already failing or retired.
func (f *FTL) Fail(b Block) {
	pool, i := int(b)/int(f.blocks), int32(int(b)%int(f.blocks))
	if b < 0 || pool >= len(f.pools) {
		broken("Fail of block %d of %d", b, len(f.pools)*int(f.blocks))
	}
	p := f.touch(pool)
	for n := int32(len(p.blocks)); n <= i; n++ {
		f.materialise(p, n)
		f.addFree(p, n)
	}
	f.condemn(p, i)
	f.changed(pool, p)
}

// condemn marks a block as failing; a free block is retired at once.
func (f *FTL) condemn(p *pool, b int32) {
	m := &p.blocks[b]
	if m.state == retired || slices.Contains(p.failing, b) {
		return
	}
	p.wake = true
	p.counts.failures++
	switch m.state {
	case free:
		at := slices.IndexFunc(p.heap, func(e freeBlock) bool { return e.block == b })
		p.pop(at)
		p.free--
		f.retire(p, m)
		f.easeShort(p)
		f.guard(p)
		return
	case closed, ranked:
		p.remove(f, b)
		m.state = failing
	case open:
		f.abandonRest(p, b)
	}
	p.failing = append(p.failing, b)
	f.easeShort(p)
	f.guard(p)
}

// abandonRest takes the pages of an open block that have not been handed out away from its frontier.
func (f *FTL) abandonRest(p *pool, b int32) {
	at := f.frontierOf(p, b)
	if at < 0 {
		return
	}
	w, m := &p.frontiers[at], &p.blocks[b]
	f.clearRange(p, b, f.size(m)-w.left, f.size(m))
	m.valid -= w.left
	m.pending -= w.left
	p.counts.abandoned += int64(w.left)
	w.left, w.block = 0, none
	if m.pending == 0 { // Fail of a block with no program in flight
		m.state = failing
	}
}

// mend removes a block from the failing ones, because it is being retired, and reports whether it was one of them.
func (p *pool) mend(b int32) bool {
	at := slices.Index(p.failing, b)
	if at < 0 {
		return false
	}
	p.failing = slices.Delete(p.failing, at, at+1)
	return true
}

// easeShort updates p.short: whether victims in progress may need more space than there is.
func (f *FTL) easeShort(p *pool) {
	if p.short || len(p.failing) > 0 || p.retired > 0 {
		p.short = len(p.victims) > 0 && f.reservedFor(p, nil, GC) > p.free || len(p.again) > 0
	}
}

// settleFailing retires failing blocks that are empty.
func (f *FTL) settleFailing(p *pool) {
	for k := len(p.failing) - 1; k >= 0; k-- {
		b := p.failing[k]
		m := &p.blocks[b]
		if m.state != failing && m.state != victim || m.valid > 0 || m.reads > 0 || m.state == victim && m.pending > 0 {
			continue
		}
		f.emptied(p, b)
		p.mend(b)
		f.retire(p, m)
		f.easeShort(p)
		f.guard(p)
	}
}

// startFailing starts moving the pages of a failing block if that leaves a free block for collection to continue with.
// Retiring the block frees no space.
func (f *FTL) startFailing(p *pool) bool {
	for _, b := range p.failing {
		m := &p.blocks[b]
		if m.state == failing && m.valid > 0 && f.reservedFor(p, m, Failure) < p.free && f.begin(p, b, Failure) {
			return true
		}
	}
	return false
}

// startEmpty starts a candidate without valid pages. When space is short, erasing it gains a block at no cost.
func (f *FTL) startEmpty(p *pool) bool {
	for i := range p.blocks {
		if m := &p.blocks[i]; (m.state == closed || m.state == ranked) && m.valid == 0 {
			return f.begin(p, int32(i), GC)
		}
	}
	return false
}

// inBlock returns the number of a page's block within its pool.
func (f *FTL) inBlock(ppa PPA) int32 {
	_, b, _ := f.split(ppa)
	return b
}

// hasSpace reports whether a page is available for a frontier, there or on a substitute.
func (f *FTL) hasSpace(p *pool, to int) bool {
	return p.frontiers[to].left > 0 || p.free > 0 || p.anySpace() >= 0
}

// anySpace returns a frontier with a page left, survivors' frontiers first, or -1.
func (p *pool) anySpace() int {
	for at := len(p.frontiers) - 1; at >= 0; at-- {
		if p.frontiers[at].left > 0 {
			return at
		}
	}
	return -1
}

// nextAgain offers again a page that found no destination before.
func (f *FTL) nextAgain(p *pool, pool int) (Action, bool) {
	for k := len(p.again) - 1; k >= 0; k-- {
		src := p.again[k]
		_, b, page := f.split(src)
		m := &p.blocks[b]
		if f.has(p, b, page) && !f.hasSpace(p, f.target(m, Reason(m.prev))) {
			continue
		}
		p.again = slices.Delete(p.again, k, k+1)
		if !f.has(p, b, page) {
			m.next-- // superseded in the meantime
			f.easeShort(p)
			continue
		}
		m.pending++
		return Action{src, f.drv.Owner(src), Block(int64(pool)*int64(f.blocks) + int64(b)),
			Task{int32(m.stream), Move, Reason(m.prev)}}, true
	}
	return Action{}, false
}

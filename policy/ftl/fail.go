package ftl

import "slices"

// Blocks fail before their time: a program does not take, an erase does not end. What is said here of a block that
// fails holds until it is retired: nothing more is written to it, its valid pages are moved as collection moves them,
// with Reason Failure, and when it is empty it is retired without an erase. Until then its data can be read where
// they are.
//
// A failure takes room that was counted on: the rest of the block that was being written, and the block itself.
// Victims in progress may then want more than there is. Their pages go to any frontier that has room, and if there is
// none they wait until another victim's block has been erased; nothing is lost, and the host gets no block meanwhile.
// With a HostReserve of 1+n, n failures between two erases never make collection wait.

// ProgramFailed says that a page which Allocate returned could not be programmed, in place of Programmed. The page is
// nobody's, the map must not lead there, and the driver allocates another for its data. The block fails.
func (f *FTL) ProgramFailed(ppa PPA, now Tick) {
	pool, b, _ := f.split(ppa)
	p := f.touch(pool)
	p.counts.failed++
	f.condemn(p, b)
	if f.IsValid(ppa) { // else overwritten meanwhile
		f.Invalidate(ppa, now)
	}
	f.programmed(p, b)
	f.changed(pool, p)
}

// MoveFailed says that a relocated page could not be programmed at dst, in place of Moved. The move is not over: the
// driver calls Relocate for src again, which may now report that there is nothing to do. The block of dst fails.
func (f *FTL) MoveFailed(src, dst PPA, now Tick) {
	pool, b, _ := f.split(src)
	p := f.touch(pool)
	m := &p.blocks[b]
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

// Fail says that a block must not be written any more, whatever the reason. It may be in use or free, erased or not;
// if it fails or is retired already nothing changes.
func (f *FTL) Fail(b Block) {
	pool, i := int(b)/int(f.blocks), int32(int(b)%int(f.blocks))
	if b < 0 || pool >= len(f.pools) {
		broken("block %d fails; there are %d", b, len(f.pools)*int(f.blocks))
	}
	p := f.touch(pool)
	for n := int32(len(p.blocks)); n <= i; n++ {
		f.materialise(p, n)
		f.addFree(p, n)
	}
	f.condemn(p, i)
	f.changed(pool, p)
}

// condemn makes a block one that fails.
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

// abandonRest takes the pages that an open block has not handed out away from its frontier.
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
	if m.pending == 0 { // Fail, of a block whose every handed-out page was programmed
		m.state = failing
	}
}

// mend forgets that a block fails, because it is retired, and reports whether it did.
func (p *pool) mend(b int32) bool {
	at := slices.Index(p.failing, b)
	if at < 0 {
		return false
	}
	p.failing = slices.Delete(p.failing, at, at+1)
	return true
}

// easeShort notes whether victims in progress may want more room than there is.
func (f *FTL) easeShort(p *pool) {
	if p.short || len(p.failing) > 0 || p.retired > 0 {
		p.short = len(p.victims) > 0 && f.owed(p, nil, GC) > p.free || len(p.again) > 0
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

// startFailing begins to empty a failing block if its pages leave a free block, with which collection can go on: what
// is retired gives no room back.
func (f *FTL) startFailing(p *pool) bool {
	for _, b := range p.failing {
		m := &p.blocks[b]
		if m.state == failing && m.valid > 0 && f.owed(p, m, Failure) < p.free && f.begin(p, b, Failure) {
			return true
		}
	}
	return false
}

// startEmpty begins a candidate without valid pages: where room is short, erasing it gives some and takes none.
func (f *FTL) startEmpty(p *pool) bool {
	for i := range p.blocks {
		if m := &p.blocks[i]; (m.state == closed || m.state == ranked) && m.valid == 0 {
			return f.begin(p, int32(i), GC)
		}
	}
	return false
}

// inBlock is the number of a page's block within its pool.
func (f *FTL) inBlock(ppa PPA) int32 {
	_, b, _ := f.split(ppa)
	return b
}

// hasRoom reports whether a frontier's next page can be had, there or in its stead.
func (f *FTL) hasRoom(p *pool, to int) bool {
	return p.frontiers[to].left > 0 || p.free > 0 || p.anyRoom() >= 0
}

// anyRoom is a frontier that has a page left, one of survivors rather than one of the host, or -1.
func (p *pool) anyRoom() int {
	for at := len(p.frontiers) - 1; at >= 0; at-- {
		if p.frontiers[at].left > 0 {
			return at
		}
	}
	return -1
}

// nextAgain offers a page once more that had found no room.
func (f *FTL) nextAgain(p *pool, pool int) (Action, bool) {
	for k := len(p.again) - 1; k >= 0; k-- {
		src := p.again[k]
		_, b, page := f.split(src)
		m := &p.blocks[b]
		if f.has(p, b, page) && !f.hasRoom(p, f.target(m, Reason(m.prev))) {
			continue
		}
		p.again = slices.Delete(p.again, k, k+1)
		if !f.has(p, b, page) {
			m.next-- // superseded meanwhile
			f.easeShort(p)
			continue
		}
		m.pending++
		return Action{src, f.drv.Owner(src), Block(int64(pool)*int64(f.blocks) + int64(b)),
			Task{int32(m.stream), Move, Reason(m.prev)}}, true
	}
	return Action{}, false
}

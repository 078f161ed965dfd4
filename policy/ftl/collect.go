package ftl

import (
	"math/bits"
	"slices"
)

// Next returns the next action that collection wants done in a pool. Once it has reported false, it does so until the
// driver makes another call for the pool. The driver can leave actions unpulled for as long as it likes.
func (f *FTL) Next(pool int) (Action, bool) {
	if !f.Wants(pool) {
		return Action{}, false
	}
	return f.next(pool)
}

// Wants reports whether Next may have an action for a pool.
func (f *FTL) Wants(pool int) bool { return f.at(pool).wake }

func (f *FTL) next(pool int) (Action, bool) {
	p := f.touch(pool)
	if len(p.failing)+len(p.again) > 0 {
		f.settleFailing(p)
		if a, ok := f.nextAgain(p, pool); ok {
			return a, true
		}
	}
	for i := range p.victims {
		if a, ok := f.nextOf(p, pool, &p.victims[i]); ok {
			return a, true
		}
	}
	for f.start(p, pool) {
		if a, ok := f.nextOf(p, pool, &p.victims[len(p.victims)-1]); ok {
			return a, true
		}
	}
	p.wake = false
	return Action{}, false
}

// nextOf returns the next action for one victim.
func (f *FTL) nextOf(p *pool, pool int, s *slot) (Action, bool) {
	m := &p.blocks[s.block]
	if m.state == erasing || m.held && m.reads > 0 || m.forsaken() {
		return Action{}, false
	}
	b := Block(int64(pool)*int64(f.blocks) + int64(s.block))
	if page := f.nextValid(p, s.block, s.cursor); page < f.pages {
		// A failure may have taken the destination that begin counted on.
		if p.short && !f.hasSpace(p, f.target(m, Reason(m.prev))) {
			return Action{}, false // wait until a block has been erased
		}
		s.cursor = page + 1
		m.pending++
		src := f.PPA(b, int(page))
		return Action{src, f.drv.Owner(src), b, Task{int32(m.stream), Move, Reason(m.prev)}}, true
	}
	// No page is left to offer. Only moves in flight can still ask for a destination.
	s.cursor = f.pages
	if m.valid == 0 && m.pending == 0 && m.reads == 0 && !slices.Contains(p.failing, s.block) {
		m.state = erasing
		return Action{NoPPA, 0, b, Task{int32(m.stream), Erase, Reason(m.prev)}}, true
	}
	return Action{}, false
}

// nextValid returns the first valid page of a block from page on, or f.pages.
func (f *FTL) nextValid(p *pool, b, page int32) int32 {
	if page >= f.pages {
		return f.pages
	}
	if f.valids != nil {
		return int32(f.valids.NextValid(Block(b), int(page)))
	}
	i := page >> 6
	word := f.word(p, b, i) &^ (1<<(page&63) - 1)
	for word == 0 {
		if i++; i == f.words {
			return f.pages
		}
		word = f.word(p, b, i)
	}
	return i<<6 + int32(bits.TrailingZeros64(word))
}

// start makes another block a victim if the pool needs one, has one and can afford it.
func (f *FTL) start(p *pool, pool int) bool {
	// In order of urgency: empty blocks if space is short, failing blocks, renewals, folds, wear, space.
	if p.short && f.startEmpty(p) {
		return true
	}
	if len(p.victims) >= f.cfg.Concurrent {
		return false
	}
	if len(p.failing) > 0 && f.startFailing(p) {
		return true
	}
	if len(p.renewals) > 0 && f.startRenewal(p) {
		return true
	}
	if p.fast != nil && f.startFold(p) {
		return true
	}
	if p.wearDue {
		p.wearDue = false
		if b := f.leastWorn(p); b != none && f.begin(p, b, WearLevelling) {
			return true
		}
	}
	if f.cfg.Quirks.OnFill {
		if p.due == 0 {
			return false
		}
		p.due--
		if f.peers != nil && !p.must {
			return f.startAsPeer(p, pool)
		}
		p.must = false
	} else if int(p.free)+len(p.victims) >= f.cfg.GCStart+f.fastReserve(p) {
		return false
	}
	b := f.pick(p)
	switch {
	case b == none:
		p.due = 0 // as in MQSim, a look that finds no victim is not made up for
		return false
	case f.begin(p, b, GC):
		return true
	case len(p.victims) > 0:
		return false // they will free blocks
	}
	b = f.affordable(p)
	return b != none && f.begin(p, b, GC)
}

// affordable returns the candidate with the fewest valid pages among those whose survivors fit into the remaining pages
// of the frontiers and the free blocks. It is needed only when a pool has neither free blocks nor victims: after a
// crash in the middle of collection, or when the last free block was retired.
func (f *FTL) affordable(p *pool) int32 {
	best := none
	for i := range p.blocks {
		m := &p.blocks[i]
		if (m.state == closed || m.state == ranked) && m.valid < f.pages &&
			(best == none || m.valid < p.blocks[best].valid) && f.reservedFor(p, m, GC) <= p.free {
			best = int32(i)
		}
	}
	return best
}

// begin makes candidate b a victim if its survivors and those of all victims in progress fit into the free blocks. This
// admission check is what keeps host and collection from deadlocking.
func (f *FTL) begin(p *pool, b int32, why Reason) bool {
	m := &p.blocks[b]
	if m.fast && why == GC {
		why = Folding
	}
	if f.reservedFor(p, m, why) > p.free && m.valid > 0 {
		return false
	}
	if why != Failure { // a failing block is no candidate
		p.remove(f, b)
	}
	if len(p.renewals) > 0 {
		p.renewals = slices.DeleteFunc(p.renewals, func(r int32) bool { return r == b })
	}
	m.state = victim
	m.next, m.prev, m.pending = m.valid, int32(why), 0
	m.held = false
	p.victims = append(p.victims, slot{block: b})
	f.guard(p)
	p.counts.collections[why]++
	switch why {
	case GC, WearLevelling, Renewal:
		p.counts.found += int64(m.valid)
	}
	return true
}

// target returns the frontier that receives a victim's survivors.
func (f *FTL) target(m *block, why Reason) int {
	to := int(f.survivors[m.stream])
	if why == WearLevelling {
		to += len(f.survivors)
	}
	return to
}

// reservedFor returns the number of free blocks that the survivors of the victims in progress may still need,
// including those of another block (nil for none) as if it were a victim too. Victims with the same target share
// blocks, so their pages are summed before rounding up.
func (f *FTL) reservedFor(p *pool, another *block, why Reason) int32 {
	total := int32(0)
	for i := range p.victims {
		m := &p.blocks[p.victims[i].block]
		to := f.target(m, Reason(m.prev))
		pages := int32(0)
		for j := range p.victims {
			m := &p.blocks[p.victims[j].block]
			if f.target(m, Reason(m.prev)) != to {
				continue
			}
			if j < i { // counted with the earlier victim of the same target
				pages = 0
				break
			}
			pages += m.next
		}
		if pages > 0 && another != nil && f.target(another, why) == to {
			pages += another.valid
			another = nil
		}
		total += f.blocksFor(p, to, pages)
	}
	if another != nil {
		total += f.blocksFor(p, f.target(another, why), another.valid)
	}
	return total
}

// blocksFor returns the number of blocks that a frontier must open to take the given number of pages.
func (f *FTL) blocksFor(p *pool, to int, pages int32) int32 {
	return (max(0, pages-p.frontiers[to].left) + f.pages - 1) / f.pages
}

// Relocate returns the page to which a Move's data must be programmed. Its source has been read, or is about to be
// copied within the chip. It reports false if the host has superseded the page since: the move is then over, and Moved
// must not be called. It also reports false when failures have left no destination; Next offers the page again once a
// block has been erased.
func (f *FTL) Relocate(src PPA, now Tick) (PPA, bool) { return f.relocate(src, -1, now) }

// RelocateTo is Relocate for a driver that knows better than Config.Survivors which stream a page belongs to. The page
// goes to a block of that stream (0 to the number of streams, survivors' included, less 1) unless other pending moves
// need that space.
func (f *FTL) RelocateTo(src PPA, stream int, now Tick) (PPA, bool) {
	return f.relocate(src, stream, now)
}

// relocate is Relocate if stream is negative, and RelocateTo otherwise.
func (f *FTL) relocate(src PPA, stream int, now Tick) (PPA, bool) {
	pool, b, page := f.split(src)
	p := f.touch(pool)
	m := p.known(b)
	if m.state != victim || m.next == 0 || m.pending == 0 {
		broken("page %d is not being moved", src)
	}
	m.next-- // this move no longer needs a page
	// Superseded by a host write, or trimmed.
	if !f.has(p, b, page) || f.drv.Lookup(f.drv.Owner(src)) != src {
		f.moveOver(p, m)
		return NoPPA, false
	}
	to := f.target(m, Reason(m.prev))
	if stream >= 0 && stream != to && f.mayStray(p, stream) {
		to = stream
	}
	if p.frontiers[to].left == 0 {
		if p.short && p.free == 0 {
			if to = p.anySpace(); to < 0 {
				m.next++
				p.again = append(p.again, src)
				f.moveOver(p, m)
				return NoPPA, false
			}
		} else {
			f.openBlock(p, pool, to)
		}
	}
	dst := f.take(p, pool, to, now)
	p.counts.moved[m.prev]++
	p.counts.relocating++
	f.changed(pool, p)
	return dst, true
}

// mayStray reports whether a frontier can take a page that owed did not count there: the remaining moves must still
// fit.
func (f *FTL) mayStray(p *pool, to int) bool {
	if p.short || to < f.cfg.Fast.Streams { // owed does not count the space of fast blocks

		return false
	}
	w := &p.frontiers[to]
	left, free := w.left, p.free
	if left == 0 {
		if free == 0 {
			return false
		}
		w.left = f.pages
		free--
	}
	w.left--
	owed := f.reservedFor(p, nil, GC)
	w.left = left
	return owed <= free
}

// Moved reports that a relocated page has been programmed at dst, and that Owner holds for it. The map's entry is
// swapped from src to dst, which becomes the valid page. Moved returns false if the host wrote the page in the
// meantime: the entry stays, and dst is invalid.
func (f *FTL) Moved(src, dst PPA, now Tick) bool { return f.moved(src, dst, now, true) }

// Held is Moved for a page that the driver has in power-loss-protected memory and has yet to program, so src is no
// longer needed. Programmed or ProgramFailed follows for dst, as for a page that Allocate returned; Owner must hold
// from now on.
func (f *FTL) Held(src, dst PPA, now Tick) bool { return f.moved(src, dst, now, false) }

// moved is Moved or, if the page at dst has yet to be programmed, Held.
func (f *FTL) moved(src, dst PPA, now Tick, programmed bool) bool {
	pool, b, page := f.split(src)
	p := f.touch(pool)
	m := p.known(b)
	if m.state != victim || m.pending == 0 {
		broken("page %d is not being moved", src)
	}
	// A host write that has completed in the meantime has changed the entry, and wins.
	swapped := f.drv.CompareAndSwap(f.drv.Owner(src), src, dst)
	if swapped {
		f.drop(p, b, page)
	}
	p.counts.relocating--
	if programmed {
		_, to, _ := f.split(dst)
		f.programmed(p, to)
	}
	if !swapped {
		p.counts.raced++
		f.Invalidate(dst, now)
	}
	f.moveOver(p, m)
	f.changed(pool, p)
	return swapped
}

// moveOver finishes one move out of a victim.
func (f *FTL) moveOver(p *pool, m *block) {
	if m.pending--; m.pending == 0 {
		p.wake = true
	}
}

// Erased reports that the block of an Erase action has been erased. It becomes free, or is retired if it has reached
// Config.EraseLimit and is not the pool's only free block.
func (f *FTL) Erased(b Block) {
	p, i := f.ended(b)
	m := &p.blocks[i]
	if m.erases < maxErases {
		m.erases++ // saturates at maxErases
	}
	p.counts.erases++
	p.erases++
	// The last free block stays in service unless it fails: without it, collection could not proceed.
	worn := f.cfg.EraseLimit > 0 && int(m.erases) >= f.cfg.EraseLimit && p.free > 0
	if failed := p.mend(i); failed || worn {
		f.retire(p, m)
	} else {
		f.addFree(p, i)
		p.free++
	}
	if f.cfg.Quirks.OnFill && p.free < f.hostStop {
		f.look(p, f.poolOf(b)) // the host is still waiting
	}
	p.mostErases = max(p.mostErases, m.erases)
	p.wearDue = f.wearDue(p)
	f.easeShort(p)
	f.guard(p)
	f.changed(f.poolOf(b), p)
}

// Retire reports that the block of an Erase action could not be erased, or must not be used again. It is lost to the
// pool.
func (f *FTL) Retire(b Block) {
	p, i := f.ended(b)
	p.mend(i)
	f.retire(p, &p.blocks[i])
	f.easeShort(p)
	f.guard(p)
	f.changed(f.poolOf(b), p)
}

// retire takes a block out of service. The caller has removed it from every structure.
func (f *FTL) retire(p *pool, m *block) {
	m.state = retired
	p.retired++
	p.counts.retired++
}

// poolOf returns the number of a block's pool.
func (f *FTL) poolOf(b Block) int {
	if b < 0 {
		panic(noPool)
	}
	return int(b) / int(f.blocks)
}

// ended removes a block whose erase was pulled from the victims.
func (f *FTL) ended(b Block) (*pool, int32) {
	pool, i := f.poolOf(b), int32(int(b)%int(f.blocks))
	p := f.touch(pool)
	if int(i) >= len(p.blocks) || p.blocks[i].state != erasing {
		broken("block %d was erased without a request", b)
	}
	f.emptied(p, i)
	return p, i
}

// emptied removes a block without valid pages from the victims.
func (f *FTL) emptied(p *pool, i int32) {
	for s := range p.victims {
		if p.victims[s].block == i {
			p.victims = slices.Delete(p.victims, s, s+1)
			break
		}
	}
	if len(p.again) > 0 {
		p.again = slices.DeleteFunc(p.again, func(src PPA) bool { return f.inBlock(src) == i })
	}
	if p.blocks[i].fast {
		p.forgetFast(i)
	}
	p.wake = true
	p.counts.erasedPages += int64(f.pages)
	p.blocks[i].stamp = 0
}

package ssd

import (
	"slices"

	"farflash/policy/ftl"
)

// Garbage collection and wear levelling: ftl decides which pages to move and which blocks to erase, and the drive does
// it with flash transactions.

// The drive is the ftl.Map of its translation layer.

// Lookup implements ftl.Map.
func (d *Drive) Lookup(l ftl.LPA) ftl.PPA { return lookup(&d.l2p, l) }

// CompareAndSwap implements ftl.Map.
func (d *Drive) CompareAndSwap(l ftl.LPA, old, new ftl.PPA) bool {
	return compareAndSwap(&d.l2p, l, old, new)
}

// Owner implements ftl.Map.
func (d *Drive) Owner(p ftl.PPA) ftl.LPA {
	pool, blk, page := d.split(uint32(p))
	return ftl.LPA(d.owners.get(pool, blk, page))
}

// tick returns the time as ftl counts it, in picoseconds. An int64 of them lasts longer than any simulation.
func (d *Drive) tick() ftl.Tick { return ftl.Tick(d.eng.Now()) }

// split returns the pool of a page, the block within it and the page within that.
func (d *Drive) split(page uint32) (pool, blk, inBlock int) {
	p, rest := d.perPool.Split(uint64(page))
	b, i := d.perBlock.Split(rest)
	return int(p), int(b), int(i)
}

// poolOf returns the pool of a page.
func (d *Drive) poolOf(page uint32) int {
	return int(d.perPool.Of(uint64(page)))
}

// collect executes the actions that ftl wants in a pool. Usually there are none.
func (d *Drive) collect(pool int) {
	if d.mayCollect(pool) {
		d.collectPool(pool)
	}
}

// mayCollect reports whether collect may have work in a pool.
func (d *Drive) mayCollect(pool int) bool { return d.grains > 1 || d.slc.on || d.ftl.Wants(pool) }

// collectPool is collect once there may be work.
func (d *Drive) collectPool(pool int) {
	if d.chaining { // wait until the whole chain has completed
		d.postpone(int32(pool))
		return
	}
	d.pull(pool)
	// Holding moves may let the victim be erased, which gives pull more work.
	for d.grains > 1 && d.hold(pool) {
		d.pull(pool)
	}
	if d.cfg.Quirks.VictimsOfAll && d.parked > 0 && d.parkedIn(int32(pool)).head != 0 && !d.ftl.Collecting(pool) {
		d.ftl.Rescue(pool)
		d.pull(pool)
	}
	if d.slc.on && d.parked > 0 {
		d.unparkRetired(pool)
	}
}

// unparkRetired is unpark after a block was retired. The block is not erased, but if it belonged to the SLC cache, the
// cache may now open another.
//
//go:noinline
func (d *Drive) unparkRetired(pool int) {
	if d.parkedIn(int32(pool)).retired != d.ftl.Retired(pool) {
		d.parkedIn(int32(pool)).retired = d.ftl.Retired(pool)
		d.unpark(pool)
	}
}

// postpone defers collection in a pool until the current chain has completed.
//
//go:noinline
func (d *Drive) postpone(pool int32) {
	if !slices.Contains(d.postponed, pool) {
		d.postponed = append(d.postponed, pool)
	}
}

// enoughMoves reports whether a pool has reached its limit of moves in flight. Moves that wait for others to fill a
// page of flash do not count.
func (d *Drive) enoughMoves(pool int) bool {
	return d.mostMoving > 0 && d.moving[pool]-d.packing.Moves(pool) >= d.mostMoving
}

// pull executes the actions that ftl wants in a pool until there are no more, or enough moves are in flight.
func (d *Drive) pull(pool int) {
	if d.enoughMoves(pool) {
		return // until one of them completes
	}
	a, ok := d.ftl.Next(pool)
	if !ok {
		return
	}
	d.fewestFree = min(d.fewestFree, d.ftl.Free(pool))
	d.openBatch()
	last := int32(0)
	for ok {
		if d.cfg.Quirks.VictimsOfAll && last != 0 && d.ftl.BlockOf(d.txns.At(last).source) != a.Block {
			d.eraseLater(pool, last)
			last = 0
		}
		switch {
		case a.Kind != ftl.Erase:
			last = d.move(pool, a, last)
		case !d.eraseNow(a.Block):
			d.erase(pool, a.Block)
		}
		// A page of flash is read whole, so take all of its grains before stopping.
		if d.enoughMoves(pool) && (a.Kind == ftl.Erase || !d.moreOfPage(a.Source)) {
			break
		}
		a, ok = d.ftl.Next(pool)
	}
	if d.cfg.Quirks.VictimsOfAll && last != 0 {
		d.eraseLater(pool, last)
	}
	d.noteCollecting(pool)
	d.closeBatch()
	if d.entered { // otherwise the chips are polled when their current commands complete
		d.atOnce()
	}
}

// erasing is a superblock whose planes are being erased.
type erasing struct {
	block ftl.Block
	left  int32 // planes
	waits int32 // the erase that waits for moves (Quirks.VictimsOfAll)
}

// erase erases a block in each plane of a pool.
func (d *Drive) erase(pool int, b ftl.Block) {
	d.erasing = append(d.erasing, erasing{block: b, left: int32(d.pools.size)})
	resets := d.isReturning(b)
	for _, plane := range d.pools.planes(pool) {
		t, x := d.newTransaction()
		x.origin, x.queue, x.resets = fromMove, queueErase, resets
		x.page, x.plane = uint32(d.ftl.PPA(b, 0)), plane
		d.enqueue(t, x)
	}
}

// eraseLater queues the erase of a move's source block behind the block's moves. In MQSim the erase waits in the
// scheduler, where it holds back the host's requests.
func (d *Drive) eraseLater(pool int, move int32) {
	b := d.ftl.BlockOf(d.txns.At(move).source)
	if !d.ftl.Erases(b) || slices.ContainsFunc(d.erasing, func(e erasing) bool { return e.block == b }) {
		return
	}
	t, x := d.newTransaction()
	x.origin, x.queue, x.waitsFor = fromMove, queueErase, 1
	x.page, x.plane = uint32(d.ftl.PPA(b, 0)), d.pools.planes(pool)[0]
	d.erasing = append(d.erasing, erasing{block: b, left: 1, waits: t})
	d.enqueue(t, x)
}

// eraseNow releases the queued erase of a block whose moves have all completed, and reports whether there was one.
func (d *Drive) eraseNow(b ftl.Block) bool {
	for i := range d.erasing {
		if e := &d.erasing[i]; e.block == b && e.waits != 0 {
			d.released(e.waits)
			e.waits = 0
			return true
		}
	}
	return false
}

// erased counts an erase of one plane as completed, and reports whether it was the last one of its superblock.
func (d *Drive) erased(b ftl.Block) bool {
	for i := range d.erasing {
		if e := &d.erasing[i]; e.block == b {
			if e.left--; e.left > 0 {
				return false
			}
			d.erasing = append(d.erasing[:i], d.erasing[i+1:]...)
			return true
		}
	}
	panic("ssd: a block was erased without a request")
}

// move starts the move of a page. last is the move started before it; if both sources lie in one page of flash, they
// share a read.
func (d *Drive) move(pool int, a ftl.Action, last int32) int32 {
	d.moving[pool]++
	if d.mostMoving > 0 {
		d.movesFrom(pool, a.Block)
	}
	t, x := d.newTransaction()
	x.origin, x.queue = fromMove, queueMoveRead
	if d.cfg.Collection.Copyback {
		x.queue = queueCopyback
	}
	d.at(x, uint32(a.Source))
	x.source = a.Source
	x.levels, x.renews, x.folds = a.Why == ftl.WearLevelling, a.Why == ftl.Renewal, a.Why == ftl.Folding
	x.logical = uint32(a.LPA)
	d.l2p.expect(x.logical)
	x.bytes = d.grainBytes()
	x.sectors = d.allSectors
	if d.grains == 1 || last == 0 || !d.readsWith(last, t) {
		d.enqueue(t, x)
	}
	return t
}

// noteCollecting updates the lanes' counts of planes with victims in progress.
func (d *Drive) noteCollecting(pool int) {
	now := d.ftl.Collecting(pool)
	if now == d.isCollecting[pool] {
		return
	}
	d.isCollecting[pool] = now
	for _, plane := range d.pools.planes(pool) {
		if l := &d.lanes[d.planes[plane].lane]; now {
			l.collecting++
		} else {
			l.collecting--
		}
	}
}

// moveDone completes a step of collection.
func (d *Drive) moveDone(t int32) {
	x := d.txns.At(t)
	switch x.queue {
	case queueMoveRead:
		d.moveRead(t, x)
	case queueErase:
		d.eraseDone(t, x)
	default:
		d.moveProgrammed(t, x)
	}
}

// moveRead handles the completed read of a page that is being moved. Its program follows if its data are still valid.
//
//go:noinline
func (d *Drive) moveRead(t int32, x *transaction) {
	if !d.relocate(t, x) {
		return
	}
	if x.spoilt {
		d.moveSpoilt(x)
	}
	if d.cfg.Quirks.MovesUse {
		d.useMoved(x.logical)
		x = d.txns.At(t)
	}
	x.queue = queueMoveWrite
	pool := int(x.pool)
	d.program(t)
	if d.grains > 1 {
		d.collect(pool)
	}
}

// moveSpoilt handles a move whose source could not be read.
//
//go:noinline
func (d *Drive) moveSpoilt(x *transaction) {
	x.spoilt = false
	if x.logical < d.ns[0].mapBase { // mapping pages are assumed to be stored twice
		d.lose(x.logical)
	}
}

// moveProgrammed handles the completed program of a page that was moved.
//
//go:noinline
func (d *Drive) moveProgrammed(t int32, x *transaction) {
	pool, l := int(x.pool), x.logical
	moved := d.ftl.Moved(x.source, ftl.PPA(x.page), d.tick())
	// Under Quirks.MovesUse the entry was marked when the page had been read.
	if moved && !d.cfg.Mapping.Ideal && l < d.ns[0].mapBase && !d.cfg.Quirks.MovesUse {
		d.dirtyEntry(l, d.namespaceOf(l))
	}
	d.moveOver(t, pool)
}

// moveOver finishes a move.
func (d *Drive) moveOver(t int32, pool int) {
	d.freeTransaction(t)
	d.moveEnded(pool)
	d.collect(pool)
	d.noteCollecting(pool)
}

// eraseDone handles the completed erase of a block of a plane.
//
//go:noinline
func (d *Drive) eraseDone(t int32, x *transaction) {
	pool, blk, _ := d.split(x.page)
	d.erases++
	b := d.ftl.BlockOf(ftl.PPA(x.page))
	d.freeTransaction(t)
	if !d.erased(b) {
		return
	}
	// The owners must be dropped before the block can be opened again.
	d.owners.forget(pool, blk)
	d.ftl.Erased(b)
	d.zoneErased(b)
	d.unparkMapping(pool)
	if d.cfg.Quirks.VictimsOfAll {
		d.unparkAsPeer(pool)
	} else {
		d.unpark(pool)
	}
	d.collect(pool)
	d.noteCollecting(pool)
}

// unparkAsPeer is unpark followed by a poll of the chips. If host writes could resume and space is short again
// afterwards, it also searches for another victim.
func (d *Drive) unparkAsPeer(pool int) {
	if d.parked == 0 {
		return
	}
	goOn := d.ftl.Free(pool) >= d.cfg.Quirks.HostStop
	d.together = true
	d.unpark(pool)
	d.together = false
	d.atOnce()
	if goOn {
		d.ftl.Look(pool)
	}
}

// useMoved marks the map entry of a page that is being moved as used and changed (Quirks.MovesUse).
//
//go:noinline
func (d *Drive) useMoved(l uint32) {
	if d.cfg.Mapping.Ideal || l >= d.ns[0].mapBase {
		return
	}
	ns := d.namespaceOf(l)
	d.dirtyEntry(l, ns)
	c := &d.tables[d.ns[ns].cmt]
	if e, ok := c.index.get(l); ok && !c.entries[e].waiting {
		c.toFront(int32(e))
	}
}

// relocate decides where a page that was read is programmed. It reports false if its data have been superseded since;
// the transaction is then over.
func (d *Drive) relocate(t int32, x *transaction) bool {
	dst, ok := d.ftl.Relocate(x.source, d.tick())
	if !ok {
		d.moveOver(t, int(x.pool))
		return false
	}
	d.take(x, dst)
	if x.queue == queueCopyback {
		d.countProgram(x)
		d.countGrain(x)
	}
	return true
}

// parkMapping makes the program of a mapping page wait for space.
func (d *Drive) parkMapping(pool int32, t int32) {
	if d.parkedMapping == nil {
		d.parkedMapping = make([][]int32, d.pools.count())
	}
	d.parkedMapping[pool] = append(d.parkedMapping[pool], t)
}

// unparkMapping retries the parked programs of mapping pages.
func (d *Drive) unparkMapping(pool int) {
	if d.parkedMapping == nil || len(d.parkedMapping[pool]) == 0 {
		return
	}
	waiting := d.parkedMapping[pool]
	d.parkedMapping[pool] = nil
	for _, t := range waiting {
		d.placeMapping(t)
	}
}

// CollectBy makes a custom policy choose victims (ftl.CollectBy), in place of FIFO, which must be configured.
func (d *Drive) CollectBy(p ftl.Picker) error { return d.ftl.CollectBy(p) }

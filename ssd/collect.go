package ssd

import (
	"slices"

	"farflash/ftl"
)

// Garbage collection and wear levelling: ftl says what is to be moved and erased,
// the drive does it with flash transactions.

// The drive is the map that ftl asks.

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

// tick is the time as ftl has it: picoseconds, of which a simulation is never so long that they end.
func (d *Drive) tick() ftl.Tick { return ftl.Tick(d.eng.Now()) }

// split takes a page's number apart.
func (d *Drive) split(page uint32) (pool, blk, inBlock int) {
	p, rest := d.perPool.Split(uint64(page))
	b, i := d.perBlock.Split(rest)
	return int(p), int(b), int(i)
}

// poolOf is the pool of a page.
func (d *Drive) poolOf(page uint32) int {
	return int(d.perPool.Of(uint64(page)))
}

// movesPerPlane is how many pages a plane of a superblock moves at once, on average: what keeps all dies at work, and does not stand before the
// host's pages a superblock long.
const movesPerPlane = 4

// collect does what ftl wants done in a pool, which is nothing most of the time.
func (d *Drive) collect(pool int) {
	if d.mayCollect(pool) {
		d.collectPool(pool)
	}
}

// mayCollect reports whether there may be something to do for collect.
func (d *Drive) mayCollect(pool int) bool { return d.grains > 1 || d.slc.on || d.ftl.Wants(pool) }

func (d *Drive) collectPool(pool int) {
	if d.chaining { // until all of the chain have ended
		d.postpone(int32(pool))
		return
	}
	d.pull(pool)
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

// unparkRetired is unpark after a block was retired. It is not erased, but if it was of the SLC cache there may be another now.
//
//go:noinline
func (d *Drive) unparkRetired(pool int) {
	if d.parkedIn(int32(pool)).retired != d.ftl.Retired(pool) {
		d.parkedIn(int32(pool)).retired = d.ftl.Retired(pool)
		d.unpark(pool)
	}
}

//go:noinline
func (d *Drive) postpone(pool int32) {
	if !slices.Contains(d.postponed, pool) {
		d.postponed = append(d.postponed, pool)
	}
}

// enoughMoves reports whether as many moves of a pool are under way as may be. Those that wait for others to fill a page of flash are not.
func (d *Drive) enoughMoves(pool int) bool {
	return d.mostMoving > 0 && d.moving[pool]-d.packing.Moves(pool) >= d.mostMoving
}

// pull has the drive do what ftl wants done in a pool until there is nothing more, or enough is under way.
func (d *Drive) pull(pool int) {
	if d.enoughMoves(pool) {
		return // until one of them has ended
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
	if d.entered { // else chips are looked at when what is under way has ended
		d.atOnce()
	}
}

// erasing is a superblock whose planes are being erased.
type erasing struct {
	block ftl.Block
	left  int32 // planes
	waits int32 // the erase that waits for moves (Quirks.VictimsOfAll)
}

// erase erases a block of each plane of a pool.
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

// eraseLater queues the erase of the block that a move is out of, behind its moves: a peer has it wait in the scheduler, where it keeps the host's requests back.
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

// eraseNow lets the erase of a block go on that waits for its moves, if there is one.
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

// erased reports whether the erase of a block of a plane was the last of its superblock.
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
	panic("ssd: a block was erased that nobody wanted erased")
}

// move begins the move of a page. last is the move begun before it, with which it is read if both lie in one page of flash.
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

// noteCollecting keeps lanes' counts of planes with victims in progress.
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

// moveDone ends a step of collection.
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

// moveRead: the page that is moved has been read. Its program follows, if its data are still wanted.
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

// moveSpoilt: what is moved could not be read.
//
//go:noinline
func (d *Drive) moveSpoilt(x *transaction) {
	x.spoilt = false
	if x.logical < d.ns[0].mapBase { // mapping pages are thought to be written twice
		d.lose(x.logical)
	}
}

// moveProgrammed: the page that is moved is where it was to go.
//
//go:noinline
func (d *Drive) moveProgrammed(t int32, x *transaction) {
	pool, l := int(x.pool), x.logical
	moved := d.ftl.Moved(x.source, ftl.PPA(x.page), d.tick())
	if moved && !d.cfg.Mapping.Ideal && l < d.ns[0].mapBase && !d.cfg.Quirks.MovesUse {
		d.dirtyEntry(l, d.namespaceOf(l))
	}
	d.moveOver(t, pool)
}

// moveOver ends a move.
func (d *Drive) moveOver(t int32, pool int) {
	d.freeTransaction(t)
	d.moveEnded(pool)
	d.collect(pool)
	d.noteCollecting(pool)
}

// eraseDone: a block of a plane has been erased.
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

// unparkAsPeer is unpark with a look at the chips when all have gone on, and one for a victim if that took too much.
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

// useMoved notes that the map's entry of a page whose move was begun is used and changed.
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

// relocate decides where a page that was read is programmed. It reports false if
// its data were superseded meanwhile; the transaction is then over.
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

// unparkMapping gives them another try.
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

// CollectBy has victims be what a policy of one's own picks from now on; see ftl.CollectBy. Config.Collection.Victim must be FIFO.
func (d *Drive) CollectBy(p ftl.Picker) error { return d.ftl.CollectBy(p) }

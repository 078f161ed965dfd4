package ssd

import (
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
	plane, blk, page := d.split(uint32(p))
	return ftl.LPA(d.owners.get(plane, blk, page))
}

// tick is the time as ftl has it: picoseconds, of which a simulation is never so long that they end.
func (d *Drive) tick() ftl.Tick { return ftl.Tick(d.eng.Now()) }

// split takes a physical page number apart.
func (d *Drive) split(page uint32) (plane, blk, inBlock int) {
	p, rest := d.perPlane.Split(uint64(page))
	b, i := d.perBlock.Split(rest)
	return int(p), int(b), int(i)
}

// planeOf is the plane of a physical page.
func (d *Drive) planeOf(page uint32) int {
	return int(d.perPlane.Of(uint64(page)))
}

// collect does what ftl wants done in a plane.
func (d *Drive) collect(plane int) {
	a, ok := d.ftl.Next(plane)
	if !ok {
		return
	}
	d.fewestFree = min(d.fewestFree, d.ftl.Free(plane))
	d.openBatch()
	for ; ok; a, ok = d.ftl.Next(plane) {
		t := d.newTransaction()
		x := d.txns.At(t)
		x.origin = fromMove
		switch {
		case a.Kind == ftl.Erase:
			x.queue = queueErase
			d.at(x, uint32(d.ftl.PPA(a.Block, 0)))
		case d.cfg.Collection.Copyback:
			x.queue = queueCopyback
			d.moving(x, a)
		default:
			x.queue = queueMoveRead
			d.moving(x, a)
		}
		d.enqueue(t)
	}
	d.noteCollecting(plane)
	d.closeBatch()
}

// moving makes x the move of a page.
func (d *Drive) moving(x *transaction, a ftl.Action) {
	d.at(x, uint32(a.Source))
	x.source = a.Source
	x.logical = uint32(a.LPA)
	d.l2p.expect(x.logical)
	x.bytes = int32(d.cfg.Geometry.PageSize)
	x.sectors = d.allSectors
}

// noteCollecting keeps a lane's count of planes with victims in progress.
func (d *Drive) noteCollecting(plane int) {
	now := d.ftl.Collecting(plane)
	if now == d.isCollecting[plane] {
		return
	}
	d.isCollecting[plane] = now
	l := &d.lanes[d.laneOf[plane]]
	if now {
		l.collecting++
	} else {
		l.collecting--
	}
}

// moveDone ends a step of collection.
func (d *Drive) moveDone(t int32) {
	x := d.txns.At(t)
	plane := int(x.plane)
	switch x.queue {
	case queueMoveRead:
		if !d.relocate(t) {
			d.collect(plane)
			d.noteCollecting(plane)
			return
		}
		x = d.txns.At(t)
		x.queue = queueMoveWrite
		d.enqueue(t)
		return
	case queueMoveWrite, queueCopyback:
		if d.ftl.Moved(x.source, ftl.PPA(x.page), d.tick()) {
			if l := x.logical; !d.cfg.Mapping.Ideal && l < d.ns[0].mapBase {
				d.dirtyEntry(l, d.namespaceOf(l))
			}
		}
	case queueErase:
		p, blk, _ := d.split(x.page)
		d.owners.forget(p, blk)
		d.ftl.Erased(d.ftl.BlockOf(ftl.PPA(x.page)))
		d.erases++
		d.freeTransaction(t)
		d.unparkMapping(plane)
		d.unpark(plane)
		d.collect(plane)
		d.noteCollecting(plane)
		return
	}
	d.freeTransaction(t)
	d.collect(plane)
	d.noteCollecting(plane)
}

// relocate decides where a page that was read is programmed. It reports false if
// its data were superseded meanwhile; the transaction is then over.
func (d *Drive) relocate(t int32) bool {
	x := d.txns.At(t)
	dst, ok := d.ftl.Relocate(x.source, d.tick())
	if !ok {
		plane := int(x.plane)
		d.freeTransaction(t)
		d.collect(plane)
		return false
	}
	d.at(x, uint32(dst))
	plane, blk, page := d.split(x.page)
	d.owners.set(plane, blk, page, x.logical)
	d.movePrograms++
	return true
}

// parkMapping makes the program of a mapping page wait for space.
func (d *Drive) parkMapping(plane int32, t int32) {
	if d.parkedMapping == nil {
		d.parkedMapping = make([][]int32, d.cfg.Geometry.Planes())
	}
	d.parkedMapping[plane] = append(d.parkedMapping[plane], t)
}

// unparkMapping gives them another try.
func (d *Drive) unparkMapping(plane int) {
	if d.parkedMapping == nil || len(d.parkedMapping[plane]) == 0 {
		return
	}
	waiting := d.parkedMapping[plane]
	d.parkedMapping[plane] = nil
	for _, t := range waiting {
		d.placeMapping(t)
	}
}

package ssd

import (
	"math/bits"

	"farflash/block"
	"farflash/model/ssd/nand"
	"farflash/policy/ftl"
)

// accept starts work on a command that the controller has received in full.
//
//go:noinline
func (d *Drive) accept(i int32, r *request) {
	r.accepted = d.eng.Now()
	if r.accepted != d.acceptedAt || d.accepted == 0 {
		d.accepted++
		d.acceptedAt = r.accepted
	}
	r.number = d.accepted
	r.left = 1 // the request itself, until all of its parts have been issued
	switch r.done.Op {
	case block.Read:
		d.read(i, r)
	case block.Write:
		if c := d.ns[r.ns].cache; (c == CacheWrite || c == CacheReadWrite) && !r.force {
			d.cacheWrite(i)
		} else {
			d.writeThrough(i, r)
		}
	case block.Trim:
		d.trim(i, r)
	case block.Flush:
		d.flush(i, r)
	default:
		d.zoneCommand(i, r)
	}
}

// part is the piece of a request that lies in one logical page.
type part struct {
	logical uint32
	sectors uint64
	count   int32
}

// pageOf returns the logical page, within its namespace, that a sector lies in.
func (d *Drive) pageOf(sector int64) int64 {
	return int64(d.perGrain.Of(uint64(sector)))
}

// nextPart returns the part at the request's cursor.
func (d *Drive) nextPart(r *request) part {
	ns := &d.ns[r.ns]
	if uint64(r.cursor) > uint64(ns.last) {
		ns.fold(r)
	}
	page := d.pageOf(r.cursor)
	first := r.cursor - page*d.sectorsPerGrain
	// With Quirks.CutAcross parts end shift sectors before the page does.
	n := d.sectorsPerGrain - first - ns.shift
	if n <= 0 {
		n += d.sectorsPerGrain
	}
	n = min(n, r.end-r.cursor)
	return part{
		logical: ns.base + uint32(page),
		sectors: ^uint64(0) >> (-n & 63) << (first & 63), // a grain has 64 sectors at most
		count:   int32(n),
	}
}

// fold maps a request beyond the namespace's last used sector back into it as MQSim does: modulo that sector, counted
// from the namespace's first. Native drives reject such requests.
//
//go:noinline
func (n *namespace) fold(r *request) {
	left := r.end - r.cursor
	r.cursor = int64(uint64(n.start+r.cursor) % uint64(max(n.last, 1))) // its addresses have no sign
	r.end = r.cursor + left
}

// partDone completes one of the operations that a request waits for. The request is served when none is left.
func (d *Drive) partDone(i int32, r *request) {
	if r.left--; r.left == 0 {
		d.served(i, r)
	}
}

// read sends cached sectors from DRAM and reads the rest from flash.
//
// It is kept out of line, as are others with this directive: the compiler does not inline the calls in a function that
// it has itself inlined because of a profile.
//
//go:noinline
func (d *Drive) read(i int32, r *request) {
	n := &d.ns[r.ns]
	queue := queueHostRead + d.classOf(uint8(r.class))
	cached := int64(0)
	d.gather()
	for r.cursor < r.end {
		p := d.nextPart(r)
		r.cursor += int64(p.count)
		if n.cache != CacheOff {
			if hit := d.caches[n.cacheSet].lookup(p.logical) & p.sectors; hit != 0 {
				cached += int64(bits.OnesCount64(hit))
				d.cacheHits++
				if p.sectors &^= hit; p.sectors == 0 {
					continue
				}
			} else {
				d.cacheMisses++
			}
		}
		r.left++
		t, x := d.newTransaction()
		x.request, x.logical, x.sectors, x.ns, x.queue = i, p.logical, p.sectors, r.ns, queue
		x.bytes = int32(bits.OnesCount64(p.sectors)) * nand.SectorSize
		d.locate(t, x)
	}
	// One DRAM transfer carries all cached parts of the request.
	if cached > 0 {
		r.left++
		d.dram(r.ns, cached*nand.SectorSize, evMemoryDone, uint32(i))
	}
	d.dispatch()
	d.partDone(i, r)
}

// writeThrough programs a request's pages; the request completes when they are on flash.
func (d *Drive) writeThrough(i int32, r *request) {
	d.gather()
	for r.cursor < r.end {
		p := d.nextPart(r)
		r.cursor += int64(p.count)
		r.left++
		// A cache that holds the page takes over the new data.
		if n := &d.ns[r.ns]; n.cache != CacheOff && !d.cfg.Quirks.WritesUnseen {
			d.caches[n.cacheSet].superseded(p.logical, p.sectors)
		}
		t, x := d.newWrite(p.logical, p.sectors, r.ns, r.placement, uint8(r.class))
		x.request = i
		d.locate(t, x)
	}
	d.dispatch()
	d.partDone(i, r)
}

// newWrite makes the transaction that programs some sectors of a logical page.
func (d *Drive) newWrite(logical uint32, sectors uint64, ns, placement, class uint8) (int32, *transaction) {
	t, x := d.newTransaction()
	x.logical, x.sectors, x.ns = logical, sectors, ns
	x.bytes = int32(bits.OnesCount64(sectors)) * nand.SectorSize
	x.queue = queueHostWrite + d.classOf(class)
	n := &d.ns[ns]
	if int(placement) >= len(n.placements) {
		placement = 0
	}
	p := n.placements[placement]
	x.stream, x.group = p.stream, p.group
	return t, x
}

// classOf maps a class to a scheduler queue. All use one queue if classes are off.
func (d *Drive) classOf(class uint8) uint8 {
	if !d.cfg.Scheduling.Classes {
		return uint8(block.High)
	}
	return class
}

// gather starts collecting transactions that arrive together; dispatch ends it, and the scheduler then acts on all of
// them. MQSim, in contrast, sends each map read that they need at once, ahead of the transactions themselves
// (Quirks.LookUpsFirst).
func (d *Drive) gather() {
	if d.cfg.Quirks.LookUpsFirst {
		d.gathering++
	} else {
		d.openBatch()
	}
}

// dispatch ends what gather started. Nested pairs act on the outermost dispatch.
func (d *Drive) dispatch() {
	if !d.cfg.Quirks.LookUpsFirst {
		d.closeBatch()
		return
	}
	if d.gathering--; d.gathering > 0 {
		return
	}
	for _, t := range d.gathered {
		d.enqueue(t, d.txns.At(t))
	}
	d.gathered = d.gathered[:0]
	d.serveNow()
}

// serveNow lets idle channels act at once, in the middle of a batch.
func (d *Drive) serveNow() {
	outer := d.batch
	d.batch = 1
	d.closeBatch()
	d.batch = outer
}

// atOnce is called after the drive has queued transactions of its own. MQSim schedules these as soon as they are
// queued, except while it resumes transactions that waited for the map.
func (d *Drive) atOnce() {
	if d.cfg.Quirks.LookUpsFirst && !d.together {
		d.serveNow()
	}
}

// submit passes a host transaction that has been placed to the scheduler. Within gather it is held until the look-ups
// of all transactions gathered with it have been made.
func (d *Drive) submit(t int32, x *transaction) {
	if d.gathering > 0 {
		d.gathered = append(d.gathered, t)
	} else {
		d.enqueue(t, x)
	}
}

// locate finds a host transaction's place on flash if the map's entry is cached, and hands the transaction to the
// scheduler. Otherwise the transaction waits for the entry.
func (d *Drive) locate(t int32, x *transaction) {
	if d.cfg.Mapping.Ideal {
		d.mapHits++
		d.place(t, x)
		return
	}
	if d.entryAtHand(t) {
		d.place(t, d.txns.At(t))
	}
}

// place gives a host transaction its physical page.
func (d *Drive) place(t int32, x *transaction) {
	switch {
	case x.failed:
		d.placeAgain(t)
	case x.queue < queueMoveRead:
		d.placeRead(t, x)
	default:
		d.placeWrite(t, x)
	}
}

// placeRead directs a host read to its page on flash, and pins the page's block until the read completes.
func (d *Drive) placeRead(t int32, x *transaction) {
	if d.errs != nil && d.isLost(x.logical) {
		d.readOfLost(t, x)
		return
	}
	// trimmed and noPage are the two largest entries: anything below is a place.
	if page := d.l2p.get(x.logical); page < trimmed {
		d.at(x, page)
	} else if d.unwritten(t, x, page) {
		x = d.txns.At(t)
	} else {
		return
	}
	// The grain may still be waiting in memory for its page of flash to fill.
	if d.grains > 1 && d.inMemory(x.page) {
		d.fromMemory(t)
		return
	}
	d.pin(x)
	d.submitRead(t, x)
}

// readOfLost completes the read of a page whose data are lost.
//
//go:noinline
func (d *Drive) readOfLost(t int32, x *transaction) {
	d.spoiltRead(x.request)
	d.hostDone(x)
	d.freeTransaction(t)
}

// unwritten handles the read of a page that the map has no place for. It completes the read, directs it to the place
// that the drive's formula gives the page, or parks it; in these cases it returns false. Otherwise it allocates a place
// now, as if the page had been written, and returns true.
func (d *Drive) unwritten(t int32, x *transaction, page uint32) bool {
	n := &d.ns[x.ns]
	switch {
	case page == trimmed || d.cfg.Initial == InitialEmpty || n.zones != nil:
		d.readUnwritten(t, x)
		return false
	case d.cfg.Initial == InitialFormula:
		d.atFormula(x)
		d.submitReadOf(t, x, d.formulaPage(x.logical, x.ns))
		return false
	}
	pool := n.pool(x.logical - n.base)
	if d.groups != nil {
		pool = d.poolInGroupOf(n, x.logical, pool)
	} else if n.readPoolOf != nil {
		_, k := n.inTurn(x.logical - n.base)
		pool = n.readPoolOf[k]
	}
	// The place counts as a host page that is programmed at once. No flash command follows.
	var ppa ftl.PPA
	var ok bool
	if d.cfg.Quirks.VictimsOfAll {
		ppa, ok = d.ftl.AllocateRegardless(int(pool), n.stream, d.tick())
	} else {
		ppa, ok = d.ftl.Allocate(int(pool), n.stream, d.tick())
	}
	if !ok {
		d.park(pool, t)
		return false
	}
	d.install(x, ppa, x.sectors)
	if d.cfg.Quirks.VictimsOfAll {
		d.ftl.Hold(int(x.pool), int(x.blk))
	}
	d.ftl.ProgrammedIn(int(x.pool), int(x.blk))
	if d.grains > 1 {
		d.laid(ppa)
	}
	d.laidOut++
	d.mapped++
	if d.groups != nil {
		d.came(pool, noPage)
	}
	logical, ns := x.logical, x.ns
	d.collect(int(pool)) // may create transactions and so move the slab
	if !d.cfg.Mapping.Ideal {
		d.dirtyEntry(logical, ns)
	}
	return true
}

// readUnwritten completes the read of a page without data. The controller answers with zeros, without reading flash.
//
//go:noinline
func (d *Drive) readUnwritten(t int32, x *transaction) {
	d.zeroReads++
	d.hostDone(x)
	d.freeTransaction(t)
}

// atFormula directs a read to the place where the formula, the layout in address order, puts the page.
func (d *Drive) atFormula(x *transaction) {
	n := &d.ns[x.ns]
	plane, index := n.place(x.logical - n.base)
	d.atFlash(x, plane, uint32(index))
}

// install places a transaction on ppa and makes that the place of its logical page, of which the given sectors hold
// data.
//
//go:noinline
func (d *Drive) install(x *transaction, ppa ftl.PPA, sectors uint64) {
	inBlock := d.at(x, uint32(ppa))
	d.own(x.logical, int(x.pool), int(x.blk), inBlock)
	if sectors == d.allSectors {
		sectors = 0
	}
	d.l2p.put(x.logical, uint32(ppa), sectors)
}

// reinstall places a transaction on ppa and makes that the place of its logical page, whose valid sectors do not
// change.
func (d *Drive) reinstall(x *transaction, ppa ftl.PPA) {
	d.take(x, ppa)
	d.l2p.set(x.logical, uint32(ppa))
}

// take places a transaction on ppa, which its logical page owns from now on.
func (d *Drive) take(x *transaction, ppa ftl.PPA) {
	inBlock := d.at(x, uint32(ppa))
	d.own(x.logical, int(x.pool), int(x.blk), inBlock)
}

// own records that logical page l is stored on a page.
func (d *Drive) own(l uint32, pool, blk, inBlock int) {
	d.owners.set(pool, blk, inBlock, l)
	if d.errs != nil && inBlock == 0 {
		d.blockBegun(pool, blk)
	}
}

// placeWrite allocates a page for a program. A write that leaves older sectors of its page valid needs them read first.
func (d *Drive) placeWrite(t int32, x *transaction) {
	n := &d.ns[x.ns]
	pool := int32(0)
	if d.groups == nil {
		pool = n.pool(x.logical - n.base)
	} else {
		pool = d.poolIn(n, x.logical, int(x.group))
	}
	now := d.tick()
	ppa, ok := ftl.NoPPA, false
	if n.zones != nil {
		ppa, ok = d.zonePage(x.ns, x.logical, int(pool))
	} else if d.mayWrite(int(pool)) {
		ppa, ok = d.ftl.Allocate(int(pool), int(x.stream), now)
	}
	if !ok {
		d.park(pool, t)
		return
	}
	old, part := d.l2p.look(x.logical)
	have := d.valid(old, part)
	if d.stored != nil {
		// Quirks.SectorsLost: the stored bitmap was empty, so no older sector is merged.
		if _, blank := d.stored.blank.get(x.logical); blank {
			have = 0
			d.stored.blank.remove(x.logical)
		}
	}
	update := int32(0)
	// The read of the old sectors must pin its block before the old page is invalidated below.
	if have&^x.sectors != 0 {
		update = d.leaves(t, x, old, have)
		x = d.txns.At(t)
	} else if d.errs != nil && x.sectors == d.allSectors {
		d.found(x.logical)
	}
	if old < trimmed {
		d.ftl.Invalidate(ftl.PPA(old), now)
	} else {
		d.mapped++
	}
	if d.groups != nil {
		d.came(pool, old)
	}
	d.install(x, ppa, have|x.sectors)
	if !d.cfg.Mapping.Ideal {
		d.dirtyEntry(x.logical, x.ns)
	}
	d.program(t)
	if n.zones != nil {
		d.zonePlaced(x.ns, x.logical)
	}
	if update != 0 {
		d.submitUpdate(update)
	}
	d.collect(int(pool))
}

// submitUpdate hands the read of the sectors that a partial write leaves valid to the scheduler.
//
//go:noinline
func (d *Drive) submitUpdate(t int32) { d.submit(t, d.txns.At(t)) }

// leaves handles the sectors that a partial write leaves valid. It returns the transaction that reads them, or 0 if
// none is needed.
//
//go:noinline
func (d *Drive) leaves(write int32, x *transaction, old uint32, have uint64) int32 {
	if d.grains > 1 {
		// the grain is merged in memory and programmed whole
		x.bytes = int32(bits.OnesCount64(have|x.sectors)) * nand.SectorSize
	}
	if d.grains > 1 && old < trimmed && d.inMemory(old) {
		return 0
	}
	return d.updateRead(write, old, have&^x.sectors)
}

// valid returns the sectors of a logical page that hold data, given its map entry.
func (d *Drive) valid(page uint32, sectors uint64) uint64 {
	switch {
	case page == trimmed || page == noPage && d.cfg.Initial != InitialFormula:
		return 0
	case sectors != 0:
		return sectors
	}
	return d.allSectors
}

// updateRead makes the read of the sectors that a partial write leaves valid. The write waits for it.
func (d *Drive) updateRead(write int32, old uint32, sectors uint64) int32 {
	t, x := d.newTransaction()
	w := d.txns.At(write)
	x.origin, x.request, x.logical, x.ns = fromUpdate, w.request, w.logical, w.ns
	x.sectors, x.bytes = sectors, int32(bits.OnesCount64(sectors))*nand.SectorSize
	x.queue = queueHostRead + (w.queue - queueHostWrite)
	if d.cfg.Quirks.UpdatesHigh {
		x.queue = queueHostRead + d.classOf(uint8(block.High))
	}
	x.pair = write
	w.waitsFor++
	if old < trimmed {
		d.at(x, old)
		d.pin(x)
	} else {
		d.atFormula(x)
	}
	return t
}

// park makes a host transaction wait until its pool has a free page, and gives collection a chance to provide one.
//
//go:noinline
func (d *Drive) park(pool int32, t int32) {
	w := d.parkedIn(pool)
	d.pushBack(&w.list, t)
	w.retired = d.ftl.Retired(int(pool))
	d.parked++
	d.parkings++
	d.collect(int(pool))
}

// parkedList is the queue of transactions that wait for space in a pool.
type parkedList struct {
	list
	retired int // retired blocks of the pool when the last of them started to wait
}

// parkedIn returns the transactions that wait for space in a pool. The lists are created at the first wait, because
// most drives never have one.
func (d *Drive) parkedIn(pool int32) *parkedList {
	if d.parkedLists == nil {
		d.makeParkedLists()
	}
	return &d.parkedLists[pool]
}

//go:noinline
func (d *Drive) makeParkedLists() { d.parkedLists = make([]parkedList, d.pools.count()) }

// unpark retries the writes that wait for space in a pool, in order.
func (d *Drive) unpark(pool int) {
	if d.parked == 0 {
		return
	}
	l := &d.parkedIn(int32(pool)).list
	// Take the whole list: transactions that fail again are parked at the end of an empty one.
	waiting := *l
	*l = list{}
	for t := waiting.head; t != 0; {
		next := d.txns.At(t).next
		if l.head != 0 { // one failed, so none behind it can proceed
			d.txns.At(t).prev, d.txns.At(l.tail).next = l.tail, t
			l.tail = waiting.tail
			d.txns.At(l.tail).next = 0
			return
		}
		d.parked--
		d.parkings-- // not a new wait if place parks it again
		d.place(t, d.txns.At(t))
		t = next
	}
}

// trim deallocates the pages that a request covers in full. Partly covered pages are left as they are, as NVMe allows.
func (d *Drive) trim(i int32, r *request) {
	pages := int64(0)
	d.openBatch()
	for r.cursor < r.end {
		p := d.nextPart(r)
		r.cursor += int64(p.count)
		if p.sectors != d.allSectors {
			continue
		}
		pages++
		n := &d.ns[r.ns]
		if n.cache != CacheOff {
			d.caches[n.cacheSet].drop(p.logical)
		}
		if old := d.l2p.get(p.logical); old < trimmed {
			d.vacate(old)
			d.collect(d.poolOf(old))
		}
		if d.errs != nil {
			d.found(p.logical)
		}
		d.l2p.put(p.logical, trimmed, 0)
		if !d.cfg.Mapping.Ideal {
			d.dirtyEntry(p.logical, r.ns)
		}
	}
	d.trimmedPages += pages
	if pages > 0 {
		// The map's entries are changed in DRAM.
		r.left++
		d.dram(r.ns, pages*8, evMemoryDone, uint32(i))
	}
	d.closeBatch()
	d.partDone(i, r)
}

// trimmed is the map entry of a deallocated page. Only noPage, the entry of a page never written, is above it.
const trimmed = noPage - 1

// completed finishes a transaction and resumes whatever waited for it.
//
//go:noinline
func (d *Drive) completed(t int32) {
	x := d.txns.At(t)
	if x.shared {
		d.completedAll(t)
		return
	}
	// Unpinning may be the last thing that the erase of a victim waits for.
	if x.pinned {
		pool := int(x.pool)
		d.ftl.ReadDoneIn(pool, int(x.blk))
		if x.origin != fromMove && d.mayCollect(pool) {
			d.collectAfterRead(pool)
			x = d.txns.At(t)
		}
	}
	d.accountTransaction(x)
	if d.programFails != nil && d.failedNow(x) {
		d.again(t)
		return
	}
	d.finish(t, x)
}

// collectAfterRead resumes collection in a pool whose victim could not be erased while it was being read.
//
//go:noinline
func (d *Drive) collectAfterRead(pool int) {
	if d.ftl.Collecting(pool) || d.cfg.Quirks.VictimsOfAll {
		d.collectPool(pool)
	}
}

// finish resumes whatever a transaction was made for, and frees it.
//
//go:noinline
func (d *Drive) finish(t int32, x *transaction) {
	switch x.origin {
	case fromHost:
		if x.queue >= queueMappingWrite {
			d.programmed(x)
			x = d.txns.At(t)
		} else if x.spoilt {
			d.spoiltRead(x.request)
		} else if c := d.ns[x.ns].cache; c == CacheRead || c == CacheReadWrite {
			d.cacheFill(t)
			x = d.txns.At(t)
		}
		d.hostDone(x)
	case fromCache:
		d.programmed(x)
		d.destaged(t)
		if d.zones != nil {
			d.zoneProgrammed(d.txns.At(t))
		}
	case fromUpdate:
		d.updateDone(x)
	case fromMapping:
		d.mappingDone(t)
	case fromMove:
		d.moveDone(t)
		return // which frees or reuses it
	case fromHeld:
		d.programmed(x)
	}
	d.freeTransaction(t)
}

// updateDone completes the read of the sectors that a partial write leaves valid.
//
//go:noinline
func (d *Drive) updateDone(x *transaction) {
	if x.spoilt && d.l2p.get(x.logical) == d.txns.At(x.pair).page { // else it has been rewritten since
		d.lose(x.logical)
	}
	d.released(x.pair)
}

// released notifies a program that one of the transactions it waits for has completed. The program may be on another
// die, on another channel.
//
//go:noinline
func (d *Drive) released(t int32) {
	x := d.txns.At(t)
	// A chain is represented by its first element.
	if x.joined {
		x = d.txns.At(x.prev)
	}
	x.waitsFor--
	d.touch(d.lanes[d.planes[x.plane].lane].channel)
}

// programmed reports to the translation layer that a page is on flash. Its block may thereby become the victim that
// parked transactions have been waiting for.
func (d *Drive) programmed(x *transaction) {
	pool := int(x.pool)
	if x.failed {
		d.ftl.ProgramFailed(ftl.PPA(x.page), d.tick())
	} else {
		d.ftl.ProgrammedIn(pool, int(x.blk))
	}
	d.collect(pool)
	if d.parked > 0 {
		d.unparkLate(pool)
	}
}

// unparkLate is unpark for a pool without a victim in progress that would free space.
//
//go:noinline
func (d *Drive) unparkLate(pool int) {
	if d.parkedIn(int32(pool)).head != 0 && !d.ftl.Collecting(pool) {
		d.unpark(pool)
	}
}

// hostDone completes a transaction's part of a host request.
func (d *Drive) hostDone(x *transaction) {
	i := x.request
	if i == 0 {
		return
	}
	r := d.requests.At(i)
	// The last transaction to complete determines the request's breakdown.
	if r.left == 1 {
		r.array, r.transfer = x.array, x.transfer
		r.mapping = max(0, x.queued-x.created)
		r.wait = max(0, d.eng.Now()-x.created-r.mapping-x.array-x.transfer)
		if d.OnAccount != nil {
			d.endedLast(i, x)
		}
	}
	d.partDone(i, r)
}

package ssd

import (
	"math/bits"

	"farflash/block"
	"farflash/ftl"
	"farflash/ssd/nand"
)

// accept takes a command that the controller has in full.
//
//go:noinline
func (d *Drive) accept(i int32, r *request) {
	r.accepted = d.eng.Now()
	if r.accepted != d.acceptedAt || d.accepted == 0 {
		d.accepted++
		d.acceptedAt = r.accepted
	}
	r.number = d.accepted
	r.left = 1
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

// part is the piece of a request that lies in one page.
type part struct {
	logical uint32
	sectors uint64
	count   int32
}

// pageOf returns the page that a sector of a namespace lies in.
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
	n := d.sectorsPerGrain - first - ns.shift
	if n <= 0 {
		n += d.sectorsPerGrain
	}
	n = min(n, r.end-r.cursor)
	return part{
		logical: ns.base + uint32(page),
		sectors: ^uint64(0) >> (-n & 63) << (first & 63), // a grain has 64 at most
		count:   int32(n),
	}
}

// fold maps a request beyond the namespace's last used sector back into it as MQSim does: modulo that sector, counted from the namespace's first. Native
// drives refuse such requests.
//
//go:noinline
func (n *namespace) fold(r *request) {
	left := r.end - r.cursor
	r.cursor = (n.start + r.cursor) % max(n.last, 1)
	r.end = r.cursor + left
}

// partDone ends one thing that a request waited for.
func (d *Drive) partDone(i int32, r *request) {
	if r.left--; r.left == 0 {
		d.served(i, r)
	}
}

// read sends what is in the cache from DRAM and reads the rest from flash.
//
// It stays apart, as do others with this mark: of what is inlined because a profile says so, what that calls is not.
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
	if cached > 0 {
		r.left++
		d.dram(r.ns, cached*nand.SectorSize, evMemoryDone, uint32(i))
	}
	d.dispatch()
	d.partDone(i, r)
}

// writeThrough programs a request's pages; it completes when they are on flash.
func (d *Drive) writeThrough(i int32, r *request) {
	d.gather()
	for r.cursor < r.end {
		p := d.nextPart(r)
		r.cursor += int64(p.count)
		r.left++
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

// newWrite makes the program of some sectors of a logical page.
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

// classOf maps a class to a scheduler queue; there is one queue if classes are off.
func (d *Drive) classOf(class uint8) uint8 {
	if !d.cfg.Scheduling.Classes {
		return uint8(block.High)
	}
	return class
}

// gather begins the look-ups of transactions that come together, which dispatch ends; the scheduler acts on all of them then. A peer
// sends each read of the map that they need at once, and the transactions behind it.
func (d *Drive) gather() {
	if d.cfg.Quirks.LookUpsFirst {
		d.gathering++
	} else {
		d.openBatch()
	}
}

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

// serveNow lets idle channels act on what there is, in the midst of a batch.
func (d *Drive) serveNow() {
	outer := d.batch
	d.batch = 1
	d.closeBatch()
	d.batch = outer
}

// atOnce is for what the drive sends for itself, which the peer schedules as soon as it is in its queues, but not while transactions that waited for something go on together.
func (d *Drive) atOnce() {
	if d.cfg.Quirks.LookUpsFirst && !d.together {
		d.serveNow()
	}
}

// submit hands a host transaction that has its place to the scheduler, when all that came with it have been looked up.
func (d *Drive) submit(t int32, x *transaction) {
	if d.gathering > 0 {
		d.gathered = append(d.gathered, t)
	} else {
		d.enqueue(t, x)
	}
}

// locate finds a host transaction's place on flash, if the map's entry is at
// hand, and hands it to the scheduler; otherwise it waits for the entry.
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

func (d *Drive) placeRead(t int32, x *transaction) {
	if d.errs != nil && d.isLost(x.logical) {
		d.readOfLost(t, x)
		return
	}
	if page := d.l2p.get(x.logical); page < trimmed {
		d.at(x, page)
	} else if d.unwritten(t, x, page) {
		x = d.txns.At(t)
	} else {
		return
	}
	if d.grains > 1 && d.inMemory(x.page) {
		d.fromMemory(t)
		return
	}
	d.pin(x)
	d.submitRead(t, x)
}

// readOfLost answers the read of a page whose data are gone.
//
//go:noinline
func (d *Drive) readOfLost(t int32, x *transaction) {
	d.spoiltRead(x.request)
	d.hostDone(x)
	d.freeTransaction(t)
}

// unwritten sees to the read of a page that the map has no place for: it is answered, or read where the drive's layout has it, or waits; or it gets a place now, as if it
// had been written, and then true is returned.
func (d *Drive) unwritten(t int32, x *transaction, page uint32) bool {
	n := &d.ns[x.ns]
	switch {
	case page == trimmed || d.cfg.Initial == InitialEmpty || n.zones != nil:
		d.readOfNothing(t, x)
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
	allocate := d.ftl.Allocate
	if d.cfg.Quirks.VictimsOfAll {
		allocate = d.ftl.AllocateRegardless
	}
	ppa, ok := allocate(int(pool), n.stream, d.tick())
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
	d.collect(int(pool)) // which may make transactions
	if !d.cfg.Mapping.Ideal {
		d.dirtyEntry(logical, ns)
	}
	return true
}

// readOfNothing answers the read of a page without data. The controller does so with zeros; nothing is read.
//
//go:noinline
func (d *Drive) readOfNothing(t int32, x *transaction) {
	d.zeroReads++
	d.hostDone(x)
	d.freeTransaction(t)
}

// atFormula puts a read where the drive's layout in address order has the page.
func (d *Drive) atFormula(x *transaction) {
	n := &d.ns[x.ns]
	plane, index := n.place(x.logical - n.base)
	d.atFlash(x, plane, uint32(index))
}

// install puts a transaction on ppa and makes that the place of its logical page, of which some sectors hold data.
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

// reinstall puts a transaction on ppa and makes that the place of its logical page, of which the same sectors hold data as before.
func (d *Drive) reinstall(x *transaction, ppa ftl.PPA) {
	d.take(x, ppa)
	d.l2p.set(x.logical, uint32(ppa))
}

// take puts a transaction on ppa, which its logical page owns from now on.
func (d *Drive) take(x *transaction, ppa ftl.PPA) {
	inBlock := d.at(x, uint32(ppa))
	d.own(x.logical, int(x.pool), int(x.blk), inBlock)
}

// own notes that logical page l lies on a page.
func (d *Drive) own(l uint32, pool, blk, inBlock int) {
	d.owners.set(pool, blk, inBlock, l)
	if d.errs != nil && inBlock == 0 {
		d.blockBegun(pool, blk)
	}
}

// placeWrite allocates a page for a program. A write that leaves older sectors of
// the page standing needs them read first.
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
		if _, blank := d.stored.blank.get(x.logical); blank {
			have = 0
			d.stored.blank.remove(x.logical)
		}
	}
	update := int32(0)
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

// submitUpdate hands the read of what a partial write leaves standing to the scheduler.
//
//go:noinline
func (d *Drive) submitUpdate(t int32) { d.submit(t, d.txns.At(t)) }

// leaves sees to the sectors that a partial write leaves standing, and returns the read of them, or 0 if there is nothing to be read.
//
//go:noinline
func (d *Drive) leaves(write int32, x *transaction, old uint32, have uint64) int32 {
	if d.grains > 1 {
		x.bytes = int32(bits.OnesCount64(have|x.sectors)) * nand.SectorSize // it is merged in memory and programmed whole
	}
	if d.grains > 1 && old < trimmed && d.inMemory(old) {
		return 0
	}
	return d.updateRead(write, old, have&^x.sectors)
}

// valid tells which sectors hold data of a logical page whose place the map gives so.
func (d *Drive) valid(page uint32, sectors uint64) uint64 {
	switch {
	case page == trimmed || page == noPage && d.cfg.Initial != InitialFormula:
		return 0
	case sectors != 0:
		return sectors
	}
	return d.allSectors
}

// updateRead makes the read of the sectors that a partial write leaves standing.
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

// park makes a host transaction wait until its pool has a free page. Collection may have to begin for that.
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

// parkedList is the transactions that wait for space in a pool.
type parkedList struct {
	list
	retired int // blocks of the pool that were retired when the last of them began to wait
}

// parkedIn is the list of transactions that wait for space in a pool. The lists
// come into being with the first wait: most drives never have one.
func (d *Drive) parkedIn(pool int32) *parkedList {
	if d.parkedLists == nil {
		d.makeParkedLists()
	}
	return &d.parkedLists[pool]
}

//go:noinline
func (d *Drive) makeParkedLists() { d.parkedLists = make([]parkedList, d.pools.count()) }

// unpark gives the writes that wait for space in a pool another try, in order.
func (d *Drive) unpark(pool int) {
	if d.parked == 0 {
		return
	}
	l := &d.parkedIn(int32(pool)).list
	waiting := *l
	*l = list{}
	for t := waiting.head; t != 0; {
		next := d.txns.At(t).next
		if l.head != 0 { // one could not go on, so none behind it can
			d.txns.At(t).prev, d.txns.At(l.tail).next = l.tail, t
			l.tail = waiting.tail
			d.txns.At(l.tail).next = 0
			return
		}
		d.parked--
		d.parkings--
		d.place(t, d.txns.At(t))
		t = next
	}
}

// trim deallocates the pages that a request covers in full. The rest of a page
// is left as it is, as NVMe allows.
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

// trimmed is the map's entry of a page that was deallocated. noPage, the entry of
// a page never written, is the only one above it.
const trimmed = noPage - 1

// completed ends a transaction: whoever wanted it goes on.
//
//go:noinline
func (d *Drive) completed(t int32) {
	x := d.txns.At(t)
	if x.shared {
		d.completedAll(t)
		return
	}
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

// collectAfterRead does what a pool's collection has waited for the end of a read of its victim for.
//
//go:noinline
func (d *Drive) collectAfterRead(pool int) {
	if d.ftl.Collecting(pool) || d.cfg.Quirks.VictimsOfAll {
		d.collectPool(pool)
	}
}

// finish has whoever wanted a transaction go on, and forgets it.
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
		return // which frees it, or uses it again
	case fromHeld:
		d.programmed(x)
	}
	d.freeTransaction(t)
}

// updateDone ends the read of what a partial write leaves standing.
//
//go:noinline
func (d *Drive) updateDone(x *transaction) {
	if x.spoilt && d.l2p.get(x.logical) == d.txns.At(x.pair).page { // else it was written again meanwhile
		d.lose(x.logical)
	}
	d.released(x.pair)
}

// released tells a program that one of those that it waits for has ended. It may be in another die, of another channel.
//
//go:noinline
func (d *Drive) released(t int32) {
	x := d.txns.At(t)
	if x.joined {
		x = d.txns.At(x.prev)
	}
	x.waitsFor--
	d.touch(d.lanes[d.planes[x.plane].lane].channel)
}

// programmed tells the translation layer that a page is on flash. That may make its
// block the victim which those who wait for space could not get before.
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

// unparkLate is unpark where nothing that is under way will make room.
//
//go:noinline
func (d *Drive) unparkLate(pool int) {
	if d.parkedIn(int32(pool)).head != 0 && !d.ftl.Collecting(pool) {
		d.unpark(pool)
	}
}

// hostDone ends a transaction's part of a host request.
func (d *Drive) hostDone(x *transaction) {
	i := x.request
	if i == 0 {
		return
	}
	r := d.requests.At(i)
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

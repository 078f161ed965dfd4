package ssd

import (
	"slices"

	"farflash/model/ssd/nand"
	"farflash/model/ssd/pack"
	"farflash/policy/ftl"
)

// Grains in pages of flash. The translation layer hands out places for grains in order, so those of a stream fill one
// page, then the next plane's. A page is programmed when it is full. Until then its grains are in the controller's
// memory, which is as safe as the cache. It is programmed early, as soon as its die is free and with the grains it has
// by then, if something waits for one of them: a write past the cache, a FLUSH, or a write for which the cache has no
// space while everything leaving the cache waits in such pages.

// sharedRead is the last read of the batch. The next read joins it if it belongs to the same request and page of flash.
type sharedRead struct {
	page        uint64
	first, last int32 // transactions; last is 0 if there is none
}

// ofFormula is a bit that separates pages placed by the formula from those numbered by the translation layer.
const ofFormula = 1 << 40

// formulaPage returns the page of flash where the formula puts a logical page, in the numbering of sharedRead.
func (d *Drive) formulaPage(l uint32, ns uint8) uint64 {
	n := &d.ns[ns]
	return ofFormula | n.perPage.Of(uint64(l-n.base))
}

// grainBytes returns the size of a grain in bytes.
func (d *Drive) grainBytes() int32 { return int32(d.sectorsPerGrain) * nand.SectorSize }

// link chains transaction t to last, the end of the chain of a page.
func (d *Drive) link(last, t int32) {
	y, x := d.txns.At(last), d.txns.At(t)
	first := last
	if y.joined {
		first = y.prev
	}
	y.pair = t
	x.joined, x.prev, x.pair = true, first, 0
	x.queued = d.eng.Now()
	f := d.txns.At(first)
	f.shared = true
	f.others += x.bytes
	// The chain can start only when all of its members can.
	f.waitsFor += x.waitsFor
	x.waitsFor = 0
}

// bytesOf returns the bytes that a transaction and those that share its page move over the channel.
func (d *Drive) bytesOf(t int32) int32 { return d.txns.At(t).load() }

// load returns the bytes that the first transaction of a page and those that share it move over the channel.
func (x *transaction) load() int32 { return x.bytes + x.others }

// requestOf returns the request that a transaction belongs to, or the first one in its chain.
func (d *Drive) requestOf(t int32) int32 {
	x := d.txns.At(t)
	for x.request == 0 && (x.shared || x.joined) && x.pair != 0 {
		x = d.txns.At(x.pair)
	}
	return x.request
}

// submitRead hands a located host read to the scheduler, or joins it to one of the same request and page.
func (d *Drive) submitRead(t int32, x *transaction) {
	if d.grains > 1 {
		d.submitReadOf(t, x, d.perPage.Of(uint64(x.page)))
	} else {
		d.submit(t, x)
	}
}

// submitReadOf is submitRead given the page of flash.
func (d *Drive) submitReadOf(t int32, x *transaction, page uint64) {
	if d.grains > 1 {
		if r := &d.reading; r.last != 0 && r.page == page && d.txns.At(r.first).request == x.request {
			d.link(r.last, t)
			r.last = t
			return
		}
		d.reading = sharedRead{page, t, t}
	}
	d.submit(t, x)
}

// readsWith joins the read of a move to another's if both sources lie in one page of flash, and reports whether they
// do.
func (d *Drive) readsWith(last, t int32) bool {
	if d.perPage.Of(uint64(d.txns.At(last).source)) != d.perPage.Of(uint64(d.txns.At(t).source)) {
		return false
	}
	d.link(last, t)
	return true
}

// moreOfPage reports whether grains after a move's source, in the same page of flash, hold data as well.
func (d *Drive) moreOfPage(source ftl.PPA) bool {
	for source++; source%ftl.PPA(d.grains) != 0; source++ {
		if d.ftl.IsValid(source) {
			return true
		}
	}
	return false
}

// inMemory reports whether a located grain is still in the controller's memory because its page of flash is being
// filled.
//
//go:noinline
func (d *Drive) inMemory(page uint32) bool {
	return d.packing.Find(d.poolOf(page), uint32(d.perPage.Of(uint64(page)))) != nil
}

// fromMemory reads from the controller's memory and then completes the read.
//
//go:noinline
func (d *Drive) fromMemory(t int32) {
	x := d.txns.At(t)
	d.dram(x.ns, int64(x.bytes), evFromMemory, uint32(t))
}

// program programs the data of a grain that has its place.
func (d *Drive) program(t int32) {
	x := d.txns.At(t)
	d.countGrain(x)
	if d.grains > 1 {
		d.pack(t)
		return
	}
	d.countProgram(x)
	if x.origin == fromHost || x.origin == fromCache {
		d.submit(t, x)
	} else {
		d.enqueue(t, x)
	}
}

// unpack records that a grain is no longer in a page, because that page's program failed.
func (d *Drive) unpack(t int32) {
	x := d.txns.At(t)
	if d.grains == 1 || x.origin != fromCache || d.cfg.Cache.Destage != DestageOldest {
		return
	}
	c := &d.caches[d.ns[x.ns].cacheSet]
	s := &c.slots[x.source]
	if s.packed = false; s.flying {
		c.loose++
	}
}

// countGrain counts a grain to be programmed for its namespace and its reclaim group.
func (d *Drive) countGrain(x *transaction) {
	if d.divided && x.logical < d.ns[0].mapBase { // not a mapping page
		d.countApart(x)
	}
}

// countApart is countGrain for a drive with several namespaces or groups.
//
//go:noinline
func (d *Drive) countApart(x *transaction) {
	if d.groups != nil {
		d.countInGroup(x)
	}
	switch {
	case d.byNamespace == nil:
	case x.origin == fromMove, x.origin == fromHeld:
		d.byNamespace[d.namespaceOf(x.logical)].Moved++
	default:
		d.byNamespace[x.ns].Written++
	}
}

// countProgram counts the program of a page of flash.
func (d *Drive) countProgram(x *transaction) {
	switch x.origin {
	case fromMapping:
		d.mappingPrograms++
	case fromMove, fromHeld:
		d.movePrograms++
		if x.levels || x.renews || x.folds {
			d.countReason(x)
		}
	default:
		d.hostPrograms++
		if d.isFast(x) {
			d.slc.programs++
		}
	}
}

// countReason counts the program of a move by its reason, if that is not garbage collection.
//
//go:noinline
func (d *Drive) countReason(x *transaction) {
	switch {
	case x.levels:
		d.wearPrograms++
	case x.renews:
		d.renewPrograms++
	default:
		d.slc.folds++
	}
}

// pack adds a grain to its page of flash, and queues the page when it is full or something waits for the grain.
//
//go:noinline
func (d *Drive) pack(t int32) {
	x := d.txns.At(t)
	wanted := d.isAwaited(x)
	pool := d.poolOf(x.page)
	q, in := d.perPage.Split(uint64(x.page))
	number := uint32(q)
	kind, set := pack.Other, uint8(0)
	switch x.origin {
	case fromCache:
		kind, set = pack.Cache, d.caches[d.ns[x.ns].cacheSet].set
	case fromMove:
		kind = pack.Move
	}
	// Join the chain of the page, if it has one already.
	if g := d.packing.Find(pool, number); g != nil {
		if f := d.txns.At(g.First); !g.Queued && f.queue > queueMappingWrite && f.queue < queueMoveWrite {
			f.queue = min(f.queue, x.queue) // the most urgent of the host's queues
		}
		d.link(g.Last, t)
	}
	g := d.packing.Add(pool, number, t, kind, set)
	d.packed++
	full := int32(in) == d.grains-1
	// Queue the page when it is full, or early if something waits for this grain.
	if !g.Queued && (full || wanted) {
		d.queuePage(pool, g)
	}
	if full {
		d.packing.Take(pool, number)
		d.pagesTaken++
	}
	if kind == pack.Cache {
		d.packedFrom(&d.caches[set], t)
	}
}

// packedFrom records that a grain leaving a cache is in a page. When the last grain that a FLUSH waits for is packed,
// the pages that hold such grains are queued.
func (d *Drive) packedFrom(c *cache, t int32) {
	if d.cfg.Cache.Destage == DestageOldest {
		s := &c.slots[d.txns.At(t).source]
		if s.flying && !s.packed {
			if c.loose--; c.loose == 0 {
				d.queueCached(c)
			}
		}
		s.packed = true
	}
	d.press(c)
}

// queuePage hands a page's program to the scheduler. More grains can join it until it is full or starts.
func (d *Drive) queuePage(pool int, g *pack.Page) {
	d.packing.Queue(pool, g)
	d.countProgram(d.txns.At(g.First))
	for t := g.First; t != 0; t = d.txns.At(t).pair {
		d.txns.At(t).queued = d.eng.Now()
	}
	d.submit(g.First, d.txns.At(g.First))
}

// begun handles the start of a page's program. The places left in the page are skipped.
func (d *Drive) begun(page uint32) {
	number := uint32(d.perPage.Of(uint64(page)))
	if _, ok := d.packing.Take(d.poolOf(page), number); ok {
		d.pagesTaken++
		d.ftl.Skip(ftl.PPA(number+1)*ftl.PPA(d.grains), d.tick())
	}
}

// laid records that a place was given to a read, which programs no data. It may have been the last one that its page of
// flash lacked.
func (d *Drive) laid(ppa ftl.PPA) {
	if int32(ppa%ftl.PPA(d.grains)) != d.grains-1 {
		return
	}
	pool, number := d.poolOf(uint32(ppa)), uint32(d.perPage.Of(uint64(ppa)))
	if g := d.packing.Find(pool, number); g != nil {
		if !g.Queued {
			d.queuePage(pool, g)
		}
		d.packing.Take(pool, number)
		d.pagesTaken++
	}
}

// queueCached queues all pages that hold data leaving a cache.
func (d *Drive) queueCached(c *cache) {
	if d.packing.Cached(c.set) == 0 {
		return
	}
	for pool := range d.pools.count() {
		open := d.packing.Open(pool)
		for i := range open {
			if g := &open[i]; g.Cached > 0 && g.Set == c.set && d.ns[d.txns.At(g.First).ns].zones == nil {
				d.queuePage(pool, g)
			}
		}
	}
}

// queueBlock queues the pages of a failing block, which will get no more grains.
func (d *Drive) queueBlock(b ftl.Block) {
	if d.grains == 1 {
		return
	}
	pool := int(b) / d.cfg.Geometry.BlocksPerPlane
	open := d.packing.Open(pool)
	for i := range open {
		if g := &open[i]; !g.Queued && d.ftl.BlockOf(ftl.PPA(g.Number)*ftl.PPA(d.grains)) == b {
			d.queuePage(pool, g)
		}
	}
}

// press prevents a deadlock between a write that waits for space in a cache and grains leaving that cache that wait for
// their pages to fill.
func (d *Drive) press(c *cache) {
	// If any program of the cache's pages is queued, it will free a slot.
	if d.grains == 1 || c.waiting.head == 0 || c.out == 0 || c.out != d.packing.Cached(c.set) {
		return
	}
	d.openBatch()
	d.destage(c)
	if c.dirty == 0 && c.out == d.packing.Cached(c.set) {
		d.queueCached(c)
	}
	d.closeBatch()
}

// isAwaited reports whether something waits for the program of this very grain: a host request, or, if writes wait
// during a flush, a FLUSH.
func (d *Drive) isAwaited(x *transaction) bool {
	switch x.origin {
	case fromHost:
		return true
	case fromCache:
		return d.cfg.Cache.Destage == DestageFirstTouch && d.caches[d.ns[x.ns].cacheSet].flushes.head != 0
	}
	return false
}

// hold releases the sources of a pool's moves once all moves in flight wait for their pages to fill. The data are safe,
// so the victim can be erased, and survivors never take more space than they need. It reports whether there were any.
func (d *Drive) hold(pool int) bool {
	n := d.packing.Moves(pool)
	// Other moves are still in flight and may join the pages.
	if n == 0 || n != d.moving[pool] {
		return false
	}
	d.openBatch()
	defer d.closeBatch()
	changed := d.heldPages[:0]
	d.heldPages = nil // collection of another pool may use it during the calls below
	open := d.packing.Open(pool)
	for i := range open {
		if open[i].Moves == 0 {
			continue
		}
		for t := open[i].First; t != 0; t = d.txns.At(t).pair {
			x := d.txns.At(t)
			if x.origin != fromMove {
				continue
			}
			x.origin = fromHeld
			if d.ftl.Held(x.source, ftl.PPA(x.page), d.tick()) && !d.cfg.Mapping.Ideal && x.logical < d.ns[0].mapBase {
				changed = append(changed, x.logical)
			}
		}
		d.packing.Released(pool, &open[i])
	}
	for _, l := range changed {
		d.dirtyEntry(l, d.namespaceOf(l))
	}
	d.heldPages = changed
	for range n {
		d.moveEnded(pool)
	}
	d.noteCollecting(pool)
	return true
}

// streamOf returns the stream that a page's data belong to.
func (d *Drive) streamOf(l uint32) int {
	if l < d.ns[0].mapBase {
		return d.ns[d.namespaceOf(l)].stream
	}
	i := len(d.ns) - 1
	for l < d.ns[i].mapBase {
		i--
	}
	return d.ns[i].mapping
}

// completedAll completes the transactions that share a page of flash, one by one.
func (d *Drive) completedAll(t int32) {
	first := d.txns.At(t)
	pool, array, transfer := -1, first.array, first.transfer
	if first.pinned || wrote(first.queue) || first.origin == fromMove {
		pool = d.poolOf(first.page)
	}
	d.accountTransaction(first)
	failed := d.programFails != nil && wrote(first.queue) && d.programFails(first.page)
	// Defer collection until every grain of the page has completed.
	d.chaining = true
	for t != 0 {
		x := d.txns.At(t)
		next := x.pair // read before finish, which may free x
		x.pair, x.others, x.shared, x.joined = 0, 0, false, false
		x.array, x.transfer = array, transfer
		if x.pinned {
			d.ftl.ReadDoneIn(int(x.pool), int(x.blk))
			x.pinned = false
		}
		if failed {
			d.again(t)
		} else {
			d.finish(t, x)
		}
		t = next
	}
	d.chaining = false
	if pool >= 0 {
		d.collect(pool)
		d.noteCollecting(pool)
	}
	// The grains that left the cache may have made other pools need collection.
	for len(d.postponed) > 0 {
		p := int(d.postponed[0])
		d.postponed = slices.Delete(d.postponed, 0, 1)
		if p != pool {
			d.collect(p)
			d.noteCollecting(p)
		}
	}
}

package ssd

import (
	"cmp"
	"math/bits"
	"slices"

	"farflash/model/ssd/nand"
	"farflash/policy/ftl"
)

// The demand-paged map follows DFTL (Gupta et al., ASPLOS 2009). The cached mapping table (CMT) holds single entries.
// The whole map is stored in mapping pages on flash, located by the global translation directory, which is always in
// DRAM. Evicting a dirty entry writes back all dirty entries of its mapping page.

// entry is an entry of the table. Entries are named by index; 0 is none.
type entry struct {
	logical        uint32
	prev, next     int32  // by use, most recent first; an entry that is waited for is in no list yet
	mprev, mnext   int32  // of the same mapping page
	number         uint32 // its position among the entries that its mapping page's read loads (Quirks.WaitersEvicted)
	dirty, waiting bool
}

// mappingTable is a cached mapping table.
type mappingTable struct {
	index   hash[uint32]
	entries []entry
	free    int32
	n, most int
	front   int32
	back    int32

	numbered uint32 // positions assigned so far
}

func (c *mappingTable) unlink(e int32) {
	x := &c.entries[e]
	if x.prev != 0 {
		c.entries[x.prev].next = x.next
	} else {
		c.front = x.next
	}
	if x.next != 0 {
		c.entries[x.next].prev = x.prev
	} else {
		c.back = x.prev
	}
}

func (c *mappingTable) toFront(e int32) {
	if c.front == e {
		return
	}
	c.unlink(e)
	c.pushFront(e)
}

func (c *mappingTable) pushFront(e int32) {
	x := &c.entries[e]
	x.prev, x.next = 0, c.front
	if c.front != 0 {
		c.entries[c.front].prev = e
	} else {
		c.back = e
	}
	c.front = e
}

// mappingPage is the state of one mapping page in the directory.
type mappingPage struct {
	entries  int32 // head of its cached entries
	waitHead int32 // host transactions that wait for its read
	waitTail int32
	since    uint32 // the lowest position that belongs to the read in flight (Quirks.WaitersEvicted)
	reading  bool
	leaving  bool // its program is in flight; its content is in DRAM
}

// pageState returns the state of a mapping page, for writing. The pointer is valid until the next call. Pages without
// state take no slot in the pool.
func (d *Drive) pageState(m uint32) *mappingPage {
	i, ok := d.mapIndex.get(m)
	if !ok {
		if n := len(d.freeMapPages); n > 0 {
			i = d.freeMapPages[n-1]
			d.freeMapPages = d.freeMapPages[:n-1]
			d.mapPages[i] = mappingPage{}
		} else {
			i = uint32(len(d.mapPages))
			d.mapPages = append(d.mapPages, mappingPage{})
		}
		d.mapIndex.set(m, i)
	}
	return &d.mapPages[i]
}

// peekState is pageState for reading only: it adds no slot to the pool.
func (d *Drive) peekState(m uint32) mappingPage {
	if i, ok := d.mapIndex.get(m); ok {
		return d.mapPages[i]
	}
	return mappingPage{}
}

// forgetState frees a mapping page's slot in the pool if it has no state.
func (d *Drive) forgetState(m uint32) {
	if i, ok := d.mapIndex.get(m); ok && d.mapPages[i] == (mappingPage{}) {
		d.mapIndex.remove(m)
		d.freeMapPages = append(d.freeMapPages, i)
	}
}

// mappingPageOf returns the number, over all namespaces, of the mapping page that holds a logical page's entry.
func (d *Drive) mappingPageOf(l uint32, ns uint8) uint32 {
	n := &d.ns[ns]
	return n.mapBase - d.ns[0].mapBase + (l-n.base)/d.entriesPerPage
}

// entryAtHand reports whether the map entry for a host transaction can be used now. If not, the transaction waits for
// its mapping page to be read.
func (d *Drive) entryAtHand(t int32) bool {
	x := d.txns.At(t)
	n := &d.ns[x.ns]
	c := &d.tables[n.cmt]
	if e, ok := c.index.get(x.logical); ok {
		if y := &c.entries[e]; !y.waiting {
			d.mapHits++
			c.toFront(int32(e))
			return true
		}
	}
	d.mapMisses++
	m := d.mappingPageOf(x.logical, x.ns)
	p := d.peekState(m)
	// No read is needed: the page's content is in DRAM, or the page was never written.
	if !p.reading && (p.leaving || !d.onFlash(m, x.ns)) {
		d.addEntry(x.logical, x.ns, false)
		return true
	}
	// Another transaction may already be waiting for the same entry.
	if _, ok := c.index.get(x.logical); !ok {
		d.addEntry(x.logical, x.ns, true)
	}
	x = d.txns.At(t)
	x.next = 0
	w := d.pageState(m)
	if w.waitHead == 0 {
		w.waitHead = t
	} else {
		d.txns.At(w.waitTail).next = t
	}
	w.waitTail = t
	if !w.reading || d.cfg.Quirks.WaitersEvicted && !p.reading {
		// MQSim looks up before it evicts, and the eviction may be reading the same page
		w.reading = true
		d.readMappingPage(m, x.ns, nand.SectorSize, 0)
		d.atOnce()
	}
	return false
}

// onFlash reports whether a mapping page has ever been written to flash.
func (d *Drive) onFlash(m uint32, ns uint8) bool {
	l := d.ns[0].mapBase + m
	if d.l2p.get(l) < trimmed {
		return true
	}
	// On a filled drive all mapping pages but a last, partial one are on flash from the start.
	n := &d.ns[ns]
	return (d.cfg.Initial == InitialFormula || d.cfg.Preconditioning.Fill != FillNone) && l-n.mapBase < n.stored
}

// readMappingPage reads some bytes of a mapping page; pair is the program that waits for the read, if any.
//
//go:noinline
func (d *Drive) readMappingPage(m uint32, ns uint8, bytes int32, pair int32) {
	d.openBatch()
	t, x := d.newTransaction()
	x.origin, x.ns, x.bytes, x.pair = fromMapping, ns, bytes, pair
	x.logical = d.ns[0].mapBase + m
	x.queue = queueMappingRead
	if page := d.l2p.get(x.logical); page < trimmed {
		// The grain may still be waiting in memory for its page of flash to fill.
		if d.grains > 1 && d.inMemory(page) {
			d.fromMemory(t)
			d.closeBatch()
			return
		}
		d.at(x, page)
		d.pin(x)
	} else {
		plane, index := d.mappingPlace(m, ns)
		d.atFlash(x, plane, uint32(index))
	}
	d.mappingReads++
	d.enqueue(t, x)
	d.closeBatch()
}

// mappingPool returns the pool that a mapping page is written to.
func (d *Drive) mappingPool(m uint32, ns uint8) int32 {
	n := &d.ns[ns]
	return n.pool(m - (n.mapBase - d.ns[0].mapBase))
}

// mappingPlace returns the plane and the page within it where the formula puts a mapping page: after the namespace's
// data.
func (d *Drive) mappingPlace(m uint32, ns uint8) (plane, index int32) {
	n := &d.ns[ns]
	k := m - (n.mapBase - d.ns[0].mapBase)
	plane, _ = n.place(k)
	turn := uint32(len(n.planeOf))
	k /= n.grains
	return plane, n.formulaBase[k%turn] + n.formulaPages() + int32(k/turn)
}

// addEntry adds a clean entry for a logical page to the table, evicting others as needed. The entry counts as used
// unless it is waited for. If every entry is waited for, the table exceeds its capacity, because a transaction is never
// rejected, and shrinks again once the entries have been read.
//
//go:noinline
func (d *Drive) addEntry(l uint32, ns uint8, waiting bool) int32 {
	c := &d.tables[d.ns[ns].cmt]
	for c.n >= c.most && c.back != 0 {
		d.evictEntry(c)
	}
	e := c.free
	if e != 0 {
		c.free = c.entries[e].next
		c.entries[e] = entry{logical: l}
	} else {
		e = c.newEntry(l)
	}
	c.n++
	c.index.set(l, uint32(e))
	if c.entries[e].waiting = waiting; !waiting || d.cfg.Quirks.WaitersEvicted {
		c.pushFront(e)
	}
	m := d.mappingPageOf(l, ns)
	if waiting && d.cfg.Quirks.WaitersEvicted {
		c.entries[e].number = d.turnOf(c, l, m)
	}
	// Link the entry to its mapping page, where writeBack looks for dirty entries.
	p := d.pageState(m)
	x := &c.entries[e]
	x.mnext = p.entries
	if p.entries != 0 {
		c.entries[p.entries].mprev = e
	}
	p.entries = e
	return e
}

// turnOf returns the position of a logical page's entry among those that the read of its mapping page loads. MQSim
// keeps these in one list. An entry that is evicted and written back while the read is in flight enters the list at
// that time, and keeps that position when it is requested again.
//
//go:noinline
func (d *Drive) turnOf(c *mappingTable, l, m uint32) uint32 {
	c.numbered++
	p := d.pageState(m)
	if !p.reading {
		p.since = c.numbered
	}
	if first, ok := d.asked.get(l); ok && first >= p.since {
		return first
	}
	d.asked.set(l, c.numbered)
	return c.numbered
}

//go:noinline
func (c *mappingTable) newEntry(l uint32) int32 {
	if len(c.entries) == 0 {
		c.entries = append(c.entries, entry{}) // number 0 is none
	}
	c.entries = append(c.entries, entry{logical: l})
	return int32(len(c.entries) - 1)
}

// evictEntry removes the least recently used entry without waiters, and writes its mapping page back if the entry is
// dirty. There must be one.
func (d *Drive) evictEntry(c *mappingTable) {
	e := c.back
	x := c.entries[e]
	ns := d.namespaceOf(x.logical)
	m := d.mappingPageOf(x.logical, ns)
	c.unlink(e)
	if x.mprev != 0 {
		c.entries[x.mprev].mnext = x.mnext
	} else {
		d.pageState(m).entries = x.mnext
	}
	if x.mnext != 0 {
		c.entries[x.mnext].mprev = x.mprev
	}
	c.index.remove(x.logical)
	c.entries[e].next = c.free
	c.free = e
	c.n--
	if d.stored != nil {
		d.storeSectors(&x)
	}
	if x.dirty {
		d.writeBack(c, x.logical, m, ns)
	}
	d.forgetState(m)
}

// storedSectors holds the valid-sector bitmaps of MQSim's map on flash (Quirks.SectorsLost). A bitmap is stored when
// its dirty entry is evicted. An entry that became clean because its mapping page was written back for another entry
// keeps its old bitmap on flash, and reverts to it when evicted.
type storedSectors struct {
	of    hash[uint64]
	blank hash[uint32] // pages that are mapped with an empty bitmap
}

// storeSectors stores, or reverts, the bitmap of an evicted entry.
//
//go:noinline
func (d *Drive) storeSectors(x *entry) {
	page, part := d.l2p.look(x.logical)
	if page >= trimmed || x.waiting {
		return
	}
	now := d.valid(page, part)
	if _, blank := d.stored.blank.get(x.logical); blank {
		now = 0
	}
	if x.dirty {
		d.stored.of.set(x.logical, now)
		return
	}
	was, _ := d.stored.of.get(x.logical)
	switch {
	case was == now:
	case was == 0:
		d.stored.blank.set(x.logical, 1)
	default:
		d.stored.blank.remove(x.logical)
		if was == d.allSectors {
			was = 0
		}
		d.l2p.put(x.logical, page, was)
	}
}

// namespaceOf returns the namespace that a logical page belongs to.
func (d *Drive) namespaceOf(l uint32) uint8 {
	for i := len(d.ns) - 1; i > 0; i-- {
		if l >= d.ns[i].base {
			return uint8(i)
		}
	}
	return 0
}

// dirtyEntry marks the map entry of a logical page as changed.
//
//go:noinline
func (d *Drive) dirtyEntry(l uint32, ns uint8) {
	c := &d.tables[d.ns[ns].cmt]
	e, ok := c.index.get(l)
	if !ok {
		e = uint32(d.addEntry(l, ns, false))
	}
	c.entries[e].dirty = true
}

// writeBack programs a new version of a mapping page when the entry of logical page l was evicted, after which all its
// entries are clean. Entries that are not in DRAM are first read from the old page.
func (d *Drive) writeBack(c *mappingTable, l, m uint32, ns uint8) {
	// The sectors with clean cached entries; MQSim reads those back (Quirks.MappingProgramsVanish).
	sectors := uint64(0)
	n := &d.ns[ns]
	start := n.base + (m-(n.mapBase-d.ns[0].mapBase))*d.entriesPerPage // first page whose entry is in m
	for e := d.peekState(m).entries; e != 0; e = c.entries[e].mnext {
		x := &c.entries[e]
		if x.dirty {
			x.dirty = false
			if d.cfg.Quirks.WriteBackUses && !x.waiting {
				d.used = append(d.used, uint64(x.logical)<<32|uint64(e))
			}
		} else if !x.waiting {
			sectors |= 1 << ((x.logical - start) * d.entryBytes / nand.SectorSize)
		}
	}
	// Promote in address order.
	slices.Sort(d.used)
	for _, u := range d.used {
		c.toFront(int32(uint32(u)))
	}
	d.used = d.used[:0]
	d.openBatch()
	defer d.closeBatch()
	if d.cfg.Quirks.MappingProgramsVanish {
		if d.onFlash(m, ns) {
			if d.cfg.Quirks.WaitersEvicted {
				d.turnOf(c, l, m)
			}
			d.pageState(m).reading = true
			d.readMappingPage(m, ns, int32(bits.OnesCount64(sectors))*nand.SectorSize, 0)
		}
		d.pageState(m).leaving = true
		d.moveMappingPage(m, ns)
		d.entered = true // MQSim queues the program, which it never issues, and polls the chips
		d.atOnce()
		return
	}
	if d.peekState(m).leaving {
		// The program in flight still has to copy the page from DRAM, so it includes this change. Strictly that holds
		// until its data are sent, which is approximated by its completion.
		d.mappingMerged++
		return
	}
	d.pageState(m).leaving = true
	t, x := d.newTransaction()
	x.origin, x.ns, x.bytes = fromMapping, ns, d.grainBytes()
	x.logical = d.ns[0].mapBase + m
	x.queue = queueMappingWrite
	x.sectors = d.allSectors
	// Entries that are not cached come from the old page: the program waits for its read.
	if d.onFlash(m, ns) {
		x.waitsFor = 1
		d.pageState(m).reading = true
		d.readMappingPage(m, ns, d.grainBytes(), t)
	}
	d.placeMapping(t)
	d.atOnce()
}

// placeMapping gives the program of a mapping page its physical page.
func (d *Drive) placeMapping(t int32) {
	x := d.txns.At(t)
	pool := d.mappingPool(x.logical-d.ns[0].mapBase, x.ns)
	now := d.tick()
	ppa, ok := d.ftl.Allocate(int(pool), d.ns[x.ns].mapping, now)
	if !ok {
		d.collect(int(pool))
		d.parkMapping(pool, t)
		return
	}
	if old := d.l2p.get(x.logical); old < trimmed {
		d.ftl.Invalidate(ftl.PPA(old), now)
	} else {
		d.mapped++
	}
	d.reinstall(x, ppa)
	d.program(t)
	d.collect(int(pool))
}

// moveMappingPage gives a mapping page a new place without programming it (Quirks.MappingProgramsVanish).
func (d *Drive) moveMappingPage(m uint32, ns uint8) {
	l := d.ns[0].mapBase + m
	pool := d.mappingPool(m, ns)
	now := d.tick()
	ppa, ok := d.ftl.Allocate(int(pool), d.ns[ns].mapping, now)
	if !ok {
		d.collect(int(pool))
		return
	}
	if old := d.l2p.get(l); old < trimmed {
		d.ftl.Invalidate(ftl.PPA(old), now)
	} else {
		d.mapped++
	}
	at, blk, inBlock := d.split(uint32(ppa))
	d.own(l, at, blk, inBlock)
	d.l2p.set(l, uint32(ppa))
	d.vanished++
	d.collect(int(pool))
}

// mappingDone completes the read or program of a mapping page.
//
//go:noinline
func (d *Drive) mappingDone(t int32) {
	x := d.txns.At(t)
	m := x.logical - d.ns[0].mapBase
	if x.queue == queueMappingWrite {
		d.pageState(m).leaving = false
		d.forgetState(m)
		d.programmed(x)
		return
	}
	// A new version of the page was waiting for this read of the old one.
	if x.pair != 0 {
		d.released(x.pair)
	}
	p := d.pageState(m)
	p.reading, p.since = false, 0
	c := &d.tables[d.ns[x.ns].cmt]
	waiting := p.waitHead
	p.waitHead, p.waitTail = 0, 0
	if d.cfg.Quirks.WaitersEvicted {
		if waiting = d.stillWaited(c, p, waiting); p.waitHead != 0 && !slices.Contains(d.lookout.forsaken, m) {
			d.lookout.forsaken = append(d.lookout.forsaken, m)
			d.lookLater()
		}
	}
	d.forgetState(m)
	// All waiting entries of the mapping page become usable at once.
	for w := waiting; w != 0; w = d.txns.At(w).next {
		if e, ok := c.index.get(d.txns.At(w).logical); ok && c.entries[e].waiting {
			c.entries[e].waiting = false
			if !d.cfg.Quirks.WaitersEvicted {
				c.pushFront(int32(e))
			}
		}
	}
	if d.cfg.Quirks.ReadsThenWrites {
		waiting = d.byEntry(c, waiting)
	}
	d.together = true
	for waiting != 0 {
		w := waiting
		waiting = d.txns.At(w).next
		if e, ok := c.index.get(d.txns.At(w).logical); ok {
			c.toFront(int32(e))
		}
		d.place(w, d.txns.At(w))
	}
	d.together = false
	d.atOnce()
}

// stillWaited returns the transactions whose entries are still cached. The others stay queued at the mapping page until
// another request looks their entry up.
func (d *Drive) stillWaited(c *mappingTable, p *mappingPage, waiting int32) (on int32) {
	last := int32(0)
	for w := waiting; w != 0; {
		x := d.txns.At(w)
		next := x.next
		x.next = 0
		if e, ok := c.index.get(x.logical); ok && c.entries[e].waiting {
			if last == 0 {
				on = w
			} else {
				d.txns.At(last).next = w
			}
			last = w
		} else {
			if p.waitHead == 0 {
				p.waitHead = w
			} else {
				d.txns.At(p.waitTail).next = w
			}
			p.waitTail = w
		}
		w = next
	}
	return on
}

// byEntry reorders the transactions that wait for a mapping page: those of each entry together, in the position of the
// first of them, reads before writes.
func (d *Drive) byEntry(c *mappingTable, waiting int32) int32 {
	// The key sorts by position, then reads before writes; its low half is the transaction.
	order := d.waited[:0]
	several := d.cfg.Quirks.WaitersEvicted && waiting != 0
	for w := waiting; w != 0; w = d.txns.At(w).next {
		x := d.txns.At(w)
		place := uint64(len(order))
		if e, ok := c.index.get(x.logical); ok && d.cfg.Quirks.WaitersEvicted {
			place = uint64(c.entries[e].number & (1<<31 - 1))
		}
		if first, ok := d.firstOf.get(x.logical); ok {
			place, several = uint64(first), true
		} else {
			d.firstOf.set(x.logical, uint32(place))
		}
		kind := uint64(0)
		if x.queue >= queueMoveRead {
			kind = 1
		}
		order = append(order, place<<33|kind<<32|uint64(w))
	}
	d.waited = order
	for _, o := range order {
		d.firstOf.remove(d.txns.At(int32(uint32(o))).logical)
	}
	if !several {
		return waiting
	}
	slices.SortStableFunc(order, func(a, b uint64) int { return cmp.Compare(a>>32, b>>32) })
	for i, o := range order {
		next := int32(0)
		if i+1 < len(order) {
			next = int32(uint32(order[i+1]))
		}
		d.txns.At(int32(uint32(o))).next = next
	}
	return int32(uint32(order[0]))
}

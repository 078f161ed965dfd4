package ssd

import (
	"math/bits"

	"farflash/model/ssd/nand"
	"farflash/policy/ftl"
)

// slot is a page in the data cache. Slots are named by index; 0 is none.
type slot struct {
	sectors uint64 // sectors present in the slot
	logical uint32
	prev    int32
	next    int32
	version uint32 // of its data; under DestageFirstTouch the number of the request that wrote it
	state   slotState
	ns      uint8
	class   uint8
	stream  uint8
	mark    bool // a flush waits for its dirty data
	flying  bool // a flush waits for its data in flight
	packed  bool // leaving: already in a page of flash, or waiting for one to fill
}

type slotState uint8

const (
	clean   slotState = iota
	dirty             // holds data newer than flash
	leaving           // dirty, and being written to flash
)

// cache is the data cache of the drive, or of one namespace.
type cache struct {
	index hash[uint32]
	slots []slot
	free  int32
	n     int
	most  int // capacity in slots
	set   uint8

	// order lists slots by use, least recently used first. Under DestageOldest order[dirty] holds those that are dirty
	// and not leaving, order[clean] the clean ones; under DestageFirstTouch order[clean] holds all.
	order [2]slotList
	dirty int // slots in order[dirty]

	leaving int   // pages being written to flash
	out     int32 // programs of its pages in flight
	sectors int64 // sectors being written to flash, under DestageFirstTouch

	waiting list32 // writes that wait for space
	flushes list32
	marked  int            // pages that flushes wait for
	loose   int            // those of them not yet in a page of flash
	touched []hash[uint32] // by namespace
}

// slotList is a list of slots linked by their prev and next fields.
type slotList struct{ head, tail int32 }

// list32 is a queue of requests linked by their next field.
type list32 struct{ head, tail int32 }

func (d *Drive) queueRequest(l *list32, i int32) {
	d.requests.At(i).next = 0
	if l.head == 0 {
		l.head = i
	} else {
		d.requests.At(l.tail).next = i
	}
	l.tail = i
}

// lookup returns the sectors of a page that are cached, and marks the slot as used.
func (c *cache) lookup(l uint32) uint64 {
	s, ok := c.index.get(l)
	if !ok {
		return 0
	}
	if o := c.listOf(&c.slots[s]); o >= 0 {
		c.toBack(o, int32(s))
	}
	return c.slots[s].sectors
}

// listOf returns the list a slot is in, or -1.
func (c *cache) listOf(s *slot) int {
	if s.state == leaving && c.touched == nil {
		return -1
	}
	if s.state == dirty && c.touched == nil {
		return 1
	}
	return 0
}

func (c *cache) append(o int, s int32) {
	l := &c.order[o]
	x := &c.slots[s]
	x.prev, x.next = l.tail, 0
	if l.tail != 0 {
		c.slots[l.tail].next = s
	} else {
		l.head = s
	}
	l.tail = s
}

func (c *cache) unlink(o int, s int32) {
	l := &c.order[o]
	x := &c.slots[s]
	if x.prev != 0 {
		c.slots[x.prev].next = x.next
	} else {
		l.head = x.next
	}
	if x.next != 0 {
		c.slots[x.next].prev = x.prev
	} else {
		l.tail = x.prev
	}
}

// toBack marks a slot as the most recently used of its list.
func (c *cache) toBack(o int, s int32) {
	if c.order[o].tail != s {
		c.unlink(o, s)
		c.append(o, s)
	}
}

// insert adds a slot for a page that has none. The cache must have space.
func (c *cache) insert(l uint32, ns uint8) int32 {
	s := c.free
	if s != 0 {
		c.free = c.slots[s].next
		// The version carries over, so that a program of the slot's previous data is recognised as stale.
		c.slots[s] = slot{version: c.slots[s].version + 1}
	} else {
		s = c.newSlot()
	}
	c.n++
	c.slots[s].logical, c.slots[s].ns = l, ns
	c.index.set(l, uint32(s))
	return s
}

//go:noinline
func (c *cache) newSlot() int32 {
	if len(c.slots) == 0 {
		c.slots = append(c.slots, slot{}) // number 0 is none
	}
	c.slots = append(c.slots, slot{})
	return int32(len(c.slots) - 1)
}

// discard frees a slot that is in no list.
func (c *cache) discard(s int32) {
	x := &c.slots[s]
	c.index.remove(x.logical)
	if x.mark {
		c.marked--
		c.loose--
		x.mark = false
	}
	x.next = c.free
	c.free = s
	c.n--
}

// drop removes a trimmed page from the cache. Its data in flight are superseded on flash.
func (c *cache) drop(l uint32) {
	s, ok := c.index.get(l)
	if !ok {
		return
	}
	x := &c.slots[s]
	o := c.listOf(x)
	if o < 0 || x.flying {
		// Still leaving: the slot is freed when the program completes.
		x.sectors = 0
		return
	}
	c.unlink(o, int32(s))
	if o == 1 {
		c.dirty--
	}
	c.discard(int32(s))
}

// superseded records that sectors of a page were written past the cache.
func (c *cache) superseded(l uint32, sectors uint64) {
	if s, ok := c.index.get(l); ok {
		c.slots[s].sectors |= sectors
	}
}

// cacheWrite admits as much of a write as the cache has space for. The request is served when its last part is in DRAM;
// the rest waits its turn.
func (d *Drive) cacheWrite(i int32) {
	c := &d.caches[d.ns[d.requests.At(i).ns].cacheSet]
	// Under DestageFirstTouch there is no space while a write waits, but a new write may find that a filter is due to
	// be emptied.
	behind := c.waiting.head != 0 && d.cfg.Cache.Destage != DestageFirstTouch
	if behind || !d.takeIn(c, i) {
		d.requests.At(i).roomless = d.eng.Now()
		d.queueRequest(&c.waiting, i)
		d.press(c)
	}
}

// takeIn advances a write's cursor as far as the cache has space, and reports whether it reached the end.
func (d *Drive) takeIn(c *cache, i int32) bool {
	d.openBatch()
	defer d.closeBatch()
	if d.cfg.Cache.Destage == DestageFirstTouch {
		return d.takeInFirstTouch(c, i)
	}
	r := d.requests.At(i)
	sectors := int64(0)
	for r.cursor < r.end {
		p := d.nextPart(r)
		if d.zones != nil && d.ns[r.ns].zones != nil {
			// Data for a zone that is being reset are discarded.
			if z := d.beingReset(r.ns, p.logical); z != nil {
				z.out--
				r.cursor += int64(p.count)
				continue
			}
		}
		s, ok := c.index.get(p.logical)
		if !ok {
			// A new page needs a slot: evict a clean one, or stop until destaging makes space.
			if c.n >= c.most && !c.evictClean() {
				break
			}
			s = uint32(c.insert(p.logical, r.ns))
			c.append(0, int32(s))
		}
		x := &c.slots[s]
		if o := c.listOf(x); o >= 0 {
			c.unlink(o, int32(s))
			if o == 0 {
				c.dirty++
			}
			c.append(1, int32(s))
			x.state = dirty
		} // else it is leaving, and becomes dirty again when that completes
		x.sectors |= p.sectors
		x.version++
		x.ns, x.class, x.stream = r.ns, uint8(r.class), r.placement
		sectors += int64(p.count)
		r.cursor += int64(p.count)
	}
	whole := r.cursor == r.end
	if sectors > 0 {
		r.left++
		d.dram(r.ns, sectors*nand.SectorSize, evMemoryDone, uint32(i))
	}
	d.destage(c)
	if whole {
		if d.zones != nil && d.ns[r.ns].zones != nil {
			d.settleIfReset(r.ns, r.offset)
		}
		d.partDone(i, r)
	}
	return whole
}

// evictClean frees the least recently used clean slot.
func (c *cache) evictClean() bool {
	s := c.order[0].head
	if s == 0 {
		return false
	}
	c.unlink(0, s)
	c.discard(s)
	return true
}

// destage sends the oldest dirty pages to flash while more than DestageAt of the cache is dirty or a write waits, with
// at most destageDepth in flight.
func (d *Drive) destage(c *cache) {
	for d.mayDestage(c) {
		// The grains of one page of flash leave DRAM in one transfer.
		first, last, bytes := int32(0), int32(0), int64(0)
		for n := d.grains; n > 0 && d.mayDestage(c); n-- {
			s := c.order[1].head
			c.unlink(1, s)
			c.dirty--
			x := &c.slots[s]
			x.state = leaving
			// The flush now waits for this program instead of for the slot to leave.
			if x.mark {
				x.mark, x.flying = false, true
			}
			c.leaving++
			t := d.evicted(c, s)
			x.packed = false
			d.txns.At(t).source = ftl.PPA(s)
			bytes += int64(d.txns.At(t).bytes)
			d.l2p.expect(d.txns.At(t).logical) // its place is looked up when it has left DRAM
			if first == 0 {
				first = t
			} else {
				d.txns.At(last).next = t
			}
			last = t
		}
		d.dram(d.txns.At(first).ns, bytes, evEvicted, uint32(first))
	}
}

// mayDestage reports whether the cache's oldest dirty page should be written now. Pages that wait for others to fill a
// page of flash do not count as in flight.
func (d *Drive) mayDestage(c *cache) bool {
	return c.dirty > 0 && c.leaving-int(d.packing.Cached(c.set)) < d.destageDepth &&
		(c.dirty > d.destageAt || c.waiting.head != 0 || c.marked > 0)
}

// evicted makes the program of a slot's page.
func (d *Drive) evicted(c *cache, s int32) int32 {
	x := &c.slots[s]
	t, w := d.newWrite(x.logical, x.sectors, x.ns, x.stream, x.class)
	w.origin, w.version = fromCache, x.version
	c.out++
	return t
}

// destaged handles the completion of a page that left the cache: it is on flash.
func (d *Drive) destaged(t int32) {
	x := d.txns.At(t)
	c := &d.caches[d.ns[x.ns].cacheSet]
	c.out--
	if d.cfg.Cache.Destage == DestageFirstTouch {
		d.destagedFirstTouch(c, t)
		return
	}
	c.leaving--
	si, ok := c.index.get(x.logical)
	if ok && c.slots[si].state == leaving {
		s := int32(si)
		y := &c.slots[s]
		if y.flying {
			y.flying = false
			c.marked--
		}
		switch {
		case y.sectors == 0: // trimmed in the meantime
			d.disown(x.logical)
			c.discard(s)
		case y.version != x.version: // rewritten in the meantime
			y.state = dirty
			c.append(1, s)
			c.dirty++
		case d.ns[x.ns].cache == CacheWrite:
			c.discard(s) // a pure write cache keeps no clean pages
		default:
			y.state = clean
			c.append(0, s)
		}
	}
	d.admit(c)
	d.destage(c)
	d.endFlushes(c)
}

// disown gives up the flash page of a logical page that was trimmed while its data were being written.
func (d *Drive) disown(l uint32) {
	if p := d.l2p.get(l); p < trimmed {
		d.vacate(p)
		d.l2p.put(l, trimmed, 0)
		d.collect(d.poolOf(p))
	}
}

// admit lets waiting writes continue, in order.
func (d *Drive) admit(c *cache) {
	for i := c.waiting.head; i != 0; i = c.waiting.head {
		r := d.requests.At(i)
		// roomless is the start of the wait while the write is queued, and its duration afterwards.
		next, since := r.next, r.roomless
		r.roomless = d.eng.Now() - since
		if !d.takeIn(c, i) {
			d.requests.At(i).roomless = since
			d.press(c)
			return
		}
		c.waiting.head = next
	}
}

// unwrittenPage represents, in MQSim's read cache, every page that no program wrote (Quirks.FillsNeedProgram). It
// belongs to no namespace.
const unwrittenPage = noPage - 1

// later returns the later of two wrapping sequence numbers.
func later(a, b uint32) uint32 {
	if int32(a-b) > 0 {
		return a
	}
	return b
}

// cacheFill inserts data read from flash into the cache.
func (d *Drive) cacheFill(t int32) {
	x := d.txns.At(t)
	logical := x.logical
	if x.blank {
		logical = unwrittenPage
	}
	c := &d.caches[d.ns[x.ns].cacheSet]
	if si, ok := c.index.get(logical); ok {
		s := int32(si)
		y := &c.slots[s]
		y.sectors |= x.sectors
		if d.cfg.Quirks.ReadHitDirties {
			y.state = dirty
			y.version = later(y.version, d.requests.At(x.request).number)
		}
		if o := c.listOf(y); o >= 0 {
			c.toBack(o, s)
		}
		return
	}
	if c.n >= c.most {
		if d.cfg.Cache.Destage == DestageFirstTouch {
			d.evictAny(c, x.ns)
		} else if !c.evictClean() {
			return
		}
		x = d.txns.At(t)
	}
	s := c.insert(logical, x.ns)
	c.append(0, s)
	c.slots[s].sectors = x.sectors
	if d.cfg.Quirks.ReadHitDirties {
		c.slots[s].version = d.requests.At(x.request).number
	}
	d.dram(x.ns, int64(bits.OnesCount64(x.sectors))*nand.SectorSize, evNone, 0)
}

// flush completes when all data that were dirty when it arrived are on flash.
func (d *Drive) flush(i int32, r *request) {
	if d.ns[r.ns].zones != nil {
		d.partDone(i, r) // data that a zone holds in memory are protected there
		return
	}
	c := &d.caches[d.ns[r.ns].cacheSet]
	d.queueRequest(&c.flushes, i)
	d.openBatch()
	defer d.closeBatch()
	// New writes wait behind a flush, so all dirty pages are known now.
	if d.cfg.Cache.Destage == DestageFirstTouch {
		d.queueCached(c)
		d.destageAll(c)
		d.endFlushes(c)
		return
	}
	for s := 1; s < len(c.slots); s++ {
		x := &c.slots[s]
		// A free slot keeps its old page number, so the index decides whether it is in use.
		if si, ok := c.index.get(x.logical); !ok || int(si) != s {
			continue
		}
		switch {
		case d.ns[x.ns].zones != nil: // protected where it is
		case x.state == dirty && !x.mark:
			x.mark = true
			c.marked++
			c.loose++
		case x.state == leaving && !x.flying:
			x.flying = true
			c.marked++
			if !x.packed {
				c.loose++
			}
		}
	}
	// All pages that flushes wait for are packed: do not wait for partly filled pages of flash.
	if c.loose == 0 {
		d.queueCached(c)
	}
	d.destage(c)
	d.endFlushes(c)
}

// endFlushes completes the flushes once no page that any of them waits for is left.
func (d *Drive) endFlushes(c *cache) {
	if c.marked > 0 || c.sectors > 0 {
		return
	}
	for c.flushes.head != 0 {
		i := c.flushes.head
		r := d.requests.At(i)
		c.flushes.head = r.next
		d.partDone(i, r)
	}
}

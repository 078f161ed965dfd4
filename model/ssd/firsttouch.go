package ssd

import (
	"math/bits"

	"farflash/block"
	"farflash/model/ssd/nand"
	"farflash/numeric/units"
	"farflash/sim"
)

// The first-touch destaging policy. A page is programmed at once when it is written for the first time since its
// namespace's filter was last emptied, about once a second; later writes of it stay in DRAM until they are evicted.
// Data in flight to flash are bounded by one superpage: a page of every plane.

const touchedPeriod = units.Second

// takeInFirstTouch is takeIn under this policy.
func (d *Drive) takeInFirstTouch(c *cache, i int32) bool {
	r := d.requests.At(i)
	now := d.eng.Now()
	var sectors, evictedSectors, leavingSectors int64
	evicted, lastEvicted, first, last := int32(0), int32(0), int32(0), int32(0)
	// Stop during a flush, and once a superpage is in flight. The rest of the write waits.
	for r.cursor < r.end && c.flushes.head == 0 && c.sectors+evictedSectors+leavingSectors < d.superpage {
		p := d.nextPart(r)
		si, ok := c.index.get(p.logical)
		s := int32(si)
		if !ok {
			if c.n >= c.most {
				if t := d.evictOldest(c, r.ns, queueHostWrite+d.classOf(uint8(block.Urgent))); t != 0 {
					evictedSectors += int64(d.txns.At(t).bytes) / nand.SectorSize
					if evicted == 0 {
						evicted = t
					} else {
						d.txns.At(lastEvicted).next = t
					}
					lastEvicted = t
				}
			}
			s = c.insert(p.logical, r.ns)
			c.append(0, s)
		} else {
			c.toBack(0, s)
		}
		x := &c.slots[s]
		if x.sectors |= p.sectors; ok {
			x.version = later(x.version, r.number)
		} else {
			x.version = r.number
		}
		x.state = dirty
		x.ns, x.class, x.stream = r.ns, uint8(r.class), r.placement
		sectors += int64(p.count)
		// First touch since the filter was last emptied: program the page at once.
		if _, seen := c.touched[r.ns].get(p.logical); !seen {
			c.touched[r.ns].set(p.logical, 1)
			x.state = leaving
			leavingSectors += int64(p.count)
			t, w := d.newWrite(p.logical, p.sectors, r.ns, r.placement, x.class)
			w.origin, w.version, w.next = fromCache, r.number, 0
			c.out++
			if first == 0 {
				first = t
			} else {
				d.txns.At(last).next = t
			}
			last = t
		}
		r.cursor += int64(p.count)
	}
	whole := r.cursor == r.end
	c.sectors += evictedSectors + leavingSectors
	// Evicted data are read from DRAM before they are programmed.
	if evicted != 0 {
		d.dram(r.ns, evictedSectors*nand.SectorSize, evEvicted, uint32(evicted))
	}
	if sectors > 0 {
		r.left++
		d.dram(r.ns, sectors*nand.SectorSize, evMemoryDone, uint32(i))
	}
	ns := r.ns
	// First touches are programmed straight from the host's data, without a read of DRAM.
	d.gather()
	for first != 0 {
		t := first
		first = d.txns.At(t).next
		d.locate(t, d.txns.At(t))
	}
	d.dispatch()
	clock := ns
	if d.cfg.Quirks.FiltersShareClock {
		clock = 0
	}
	if now > d.touchedReset[clock] {
		d.forgetTouched(c, ns, clock)
	}
	if whole {
		d.partDone(i, r)
	}
	return whole
}

// forgetTouched empties the filter of a namespace.
//
//go:noinline
func (d *Drive) forgetTouched(c *cache, ns, clock uint8) {
	c.touched[ns].reset()
	d.touchedReset[clock] = d.eng.Now() + touchedPeriod
}

// evictOldest frees the least recently used slot. If its data are newer than flash and not in flight, it returns the
// transaction that writes them. ns is the namespace whose page needs the space.
func (d *Drive) evictOldest(c *cache, ns, queue uint8) int32 {
	s := c.order[0].head
	c.unlink(0, s)
	x := &c.slots[s]
	logical := x.logical
	t := int32(0)
	if x.state == dirty && logical != unwrittenPage {
		if d.cfg.Quirks.EvictedAsOwn {
			d.misplace(x, ns)
		}
		t = d.evicted(c, s)
		d.txns.At(t).queue = queue
		d.txns.At(t).next = 0
	}
	// misplace changed the page for the program only.
	x.logical = logical
	c.discard(s)
	return t
}

// misplace turns a page that is evicted for one of another namespace into that namespace's page of the same number
// (Quirks.EvictedAsOwn).
func (d *Drive) misplace(x *slot, ns uint8) {
	if number := x.logical - d.ns[x.ns].base; number < d.ns[ns].pages {
		x.logical, x.ns = d.ns[ns].base+number, ns
	}
}

// evictAny makes space for a page that a namespace has read.
func (d *Drive) evictAny(c *cache, ns uint8) {
	if t := d.evictOldest(c, ns, queueHostWrite+d.classOf(uint8(block.High))); t != 0 {
		c.sectors += int64(bits.OnesCount64(d.txns.At(t).sectors))
		d.dram(ns, int64(d.txns.At(t).bytes), evEvicted, uint32(t))
	}
}

// notePrograms records pages that were programmed, and removes those of erased blocks.
//
//go:noinline
func (d *Drive) notePrograms(op operation, txns []int32) {
	for _, t := range txns {
		page := d.txns.At(t).page
		if op == opProgram {
			d.programs.set(page, 1)
			continue
		}
		for i := range d.pagesPerBlock {
			d.programs.remove(page + i)
		}
	}
}

// lookForPrograms marks reads of pages that were never programmed.
//
//go:noinline
func (d *Drive) lookForPrograms(txns []int32) {
	for _, t := range txns {
		x := d.txns.At(t)
		_, written := d.programs.get(x.page)
		x.blank = !written
	}
}

// destagedFirstTouch is destaged under this policy.
func (d *Drive) destagedFirstTouch(c *cache, t int32) {
	x := d.txns.At(t)
	c.sectors -= int64(bits.OnesCount64(x.sectors))
	if si, ok := c.index.get(x.logical); ok {
		// If no newer write has hit the slot, its data are on flash. Request numbers wrap, hence the signed difference.
		if s := int32(si); int32(x.version-c.slots[s].version) >= 0 {
			c.unlink(0, s)
			c.discard(s)
		} else {
			c.toBack(0, s) // the look-up counts as a use
		}
	}
	d.endFlushes(c)
	d.admit(c)
}

// destageAll writes every dirty page to flash, for a flush. Under this policy writes wait while a flush does, so the
// flush completes when no page is in flight.
func (d *Drive) destageAll(c *cache) {
	for s := c.order[0].head; s != 0; s = c.slots[s].next {
		x := &c.slots[s]
		if x.state != dirty || x.logical == unwrittenPage {
			continue
		}
		x.state = leaving
		t := d.evicted(c, s)
		d.txns.At(t).next = 0
		c.sectors += int64(bits.OnesCount64(x.sectors))
		d.dram(x.ns, int64(d.txns.At(t).bytes), evEvicted, uint32(t))
	}
}

// rowsHalved is MQSim's DRAM time: the double-data-rate clock moves two bursts, a transfer longer than a row counts
// half its rows, and the remainder is divided by the rate where it should be multiplied.
func (d *Drive) rowsHalved(bytes int64) sim.Time {
	m := &d.cfg.DRAM
	burst, row := int64(m.BurstSize), int64(m.RowSize)
	open := float64((m.TRCD + m.TCL) / units.Nanosecond)
	pair := 1e9 / float64(m.DataRate) // ns
	var ns float64
	if bytes <= row {
		ns = open + float64(int64(float64(bytes/burst/2)*pair))
	} else {
		perRow := float64(int64(float64(row/burst/2)*pair) + int64(m.TRP/units.Nanosecond))
		ns = open + float64(perRow*float64(bytes/row/2)) + open +
			float64(int64(float64(bytes%row)/(float64(burst)*pair)))
	}
	return units.Duration(int64(ns)) * units.Nanosecond
}

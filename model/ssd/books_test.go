package ssd

import (
	"fmt"

	"farflash/numeric/units"
)

// Books compares the drive's running counts with a walk over the same state: lists, hash tables, chains and queues,
// each of which is also recorded elsewhere. It returns the first difference.
func (d *Drive) Books() error {
	for i := range d.caches {
		if err := d.caches[i].books(); err != nil {
			return fmt.Errorf("cache %d: %w", i, err)
		}
	}
	if err := d.booksOfMap(); err != nil {
		return err
	}
	if err := d.booksOfScheduler(); err != nil {
		return err
	}
	parked := 0
	for i := range d.parkedLists {
		for t := d.parkedLists[i].head; t != 0; t = d.txns.At(t).next {
			parked++
		}
	}
	if parked != d.parked || d.parked > d.txns.Len() {
		return fmt.Errorf("%d transactions wait for a page, %d are counted, of %d", parked, d.parked, d.txns.Len())
	}
	for q := range d.queues {
		if p := &d.queues[q]; p.inFlight < 0 || p.inFlight > p.limit || p.bell-p.head > p.tail-p.head ||
			p.arrived-p.reported > p.tail-p.reported {
			return fmt.Errorf("queue %d: %+v", q, p)
		}
	}
	if err := d.booksOfGroups(); err != nil {
		return err
	}
	if d.batch != 0 || d.gathering != 0 || d.noData || d.chaining || len(d.postponed) > 0 || d.together {
		return fmt.Errorf("between events a batch is open")
	}
	return nil
}

// booksOfGroups walks the located pages: each pool must hold as many as it counts and no more than its limit, on dies
// of no other group.
func (d *Drive) booksOfGroups() error {
	if d.groups == nil {
		return nil
	}
	held := make([]int64, d.pools.count())
	groupOf := map[int]int{}
	for l := range d.ns[0].mapBase {
		page := d.l2p.get(l)
		if page >= trimmed {
			continue
		}
		pool, _, in := d.split(page)
		held[pool]++
		plane, _ := d.pools.at(pool, in)
		die := int(plane) / d.cfg.Geometry.PlanesPerDie
		if was, ok := groupOf[die]; ok && was != d.pools.group(int32(pool)) {
			return fmt.Errorf("die %d holds pages of group %d and of group %d", die, was, d.pools.group(int32(pool)))
		}
		groupOf[die] = d.pools.group(int32(pool))
	}
	for pool, n := range held {
		if g := d.groups; n != g.held[pool] || n > g.most[pool] {
			return fmt.Errorf("pool %d holds %d pages of data, %d are counted and %d may be", pool, n, g.held[pool],
				g.most[pool])
		}
	}
	return nil
}

// walk follows a list in both directions and returns its slots.
func (c *cache) walk(o int) (all []int32, err error) {
	prev := int32(0)
	for s := c.order[o].head; s != 0; s = c.slots[s].next {
		if c.slots[s].prev != prev || len(all) > c.n {
			return nil, fmt.Errorf("slot %d of list %d is behind %d, not %d", s, o, c.slots[s].prev, prev)
		}
		all = append(all, s)
		prev = s
	}
	if c.order[o].tail != prev {
		return nil, fmt.Errorf("list %d ends with %d, not %d", o, c.order[o].tail, prev)
	}
	return all, nil
}

func (c *cache) books() error {
	rest, err := c.walk(0)
	if err != nil {
		return err
	}
	unwritten, err := c.walk(1)
	if err != nil {
		return err
	}
	spare := 0
	for s := c.free; s != 0 && spare <= len(c.slots); s = c.slots[s].next {
		spare++
	}
	if c.n != c.index.n || c.n > c.most || c.n+spare != max(0, len(c.slots)-1) {
		return fmt.Errorf("%d slots of %d in use, %d in the index, %d free of %d made", c.n, c.most, c.index.n, spare,
			len(c.slots)-1)
	}
	awaited, out := 0, 0
	seen := 0
	for _, x := range c.index.cells {
		if x.key == 0 {
			continue
		}
		seen++
		s := &c.slots[x.val]
		if s.logical != x.key-1 {
			return fmt.Errorf("page %d is said to be in the slot of %d", x.key-1, s.logical)
		}
		if s.mark {
			awaited++
		}
		if s.flying {
			awaited++
		}
		if s.state == leaving {
			out++
		}
	}
	if seen != c.n {
		return fmt.Errorf("%d pages in the index of %d", seen, c.n)
	}
	if c.touched != nil { // all are in one list, in order of use
		if len(rest) != c.n || len(unwritten) != 0 || c.dirty != 0 || c.marked != 0 {
			return fmt.Errorf("%d and %d slots in lists, of %d; %d dirty, %d marked", len(rest), len(unwritten), c.n,
				c.dirty, c.marked)
		}
		return nil
	}
	if len(unwritten) != c.dirty || out != c.leaving || len(rest)+len(unwritten)+out != c.n || awaited != c.marked {
		return fmt.Errorf("%d clean, %d dirty and %d leaving of %d slots; %d dirty and %d leaving are counted; "+
			"flushes wait for %d, counted %d",
			len(rest), len(unwritten), out, c.n, c.dirty, c.leaving, awaited, c.marked)
	}
	for _, s := range unwritten {
		if c.slots[s].state != dirty {
			return fmt.Errorf("slot %d is among the dirty ones in state %d", s, c.slots[s].state)
		}
	}
	for _, s := range rest {
		if c.slots[s].state != clean || c.slots[s].mark || c.slots[s].flying {
			return fmt.Errorf("slot %d is among the clean ones: %+v", s, c.slots[s])
		}
	}
	if int(c.out) < c.leaving {
		return fmt.Errorf("%d slots are leaving, with %d programs", c.leaving, c.out)
	}
	return nil
}

// booksOfMap does not check the number of entries in a table, because entries waited for at the same time may exceed
// its capacity until the next insertion.
func (d *Drive) booksOfMap() error {
	entries := 0
	for i := range d.tables {
		c := &d.tables[i]
		waiting, ordered, prev := 0, 0, int32(0)
		for e := c.front; e != 0; e = c.entries[e].next {
			if x := &c.entries[e]; x.prev != prev || x.waiting || ordered > c.n {
				return fmt.Errorf("table %d: entry %d is behind %d, not %d", i, e, x.prev, prev)
			}
			ordered++
			prev = e
		}
		for _, x := range c.index.cells {
			if x.key == 0 {
				continue
			}
			y := &c.entries[x.val]
			ns := d.namespaceOf(y.logical)
			if y.logical != x.key-1 || y.logical >= d.ns[0].mapBase || d.ns[ns].cmt != i {
				return fmt.Errorf("table %d has page %d as %d", i, y.logical, x.key-1)
			}
			if y.waiting {
				waiting++
			}
		}
		if c.back != prev || ordered+waiting != c.n || c.n != c.index.n {
			return fmt.Errorf("table %d: %d entries in order and %d that are waited for, of %d, %d in the index", i,
				ordered, waiting, c.n, c.index.n)
		}
		if d.cfg.Mapping.Ideal && c.n > 0 {
			return fmt.Errorf("the whole map is in memory, and %d entries are cached", c.n)
		}
		entries += c.n
	}
	for _, x := range d.mapIndex.cells {
		if x.key == 0 {
			continue
		}
		m := x.key - 1
		prev := int32(0)
		p := &d.mapPages[x.val]
		ns := d.pageNamespace(m)
		c := &d.tables[d.ns[ns].cmt]
		for e := p.entries; e != 0; e = c.entries[e].mnext {
			y := &c.entries[e]
			if d.mappingPageOf(y.logical, d.namespaceOf(y.logical)) != m || y.mprev != prev {
				return fmt.Errorf("mapping page %d has the entry of page %d, behind %d", m, y.logical, y.mprev)
			}
			if entries--; entries < 0 {
				return fmt.Errorf("mapping pages have more entries than tables")
			}
			if y.waiting && !p.reading {
				return fmt.Errorf("an entry of mapping page %d is waited for, and nobody reads it", m)
			}
			prev = e
		}
		if *p == (mappingPage{}) || p.waitHead != 0 && !p.reading || (p.waitHead == 0) != (p.waitTail == 0) {
			return fmt.Errorf("mapping page %d: %+v", m, *p)
		}
	}
	if entries != 0 {
		return fmt.Errorf("%d entries are of no mapping page", entries)
	}
	return nil
}

// pageNamespace returns the namespace of a mapping page.
func (d *Drive) pageNamespace(m uint32) int {
	for i := range d.ns {
		if n := &d.ns[i]; m+d.ns[0].mapBase < n.mapBase+n.mapPages {
			return i
		}
	}
	panic("no such mapping page")
}

func (d *Drive) booksOfScheduler() error {
	var lengths, again [queues]int64 // again: reads being retried, which entered and left before
	for n := range d.lanes {
		l := &d.lanes[n]
		counts := make([]uint32, int(d.planesPerLane)*queues)
		for q := range queues {
			f := &l.queues[q]
			lengths[q] += int64(f.n)
			if (l.mask>>q&1 != 0) != (f.n > 0) {
				return fmt.Errorf("die %d: queue %s has %d and its bit is %d", n, queueNames[q], f.n, l.mask>>q&1)
			}
			for i := range f.n {
				if d.txns.At(f.at(i).txn).tries > 0 {
					again[q]++
				}
				counts[int(d.txns.At(f.at(i).txn).plane-l.firstPlane)*queues+q]++
			}
		}
		for i, want := range counts {
			plane, q := int(l.firstPlane)+i/queues, i%queues
			if got := d.planes[plane].waiting[q]; got != want {
				return fmt.Errorf("die %d: %d transactions are said to wait in queue %d of plane %d, %d do", n, got,
					q, plane, want)
			}
			each := d.cfg.Geometry.PlanesPerDie
			if said := d.wanted[plane/each*queues+q]>>(plane%each)&1 != 0; said != (want > 0) {
				return fmt.Errorf("die %d: that transactions wait in queue %d of plane %d is said to be %v, %d do", n,
					q, plane, said, want)
			}
		}
		collecting := 0
		for p := l.firstPlane; p < l.firstPlane+d.planesPerLane; p++ {
			if d.isCollecting[d.pools.of[p]] {
				collecting++
			}
		}
		if int(l.collecting) != collecting {
			return fmt.Errorf("die %d: %d of its planes collect, %d are counted", n, collecting, l.collecting)
		}
		if l.phase == idle && l.mask != 0 && l.paused.n == 0 && *l.ready>>l.readyBit&1 == 0 {
			return fmt.Errorf("die %d has work in %x and is not ready", n, l.mask)
		}
	}
	for q, s := range d.queueStats {
		if s.length != lengths[q] || s.Entered-s.Left != uint64(s.length-again[q]) || s.MaxLength < s.length ||
			uint64(s.MaxLength) > s.Entered {
			return fmt.Errorf("%s: %d wait, %d are counted; %d entered and %d left, at most %d", queueNames[q],
				lengths[q], s.length, s.Entered, s.Left, s.MaxLength)
		}
		if (s.MaxLength == 0) != (s.Entered == 0) || units.TotalOf(s.MaxWait).Minus(s.Wait).Sign() > 0 {
			return fmt.Errorf("%s: %+v", queueNames[q], s)
		}
	}
	for i := range d.moving {
		if d.moving[i] < 0 || d.moving[i] > 0 && d.packing.Moves(i) > d.moving[i] {
			return fmt.Errorf("pool %d: %d moves are under way, %d of them in pages that fill up", i, d.moving[i],
				d.packing.Moves(i))
		}
	}
	return nil
}

// partsOf is the sum of a breakdown's parts.
func partsOf(b *Breakdown) units.Total {
	var sum units.Total
	for _, x := range []units.Total{b.Queue, b.Link, b.DRAM, b.Cache, b.Mapping, b.Backlog, b.Wait, b.Array, b.Transfer,
		b.Controller} {
		sum = sum.Plus(x)
	}
	return sum
}

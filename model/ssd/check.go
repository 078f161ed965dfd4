package ssd

import (
	"fmt"
	"math/bits"

	"farflash/block"
	"farflash/policy/ftl"
)

// Check is a conservation law and whether it holds.
type Check struct {
	Name   string
	OK     bool
	Detail string
}

// InFlight returns the number of uncompleted requests.
func (d *Drive) InFlight() uint64 {
	n := uint64(d.refused.N)
	for op := range d.submitted {
		n += d.submitted[op] - d.finished[op]
	}
	return n
}

// Checks tests the conservation laws, which hold between any two events, over everything that has changed since the
// drive was made. It is meant for the end of a run.
func (d *Drive) Checks() []Check {
	var out []Check
	add := func(name string, ok bool, format string, args ...any) {
		out = append(out, Check{name, ok, fmt.Sprintf(format, args...)})
	}
	var issued, finished uint64
	for op := range block.Ops {
		issued += d.submitted[op]
		finished += d.finished[op]
	}
	held := uint64(d.requests.Len())
	add("requests conserved", issued == finished+held, "issued %d = completed %d + in flight %d", issued, finished,
		held)

	placed := d.programsUnderWay()
	inMap, err := d.walkMap()
	onFlash := d.ftl.ValidPages()
	if err != nil {
		add("valid pages are mapped pages", false, "%v", err)
	} else {
		add("valid pages are mapped pages", inMap == d.mapped && onFlash == d.mapped,
			"%d pages with a place = %d in the map, each valid on flash and owned by its page = %d valid on flash",
			d.mapped, inMap, onFlash)
	}

	// A copyback counts as a program.
	done := d.flashed[opProgram] + d.flashed[opCopyback]
	add("programs add up", done+placed == d.hostPrograms+d.movePrograms+d.mappingPrograms,
		"%d programmed + %d under way = host %d + moved %d + mapping %d", done, placed, d.hostPrograms,
		d.movePrograms, d.mappingPrograms)
	if d.grains > 1 {
		d.checkGrains(add)
	}
	if e := d.errs; e != nil {
		first := d.flashed[opRead] - e.Retries
		add("reads add up", first+e.underway == e.Sensed,
			"%d pages sensed for the first time = %d whose reads ended + %d that are read again", e.Sensed, first,
			e.underway)
	}
	err = d.ftl.CheckTouched()
	detail := "every block in one state, valid counts equal bitmaps"
	if err != nil {
		detail = err.Error()
	}
	add("translation layer consistent", err == nil, "%s", detail)
	return out
}

// checkGrains tests that each grain that the translation layer handed out since time 0 was put into exactly one page,
// and that the pages, with the grains given up, hold as many as they have places.
func (d *Drive) checkGrains(add func(name string, ok bool, format string, args ...any)) {
	s := d.ftl.Stats().Sub(d.before)
	handed := uint64(s.HostPrograms + s.GCPrograms + s.WearPrograms + s.FailurePrograms + s.RenewalPrograms +
		s.FoldPrograms)
	filling := uint64(d.packing.Grains())
	places := uint64(d.grains) * d.pagesTaken
	// Places taken by reads, or abandoned in failing blocks, are in neither count.
	exact := d.laidOut == 0 && s.Failures == 0
	ok := handed == d.packed+d.laidOut && (places == d.packed-filling+uint64(s.Skipped) || !exact)
	add("grains add up", ok,
		"%d handed out = %d in pages + %d allocated by reads; %d pages of %d = %d grains, without %d in pages that "+
			"fill up, and %d given up",
		handed, d.packed, d.laidOut, d.pagesTaken, d.grains, d.packed, filling, s.Skipped)
}

// walkMap counts the pages that have a place in the map, and checks that each place is valid and was written with that
// page. Together with the count of valid pages this makes map and flash inverses of each other.
func (d *Drive) walkMap() (mapped int64, err error) {
	if n, same := d.mapIsOwners(); same {
		return n, nil
	}
	// The drive was filled, moves are in flight, or there is an error, which a walk page by page locates.
	if d.l2p.chunks == nil {
		return d.walkChanges()
	}
	// Go pool by pool, because the places of a pool's pages are close together in memory.
	w := mapWalk{d: d}
	for i := range d.ns {
		n := &d.ns[i]
		turn := uint32(len(n.poolOf))
		for k := range turn {
			for l := k; l < n.pages; l += turn {
				w.add(n.base+l, d.l2p.get(n.base+l))
			}
		}
		for l := range n.mapPages {
			w.add(n.mapBase+l, d.l2p.get(n.mapBase+l))
		}
	}
	w.settle()
	return w.mapped, w.err
}

// mapIsOwners reports whether the map and the owners of valid flash pages contain the same pairs of page and place. It
// compares sums over hashes of the pairs, so that each side is read in its own order without look-ups. It returns false
// if the pages of a filling would have to be computed, which takes as long as walking the changes.
func (d *Drive) mapIsOwners() (mapped int64, same bool) {
	if d.l2p.filled != nil {
		return 0, false
	}
	m, o := d.l2p.pairs(), pairs{}
	c := d.ftl.Config()
	known := true
	for pool := range d.pools.count() {
		d.ftl.EachHeld(pool, func(block, page int, held uint64) {
			owners := d.owners.run(pool, block)
			if owners == nil {
				known = false
				return
			}
			first := uint32((pool*c.BlocksPerPool+block)*c.PagesPerBlock + page)
			for ; held != 0; held &= held - 1 {
				k := bits.TrailingZeros64(held)
				o.add(owners[page+k], first+uint32(k))
			}
		})
	}
	return m.n, known && m == o
}

// pairs is a set of pages and their places, represented by its size and a sum of hashes.
type pairs struct {
	n   int64
	sum uint64
}

// add adds a page and its place to the set.
func (p *pairs) add(logical, page uint32) {
	// The sum of the hashes does not depend on the order of the pairs.
	x := (uint64(logical)<<32 | uint64(page)) * 0x9e3779b97f4a7c15
	p.sum += (x ^ x>>32) * 0xd6e8feb86659fd93
	p.n++
}

// mapWalk checks places of the map. It prefetches the owners of a batch of pages, whose cache misses then overlap.
type mapWalk struct {
	d      *Drive
	mapped int64 // pages that have a place
	err    error // the first error
	n      int
	next   [32]struct {
		logical, page uint32
		owner         *uint32
	}
}

// add counts a page that has a place. Its owner is checked by a later settle.
func (w *mapWalk) add(l, page uint32) {
	if page >= trimmed {
		return
	}
	w.mapped++
	d := w.d
	pool, blk, inBlock := d.split(page)
	if !d.ftl.Holds(pool, blk, inBlock) {
		w.fail(l, page)
		return
	}
	owner := d.owners.word(pool, blk, inBlock)
	if owner == nil {
		if d.owners.get(pool, blk, inBlock) != l {
			w.fail(l, page)
		}
		return
	}
	prefetch(owner)
	if w.n == len(w.next) {
		w.settle()
	}
	x := &w.next[w.n&(len(w.next)-1)]
	w.n++
	x.logical, x.page, x.owner = l, page, owner
}

// settle checks the owners of the pages added since the last call.
func (w *mapWalk) settle() {
	for i := range w.next[:w.n] {
		if x := &w.next[i]; *x.owner != x.logical {
			w.fail(x.logical, x.page)
		}
	}
	w.n = 0
}

// fail records a place that does not hold its page.
func (w *mapWalk) fail(l, page uint32) {
	if w.err == nil {
		w.err = fmt.Errorf("page %d is mapped to physical page %d, which does not hold it", l, page)
	}
}

// walkChanges is walkMap for a map that stores only changes to a filling. Every page without a change must still be
// stored where the filling put it. It is sufficient to compare counts: a changed page must have invalidated its
// original place, so if as many original places have become invalid as filled pages have changed, they are the same
// ones.
func (d *Drive) walkChanges() (mapped int64, err error) {
	f := d.l2p.filled
	moved := int64(0)
	w := mapWalk{d: d}
	cells := d.l2p.sparse.cells
	for i := range cells {
		c := &cells[i]
		if c.key == 0 {
			continue
		}
		w.add(c.key-1, c.val.page)
		if f == nil {
			continue
		}
		if was := f.place(c.key - 1); was != noPage {
			moved++
			// Its original page must be invalid, unless the block has been erased since.
			if w.err == nil && d.ftl.Wear(d.ftl.BlockOf(ftl.PPA(was))) == 0 && d.ftl.IsValid(ftl.PPA(was)) {
				w.err = fmt.Errorf("page %d was written anew, but still lies on physical page %d", c.key-1, was)
			}
		}
	}
	w.settle()
	if mapped, err = w.mapped, w.err; f == nil {
		return mapped, err
	}
	gone := int64(0)
	for plane := range d.pools.count() {
		if d.ftl.Untouched(plane) && d.cfg.Preconditioning.Fill != FillReplay {
			continue // fill: replay changes the image itself
		}
		for blk := range f.layout.Blocks(plane) {
			written, holding := f.holding(plane, blk)
			b := ftl.Block(plane*d.cfg.Geometry.BlocksPerPlane + blk)
			if d.ftl.Wear(b) == 0 {
				holding -= d.ftl.ValidBelow(b, written)
			}
			gone += int64(holding)
		}
	}
	if err == nil && gone != moved {
		err = fmt.Errorf("%d pages that the drive was filled with are gone, but %d were written anew", gone, moved)
	}
	return f.mapped - moved + mapped, err
}

// programsUnderWay counts the programs that have a page and have not completed.
func (d *Drive) programsUnderWay() (all uint64) {
	for i := range d.lanes {
		l := &d.lanes[i]
		for q := range queues {
			if operationOf(q) == opProgram {
				all += uint64(l.queues[q].n)
			}
		}
		// A copyback has its destination from the end of its read.
		if l.op == opProgram || l.op == opCopyback && l.phase == transfer {
			all += uint64(l.n)
		}
		if l.paused.op == opProgram {
			all += uint64(l.paused.n)
		}
	}
	return all
}

// Full returns the number of transactions that wait for a free page.
func (d *Drive) Full() int { return d.parked }

// Operations returns the number of page reads and programs and block erases.
func (d *Drive) Operations() (n uint64) {
	for _, k := range d.flashed {
		n += k
	}
	return n
}

// Rounds returns how often collection has emptied each block, and the host written each page, on average.
func (d *Drive) Rounds() (collected, written float64) {
	g := &d.cfg.Geometry
	planes := int64(g.Planes())
	return float64(d.ftl.Stats().Collections) / float64(planes*int64(g.BlocksPerPlane)),
		float64(d.hostPrograms) / float64(planes*g.PagesPerPlane())
}

// Held describes what the requests of a stopped drive wait for.
func (d *Drive) Held() string {
	queued, working, mapping, waiting, flushing, unfetched := 0, 0, 0, 0, 0, 0
	for i := range d.lanes {
		l := &d.lanes[i]
		for q := range queues {
			queued += int(l.queues[q].n)
		}
		if l.phase != idle || l.paused.n > 0 {
			working++
		}
	}
	for i := range d.mapPages {
		for t := d.mapPages[i].waitHead; t != 0; t = d.txns.At(t).next {
			mapping++
		}
	}
	for i := range d.caches {
		for r := d.caches[i].waiting.head; r != 0; r = d.requests.At(r).next {
			waiting++
		}
		for r := d.caches[i].flushes.head; r != 0; r = d.requests.At(r).next {
			flushing++
		}
	}
	for i := range d.queues {
		unfetched += int(d.queues[i].tail - d.queues[i].head)
	}
	return fmt.Sprintf("%d transactions wait for a free page, %d for the flash scheduler, %d for mapping pages; %d "+
		"dies are at work; %d writes wait for the cache, %d flushes; %d commands are not fetched",
		d.parked, queued, mapping, working, waiting, flushing, unfetched)
}

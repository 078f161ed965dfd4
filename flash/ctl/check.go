package ctl

import (
	"errors"
	"fmt"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// Violation is an invariant that does not hold, and where.
type Violation struct {
	Path string // from the pool down: "segment 3/place 17", "page 12/frame 4"
	What string
}

func (v Violation) String() string { return v.Path + ": " + v.What }

// Report is the result of Check.
type Report struct {
	Violations []Violation // every violation found
	Pages      int64       // in use
	Places     int64       // examined
	Contents   int64       // pages whose content was read and matched its checksum
	Summaries  int64       // segment summaries read and compared
}

// add records a violation from an error, addf from a format.
func (r *Report) add(what error, path string, args ...any) {
	r.Violations = append(r.Violations, Violation{fmt.Sprintf(path, args...), what.Error()})
}

func (r *Report) addf(path, format string, args ...any) {
	r.Violations = append(r.Violations, Violation{path, fmt.Sprintf(format, args...)})
}

// Check verifies every invariant of the pool and reports all violations; the pool is locked meanwhile. With deep it
// then reads every page in use and every segment's summary from the devices, concurrently with other use of the pool.
// The deep part takes the lock for one segment at a time, and not while it reads.
func (p *Pool) Check(deep bool) Report {
	var r Report
	p.lock()
	c := p.core
	for i := range c.lanes {
		c.lanes[i].mu.Lock() // no lane has a frame that is neither free nor published
	}
	c.checkPages(&r)
	c.checkPlaces(&r)
	c.checkFrames(&r)
	for i := range c.lanes {
		c.lanes[i].mu.Unlock()
	}
	c.checkSegments(&r)
	c.checkStores(&r)
	if err := c.ftl.Check(); err != nil {
		r.add(err, "translation layer")
	}
	closed := p.closed
	p.leave()
	for i := range c.segments {
		if deep && !closed {
			p.checkSegment(&r, int64(i))
		}
	}
	return r
}

// checkPages verifies the mapping from the pages' side. The caller holds p.mu, as for the other checks of core.
// Lock-free gets and puts continue meanwhile; they change only references and the dirty bit, which no check depends on.
func (c *core) checkPages(r *Report) {
	reserved := int64(0) // pages in frames that have no place but count in used
	for page, w := range c.table.Words(0, media.MaxLBA-1) {
		var at ftl.PPA
		switch w.State() {
		case table.Invalid:
			continue
		case table.OnMedium:
			at = w.Place()
		default:
			if int(w.Frame()) >= len(c.frames) {
				r.addf(fmt.Sprintf("page %d", page), "is in frame %d of %d", w.Frame(), len(c.frames))
				continue
			}
			f := &c.frames[w.Frame()]
			if f.slot.Load() != c.table.Slot(page) || f.page != page {
				r.addf(fmt.Sprintf("page %d/frame %d", page, w.Frame()), "belongs to page %d", f.page)
				continue
			}
			at = f.place
			// A blank page was only read, or was trimmed: its frame has zeros, and it has reserved no space.
			blank := w.State() == table.Resident && w.Blank()
			if blank && at != ftl.NoPPA {
				r.addf(fmt.Sprintf("page %d/frame %d", page, w.Frame()), "blank, but stored at place %d", at)
			}
			if at == ftl.NoPPA && !blank {
				reserved++
			}
		}
		if at == ftl.NoPPA {
			continue
		}
		r.Pages++
		path := fmt.Sprintf("page %d/place %d", page, at)
		switch {
		case at < 0 || int64(at) >= c.ledger.Places():
			r.addf(path, "place out of range; there are %d", c.ledger.Places())
		case !c.ledger.IsLive(at):
			r.addf(path, "the place is not in use")
		default:
			if owner, known := c.ledger.Owner(at); known && owner != page {
				r.addf(path, "the place belongs to page %d", owner)
			}
		}
	}
	for i := range c.frames { // pages that were dropped while held
		_, w, ok := c.inFrame(int32(i))
		if ok && c.frames[i].page == noPage && (w.State() != table.Resident || !w.Blank()) {
			reserved++
		}
	}
	away := int64(0)
	for range c.table.AwayLeaves(0, media.MaxLBA-1) {
		away++
	}
	if away > 0 { // checkSegment compares the pages that are on the medium
		return
	}
	if r.Pages != c.ledger.Lives() {
		r.addf("pool", "%d pages have a place; the count is %d", r.Pages, c.ledger.Lives())
	}
	if used := r.Pages + reserved; used != c.used {
		r.addf("pool", "%d pages are in use or reserved; the count is %d", used, c.used)
	}
	if c.used > c.shape.Capacity+int64(len(c.frames)) {
		r.addf("pool", "%d pages are in use; the capacity is %d", c.used, c.shape.Capacity)
	}
}

// checkPlaces verifies the mapping from the medium's side. A live place must be the one that its owner's word or frame
// refers to, and must lie below the segment's allocated ones.
func (c *core) checkPlaces(r *Report) {
	n := int64(0)
	for i := range c.segments {
		segment, first := int64(i), ftl.PPA(i*c.shape.Pages)
		for k := c.ledger.NextLive(segment, 0); k < c.shape.Pages; k = c.ledger.NextLive(segment, k+1) {
			at := first + ftl.PPA(k)
			r.Places++
			n++
			path := fmt.Sprintf("segment %d/place %d", segment, k)
			// Together with checkPages: the two maps are inverses of each other.
			if to := c.Lookup(c.Owner(at)); to != at {
				r.addf(path, "belongs to page %d, which is at %d", c.Owner(at), to)
			}
			if s := &c.segments[segment]; !s.opened || k >= int(s.written) {
				r.addf(path, "is in use, but was not allocated")
			}
		}
	}
	if n != c.ledger.Lives() {
		r.addf("pool", "%d places are in use; the count is %d", n, c.ledger.Lives())
	}
}

// checkFrames verifies that each frame is either free or the frame of exactly one page. A free frame has no writes in
// flight and no waiters, because its next page would inherit them.
func (c *core) checkFrames(r *Report) {
	free := make([]bool, len(c.frames))
	found := make([]bool, len(c.frames)) // by a flush
	c.unwritten(func(at int32) { found[at] = true })
	for _, at := range c.free {
		if free[at] {
			r.addf(fmt.Sprintf("frame %d", at), "is free twice")
		}
		free[at] = true
	}
	for i := range c.lanes {
		for _, at := range c.lanes[i].free {
			if free[at] {
				r.addf(fmt.Sprintf("frame %d", at), "is free twice, in lane %d", i)
			}
			free[at] = true
		}
	}
	for _, x := range c.faults {
		for _, w := range x.then {
			if w.fn == nil {
				free[w.frame] = true
			}
		}
	}
	for i := range c.frames {
		f := &c.frames[i]
		path := fmt.Sprintf("frame %d", i)
		slot := f.slot.Load()
		switch {
		case slot == nil && !free[i]:
			r.addf(path, "is neither free nor in use")
		case slot != nil && free[i]:
			r.addf(path, "is free, but belongs to page %d", f.page)
		case slot == nil && (f.writing > 0 || len(f.waiters)+len(f.syncs)+len(f.passed)+len(f.trims) > 0):
			r.addf(path, "is free, but has %d writes in flight and %d waiters", f.writing,
				len(f.waiters)+len(f.syncs)+len(f.passed)+len(f.trims))
		case slot != nil:
			w := slot.Load()
			if !found[i] && (f.writing > 0 || w.State() == table.Resident && w.Dirty()) {
				r.addf(path, "has changes that a flush would overlook; %d writes in flight", f.writing)
			}
			if f.page == noPage && w.Refs() == 0 && w.State() == table.Resident && len(f.trims) > 0 {
				r.addf(path, "belongs to a dropped page without holders")
			}
			if (w.State() != table.Resident && w.State() != table.InFlight) || int(w.Frame()) != i {
				r.addf(path, "belongs to page %d, which is %v", f.page, w.State())
			}
		}
	}
}

// checkSegments verifies the segments' counts of places. Always programmed <= written <= Shape.Pages, and an erased
// segment has none.
func (c *core) checkSegments(r *Report) {
	for i := range c.segments {
		s := &c.segments[i]
		if int(s.written) > c.shape.Pages || s.programmed > s.written || !s.opened && s.written > 0 {
			r.addf(fmt.Sprintf("segment %d", i), "%d places were allocated and %d written; open: %v", s.written,
				s.programmed, s.opened)
		}
	}
}

// checkSegment reads a segment's pages and summary from its device. The segment is neither erased nor reused until the
// read is done.
func (p *Pool) checkSegment(r *Report, i int64) {
	c := p.core
	first := ftl.PPA(i * int64(c.shape.Pages))
	p.lock()
	if !c.segments[i].opened {
		p.leave()
		return
	}
	// The pin keeps the content of all places, live or not, until ReadDone. While checks is set, unstick does not
	// fail the writes that wait for its erase.
	c.checks++
	c.ftl.ReadStarted(first)
	var live []ftl.PPA
	for k := range c.shape.Pages {
		if at := first + ftl.PPA(k); c.ledger.IsLive(at) {
			live = append(live, at)
		}
	}
	place, n := c.places[i], c.shape.Pages
	p.leave()

	// Without the lock, the page of a place can be overwritten, trimmed or moved; only places still live afterwards are
	// reported.
	dev, buf := p.devices[place.device], device.Aligned(Page)
	wrong := map[ftl.PPA]error{}
	entries, lost := p.entriesOf(i)
	if lost != nil {
		r.add(lost, "segment %d", i)
	}
	for _, at := range live {
		err := device.Do(dev, device.Read, place.offset+int64(at-first)*Page, buf)
		if err == nil && media.Sum(c.seed, buf) != entries[at-first].Sum {
			// The sum is set before the place is live and stays until the segment is erased, so it is read without
			// the lock.
			err = ErrDamaged
		}
		if err != nil {
			wrong[at] = err
		} else {
			r.Contents++
		}
	}
	words := map[ftl.PPA]table.Word{} // of pages whose leaves are away
	for _, at := range live {
		if page := entries[at-first].Page; page > 0 {
			if w, _ := p.table.Peek(page - 1); w.Away() {
				words[at] = p.word(page - 1)
			}
		}
	}
	summary := device.Aligned(c.shape.SummaryGrains() * Page)
	read := device.Do(dev, device.Read, place.offset+int64(n)*Page, summary)

	p.lock()
	for _, at := range live {
		if err := wrong[at]; err != nil && c.ledger.IsLive(at) {
			r.add(err, "segment %d/place %d/page %d", i, at-first, entries[at-first].Page-1)
		}
		// Those whose owners or leaves are not in memory, which checkPages and checkPlaces could not compare.
		page := entries[at-first].Page - 1
		if owner, known := c.ledger.Owner(at); known && owner != page || !c.ledger.IsLive(at) {
			continue
		}
		to := at
		if w, _ := c.table.Peek(page); !w.Away() {
			to = c.Lookup(ftl.LPA(page))
		} else if w, ok := words[at]; ok && w.State() <= table.OnMedium {
			if to = w.Place(); w.State() == table.Invalid {
				to = ftl.NoPPA
			}
		}
		if to != at {
			r.addf(fmt.Sprintf("segment %d/place %d", i, at-first), "belongs to page %d, which is at %d", page, to)
		}
		own := entries[at-first].Sum
		if sum, known := c.table.Sum(page, at); known && page < media.MaxLBA && !c.table.Matches(own, sum) {
			r.addf(fmt.Sprintf("segment %d/place %d", i, at-first),
				"has checksum %08x, and %08x by the map of page %d", own, sum, page)
		}
	}
	// A summary whose write is in flight may not be on the medium yet.
	if s := &c.segments[i]; int(s.programmed) == n && c.summaries == 0 {
		c.checkSummary(r, int(i), read, summary, entries)
	}
	c.checks--
	c.ftl.ReadDone(first)
	// The segment may be waiting to be erased.
	c.advance()
	p.leave()
}

// checkSummary compares a filled segment's summary with the mapping. A summary that is missing, or belongs to an
// earlier fill, was lost in a crash. That is no violation, because the summary is redundant.
func (c *core) checkSummary(r *Report, i int, read error, buf []byte, entries []media.Entry) {
	path := fmt.Sprintf("segment %d/summary", i)
	if read != nil {
		r.add(read, "%s", path)
		return
	}
	sum, err := media.DecodeSummary(buf, c.shape.UUID, c.shape.Pages)
	switch {
	case errors.Is(err, media.ErrForeign):
		return
	case err != nil:
		r.add(err, "%s", path)
		return
	case sum.Segment != uint64(i):
		r.addf(path, "belongs to segment %d", sum.Segment)
		return
	case sum.Erases != c.segments[i].erases || sum.Session != uint64(c.segments[i].session):
		return
	}
	r.Summaries++
	first := ftl.PPA(int64(i) * int64(c.shape.Pages))
	for k, e := range sum.Entries {
		at := first + ftl.PPA(k)
		// A page renamed before the summary was written is 0 in it; a later one has its bit in renamed. The checksum
		// must match in any case, because it belongs to the place.
		if !c.ledger.IsLive(at) {
			continue
		}
		page, own := entries[k].Page-1, entries[k].Sum
		owner, named := c.ledger.Owner(at)
		held, summed := c.ledger.SumAt(at)
		if entries[k].Page == 0 && !(named && summed) {
			continue // it was written since the entries were read, and is not in memory whole any more
		}
		if named {
			page = owner
		}
		if summed {
			own = held
		}
		if e.Page != 0 && e.Page != page+1 && !c.ledger.IsRenamed(at) || e.Sum != own {
			r.addf(fmt.Sprintf("segment %d/place %d", i, k),
				"belongs to page %d with checksum %08x; the summary has page %d with %08x", page, own, e.Page-1, e.Sum)
		}
	}
}

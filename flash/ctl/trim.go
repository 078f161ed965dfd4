package ctl

import (
	"slices"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/policy/ftl"
)

// trim is a Trim in progress, which may wait for held pages.
type trim struct {
	fn   func(error)
	left int // held pages and leaves that are away, plus one during the scan
	sync bool
	err  error
	// away counts what waits for leaves, and barriers are flushes that wait for it to end.
	away     int
	barriers []*barrier
}

// beginAway and endAway count what a trim waits for, so that a flush waits for it too.
func (c *core) beginAway(t *trim) {
	t.left++
	if t.away++; t.away == 1 {
		c.trimming = append(c.trimming, t)
	}
}

func (c *core) endAway(t *trim) {
	c.trimmed(t)
	if t.away--; t.away > 0 {
		return
	}
	c.trimming = slices.DeleteFunc(c.trimming, func(x *trim) bool { return x == t })
	for _, b := range t.barriers {
		c.arrive(b)
	}
	t.barriers = nil
}

// trimPages discards the content of pages first to last. It holds p.mu throughout, so no checkpoint falls between the
// change of a page and its record.
func (c *core) trimPages(first, last uint64, sync bool, fn func(error)) {
	if c.readOnly != nil {
		c.notify(fn, c.readOnly)
		return
	}
	if !c.loggable(1 + c.awayLeaves(first, last, awayAtOnce)) {
		c.notify(fn, ErrLogFull)
		return
	}
	t := &trim{fn: fn, left: 1, sync: sync}
	c.trimHere(first, last, t, nil)
	c.trimAway(first, last, t)
	c.trimmed(t)
	c.advance()
}

// trimHere trims those pages whose leaves are in memory, but for some that were trimmed before.
func (c *core) trimHere(first, last uint64, t *trim, but *[table.LeafPages / 64]uint64) {
	var from, to uint64 // the range of one record, from its first to its last page in use; gaps in between are harmless
	any := false
	record := func() {
		if any {
			c.log(media.Record{Kind: media.Trim, LBA: from, Count: uint32(to - from + 1)})
		}
	}
	for page, slot := range c.table.Used(first, last) {
		if in := page % table.LeafPages; but != nil && but[in>>6]>>(in&63)&1 != 0 {
			record() // no record may cover it
			any = false
			continue
		}
		w := c.expel(slot)
		if w.State() == table.Invalid {
			continue
		}
		// One record covers pages with gaps between them: trimming an unused page has no effect.
		if !any || page-from >= media.MaxCount {
			record()
			from, any = page, true
		}
		to = page
		if w.State() == table.OnMedium {
			continue
		}
		// A page in a frame is trimmed once it has no holder, and no read or overwrite in flight.
		f := &c.frames[w.Frame()]
		t.left++
		f.trims = append(f.trims, t)
		if w.State() == table.Resident && w.Refs() == 0 {
			c.settleTrims(f)
		}
	}
	record()
}

// awayAtOnce is the number of leaves that a trim reads at once.
const awayAtOnce = 64

// trimAway trims those pages whose leaves are away, once they are there, some leaves at a time. Requests for
// them wait from now on until then.
func (c *core) trimAway(first, last uint64, t *trim) {
	n, window := 0, 0
	next := func() {
		if window--; window > 0 || first > last {
			return
		}
		c.beginAway(t)
		c.parked.Push(func() {
			c.trimAway(first, last, t)
			c.endAway(t)
		})
	}
	upto := last + 1
	for leaf := range c.table.AwayLeaves(first, last) {
		if n++; n > awayAtOnce {
			upto = table.FirstOf(leaf)
			break
		}
		from, to := max(first, table.FirstOf(leaf)), min(last, table.FirstOf(leaf+1)-1)
		c.beginAway(t)
		window++
		c.trimLeaf(leaf, from, to, t, next)
	}
	first = upto
}

// trimLeaf trims pages of a leaf that is away.
func (c *core) trimLeaf(leaf, from, to uint64, t *trim, then func()) {
	var here [table.LeafPages / 64]uint64 // these can have content again until then
	for page := from; page <= to; page++ {
		if in := page % table.LeafPages; !c.table.Away(page) {
			here[in>>6] |= 1 << (in & 63)
		}
	}
	c.whenPresent(leaf, faulting{fn: func(err error) {
		if err == nil {
			err = c.readOnly
		}
		if err != nil {
			t.err = err
		} else {
			c.trimHere(from, to, t, &here)
		}
		then()
		c.endAway(t)
	}})
}

// expel empties the word of a page that is in no frame. A page in a frame it marks as due, so that the read in flight
// or the last Put attends to it with p.mu. It returns the word as it was.
func (c *core) expel(slot *table.Slot) table.Word {
	for {
		w := slot.Load()
		switch w.State() {
		case table.Invalid:
			return w
		case table.OnMedium:
			if slot.Swap(w, 0) {
				c.unmap(w.Place())
				c.used--
				return w
			}
		case table.InFlight, table.Resident:
			if slot.Swap(w, w.Expect()) {
				return w
			}
		}
	}
}

// unmap drops the mapping to a place and invalidates the place in ftl.
func (c *core) unmap(p ftl.PPA) {
	c.clearLive(p)
	c.ftl.Invalidate(p, c.tick())
}

// trimmed counts one page of a trim as done.
func (c *core) trimmed(t *trim) {
	if t.left--; t.left > 0 {
		return
	}
	switch {
	case t.err != nil:
		c.notify(t.fn, t.err)
	case t.sync:
		c.await(t.fn)
	case t.fn != nil && c.readOnly == nil && c.logBusy():
		c.late.Push(t.fn) // back-pressure for callers that trim one range after another, which have no other limit
	default:
		c.notify(t.fn, nil)
	}
}

// caughtUp calls back the trims that waited for the log.
func (c *core) caughtUp() {
	for c.late.N > 0 && (c.readOnly != nil || !c.logBusy()) {
		c.notify(c.late.Pop(), nil)
	}
	for c.parked.N > 0 && (c.readOnly != nil || !c.logBusy() && c.loggable(awayAtOnce)) {
		c.parked.Pop()()
	}
}

// settleTrims trims a page that has pending trims and no holder.
func (c *core) settleTrims(f *frame) {
	if len(f.trims) == 0 {
		return
	}
	trims := f.trims
	f.trims = nil
	defer func() {
		for _, t := range trims {
			c.trimmed(t)
		}
	}()
	slot, page := f.slot.Load(), f.page
	if slot == nil && page == noPage {
		return
	}
	if slot == nil { // unreadable or given up: it is in no frame, unless a lane has begun to read it again
		switch w := c.expel(c.table.Make(page)); w.State() {
		case table.OnMedium:
			c.log(media.Record{Kind: media.Trim, LBA: page, Count: 1})
		case table.InFlight, table.Resident:
			next := &c.frames[w.Frame()]
			next.trims, trims = append(next.trims, trims...), nil
			if w.State() == table.Resident && w.Refs() == 0 {
				c.settleTrims(next)
			}
		}
		return
	}
	for {
		w := slot.Load()
		if w.State() != table.Resident {
			return // giveUp and release call settleTrims again
		}
		if w.Refs() > 0 {
			f.trims, trims = trims, nil // the last holder's Put comes here again
			return
		}
		// InFlight keeps the lock-free path away while the frame is cleared.
		if !slot.Swap(w, table.Coming(w.Frame())) {
			continue
		}
		if f.place != ftl.NoPPA {
			c.unmap(f.place)
			c.log(media.Record{Kind: media.Trim, LBA: page, Count: 1})
		}
		if !w.Blank() {
			c.used--
		}
		f.place, f.latest = ftl.NoPPA, ftl.NoPPA
		// The trim supersedes the change that these wait for. They wait for the records so far instead, which include
		// the trim's.
		for _, s := range f.syncs {
			c.granted(s)
		}
		f.syncs = nil
		clear(c.buffers[w.Frame()])
		slot.Store(table.Held(w.Frame(), 0, true))
		return
	}
}

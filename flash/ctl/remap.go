package ctl

import (
	"fmt"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/policy/ftl"
)

// Step is one change of addresses: Count pages from From on move to To, and From reads as zeros; with Drop they are
// trimmed instead. The previous contents of To are discarded. No data is copied: the pages keep their places on the
// medium and their frames in memory.
type Step struct {
	From, To, Count uint64
	Drop            bool
}

// MaxSteps is the number of steps that can be atomic together, of up to 2^32 - 1 pages each; a longer step counts as
// several.
const MaxSteps = media.RecordsPerPage

// noPage is the number of a page that was dropped while somebody held it.
const noPage = media.MaxLBA

// records returns the number of log records that a step takes.
func (s Step) records() uint64 { return (s.Count + media.MaxCount - 1) / media.MaxCount }

// check returns ErrRange for steps beyond the address space and for moves between overlapping ranges.
func (s Step) check() error {
	beyond := func(first uint64) bool { return first >= media.MaxLBA || s.Count > media.MaxLBA-first }
	switch {
	case beyond(s.From), !s.Drop && beyond(s.To):
		return ErrRange
	case !s.Drop && s.From < s.To+s.Count && s.To < s.From+s.Count:
		return fmt.Errorf("cannot move %d pages from %d to %d: the ranges overlap: %w", s.Count, s.From, s.To,
			ErrRange)
	}
	return nil
}

// Remap applies steps in order and atomically: all of them are visible to everybody when it returns, and a crash
// preserves all or none, whatever their sizes. If it returns an error, no step was applied; otherwise fn is called
// right away, or with sync once the steps are durable. It waits for parts of the map that are not in memory, so it must
// not be called from a callback. A held page follows its holder to the new address: changes are
// put there, and queued requests follow too. A page that is dropped or overwritten by a move stays with its holders
// until they put it and is then discarded. Requests queued for such a page get a private page of zeros, never the
// content that now has the address.
//
// Remap returns ErrLogFull only to callers that keep issuing steps without waiting for fn. With one outstanding call
// each, any number of callers is fine.
//
// A crash can lose a change that was not yet reported durable at the new address, exactly as it could at the old one.
func (p *Pool) Remap(steps []Step, sync bool, fn func(error)) error {
	n := uint64(0)
	for _, s := range steps {
		if err := s.check(); err != nil {
			return err
		}
		n += s.records()
	}
	if n > MaxSteps {
		return fmt.Errorf("%d steps exceed the %d that can be atomic: %w", n, MaxSteps, ErrRange)
	}
	p.lock()
	var pins []uint64
	for {
		var err error
		switch {
		case p.closed:
			err = ErrClosed
		case p.core.readOnly != nil:
			err = p.core.readOnly
		case !p.core.loggable(int(n)):
			err = ErrLogFull
		}
		fn, until := wait()
		if err == nil && !p.core.leavesFor(steps, &pins, fn) {
			break
		}
		if err == nil {
			p.leave()
			err = until()
			p.lock()
		}
		if err != nil {
			p.core.unpinAll(&pins)
			p.leave()
			return err
		}
	}
	p.core.remap(steps)
	p.core.unpinAll(&pins)
	if sync {
		p.core.await(fn)
	} else {
		p.core.notify(fn, nil)
	}
	p.core.advance()
	p.leave()
	return nil
}

// remap logs the steps as one atomic group and applies them. The records are logged first, so that a put that a step
// overtakes becomes durable together with the step. A group fits in one log page (MaxSteps), which seal does not
// divide.
func (c *core) remap(steps []Step) {
	first := len(c.records)
	for _, s := range steps {
		kind := media.Trim
		if !s.Drop {
			kind = media.Move
		}
		for done := uint64(0); done < s.Count; {
			n := min(s.Count-done, media.MaxCount)
			r := media.Record{Kind: kind, LBA: s.From + done, Count: uint32(n), Joined: true}
			if !s.Drop {
				r.PPA = s.To + done
			}
			c.log(r)
			done += n
		}
	}
	if len(c.records) > first {
		c.records[len(c.records)-1].Joined = false
	}
	for _, s := range steps {
		if s.Count == 0 {
			continue
		}
		// shift needs an empty destination.
		c.vacate(s)
		if !s.Drop {
			c.shift(s)
		}
	}
}

// vacate empties the pages that a step drops or moves others onto. A page in no frame frees its space at once, one in a
// frame when its last holder puts it.
func (c *core) vacate(s Step) {
	first := s.To
	if s.Drop {
		first = s.From
	}
	for _, slot := range c.table.Used(first, first+s.Count-1) {
		if w := c.expel(slot); w.State() >= table.InFlight {
			c.detach(slot)
		}
	}
	c.redirect(first, s.Count, func(uint64) uint64 { return noPage })
}

// redirect renames the pages of requests that wait for a frame: an earlier request follows its page, as a holder does.
func (c *core) redirect(first, count uint64, to func(page uint64) uint64) {
	for i := range c.queue.N {
		if r := c.queue.At(i); r.page >= first && r.page-first < count {
			r.page = to(r.page)
		}
	}
	for _, x := range c.faults { // or for their leaf
		for i := range x.then {
			if r := &x.then[i].request; r.fn != nil && r.page >= first && r.page-first < count {
				r.page = to(r.page)
			}
		}
	}
}

// take empties a slot, against concurrent lock-free changes, and returns its last word.
func take(slot *table.Slot) table.Word {
	for {
		if w := slot.Load(); slot.Swap(w, 0) {
			return w
		}
	}
}

// detach separates a page's frame from its address. Holders keep the page, and it is trimmed when the last of them puts
// it. The place is dead at once, but the space stays reserved until that last Put.
func (c *core) detach(slot *table.Slot) {
	w := take(slot)
	at := w.Frame()
	f := &c.frames[at]
	if f.place != ftl.NoPPA {
		c.unmap(f.place)
	}
	own := new(table.Slot)
	f.page, f.place, f.latest = noPage, ftl.NoPPA, ftl.NoPPA
	f.slot.Store(own)
	f.trims = append(f.trims, &trim{left: 1})
	for i := range f.waiters {
		f.waiters[i].page = noPage
	}
	if w.State() != table.Resident {
		own.Store(w)
		return
	}
	own.Store(w.Expect())
	if w.Refs() == 0 {
		c.settleTrims(f)
		c.evict(at)
	}
}

// shift moves the pages of a step.
func (c *core) shift(s Step) {
	for page, slot := range c.table.Used(s.From, s.From+s.Count-1) {
		if slot.Load().State() != table.Invalid {
			c.shiftPage(slot, page-s.From+s.To)
		}
	}
	c.redirect(s.From, s.Count, func(page uint64) uint64 { return page - s.From + s.To })
}

// shiftPage moves one page that has content or is in a frame. The destination is empty: vacate emptied it, and the
// ranges do not overlap. A lock-free put with the old slot fails on its word and takes the slow path, which uses the
// frame's slot.
func (c *core) shiftPage(slot *table.Slot, to uint64) {
	next := c.table.Make(to)
	next.Follow(slot)
	// With the mark, the read in flight completes by the frame's slot, which is next from here on.
	w := take(slot)
	if w.State() == table.InFlight {
		w = w.Expect()
	}
	var place ftl.PPA
	if w.State() == table.OnMedium {
		place = w.Place()
	} else {
		f := &c.frames[w.Frame()]
		place = f.place
		f.page = to
		f.slot.Store(next)
		for i := range f.waiters {
			f.waiters[i].page = to
		}
	}
	if place != ftl.NoPPA {
		c.rename(place, to)
		c.table.Note(to, place, c.sumOf(place))
	}
	next.Store(w) // last, because the lock-free path can find the page from here on
}

// rename assigns a place to a page other than the one it was written for. That it did matters to Check and summarise: a
// summary may have the earlier number.
func (c *core) rename(p ftl.PPA, page uint64) {
	if was, known := c.ledger.Owner(p); !known || was != page {
		s := c.segmentOf(p)
		c.preserve(p)
		c.segments[s].coversAll, c.segments[s].settledAll = c.ledger.Away(s), c.ledger.Away(s)
		c.ledger.SetOwner(p, page)
		c.ledger.SetRenamed(p, true)
	}
}

// shifted applies a Move record during recovery.
func (r *recovery) shifted(rec media.Record) error {
	s := Step{From: rec.LBA, To: rec.PPA, Count: uint64(rec.Count)}
	if err := s.check(); err != nil || s.Count == 0 {
		return fmt.Errorf("%d pages moved from %d to %d: %w", s.Count, s.From, s.To, ErrDamaged)
	}
	r.empty(s.To, s.Count)
	r.shift(s)
	for page := range r.dropped {
		if page >= s.From && page-s.From < s.Count {
			r.dropped[page-s.From+s.To] = true
		}
	}
	return nil
}

package ctl

import (
	"math"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
)

// Want is one page of a GetAll request.
type Want struct {
	Fn   func(Ref, error) // as for Get
	Page uint64
	Mode Mode
}

// GetAll is Get for several pages: it submits all reads to a device together, however many there are. It reorders
// wants, and does not retain it. lane is as for GetOn.
func (p *Pool) GetAll(lane uint8, wants []Want) {
	// While requests queue for frames, even pages in memory are served in queue order. Otherwise several callers that
	// each hold some pages could wait for the rest forever.
	for len(wants) > 0 && !p.core.frameWanted.Load() {
		w := &wants[0]
		r, ok := p.tryGet(lane, w.Page, w.Mode)
		if !ok {
			break
		}
		wants = wants[1:]
		w.Fn(r, nil)
	}
	if wants = p.miss(lane, wants, false); len(wants) == 0 {
		return
	}
	if p.try() {
		p.core.lane = lane
		for i := range wants { // this only queues reads and callbacks
			w := &wants[i]
			if w.Page >= media.MaxLBA {
				p.core.give(w.Fn, Ref{Page: w.Page}, ErrRange)
				continue
			}
			p.get(ask(lane, w.Page, w.Mode, w.Fn))
		}
		p.leave()
		return
	}
	b := batches.Get().(*batch)
	for i := range wants {
		w := &wants[i]
		if w.Page >= media.MaxLBA {
			b.calls = append(b.calls, call{get: w.Fn, ref: Ref{Page: w.Page}, err: ErrRange})
			continue
		}
		b.posts = append(b.posts, post{kind: postGet, lane: lane, get: ask(lane, w.Page, w.Mode, w.Fn)})
	}
	p.post(nil, b.posts...) // together, so that no other's come between
	p.carryOut(b)
	p.attend()
}

// GetExclusive is Get for reading, for a caller that has no other work until the page arrives and that is not a
// callback. If its device is otherwise idle, the page is read before GetExclusive returns, without switching threads.
func (p *Pool) GetExclusive(page uint64, fn func(Ref, error)) {
	if r, ok := p.tryGet(0, page, Reading); ok {
		fn(r, nil)
		return
	}
	if len(p.miss(0, []Want{{fn, page, Reading}}, true)) > 0 {
		p.GetOn(0, page, Reading, fn)
	}
}

// Frames returns the number of pages of memory. A caller that gets several pages before it puts any must ask for fewer.
func (p *Pool) Frames() int { return p.core.cfg.Frames }

// holds reports whether a page has content, that is, whether it was written and not trimmed since. A page without
// content reads as zeros. A page that is away may have content.
func holds(w table.Word) bool {
	return w.Away() || w.State() != table.Invalid && !(w.State() == table.Resident && w.Blank())
}

// word returns a page's word, and waits for it if its leaf is away. It stays so only if its leaf is lost.
func (p *Pool) word(page uint64) table.Word {
	w, _ := p.table.Peek(page)
	if !w.Away() {
		return w
	}
	p.lock()
	if w, _ = p.table.Peek(page); !w.Away() || p.closed {
		p.leave()
		return w
	}
	done := make(chan table.Word, 1)
	p.core.whenPresent(table.LeafOf(page), faulting{fn: func(error) {
		w, _ := p.table.Peek(page)
		done <- w
	}})
	p.leave()
	return <-done
}

// Holds reports whether a page has content. A page without content reads as zeros and takes no space. It may wait for a
// part of the map, so it must not be called from a callback; MayHold can be.
func (p *Pool) Holds(page uint64) bool { return page < media.MaxLBA && holds(p.word(page)) }

// MayHold is Holds without waiting. It also reports true if the part of the map that says so is not in memory.
func (p *Pool) MayHold(page uint64) bool {
	if page >= media.MaxLBA {
		return false
	}
	w, _ := p.table.Peek(page)
	return holds(w)
}

// Run returns the number of consecutive pages from first on, at most n, that have content if first does and lack it if
// first does not. It is at least one unless n is 0. It may wait as Holds does.
func (p *Pool) Run(first, n uint64) (pages uint64, held bool) {
	return p.run(first, n, p.Holds, func(page uint64, w table.Word) bool {
		if w.Away() {
			w = p.word(page)
		}
		return holds(w)
	})
}

// MayRun is Run with MayHold.
func (p *Pool) MayRun(first, n uint64) (pages uint64, held bool) {
	return p.run(first, n, p.MayHold, func(_ uint64, w table.Word) bool { return holds(w) })
}

func (p *Pool) run(first, n uint64, one func(page uint64) bool, is func(uint64, table.Word) bool) (uint64, bool) {
	if first >= media.MaxLBA || n == 0 {
		return n, false
	}
	last := first + min(n-1, math.MaxUint64-first)
	held := one(first) // sampled once, because it can change concurrently
	next := first + 1  // the first page not yet examined
	if next <= last {
		// Each skips pages that were never used; a gap is thus a run of pages without content.
		for page, w := range p.table.Each(next, last) {
			if held && page > next {
				break
			}
			switch is := is(page, w); {
			case held && !is:
				return page - first, held
			case !held && is:
				return page - first, held
			}
			next = page + 1
		}
	}
	if !held {
		next = last + 1
	}
	return next - first, held
}

package ctl

import (
	"math"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
)

// Want is a page that is asked for together with others.
type Want struct {
	Fn   func(Ref, error) // as of Get
	Page uint64
	Mode Mode
}

// GetAll is Get for several pages, whose reads go to the devices together: one lock, and one submission for each
// device, whatever their number. It keeps nothing of wants. lane is as of GetOn.
func (p *Pool) GetAll(lane uint8, wants []Want) {
	// Where pages are waited for, even those that are in memory are given in turn: else many who have some each could
	// wait for the rest for ever.
	for len(wants) > 0 && !p.core.hungry.Load() {
		w := &wants[0]
		r, ok := p.TryGet(w.Page, w.Mode)
		if !ok {
			break
		}
		wants = wants[1:]
		w.Fn(r, nil)
	}
	if len(wants) == 0 {
		return
	}
	p.mu.Lock()
	for i := range wants {
		w := &wants[i]
		switch {
		case w.Page >= media.MaxLBA:
			p.core.give(w.Fn, Ref{Page: w.Page}, ErrRange)
			continue
		case p.closed:
			p.core.give(w.Fn, Ref{Page: w.Page}, ErrClosed)
			continue
		}
		if w.Mode == Reading {
			p.table.Make(w.Page).CountRead()
		}
		p.core.get(ask(lane, w.Page, w.Mode, w.Fn))
	}
	p.leave()
}

// GetAlone is Get of a page to be read, for a caller that has nothing else to do until it is there, and is no
// callback: if nothing else is under way on its device it is read before GetAlone returns, without a change of
// thread.
func (p *Pool) GetAlone(page uint64, fn func(Ref, error)) {
	if r, ok := p.TryGet(page, Reading); ok {
		fn(r, nil)
		return
	}
	p.mu.Lock()
	switch {
	case page >= media.MaxLBA:
		p.core.give(fn, Ref{Page: page}, ErrRange)
	case p.closed:
		p.core.give(fn, Ref{Page: page}, ErrClosed)
	default:
		p.table.Make(page).CountRead()
		p.core.get(ask(0, page, Reading, fn))
		if ops := p.core.ops; len(ops) == 1 && ops[0].Kind == device.Read {
			ops[0].Lone = true
		}
	}
	p.leave()
}

// Frames is how many pages of memory the pool has. Who asks for several pages before he puts any asks for fewer.
func (p *Pool) Frames() int { return p.core.cfg.Frames }

// holds reports whether a page has content: it is not where it reads as zeros because nothing was ever written there,
// or was trimmed.
func holds(s *table.Slot) bool {
	if s == nil {
		return false
	}
	w := s.Load()
	return w.State() != table.Invalid && !(w.State() == table.Resident && w.Blank())
}

// Holds reports whether a page has content. If not it reads as zeros, and takes no room.
func (p *Pool) Holds(page uint64) bool { return page < media.MaxLBA && holds(p.table.Find(page)) }

// Run is how many pages from one on, at most n, are like it: have content, or do not. It is at least one, unless n is
// 0.
func (p *Pool) Run(first, n uint64) (pages uint64, held bool) {
	if first >= media.MaxLBA || n == 0 {
		return n, false
	}
	last := first + min(n-1, math.MaxUint64-first)
	held = p.Holds(first) // looked at once: it may change meanwhile
	next := first + 1     // the first page that was not looked at
	if next <= last {
		for page, slot := range p.table.Used(next, last) {
			if held && (page > next || !holds(slot)) {
				break
			}
			if !held && holds(slot) {
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

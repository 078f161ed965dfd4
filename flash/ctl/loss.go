package ctl

import "fmt"

// losses records, in order, the writes that failed after they had been accepted, so that every user they concern learns
// of them, no matter who flushes first.
type losses struct {
	count      uint64 // of losses so far, and the number of the newest
	recent     [lossesKept]loss
	older      hull // losses no longer in recent
	unreported hull // those of older that were never reported
	watches    map[*watch]struct{}
}

// hull summarises many losses: the number of the newest, 0 if there are none, and the range of pages that contains them
// all.
type hull struct{ number, first, last uint64 }

// add extends the hull by a loss. Numbers must ascend.
func (h *hull) add(number, page uint64) {
	if h.number == 0 {
		h.first, h.last = page, page
	}
	h.number, h.first, h.last = number, min(h.first, page), max(h.last, page)
}

// concerns reports whether any of them might be in the user's range.
func (h *hull) concerns(u *User) bool { return h.number > 0 && h.first <= u.last && h.last >= u.first }

// loss is one page whose latest content did not reach the medium.
type loss struct {
	page     uint64
	err      error
	reported bool // reported by some user's Flush
}

// lossesKept is the number of losses recorded by page. For older ones a user can get a false report, if its range was
// not hit but lies between pages that were.
const lossesKept = 256

// watch is a callback that runs as soon as a page of its range is lost.
type watch struct {
	first, last uint64
	fn          func(error)
}

// User writes to a range of the pool and asks whether it is durable: a connection, say, or an open file. Each user gets
// each loss in its range since it began, or last asked, reported once, whether or not other users had it reported.
type User struct {
	pool        *Pool
	first, last uint64 // pages
	seen        uint64 // number of the last loss that was reported to it or preceded it
}

// span returns the pages that contain n bytes from at on.
func span(at, n uint64) (first, last uint64) {
	return at / Page, (at + min(max(n, 1)-1, ^uint64(0)-at)) / Page
}

// User returns a user of n bytes from at on. It also gets earlier losses there that were never reported, because the
// writer of those pages may have reconnected as this user.
func (p *Pool) User(at, n uint64) *User {
	u := &User{pool: p}
	u.first, u.last = span(at, n)
	p.lock()
	defer p.leave()
	l := &p.core.losses
	if u.seen = l.count; l.unreported.concerns(u) {
		u.seen = l.unreported.number - 1
		return u
	}
	for i := l.oldest(); i <= l.count; i++ {
		if x := l.at(i); !x.reported && x.page >= u.first && x.page <= u.last {
			u.seen = i - 1
			break
		}
	}
	return u
}

// Flush calls fn once every earlier put and trim, by any user, is durable, with an error if a write to the user's range
// was lost.
func (u *User) Flush(fn func(error)) {
	p := u.pool
	p.lock()
	if p.closed {
		p.leave()
		fn(ErrClosed)
		return
	}
	p.core.flush(u, fn)
	p.leave()
}

// Sync is Flush and waits for it.
func (u *User) Sync() error {
	fn, until := wait()
	u.Flush(fn)
	return until()
}

// Watch calls fn on each loss of a write to n bytes from at on, as soon as it happens and on any goroutine. A call
// already in flight when stop returns can still arrive. Watching does not count as a report: users still get theirs.
func (p *Pool) Watch(at, n uint64, fn func(error)) (stop func()) {
	w := &watch{fn: fn}
	w.first, w.last = span(at, n)
	p.lock()
	defer p.leave()
	l := &p.core.losses
	if l.watches == nil {
		l.watches = map[*watch]struct{}{}
	}
	l.watches[w] = struct{}{}
	return func() {
		p.lock()
		defer p.leave()
		delete(l.watches, w)
	}
}

// at returns a loss by number. recent is a ring.
func (l *losses) at(number uint64) *loss { return &l.recent[number%lossesKept] }

// oldest returns the number of the oldest loss in recent.
func (l *losses) oldest() uint64 { return max(1, l.count+1-min(l.count, lossesKept)) }

// lose records that the latest content of a page will not reach the medium. A writer that waits for the page learns of
// it directly; this record is for other users who wrote part of it.
func (c *core) lose(page uint64, err error) {
	if page == noPage {
		return // it was dropped in the meantime
	}
	c.losses.count++
	x := c.losses.at(c.losses.count)
	// The ring is full: the loss that is overwritten, number count - lossesKept, joins the hulls.
	if x.err != nil {
		c.losses.older.add(c.losses.count-lossesKept, x.page)
		if !x.reported {
			c.losses.unreported.add(c.losses.count-lossesKept, x.page)
		}
	}
	*x = loss{page: page, err: err}
	for w := range c.losses.watches {
		if page >= w.first && page <= w.last {
			c.notify(w.fn, err)
		}
	}
}

// reportLosses returns the error that a user who knows of the losses up to since gets, and marks all losses as known
// to it.
func (c *core) reportLosses(u *User, since uint64) error {
	l := &c.losses
	if since >= l.count {
		return nil
	}
	var first error
	n := 0
	for i := max(since+1, l.oldest()); i <= l.count; i++ {
		if x := l.at(i); x.page >= u.first && x.page <= u.last {
			x.reported = true
			if n++; first == nil {
				first = x.err
			}
		}
	}
	u.seen = l.count
	// Part of the hull may lie outside the user's range, so only a user of all of it clears it.
	if l.unreported.number > 0 && u.first <= l.unreported.first && u.last >= l.unreported.last {
		l.unreported = hull{}
	}
	switch {
	case since < l.older.number && l.older.concerns(u):
		return fmt.Errorf("more pages were lost than are recorded individually; the most recent one: %w",
			l.at(l.count).err)
	case n > 1:
		return fmt.Errorf("%d pages were lost; the first: %w", n, first)
	}
	return first
}

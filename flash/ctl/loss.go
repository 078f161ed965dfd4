package ctl

import "fmt"

// losses are writes that came to nothing after they had been taken, in order, so that everybody whom one concerns
// learns of it, whoever asks first.
type losses struct {
	count   uint64 // of all; the newest has this number
	recent  [lossesKept]loss
	older   hull // those that are no longer in recent
	untold  hull // of these, those that nobody was told of
	watches map[*watch]struct{}
}

// hull is what is kept of many losses: the newest one's number, 0 if there is none, and the pages between which they
// all are.
type hull struct{ number, first, last uint64 }

func (h *hull) add(number, page uint64) {
	if h.number == 0 {
		h.first, h.last = page, page
	}
	h.number, h.first, h.last = number, min(h.first, page), max(h.last, page)
}

// concerns reports whether some of them may be a user's.
func (h *hull) concerns(u *User) bool { return h.number > 0 && h.first <= u.last && h.last >= u.first }

// loss is one page whose newest content did not reach the medium.
type loss struct {
	page uint64
	err  error
	told bool // somebody's Flush has said so
}

// lossesKept is how many are told by page. Of older ones somebody may be told whose range was not hit, if it lies
// among others that were.
const lossesKept = 256

// watch is somebody who is called at once.
type watch struct {
	first, last uint64
	fn          func(error)
}

// User is somebody who writes to a range of the pool and asks whether it is durable: a connection, say, or a file
// that is open. Each user is told of each loss in his range since he began, or last asked, once, whoever else was
// told of it.
type User struct {
	pool        *Pool
	first, last uint64 // pages
	seen        uint64 // number of the last loss that he was told of, or began after
}

// span is the pages that some bytes are in.
func span(at, n uint64) (first, last uint64) {
	return at / Page, (at + min(max(n, 1)-1, ^uint64(0)-at)) / Page
}

// User returns a user of n bytes from at on. What was lost there before, and nobody was told of, he will be: whoever
// wrote it may have come back as him.
func (p *Pool) User(at, n uint64) *User {
	u := &User{pool: p}
	u.first, u.last = span(at, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.core.losses
	if u.seen = l.count; l.untold.concerns(u) {
		u.seen = l.untold.number - 1
		return u
	}
	for i := l.oldest(); i <= l.count; i++ {
		if x := l.at(i); !x.told && x.page >= u.first && x.page <= u.last {
			u.seen = i - 1
			break
		}
	}
	return u
}

// Flush calls fn when everything that was put or trimmed before, by anybody, is durable; or with an error if some of
// what was in the user's range was lost.
func (u *User) Flush(fn func(error)) {
	p := u.pool
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		fn(ErrClosed)
		return
	}
	p.core.flush(u, fn)
	p.leave()
}

// Sync is Flush, waited for.
func (u *User) Sync() error {
	fn, until := wait()
	u.Flush(fn)
	return until()
}

// Watch has fn called as soon as a write to n bytes from at on is lost, each time, on any goroutine, until stop has
// returned and once more if it was on its way. Who watches is not thereby told: users are, too.
func (p *Pool) Watch(at, n uint64, fn func(error)) (stop func()) {
	w := &watch{fn: fn}
	w.first, w.last = span(at, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.core.losses
	if l.watches == nil {
		l.watches = map[*watch]struct{}{}
	}
	l.watches[w] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(l.watches, w)
	}
}

func (l *losses) at(number uint64) *loss { return &l.recent[number%lossesKept] }

// oldest is the number of the oldest that is kept.
func (l *losses) oldest() uint64 { return max(1, l.count+1-min(l.count, lossesKept)) }

// lose notes that what was last put to a page will not be on the medium. Somebody may have been told who waited for
// it; others may have had a part in it.
func (c *core) lose(page uint64, err error) {
	if page == nowhere {
		return // it was dropped meanwhile
	}
	c.losses.count++
	x := c.losses.at(c.losses.count)
	if x.err != nil {
		c.losses.older.add(c.losses.count-lossesKept, x.page)
		if !x.told {
			c.losses.untold.add(c.losses.count-lossesKept, x.page)
		}
	}
	*x = loss{page: page, err: err}
	for w := range c.losses.watches {
		if page >= w.first && page <= w.last {
			c.tell(w.fn, err)
		}
	}
}

// told is what a user is to be told who knows of losses up to a number, and that he knows of all from now on.
func (c *core) told(u *User, since uint64) error {
	l := &c.losses
	if since >= l.count {
		return nil
	}
	var first error
	n := 0
	for i := max(since+1, l.oldest()); i <= l.count; i++ {
		if x := l.at(i); x.page >= u.first && x.page <= u.last {
			x.told = true
			if n++; first == nil {
				first = x.err
			}
		}
	}
	u.seen = l.count
	if l.untold.number > 0 && u.first <= l.untold.first && u.last >= l.untold.last {
		l.untold = hull{}
	}
	switch {
	case since < l.older.number && l.older.concerns(u):
		return fmt.Errorf("pages were lost, more than are kept apart; the last one of all: %w", l.at(l.count).err)
	case n > 1:
		return fmt.Errorf("%d pages were lost; the first one: %w", n, first)
	}
	return first
}

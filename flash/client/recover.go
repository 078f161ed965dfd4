package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"farflash/flash/client/resume"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/wire"
)

// errSilent is the reason why guard has closed a connection.
var errSilent = errors.New("the server does not answer")

// resumes reports whether a link is replaced when it is lost.
func (c *Client) resumes(l *link) bool { return c.cfg.Reconnect.Limit > 0 && l.instance != "" }

// run handles completions, and replaces lost connections, until the client ends.
func (c *Client) run(l *link) {
	r := &c.cfg.Reconnect
	backoff := resume.NewBackoff(resume.Times{Limit: int64(r.Limit), First: int64(r.First), Cap: int64(r.Cap),
		Seed: r.Seed})
	err := error(nil)
	for l != nil {
		c.take(l)
		l, err = c.replace(l, l.why(), backoff)
	}
	c.mu.Lock()
	c.end = fmt.Errorf("client: %w", err)
	for i := range c.slots {
		c.fail(i, err)
	}
	close(c.up)
	c.mu.Unlock()
	c.cancel()
	close(c.over)
}

// replace returns the link that follows one that was lost for the given reason, or the reason why there is none.
func (c *Client) replace(l *link, why error, backoff *resume.Backoff) (*link, error) {
	for {
		pending, resumes := c.lost(l, why)
		switch {
		case c.ctx.Err() != nil:
			return nil, verbs.ErrClosed
		case !resumes && c.cfg.Reconnect.Limit > 0:
			return nil, fmt.Errorf("%w; the server is too old for a client to reconnect", why)
		case !resumes:
			return nil, why
		case !pending && !c.cfg.Named:
			backoff.Answered() // no operation waited for an answer
			select {
			case <-c.want:
			case <-c.ctx.Done():
				return nil, verbs.ErrClosed
			}
		case l.answered:
			backoff.Answered()
		}
		backoff.Missed(int64(c.now()))
		if l, why = c.another(why, backoff); l == nil {
			return nil, why
		}
		if c.again(l) {
			return l, nil
		}
		why = l.why()
	}
}

// another attempts to connect until it succeeds or the outage has lasted too long.
func (c *Client) another(why error, backoff *resume.Backoff) (*link, error) {
	for {
		at, until, ok := backoff.Next()
		if !ok {
			return nil, fmt.Errorf("no connection for %v: %w", c.cfg.Reconnect.Limit, why)
		}
		pause := time.NewTimer(time.Duration(at) - c.now())
		select {
		case <-pause.C:
		case <-c.ctx.Done():
			pause.Stop()
			return nil, verbs.ErrClosed
		}
		ctx, cancel := context.WithTimeout(c.ctx, min(c.cfg.Reconnect.Attempt, time.Duration(until)-c.now()))
		l, err := c.connect(ctx)
		cancel()
		if err == nil {
			return l, nil
		}
		if errors.Is(err, ErrFenced) {
			return nil, err
		}
		why = err
		backoff.Failed(int64(c.now()))
	}
}

// lost ends the operations on a link that has ended which are not sent again. It reports whether any are, and whether
// the link is replaced.
func (c *Client) lost(l *link, why error) (pending, resumes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == l {
		c.link, c.up = nil, make(chan struct{})
	}
	c.sending = nil
	close(l.gone)
	resumes = c.resumes(l) && c.ctx.Err() == nil
	var t verbs.Terminated
	fault := errors.As(why, &t) && t.Remote
	if fault {
		// The server has reported a fault in an operation, or the loss of an earlier write. If the operations were
		// executed again, they might cause it again, and the loss would not be reported.
		for e := range c.files {
			e.lost = e.lost || e.dirty > 0
		}
		c.ledger.Drop(func(kept) bool { return true })
	}
	limit, now := c.cfg.Reconnect.Limit, c.now()
	for i := range c.slots {
		s := &c.slots[i]
		switch f := c.ledger.Fate(i); {
		case f == resume.Idle:
		case f == resume.Unknown, fault, !resumes:
			c.fail(i, why)
		case f == resume.Done:
			c.ledger.End(i)
			s.done <- verbs.Completion{}
		case s.leaving != nil:
			c.fail(i, s.leaving)
		case s.since > 0 && now-s.since > limit:
			c.fail(i, fmt.Errorf("connections were lost for %v: %w", limit, why))
		default:
			pending = true
			if s.since == 0 {
				s.since = now
			}
		}
	}
	return pending || c.ledger.Kept() > 0, resumes
}

// fail ends a slot's operation, if there is one, with an error. c.mu is locked.
func (c *Client) fail(i int, err error) {
	switch c.ledger.Fate(i) {
	case resume.Idle:
		return
	case resume.Unknown:
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	c.ledger.End(i)
	c.slots[i].done <- verbs.Completion{Err: err}
}

// again sends operations again on a new link, in their order and before others are sent, and makes it the current one.
// It reports false if the link was lost before that.
func (c *Client) again(l *link) bool {
	c.mu.Lock()
	for i := range c.slots {
		if s := &c.slots[i]; c.ledger.Fate(i) != resume.Idle && s.file.err != nil {
			c.fail(i, s.file.err)
		}
	}
	c.ledger.Drop(func(k kept) bool { return k.err != nil })
	c.sending = l
	c.ledger.Connected(l.number, l.conn.Counters().Posted)
	steps := c.ledger.Again(nil)
	c.mu.Unlock()
	all := true
	for i := 0; all && i < len(steps); i++ {
		all = c.step(l, steps[i])
	}
	if all && c.publish(l) {
		return true
	}
	_ = l.conn.Close() // never fails
	c.take(l)
	return false
}

// publish makes l the current link, unless the client is being closed.
func (c *Client) publish(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.link, c.sending = l, nil
	c.answer(l)
	select {
	case <-c.want:
	default:
	}
	close(c.up)
	return true
}

// step sends one operation again.
func (c *Client) step(l *link, x resume.Step[kept]) bool {
	c.mu.Lock()
	c.ledger.Sent(x)
	if x.Slot >= 0 {
		defer c.mu.Unlock()
		if err := c.post(l, x.Slot); err != nil {
			c.ledger.Unsent(x.Slot)
			return false
		}
		return true
	}
	w := verbs.Work{ID: idAgain, Op: wire.Write, Local: x.Data, STag: x.File.reply.STag | uint32(x.File.flags),
		Offset: x.File.reply.Address + uint64(x.Offset)}
	c.ledger.Posted(1)
	err := l.conn.Post(w)
	c.mu.Unlock()
	if l.again = false; err != nil {
		return false
	}
	// The send queue has a place for one such write beside those of the slots.
	var all [16]verbs.Completion
	for !l.again {
		n := l.conn.Wait(all[:])
		for _, x := range all[:n] {
			c.dispatch(l, x)
		}
		if n == 0 {
			return l.again
		}
	}
	return true
}

// answer asks the server to confirm that kept writes have been executed, unless it is being asked. c.mu is locked.
func (c *Client) answer(l *link) {
	if l.asking > 0 || c.ledger.Kept() == 0 {
		return
	}
	l.asking = c.ledger.Last()
	c.ledger.Posted(1)
	if l.conn.Post(verbs.Work{ID: idAnswer, Op: wire.ReadReq}) != nil {
		l.asking = 0 // it has ended
	}
}

// beat lets the server hear a named client.
func (c *Client) beat() {
	tick := time.NewTicker(beats)
	defer tick.Stop()
	for {
		select {
		case <-c.over:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		l := c.link
		c.mu.Unlock()
		if l != nil {
			_, _ = c.exchange(l, nil, control.Request{Op: control.Whoami}) // that it arrives is all
		}
	}
}

// beats is how often a named client is heard at least.
const beats = time.Second

// guard closes connections on which operations are in progress and nothing moves.
func (c *Client) guard() {
	tick := time.NewTicker(c.cfg.Reconnect.Silence / 2)
	defer tick.Stop()
	var last *link
	moved, quiet := uint64(0), 0
	for {
		select {
		case <-c.over:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		l := cmp.Or(c.link, c.sending)
		busy := len(c.free) < cap(c.free) || c.sending != nil || l != nil && l.asking > 0
		c.mu.Unlock()
		if l == nil {
			continue
		}
		if l.control.TryLock() {
			l.control.Unlock()
		} else {
			busy = true
		}
		n := l.conn.Counters()
		if now := n.SegmentsIn + n.SegmentsOut; !busy || l != last || now != moved {
			last, moved, quiet = l, now, 0
			continue
		}
		if quiet++; quiet == 2 {
			l.silent.Store(true)
			_ = l.conn.Close() // never fails
		}
	}
}

package initiator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"farflash/flash/client/resume"
	"farflash/flash/nvme/wire"
)

// lost is the error of a command that a connection has lost.
type lost struct{ error }

// Unwrap returns the reason.
func (l *lost) Unwrap() error { return l.error }

// fault is the error of an answer that violates the protocol. A command in progress may have caused it, so none is
// repeated.
type fault struct{ error }

// Unwrap returns the violation.
func (f *fault) Unwrap() error { return f.error }

// run replaces lost sessions until the association ends.
func (a *Association) run(s *session) {
	r := &a.cfg.Reconnect
	backoff := resume.NewBackoff(resume.Times{Limit: int64(r.Limit), First: int64(r.First), Cap: int64(r.Cap),
		Seed: r.Seed})
	var err error
	for s != nil {
		<-s.over
		a.drop(s)
		s.wait()
		s, err = a.replace(s, backoff)
	}
	a.mu.Lock()
	a.end = err
	close(a.up)
	a.mu.Unlock()
	a.cancel()
	close(a.over)
}

// drop takes a session that has ended out of use.
func (a *Association) drop(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now.CompareAndSwap(s, nil) {
		a.up = make(chan struct{})
	}
}

// replace returns the session that follows another as soon as somebody wants it, or the reason why there is none.
func (a *Association) replace(s *session, backoff *resume.Backoff) (*session, error) {
	why := s.reason()
	if a.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if a.cfg.Reconnect.Limit == 0 {
		return nil, why
	}
	if s.answered.Load() {
		backoff.Answered()
	}
	select {
	case <-a.want:
	case <-a.ctx.Done():
		return nil, ErrClosed
	}
	backoff.Missed(int64(time.Since(a.began)))
	for {
		at, until, ok := backoff.Next()
		if !ok {
			return nil, fmt.Errorf("no connection for %v: %w", a.cfg.Reconnect.Limit, why)
		}
		pause := time.NewTimer(time.Duration(at) - time.Since(a.began))
		select {
		case <-pause.C:
		case <-a.ctx.Done():
			pause.Stop()
			return nil, ErrClosed
		}
		ctx, cancel := context.WithTimeout(a.ctx, min(a.cfg.Reconnect.Attempt,
			time.Duration(until)-time.Since(a.began)))
		next, err := newSession(ctx, a.address, a.cfg)
		cancel()
		if err == nil {
			return a.publish(next)
		}
		why = err
		backoff.Failed(int64(time.Since(a.began)))
	}
}

// publish makes a session the current one, unless the association is being closed.
func (a *Association) publish(s *session) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() != nil {
		s.close()
		return nil, ErrClosed
	}
	select {
	case <-a.want:
	default:
	}
	a.last = s
	a.now.Store(s)
	close(a.up)
	return s, nil
}

// session returns the current session, or the next one if there is none.
func (a *Association) session() (*session, error) {
	for {
		if s := a.now.Load(); s != nil {
			return s, nil
		}
		a.mu.Lock()
		up, end := a.up, a.end
		a.mu.Unlock()
		if end != nil {
			return nil, end
		}
		select {
		case a.want <- struct{}{}:
		default:
		}
		<-up
	}
}

// trial is a call, over all sessions on which it is tried.
type trial struct {
	since time.Duration // when its connection was lost first; 0: never
	sent  bool          // a command was submitted
}

// again reports whether a call is to be tried on the next session after an error on s.
func (a *Association) again(t *trial, s *session, err error) bool {
	var l *lost
	if !errors.As(err, &l) {
		return false
	}
	<-s.over
	a.drop(s)
	now := time.Since(a.began)
	if t.since == 0 {
		t.since = now
	}
	var f *fault
	return a.cfg.Reconnect.Limit > 0 && a.ctx.Err() == nil && !errors.As(s.reason(), &f) &&
		now-t.since <= a.cfg.Reconnect.Limit
}

// each calls f with the session, and again with the next one while connections are lost.
func (a *Association) each(f func(s *session) error) error {
	var t trial
	for {
		s, err := a.session()
		if err != nil {
			return err
		}
		if err = f(s); err == nil {
			s.answered.Store(true)
		}
		if err == nil || !a.again(&t, s, err) {
			return err
		}
	}
}

// on verifies, once for each session, that a namespace is there and is the same, and notes what may be lost.
func (n *Namespace) on(s *session) error {
	if n.seen.Load() == s {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.seen.Load()
	if n.err != nil || was == s {
		return n.err
	}
	x, err := s.namespace(n.id)
	var status wire.Status
	switch {
	case errors.As(err, &status):
		n.err = fmt.Errorf("%w: %w", ErrChanged, err)
	case err != nil:
		return err
	case x.uuid != n.uuid || x.shift != n.shift || x.size < n.size:
		n.err = ErrChanged
	}
	if n.err != nil {
		return n.err
	}
	if (!s.counts || !was.counts || s.cycles != was.cycles) && n.started.Load() > n.clean.Load() {
		n.lost.Store(true)
	}
	n.seen.Store(s)
	return nil
}

package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"farflash/flash/kv"
)

// database is a store, with its clients.
type database struct {
	seats []*seat

	mu    sync.Mutex // one at a time counts for INFO
	keys  uint64     // as counted at the time
	at    time.Time
	spent time.Duration
}

// seat is a client of a store. It is opened again after it was lost.
type seat struct {
	open Opener

	mu      sync.Mutex
	store   *kv.Store
	end     func() error
	opening chan struct{} // closed when the store is open, or err says why not; nil: no opening is in progress
	err     error
	closed  bool
	ending  sync.WaitGroup // stores that were lost
}

var errOpening = errors.New("the store is being opened")

// get returns the store. If it has to be opened, that goes on when ctx is done, until life is.
func (x *seat) get(ctx, life context.Context) (*kv.Store, error) {
	x.mu.Lock()
	if x.store != nil || x.closed {
		defer x.mu.Unlock()
		if x.closed {
			return nil, kv.ErrClosed
		}
		return x.store, nil
	}
	if x.opening == nil {
		x.opening = make(chan struct{})
		go x.begin(life)
	}
	opening := x.opening
	x.mu.Unlock()
	select {
	case <-opening:
	case <-ctx.Done():
		return nil, errOpening
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.store != nil:
		return x.store, nil
	case x.err != nil:
		return nil, x.err
	}
	return nil, errOpening // it was lost again
}

// begin opens the store.
func (x *seat) begin(life context.Context) {
	store, end, err := x.open(life)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.store, x.end, x.err = store, end, err
	close(x.opening)
	x.opening = nil
}

// lost gives a store up. Another is opened when it is needed.
func (x *seat) lost(store *kv.Store) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.store != store {
		return
	}
	end := x.end
	x.store, x.end = nil, nil
	x.ending.Go(func() { _ = end() }) // it waits for other operations; that the store is over is known
}

// close closes the store, which has no users any more.
func (x *seat) close() error {
	x.mu.Lock()
	x.closed = true
	opening := x.opening
	x.mu.Unlock()
	if opening != nil {
		<-opening
	}
	x.ending.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.store == nil {
		return nil
	}
	x.store = nil
	return x.end()
}

// lasting reports an error after which a store can be used further.
func lasting(err error) bool {
	for _, known := range []error{kv.ErrTooLong, kv.ErrFull, kv.ErrLost, kv.ErrUnknown, errLarge, errOpening,
		context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// unchanged reports an error after which it is certain that nothing was changed.
func unchanged(err error) bool {
	if errors.Is(err, kv.ErrUnknown) {
		return false
	}
	for _, known := range []error{kv.ErrTooLong, kv.ErrFull, kv.ErrLost, kv.ErrClosed, errOpening, errUnopened} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// keys returns the number of keys for INFO, as counted not long ago: at most a tenth of the time goes into counting.
func (s *Server) keys(ctx context.Context, d *database) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if since := time.Since(d.at); !d.at.IsZero() && since < max(time.Second, 10*d.spent) {
		return d.keys, nil
	}
	from := time.Now()
	n, err := s.size(ctx, d.seats[0])
	if err != nil {
		return 0, err
	}
	d.keys, d.at, d.spent = n, time.Now(), time.Since(from)
	return n, nil
}

// size counts the keys of a store.
func (s *Server) size(ctx context.Context, x *seat) (n uint64, err error) {
	err = s.with(ctx, x, func(store *kv.Store) error {
		u, err := store.Use(ctx)
		n = u.Keys
		return err
	})
	return n, err
}

// errUnopened is that of a store that cannot be opened.
var errUnopened = errors.New("the store cannot be used")

// with calls f with a client of a store, and gives that up if it is lost.
func (s *Server) with(ctx context.Context, x *seat, f func(*kv.Store) error) error {
	waiting, cancel := context.WithTimeout(ctx, s.cfg.Opening)
	store, err := x.get(waiting, s.ctx)
	cancel()
	if errors.Is(err, errOpening) {
		return err
	}
	if err != nil {
		return errors.Join(errUnopened, err)
	}
	if err = f(store); err != nil && !lasting(err) {
		x.lost(store)
		if s.cfg.Failed != nil {
			s.cfg.Failed(nil, err)
		}
	}
	return err
}

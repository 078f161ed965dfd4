// Package kv is a key-value store in one file of a remote pool, which its clients read and change by one-sided
// operations: the server runs no code of it.
//
// Create writes the first page of a store into a file of zeros; Open joins it. Get, Put, Delete and Update are
// linearisable over all clients, and are safe for concurrent use. What a change promises when it is answered is the
// Class of the store.
//
// The table follows Trivedi et al., FlashNet, ACM TOS 14(4), 2018, section 7.2: entries in buckets of fifteen beside a
// table of values, and a second bucket for keys that do not fit into their first. The paper's change (lock the key,
// write the value in place, unlock) has no answer to a client that stops in between: whoever takes its lock over cannot
// know when its last write lands. Here a client writes the value into a slot of its own, and publishes it by one
// CompareSwap of the entry's first word. Values carry that word, a checksum, and their key, so that a reader knows
// whether the parts it read belong together. Only the insertion of a key takes a lock, that of its bucket, and whoever
// finds one held by a dead client fences that client first (client.Fence).
//
// Slots in use are bits of chunks. A client owns the chunks from which it takes slots, and only those; it frees a slot
// by one operation, whoever owns its chunk. What dead clients leave is found by counting anew which slots entries refer
// to (Collect), which also happens after each restart of the server. docs/adr/0035-key-value-store.md has the reasons.
//
// It leaves out: moving entries to make room, expiry, keys of more than 240 bytes, values of more than a mebibyte.
package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Memory is the file of a store, as one client sees it. Its operations are executed in the order in which they were
// begun. client.File has them, but for Write.
type Memory interface {
	ReadAt(b []byte, off int64) (int, error)
	// Write returns when b can be reused. If ahead is set, b is on flash before a later operation is executed.
	Write(b []byte, off int64, ahead bool) error
	// CompareSwapBits is client.File's. After ErrUnknown it is not executed later.
	CompareSwapBits(off int64, old, oldMask, value, mask uint64, durable bool) (uint64, error)
	// Flush returns when everything written before, by any client, is on flash.
	Flush() error
}

// Peers is what a client knows of itself and of others by the server.
type Peers interface {
	// Name is the client's name, never 0.
	Name() uint64
	// Instance identifies the server: names mean nothing to another.
	Instance() string
	// Fence ends another client: when it returns nil, nothing that it sent is executed any more. It returns ErrAlive if
	// that client was heard within the time of patience.
	Fence(ctx context.Context, name uint64, patience time.Duration) error
}

// Errors that callers may want to distinguish.
var (
	// ErrFull: there is no place for the key, or no slot for the value.
	ErrFull = errors.New("the store is full")
	// ErrLost: a crash of the server has lost the key's value. The key can be written and deleted.
	ErrLost = errors.New("the value was lost when the server ended")
	// ErrUnknown: the connection was lost in the middle, and whether the change was made cannot be known.
	ErrUnknown = errors.New("whether the change was made is unknown, because the connection was lost")
	// ErrAlive: a client was heard lately.
	ErrAlive = errors.New("the client is alive")
	// ErrTooLong: a key or value does not fit.
	ErrTooLong = errors.New("too long for the store")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// Options are a client's settings for a store.
type Options struct {
	// Patience is the time without a sign of life after which another client's lock is taken over.
	Patience time.Duration
	// Pause waits before the n-th repetition of something that another client holds up, from 0.
	Pause func(ctx context.Context, n int) error
	// Parallel is the number of operations that a scan or a count has in flight, on goroutines of its own; up to 1: it
	// does one after the other. It leaves a part of what a connection bears to others.
	Parallel int
	// Workers is the number of goroutines that do what follows an answered change. 0: it is done before the answer.
	Workers int
	// Unknown reports whether an error of Memory says that an operation's outcome is unknown.
	Unknown func(error) bool
}

// DefaultOptions waits for two seconds for a sign of life, and pauses from 20 us, doubling up to 2 ms.
func DefaultOptions() Options {
	return Options{Patience: 2 * time.Second, Pause: Pause, Parallel: 8, Workers: 8,
		Unknown: func(error) bool { return false }}
}

// Pause sleeps 20 us, doubled n times, up to 2 ms.
func Pause(ctx context.Context, n int) error {
	t := time.NewTimer(min(20*time.Microsecond<<min(n, 10), 2*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Store is an open store.
type Store struct {
	g     Geometry
	m     Memory
	peers Peers
	opt   Options
	self  uint16 // number among the members

	buckets, slots sync.Pool // of *[]byte
	took           slots
	turns          [64]sync.Mutex // of insertions, by bucket
	marks          atomic.Uint32
	background     chan chore
	done           sync.WaitGroup
	counters       counters

	mu     sync.RWMutex // read-locked while the background is used
	closed bool
}

// Counters count what a client's operations met.
type Counters struct {
	Retries   uint64 // reads and changes that began again, because another client was faster
	Waits     uint64 // pauses for another client's lock or value
	Repairs   uint64 // locks of dead clients that were released
	Collected uint64 // slots found by counting anew
	Leaked    uint64 // slots left for the next count, because a count was in progress when they became free
	Settled   uint64 // values of others that a read had to make durable
}

type counters struct {
	retries, waits, repairs, collected, leaked, settled atomic.Uint64
}

// Counters returns the counters.
func (s *Store) Counters() Counters {
	c := &s.counters
	return Counters{c.retries.Load(), c.waits.Load(), c.repairs.Load(), c.collected.Load(), c.leaked.Load(),
		c.settled.Load()}
}

// First returns the first page of a store. In a file of the geometry's size it is followed by zeros.
func (g *Geometry) First() ([]byte, error) {
	b := g.encode()
	if _, err := decode(b); err != nil {
		return nil, fmt.Errorf("kv: %+v is no geometry", *g)
	}
	return b, nil
}

// Create makes a store in a file of zeros.
func Create(m Memory, g Geometry) error {
	b, err := g.First()
	if err != nil {
		return err
	}
	first := make([]byte, page)
	if _, err := m.ReadAt(first, 0); err != nil {
		return err
	}
	for _, x := range first {
		if x != 0 {
			return errors.New("kv: the file is in use: its first page is not empty")
		}
	}
	if err := m.Write(b, 0, true); err != nil {
		return err
	}
	return m.Flush()
}

// Open joins a store. Close leaves it.
func Open(ctx context.Context, m Memory, p Peers, opt Options) (*Store, error) {
	s := &Store{m: m, peers: p, opt: opt}
	if opt.Workers > 0 {
		s.background = make(chan chore, 32*opt.Workers)
	}
	b := make([]byte, page)
	if _, err := m.ReadAt(b, 0); err != nil {
		return nil, err
	}
	var err error
	if s.g, err = decode(b); err != nil {
		return nil, err
	}
	if _, err := m.ReadAt(b[:1], s.g.Size()-1); err != nil {
		return nil, fmt.Errorf("kv: the file is shorter than its store of %d bytes: %w", s.g.Size(), err)
	}
	s.buckets.New = func() any { b := make([]byte, s.g.bucketSize()); return &b }
	s.slots.New = func() any { b := make([]byte, s.g.Slot); return &b }
	s.took.init(&s.g)
	for range opt.Workers {
		s.done.Go(s.work)
	}
	if err := s.join(ctx); err != nil {
		s.rest()
		return nil, err
	}
	return s, nil
}

// Geometry returns the store's shape.
func (s *Store) Geometry() Geometry { return s.g }

// Bucket returns the bucket where Keys finds a key, unless that was full when the key was inserted.
func (s *Store) Bucket(key []byte) uint64 {
	home, _ := s.g.places(key)
	return home
}

// Get appends the value of a key to dst. ok is false if there is none.
func (s *Store) Get(ctx context.Context, key, dst []byte) (value []byte, ok bool, err error) {
	err = s.Update(ctx, key, func(old []byte, there bool) ([]byte, Action) {
		value, ok = append(dst, old...), there
		return nil, Keep
	})
	if err != nil || !ok {
		return dst, false, err
	}
	return value, true, nil
}

// Put sets the value of a key.
func (s *Store) Put(ctx context.Context, key, value []byte) error {
	if err := s.fits(key, value); err != nil {
		return err
	}
	return s.apply(ctx, key, operation{value: value})
}

// Delete removes a key. ok is false if there was none.
func (s *Store) Delete(ctx context.Context, key []byte) (ok bool, err error) {
	err = s.apply(ctx, key, operation{remove: true, found: &ok})
	return ok, err
}

// Action is what an Update does.
type Action uint8

// The actions.
const (
	Keep Action = iota
	Set
	Remove
)

// Update calls f with the value of a key, and carries out its decision in one step: nothing changes the key in between.
// f may be called several times, and its arguments are valid until it returns. The value that it returns must stay
// unchanged until Update returns.
func (s *Store) Update(ctx context.Context, key []byte, f func(old []byte, there bool) ([]byte, Action)) error {
	return s.apply(ctx, key, operation{update: f})
}

// fits returns an error if a value is too long for a slot.
func (s *Store) fits(key, value []byte) error {
	if most := s.g.Value(len(key)); len(value) > most {
		return fmt.Errorf("kv: a value of %d bytes: %w; the most is %d", len(value), ErrTooLong, most)
	}
	return nil
}

// operation is what happens to a key: an update, a removal, or a new value.
type operation struct {
	update func([]byte, bool) ([]byte, Action)
	remove bool
	value  []byte
	found  *bool // for a removal: there was the key
}

package kv

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
)

// slots are the slots that a client has to write values into. They are those of chunks that it owns, from which no
// other client takes slots. A slot that an entry no longer refers to is free: at once if the client owns its chunk, and
// otherwise by one operation on the chunk's word.
type slots struct {
	mu     sync.Mutex
	free   []uint32
	owned  map[uint32]int  // chunks, with the number of their slots that are in free or in use by a change
	cursor uint32          // of the next chunk to look at
	epochs []atomic.Uint32 // of each chunk, plus 1, as last seen; 0: unknown
	kept   []left          // slots that must not be written again before a flush

	counted map[uint32]bool // chunks that a count of this client owns, or is about to
	counts  uint64          // counts that have begun
	ended   chan struct{}   // closed when the one in progress has ended; nil: there is none
	failed  error           // why the last one that ended did
}

// left is a slot that an entry has left, and the epoch of its chunk at a time when the entry still referred to it.
type left struct {
	slot  uint32
	epoch uint16
	none  bool
}

func (t *slots) init(g *Geometry) {
	t.owned, t.counted = map[uint32]int{}, map[uint32]bool{}
	t.epochs = make([]atomic.Uint32, g.chunks())
}

// mostKept bounds the slots that wait for a flush.
const mostKept = 64

// ownedChunks is the number of chunks that a client keeps though it has no free slots in them.
const ownedChunks = 4

// take returns a free slot.
func (s *Store) take(ctx context.Context) (uint32, error) {
	t := &s.took
	t.mu.Lock()
	defer t.mu.Unlock()
	for counted := false; len(t.free) == 0; {
		ok, err := s.refill(ctx)
		switch {
		case err != nil:
			return 0, err
		case ok:
		case counted:
			return 0, fmt.Errorf("kv: no slot for the value, of %d: %w", s.g.Slots, ErrFull)
		default:
			counted = true
			if err := s.recount(ctx); err != nil {
				return 0, err
			}
		}
	}
	slot := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	return slot, nil
}

// recount counts the slots in use anew, in a count that begins now: several callers share one. s.took.mu is locked, but
// not meanwhile, so that who needs no slot goes on.
func (s *Store) recount(ctx context.Context) (err error) {
	t := &s.took
	for since := t.counts; ; {
		ended := t.ended
		if ended == nil {
			break
		}
		mine := t.counts > since
		t.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
		}
		t.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if mine && t.failed == nil {
			return nil
		}
	}
	t.counts++
	ended := make(chan struct{})
	t.ended = ended
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.failed, t.ended = err, nil
		close(ended)
	}()
	return s.collect(ctx, false)
}

// refill gets free slots. ok is false if there are none. s.took.mu is locked.
func (s *Store) refill(ctx context.Context) (ok bool, err error) {
	t := &s.took
	if len(t.kept) > 0 {
		if err := s.release(); err != nil || len(t.free) > 0 {
			return len(t.free) > 0, err
		}
	}
	for c := range t.owned {
		if err := s.draw(c); err != nil {
			return false, err
		}
	}
	for c, hand := range t.owned {
		if hand == 0 && len(t.owned) > ownedChunks {
			if err := s.disown(c); err != nil {
				return false, err
			}
		}
	}
	if len(t.free) > 0 {
		return true, nil
	}
	return s.claim(ctx)
}

// draw takes all free slots of a chunk that the client owns.
func (s *Store) draw(c uint32) error {
	t, at := &s.took, s.g.chunk(c)+8
	for {
		x, err := s.word64(at)
		if err != nil {
			return err
		}
		w := hold(x)
		t.epochs[c].Store(uint32(w.epoch()) + 1)
		free := ^w.used() & allUsed
		if free == 0 {
			return nil
		}
		// The bits may have been set though the answer was lost; no other client sets them.
		ok, unknown, err := s.swap(at, x, uint64(w.with(allUsed)), false)
		if err != nil {
			return err
		}
		if unknown {
			if x, err = s.word64(at); err != nil {
				return err
			}
			ok = hold(x).used()&free == free
		}
		if !ok {
			continue
		}
		t.owned[c] += bits.OnesCount64(free)
		for ; free != 0; free &= free - 1 {
			t.free = append(t.free, c*perChunk+uint32(bits.TrailingZeros64(free)))
		}
		return nil
	}
}

// disown gives a chunk up, of which the client has no slots.
func (s *Store) disown(c uint32) error {
	delete(s.took.owned, c)
	_, _, err := s.settle(s.g.chunk(c), uint64(s.self), 0)
	return err
}

// claim takes a chunk that has free slots and no owner.
func (s *Store) claim(ctx context.Context) (bool, error) {
	t := &s.took
	all := uint32(s.g.chunks())
	b := make([]byte, page)
	for looked := uint32(0); looked < all; {
		if err := ctx.Err(); err != nil {
			return false, context.Cause(ctx)
		}
		n := min(page/chunk, all-t.cursor, all-looked)
		if _, err := s.m.ReadAt(b[:n*chunk], s.g.chunk(t.cursor)); err != nil {
			return false, err
		}
		for i := range n {
			c := t.cursor + i
			if le.Uint64(b[i*chunk:]) != 0 || hold(le.Uint64(b[i*chunk+8:])).used() == allUsed || t.counted[c] {
				continue
			}
			ok, _, err := s.settle(s.g.chunk(c), 0, uint64(s.self))
			if err != nil {
				return false, err
			}
			if !ok {
				continue
			}
			t.owned[c] = 0
			if err := s.draw(c); err != nil {
				return false, err
			}
			if len(t.free) > 0 {
				t.cursor = (c + 1) % all
				return true, nil
			}
			if err := s.disown(c); err != nil {
				return false, err
			}
		}
		t.cursor = (t.cursor + n) % all
		looked += n
	}
	return false, nil
}

// untake returns a slot that nothing refers to.
func (s *Store) untake(slot uint32) {
	s.took.mu.Lock()
	s.took.free = append(s.took.free, slot)
	s.took.mu.Unlock()
}

// published says that an entry refers to a slot now.
func (s *Store) published(slot uint32) {
	s.took.mu.Lock()
	s.took.owned[slot/perChunk]--
	s.took.mu.Unlock()
}

// forget leaves a slot to the next count, because an entry may refer to it.
func (s *Store) forget(slot uint32) {
	s.published(slot)
	s.counters.leaked.Add(1)
}

// leaves notes the slot of an entry before the entry leaves it.
func (s *Store) leaves(w word) (left, error) {
	x := left{slot: w.slot()}
	if uint64(x.slot) >= s.g.Slots { // a crash has damaged the entry
		x.none = true
		return x, nil
	}
	// The epoch may be an old one. If slots are counted in between, the count may find the entry as it was or as it
	// will be; a slot is freed by it, or by this client, and never by both.
	c := x.slot / perChunk
	epoch := s.took.epochs[c].Load()
	if epoch == 0 {
		w, err := s.word64(s.g.chunk(c) + 8)
		if err != nil {
			return x, err
		}
		epoch = uint32(hold(w).epoch()) + 1
		s.took.epochs[c].Store(epoch)
	}
	x.epoch = uint16(epoch - 1)
	return x, nil
}

// free frees a slot that an entry has left.
func (s *Store) free(x left) {
	if x.none {
		return
	}
	t := &s.took
	t.mu.Lock()
	switch _, own := t.owned[x.slot/perChunk]; {
	case s.g.Class == Data: // a crash may bring the entry back that refers to it
		t.kept = append(t.kept, x)
		if len(t.kept) >= mostKept {
			_ = s.release() // an error is one of the memory, and the next operation's as well
		}
	case own:
		t.free = append(t.free, x.slot)
		t.owned[x.slot/perChunk]++
	default:
		t.mu.Unlock()
		s.later(chore{left: x, frees: true})
		return
	}
	t.mu.Unlock()
}

// release frees the slots that wait for a flush. s.took.mu is locked.
func (s *Store) release() error {
	t := &s.took
	all := t.kept
	t.kept = nil
	if err := s.m.Flush(); err != nil {
		return err
	}
	for _, x := range all {
		if _, own := t.owned[x.slot/perChunk]; own {
			t.free = append(t.free, x.slot)
			t.owned[x.slot/perChunk]++
			continue
		}
		s.later(chore{left: x, frees: true})
	}
	return nil
}

// chore is what a client does after it has answered a change: it says that an entry is durable, or frees a slot of a
// chunk that it does not own.
type chore struct {
	at    int64
	word  word
	left  left
	frees bool
}

// later does a chore in the background, or here if there are too many.
func (s *Store) later(x chore) {
	if !x.frees && !x.word.fresh() {
		return
	}
	select {
	case s.background <- x:
	default:
		s.do(x)
	}
}

// rest ends the background. What comes then is done at once.
func (s *Store) rest() {
	if s.background != nil {
		close(s.background)
		s.done.Wait()
		s.background = nil
	}
}

func (s *Store) work() {
	for x := range s.background {
		s.do(x)
	}
}

// do does a chore. Errors are those of the memory, which the next operation has as well.
func (s *Store) do(x chore) {
	if !x.frees {
		_, _ = s.clear(x.at, x.word)
		return
	}
	bit := uint64(1) << (x.left.slot % perChunk)
	epoch, mask := uint64(x.left.epoch)<<perChunk, ^uint64(allUsed)
	c := x.left.slot / perChunk
	got, err := s.m.CompareSwapBits(s.g.chunk(c)+8, epoch|bit, mask|bit, 0, bit, false)
	switch {
	case err != nil && s.opt.Unknown(err): // if it was executed, the slot may be another's by now
		s.counters.leaked.Add(1)
	case err == nil && hold(got).epoch() != x.left.epoch:
		s.counters.leaked.Add(1)
		s.took.epochs[c].Store(uint32(hold(got).epoch()) + 1)
	}
}

package kv

import (
	"bytes"
	"context"
	"fmt"
)

// spot is an entry, as it was read.
type spot struct {
	at   int64
	word word
}

// mostTorn is how often an entry that does not verify is read again before it counts as damaged by a crash: a write in
// progress ends sooner.
const mostTorn = 64

// seen is the result of a search in a bucket.
type seen struct {
	spot
	there   bool
	leaving bool // the spot is that of the key, whose removal may not be durable yet
	torn    bool // an entry does not verify
	head    lock
}

// look reads a bucket for a key.
func (s *Store) look(bucket uint64, key []byte) (x seen, err error) {
	p := s.buckets.Get().(*[]byte)
	defer s.buckets.Put(p)
	b := *p
	if _, err := s.m.ReadAt(b, s.g.bucket(bucket)); err != nil {
		return x, err
	}
	x.head = lock(le.Uint64(b))
	size := int(s.g.Entry)
	for i := 1; i <= entries; i++ {
		e := b[i*size:][:size]
		w, at := word(le.Uint64(e)), s.g.entry(bucket, i)
		if w.state() != full && !(w.state() == empty && w.fresh()) {
			continue
		}
		k, ok := keyOf(e, at)
		switch {
		case !ok:
			x.torn = true
		case !bytes.Equal(k, key):
		case w.state() == full:
			x.spot, x.there, x.leaving = spot{at, w}, true, false
			return x, nil
		default:
			x.spot, x.leaving = spot{at, w}, true
		}
	}
	return x, nil
}

// find returns the entry of a key. If there is none, that was so at some time since the call began.
func (s *Store) find(ctx context.Context, key []byte) (x seen, err error) {
	// A key that is there all the time is in one place, because nothing moves it, and is found. One that was removed
	// and inserted elsewhere while the places were read was in none of them in between.
	home, other := s.g.places(key)
	for n := 0; ; n++ {
		if x, err = s.look(home, key); err != nil || x.there {
			return x, err
		}
		if x.head.spills() {
			y, err := s.look(other, key)
			if err != nil || y.there {
				return y, err
			}
			x.torn = x.torn || y.torn
			if y.leaving {
				x.spot, x.leaving = y.spot, true
			}
		}
		if !x.torn || n >= mostTorn {
			return x, nil
		}
		s.counters.retries.Add(1)
		if err := s.pause(ctx, n); err != nil {
			return x, err
		}
	}
}

// pause waits for another client.
func (s *Store) pause(ctx context.Context, n int) error {
	s.counters.waits.Add(1)
	return s.opt.Pause(ctx, n)
}

// word64 reads an aligned word.
func (s *Store) word64(at int64) (uint64, error) {
	var b [8]byte
	_, err := s.m.ReadAt(b[:], at)
	return le.Uint64(b[:]), err
}

func (s *Store) header(bucket uint64) (lock, error) {
	x, err := s.word64(s.g.bucket(bucket))
	return lock(x), err
}

// swap is a CompareSwap of a whole word. ok: it was executed. unknown: it may have been, and will not be any more.
func (s *Store) swap(at int64, old, value uint64, durable bool) (ok, unknown bool, err error) {
	got, err := s.m.CompareSwapBits(at, old, ^uint64(0), value, ^uint64(0), durable)
	if err != nil && s.opt.Unknown(err) {
		return false, true, nil
	}
	return err == nil && got == old, false, err
}

// settle swaps in a value that no other change gives the word, so it can find out whether that was done even if the
// connection is lost. unknown: another has changed it since, and whether it had the value before is not known.
func (s *Store) settle(at int64, old, value uint64) (ok, unknown bool, err error) {
	return s.decide(at, old, value, value, false)
}

// publish is settle for an entry, which another client may say is durable before this one knows.
func (s *Store) publish(at int64, old, w word) (ok, unknown bool, err error) {
	return s.decide(at, uint64(old), uint64(w), uint64(w.settled()), s.g.Class == Durable)
}

// decide is settle for a word that others may have changed from value to also.
func (s *Store) decide(at int64, old, value, also uint64, durable bool) (ok, unknown bool, err error) {
	for {
		ok, lost, err := s.swap(at, old, value, durable)
		if err != nil || !lost {
			return ok, false, err
		}
		now, err := s.word64(at)
		switch {
		case err != nil:
			return false, false, err
		case now == old: // it was not executed
		case now != value && now != also:
			return false, true, nil
		case durable: // that it was executed does not say that it is on flash
			return true, false, s.m.Flush()
		default:
			return true, false, nil
		}
	}
}

// apply does an operation.
func (s *Store) apply(ctx context.Context, key []byte, op operation) error {
	if len(key) == 0 || len(key) > s.g.Key() {
		return fmt.Errorf("kv: a key of %d bytes: %w; use 1 to %d", len(key), ErrTooLong, s.g.Key())
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	for n := 0; ; n++ {
		if n > 0 {
			s.counters.retries.Add(1)
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		x, err := s.find(ctx, key)
		if err != nil {
			return err
		}
		var done bool
		if x.there {
			done, err = s.present(ctx, key, &op, x.spot, n)
		} else {
			done, err = s.absent(ctx, key, &op, x)
		}
		if done || err != nil {
			return err
		}
	}
}

// enter read-locks s.mu unless the store is closed.
func (s *Store) enter() error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return ErrClosed
	}
	return nil
}

// present does an operation on a key that has an entry. It reports false if the entry has changed.
func (s *Store) present(ctx context.Context, key []byte, op *operation, x spot, n int) (bool, error) {
	value, action := op.value, Set
	switch {
	case op.remove:
		action = Remove
	case op.update != nil:
		p := s.slots.Get().(*[]byte)
		defer s.slots.Put(p)
		old, ok, err := s.value(x, key, *p)
		if err != nil {
			return false, err
		}
		if !ok {
			return false, s.missing(ctx, x, n)
		}
		value, action = op.update(old, true)
	}
	switch action {
	case Set:
		if err := s.fits(key, value); err != nil {
			return false, err
		}
		return s.replace(ctx, key, value, x)
	case Remove:
		done, err := s.remove(x)
		if done && op.found != nil {
			*op.found = true
		}
		return done, err
	}
	return s.settled(ctx, x)
}

// absent does an operation on a key that has no entry.
func (s *Store) absent(ctx context.Context, key []byte, op *operation, x seen) (bool, error) {
	value, action := op.value, Set
	switch {
	case op.remove:
		*op.found = false
		action = Remove
	case op.update != nil:
		value, action = op.update(nil, false)
	}
	if action == Set {
		if err := s.fits(key, value); err != nil {
			return false, err
		}
		return s.insert(ctx, key, value)
	}
	if x.leaving {
		return s.settled(ctx, x.spot)
	}
	return true, nil
}

// value reads the value of an entry into b. ok is false if the slot holds another.
func (s *Store) value(x spot, key, b []byte) (value []byte, ok bool, err error) {
	if uint64(x.word.slot()) >= s.g.Slots {
		return nil, false, nil
	}
	if _, err := s.m.ReadAt(b, s.g.slot(x.word.slot())); err != nil {
		return nil, false, err
	}
	value, ok = valueOf(b, x.word, key)
	return value, ok, nil
}

// missing finds out why the slot of an entry holds something else: the entry has changed, or a crash has lost the
// value.
func (s *Store) missing(ctx context.Context, x spot, n int) error {
	now, err := s.word64(x.at)
	switch {
	case err != nil:
		return err
	case word(now).settled() != x.word.settled():
		return nil
	case n >= mostTorn:
		return ErrLost
	}
	return s.pause(ctx, n)
}

// settled returns true when what an entry says is durable. It reports false if the entry has changed before.
func (s *Store) settled(ctx context.Context, x spot) (bool, error) {
	// Another reader must not take an entry for durable before it is. So the bit stays set until then: its
	// writer does when it has its answer, and a reader that waits in vain flushes everything.
	if !x.word.fresh() {
		return true, nil
	}
	for n := range 16 {
		now, err := s.word64(x.at)
		if err != nil || word(now) != x.word {
			return err == nil && word(now) == x.word.settled(), err
		}
		if err := s.pause(ctx, n); err != nil {
			return false, err
		}
	}
	if err := s.m.Flush(); err != nil {
		return false, err
	}
	s.counters.settled.Add(1)
	return s.clear(x.at, x.word)
}

// clear says of an entry that it is durable. It reports whether that is said now.
func (s *Store) clear(at int64, w word) (bool, error) {
	got, err := s.m.CompareSwapBits(at, uint64(w), ^uint64(0), uint64(w.settled()), ^uint64(0), false)
	if err != nil && s.opt.Unknown(err) {
		return false, nil
	}
	return err == nil && (word(got) == w || word(got) == w.settled()), err
}

// freshly marks a word that is published in a durable store: readers must not return it before it is on flash.
func (s *Store) freshly(w word) word {
	if s.g.Class == Durable {
		w |= freshBit
	}
	return w
}

// replace gives an entry another value. It reports false if the entry has changed.
func (s *Store) replace(ctx context.Context, key, value []byte, x spot) (bool, error) {
	slot, err := s.take(ctx)
	if err != nil {
		return false, err
	}
	old, err := s.leaves(x.word)
	if err != nil {
		s.untake(slot)
		return false, err
	}
	w := s.freshly(x.word.next(full, slot))
	if err := s.record(slot, w, key, value); err != nil {
		return false, err
	}
	done, unknown, err := s.publish(x.at, x.word, w)
	switch {
	case err != nil:
		return false, err
	case unknown:
		s.forget(slot)
		return false, ErrUnknown
	case !done:
		s.untake(slot)
		return false, nil
	}
	s.published(slot)
	s.free(old)
	s.later(chore{at: x.at, word: w})
	return true, nil
}

// record writes a value into a slot.
func (s *Store) record(slot uint32, w word, key, value []byte) error {
	p := s.slots.Get().(*[]byte)
	defer s.slots.Put(p)
	return s.m.Write(putRecord(*p, w, key, value), s.g.slot(slot), s.g.Class != Async)
}

// remove empties an entry. It reports false if the entry has changed.
func (s *Store) remove(x spot) (bool, error) {
	old, err := s.leaves(x.word)
	if err != nil {
		return false, err
	}
	w := s.freshly(x.word.next(empty, s.mark()))
	done, unknown, err := s.publish(x.at, x.word, w)
	switch {
	case err != nil:
		return false, err
	case unknown:
		return false, ErrUnknown
	case done:
		s.free(old)
		s.later(chore{at: x.at, word: w})
	}
	return done, nil
}

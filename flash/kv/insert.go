package kv

import (
	"context"
	"errors"
	"fmt"
)

// The slot of an entry that is not full identifies the change that made it so, by the member and a number of its own:
// no two changes give an entry the same word.
const markBits = slotBits - 10

// mark returns the slot of the next such word.
func (s *Store) mark() uint32 { return uint32(s.self)<<markBits | s.marks.Add(1)&(1<<markBits-1) }

// marker is the member that made such a word.
func (w word) marker() uint16 { return uint16(w.slot() >> markBits) }

// insert adds a key that had no entry. It reports false if it has one now.
func (s *Store) insert(ctx context.Context, key, value []byte) (bool, error) {
	home, other := s.g.places(key)
	// One at a time, so that a lock that this client holds is that of this call.
	turn := &s.turns[home%uint64(len(s.turns))]
	turn.Lock()
	defer turn.Unlock()
	head, err := s.acquire(ctx, home)
	if err != nil {
		return false, err
	}
	done, head, err := s.place(ctx, key, value, home, other, head)
	ok, unknown, failed := s.settle(s.g.bucket(home), uint64(head), uint64(head.after()))
	if failed == nil && !ok && !unknown { // unknown: it was released, and taken by another since
		failed = fmt.Errorf("kv: the lock of bucket %d was taken over", home)
	}
	return done, errors.Join(err, failed)
}

// place puts a key into an empty entry. The lock of its home is held.
func (s *Store) place(ctx context.Context, key, value []byte, home, other uint64, head lock) (bool, lock, error) {
	for n := 0; ; n++ {
		v, err := s.vacancy(home, key)
		if err != nil || v.there {
			return false, head, err
		}
		crowded := v.used >= crowd
		if head.spills() || crowded {
			second, err := s.vacancy(other, key)
			if err != nil || second.there {
				return false, head, err
			}
			if crowded = crowded && second.used < v.used; crowded {
				v.free, v.fresh = second.free, second.fresh
			}
			v.leaving = append(v.leaving, second.leaving...)
			v.torn = v.torn || second.torn
		}
		// A removal that a crash takes back must not leave the key in two places.
		for _, x := range v.leaving {
			if _, err := s.settled(ctx, x); err != nil {
				return false, head, err
			}
		}
		if v.torn && n < mostTorn {
			if err := s.pause(ctx, n); err != nil {
				return false, head, err
			}
			continue
		}
		switch {
		case v.free.at != 0:
		case v.fresh.at != 0:
			if _, err := s.settled(ctx, v.fresh); err != nil {
				return false, head, err
			}
			continue
		default:
			return false, head, fmt.Errorf("kv: no place for the key: %w", ErrFull)
		}
		if crowded && !head.spills() {
			ok, _, err := s.settle(s.g.bucket(home), uint64(head), uint64(head|spillBit))
			if err == nil && !ok {
				err = fmt.Errorf("kv: the lock of bucket %d was taken over", home)
			}
			if err != nil {
				return false, head, err
			}
			head |= spillBit
		}
		done, err := s.fill(ctx, key, value, v.free)
		if done || err != nil {
			return done, head, err
		}
		s.counters.retries.Add(1)
	}
}

// vacancy is what a bucket holds for who wants to insert a key: an empty entry, one whose removal may not be durable
// yet, the number of those in use, entries that the key leaves, whether it is there, and whether an entry does not
// verify.
type vacancy struct {
	free, fresh spot // at 0: none
	used        int
	leaving     []spot
	there, torn bool
}

// crowd is the number of entries in use from which on a bucket takes a key only if the key's other one has as many. So
// all buckets fill up alike: with ten keys a bucket on average, none of millions found both of its own full, and one in
// twenty was not in its first; without this, one in two thousand had no place.
const crowd = 12

// vacancy reads a bucket for an empty entry, and for a key.
func (s *Store) vacancy(bucket uint64, key []byte) (v vacancy, err error) {
	p := s.buckets.Get().(*[]byte)
	defer s.buckets.Put(p)
	b := *p
	if _, err := s.m.ReadAt(b, s.g.bucket(bucket)); err != nil {
		return v, err
	}
	size := int(s.g.Entry)
	for i := 1; i <= entries; i++ {
		e := b[i*size:][:size]
		w, at := word(le.Uint64(e)), s.g.entry(bucket, i)
		if w.state() != empty {
			v.used++
		}
		switch {
		case w.state() == full:
			k, ok := keyOf(e, at)
			v.torn = v.torn || !ok
			v.there = v.there || ok && string(k) == string(key)
		case w.state() == empty && w.fresh():
			v.fresh = spot{at, w}
			if k, ok := keyOf(e, at); ok && string(k) == string(key) {
				v.leaving = append(v.leaving, spot{at, w})
			}
		case w.state() == empty && v.free.at == 0:
			v.free = spot{at, w}
		}
	}
	return v, nil
}

// fill puts a key into an empty entry. It reports false if another client was faster.
func (s *Store) fill(ctx context.Context, key, value []byte, x spot) (bool, error) {
	slot, err := s.take(ctx)
	if err != nil {
		return false, err
	}
	claim := x.word.rebound(busy, s.mark())
	ok, unknown, err := s.settle(x.at, uint64(x.word), uint64(claim))
	if err != nil || unknown || !ok {
		s.untake(slot)
		return false, err
	}
	p := s.buckets.Get().(*[]byte)
	b := (*p)[:s.g.Entry]
	clear(b)
	putBody(b, claim, key, x.at)
	err = s.m.Write(b[8:body+len(key)], x.at+8, false)
	s.buckets.Put(p)
	if err != nil {
		return false, err
	}
	w := s.freshly(claim.next(full, slot))
	if err := s.record(slot, w, key, value); err != nil {
		return false, err
	}
	ok, unknown, err = s.publish(x.at, claim, w)
	switch {
	case err != nil:
		return false, err
	case unknown:
		// Others change the entry after it is full. Only one who took this client's number for that of a dead one
		// changes it before, to the empty one that follows the claim.
		now, err := s.word64(x.at)
		if err != nil {
			return false, err
		}
		if y := word(now); y.state() == empty && y.bind() == claim.bind() && y.version() == w.version() {
			s.untake(slot)
			return false, nil
		}
		s.published(slot)
		return true, nil
	case !ok:
		s.untake(slot)
		return false, nil
	}
	s.published(slot)
	s.later(chore{at: x.at, word: w})
	return true, nil
}

// acquire takes the lock of a bucket, and returns the header with it.
func (s *Store) acquire(ctx context.Context, bucket uint64) (lock, error) {
	at, last := s.g.bucket(bucket), lock(0)
	for n := 0; ; n++ {
		now, err := s.header(bucket)
		if err != nil {
			return 0, err
		}
		if !now.held() {
			taken := now.by(s.self)
			ok, _, err := s.settle(at, uint64(now), uint64(taken))
			if ok || err != nil {
				return taken, err
			}
			continue
		}
		if now != last {
			last, n = now, 0
		}
		if n >= 8 {
			if err := s.repair(ctx, bucket, now); err != nil {
				return 0, err
			}
		}
		if err := s.pause(ctx, n); err != nil {
			return 0, err
		}
	}
}

// repair releases a lock whose owner is dead.
func (s *Store) repair(ctx context.Context, bucket uint64, head lock) error {
	name := uint64(0)
	if head.owner() < members {
		var err error
		if name, err = s.word64(s.g.member(head.owner())); err != nil {
			return err
		}
	}
	if name == s.peers.Name() {
		return nil
	}
	if name != 0 {
		err := s.peers.Fence(ctx, name, s.opt.Patience)
		if errors.Is(err, ErrAlive) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	// Its number may be another client's by now. That one notices when it finds an entry empty that it had claimed.
	b := make([]byte, s.g.bucketSize())
	if _, err := s.m.ReadAt(b, s.g.bucket(bucket)); err != nil {
		return err
	}
	if lock(le.Uint64(b)) != head {
		return nil
	}
	for i := 1; i <= entries; i++ {
		w := word(le.Uint64(b[i*int(s.g.Entry):]))
		if w.state() == busy && w.marker() == head.owner() {
			if err := s.empty(s.g.entry(bucket, i), w); err != nil {
				return err
			}
		}
	}
	ok, _, err := s.swap(s.g.bucket(bucket), uint64(head), uint64(head.after()), false)
	if ok {
		s.counters.repairs.Add(1)
	}
	return err
}

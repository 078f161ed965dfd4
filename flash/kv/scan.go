package kv

import (
	"bytes"
	"context"
)

// Scan calls f for each key that begins with prefix and is there from beginning to end, once, and for some of those
// that are not; in no order. f must not keep its arguments. A value lost by a crash is nil, with lost set.
func (s *Store) Scan(ctx context.Context, prefix []byte, f func(key, value []byte, lost bool) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	return s.scan(ctx, 0, s.g.Buckets, func(i uint64, b []byte) error {
		for k := 1; k <= entries; k++ {
			e, at := b[k*int(s.g.Entry):][:s.g.Entry], s.g.entry(i, k)
			w := word(le.Uint64(e))
			if w.state() != full {
				continue
			}
			key, ok := keyOf(e, at)
			if ok && !bytes.HasPrefix(key, prefix) {
				continue
			}
			if err := s.visit(ctx, at, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// Keys calls f for the keys in n buckets from a given one on, as Scan does, but without values. It returns the bucket
// after them, or 0 after the last one.
func (s *Store) Keys(ctx context.Context, from, n uint64, f func(key []byte) error) (next uint64, err error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.mu.RUnlock()
	if from >= s.g.Buckets {
		return 0, nil
	}
	next = from + min(n, s.g.Buckets-from)
	err = s.scan(ctx, from, next, func(i uint64, b []byte) error {
		for k := 1; k <= entries; k++ {
			key, err := s.named(ctx, s.g.entry(i, k), b[k*int(s.g.Entry):][:s.g.Entry])
			if err == nil && key != nil {
				err = f(key)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if next == s.g.Buckets {
		next = 0
	}
	return next, err
}

// named returns the key of an entry that was read into e, or nil. If it does not verify, or is not durable yet, the
// entry is read again.
func (s *Store) named(ctx context.Context, at int64, e []byte) ([]byte, error) {
	for n := 0; ; n++ {
		x := spot{at, word(le.Uint64(e))}
		if x.word.state() != full {
			return nil, nil
		}
		key, ok := keyOf(e, at)
		if ok {
			settled, err := s.settled(ctx, x)
			if settled || err != nil {
				return key, err
			}
		}
		if n >= mostTorn {
			return nil, nil // damaged by a crash: it has no key
		}
		if err := s.pause(ctx, n); err != nil {
			return nil, err
		}
		if _, err := s.m.ReadAt(e, at); err != nil {
			return nil, err
		}
	}
}

// visit calls f for the key of an entry, if there is one still. The value is durable if the store's class asks for
// that.
func (s *Store) visit(ctx context.Context, at int64, f func(key, value []byte, lost bool) error) error {
	p, q := s.buckets.Get().(*[]byte), s.slots.Get().(*[]byte)
	defer s.buckets.Put(p)
	defer s.slots.Put(q)
	e := (*p)[:s.g.Entry]
	for n := 0; ; n++ {
		if _, err := s.m.ReadAt(e, at); err != nil {
			return err
		}
		x := spot{at, word(le.Uint64(e))}
		if x.word.state() != full {
			return nil
		}
		key, ok := keyOf(e, at)
		if ok {
			value, sound, err := s.value(x, key, *q)
			if err != nil {
				return err
			}
			if sound {
				if sound, err = s.settled(ctx, x); err != nil {
					return err
				}
			}
			if sound {
				return f(key, value, false)
			}
		}
		if n >= mostTorn {
			if !ok {
				return nil // damaged by a crash: it has no key
			}
			return f(key, nil, true)
		}
		if err := s.pause(ctx, n); err != nil {
			return err
		}
	}
}

// Use is how much of a store is in use.
type Use struct {
	Keys, Slots uint64 // Slots in use, or held by clients
	Members     int
}

// Use counts keys, slots and members, while clients change them.
func (s *Store) Use(ctx context.Context) (u Use, err error) {
	if err := s.enter(); err != nil {
		return u, err
	}
	defer s.mu.RUnlock()
	b := make([]byte, members*member)
	if _, err := s.m.ReadAt(b, membersAt); err != nil {
		return u, err
	}
	for i := 1; i < members; i++ {
		if le.Uint64(b[i*member:]) != 0 {
			u.Members++
		}
	}
	if err := s.eachChunk(ctx, func(_ uint32, _ uint64, w hold) error {
		u.Slots += uint64(w.inUse())
		return nil
	}); err != nil {
		return u, err
	}
	err = s.scan(ctx, 0, s.g.Buckets, func(_ uint64, b []byte) error {
		for k := 1; k <= entries; k++ {
			if word(le.Uint64(b[k*int(s.g.Entry):])).state() == full {
				u.Keys++
			}
		}
		return nil
	})
	return u, err
}

// scan calls f for the buckets from one to another.
func (s *Store) scan(ctx context.Context, i, end uint64, f func(i uint64, b []byte) error) error {
	size := s.g.bucketSize()
	b := make([]byte, min(max(256<<10/size, 1), int64(end-i))*size)
	for i < end {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := min(uint64(int64(len(b))/size), end-i)
		if _, err := s.m.ReadAt(b[:int64(n)*size], s.g.bucket(i)); err != nil {
			return err
		}
		for k := range n {
			if err := f(i+k, b[int64(k)*size:][:size]); err != nil {
				return err
			}
		}
		i += n
	}
	return nil
}

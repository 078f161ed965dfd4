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
	return s.scan(ctx, func(i uint64, b []byte) error {
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
	err = s.scan(ctx, func(_ uint64, b []byte) error {
		for k := 1; k <= entries; k++ {
			if word(le.Uint64(b[k*int(s.g.Entry):])).state() == full {
				u.Keys++
			}
		}
		return nil
	})
	return u, err
}

// scan calls f for all buckets.
func (s *Store) scan(ctx context.Context, f func(i uint64, b []byte) error) error {
	size := s.g.bucketSize()
	b := make([]byte, max(256<<10/size, 1)*size)
	for i := uint64(0); i < s.g.Buckets; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := min(uint64(int64(len(b))/size), s.g.Buckets-i)
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

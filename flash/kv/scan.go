package kv

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
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

// scan calls f for the buckets from one to another, in order. It reads ahead, as far as Options.Parallel allows.
func (s *Store) scan(ctx context.Context, i, end uint64, f func(i uint64, b []byte) error) (err error) {
	size := s.g.bucketSize()
	each := min(uint64(max(mostRead/size, 1)), end-i)
	var reads, spare []*ahead
	parts := min(uint64(max(s.opt.Parallel, 1)), (end-i+each-1)/max(each, 1))
	for range parts {
		spare = append(spare, &ahead{done: make(chan error, 1)})
	}
	defer func() {
		for _, r := range reads {
			if failed := <-r.done; err == nil { // it uses the memory
				err = failed
			}
		}
	}()
	for next := i; ; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		for ; next < end && len(spare) > 0; spare = spare[1:] {
			r := spare[0]
			if r.b == nil {
				r.b = make([]byte, int64(each)*size)
			}
			r.from, r.n = next, min(each, end-next)
			s.read(r, parts > 1)
			reads = append(reads, r)
			next += r.n
		}
		if len(reads) == 0 {
			return nil
		}
		r := reads[0]
		reads = reads[1:]
		if err := <-r.done; err != nil {
			return err
		}
		for k := range r.n {
			if err := f(r.from+k, r.b[int64(k)*size:][:size]); err != nil {
				return err
			}
		}
		spare = append(spare, r)
	}
}

// mostRead is the length of a read of buckets, in bytes.
const mostRead = 256 << 10

// ahead is a read of buckets.
type ahead struct {
	b       []byte
	from, n uint64
	done    chan error
}

// read begins a read and, unless it may go on aside, ends it.
func (s *Store) read(r *ahead, aside bool) {
	do := func() {
		_, err := s.m.ReadAt(r.b[:int64(r.n)*s.g.bucketSize()], s.g.bucket(r.from))
		r.done <- err
	}
	if aside {
		go do()
		return
	}
	do()
}

// side calls f for 0 to n-1, several at a time if Options.Parallel allows that. It ends at an error.
func (s *Store) side(ctx context.Context, n int, f func(i int) error) error {
	workers := min(max(s.opt.Parallel, 1), n)
	var next atomic.Int64
	work := func() error {
		for {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			if err := f(i); err != nil {
				next.Add(int64(n)) // the others end
				return err
			}
		}
	}
	if workers <= 1 {
		return work()
	}
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() { errs[w] = work() })
	}
	all.Wait()
	return errors.Join(errs...)
}

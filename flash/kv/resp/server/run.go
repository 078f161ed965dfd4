package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"farflash/flash/kv"
	"farflash/flash/kv/resp"
)

var errLarge = errors.New("the reply is too large")

// run executes a command.
func (s *Server) run(ctx context.Context, turn uint64, c *resp.Command) (o resp.Outcome) {
	s.commands.Add(1)
	d := s.stores[c.DB]
	x := d.seats[turn%uint64(len(d.seats))]
	var err error
	switch c.Kind {
	case resp.Clients:
		o.Text = s.lines()
	case resp.Info:
		o.Text, err = s.info(ctx)
	case resp.Size:
		o.N, err = s.size(ctx, x)
	case resp.Scan:
		err = s.with(ctx, x, func(store *kv.Store) error {
			var err error
			o.Cursor, err = s.list(ctx, store, c, c.Cursor, uint64(c.Buckets))
			return err
		})
	case resp.All:
		err = s.with(ctx, x, func(store *kv.Store) error {
			_, err := s.list(ctx, store, c, 0, store.Geometry().Buckets)
			return err
		})
	case resp.Flush:
		err = s.flush(ctx, turn, c)
	default:
		err = s.with(ctx, x, func(store *kv.Store) error { return s.change(ctx, store, c) })
	}
	if err != nil {
		o.Err = said(c, err)
	}
	return o
}

// said is the error that a client receives.
func said(c *resp.Command, err error) string {
	text := strings.TrimPrefix(err.Error(), "kv: ")
	switch {
	case errors.Is(err, errOpening):
		return "LOADING " + text
	case c.Changes() && !unchanged(err):
		return "UNKNOWN whether the change was made: " + text
	case errors.Is(err, kv.ErrFull):
		text = "OOM " + text
	default:
		text = "ERR " + text
	}
	if c.Changes() && (c.Kind == resp.Flush || c.Keys() > 1) {
		text += "; other keys may have been changed"
	}
	return text
}

// list finds keys of some buckets.
func (s *Server) list(ctx context.Context, store *kv.Store, c *resp.Command, from, n uint64) (uint64, error) {
	return store.Keys(ctx, from, n, func(key []byte) error {
		if !c.Found(key, s.cfg.Limits.Reply) {
			return fmt.Errorf("%w: it exceeds %d bytes; use SCAN", errLarge, s.cfg.Limits.Reply)
		}
		return nil
	})
}

// change works on the keys of a command, on some of them at a time and from the first to the last.
func (s *Server) change(ctx context.Context, store *kv.Store, c *resp.Command) error {
	if c.Keys() == 1 {
		return one(ctx, store, c, 0)
	}
	errs := make([]error, s.cfg.Parallel)
	held := 0
	for from := 0; from < c.Keys(); from += s.cfg.Parallel {
		end := min(from+s.cfg.Parallel, c.Keys())
		var all sync.WaitGroup
		for i := from; i < end; i++ {
			if c.Same(i, end) {
				continue
			}
			all.Go(func() { errs[i-from] = one(ctx, store, c, i) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for i := from; i < end; i++ {
			held += c.Held(i)
		}
		if held > s.cfg.Limits.Reply {
			return fmt.Errorf("%w: it exceeds %d bytes; ask for fewer keys", errLarge, s.cfg.Limits.Reply)
		}
	}
	return nil
}

// actions are those of a command, as the store has them.
var actions = [...]kv.Action{resp.Keep: kv.Keep, resp.Set: kv.Set, resp.Remove: kv.Remove}

// one works on a key.
func one(ctx context.Context, store *kv.Store, c *resp.Command, i int) error {
	value, action := c.Blind(i)
	switch action {
	case resp.Set:
		err := store.Put(ctx, c.Key(i), value)
		c.Done(i, false)
		return err
	case resp.Remove:
		there, err := store.Delete(ctx, c.Key(i))
		c.Done(i, there)
		return err
	}
	return store.Update(ctx, c.Key(i), func(old []byte, there bool) ([]byte, kv.Action) {
		value, action := c.Apply(i, old, there)
		return value, actions[action]
	})
}

// flush removes the keys that are there when it begins, and some of those that come meanwhile.
func (s *Server) flush(ctx context.Context, turn uint64, c *resp.Command) error {
	for i, d := range s.stores {
		if !c.Whole && i != c.DB {
			continue
		}
		if err := s.with(ctx, d.seats[turn%uint64(len(d.seats))], func(store *kv.Store) error {
			return s.empty(ctx, store)
		}); err != nil {
			return err
		}
	}
	return nil
}

// empty removes all keys of a store.
func (s *Server) empty(ctx context.Context, store *kv.Store) error {
	for from := uint64(0); ; {
		var found [][]byte
		next, err := store.Keys(ctx, from, 64, func(key []byte) error {
			found = append(found, append([]byte(nil), key...))
			return nil
		})
		if err != nil {
			return err
		}
		errs := make([]error, s.cfg.Parallel)
		var all sync.WaitGroup
		for w := range s.cfg.Parallel {
			all.Go(func() {
				for i := w; i < len(found) && errs[w] == nil; i += s.cfg.Parallel {
					_, errs[w] = store.Delete(ctx, found[i])
				}
			})
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil || next == 0 {
			return err
		}
		from = next
	}
}

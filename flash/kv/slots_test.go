package kv_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"farflash/flash/kv"
)

// direct is a client of memory without a network.
type direct struct {
	mem    []byte
	name   uint64
	before func(off int64, oldMask uint64) (mask uint64) // of each swap: the bits to compare
}

func (d *direct) ReadAt(b []byte, off int64) (int, error) { return copy(b, d.mem[off:]), nil }

func (d *direct) Write(b []byte, off int64, _ bool) error {
	copy(d.mem[off:], b)
	return nil
}

func (d *direct) CompareSwapBits(off int64, old, oldMask, value, mask uint64, _ bool) (uint64, error) {
	if d.before != nil {
		oldMask = d.before(off, oldMask)
	}
	now := le64(d.mem[off:])
	if (now^old)&oldMask == 0 {
		putLE64(d.mem[off:], now&^mask|value&mask)
	}
	return now, nil
}

func (d *direct) Flush() error { return nil }

func (d *direct) Name() uint64 { return d.name }

func (d *direct) Instance() string { return "one" }

func (d *direct) Fence(context.Context, uint64, time.Duration) error { return kv.ErrAlive }

// opened opens a store in memory under a name.
func opened(t testing.TB, d *direct) *kv.Store {
	t.Helper()
	o := kv.DefaultOptions()
	o.Workers = 0
	s, err := kv.Open(context.Background(), d, d, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// made returns the memory of an empty store.
func made(t testing.TB, g kv.Geometry) []byte {
	t.Helper()
	mem := make([]byte, g.Size())
	if err := kv.Create(&direct{mem: mem}, g); err != nil {
		t.Fatal(err)
	}
	return mem
}

// TestLateFree: a client replaces a value, and frees its slot only after another has counted the slots anew, taken that
// slot, and written another value into it. The slot must stay in use; without the epoch it does not.
func TestLateFree(t *testing.T) {
	ctx := context.Background()
	for _, blind := range []bool{false, true} {
		g := shape(kv.Async)
		mem := made(t, g)
		a := opened(t, &direct{mem: mem, name: 1})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(a.Put(ctx, []byte("k"), []byte("first"))) // in the first chunk
		late := &direct{mem: mem, name: 2}
		f := opened(t, late)
		must(f.Put(ctx, []byte("other"), nil)) // in the second, since the first has an owner
		must(a.Close())

		c := opened(t, &direct{mem: mem, name: 3})
		keys, done := 0, false
		late.before = func(off int64, mask uint64) uint64 {
			if done || mask == ^uint64(0) {
				return mask
			}
			done = true
			must(c.Collect(ctx))
			for ; keys < 20; keys++ {
				for range 5 { // through more slots than the chunk has
					must(c.Put(ctx, fmt.Appendf(nil, "of c %d", keys), fmt.Appendf(nil, "value %d", keys)))
				}
			}
			if blind {
				return mask & (1<<48 - 1)
			}
			return mask
		}
		must(f.Put(ctx, []byte("k"), []byte("second")))
		if !done {
			t.Fatal("nothing was freed late")
		}
		must(c.Close())
		next := opened(t, &direct{mem: mem, name: 4})
		lost := false
		for range 10 {
			for i := range keys {
				err := next.Update(ctx, fmt.Appendf(nil, "of c %d", i), func(old []byte, there bool) ([]byte, kv.Action) {
					lost = lost || !there || string(old) != fmt.Sprint("value ", i)
					return old, kv.Set
				})
				lost = lost || errors.Is(err, kv.ErrLost)
			}
		}
		if lost != blind {
			t.Errorf("blind %v: lost %v", blind, lost)
		}
	}
}

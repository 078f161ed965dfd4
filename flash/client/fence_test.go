package client_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"farflash/flash/client"
	"farflash/numeric/rng"
)

// named is quick for clients with names.
func named() client.Config {
	cfg := quick()
	cfg.Named = true
	return cfg
}

// fenced fences a client, as often as it counts as alive.
func fenced(t *testing.T, by *client.Client, name string, patience time.Duration) (alive int) {
	t.Helper()
	for {
		err := by.Fence(context.Background(), name, patience)
		switch {
		case err == nil:
			return alive
		case !errors.Is(err, client.ErrAlive):
			t.Fatal(err)
		}
		alive++
		time.Sleep(patience / 8)
	}
}

// TestFenceLateWrite: what a client sent, and what reaches the server only after the client was fenced, changes
// nothing; without a fence it does.
func TestFenceLateWrite(t *testing.T) {
	bounded(t, time.Minute)
	old, fresh, got := bytes.Repeat([]byte{1}, 4096), bytes.Repeat([]byte{2}, 4096), make([]byte, 4096)
	for _, fence := range []bool{false, true} {
		h := newHost(t)
		p := newProxy(t, h.address(), func(n int) way {
			if n == 0 {
				return way{cut: 1500, end: hold, late: 200 * time.Millisecond}
			}
			return way{cut: 0, end: reset}
		})
		a, b := dial(t, p.address(), named()), dial(t, h.address(), named())
		f, g := open(t, a, "disk"), open(t, b, "disk")
		if a.Name() == "" || a.Name() == b.Name() {
			t.Fatalf("names %q and %q", a.Name(), b.Name())
		}
		if _, err := f.WriteAt(old, 0); err != nil {
			t.Fatal(err)
		}
		for p.connections() < 2 {
			time.Sleep(time.Millisecond)
		}
		if fence {
			fenced(t, b, a.Name(), 0)
		}
		if _, err := g.WriteDurable(fresh, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(400 * time.Millisecond)
		if _, err := g.ReadAt(got, 0); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]byte{false: 1, true: 2}[fence]; got[0] != want {
			t.Errorf("fenced %v: the page begins with %d, want %d", fence, got[0], want)
		}
	}
}

// TestExecutedOnce: a client writes and then releases a lock, and its connection is lost with the answers. What another
// client wrote under the lock meanwhile stays, because the server reports how much of the lost connection it executed.
func TestExecutedOnce(t *testing.T) {
	bounded(t, time.Minute)
	old, fresh, got := bytes.Repeat([]byte{1}, 4096), bytes.Repeat([]byte{2}, 4096), make([]byte, 4096)
	for _, durable := range []bool{false, true} {
		h := newHost(t)
		p := newProxy(t, h.address(), never)
		measured := dial(t, p.address(), named())
		open(t, measured, "disk")
		if err := measured.Close(); err != nil {
			t.Fatal(err)
		}
		_, opened := p.last() // bytes that came down until the file was open
		p.set(func(n int) way {
			if n == 1 {
				return way{cut: opened, down: true, end: mute}
			}
			return never(n)
		})
		a, b := dial(t, p.address(), named()), dial(t, h.address(), named())
		f, g := open(t, a, "disk"), open(t, b, "disk")
		var writing sync.WaitGroup
		write := func(off int64) error { _, err := f.WriteAt(old, off); return err }
		if durable {
			write = func(off int64) error { _, err := f.WriteDurable(old, off); return err }
		}
		writing.Go(func() {
			if err := write(0); err != nil {
				t.Errorf("durable %v: %v", durable, err)
			}
		})
		if !durable { // the other one waits for its answer
			writing.Wait()
		}
		released := make(chan error)
		go func() {
			_, err := f.CompareSwap(8192, 0, 1, false)
			released <- err
		}()
		for {
			if _, err := g.ReadAt(got[:8], 8192); err != nil {
				t.Fatal(err)
			}
			if got[0] == 1 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		// The write of the durable one can have been posted after the release.
		for durable {
			if _, err := g.ReadAt(got, 0); err != nil {
				t.Fatal(err)
			}
			if got[4095] == 1 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if _, err := g.WriteDurable(fresh, 0); err != nil {
			t.Fatal(err)
		}
		p.to(h.address())
		if err := <-released; !errors.Is(err, client.ErrUnknown) {
			t.Errorf("durable %v: release: %v, want %v", durable, err, client.ErrUnknown)
		}
		writing.Wait()
		if _, err := f.ReadAt(got, 0); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, fresh) {
			t.Errorf("durable %v: the page begins with %d after the client had connected again, want %d", durable,
				got[0], fresh[0])
		}
	}
}

// TestFence: a client that is heard is not fenced unless there is no patience, and a fenced one ends, whether it was
// connected, away, or silent.
func TestFence(t *testing.T) {
	bounded(t, time.Minute)
	h := newHost(t)
	ctx := context.Background()
	b := dial(t, h.address(), named())
	if err := b.Fence(ctx, b.Name(), 0); err == nil {
		t.Error("a client fences itself")
	}
	if err := b.Fence(ctx, strings.Repeat("0", 16), time.Hour); err != nil {
		t.Errorf("a client that never was: %v", err)
	}

	a := dial(t, h.address(), named())
	f := open(t, a, "disk")
	for range 30 { // it says something every second
		if err := b.Fence(ctx, a.Name(), 10*time.Second); !errors.Is(err, client.ErrAlive) {
			t.Fatalf("of a client that is heard: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if _, err := f.FetchAdd(0, 1, false); err != nil {
		t.Error(err)
	}
	fenced(t, b, a.Name(), 0)
	if _, err := f.FetchAdd(0, 1, false); !errors.Is(err, client.ErrFenced) && !errors.Is(err, client.ErrUnknown) {
		t.Errorf("an operation of a fenced client that may not have noticed: %v", err)
	}
	if _, err := f.FetchAdd(0, 1, false); !errors.Is(err, client.ErrFenced) {
		t.Errorf("an operation of a fenced client: %v", err)
	}
	fenced(t, b, a.Name(), time.Hour) // it stays so

	gone := dial(t, h.address(), named())
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	if fenced(t, b, gone.Name(), 300*time.Millisecond) == 0 {
		t.Error("a client that has just left counts as dead")
	}

	p := newProxy(t, h.address(), func(n int) way {
		if n == 0 {
			return way{cut: 1500, end: mute}
		}
		return way{cut: -1}
	})
	silent := dial(t, p.address(), named())
	f = open(t, silent, "disk")
	_, err := f.WriteAt(make([]byte, 4096), 0)
	if err != nil {
		t.Fatal(err)
	}
	if fenced(t, b, silent.Name(), 500*time.Millisecond) == 0 {
		t.Error("a client counts as dead before its silence was measured")
	}
	if _, err := f.ReadAt(make([]byte, 8), 0); !errors.Is(err, client.ErrFenced) {
		t.Errorf("a silent client that was fenced reads: %v", err)
	}
}

// TestFenceEachOther: of two clients that fence each other at once at least one ends, and the server stays usable.
func TestFenceEachOther(t *testing.T) {
	bounded(t, time.Minute)
	h := newHost(t)
	for range 50 {
		a, b := dial(t, h.address(), named()), dial(t, h.address(), named())
		var both sync.WaitGroup
		var errs [2]error
		both.Go(func() { errs[0] = a.Fence(context.Background(), b.Name(), 0) })
		both.Go(func() { errs[1] = b.Fence(context.Background(), a.Name(), 0) })
		both.Wait()
		if errs[0] == nil && errs[1] == nil {
			t.Fatal("each has ended the other, and been answered")
		}
		_, _ = a.Close(), b.Close()
	}
	last := dial(t, h.address(), named())
	if _, _, err := last.Stat("disk"); err != nil {
		t.Error(err)
	}
}

// TestNamesEndWithServer: a client with a name ends with its server, since no client can fence it at the next one,
// and repeats nothing. One without goes on.
func TestNamesEndWithServer(t *testing.T) {
	bounded(t, time.Minute)
	h := newHost(t)
	p := newProxy(t, h.address(), never)
	a, b := dial(t, p.address(), named()), dial(t, p.address(), quick())
	f, g := open(t, a, "disk"), open(t, b, "disk")
	if _, err := g.WriteDurable(bytes.Repeat([]byte{2}, 4096), 0); err != nil {
		t.Fatal(err)
	}
	draw := rng.NewStream(1, "names")
	h.kill(p, &draw)
	got := make([]byte, 4096)
	if _, err := f.ReadAt(got, 0); !errors.Is(err, client.ErrFenced) {
		t.Errorf("a client with a name reads from another server: %v", err)
	}
	if _, err := g.ReadAt(got, 0); err != nil || got[0] != 2 {
		t.Errorf("a client without reads %d: %v", got[0], err)
	}
}

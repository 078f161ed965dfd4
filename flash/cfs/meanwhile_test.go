package cfs_test

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/numeric/rng"
)

// until polls for a condition that other goroutines bring about.
func until(t *testing.T, what string, there func() bool) {
	t.Helper()
	for begin := time.Now(); !there(); time.Sleep(100 * time.Microsecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("%s does not come", what)
		}
	}
}

// stuck holds a page of a file, so that requests for it block until release is called.
func stuck(t *testing.T, f *cfs.FS, pool *ctl.Pool, path string, page uint64) (base uint64, release func()) {
	t.Helper()
	at, err := f.Stat(root, path)
	ok(t, err)
	base = at.Base / ctl.Page
	var held ctl.Ref
	pool.Get(base+page, ctl.Whole, func(r ctl.Ref, err error) {
		ok(t, err)
		held = r
	})
	if !held.Fill {
		t.Fatal("somebody has the page")
	}
	return base, func() { pool.Put(held, ctl.Kept, heat.Auto, nil) }
}

// TestReadWhileCut verifies that a read of a file that is truncated concurrently ends at the new size and returns only
// data of the file.
func TestReadWhileCut(t *testing.T) {
	dev := blank(t, 1500)
	f, pool := mount(t, dev)
	want := fill(100*ctl.Page, 1)
	put(t, f, "/a", want)
	unmount(t, f, pool)
	f, pool = mount(t, dev.Reopen())
	base, release := stuck(t, f, pool, "/a", 3)
	reader := must(f.Open(root, "/a", cfs.Read))(t)
	cutter := must(f.Open(root, "/a", cfs.Write))(t)
	got := bytes.Repeat([]byte{0xee}, len(want))
	var n int
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, err = reader.ReadAt(got, 0)
	}()
	until(t, "the read's 64th page", func() bool {
		reads, _ := pool.Heat(base + 63)
		return reads > 0
	})
	const left = 69*ctl.Page + 100
	ok(t, cutter.Truncate(left))
	release()
	<-done
	if n != left || err != io.EOF || !bytes.Equal(got[:n], want[:n]) {
		t.Errorf("%d bytes, %v; the file has %d by now", n, err, left)
	}
	ok(t, reader.Close())
	ok(t, cutter.Close())
	unmount(t, f, pool)
}

// TestReadQueuedWhileCut verifies the same for a read whose requests wait for memory while the truncation takes effect.
func TestReadQueuedWhileCut(t *testing.T) {
	for _, left := range []int64{0, 5*ctl.Page + 100} {
		dev := blank(t, 1500)
		f, pool := mount(t, dev)
		want := fill(20*ctl.Page, 1)
		put(t, f, "/a", want)
		unmount(t, f, pool)
		dev = dev.Reopen()
		f, pool = mount(t, dev)
		at := must(f.Stat(root, "/a"))(t)
		cutter := must(f.Open(root, "/a", cfs.Write))(t)
		reader := must(f.Open(root, "/a", cfs.Read))(t)
		dev.Hold(true)
		cut, done := make(chan error, 1), make(chan struct{})
		go func() { cut <- cutter.Truncate(left) }()
		until(t, "what the cut writes", func() bool { return dev.Held() > 0 })
		// Take all frames, including those that become free until the truncation takes effect.
		release := make(chan struct{})
		var held sync.WaitGroup
		for i := range 2 * pool.Frames() {
			held.Add(1)
			pool.Get(1<<45+uint64(i), ctl.Reading, func(r ctl.Ref, err error) {
				go func() {
					defer held.Done()
					<-release
					pool.Put(r, ctl.Kept, heat.Auto, nil)
				}()
			})
		}
		var n int
		var err error
		got := bytes.Repeat([]byte{0xee}, len(want))
		go func() {
			defer close(done)
			n, err = reader.ReadAt(got, 0)
		}()
		until(t, "the wish for the last page", func() bool {
			reads, _ := pool.Heat(at.Base/ctl.Page + 19)
			return reads > 0
		})
		draw := rng.NewStream(1, "cut")
		until(t, "the cut", func() bool {
			dev.Step(&draw)
			return len(cut) > 0
		})
		ok(t, <-cut)
		close(release)
		dev.Hold(false)
		for dev.Step(&draw) {
		}
		<-done
		held.Wait()
		if n != int(left) || err != io.EOF || !bytes.Equal(got[:n], want[:n]) {
			t.Errorf("%d bytes, %v; the file has %d by now", n, err, left)
		}
		ok(t, cutter.Close())
		ok(t, reader.Close())
		for _, v := range f.Check().Violations {
			t.Error(v)
		}
		unmount(t, f, pool)
	}
}

// taking is a file of eight pages with an Allocate in progress, which has allocated some pages and waits for a held
// one, and a second handle of the file.
type taking struct {
	*cfs.FS
	pool    *ctl.Pool
	a, b    *cfs.File // a runs Allocate
	used    int64     // pages in use before
	done    chan error
	release func()
}

// allocating returns a file with an Allocate of size bytes in progress.
func allocating(t *testing.T, size int64) *taking {
	t.Helper()
	w := &taking{done: make(chan error, 1)}
	w.FS, w.pool = mount(t, blank(t, 1500))
	w.a = must(w.Create(root, "/a", 0o644, 8*ctl.Page))(t)
	w.b = must(w.Open(root, "/a", cfs.Read|cfs.Write))(t)
	_, w.release = stuck(t, w.FS, w.pool, "/a", 3)
	w.used, _ = w.pool.Use()
	go func() { w.done <- w.a.Allocate(size) }()
	until(t, "the first room that is taken", func() bool {
		now, _ := w.pool.Use()
		return now > w.used+40
	})
	return w
}

// end closes everything and checks the pool.
func (w *taking) end(t *testing.T) {
	t.Helper()
	for _, v := range w.Check().Violations {
		t.Error(v)
	}
	ok(t, w.a.Close())
	ok(t, w.b.Close())
	unmount(t, w.FS, w.pool)
}

// TestAllocateWhileWritten verifies that an Allocate that finds the pool full preserves concurrent writes through
// another handle, before and beyond the old end, and releases the space that it had allocated.
func TestAllocateWhileWritten(t *testing.T) {
	w := allocating(t, 10_000_000)
	want := fill(2*ctl.Page, 2)
	must(w.b.WriteAt(want, 20*ctl.Page))(t)
	must(w.b.WriteAt(want, 0))(t)
	ok(t, w.b.Sync())
	for _, v := range w.Check().Violations {
		t.Errorf("while it takes room: %v", v)
	}
	w.release()
	is(t, <-w.done, ctl.ErrFull)
	if n := w.b.Size(); n != 22*ctl.Page {
		t.Errorf("the file has %d bytes after a refusal", n)
	}
	got := make([]byte, len(want))
	for _, at := range []int64{0, 20 * ctl.Page} {
		if _, err := w.b.ReadAt(got, at); err != nil || !bytes.Equal(got, want) {
			t.Errorf("what was written at %d and synced is gone: %v", at, err)
		}
	}
	ok(t, w.a.Sync())
	if now, _ := w.pool.Use(); now > w.used+25 {
		t.Errorf("%d pages are taken, there were %d", now, w.used)
	}
	w.end(t)
}

// TestAllocateWhileCut verifies that an Allocate whose file is truncated concurrently allocates the space again.
func TestAllocateWhileCut(t *testing.T) {
	w := allocating(t, 100*ctl.Page)
	ok(t, w.b.Truncate(5*ctl.Page))
	w.release()
	ok(t, <-w.done)
	s := must(w.Stat(root, "/a"))(t)
	if s.Size != 100*ctl.Page || s.Used != 100*ctl.Page {
		t.Errorf("%d bytes, %d of them with room", s.Size, s.Used)
	}
	w.end(t)
}

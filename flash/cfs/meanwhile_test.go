package cfs_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
)

// until waits for something that others bring about.
func until(t *testing.T, what string, there func() bool) {
	t.Helper()
	for begin := time.Now(); !there(); time.Sleep(100 * time.Microsecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("%s does not come", what)
		}
	}
}

// stuck holds a page of a file, so that whoever wants it waits, until it is let go.
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

// TestReadWhileCut holds that a read of a file that is cut meanwhile ends where the file does, and returns nothing that was never in it.
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

// TestAllocateWhileWritten holds that an Allocate that finds the pool full takes nothing away that another handle wrote meanwhile, behind the old end or before it, and gives back what it
// had taken.
func TestAllocateWhileWritten(t *testing.T) {
	dev := blank(t, 1500)
	f, pool := mount(t, dev)
	a := must(f.Create(root, "/a", 0o644, 8*ctl.Page))(t)
	b := must(f.Open(root, "/a", cfs.Read|cfs.Write))(t)
	_, release := stuck(t, f, pool, "/a", 3)
	used, _ := pool.Use()
	done := make(chan error, 1)
	go func() { done <- a.Allocate(10_000_000) }()
	until(t, "the first room that is taken", func() bool {
		now, _ := pool.Use()
		return now > used+40
	})
	want := fill(2*ctl.Page, 2)
	must(b.WriteAt(want, 20*ctl.Page))(t)
	must(b.WriteAt(want, 0))(t)
	ok(t, b.Sync())
	for _, v := range f.Check().Violations {
		t.Errorf("while it takes room: %v", v)
	}
	release()
	is(t, <-done, ctl.ErrFull)
	if n := b.Size(); n != 22*ctl.Page {
		t.Errorf("the file has %d bytes after a refusal", n)
	}
	got := make([]byte, len(want))
	for _, at := range []int64{0, 20 * ctl.Page} {
		if _, err := b.ReadAt(got, at); err != nil || !bytes.Equal(got, want) {
			t.Errorf("what was written at %d and synced is gone: %v", at, err)
		}
	}
	ok(t, a.Sync())
	if now, _ := pool.Use(); now > used+25 {
		t.Errorf("%d pages are taken, there were %d", now, used)
	}
	for _, v := range f.Check().Violations {
		t.Error(v)
	}
	ok(t, a.Close())
	ok(t, b.Close())
	unmount(t, f, pool)
}

// TestAllocateWhileCut holds that an Allocate whose file is cut meanwhile takes the room again.
func TestAllocateWhileCut(t *testing.T) {
	dev := blank(t, 1500)
	f, pool := mount(t, dev)
	a := must(f.Create(root, "/a", 0o644, 8*ctl.Page))(t)
	b := must(f.Open(root, "/a", cfs.Read|cfs.Write))(t)
	_, release := stuck(t, f, pool, "/a", 3)
	used, _ := pool.Use()
	done := make(chan error, 1)
	go func() { done <- a.Allocate(100 * ctl.Page) }()
	until(t, "the first room that is taken", func() bool {
		now, _ := pool.Use()
		return now > used+40
	})
	ok(t, b.Truncate(5*ctl.Page))
	release()
	ok(t, <-done)
	s := must(f.Stat(root, "/a"))(t)
	if s.Size != 100*ctl.Page || s.Used != 100*ctl.Page {
		t.Errorf("%d bytes, %d of them with room", s.Size, s.Used)
	}
	ok(t, a.Close())
	ok(t, b.Close())
	unmount(t, f, pool)
}

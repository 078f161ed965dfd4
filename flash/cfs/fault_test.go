package cfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"testing"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// step is an operation of a story, and the state expected after it.
type step struct {
	name string
	do   func(f *cfs.FS) error
}

// steps returns one step of each kind; a file's content is identified by its size.
func steps() []step {
	create := func(path string, n int) step {
		return step{"create " + path, func(f *cfs.FS) error {
			file, err := f.Temp(root, 0o644)
			if err != nil {
				return err
			}
			_, err = file.WriteAt(fill(n, uint64(n)), 0)
			if err == nil {
				err = file.Name(root, path, false)
			}
			return errors.Join(err, file.Close())
		}}
	}
	truncate := func(path string, n int64) step {
		return step{fmt.Sprint("truncate ", path, n), func(f *cfs.FS) error {
			file, err := f.Open(root, path, cfs.Read|cfs.Write)
			if err != nil {
				return err
			}
			return errors.Join(file.Truncate(n), file.Close())
		}}
	}
	return []step{
		{"mkdir", func(f *cfs.FS) error { return f.Mkdir(root, "/d", 0o755) }},
		create("/d/a", 9000), create("/b", 30_000),
		{"rename", func(f *cfs.FS) error { return f.Rename(root, "/d/a", "/a", false) }},
		truncate("/a", 70_000), truncate("/a", 9000),
		create("/d/c", 5000),
		{"rename over", func(f *cfs.FS) error { return f.Rename(root, "/d/c", "/b", false) }},
		{"remove", func(f *cfs.FS) error { return f.Remove(root, "/d") }},
		{"remove", func(f *cfs.FS) error { return f.Remove(root, "/a") }},
	}
}

// tree describes the tree: names, sizes, and whether each content matches its initial size.
func tree(f *cfs.FS) (string, error) {
	var s bytes.Buffer
	for _, dir := range []string{"/", "/d"} {
		all, err := f.List(root, dir)
		if err != nil {
			continue
		}
		for _, x := range all {
			fmt.Fprintf(&s, "%s %v %d", x.Path, x.Kind, x.Size)
			if x.Kind == cfs.Regular {
				file, err := f.Open(root, x.Path, cfs.Read)
				if err != nil {
					return "", err
				}
				b, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<20))
				if err != nil {
					return "", err
				}
				n := int(min(x.Size, int64(len(b)))) // a fuzzer's file may be larger than the part read
				if n == 70_000 {
					n = 9000
				}
				fmt.Fprintf(&s, " %v",
					bytes.Equal(b[:n], fill(n, uint64(n))) && bytes.Equal(b[n:], make([]byte, len(b)-n)))
				if err := file.Close(); err != nil {
					return "", err
				}
			}
			s.WriteString("; ")
		}
	}
	return s.String(), nil
}

// TestEveryOperationFails fails each device operation of a story once with EIO, once with ENOSPC, and all from each one
// on. Every step either took effect or did not, everything acknowledged is found afterwards, and no resource leaks.
func TestEveryOperationFails(t *testing.T) {
	cfg, _ := smallPool()
	empty := blank(t, 900)
	var states []string
	f, pool := mount(t, empty.Reopen())
	for _, s := range append([]step{{"nothing", func(*cfs.FS) error { return nil }}}, steps()...) {
		if err := s.do(f); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		states = append(states, must(tree(f))(t))
	}
	unmount(t, f, pool)
	story := func(dev *device.Mem, label string) (acked int) {
		pool, err := ctl.Open(cfg, dev)
		if err != nil {
			return 0
		}
		defer func() { _ = pool.Close() }() // may fail with the injected fault
		f, err := cfs.Open(pool, cfs.Config{})
		if err != nil {
			return 0
		}
		for i, s := range steps() {
			if err := s.do(f); err != nil {
				if !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, ctl.ErrReadOnly) {
					t.Fatalf("%s: %s: %v", label, s.name, err)
				}
				break
			}
			acked = i + 1
		}
		for _, v := range pool.Check(false).Violations {
			t.Errorf("%s: %v", label, v)
		}
		return acked
	}
	whole := empty.Reopen()
	whole.SetFaults(device.Faults{})
	if n := story(whole, "no fault"); n != len(steps()) {
		t.Fatalf("%d steps without a fault", n)
	}
	// From the 47th on, /b is the first to fail for lack of space, with the reason: all segments have failed.
	first, stride, before := int64(2), int64(5), runtime.NumGoroutine()
	switch {
	case raced:
		stride = 45
	case patience.Long(t):
		first, stride = 1, 1
	}
	for at := first; at <= whole.Count(); at += stride {
		for _, fault := range []device.Faults{{FailAt: at}, {FailAt: at, FailFull: true}, {FailFrom: at},
			{FailFrom: at, FailFull: true}} {
			label := fmt.Sprintf("%+v", fault)
			dev := empty.Reopen()
			dev.SetFaults(fault)
			acked := story(dev, label)
			f, pool := mount(t, dev.Reopen())
			got := must(tree(f))(t)
			if got != states[acked] && (acked == len(states)-1 || got != states[acked+1]) {
				t.Fatalf("%s: after %d steps there is %q; it should be %q or what is next", label, acked, got,
					states[acked])
			}
			unmount(t, f, pool)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// rotten returns the result of opening and checking a pool whose metadata was modified underneath the file system.
func rotten(t testing.TB, change func(pool *ctl.Pool)) (cfs.Report, error) {
	dev := blank(t, 900)
	f, pool := mount(t, dev)
	for _, s := range steps()[:5] {
		ok(t, s.do(f))
	}
	change(pool)
	r, _, err := cfs.CheckPool(pool, cfs.Config{})
	if err == nil && len(r.Violations) > 0 {
		if _, err := cfs.Open(pool, cfs.Config{}); err == nil {
			t.Errorf("it opens, with violations %v", r.Violations)
		}
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	return r, err
}

const inodes = uint64(1<<25) * ctl.Page

// TestDamage verifies that every modification of the metadata is found and reported, and that a damaged file system is
// not opened.
func TestDamage(t *testing.T) {
	flip := func(at uint64) func(*ctl.Pool) {
		return func(pool *ctl.Pool) {
			var b [1]byte
			ok(t, pool.ReadAt(b[:], at))
			b[0] ^= 0x10
			ok(t, pool.WriteAt(b[:], at, true))
		}
	}
	for _, c := range []struct {
		name   string
		change func(*ctl.Pool)
		least  int
	}{
		{"superblock", flip(20), 1},
		{"root", flip(inodes + 32 + 5), 1},
		{"file's size", flip(inodes + 3*32 + 8), 2},
		{"free inode", flip(inodes + 100*32), 1},
		{"inode 0", flip(inodes + 3), 1},
		{"directory", flip(1<<26*ctl.Page + 100), 1},
		{"all inodes", func(pool *ctl.Pool) { ok(t, pool.WriteAt(bytes.Repeat([]byte{7}, ctl.Page), inodes, true)) },
			128},
		{"inodes far away", func(pool *ctl.Pool) { ok(t, pool.WriteAt([]byte{1}, 2*inodes-ctl.Page, true)) }, 1},
		{"two the same", func(pool *ctl.Pool) {
			b := make([]byte, 32)
			ok(t, pool.ReadAt(b, inodes+3*32))
			ok(t, pool.WriteAt(b, inodes+7*32, true))
		}, 1},
	} {
		r, err := rotten(t, c.change)
		if err != nil || len(r.Violations) < c.least {
			t.Errorf("%s: %v, %v", c.name, r.Violations, err)
		}
		for _, v := range r.Violations {
			if v.Path == "" || v.What == "" {
				t.Errorf("%s: %+v", c.name, v)
			}
		}
	}
}

// FuzzMetadata overwrites any part of the metadata with arbitrary bytes, with corrected checksums on request. The file
// system opens and passes its own check, or reports the damage; it never panics, and no name contains a path.
func FuzzMetadata(f *testing.F) {
	f.Add(uint64(32), []byte{1, 2, 3}, true, uint8(0))
	f.Add(uint64(96), bytes.Repeat([]byte{0xff}, 32), true, uint8(0))
	f.Add(uint64(16), []byte{9, 0}, true, uint8(1))
	f.Add(uint64(33), []byte{255, 'a', '/', 'b'}, true, uint8(1))
	f.Add(uint64(8), []byte{2}, false, uint8(2))
	seed := blank(f, 900)
	fs, pool := mount(f, seed)
	for _, s := range steps()[:5] {
		ok(f, s.do(fs))
	}
	ok(f, pool.Close())
	f.Fuzz(func(t *testing.T, at uint64, b []byte, right bool, where uint8) {
		defer patience.Limit()()
		cfg, _ := smallPool()
		pool := must(ctl.Open(cfg, seed.Reopen()))(t)
		defer func() { ok(t, pool.Close()) }()
		page := make([]byte, ctl.Page)
		home := []uint64{1 << 25, 1 << 26, 0, 1 << 10}[where%4]
		ok(t, pool.ReadAt(page, home*ctl.Page))
		copy(page[at%ctl.Page:], b)
		if right {
			cfs.MakeRight(page, pool.Shape().UUID, where%4)
		}
		ok(t, pool.WriteAt(page, home*ctl.Page, true))
		r, _, err := cfs.CheckPool(pool, cfs.Config{})
		if err != nil || len(r.Violations) > 0 {
			return
		}
		open := must(cfs.Open(pool, cfs.Config{}))(t)
		if _, err := tree(open); err != nil {
			t.Error(err)
		}
		draw := rng.NewStream(at, "after")
		for i := range 5 {
			_ = open.Mkdir(root, fmt.Sprint("/x", i), uint16(draw.IntN(512))) // may exist or be refused
		}
		for _, v := range open.Check().Violations {
			t.Error(v)
		}
	})
}

// TestReadOnlyPool verifies that files can be read and checked in a pool that was opened read-only after a crash,
// whatever cleanup is pending.
func TestReadOnlyPool(t *testing.T) {
	dev := blank(t, 1500)
	f, _ := mount(t, dev)
	put(t, f, "/a", fill(10*ctl.Page, 1))
	file := must(f.Temp(root, 0o644))(t) // left nameless
	must(file.WriteAt(fill(5*ctl.Page, 2), 0))(t)
	ok(t, file.Sync())
	draw := rng.NewStream(1, "killed")
	left := dev.Kill(&draw)
	left.SetFaults(device.Faults{Full: 1})
	f, pool := mount(t, left)
	if err := pool.ReadOnly(); !errors.Is(err, device.ErrSpace) {
		t.Fatalf("read-only: %v", err)
	}
	if got := get(t, f, "/a"); !bytes.Equal(got, fill(10*ctl.Page, 1)) {
		t.Error("a file is not what it was")
	}
	for _, v := range f.Check().Violations {
		t.Error(v)
	}
	is(t, f.Remove(root, "/a"), ctl.ErrReadOnly)
	is(t, pool.Close(), ctl.ErrReadOnly)
	left.SetFaults(device.Faults{})
	f, pool = mount(t, left.Reopen())
	if n := f.Found().Nameless; n != 1 {
		t.Errorf("%d files without a name are found when the pool can be written", n)
	}
	unmount(t, f, pool)
}

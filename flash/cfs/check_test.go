package cfs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/device"
)

// checked returns a file system with /a, /b, /d, /d/c and /d/e, from which /b was removed, so that an unused inode
// number lies between used ones.
func checked(t *testing.T) *FS {
	t.Helper()
	fs, _ := checkedOn(t)
	return fs
}

// checkedOn is checked, with its device.
func checkedOn(t *testing.T) (*FS, *device.Mem) {
	t.Helper()
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Chunk = 64, 4
	layout := ctl.Layout{Segment: 16, OverProvision: 0.3, LogPages: 64}
	layout.UUID[0] = 5
	dev := device.NewMem(900 * device.Grain)
	shape, err := layout.Shape(dev.Size())
	try(t, err)
	try(t, ctl.Format(shape, dev))
	pool, err := ctl.Open(cfg, dev)
	try(t, err)
	when := Config{Now: func() time.Time { return time.Unix(1e9, 0) }}
	try(t, Format(pool, when))
	fs, err := Open(pool, when)
	try(t, err)
	who := Cred{}
	try(t, fs.Mkdir(who, "/d", 0o755))
	for _, path := range []string{"/a", "/b", "/d/c", "/d/e"} {
		f, err := fs.Create(who, path, 0o644, 0)
		try(t, err)
		_, err = f.WriteAt([]byte(path+strings.Repeat("-", 3*ctl.Page)), 0)
		try(t, err)
		try(t, f.Close())
	}
	try(t, fs.Remove(who, "/b"))
	r := fs.Check()
	// Files of three pages plus some bytes take four pages; directories take one each.
	if len(r.Violations) > 0 || r.Files != 3 || r.Directories != 2 || r.Pages != 3*4+2 {
		t.Fatalf("%+v", r)
	}
	return fs, dev
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// said looks for violations.
func said(t *testing.T, all []ctl.Violation, path, what string) {
	t.Helper()
	for _, v := range all {
		if v.Path == path && strings.Contains(v.What, what) {
			return
		}
	}
	t.Errorf("it is not said of %q that %q: %v", path, what, all)
}

func find(t *testing.T, fs *FS, path string) *node {
	t.Helper()
	n, err := fs.tree.lookup(Cred{}, Place{Path: path})
	try(t, err)
	return n
}

// TestCheckSees corrupts one item in memory at a time, or writes one page that no file owns: each is reported at its
// path, and all files are still counted.
func TestCheckSees(t *testing.T) {
	for _, x := range []struct {
		name       string
		harm       func(fs *FS) string // returns the path at which it must be reported
		what       string
		files      int
		violations int // 0: any number
	}{
		{"a file that memory has not", func(fs *FS) string {
			n := find(t, fs, "/d/e")
			fs.tree.nodes[n.number] = nil
			return fmt.Sprintf("inode %d", n.number)
		}, "stored: true; in memory: false", 2, 0},
		{"a file that is not stored", func(fs *FS) string {
			n := find(t, fs, "/a")
			other := *n
			other.number, other.order = uint32(len(fs.tree.nodes)), noOrder
			fs.tree.nodes = append(fs.tree.nodes, &other)
			return fmt.Sprintf("inode %d", other.number)
		}, "stored: false; in memory: true", 3, 0},
		{"another size", func(fs *FS) string { find(t, fs, "/a").size++; return "/a" }, "is stored as", 3, 1},
		{"another owner", func(fs *FS) string { find(t, fs, "/d/c").uid = 7; return "/d/c" }, "is stored as", 3, 1},
		{"another page of names", func(fs *FS) string { find(t, fs, "/d/c").at = 3; return "/d/c" }, "at page 3", 3, 1},
		{"names in another order", func(fs *FS) string { slices.Reverse(find(t, fs, "/d").pages[0]); return "/d" },
			"order of its names differs", 3, 1},
		{"room in a page of names", func(fs *FS) string { find(t, fs, "/d").rooms[0]--; return "/d" }, "bytes free",
			3, 1},
		{"a name less", func(fs *FS) string { delete(find(t, fs, "/d").children, "c"); return "/d" },
			"2 names are stored; memory has 1", 3, 1},
		{"a block that is nobody's", func(fs *FS) string {
			if !fs.tree.space.Reserve(1<<dataShift+1<<20, 4) {
				t.Fatal("it is not free")
			}
			return "free blocks"
		}, "memory has", 3, 1},
		{"a page behind a file's end", func(fs *FS) string {
			f, err := fs.Create(Cred{}, "/f", 0o600, 5*ctl.Page) // in a block of eight
			try(t, err)
			_, err = f.WriteAt(make([]byte, 5*ctl.Page), 0)
			try(t, err)
			try(t, f.Close())
			at := find(t, fs, "/f").base + 5
			try(t, fs.pool.WriteAt(make([]byte, 2*ctl.Page), at*ctl.Page, true))
			return fmt.Sprintf("page %d", at)
		}, "2 pages in use have no owner", 4, 1},
		{"pages before all files and behind them", func(fs *FS) string {
			try(t, fs.pool.WriteAt(make([]byte, ctl.Page), 900*ctl.Page, true))
			at := uint64(1<<dataShift + 1<<21)
			try(t, fs.pool.WriteAt(make([]byte, 3*ctl.Page), at*ctl.Page, true))
			said(t, fs.Check().Violations, "page 900", "1 pages in use have no owner")
			return fmt.Sprintf("page %d", at)
		}, "3 pages in use have no owner", 3, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			fs := checked(t)
			path := x.harm(fs)
			r := fs.Check()
			said(t, r.Violations, path, x.what)
			if r.Files != x.files || r.Directories != 2 || x.violations > 0 && len(r.Violations) != x.violations {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestStrays has unowned pages directly before and after a file's, in a single run of pages in use: only the unowned
// ones are reported.
func TestStrays(t *testing.T) {
	fs := checked(t)
	// A block of eight pages with a file of four in the middle: impossible on disk, but possible in memory.
	n := find(t, fs, "/a")
	base := n.base
	if n.order != 2 {
		t.Fatalf("four pages are in a block of 2^%d", n.order)
	}
	var all []extent
	for e := range fs.inUse(extent{1 << dataShift, 1 << 20}) {
		all = append(all, e)
	}
	n.base, n.size = base+1, 2*ctl.Page // the first and the last page are now unowned
	got := fs.strays(fs.tree)
	if want := []extent{{base, 1}, {base + 3, 1}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v, of %v in use", got, want, all)
	}
	n.pins, n.base, n.size = 1, base, 1 // pinned: users of the address may have written beyond the end
	if got := fs.strays(fs.tree); len(got) != 0 {
		t.Errorf("%v of a file whose address is relied on", got)
	}
}

// stored writes raw inodes by number, including invalid ones, and reloads the tree.
func stored(t *testing.T, fs *FS, all map[uint32]inode) []ctl.Violation {
	t.Helper()
	page := make([]byte, ctl.Page)
	try(t, fs.pool.ReadAt(page, inodePage*ctl.Page))
	for number, in := range all {
		in.encode(page[number*inodeSize:], fs.seed, number)
	}
	try(t, fs.pool.WriteAt(page, inodePage*ctl.Page, true))
	_, violations := fs.load()
	return violations
}

// TestLoadSees writes inodes that are invalid together: a file in no directory, overlapping blocks, a root that is not
// a directory.
func TestLoadSees(t *testing.T) {
	const far = 1<<dataShift + 1<<22
	file := func(base uint64, order uint8) inode {
		return inode{kind: Regular, base: base, order: order, size: ctl.Page, nameless: true}
	}
	t.Run("in no directory", func(t *testing.T) {
		in := inode{kind: Regular, order: noOrder}
		said(t, stored(t, checked(t), map[uint32]inode{20: in}), "inode 20", "the file is in no directory")
		in.kind = Directory
		said(t, stored(t, checked(t), map[uint32]inode{20: in}), "inode 20", "the directory is in no directory")
		in.kind, in.nameless = Regular, true
		if v := stored(t, checked(t), map[uint32]inode{20: in}); len(v) != 0 {
			t.Errorf("a file without a name: %v", v)
		}
	})
	t.Run("within another's block", func(t *testing.T) {
		// The first inner block ends before the second starts, and both are within the widest.
		v := stored(t, checked(t),
			map[uint32]inode{20: file(far, 3), 21: file(far+1, 0), 22: file(far+6, 1), 23: file(far+8, 3)})
		said(t, v, "inode 21", "overlaps that of inode 20, 2^3")
		said(t, v, "inode 22", "overlaps that of inode 20, 2^3")
		if len(v) != 2 {
			t.Errorf("blocks side by side: %v", v)
		}
	})
	t.Run("a root that is a file", func(t *testing.T) {
		said(t, stored(t, checked(t), map[uint32]inode{rootInode: {kind: Regular, order: noOrder}}), "/",
			"no root directory")
	})
}

// TestPassesOn verifies that errors are passed on: by Chown of a missing file, and by ReadAt and Temp in a closed pool.
func TestPassesOn(t *testing.T) {
	fs := checked(t)
	who := Cred{UID: 9}
	if err := fs.Chown(who, "/nowhere", 1, 1); err == nil {
		t.Error("what is not there has another owner")
	}
	f, err := fs.Open(Cred{}, "/a", Read)
	try(t, err)
	try(t, fs.pool.Close())
	if n, err := f.ReadAt(make([]byte, 10), 0); err == nil || n != 0 {
		t.Errorf("%d bytes were read of a pool that is closed", n)
	}
	if _, err := fs.Temp(Cred{}, 0o600); err == nil {
		t.Error("a file was made in a pool that is closed")
	}
}

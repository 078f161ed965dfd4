package cfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// TestMend damages one thing of a file system at a time. What can be mended only one way is, and all files that have an
// inode keep their content.
func TestMend(t *testing.T) {
	for _, x := range harms(t) {
		t.Run(x.name, func(t *testing.T) {
			f := checked(t)
			x.harm(f)
			s, err := NewSurvey(f.pool, Config{})
			try(t, err)
			if !strings.Contains(strings.Join(s.Mends, "\n"), x.mends) || (x.mends == "") != (len(s.Violations) == 0) {
				t.Errorf("planned is %q, of %v", s.Mends, s.Violations)
			}
			if _, err := Mend(f.pool, Config{}); err != nil {
				t.Fatal(err)
			}
			mended(t, f.pool, x.left)
		})
	}
	// Two files that have the same pages.
	f := checked(t)
	a, err := f.tree.lookup(Cred{}, Place{Path: "/a"})
	try(t, err)
	other, err := f.tree.lookup(Cred{}, Place{Path: "/d/c"})
	try(t, err)
	b := make([]byte, ctl.Page)
	try(t, f.pool.ReadAt(b, inodePage*ctl.Page))
	in := a.inode
	in.encode(b[other.number*inodeSize:], f.seed, other.number)
	try(t, f.pool.WriteAt(b, inodePage*ctl.Page, true))
	if s, err := NewSurvey(f.pool, Config{}); err != nil || !s.Hopeless {
		t.Errorf("%v, %+v", err, s)
	}
	if _, err := Mend(f.pool, Config{}); !errors.Is(err, errAmbiguous) {
		t.Error(err)
	}
}

// mended verifies that a file system passes all checks and has these paths.
func mended(t *testing.T, pool *ctl.Pool, left string) {
	t.Helper()
	r, _, err := CheckPool(pool, Config{})
	if try(t, err); len(r.Violations) > 0 {
		t.Fatalf("after mending: %v", r.Violations)
	}
	again, err := NewSurvey(pool, Config{})
	try(t, err)
	var paths []string
	for _, e := range again.Entries {
		paths = append(paths, e.Path)
	}
	if is := strings.Join(paths, " "); is != left || len(again.Violations) > 0 {
		t.Errorf("left are %s; they should be %s; %v", is, left, again.Violations)
	}
}

// TestMendCut cuts the power at each operation while a file system is mended. Mending it again has the same result.
func TestMendCut(t *testing.T) {
	draw := rng.NewStream(1, "mending")
	cuts := 0
	for _, x := range harms(t) {
		f, dev := checkedOn(t)
		x.harm(f)
		try(t, f.pool.Close())
		cfg := ctl.DefaultConfig()
		cfg.Frames, cfg.Chunk = 64, 4
		for k := int64(1); ; k++ {
			left := dev.Reopen()
			pool, err := ctl.Open(cfg, left)
			try(t, err)
			left.SetFaults(device.Faults{FailFrom: k})
			_, err = Mend(pool, Config{})
			left = left.Crash(&draw)
			again, failed := ctl.Open(cfg, left)
			try(t, failed)
			if _, err := Mend(again, Config{}); err != nil {
				t.Fatalf("%s, cut at %d: %v", x.name, k, err)
			}
			t.Run(fmt.Sprintf("%s, cut at %d", x.name, k), func(t *testing.T) { mended(t, again, x.left) })
			if cuts++; err == nil {
				break
			}
		}
	}
	t.Logf("%d cuts", cuts)
}

// harm is one thing that can be wrong with the file system of checked.
type harm struct {
	name  string
	harm  func(f *FS)
	mends string // in words
	left  string // the paths afterwards
}

func harms(t *testing.T) []harm {
	at := func(f *FS, path string) *node {
		n, err := f.tree.lookup(Cred{}, Place{Path: path})
		try(t, err)
		return n
	}
	rot := func(f *FS, page uint64, from int) {
		b := make([]byte, ctl.Page)
		try(t, f.pool.ReadAt(b, page*ctl.Page))
		b[from] ^= 1
		try(t, f.pool.WriteAt(b, page*ctl.Page, true))
	}
	return []harm{
		{"nothing", func(*FS) {}, "", "/a /d /d/c /d/e"},
		{"the superblock", func(f *FS) { rot(f, superPage, 9) }, "superblock of the file system is written",
			"/a /d /d/c /d/e"},
		{"an inode of a file", func(f *FS) { rot(f, inodePage, int(at(f, "/a").number)*inodeSize+3) },
			"the name /a is removed", "/d /d/c /d/e"},
		{"an inode of a directory", func(f *FS) { rot(f, inodePage, int(at(f, "/d").number)*inodeSize+3) },
			"becomes /lost+found/inode-", "/a /lost+found /lost+found/inode-5 /lost+found/inode-6"},
		{"the page of inodes", func(f *FS) {
			// without the earlier versions that changes leave in spare pages
			try(t, f.remap([]ctl.Step{{From: sparePage, Count: spares, Drop: true},
				{From: inodePage, Count: 1, Drop: true}}))
		}, "the root directory is made anew", ""},
		{"the page of inodes, which has an earlier version",
			func(f *FS) { try(t, f.remap([]ctl.Step{{From: inodePage, Count: 1, Drop: true}})) },
			"inodes 0 to 127 are taken from an earlier version", "/a /d /d/c /d/e /lost+found /lost+found/inode-4"},
		{"the names of the root", func(f *FS) {
			try(t, f.remap([]ctl.Step{{From: sparePage, Count: spares, Drop: true}}))
			rot(f, f.tree.root().base, 50)
		}, "the files go to /lost+found", "/lost+found /lost+found/inode-2 /lost+found/inode-2/c " +
			"/lost+found/inode-2/e /lost+found/inode-3"},
		{"the names of a directory", func(f *FS) { rot(f, at(f, "/d").base, 50) }, "the names in page 0 of /d are lost",
			"/a /d /lost+found /lost+found/inode-5 /lost+found/inode-6"},
		{"the names of a directory, of which there is an earlier version", func(f *FS) {
			file, err := f.Create(Cred{}, "/d/late", 0o600, 0)
			try(t, err)
			try(t, file.Close())
			rot(f, at(f, "/d").base, 50)
		}, "page 0 of /d are taken from an earlier version", "/a /d /d/c /d/e /lost+found /lost+found/inode-4"},
		{"a second name", func(f *FS) {
			root, b := f.tree.root(), make([]byte, ctl.Page)
			encodeDir(b, f.seed, rootInode, 0, append(slices.Clone(root.pages[0]), dirent{"z", at(f, "/d/c").number}))
			try(t, f.pool.WriteAt(b, root.base*ctl.Page, true))
		}, "is removed: inode", "/a /d /d/e /z"},
	}
}

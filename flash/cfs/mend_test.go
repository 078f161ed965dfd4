package cfs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"farflash/flash/ctl"
)

// TestMend damages one thing of a file system at a time. What can be mended only one way is, and all files that have an
// inode keep their content.
func TestMend(t *testing.T) {
	at := func(f *FS, path string) *node {
		n, err := f.tree.lookup(Cred{}, path)
		try(t, err)
		return n
	}
	rot := func(f *FS, page uint64, from int) {
		b := make([]byte, ctl.Page)
		try(t, f.pool.ReadAt(b, page*ctl.Page))
		b[from] ^= 1
		try(t, f.pool.WriteAt(b, page*ctl.Page, true))
	}
	for _, x := range []struct {
		name  string
		harm  func(f *FS)
		mends string
		left  string // the paths afterwards
	}{
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
	} {
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
			r, _, err := CheckPool(f.pool, Config{})
			if try(t, err); len(r.Violations) > 0 {
				t.Fatalf("after mending: %v", r.Violations)
			}
			again, err := NewSurvey(f.pool, Config{})
			try(t, err)
			var paths []string
			for _, e := range again.Entries {
				paths = append(paths, e.Path)
			}
			if is := strings.Join(paths, " "); is != x.left || len(again.Violations) > 0 {
				t.Errorf("left are %s; they should be %s; %v", is, x.left, again.Violations)
			}
		})
	}
	// Two files that have the same pages: nobody knows whose they are.
	f := checked(t)
	in := at(f, "/a").inode
	b := make([]byte, ctl.Page)
	try(t, f.pool.ReadAt(b, inodePage*ctl.Page))
	other := at(f, "/d/c")
	in.encode(b[other.number*inodeSize:], f.seed, other.number)
	try(t, f.pool.WriteAt(b, inodePage*ctl.Page, true))
	if s, err := NewSurvey(f.pool, Config{}); err != nil || !s.Hopeless {
		t.Errorf("%v, %+v", err, s)
	}
	if _, err := Mend(f.pool, Config{}); !errors.Is(err, errAmbiguous) {
		t.Error(err)
	}
}

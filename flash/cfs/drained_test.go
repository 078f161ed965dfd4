package cfs

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"farflash/flash/ctl"
)

// TestDrained verifies that the mark of a drained file moves with the file, stays with its name when another file
// replaces it, and survives a close and reopen; that only the owner and UID 0 set it, and only on regular files.
func TestDrained(t *testing.T) {
	f, _ := checkedOn(t)
	who := Cred{}
	drain := func(f *FS, path string, on bool) {
		t.Helper()
		if brief, err := f.Drain(who, path, on); brief != nil || err != nil {
			t.Fatalf("%v, %v", brief, err)
		}
	}
	are := func(f *FS, want ...string) {
		t.Helper()
		if all := f.Drained(); !slices.Equal(all, want) {
			t.Errorf("%v are drained, not %v", all, want)
		}
	}
	again := func() *FS {
		t.Helper()
		next, err := Open(f.pool, Config{})
		try(t, err)
		for _, v := range next.Check().Violations {
			t.Error(v)
		}
		return next
	}
	drain(f, "/d/c", true)
	drain(f, "/d/c", true)
	drain(f, "/a", true)
	drain(f, "/a", false)
	are(f, "/d/c")
	are(again(), "/d/c")
	x, err := f.Open(who, "/d/c", Read|Write)
	try(t, err)
	if i, err := f.Stat(who, "/d/c"); !x.Drained() || !i.Drained || err != nil {
		t.Errorf("%v, %+v, %v", x.Drained(), i, err)
	}
	try(t, x.Truncate(8*ctl.Page))
	try(t, x.Close())
	try(t, f.Chmod(who, "/d/c", 0o600))
	try(t, f.Rename(who, "/d/c", "/moved", true))
	are(f, "/moved")
	are(again(), "/moved")
	try(t, f.Rename(who, "/a", "/moved", false))
	are(f, "/moved")
	are(again(), "/moved")
	try(t, f.Rename(who, "/moved", "/d/e", false))
	x, err = f.Create(who, "/moved", 0o600, 0)
	try(t, err)
	if x.Drained() {
		t.Error("a new file is drained because one before had its name")
	}
	try(t, x.Close())
	are(again(), "/d/e")
	x, err = f.Open(who, "/d/e", Read)
	try(t, err)
	try(t, f.Remove(who, "/d/e"))
	are(f) // it is no export any more
	try(t, x.Close())
	are(again())

	if _, err := f.Drain(who, "/d", true); !errors.Is(err, ErrIsDir) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := f.Drain(who, "/x", true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := f.Drain(Cred{UID: 1}, "/moved", true); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("another's file: %v", err)
	}
}

// TestDrainedBefore verifies that in a file system of an older layout a file can be drained until that is closed, that
// no other change writes what the layout does not have, and that the reason is given; after an upgrade the mark lasts.
func TestDrainedBefore(t *testing.T) {
	f, _ := checkedOn(t)
	who := Cred{}
	page := make([]byte, ctl.Page)
	encodeSuper(page, f.uuid, drainedVersion-1, nil)
	try(t, f.pool.WriteAt(page, superPage*ctl.Page, true))
	old, err := Open(f.pool, Config{})
	try(t, err)
	brief, err := old.Drain(who, "/a", true)
	if err != nil || brief == nil || !strings.Contains(brief.Error(), "flash upgrade") {
		t.Fatalf("%v, %v", brief, err)
	}
	try(t, old.Chmod(who, "/a", 0o600))
	if all := old.Drained(); !slices.Equal(all, []string{"/a"}) {
		t.Errorf("%v are drained", all)
	}
	later, err := Open(f.pool, Config{})
	try(t, err)
	if all := later.Drained(); len(all) != 0 {
		t.Errorf("layout %d keeps that %v are drained", later.Layout(), all)
	}
	try(t, later.Upgrade())
	if brief, err := later.Drain(who, "/a", true); brief != nil || err != nil {
		t.Errorf("%v, %v", brief, err)
	}
	later, err = Open(f.pool, Config{})
	try(t, err)
	if all := later.Drained(); !slices.Equal(all, []string{"/a"}) {
		t.Errorf("after an upgrade %v are drained", all)
	}
}

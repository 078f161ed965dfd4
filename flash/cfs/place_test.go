package cfs_test

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
)

func at(path string) cfs.Place { return cfs.Place{Path: path} }

// TestHandle: a handle follows its file through renames and a new opening of the file system, and never leads to
// another file that has the inode, not even to the 63rd after it.
func TestHandle(t *testing.T) {
	dev := blank(t, 600)
	f, pool := mount(t, dev)
	ok(t, f.Mkdir(root, "/d", 0o755))
	old := must(f.Make(root, root, at("/d/old"), cfs.Regular, 0o644, 5000))(t).Status.Handle
	unmount(t, f, pool)
	dev = dev.Reopen()
	f, pool = mount(t, dev)
	made := must(f.Make(root, cfs.Cred{UID: 3, GID: 4}, at("/d/f"), cfs.Regular, 0o640, 0))(t).Status
	if made.UID != 3 || made.GID != 4 || made.Perm != 0o640 || made.Path != "/d/f" {
		t.Errorf("%+v", made)
	}
	h := made.Handle
	ok(t, f.Rename(root, "/d", "/e", true))
	_, err := f.RenameAt(root, cfs.Place{At: h}, at("/x"), true)
	is(t, err, fs.ErrExist) // a handle alone has no name to change
	for _, x := range []cfs.Handle{h, old} {
		s := must(f.StatAt(root, cfs.Place{At: x}))(t).Status
		if s.Handle.Inode != x.Inode || !strings.HasPrefix(s.Path, "/e/") {
			t.Errorf("%+v at %s", x, s.Path)
		}
	}
	dir := must(f.StatAt(root, at("/e")))(t).Status.Handle
	if s := must(f.StatAt(root, cfs.Place{At: dir, Path: "f"}))(t).Status; s.Path != "/e/f" {
		t.Errorf("%+v", s)
	}
	for range 130 {
		must(f.RemoveAt(root, cfs.Place{At: dir, Path: "f"}, cfs.Regular))(t)
		if _, err := f.StatAt(root, cfs.Place{At: h}); err == nil {
			t.Fatal("the handle of a removed file is one of another")
		} else {
			is(t, err, cfs.ErrStale)
		}
		o := must(f.Make(root, root, cfs.Place{At: dir, Path: "f"}, cfs.Regular, 0o644, 0))(t)
		if o.Status.Inode != h.Inode {
			t.Fatalf("inode %d, want %d", o.Status.Inode, h.Inode)
		}
		_, err := f.StatAt(root, cfs.Place{At: h})
		is(t, err, cfs.ErrStale)
	}
	_, err = f.Make(root, root, cfs.Place{At: h, Path: "g"}, cfs.Regular, 0o644, 0)
	is(t, err, cfs.ErrStale)
	now := must(f.StatAt(root, at("/e/f")))(t).Status.Handle
	unmount(t, f, pool)
	f, pool = mount(t, dev.Reopen())
	must(f.StatAt(root, cfs.Place{At: now}))(t)
	must(f.StatAt(root, cfs.Place{At: old}))(t)
	unmount(t, f, pool)
}

// TestCounters: the counters of what a change concerns increase, others do not, and they never repeat.
func TestCounters(t *testing.T) {
	dev := blank(t, 600)
	f, pool := mount(t, dev)
	must(f.Make(root, root, at("/d"), cfs.Directory, 0o755, 0))(t)
	must(f.Make(root, root, at("/d/f"), cfs.Regular, 0o644, 0))(t)
	must(f.Make(root, root, at("/g"), cfs.Regular, 0o644, 0))(t)
	stat := func(path string) uint64 { return must(f.StatAt(root, at(path)))(t).Status.Changed }
	perm := uint16(0o600)
	for _, x := range []struct {
		name    string
		do      func() (cfs.Outcome, error)
		changes string // of /d, /d/f and /g
	}{
		{"nothing", func() (cfs.Outcome, error) { return f.Resize(root, at("/g"), 0, false) }, ""},
		{"size", func() (cfs.Outcome, error) { return f.Resize(root, at("/d/f"), 9000, true) }, "f"},
		{"not larger", func() (cfs.Outcome, error) { return f.Resize(root, at("/d/f"), 5000, true) }, ""},
		{"smaller", func() (cfs.Outcome, error) { return f.Resize(root, at("/d/f"), 5000, false) }, "f"},
		{"mode", func() (cfs.Outcome, error) { return f.Set(root, at("/g"), cfs.Attributes{Perm: &perm}) }, "g"},
		{"same mode", func() (cfs.Outcome, error) { return f.Set(root, at("/g"), cfs.Attributes{Perm: &perm}) }, ""},
		{"create", func() (cfs.Outcome, error) { return f.Make(root, root, at("/d/h"), cfs.Regular, 0, 0) }, "d"},
		{"replace", func() (cfs.Outcome, error) { return f.RenameAt(root, at("/d/h"), at("/d/f"), false) }, "df"},
		{"remove", func() (cfs.Outcome, error) { return f.RemoveAt(root, at("/d/f"), cfs.None) }, "d"},
		{"again", func() (cfs.Outcome, error) { return f.Make(root, root, at("/d/f"), cfs.Regular, 0, 0) }, "df"},
	} {
		tree, d, g := f.Changes(), stat("/d"), stat("/g")
		was := uint64(0)
		if x.name != "again" {
			was = stat("/d/f")
		}
		o, err := x.do()
		ok(t, err)
		got := ""
		if stat("/d") != d {
			got += "d"
		}
		if s, err := f.StatAt(root, at("/d/f")); err == nil && s.Status.Changed != was {
			got += "f"
		}
		if stat("/g") != g {
			got += "g"
		}
		if got != x.changes || (f.Changes() == tree) != (got == "") || o.Tree != f.Changes() ||
			strings.Contains(got, "d") && o.Directory != stat("/d") {
			t.Errorf("%s: %q, want %q; %+v", x.name, got, x.changes, o)
		}
	}
	last, g := f.Changes(), stat("/g")
	unmount(t, f, pool)
	f, pool = mount(t, dev.Reopen())
	if f.Changes() <= last || stat("/g") <= g || stat("/g") > f.Changes() {
		t.Errorf("from %d and %d to %d and %d", last, g, f.Changes(), stat("/g"))
	}
	unmount(t, f, pool)
}

// TestPlaces: kinds and names are verified, times are set, and a directory is listed in parts.
func TestPlaces(t *testing.T) {
	f, pool := mount(t, blank(t, 600))
	ok(t, f.Mkdir(root, "/d", 0o755))
	for _, name := range []string{"c", "a", "e", "b", "d"} {
		must(f.Make(root, root, at("/d/"+name), cfs.Regular, 0o644, 0))(t)
	}
	all, o, err := f.ListAt(root, at("/d"), "a", 2)
	if err != nil || len(all) != 2 || all[0].Name != "b" || all[1].Name != "c" || o.Status.Path != "/d" {
		t.Errorf("%v, %+v, %v", all, o, err)
	}
	if all, _, err = f.ListAt(root, at("/d"), "e", 2); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	long := strings.Repeat("x", 256)
	when, uid := time.Unix(77, 5), uint32(9)
	for name, x := range map[string]struct {
		do   func() (cfs.Outcome, error)
		want error
	}{
		"unlink d": {func() (cfs.Outcome, error) { return f.RemoveAt(root, at("/d"), cfs.Regular) }, cfs.ErrIsDir},
		"rmdir f":  {func() (cfs.Outcome, error) { return f.RemoveAt(root, at("/d/a"), cfs.Directory) }, cfs.ErrNotDir},
		"rmdir d":  {func() (cfs.Outcome, error) { return f.RemoveAt(root, at("/d"), cfs.Directory) }, cfs.ErrNotEmpty},
		"long":     {func() (cfs.Outcome, error) { return f.StatAt(root, at("/d/"+long)) }, cfs.ErrLong},
		"name":     {func() (cfs.Outcome, error) { return f.StatAt(root, at("/d/"+long)) }, cfs.ErrName},
		"inside":   {func() (cfs.Outcome, error) { return f.RenameAt(root, at("/d"), at("/d/x"), true) }, cfs.ErrInside},
		"exists":   {func() (cfs.Outcome, error) { return f.RenameAt(root, at("/d/a"), at("/d/b"), true) }, fs.ErrExist},
		"root":     {func() (cfs.Outcome, error) { return f.RemoveAt(root, at("/"), cfs.None) }, fs.ErrExist},
		"resize d": {func() (cfs.Outcome, error) { return f.Resize(root, at("/d"), 0, false) }, cfs.ErrIsDir},
		"large":    {func() (cfs.Outcome, error) { return f.Resize(root, at("/d/a"), cfs.MaxSize+1, false) }, cfs.ErrTooLarge},
		"owner": {func() (cfs.Outcome, error) {
			return f.Set(cfs.Cred{UID: 5}, at("/d/a"), cfs.Attributes{UID: &uid})
		}, fs.ErrPermission},
		"time of others": {func() (cfs.Outcome, error) {
			return f.Set(cfs.Cred{UID: 5}, at("/d/a"), cfs.Attributes{Time: &when})
		}, fs.ErrPermission},
		"write": {func() (cfs.Outcome, error) { return f.Resize(cfs.Cred{UID: 5}, at("/d/a"), 1, false) }, fs.ErrPermission},
		"named": {func() (cfs.Outcome, error) {
			return f.NameAt(root, must(f.StatAt(root, at("/d/a")))(t).Status.Handle, at("/z"), true)
		}, fs.ErrExist},
	} {
		if _, err := x.do(); err == nil {
			t.Errorf("%s succeeds", name)
		} else {
			is(t, err, x.want)
		}
	}
	set := cfs.Attributes{Time: &when, UID: &uid, GID: &uid}
	if s := must(f.Set(root, at("/d/a"), set))(t).Status; s.Time.Unix() != 77 || s.UID != 9 || s.GID != 9 {
		t.Errorf("%+v", s)
	}
	temp := must(f.Temp(cfs.Cred{UID: 4}, 0o600))(t)
	o = must(f.NameAt(root, temp.Outcome().Status.Handle, at("/d/t"), true))(t)
	if o.Status.Path != "/d/t" || o.Status.UID != 4 || o.Directory == 0 {
		t.Errorf("%+v", o)
	}
	ok(t, temp.Close())
	unmount(t, f, pool)
}

// TestGrow: a pinned file is moved by the only one that has pinned it, with its data, and not while another one relies
// on its address.
func TestGrow(t *testing.T) {
	f, pool := mount(t, blank(t, 900))
	a := must(f.Create(root, "/a", 0o644, ctl.Page))(t)
	b := must(f.Create(root, "/b", 0o644, ctl.Page))(t) // the buddy of a
	want := fill(ctl.Page, 5)
	must(a.WriteAt(want, 0))(t)
	base, _, err := a.Pin()
	ok(t, err)
	if !a.Fits(ctl.Page) || a.Fits(ctl.Page+1) {
		t.Error("a page fits a block of a page, and no more")
	}
	if same, size, err := a.Grow(100); err != nil || same != base || size != ctl.Page {
		t.Errorf("%d bytes at %d, %v", size, same, err)
	}
	other := must(f.Open(root, "/a", cfs.Read))(t)
	_, _, err = other.Pin()
	ok(t, err)
	if same, size, err := a.Grow(5 * ctl.Page); err == nil || same != base || size != ctl.Page {
		t.Errorf("%d bytes at %d, %v", size, same, err)
	} else {
		is(t, err, cfs.ErrBusy)
	}
	_, _, err = other.Grow(5 * ctl.Page)
	is(t, err, fs.ErrPermission)
	ok(t, other.Close())
	moved, size, err := a.Grow(5 * ctl.Page)
	if err != nil || moved == base || size != 5*ctl.Page {
		t.Errorf("%d bytes at %d, %v", size, moved, err)
	}
	got := make([]byte, ctl.Page)
	ok(t, pool.ReadAt(got, moved))
	if string(got) != string(want) {
		t.Error("the data did not move")
	}
	if now, _, err := a.Pin(); err != nil || now != moved {
		t.Errorf("pinned at %d, %v", now, err)
	}
	is(t, a.Truncate(1<<40), cfs.ErrBusy) // still pinned
	ok(t, a.Close())
	ok(t, b.Close())
	unmount(t, f, pool)
}

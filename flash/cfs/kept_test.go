package cfs

import (
	"bytes"
	"errors"
	"testing"

	"farflash/flash/ctl"
)

// TestKept verifies that settings survive a close and reopen and an upgrade, at most as many as there is space for;
// that a superblock of a program without them has none; and that one which claims too many is damaged.
func TestKept(t *testing.T) {
	f, _ := checkedOn(t)
	again := func() *FS {
		t.Helper()
		next, err := Open(f.pool, Config{})
		try(t, err)
		for _, v := range next.Check().Violations {
			t.Error(v)
		}
		return next
	}
	all := bytes.Repeat([]byte("settings"), MostKept)[:MostKept]
	for _, b := range [][]byte{nil, []byte("few"), all, {}, []byte("others")} {
		try(t, f.Keep(b))
		if !bytes.Equal(f.Kept(), b) || !bytes.Equal(again().Kept(), b) {
			t.Errorf("%d bytes, and after opening it again %d, not %d", len(f.Kept()), len(again().Kept()), len(b))
		}
	}
	if err := f.Keep(append(all, 0)); err == nil || string(f.Kept()) != "others" {
		t.Errorf("too many: %v, and it keeps %q", err, f.Kept())
	}

	page := make([]byte, ctl.Page)
	encodeSuper(page, f.uuid, firstVersion, []byte("old"))
	try(t, f.pool.WriteAt(page, superPage*ctl.Page, true))
	old := again()
	if string(old.Kept()) != "old" || old.Layout() != firstVersion {
		t.Errorf("layout %d keeps %q", old.Layout(), old.Kept())
	}
	try(t, old.Keep([]byte("new")))
	if x := again(); x.Layout() != firstVersion {
		t.Errorf("settings made it layout %d", x.Layout())
	}
	try(t, old.Upgrade())
	if x := again(); string(x.Kept()) != "new" || x.Layout() != Version {
		t.Errorf("layout %d keeps %q", x.Layout(), x.Kept())
	}

	encodeSuper(page, f.uuid, version, all)
	le.PutUint16(page[superKept-2:], MostKept+1)
	sealPage(page, f.seed)
	try(t, f.pool.WriteAt(page, superPage*ctl.Page, true))
	if _, err := Open(f.pool, Config{}); !errors.Is(err, errDamaged) {
		t.Errorf("more than the page: %v", err)
	}
}

package cfs

import (
	"testing"
	"time"

	"farflash/flash/ctl"
)

// TestBirth verifies that files that have a number in turn differ in their births, that a birth outlives the file
// system's being closed, and that a file system of the first layout can be used and has none.
func TestBirth(t *testing.T) {
	f, _ := checkedOn(t)
	who := Cred{}
	seen := map[uint8]bool{}
	var last uint8
	for i := range births {
		x, err := f.Create(who, "/x", 0o644, 0)
		try(t, err)
		number, _ := x.Identity()
		if number != 4 || x.Birth() == 0 || x.Birth() > births || seen[x.Birth()] {
			t.Fatalf("file %d has number %d and birth %d", i, number, x.Birth())
		}
		last = x.Birth()
		seen[last] = true
		try(t, x.Close())
		if i < births-1 {
			try(t, f.Remove(who, "/x"))
		}
	}
	later := Config{Now: func() time.Time { return time.Unix(1e9+100, 0) }}
	again, err := Open(f.pool, later)
	try(t, err)
	x, err := again.Open(who, "/x", Read)
	try(t, err)
	if x.Birth() != last {
		t.Errorf("birth %d was %d", x.Birth(), last)
	}
	try(t, x.Close())
	try(t, again.Remove(who, "/x"))

	page := make([]byte, ctl.Page)
	encodeSuper(page, f.uuid, firstVersion, nil)
	try(t, f.pool.WriteAt(page, superPage*ctl.Page, true))
	old, err := Open(f.pool, later)
	try(t, err)
	x, err = old.Create(who, "/x", 0o644, 0)
	try(t, err)
	if x.Birth() != 0 {
		t.Errorf("a file in the first layout has birth %d", x.Birth())
	}
	try(t, x.Close())
	if old.Layout() != firstVersion {
		t.Errorf("layout %d", old.Layout())
	}
	try(t, old.Upgrade())
	x, err = old.Create(who, "/y", 0o644, 0)
	try(t, err)
	if x.Birth() == 0 || old.Layout() != Version {
		t.Errorf("a file in layout %d has birth %d", old.Layout(), x.Birth())
	}
	try(t, x.Close())
	for _, v := range old.Check().Violations {
		t.Error(v)
	}
	old, err = Open(f.pool, later)
	try(t, err)
	if old.Layout() != Version {
		t.Errorf("layout %d after an upgrade", old.Layout())
	}
	le.PutUint32(page[8:], version+1)
	sealPage(page, f.seed)
	try(t, f.pool.WriteAt(page, superPage*ctl.Page, true))
	if _, err := Open(f.pool, later); err == nil {
		t.Error("a file system of a later layout was opened")
	}
}

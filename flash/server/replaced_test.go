package server_test

import (
	"bytes"
	"testing"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
)

// TestReplacedWhileOpen verifies that each use of an export refers, until it is closed, to the file that had the name
// when it was opened. A client that has a name open twice, before and after the file was replaced, and closes one use
// keeps the other file, which stays pinned even after its name is gone.
func TestReplacedWhileOpen(t *testing.T) { ways(t, testReplacedWhileOpen) }

func testReplacedWhileOpen(t *testing.T) {
	for _, first := range []bool{true, false} {
		d := begin(t, nil)
		c := d.dial()
		old := d.open(c, "disk")
		root := cfs.Cred{}
		if err := d.tree.Rename(root, "/other", "/disk", false); err != nil {
			t.Fatal(err)
		}
		fresh := d.open(c, "disk")
		closes, stays := old, fresh
		if !first {
			closes, stays = fresh, old
		}
		if err := closes.Close(); err != nil {
			t.Fatal(err)
		}
		if err := d.tree.Remove(root, "/disk"); err != nil {
			t.Fatal(err)
		}
		// New files must not be allocated at those addresses.
		var others []*cfs.File
		want := bytes.Repeat([]byte{7}, ctl.Page)
		for _, name := range []string{"/a", "/b", "/c", "/d"} {
			f, err := d.tree.Create(root, name, 0o600, size)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(want, 0); err != nil {
				t.Fatal(err)
			}
			others = append(others, f)
		}
		mark := bytes.Repeat([]byte{9}, ctl.Page)
		if _, err := stays.WriteDurable(mark, 0); err != nil {
			t.Fatal(err)
		}
		for i, f := range others {
			got := make([]byte, ctl.Page)
			if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
				t.Errorf("file %d begins with %d after somebody wrote to another: %v", i, got[0], err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		got := make([]byte, ctl.Page)
		if _, err := stays.ReadAt(got, 0); err != nil || !bytes.Equal(got, mark) {
			t.Errorf("what was written reads as what begins with %d: %v", got[0], err)
		}
		if err := stays.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		d.end()
	}
}

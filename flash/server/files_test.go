package server_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/server"
	"farflash/flash/verbs"
)

// inMemory formats a device, and opens the pool and its file system. The caller closes the pool.
func inMemory(t *testing.T, dev *device.Mem, layout ctl.Layout) (*ctl.Pool, *cfs.FS) {
	t.Helper()
	layout.UUID[0] = 1
	shape, err := layout.Shape(dev.Size())
	if err != nil {
		t.Fatal(err)
	}
	if err := ctl.Format(shape, dev); err != nil {
		t.Fatal(err)
	}
	p, err := ctl.Open(ctl.DefaultConfig(), dev)
	if err != nil {
		t.Fatal(err)
	}
	if err := cfs.Format(p, cfs.Config{}); err != nil {
		t.Fatal(err)
	}
	tree, err := cfs.Open(p, cfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return p, tree
}

// TestNames verifies what a client is answered that opens a name which is no file: a name that no file can have is
// invalid, one that no file has does not exist.
func TestNames(t *testing.T) {
	p, tree := inMemory(t, device.NewMem(8<<20), ctl.Layout{Segment: 64, OverProvision: 0.3, LogPages: 24})
	root := cfs.Cred{}
	if err := tree.Mkdir(root, "/folder", 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := tree.Create(root, "/folder/file", 0o600, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	files := server.Tree(tree, root)
	for name, want := range map[string]error{
		"folder/file": nil, "folder/other": fs.ErrNotExist, "other/file": fs.ErrNotExist, "folder": fs.ErrNotExist,
		"folder/file/more": fs.ErrNotExist, "..": fs.ErrInvalid, "folder/.": fs.ErrInvalid, "a\nb": fs.ErrInvalid,
		"folder/" + strings.Repeat("n", 300): fs.ErrInvalid, "\xff": fs.ErrInvalid,
	} {
		f, err := files.Open(name, verbs.RemoteRead)
		if !errors.Is(err, want) {
			t.Errorf("opening %q: %v, want %v", name, err, want)
		}
		if err == nil {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

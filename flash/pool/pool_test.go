package pool_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/pool"
)

// TestProbe verifies that a single nonzero byte anywhere makes a device foreign, and so does half of a pool's
// superblock.
func TestProbe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "device")
	if state, err := pool.Probe(path); err != nil || state != pool.Missing {
		t.Errorf("no file: %v, %v", state, err)
	}
	const size = 24 << 20
	for _, at := range []int64{0, 4095, 8192, 1<<20 - 1, 1 << 20, size/2 + 1, size - 1} {
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
			t.Fatal(err)
		}
		if state, err := pool.Probe(path); err != nil || state != pool.Empty {
			t.Fatalf("a hole: %v, %v", state, err)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte{1}, at)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var foreign *pool.Foreign
		if _, err := pool.Format(pool.DefaultOptions(), 0, path); !errors.As(err, &foreign) || foreign.Offset != at {
			t.Errorf("a byte at %d: %v", at, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("a device that is not a pool was written to: %v", err)
		}
	}
}

// TestFit verifies that a pool has the capacity asked for, and takes at most half as much again, from the smallest size
// on.
func TestFit(t *testing.T) {
	for _, size := range []uint64{1, 1 << 20, 5<<20 + 1, 1 << 30, 10 << 30, 1 << 40} {
		for devices := 1; devices <= 3; devices++ {
			shape, sizes, err := pool.Fit(ctl.Layout{}, size, make([]int64, devices)...)
			if err != nil {
				t.Errorf("%d bytes on %d devices: %v", size, devices, err)
				continue
			}
			total := int64(0)
			for _, n := range sizes {
				total += n
			}
			if uint64(shape.Capacity)*pool.Page < size || uint64(total) > size+size/2+uint64(devices)<<21 {
				t.Errorf("%d bytes on %d devices: room for %d pages on %d bytes", size, devices, shape.Capacity, total)
			}
		}
	}
	if _, _, err := pool.Fit(ctl.Layout{}, 1<<30, 64<<20); err == nil {
		t.Error("a device that is too small is taken")
	}
}

// TestPipe verifies that a FIFO is refused without waiting for a writer.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	for _, at := range []string{path, "/dev/null", filepath.Dir(path)} {
		if _, err := pool.Probe(at); err == nil || !strings.Contains(err.Error(), "neither a file nor a block device") {
			t.Errorf("%s: %v", at, err)
		}
		if _, _, err := pool.Open(pool.DefaultOptions(), at); err == nil {
			t.Errorf("%s is opened", at)
		}
	}
}

// TestFormatUndoes verifies that a failed format removes the files that it created and truncates those that were empty.
func TestFormatUndoes(t *testing.T) {
	dir := t.TempDir()
	made, empty, locked := filepath.Join(dir, "made"), filepath.Join(dir, "empty"), filepath.Join(dir, "locked")
	for _, path := range []string{empty, locked} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(locked)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	o := pool.DefaultOptions()
	var begun []string
	o.OnFormat = func(path string, fresh bool) {
		if fresh {
			begun = append(begun, path)
		}
	}
	if _, err := pool.Format(o, 16<<20, made, empty, locked); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Fatal(err)
	}
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file that was made is left: %v", err)
	}
	for _, path := range []string{empty, locked} {
		if st, err := os.Stat(path); err != nil || st.Size() != 0 {
			t.Errorf("%s: %v, %v", path, st, err)
		}
	}
	if len(begun) != 1 || begun[0] != made {
		t.Errorf("begun: %v", begun)
	}
	if _, err := pool.Format(o, 16<<20, made, empty); err != nil {
		t.Errorf("a second format: %v", err)
	}
}

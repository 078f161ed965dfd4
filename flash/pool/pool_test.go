package pool_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/pool"
)

// TestProbe holds that one byte anywhere makes a device one that is left alone, as does half of a pool's superblock.
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

// TestFit holds that a pool has the room that was asked for, and takes no more than half as much again, from the smallest on.
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

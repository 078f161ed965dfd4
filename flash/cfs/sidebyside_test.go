package cfs_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"testing"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// keeper writes versions of pages to one file and tracks which of them may be found: the durable one or any later.
type keeper struct {
	name, other string // it has one of the two names
	named       string
	maybe       bool // a Rename failed: the file may have either name
	version     uint64
	put, floor  [keeperPages]uint64 // the newest version written to a page, and the oldest that may be found
	zero        [keeperPages]bool   // it may read as zeros
	refused     error
}

const keeperPages = 14

func keeperPage(version uint64, page int) []byte {
	b := make([]byte, ctl.Page)
	for i := 0; i < len(b); i += 16 {
		binary.LittleEndian.PutUint64(b[i:], version)
		binary.LittleEndian.PutUint64(b[i+8:], uint64(page)+1)
	}
	return b
}

// turn performs one operation and records its outcome. It returns the operation's error.
func (k *keeper) turn(f *cfs.FS, draw *rng.Stream) error {
	if k.maybe {
		return k.refused
	}
	file, err := f.Open(root, k.named, cfs.Read|cfs.Write)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // may fail on a read-only pool
	switch draw.IntN(8) {
	case 0, 1, 2, 3:
		page := int(draw.IntN(keeperPages))
		k.version++
		if file.Size() < int64(page+1)*ctl.Page {
			for i := range page {
				k.zero[i] = k.zero[i] || k.put[i] == 0
			}
		}
		k.put[page] = k.version
		_, err = file.WriteAt(keeperPage(k.version, page), int64(page)*ctl.Page)
	case 4, 5:
		now := k.put
		if err = file.Sync(); err == nil {
			for i := range now {
				if now[i] > k.floor[i] {
					k.floor[i], k.zero[i] = now[i], false
				}
			}
		}
	case 6:
		left := int(draw.IntN(keeperPages))
		for i := left; i < keeperPages; i++ {
			k.zero[i] = true
		}
		if err = file.Truncate(int64(left) * ctl.Page); err != nil {
			return err
		}
		for i := left; i < keeperPages; i++ { // its versions were truncated away
			k.put[i], k.floor[i] = 0, k.version+1
		}
	default:
		to := k.name
		if k.named == k.name {
			to = k.other
		}
		if err = f.Rename(root, k.named, to, false); err != nil {
			k.maybe = true
			return err
		}
		k.named = to
	}
	return err
}

// found returns an error if the file's content is not a valid outcome.
func (k *keeper) found(f *cfs.FS) error {
	name := k.named
	if _, err := f.Stat(root, name); k.maybe && errors.Is(err, fs.ErrNotExist) {
		if name = k.name; k.named == k.name {
			name = k.other
		}
	}
	file, err := f.Open(root, name, cfs.Read)
	if err != nil {
		return err
	}
	for i := range keeperPages {
		b := make([]byte, ctl.Page)
		if _, err := file.ReadAt(b, int64(i)*ctl.Page); err != nil && err != io.EOF {
			return err
		}
		version := binary.LittleEndian.Uint64(b)
		switch {
		case version == 0 && string(b) != string(make([]byte, ctl.Page)) ||
			version > 0 && string(b) != string(keeperPage(version, i)):
			return fmt.Errorf("%s: page %d is a mix that begins with version %d", name, i, version)
		case version == 0 && !k.zero[i] && k.floor[i] > 0, version > 0 && version < k.floor[i], version > k.version:
			return fmt.Errorf("%s: page %d has version %d; from %d to %d may be there (zeros %v)", name, i, version,
				k.floor[i], k.put[i], k.zero[i])
		}
	}
	return file.Close()
}

// TestFailingSideBySide verifies that when the device fails, at any time, under concurrent changes, no caller hangs;
// after a cut the file system is intact and everything acknowledged is found.
func TestFailingSideBySide(t *testing.T) {
	seeds := uint64(30)
	if patience.Long(t) {
		seeds = 600
	}
	for seed := range seeds {
		draw := rng.NewStream(seed, "failing")
		dev := blank(t, 1500)
		f, pool := mount(t, dev)
		var all [5]keeper
		for i := range all {
			k := &all[i]
			k.name, k.other = fmt.Sprintf("/a%d", i), fmt.Sprintf("/b%d", i)
			k.named = k.name
			file := must(f.Create(root, k.name, 0o600, 0))(t)
			ok(t, file.Close())
		}
		faults := device.Faults{Seed: seed}
		switch draw.IntN(5) {
		case 0:
			faults.FlushError = 0.002
		case 1:
			faults.WriteError = 0.004
		case 2:
			faults.FailFrom = 1 + draw.IntN(2000)
		case 3:
			faults.Full = 0.003
		default:
			faults.FailAt = 1 + draw.IntN(2000)
		}
		dev.SetFaults(faults)
		var done sync.WaitGroup
		for i := range all {
			k, draw := &all[i], rng.NewStream(seed*100+uint64(i), "keeper")
			done.Go(func() {
				for range 150 {
					if err := k.turn(f, &draw); err != nil {
						k.refused = err
						if pool.ReadOnly() != nil {
							return
						}
					}
				}
			})
		}
		done.Wait()
		dev.SetFaults(device.Faults{})
		if err := pool.Close(); err == nil && pool.ReadOnly() != nil {
			t.Errorf("seed %d, %+v: a pool that is read-only closes as if nothing were wrong", seed, faults)
		}
		cut := dev.Crash(&draw)
		again, p := mount(t, cut)
		for i := range all {
			if err := all[i].found(again); err != nil {
				t.Errorf("seed %d, %+v: %v", seed, faults, err)
			}
		}
		for _, v := range again.Check().Violations {
			t.Errorf("seed %d, %+v: %v", seed, faults, v)
		}
		for _, v := range p.Check(true).Violations {
			t.Errorf("seed %d, %+v: %v", seed, faults, v)
		}
		unmount(t, again, p)
		if t.Failed() {
			return
		}
	}
}

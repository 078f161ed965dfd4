package ctl_test

import (
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// TestOlderCheckpoint damages one checkpoint after a crash, a recovery, and more durable writes. Either the other
// checkpoint with the log yields the same state, or the pool is refused. The state includes decisions that only the
// recovery made: dropped writes, and pages moved to make space.
func TestOlderCheckpoint(t *testing.T) {
	var dropped, opened, refused int
	for seed := range uint64(60) {
		draw := rng.NewStream(seed, "older")
		cfg, layout := small()
		cfg.Map = int64(seed % 2) // with too little memory, checkpoints come early
		layout.LogPages = 64
		dev := device.NewMem(500 * device.Grain)
		shape := format(t, layout, dev)
		pages := shape.Capacity / 2
		now := make([]uint64, pages)
		b := make([]byte, ctl.Page)
		pool := open(t, cfg, dev)
		write := func(n int64) {
			for range n {
				i := draw.IntN(pages)
				serial++
				now[i] = serial
				stamp(b, uint64(i), serial)
				if err := pool.WriteAt(b, uint64(i)*ctl.Page, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		work := func(n int64) {
			write(n)
			if err := pool.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		work(100)
		write(201 + draw.IntN(100)) // the log has a page of this write, which may survive although the data does not
		dev = dev.Crash(&draw)
		pool = open(t, cfg, dev)
		if pool.Found().Dropped > 0 {
			dropped++
		}
		for i := range pages {
			err := pool.ReadAt(b, uint64(i)*ctl.Page)
			if err == nil {
				now[i], err = serialOf(b, uint64(i))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 1 + draw.IntN(4) {
			work(1 + draw.IntN(100))
		}
		for slot := range 2 {
			damaged := dev.Reopen()
			damaged.Corrupt(shape.CheckpointStart(slot)*device.Grain + 100)
			older, err := ctl.Open(cfg, damaged)
			if err != nil {
				refused++
				continue
			}
			opened++
			for i := range pages {
				err := older.ReadAt(b, uint64(i)*ctl.Page)
				s := uint64(0)
				if err == nil {
					s, err = serialOf(b, uint64(i))
				}
				if err != nil || s != now[i] {
					t.Fatalf("seed %d, checkpoint %d damaged: page %d is %d, %v; it was %d", seed, slot, i, s, err,
						now[i])
				}
			}
			clean(t, older, true)
		}
	}
	t.Logf("%d crashes with writes that were dropped; %d pools opened, %d refused", dropped, opened, refused)
	if dropped < 5 || opened < 100 {
		t.Errorf("%d crashes with writes that were dropped, %d pools opened: too little was tried", dropped, opened)
	}
}

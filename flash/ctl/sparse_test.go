package ctl_test

import (
	"errors"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// sparse is a sparse file on a file system that can be full: then a grain that was never written cannot be written.
type sparse struct {
	*device.Mem
	written map[int64]bool // grains
	full    bool
}

func (s *sparse) Submit(ops ...*device.Op) {
	for _, op := range ops {
		hole := false
		for at := op.Offset; op.Kind == device.Write && at < op.Offset+int64(len(op.Buf)); at += device.Grain {
			hole = hole || s.full && !s.written[at]
			s.written[at] = s.written[at] || !s.full
		}
		if hole {
			op.Finish(device.ErrSpace)
			continue
		}
		s.Mem.Submit(op)
	}
}

// sparsePool returns a pool with some durable pages whose process was killed, after which the host's file system filled
// up.
func sparsePool(t *testing.T, checkpoints int64) (cfg ctl.Config, dev *sparse, want []uint64) {
	cfg, layout := small()
	cfg.Map = 0 // with too little memory, checkpoints come early and write more of the device
	dev = &sparse{Mem: device.NewMem(2000 * device.Grain), written: map[int64]bool{}}
	format(t, layout, dev)
	pool := open(t, cfg, dev)
	want = make([]uint64, 60)
	b := make([]byte, ctl.Page)
	for i := uint64(0); i < 10 || pool.Stats().Checkpoints < checkpoints; i++ {
		serial++
		want[i%60] = serial
		stamp(b, i%60, serial)
		if err := pool.WriteAt(b, i%60*ctl.Page, true); err != nil {
			t.Fatal(err)
		}
	}
	draw := rng.NewStream(1, "sparse")
	dev.Mem, dev.full = dev.Kill(&draw), true
	return cfg, dev, want
}

// reads verifies that a pool has its durable content and that all invariants hold.
func reads(t *testing.T, pool *ctl.Pool, want []uint64) {
	t.Helper()
	b := make([]byte, ctl.Page)
	for i, s := range want {
		if err := pool.ReadAt(b, uint64(i)*ctl.Page); err != nil {
			t.Fatal(err)
		}
		if is, err := serialOf(b, uint64(i)); err != nil || is != s {
			t.Errorf("page %d is %d, %v; it was %d", i, is, err, s)
		}
	}
	clean(t, pool, true)
}

// TestHoles verifies that recovery fills no hole of a sparse file: on a full host it works as on any other, provided
// that its checkpoint has space.
func TestHoles(t *testing.T) {
	cfg, dev, want := sparsePool(t, 3)
	pool := open(t, cfg, dev)
	if err := pool.ReadOnly(); err != nil {
		t.Fatal(err)
	}
	reads(t, pool, want)
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
}

// TestRecoveredReadOnly verifies that a pool is read-only, and reports why, if its recovered state cannot be written
// back, and fully usable once it can.
func TestRecoveredReadOnly(t *testing.T) {
	cfg, dev, want := sparsePool(t, 0) // the second checkpoint slot is a hole
	pool := open(t, cfg, dev)
	if err := pool.ReadOnly(); !errors.Is(err, ctl.ErrReadOnly) || !errors.Is(err, device.ErrSpace) {
		t.Fatalf("read-only: %v", err)
	}
	reads(t, pool, want)
	for what, err := range map[string]error{"writing": pool.WriteAt([]byte{1}, 0, true),
		"trimming": pool.Discard(0, ctl.Page, true), "a flush": pool.Sync(), "closing": pool.Close()} {
		if !errors.Is(err, ctl.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	draw := rng.NewStream(2, "sparse")
	dev.Mem, dev.full = dev.Crash(&draw), false
	pool = open(t, cfg, dev)
	if err := pool.ReadOnly(); err != nil {
		t.Fatal(err)
	}
	reads(t, pool, want)
	if err := errors.Join(pool.WriteAt([]byte{1}, 0, true), pool.Close()); err != nil {
		t.Error(err)
	}
}

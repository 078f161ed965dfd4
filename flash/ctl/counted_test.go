package ctl_test

import (
	"sync/atomic"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// counted counts the pages that are read from a range of a device.
type counted struct {
	*device.Mem
	from, upto int64
	pages      atomic.Int64
}

func (d *counted) Submit(ops ...*device.Op) {
	for _, op := range ops {
		if op.Kind == device.Read && op.Offset >= d.from && op.Offset < d.upto {
			d.pages.Add(int64(len(op.Buf)) / ctl.Page)
		}
	}
	d.Mem.Submit(ops...)
}

// TestSumsCounted reads and overwrites pages whose checksums are in no memory: Stats.Sums is the number of pages read
// from checkpoints, those that a new checkpoint takes over from the last included.
func TestSumsCounted(t *testing.T) {
	cfg, mem, shape, pages := inOrder(t, 3000)
	dev := &counted{Mem: mem, from: shape.CheckpointStart(0) * ctl.Page, upto: shape.LogStart() * ctl.Page}
	p := open(t, cfg, dev)
	dev.pages.Store(0) // those of the opening
	draw := rng.NewStream(1, "counted")
	b := make([]byte, ctl.Page)
	check := func(when string) {
		t.Helper()
		if got, want := p.Stats().Sums, dev.pages.Load(); got != want || got == 0 {
			t.Errorf("%s: %d pages of checkpoints are counted, %d were read", when, got, want)
		}
	}
	for range 200 {
		if err := p.ReadAt(b, uint64(draw.IntN(int64(pages)))*ctl.Page); err != nil {
			t.Fatal(err)
		}
	}
	check("read")
	before := p.Stats().Checkpoints
	for i := range uint64(3000) {
		page := uint64(draw.IntN(int64(pages)))
		stamp(b, page, 1e6+i)
		if err := p.WriteAt(b, page*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	if p.Stats().Checkpoints == before {
		t.Error("there was no checkpoint")
	}
	check("written")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

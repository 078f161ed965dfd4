package ctl_test

import (
	"testing"

	"farflash/flash/device"
	"farflash/numeric/rng"
)

// tally counts the grains that are written to a device.
type tally struct {
	device.Device
	grains int
}

func (d *tally) Submit(ops ...*device.Op) {
	for _, op := range ops {
		if op.Kind == device.Write {
			d.grains += len(op.Buf) / device.Grain
		}
	}
	d.Device.Submit(ops...)
}

// TestResume crashes a pool again and again without any checkpoint in between: each opening writes two pages of the
// log, and no more pages of summaries than there are segments that streams have open.
func TestResume(t *testing.T) {
	x := newIndexed(t, 1<<12, 3)
	x.change(20)
	draw := rng.NewStream(1, "resume")
	for range 6 {
		x.write(uint64(x.draw.IntN(int64(len(x.pages)))))
		if err := x.pool.Sync(); err != nil {
			t.Fatal(err)
		}
		d := &tally{Device: x.dev.Crash(&draw)}
		x.dev = d.Device.(*device.Mem)
		x.pool = open(t, x.cfg, d)
		found := x.pool.Found()
		if shape := x.pool.Shape(); found.Dropped > 0 || d.grains > 2+3*shape.SummaryGrains() {
			t.Errorf("%d grains were written to recover: %+v", d.grains, found)
		}
		if x.pool.Stats().Checkpoints != 0 {
			t.Errorf("a checkpoint was written to recover: %+v", found)
		}
		x.verify()
	}
}

package pool_test

import (
	"reflect"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/pool"
)

// TestBeginningLost overwrites the first 17 KiB of pools of several sizes, as a partition table does, when they have
// few pages and when the log has wrapped. The layout is found, and every page.
func TestBeginningLost(t *testing.T) {
	cfg := ctl.DefaultConfig()
	cfg.Frames = 512
	for _, grains := range []int64{1100, 4000, 9000, 19_426, 40_000} {
		dev := device.NewMem(grains * device.Grain)
		shape, _, err := pool.Fit(ctl.Layout{UUID: [16]byte{byte(grains), 7}}, 0, dev.Size())
		if err != nil {
			t.Fatal(err)
		}
		if err := ctl.Format(shape, dev); err != nil {
			t.Fatal(err)
		}
		p, err := ctl.Open(cfg, dev)
		if err != nil {
			t.Fatal(err)
		}
		b, written := make([]byte, 8*ctl.Page), uint64(0)
		for _, upto := range []int64{grains / 8, 3 * grains} {
			for ; written < uint64(upto); written += 8 {
				b[0], b[1], b[2], b[3] = byte(written), byte(written>>8), byte(written>>16), 1
				if err := p.WriteAt(b, written%uint64(grains/2)*ctl.Page, false); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Sync(); err != nil {
				t.Fatal(err)
			}
			left := dev.Reopen()
			if err := device.Do(left, device.Write, 0, device.Aligned(5*ctl.Page)); err != nil {
				t.Fatal(err)
			}
			patient := func(int64, int64) error { return nil }
			x, err := ctl.Examine(cfg, patient, left)
			if err != nil {
				t.Fatalf("%d pages, after %d: %v", grains, written, err)
			}
			if is := x.Shape(); !x.Guessed || !reflect.DeepEqual(is, shape) {
				t.Errorf("%d pages, after %d: %+v; it was %+v", grains, written, is, shape)
			}
			if bad, err := x.Read(patient); err != nil || len(bad) > 0 || x.Missing || x.Doubtful > 0 {
				t.Errorf("%d pages, after %d: %v, %v, %+v", grains, written, bad, err, x.Damage)
			}
			if used, _ := x.Use(); used < min(int64(written), grains/2)-16 {
				t.Errorf("%d pages, after %d: %d in use", grains, written, used)
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

package ctl_test

import (
	"sync/atomic"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// instant is a device as fast as memory: it completes operations before Submit returns.
type instant struct{ content []byte }

func (d *instant) Submit(ops ...*device.Op) {
	for _, op := range ops {
		switch op.Kind {
		case device.Read:
			copy(op.Buf, d.content[op.Offset:])
		case device.Write:
			copy(d.content[op.Offset:], op.Buf)
		}
		op.Finish(nil)
	}
}

func (d *instant) Size() int64  { return int64(len(d.content)) }
func (d *instant) Close() error { return nil }

// large returns a pool on an instant device that holds pages pages and has frames for a sixteenth of them.
func large(t testing.TB, pages int) *ctl.Pool {
	cfg, layout := ctl.DefaultConfig(), ctl.DefaultLayout()
	layout.Segment = 512
	cfg.Frames = pages / 16
	d := &instant{make([]byte, pages*2*ctl.Page)}
	format(t, layout, d)
	pool := open(t, cfg, d)
	b := make([]byte, 64*ctl.Page)
	for i := 0; i < pages; i += 64 {
		if err := pool.WriteAt(b, uint64(i)*ctl.Page, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := pool.Sync(); err != nil {
		t.Fatal(err)
	}
	return pool
}

// TestMissAllocates verifies that a read from the device allocates nothing.
func TestMissAllocates(t *testing.T) {
	const pages = 1 << 12
	pool := large(t, pages)
	fn := func(r ctl.Ref, _ error) { pool.Put(r, ctl.Kept, heat.Auto, nil) }
	i := uint64(0)
	before := pool.Stats()
	if n := testing.AllocsPerRun(5*pages, func() { pool.GetOn(1, i*37%pages, ctl.Reading, fn); i++ }); n > 0 {
		t.Errorf("%v allocations a miss", n)
	}
	if s := pool.Stats().Sub(before); s.LaneMisses < 4*pages {
		t.Errorf("%d misses", s.LaneMisses)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkMiss reads pages that are in no frame, each goroutine on a lane of its own: what a read costs besides the
// device and the network.
func BenchmarkMiss(b *testing.B) {
	const pages = 1 << 16
	pool := large(b, pages)
	var lanes atomic.Uint32
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		lane := uint8(lanes.Add(1))
		draw := rng.NewStream(uint64(lane), "miss")
		fn := func(r ctl.Ref, _ error) { pool.Put(r, ctl.Kept, heat.Auto, nil) }
		for pb.Next() {
			pool.GetOn(lane, uint64(draw.IntN(pages)), ctl.Reading, fn)
		}
	})
	b.StopTimer()
	if err := pool.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkMissTogether is BenchmarkMiss for reads of 16 pages, 64 KiB.
func BenchmarkMissTogether(b *testing.B) {
	const pages = 1 << 16
	pool := large(b, pages)
	var lanes atomic.Uint32
	b.SetBytes(16 * ctl.Page)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		lane := uint8(lanes.Add(1))
		draw := rng.NewStream(uint64(lane), "miss")
		fn := func(r ctl.Ref, _ error) { pool.Put(r, ctl.Kept, heat.Auto, nil) }
		wants := make([]ctl.Want, 16)
		for pb.Next() {
			first := uint64(draw.IntN(pages/16)) * 16
			for i := range wants {
				wants[i] = ctl.Want{Fn: fn, Page: first + uint64(i), Mode: ctl.Reading}
			}
			pool.GetAll(lane, wants)
		}
	})
	b.StopTimer()
	if err := pool.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOverwrite overwrites whole pages, each goroutine on a lane of its own: what a write costs besides the device
// and the network, with its part of the log, checkpoints and collection.
func BenchmarkOverwrite(b *testing.B) {
	const pages = 1 << 16
	pool := large(b, pages)
	var lanes atomic.Uint32
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		lane := uint8(lanes.Add(1))
		draw := rng.NewStream(uint64(lane), "overwrite")
		done := make(chan struct{}, 1)
		fn := func(r ctl.Ref, _ error) {
			r.Data[0]++
			pool.Put(r, ctl.Changed, heat.Auto, nil)
			done <- struct{}{}
		}
		for pb.Next() {
			pool.GetOn(lane, uint64(draw.IntN(pages)), ctl.Whole, fn)
			<-done
		}
	})
	b.StopTimer()
	if err := pool.Close(); err != nil {
		b.Fatal(err)
	}
}

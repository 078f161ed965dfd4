package ctl_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// loops is a device as fast as memory with a queue for each lane, which that lane's goroutine works off by turn, as the
// thread of a ring does. Lane 0, and all if inline is set, complete operations before Submit returns.
type loops struct {
	content []byte
	inline  atomic.Bool
	lanes   [9]struct {
		sync.Mutex
		ops, spare []*device.Op
		_          [64]byte
	}
}

func (d *loops) Submit(ops ...*device.Op) {
	for _, op := range ops {
		if op.Loop == 0 || d.inline.Load() {
			d.do(op)
			continue
		}
		l := &d.lanes[op.Loop]
		l.Lock()
		l.ops = append(l.ops, op)
		l.Unlock()
	}
}

func (d *loops) do(op *device.Op) {
	switch op.Kind {
	case device.Read:
		copy(op.Buf, d.content[op.Offset:])
	case device.Write:
		copy(d.content[op.Offset:], op.Buf)
	}
	op.Finish(nil)
}

// turn completes the operations of a lane so far, and reports whether there were any.
func (d *loops) turn(lane uint8) bool {
	l := &d.lanes[lane]
	l.Lock()
	ops := l.ops
	l.ops = l.spare[:0]
	l.Unlock()
	for i, op := range ops {
		ops[i] = nil
		d.do(op)
	}
	l.spare = ops
	return len(ops) > 0
}

func (d *loops) Size() int64  { return int64(len(d.content)) }
func (d *loops) Close() error { return nil }

// large returns a pool that holds pages pages and has frames for a sixteenth of them.
func large(t testing.TB, pages int) (*ctl.Pool, *loops) {
	cfg, layout := ctl.DefaultConfig(), ctl.DefaultLayout()
	layout.Segment = 512
	cfg.Frames = pages / 16
	d := &loops{content: make([]byte, pages*2*ctl.Page)}
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
	return pool, d
}

// TestMissAllocates verifies that a read from the device allocates nothing.
func TestMissAllocates(t *testing.T) {
	const pages = 1 << 12
	pool, d := large(t, pages)
	fn := func(r ctl.Ref, _ error) { pool.Put(r, ctl.Kept, heat.Auto, nil) }
	i := uint64(0)
	before := pool.Stats()
	if n := testing.AllocsPerRun(5*pages, func() {
		pool.GetOn(1, i*37%pages, ctl.Reading, fn)
		d.turn(1)
		i++
	}); n > 0 {
		t.Errorf("%v allocations a miss", n)
	}
	if s := pool.Stats().Sub(before); s.LaneMisses < 4*pages {
		t.Errorf("%d misses", s.LaneMisses)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
}

// connection is the outstanding requests of a lane's goroutine.
type connection struct {
	under atomic.Int64
	_     [64]byte
}

// onLanes has a goroutine for each processor, with a lane of its own, request b.N times count consecutive pages, with
// 32 pages outstanding, as the thread of a loop does for its connections.
func onLanes(b *testing.B, count int, mode ctl.Mode, change ctl.Change) {
	const pages, depth = 1 << 16, 32
	pool, d := large(b, pages)
	threads := min(runtime.GOMAXPROCS(0), len(d.lanes)-1)
	conns := make([]connection, threads)
	b.SetBytes(int64(count) * ctl.Page)
	b.ReportAllocs()
	b.ResetTimer()
	var all, busy sync.WaitGroup
	busy.Add(threads)
	var over atomic.Bool
	for i := range threads {
		all.Go(func() {
			lane, c, left := uint8(i+1), &conns[i], b.N/threads*count
			draw := rng.NewStream(uint64(lane), "miss")
			fn := func(r ctl.Ref, _ error) {
				pool.Put(r, change, heat.Auto, nil)
				c.under.Add(-1)
			}
			wants := make([]ctl.Want, count)
			for working := true; !over.Load(); {
				for left > 0 && c.under.Load() < depth {
					first := uint64(draw.IntN(int64(pages/count))) * uint64(count)
					for i := range wants {
						wants[i] = ctl.Want{Fn: fn, Page: first + uint64(i), Mode: mode}
					}
					c.under.Add(int64(count))
					left -= count
					pool.GetAll(lane, wants)
				}
				if !d.turn(lane) {
					runtime.Gosched()
				}
				if working && left <= 0 && c.under.Load() == 0 {
					working = false
					busy.Done()
				}
			}
		})
	}
	busy.Wait()
	b.StopTimer()
	over.Store(true)
	all.Wait()
	d.inline.Store(true)
	for lane := range d.lanes {
		for d.turn(uint8(lane)) {
		}
	}
	if err := pool.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkMiss reads pages that are in no frame, each goroutine on a lane of its own: what a read costs besides the
// device and the network. BenchmarkMissTogether reads 64 KiB.
func BenchmarkMiss(b *testing.B)         { onLanes(b, 1, ctl.Reading, ctl.Kept) }
func BenchmarkMissTogether(b *testing.B) { onLanes(b, 16, ctl.Reading, ctl.Kept) }

// BenchmarkOverwrite overwrites whole pages: what a write costs, with its part of the log, checkpoints and collection.
func BenchmarkOverwrite(b *testing.B)         { onLanes(b, 1, ctl.Whole, ctl.Changed) }
func BenchmarkOverwriteTogether(b *testing.B) { onLanes(b, 16, ctl.Whole, ctl.Changed) }

// BenchmarkSync writes a page and syncs, with little and much memory: a flush must not look at every frame.
func BenchmarkSync(b *testing.B) {
	for _, frames := range []int{1 << 12, 1 << 18} {
		b.Run(fmt.Sprint(frames), func(b *testing.B) {
			cfg, layout := ctl.DefaultConfig(), ctl.DefaultLayout()
			cfg.Frames = frames
			d := &loops{content: make([]byte, 256<<20)}
			format(b, layout, d)
			pool := open(b, cfg, d)
			page := make([]byte, ctl.Page)
			for i := 0; b.Loop(); i++ {
				if err := pool.WriteAt(page, uint64(i%1000)*ctl.Page, false); err != nil {
					b.Fatal(err)
				}
				if err := pool.Sync(); err != nil {
					b.Fatal(err)
				}
			}
			if err := pool.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

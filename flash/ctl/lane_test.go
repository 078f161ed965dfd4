package ctl_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// laneWorker owns pages that it alone changes, at one of two addresses, and knows their contents.
type laneWorker struct {
	pool  *ctl.Pool
	lane  uint8
	draw  rng.Stream
	bases [2]uint64
	at    int // of bases
	want  []uint64
	b     []byte
}

// read gets pages from first on together and calls see for each, with the numbers at its ends. A page that another one
// is writing meanwhile may be a mix, since its holders share one frame.
func (w *laneWorker) read(first uint64, n int, see func(i int, a, b uint64) error) error {
	answers := make(chan error, n)
	one := func(r ctl.Ref, err error) {
		if err == nil {
			a, b := binary.LittleEndian.Uint64(r.Data), binary.LittleEndian.Uint64(r.Data[ctl.Page-8:])
			err = see(int(r.Page-first), a, b)
			w.pool.Put(r, ctl.Kept, heat.Auto, nil)
		}
		answers <- err
	}
	if n == 1 {
		w.pool.GetOn(w.lane, first, ctl.Reading, one)
	} else {
		var wants []ctl.Want
		for i := range n {
			wants = append(wants, ctl.Want{Fn: one, Page: first + uint64(i), Mode: ctl.Reading})
		}
		w.pool.GetAll(w.lane, wants)
	}
	var first1 error
	for range n {
		if err := <-answers; err != nil {
			first1 = err
		}
	}
	return first1
}

func (w *laneWorker) step(serial *atomic.Uint64, others []*laneWorker) error {
	i := int(w.draw.IntN(int64(len(w.want))))
	base := w.bases[w.at]
	switch k := w.draw.IntN(20); {
	case k < 8:
		n := min(1+int(w.draw.IntN(4)), len(w.want)-i)
		return w.read(base+uint64(i), n, func(j int, a, b uint64) error {
			if a != w.want[i+j] || b != a {
				return fmt.Errorf("page %d has %d and %d, not %d", base+uint64(i+j), a, b, w.want[i+j])
			}
			return nil
		})
	case k < 12: // pages that another one writes, trims and moves meanwhile
		o := others[w.draw.IntN(int64(len(others)))]
		n := min(1+int(w.draw.IntN(4)), len(w.want)-i)
		return w.read(o.bases[w.draw.IntN(2)]+uint64(i), n, func(int, uint64, uint64) error { return nil })
	case k < 17:
		w.want[i] = serial.Add(1)
		binary.LittleEndian.PutUint64(w.b, w.want[i])
		binary.LittleEndian.PutUint64(w.b[ctl.Page-8:], w.want[i])
		return w.pool.WriteAt(w.b, (base+uint64(i))*ctl.Page, k == 16)
	case k < 18:
		w.want[i] = 0
		return w.pool.Discard((base+uint64(i))*ctl.Page, ctl.Page, false)
	case k < 19:
		to := w.bases[1-w.at]
		w.at = 1 - w.at
		return w.pool.Remap([]ctl.Step{{From: base, To: to, Count: uint64(len(w.want))}}, false, func(error) {})
	}
	return w.pool.Sync()
}

// unreadable fails one read in a hundred.
type unreadable struct {
	device.Device
	reads atomic.Uint32
}

func (d *unreadable) Submit(ops ...*device.Op) {
	for _, op := range ops {
		if op.Kind == device.Read && d.reads.Add(1)%100 == 0 {
			op.Finish(device.ErrIO)
			continue
		}
		d.Device.Submit(op)
	}
}

// TestLanesUnreadable is TestLanes on a device some of whose reads fail: a read returns the right content or an error,
// and nothing waits for ever.
func TestLanesUnreadable(t *testing.T) {
	onFiles(t, func(t testing.TB, name string, openDevice func(string, int64) device.Device) {
		cfg, layout := small()
		cfg.Frames, cfg.LaneFrames = 72, 6
		d := openDevice("unreadable", smallGrains*device.Grain)
		format(t, layout, d)
		bad := &unreadable{Device: d}
		pool := open(t, cfg, bad)
		all := laneWorkers(pool, 4)
		var serial, failures atomic.Uint64
		var done sync.WaitGroup
		for i, w := range all {
			done.Go(func() {
				for k := range 1500 {
					switch err := w.step(&serial, all); {
					case errors.Is(err, device.ErrIO) || errors.Is(err, ctl.ErrDamaged):
						failures.Add(1)
					case err != nil:
						t.Errorf("%s, worker %d, step %d: %v", name, i, k, err)
						return
					}
				}
			})
		}
		done.Wait()
		clean(t, pool, false)
		if failures.Load() < 10 {
			t.Errorf("%s: %d reads failed", name, failures.Load())
		}
		if err := pool.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// laneWorkers returns workers on a number of lanes.
func laneWorkers(pool *ctl.Pool, lanes int) (all []*laneWorker) {
	const workers, own = 8, 36
	for w := range workers {
		base := uint64(w) * 4 * own
		all = append(all, &laneWorker{pool: pool, lane: uint8(w % lanes), draw: rng.NewStream(uint64(w), "lane"),
			bases: [2]uint64{base, base + 2*own}, want: make([]uint64, own), b: make([]byte, ctl.Page)})
	}
	return all
}

// TestLanes has lanes read pages that they and others write, trim, move and collect, with few frames, and verifies the
// contents and, at any time, every invariant.
func TestLanes(t *testing.T) {
	onFiles(t, func(t testing.TB, name string, openDevice func(string, int64) device.Device) {
		for _, lanes := range []int{1, 4} {
			cfg, layout := small()
			cfg.Frames, cfg.LaneFrames = 72, 6
			d := openDevice(fmt.Sprint("lanes", lanes), smallGrains*device.Grain)
			format(t, layout, d)
			pool := open(t, cfg, d)
			all := laneWorkers(pool, lanes)
			var serial atomic.Uint64
			var done sync.WaitGroup
			for i, w := range all {
				done.Go(func() {
					for k := range 1500 {
						if err := w.step(&serial, all); err != nil {
							t.Errorf("%s, worker %d, step %d: %v", name, i, k, err)
							return
						}
						if i == 0 && k%50 == 0 {
							for _, v := range pool.Check(false).Violations {
								t.Errorf("%s, step %d: %v", name, k, v)
							}
						}
					}
				})
			}
			done.Wait()
			if t.Failed() {
				t.FailNow()
			}
			clean(t, pool, true)
			if s := pool.Stats(); s.LaneMisses < 1000 || s.Moved < 100 {
				t.Errorf("%s: %d reads without the pool's lock, %d pages moved by collection", name, s.LaneMisses,
					s.Moved)
			}
			if err := pool.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

package waf

import (
	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/internal/heap"
	"farflash/numeric/rng"
)

// Latencies of the virtual device in nanoseconds, without the random part, as of a TLC drive. Write amplification
// should not depend on them.
const (
	timeRead  = 80e3
	timeWrite = 400e3
	timeFlush = 1e6
)

// due is an operation and its completion time; ties complete in the order of submission.
type due struct {
	op     *device.Op
	at     int64
	number uint64
}

// Before implements heap.Item.
func (d *due) Before(o *due) bool { return d.at < o.at || d.at == o.at && d.number < o.number }

// timed is an in-memory device whose operations take virtual time: the latency of their kind, plus up to half of it at
// random, so that they complete out of order.
type timed struct {
	mem    *device.Mem
	now    int64
	number uint64
	under  heap.Heap[due, *due]
	draw   rng.Stream
	over   bool // the clock is stopped: operations complete immediately
	most   int  // peak number of operations in flight
	late   int64
}

// Submit implements device.Device.
func (t *timed) Submit(ops ...*device.Op) {
	if t.over {
		t.mem.Submit(ops...)
		return
	}
	for _, op := range ops {
		takes := [...]float64{device.Read: timeRead, device.Write: timeWrite, device.Flush: timeFlush}[op.Kind]
		t.number++
		t.under.Push(due{op, t.now + int64(takes*(1+float64(t.draw.Float64()/2))), t.number})
	}
	t.most = max(t.most, t.under.Len())
}

// Size implements device.Device.
func (t *timed) Size() int64 { return t.mem.Size() }

// Close implements device.Device.
func (t *timed) Close() error { return t.mem.Close() }

// step completes the next operation in virtual time, and reports false if there is none.
func (t *timed) step() bool {
	if t.under.Len() == 0 {
		return false
	}
	d := t.under.Pop()
	if d.number != t.number-uint64(t.under.Len()) {
		t.late++ // it overtook an operation submitted earlier
	}
	t.now = d.at
	t.mem.Submit(d.op)
	return true
}

// virtualClock reports the virtual time that a run took.
type virtualClock struct {
	Nanoseconds int64
	Most        int   // peak number of operations in flight
	Disorder    int64 // operations that completed before one submitted earlier
}

// controllerTimed is Controller on a device whose operations take virtual time and complete in the order of that
// time. The next write starts as soon as fewer than depth operations are in flight.
func controllerTimed(l Load, policy heat.Policy, depth int) (ctl.Stats, virtualClock, error) {
	var t *timed
	s, err := controller(l, policy, func(m *device.Mem) (device.Device, func(bool) bool) {
		t = &timed{mem: m, draw: rng.NewStream(l.Seed, "time"), over: true}
		return t, func(asked bool) bool {
			t.over = false // the pool is open
			return (asked || t.under.Len() >= depth) && t.step()
		}
	})
	if t == nil {
		return s, virtualClock{}, err
	}
	return s, virtualClock{t.now, t.most, t.late}, err
}

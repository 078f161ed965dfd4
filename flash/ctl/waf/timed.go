package waf

import (
	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/internal/heap"
	"farflash/numeric/rng"
)

// What operations of the virtual device take, in nanoseconds, before what is drawn: of a drive of TLC flash. Nothing
// of write amplification should rest on them.
const (
	timeRead  = 80e3
	timeWrite = 400e3
	timeFlush = 1e6
)

// due is an operation that ends at a time; those of one time end as they began.
type due struct {
	op     *device.Op
	at     int64
	number uint64
}

// Before implements heap.Item.
func (d *due) Before(o *due) bool { return d.at < o.at || d.at == o.at && d.number < o.number }

// timed is a device in memory whose operations take virtual time: as long as their kind takes, and half of it again
// at the most, at random, so that they end in another order than they began.
type timed struct {
	mem    *device.Mem
	now    int64
	number uint64
	under  heap.Heap[due, *due]
	draw   rng.Stream
	over   bool // the clock stands: what is asked for is done at once
	most   int  // operations that were under way at once
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

// step has the operation end that ends first.
func (t *timed) step() bool {
	if t.under.Len() == 0 {
		return false
	}
	d := t.under.Pop()
	if d.number != t.number-uint64(t.under.Len()) {
		t.late++ // not in the order in which they began
	}
	t.now = d.at
	t.mem.Submit(d.op)
	return true
}

// Clock is what came of the virtual time.
type Clock struct {
	Nanoseconds int64
	Most        int   // operations under way at once
	Disorder    int64 // operations that ended before one that had begun earlier
}

// Timed is Controller on a device whose operations take virtual time: the next write begins as soon as fewer than so
// many operations are under way, and operations end in the order of time.
func Timed(l Load, policy heat.Policy, depth int) (ctl.Stats, Clock, error) {
	var t *timed
	s, err := controller(l, policy, func(m *device.Mem) (device.Device, func(bool) bool) {
		t = &timed{mem: m, draw: rng.NewStream(l.Seed, "time"), over: true}
		return t, func(asked bool) bool {
			t.over = false // the pool is open
			return (asked || t.under.Len() >= depth) && t.step()
		}
	})
	if t == nil {
		return s, Clock{}, err
	}
	return s, Clock{t.now, t.most, t.late}, err
}

package server

import (
	"sync"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/qos"
	"farflash/policy/ratecontrol"
)

// steered executes the decisions of a qos.Steer for one use of an export over NBD or NVMe; it owns the clock and the
// timer.
type steered struct {
	volume *counted
	began  time.Time

	mu      sync.Mutex
	policy  *qos.Steer[*operation]
	running bool // a goroutine starts what may begin
	closed  bool
	timer   *time.Timer
}

// newSteered returns nil without rate control. The client's reads hold at most the given memory, in bytes.
func newSteered(k ratecontrol.Kind, memory int, v *counted) (*steered, error) {
	if k == ratecontrol.None {
		return nil, nil
	}
	policy, err := qos.NewSteer[*operation](k, int64(max(memory-nbd.Window, 1)))
	return &steered{volume: v, policy: policy, began: time.Now()}, err
}

// now is the time of the policy. The caller holds x.mu.
func (x *steered) now() int64 { return int64(time.Since(x.began)) }

// enter queues a task that is started now or later.
func (x *steered) enter(o *operation) {
	x.mu.Lock()
	t := o.task
	t.Sole = false // it may begin while the session is at work
	o.steered = true
	o.place = x.policy.Offer(x.now(), t.Kind == nbd.Read, int64(t.Offset), reach(t), o)
	x.mu.Unlock()
	x.run()
}

// reach is the number of bytes that a task reads or changes.
func reach(t *nbd.Task) int64 {
	if t.Kind == nbd.Flush {
		return 0
	}
	return int64(t.Length)
}

// run starts all tasks that may begin. Only one goroutine does, so that tasks which are done at once do not nest.
func (x *steered) run() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.running {
		return
	}
	x.running = true
	for {
		o, ok := x.policy.Next(x.now())
		if !ok {
			break
		}
		x.mu.Unlock()
		x.volume.start(o)
		x.mu.Lock()
	}
	x.running = false
	if at, ok := x.policy.When(); ok && !x.closed {
		wait := max(0, time.Duration(at-x.now())) + time.Microsecond
		if x.timer == nil {
			x.timer = time.AfterFunc(wait, x.tick)
		} else {
			x.timer.Reset(wait)
		}
	}
}

func (x *steered) tick() {
	x.mu.Lock()
	x.policy.Tick(x.now())
	x.mu.Unlock()
	x.run()
}

// done reports that a task is done, and whether it keeps its place until it is sent. The caller calls run.
func (x *steered) done(o *operation) (keeps bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	failed := o.task.Err != 0
	x.policy.Done(x.now(), o.place, failed)
	return o.task.Kind == nbd.Read && !failed
}

// taken reports that what a task has read is sent, or will not be.
func (x *steered) taken(o *operation) {
	x.mu.Lock()
	x.policy.Sent(x.now(), o.place)
	x.mu.Unlock()
	x.run()
}

// open lifts the limit on reads, for a client that has gone.
func (x *steered) open() {
	x.mu.Lock()
	x.policy.Open()
	x.mu.Unlock()
	x.run()
}

// close ends the timer.
func (x *steered) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.timer != nil {
		x.timer.Stop()
	}
}

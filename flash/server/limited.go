package server

import (
	"errors"

	"farflash/flash/extent"
	"farflash/flash/meter"
	"farflash/flash/nbd"
	"farflash/flash/nbd/volume"
	"farflash/flash/verbs"
)

// volume returns a file as an NBD volume for one connection of a protocol. When the connection ends, its gate must be
// shut; when all tasks are done, its gate must be released and its use closed.
func (s *Server) volume(name, protocol string, f File) (*counted, error) {
	inner, err := volume.New(s.cfg.Pool, f.Base, f.Size)
	if err != nil {
		return nil, err
	}
	c := &counted{Volume: inner, gate: s.gates.of(name), use: s.meter.Open(name, protocol)}
	if c.steer, err = newSteered(s.cfg.RateControl, s.memory[protocol], c); err != nil {
		return nil, err
	}
	c.gate.begin = func(what any) {
		o := what.(*operation)
		o.charged = true
		c.begin(o)
	}
	c.gate.refuse = func(what any) { what.(*operation).refuse() }
	return c, nil
}

// counted is a volume whose tasks are counted and, if there are limits, queue at a gate. The time in the queue is part
// of their latency.
type counted struct {
	nbd.Volume
	gate  *gate
	use   *meter.Use
	steer *steered // nil: no rate control
}

// leave is called when the client's connection ends.
func (c *counted) leave() {
	c.gate.shut()
	if c.steer != nil {
		c.steer.open()
	}
}

// close is called after the last task.
func (c *counted) close() {
	c.use.Close()
	c.gate.release()
	if c.steer != nil {
		c.steer.close()
	}
}

// operation is what a counted volume keeps for a task. Between Start and Done, the task's Private is that of the volume
// inside, and at other times the operation.
type operation struct {
	volume  *counted
	task    *nbd.Task
	inner   any // Private of the volume inside
	done    func(*nbd.Task)
	end     func(*nbd.Task)
	sent    func(sent bool)
	at      int64
	one     [1]*nbd.Task
	charged bool // the task has passed the gate
	steered bool // and has a place
	place   int32
	trace   *meter.Trace // nil: it is not traced
}

// Start implements nbd.Volume. Tasks queue individually, so that none is delayed by the cost of another.
func (c *counted) Start(tasks []*nbd.Task) {
	at, first := c.use.Begin(len(tasks))
	limited := c.gate.limited()
	for i, t := range tasks {
		o, ok := t.Private.(*operation)
		if !ok {
			o = &operation{task: t}
			o.end, o.sent = o.ended, o.taken
		}
		o.volume, o.at, o.done = c, at, t.Done // an NVMe queue has several volumes, and reuses its tasks for all
		t.Private, t.Done = o.inner, o.end
		if x := c.use.Trace(first + int64(i)); x != nil {
			o.follow(x)
		}
		if limited || c.steer != nil {
			tasks[i] = nil // the task may be reused as soon as it is done
		}
		switch {
		case limited:
			c.gate.enter(cost(t), o)
		case c.steer != nil:
			c.begin(o)
		}
	}
	if !limited && c.steer == nil {
		c.Volume.Start(tasks)
	}
}

// begin starts a task that has passed the gate, or queues it for its place.
func (c *counted) begin(o *operation) {
	if c.steer != nil {
		c.steer.enter(o)
		return
	}
	c.start(o)
}

// start starts a task.
func (c *counted) start(o *operation) {
	o.trace.Reach(meter.Admitted)
	o.one[0] = o.task
	c.Volume.Start(o.one[:])
}

func (o *operation) refuse() {
	o.task.Err = nbd.ESHUTDOWN
	o.ended(o.task)
}

// ended is the Done of a task.
func (o *operation) ended(t *nbd.Task) {
	o.inner, t.Private, t.Done = t.Private, o, o.done
	if o.charged {
		o.charged = false
		o.volume.gate.leave(cost(t))
	}
	o.trace.Reach(meter.Done)
	o.volume.use.End(o.at, kinds[t.Kind], int(t.Length), failure(t.Err))
	x := o.volume.steer
	if !o.steered {
		x = nil
	}
	if x != nil {
		if o.steered = x.done(o); o.steered {
			t.Sent = o.sent
		}
	}
	o.done(t)
	if x != nil {
		x.run()
	}
}

// taken is the Sent of a task.
func (o *operation) taken(sent bool) {
	if x := o.trace; x != nil {
		o.trace = nil
		f := failure(o.task.Err)
		if sent {
			x.Reach(meter.Sent)
		} else if f == meter.Succeeded {
			f = meter.Dropped
		}
		x.End(f)
	}
	if o.steered {
		o.steered = false
		o.volume.steer.taken(o)
	}
}

// follow traces the task until its answer is sent.
func (o *operation) follow(x *meter.Trace) {
	t := o.task
	x.Kind, x.Offset, x.Bytes = kinds[t.Kind], t.Offset, int(t.Length)
	if t.Peer != nil {
		x.Peer = t.Peer.String()
	}
	x.Reached(meter.Stalled, t.Stalled)
	x.Reached(meter.Resumed, t.Resumed)
	o.trace, t.Sent = x, o.sent
}

// Release implements nbd.Volume.
func (c *counted) Release(t *nbd.Task) {
	o := t.Private.(*operation)
	t.Private = o.inner
	c.Volume.Release(t)
	t.Private = o
}

// kinds are the kinds of tasks.
var kinds = [...]meter.Kind{nbd.Read: meter.Read, nbd.Write: meter.Write, nbd.Flush: meter.Flush, nbd.Trim: meter.Trim,
	nbd.Zero: meter.Zero, nbd.Cache: meter.Cache}

// failure classifies the error of a task.
func failure(e nbd.Errno) meter.Failure {
	switch e {
	case 0:
		return meter.Succeeded
	case nbd.ENOSPC:
		return meter.Full
	case nbd.ESHUTDOWN:
		return meter.Dropped
	case nbd.EIO:
		return meter.IO
	}
	return meter.Other
}

// cost is the number of bytes that a task makes the device read or write. Freed pages cost no bytes, and neither do
// flushes, whose data were charged when written; both count as operations only.
func cost(t *nbd.Task) int {
	switch {
	case t.Kind == nbd.Flush || t.Kind == nbd.Trim:
		return 0
	case t.Kind == nbd.Zero && !t.NoHole:
		end := t.Offset + uint64(t.Length)
		if first, last := (t.Offset+pageSize-1)/pageSize, end/pageSize; first < last {
			return int(t.Length) - int(last-first)*pageSize
		}
	}
	return int(t.Length)
}

// store returns a file as a store for one iWARP connection; its accesses are counted and, if there are limits, queue at
// the gate, which must be released when there are no more.
func (s *Server) store(name string, f File, use *meter.Use) (verbs.Store, *gate, error) {
	free, err := extent.New(s.cfg.Pool, f.Base, f.Size, nil)
	if err != nil {
		return nil, nil, err
	}
	x := s.gates.of(name)
	gated, err := extent.New(s.cfg.Pool, f.Base, f.Size, behind{x})
	if err != nil {
		x.release()
		return nil, nil, err
	}
	free.Count(use, reason)
	gated.Count(use, reason)
	x.begin = func(what any) { gated.Get(what.(*verbs.Access)) }
	return waiting{free, x}, x, nil
}

// reason classifies the error of an access.
func reason(err error) meter.Failure { return failure(volume.Errno(err)) }

var _ interface {
	verbs.Reporter
	verbs.Forgetter
} = waiting{}

// waiting is a store whose accesses queue at a gate first, if there are limits; the gate passes them to another extent
// of the same bytes, which reports when they have their data.
type waiting struct {
	*extent.Extent // also a verbs.Reporter
	gate           *gate
}

// behind notifies a gate when an access has its data. The access has already passed the gate.
type behind struct{ gate *gate }

// Enter implements extent.Gate.
func (behind) Enter(_ int, begin func()) { begin() }

// Leave implements extent.Gate.
func (b behind) Leave(bytes int) { b.gate.leave(bytes) }

// withdrawn is the Private of an access that was withdrawn before it reached the store.
type withdrawn struct{}

var errGone = errors.New("the connection is closed")

// Get implements verbs.Store.
func (w waiting) Get(a *verbs.Access) {
	if !w.gate.limited() {
		w.Extent.Get(a)
		return
	}
	w.Arrive(a)
	w.gate.enter(a.Length, a)
}

// Forget implements verbs.Forgetter.
func (w waiting) Forget(a *verbs.Access) {
	if w.gate.withdraw(a) {
		w.Withdraw(a)
		a.Private = withdrawn{}
		a.Fail(errGone)
	}
}

// Put implements verbs.Store.
func (w waiting) Put(a *verbs.Access) {
	if a.Private == (withdrawn{}) {
		a.Done(nil)
		return
	}
	w.Extent.Put(a)
}

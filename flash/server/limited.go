package server

import (
	"errors"

	"farflash/flash/extent"
	"farflash/flash/meter"
	"farflash/flash/nbd"
	"farflash/flash/nbd/volume"
	"farflash/flash/verbs"
)

// volume returns a file as an NBD volume for one connection of a protocol. Its tasks are counted, and queue at a gate
// if there are limits: leave, if not nil, must be called when the connection ends. The use ends when all tasks are
// done.
func (s *Server) volume(name, protocol string, f File) (v nbd.Volume, use *meter.Use, leave func(), err error) {
	inner, err := volume.New(s.cfg.Pool, f.Base, f.Size)
	if err != nil {
		return nil, nil, nil, err
	}
	c := &counted{Volume: inner, gate: s.gates.of(name), use: s.meter.Open(name, protocol)}
	x := c.gate
	if x == nil {
		return c, c.use, nil, nil
	}
	x.begin = func(what any) { c.start(what.(*operation)) }
	x.refuse = func(what any) { what.(*operation).refuse() }
	return c, c.use, x.shut, nil
}

// counted is a volume whose tasks are counted and may have to queue at a gate. The time in the queue is part of their
// latency.
type counted struct {
	nbd.Volume
	gate *gate // nil: no limits
	use  *meter.Use
}

// operation is what a counted volume keeps for a task. Between Start and Done, the task's Private is that of the volume
// inside, and at other times the operation.
type operation struct {
	volume  *counted
	task    *nbd.Task
	inner   any // Private of the volume inside
	done    func(*nbd.Task)
	end     func(*nbd.Task)
	at      int64
	one     [1]*nbd.Task
	charged bool         // the task has passed the gate
	trace   *meter.Trace // nil: it is not traced
}

// Start implements nbd.Volume. Tasks queue individually, so that none is delayed by the cost of another.
func (c *counted) Start(tasks []*nbd.Task) {
	at, first := c.use.Begin(len(tasks))
	for i, t := range tasks {
		o, ok := t.Private.(*operation)
		if !ok {
			o = &operation{task: t}
			o.end = o.ended
		}
		o.volume, o.at, o.done = c, at, t.Done // an NVMe queue has several volumes, and reuses its tasks for all
		t.Private, t.Done = o.inner, o.end
		if x := c.use.Trace(first + int64(i)); x != nil {
			o.follow(x)
		}
		if c.gate != nil {
			tasks[i] = nil // the task may be reused as soon as it is done
			c.gate.enter(cost(t), o)
		}
	}
	if c.gate == nil {
		c.Volume.Start(tasks)
	}
}

// start starts a task that passed the gate.
func (c *counted) start(o *operation) {
	o.trace.Reach(meter.Admitted)
	o.charged, o.one[0] = true, o.task
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
	o.done(t)
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
	o.trace = x
	t.Sent = func(sent bool) {
		o.trace = nil
		f := failure(t.Err)
		if sent {
			x.Reach(meter.Sent)
		} else if f == meter.Succeeded {
			f = meter.Dropped
		}
		x.End(f)
	}
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

// store returns a file as a store for one iWARP connection; its accesses are counted, and queue at a gate if there are
// limits.
func (s *Server) store(name string, f File, use *meter.Use) (verbs.Store, error) {
	x := s.gates.of(name)
	if x == nil {
		e, err := extent.New(s.cfg.Pool, f.Base, f.Size, nil)
		if err == nil {
			e.Count(use, reason)
		}
		return e, err
	}
	e, err := extent.New(s.cfg.Pool, f.Base, f.Size, behind{x})
	if err != nil {
		return nil, err
	}
	e.Count(use, reason)
	x.begin = func(what any) { e.Get(what.(*verbs.Access)) }
	return waiting{e, x}, nil
}

// reason classifies the error of an access.
func reason(err error) meter.Failure { return failure(volume.Errno(err)) }

var _ interface {
	verbs.Reporter
	verbs.Forgetter
} = waiting{}

// waiting is a store whose accesses queue at a gate first.
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

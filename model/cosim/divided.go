package cosim

import (
	"errors"
	"fmt"

	"farflash/block"
	"farflash/internal/slab"
	"farflash/policy/ratecontrol"
	"farflash/sim"
)

// Divided puts a drive behind separate submission queues for reads and writes (package ratecontrol), as one
// block.Device. Commands wait in these two, unbounded, and move to the drive's single queue when they are fetched.
type Divided struct {
	eng      *sim.Engine
	sink     block.Sink
	queues   *ratecontrol.Queues
	dev      block.Device
	inner    block.QueueID
	depth    int
	closed   bool
	opened   block.QueueID
	wait     slab.Slab[divided]
	refusals refusals
}

// divided is an outstanding request.
type divided struct {
	req    block.Request // its tag is its number here
	tag    uint64
	at     sim.Time
	queue  block.QueueID
	ticket int32
}

// NewDivided keeps at most depth commands in Behind's drive and completes to sink. Behind reports invalid arguments.
func NewDivided(eng *sim.Engine, depth int, sink block.Sink) *Divided {
	if depth == mostDepth {
		depth-- // the largest submission queue holds one command less than it has entries
	}
	d := &Divided{eng: eng, sink: sink, queues: ratecontrol.NewQueues(depth), depth: depth}
	d.refusals = refusals{eng: eng, sink: func(c block.Completion) { d.sink.Complete(c) }}
	return d
}

// Behind sets the drive, whose sink is d, once and before Open.
func (d *Divided) Behind(dev block.Device) error {
	switch {
	case d.eng == nil || d.sink == nil || dev == nil:
		return errors.New("cosim: divided queues need an engine, a sink and a drive; one of them is nil")
	case d.dev != nil:
		return errors.New("cosim: the divided queues have a drive")
	case d.depth < 1 || d.depth > mostDepth:
		return fmt.Errorf("cosim: a drive of %d commands at once is not possible; use 1 to %d", d.depth, mostDepth)
	}
	q, err := dev.Open(block.QueueConfig{Depth: d.depth + 1, Class: block.Medium, Weight: 1,
		InFlight: d.depth})
	if err != nil {
		return err
	}
	d.dev, d.inner = dev, q
	return nil
}

// mostDepth bounds the commands in a drive, as the largest submission queue does.
const mostDepth = 65536

// Queues returns the queues that commands wait in.
func (d *Divided) Queues() *ratecontrol.Queues { return d.queues }

// Open implements block.Device. It ignores the queue's configuration.
func (d *Divided) Open(block.QueueConfig) (block.QueueID, error) {
	switch {
	case d.dev == nil:
		return 0, errors.New("cosim: the divided queues have no drive; use Behind")
	case d.closed:
		return 0, errors.New("cosim: the divided queues are closed")
	}
	d.opened++
	return d.opened - 1, nil
}

// Capacity implements block.Device. Without a drive it is 0.
func (d *Divided) Capacity(namespace int) int64 {
	if d.dev == nil {
		return 0
	}
	return d.dev.Capacity(namespace)
}

// Close implements block.Device.
func (d *Divided) Close() error {
	switch n := d.wait.Len() + int(d.refusals.list.N); {
	case n > 0:
		return fmt.Errorf("cosim: %d requests are in flight", n)
	case d.dev == nil:
		d.closed = true
		return nil
	}
	err := d.dev.Close()
	d.closed = err == nil
	return err
}

// Submit implements block.Device.
func (d *Divided) Submit(q block.QueueID, r block.Request) bool {
	switch {
	case d.closed || d.eng == nil:
		return false
	case q < 0 || q >= d.opened:
		d.refusals.refuse(q, &r, block.Invalid)
		return true
	}
	n := d.wait.Take()
	x := d.wait.At(n)
	*x = divided{req: r, tag: r.Tag, at: d.eng.Now(), queue: q}
	x.req.Tag = uint64(n)
	x.ticket = d.queues.Push(n, r.Op, r.Namespace, r.Offset, r.Length)
	d.fetch()
	return true
}

// fetch gives the drive commands up to its depth. ratecontrol limits the commands inside to the depth, and the
// drive's queue of depth + 1 entries holds as many.
func (d *Divided) fetch() {
	for {
		n, _, ok := d.queues.Next()
		if !ok {
			return
		}
		if !d.dev.Submit(d.inner, d.wait.At(n).req) {
			panic("cosim: a drive refuses a command although its queue has a free entry")
		}
	}
}

// Complete implements the drive's sink.
func (d *Divided) Complete(c block.Completion) {
	n := int32(c.Tag)
	if c.Tag >= uint64(d.wait.Bound()) {
		panic(fmt.Sprintf("cosim: Complete of the command with tag %d, which the divided queues did not submit", c.Tag))
	}
	x := d.wait.At(n)
	c.Tag, c.Queue, c.Submitted = x.tag, x.queue, x.at
	// The entry is free before the host's sink runs, which can submit again.
	d.queues.Done(x.ticket)
	d.wait.Give(n)
	d.sink.Complete(c)
	d.fetch()
}

// Waiting returns the number of requests that wait for a place in the drive.
func (d *Divided) Waiting() int {
	return d.queues.Waiting(ratecontrol.ReadQueue) + d.queues.Waiting(ratecontrol.WriteQueue)
}

// Check reports an inconsistent state of the queues.
func (d *Divided) Check() error { return d.queues.Check() }

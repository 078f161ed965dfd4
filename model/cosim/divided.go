package cosim

import (
	"farflash/block"
	"farflash/internal/slab"
	"farflash/policy/ratecontrol"
	"farflash/sim"
)

// Divided puts a drive behind separate submission queues for reads and for writes (package ratecontrol), as one
// block.Device that a host cannot tell from the drive. Whatever queues the host opens, commands wait in these two,
// which are unbounded, and move to the drive's single queue when they are fetched. Submit never refuses.
type Divided struct {
	eng    *sim.Engine
	sink   block.Sink
	queues *ratecontrol.Queues
	dev    block.Device
	inner  block.QueueID
	depth  int
	opened block.QueueID
	wait   slab.Slab[divided]
}

// divided is an outstanding request.
type divided struct {
	req    block.Request // its tag is its number here
	tag    uint64
	at     sim.Time
	queue  block.QueueID
	ticket int32
}

// NewDivided returns a Divided that keeps at most depth commands in the drive that Behind gives it, and reports
// completions to sink.
func NewDivided(eng *sim.Engine, depth int, sink block.Sink) *Divided {
	return &Divided{eng: eng, sink: sink, queues: ratecontrol.NewQueues(depth), depth: depth}
}

// Behind sets the drive, which must have been created with d as its sink.
func (d *Divided) Behind(dev block.Device) error {
	d.dev = dev
	var err error
	d.inner, err = dev.Open(block.QueueConfig{Depth: min(d.depth+1, 65536), Class: block.Medium, Weight: 1,
		InFlight: d.depth})
	return err
}

// Queues returns the queues that commands wait in.
func (d *Divided) Queues() *ratecontrol.Queues { return d.queues }

// Open implements block.Device. A queue's depth, class, weight and limit are ignored.
func (d *Divided) Open(block.QueueConfig) (block.QueueID, error) {
	d.opened++
	return d.opened - 1, nil
}

// Capacity implements block.Device.
func (d *Divided) Capacity(namespace int) int64 { return d.dev.Capacity(namespace) }

// Close implements block.Device.
func (d *Divided) Close() error { return d.dev.Close() }

// Submit implements block.Device.
func (d *Divided) Submit(q block.QueueID, r block.Request) bool {
	n := d.wait.Take()
	x := d.wait.At(n)
	*x = divided{req: r, tag: r.Tag, at: d.eng.Now(), queue: q}
	x.req.Tag = uint64(n)
	x.ticket = d.queues.Push(n, r.Op, r.Namespace, r.Offset, r.Length)
	d.fetch()
	return true
}

// fetch gives the drive commands up to its depth.
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
	x := d.wait.At(n)
	c.Tag, c.Queue, c.Submitted = x.tag, x.queue, x.at
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

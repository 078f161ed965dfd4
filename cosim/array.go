package cosim

import (
	"math"

	"farflash/block"
	"farflash/internal/slab"
	"farflash/nvmf"
	"farflash/sim"
)

// Array is the drives behind a network as one block.Device: a host submits requests to it and
// cannot tell it from a drive. It splits a request into commands for one drive each; the request ends with
// the last of them.
//
// Striped volumes share all drives; the stripes of a drive lie behind each other in it. Otherwise a
// volume has the same addresses in each drive that holds a part of it, and the drive's map takes what is used of them. Where
// volumes are not to overlap in a drive, their addresses have to differ.
type Array struct {
	Router
	eng     *sim.Engine
	sys     *nvmf.System
	sink    func(block.Completion)
	pending slab.Slab[pending]
	volume  *volume // nil: requests go where the route says
	inside  uint64
	trip    Trip
}

// Trip is how a request went: what its last command went through.
type Trip struct {
	nvmf.Done
	// Arrival is when the request came to the initiator.
	Arrival sim.Time
	// Commands is how many the request was.
	Commands int32
}

// pending is a request that has not ended.
type pending struct {
	tag     uint64
	at      sim.Time
	length  int64
	left    int32
	count   int32
	queue   block.QueueID
	op      block.Op
	status  block.Status
	waiting bool // it is being split
}

// NewArray makes an array of a system's drives, which tells sink of requests that have ended.
func NewArray(eng *sim.Engine, sys *nvmf.System, route Route, sink func(block.Completion)) (*Array, error) {
	targets := make([][]int32, sys.Targets())
	for t := range targets {
		targets[t] = sys.DrivesOf(int32(t))
	}
	capacity := int64(math.MaxInt64)
	for d := range sys.Drives() {
		capacity = min(capacity, sys.Device(int32(d)).Capacity(0))
	}
	r, err := NewRouter(route, sys.Initiators(), targets, capacity)
	return &Array{Router: r, eng: eng, sys: sys, sink: sink}, err
}

// Submit implements block.Device. It never refuses: requests wait at their initiators.
func (a *Array) Submit(q block.QueueID, r block.Request) bool {
	p := a.pending.Take()
	*a.pending.At(p) = pending{tag: r.Tag, at: a.eng.Now(), length: r.Length, queue: q, op: r.Op, waiting: true}
	a.inside++
	r.Tag = uint64(p)
	if a.volume != nil {
		a.pending.At(p).waiting = false
		a.volume.raid.Begin(r)
		return true
	}
	initiator := a.initiator(q, &r)
	if r.Op == block.Flush {
		// It is for every drive that may hold something of the volume.
		first, last := a.holders(&r)
		a.pending.At(p).left, a.pending.At(p).count, a.pending.At(p).waiting = last-first+1, last-first+1, false
		for d := first; d <= last; d++ {
			a.sys.Submit(initiator, d, r)
		}
		return true
	}
	for done := int64(0); done < r.Length; {
		drive, part := a.part(&r, done)
		done += part.Length
		x := a.pending.At(p)
		x.left++
		x.count++
		x.waiting = done < r.Length
		a.sys.Submit(initiator, drive, part)
	}
	return true
}

// Ended implements nvmf.Sink.
func (a *Array) Ended(d *nvmf.Done) {
	if a.volume != nil {
		a.volume.ended(d)
		return
	}
	p := int32(d.Tag)
	x := a.pending.At(p)
	x.left--
	if d.Status != block.OK {
		x.status = d.Status
	}
	if x.left > 0 || x.waiting {
		return
	}
	a.end(p, d)
}

// end tells of a request that has ended with a command.
func (a *Array) end(p int32, d *nvmf.Done) {
	x := a.pending.At(p)
	a.trip = Trip{Done: *d, Arrival: x.at, Commands: x.count}
	done := block.Completion{Tag: x.tag, Submitted: x.at, Fetched: x.at, Finished: d.Ended, Length: x.length, Queue: x.queue, Op: x.op, Status: x.status}
	a.pending.Give(p)
	a.inside--
	a.sink(done)
}

// Inside is how many requests have not ended.
func (a *Array) Inside() uint64 { return a.inside }

// Tag is the host's tag of the request that a command with a tag is a part of and that has not ended.
func (a *Array) Tag(command uint64) uint64 { return a.pending.At(int32(command)).tag }

// Trip is how the request went that ended last. It holds until the next one ends.
func (a *Array) Trip() *Trip { return &a.trip }

package cosim

import (
	"errors"
	"fmt"
	"math"

	"farflash/block"
	"farflash/internal/slab"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
)

// Array is the drives behind a network as one block.Device. It splits a request into commands for one drive each; the
// request completes with the last of them.
//
// Striped volumes share all drives; the stripes of a drive are contiguous in it. Otherwise a volume has the same
// addresses in each drive that holds a part of it; volumes must not overlap there. Where drives are zoned, so is the
// array, with each zone in one drive. A write to a zone must be one command, at most Route.MaxTransfer, to a volume
// with zones of its own.
type Array struct {
	Router
	zones    block.Zones // zones of all drives, in the array's addresses; none if they are not zoned
	eng      *sim.Engine
	sys      *nvmf.System
	sink     func(block.Completion)
	pending  slab.Slab[pending]
	volume   *volume // nil if requests follow the route
	inside   uint64
	trip     Trip
	refusals refusals
}

// Trip is a request's path: the timing of its last command.
type Trip struct {
	nvmf.Done
	Arrival  sim.Time // Arrival is when the request arrived at the initiator.
	Commands int32    // Commands is the number of commands of the request.
}

// pending is an outstanding request.
type pending struct {
	tag     uint64
	at      sim.Time
	length  int64
	shift   int64 // of an append: added to the drive's address to get the array's
	left    int32
	count   int32
	queue   block.QueueID
	op      block.Op
	status  block.Status
	waiting bool // it is still being split
}

// NewArray returns an array of a system's drives that completes to sink.
func NewArray(eng *sim.Engine, sys *nvmf.System, route Route, sink func(block.Completion)) (*Array, error) {
	if eng == nil || sys == nil || sink == nil {
		return nil, errors.New("cosim: an array needs an engine, a system and a sink; one of them is nil")
	}
	targets := make([][]int32, sys.Targets())
	for t := range targets {
		targets[t] = sys.DrivesOf(int32(t))
	}
	capacity := int64(math.MaxInt64)
	for d := range sys.Drives() {
		capacity = min(capacity, sys.Device(int32(d)).Capacity(0))
	}
	r, err := NewRouter(route, sys.Initiators(), targets, capacity)
	if err != nil {
		return nil, err
	}
	a := &Array{Router: r, eng: eng, sys: sys, sink: sink, refusals: refusals{eng: eng, sink: sink}}
	if err := a.findZones(); err != nil {
		return nil, err
	}
	return a, nil
}

// findZones determines how the array is divided into zones. All drives must have the same ones, and a stripe or extent
// must contain whole zones.
func (a *Array) findZones() error {
	for d := range a.sys.Drives() {
		var z block.Zones
		if dev, ok := a.sys.Device(int32(d)).(block.Zoned); ok {
			z = dev.Zones(0)
		}
		if d > 0 && z != a.zones {
			return fmt.Errorf("drives 0 and %d are not divided into the same zones", d)
		}
		a.zones = z
	}
	z := &a.zones
	if z.Count == 0 {
		return nil
	}
	if k := a.route.Drive; (k == ByStripe || k == ByHash) && int64(a.route.Unit)%z.Size != 0 {
		return fmt.Errorf("units of %v are not whole zones of %v, each stored on one drive", a.route.Unit,
			units.Bytes(z.Size))
	}
	a.zone, z.Count = z.Size, int(a.capacity/z.Size)
	return nil
}

// Zones implements block.Zoned. The limits are those of each drive.
func (a *Array) Zones(int) block.Zones { return a.zones }

// Submit implements block.Device. Requests wait at their initiators.
func (a *Array) Submit(q block.QueueID, r block.Request) bool {
	if s := a.status(q, &r); s != block.OK {
		if a.closed {
			return false
		}
		a.refusals.refuse(q, &r, s)
		return true
	}
	// The slab can move when it grows, so entries are addressed by index across calls of the system.
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
		// A flush goes to every drive that may hold data of the volume. Drives ignore its range, and nvmf checks it.
		first, last := a.holders(&r)
		r.Offset, r.Length = 0, 0
		a.pending.At(p).left, a.pending.At(p).count, a.pending.At(p).waiting = last-first+1, last-first+1, false
		for d := first; d <= last; d++ {
			a.sys.Submit(initiator, d, r)
		}
		return true
	}
	// waiting keeps the request from completing before its last command is submitted.
	for done, more := int64(0), true; more; {
		drive, part := a.part(&r, done)
		done += part.Length
		more = done < r.Length // zone commands have no length, and are one command
		x := a.pending.At(p)
		x.left++
		x.count++
		x.waiting = more
		if r.Append {
			x.shift = r.Offset - part.Offset
		}
		a.sys.Submit(initiator, drive, part)
	}
	return true
}

// Close implements block.Device.
func (a *Array) Close() error {
	if n := a.Inside(); n > 0 {
		return fmt.Errorf("cosim: %d requests are in flight", n)
	}
	return a.Router.Close()
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
	// The last error counts.
	if d.Status != block.OK {
		x.status = d.Status
	}
	if x.left > 0 || x.waiting {
		return
	}
	a.end(p, d)
}

// end completes a request, with the command that was its last. The entry is free before the sink runs, because a closed
// loop submits the next request inside it.
func (a *Array) end(p int32, d *nvmf.Done) {
	x := a.pending.At(p)
	a.trip = Trip{Done: *d, Arrival: x.at, Commands: x.count}
	done := block.Completion{Tag: x.tag, Submitted: x.at, Fetched: x.at, Finished: d.Ended, Length: x.length,
		Offset: d.Offset + x.shift, Queue: x.queue, Op: x.op, Status: x.status}
	a.pending.Give(p)
	a.inside--
	a.sink(done)
}

// Inside returns the number of outstanding requests.
func (a *Array) Inside() uint64 { return a.inside + uint64(a.refusals.list.N) }

// Tag returns the host's tag of a command's outstanding request; a rebuild's has none.
func (a *Array) Tag(command uint64) (tag uint64, known bool) {
	if a.volume != nil {
		if command >= uint64(a.volume.commands.Bound()) {
			return 0, false
		}
		if command, known = a.volume.raid.Owner(*a.volume.commands.At(int32(command))); !known {
			return 0, false
		}
	}
	if command >= uint64(a.pending.Bound()) {
		return 0, false
	}
	return a.pending.At(int32(command)).tag, true
}

// Trip returns the path of the last completed request, until the next.
func (a *Array) Trip() *Trip { return &a.trip }

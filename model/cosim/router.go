package cosim

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Spread is how requests are distinguished when they are handed to one of several.
type Spread uint8

// The spreads.
const (
	// ByTurn takes one after the other; what must keep an order in its zone, zone after zone.
	ByTurn Spread = iota
	// ByVolume goes by the volume's number.
	ByVolume
	// ByTarget goes by the volume's number to a target, and then to one of its drives.
	ByTarget
	// ByHash goes by a hash of volume and address, in extents.
	ByHash
	// ByStripe goes by the address, in stripes.
	ByStripe
	// ByFlow goes by the flow of the host.
	ByFlow
)

// Route says who issues a request and where it goes.
type Route struct {
	// Initiator is ByTurn, ByVolume, ByHash or ByFlow.
	Initiator Spread
	// Drive is ByVolume, ByTarget, ByHash or ByStripe.
	Drive Spread
	// Unit is the length of stripes, or of the extents that are hashed.
	Unit units.Bytes
	// MaxTransfer is the largest command.
	MaxTransfer units.Bytes
	// Owners has the initiator of each flow, for ByFlow.
	Owners []int32
}

// Router finds who issues a request and which drives it goes to. With Open, Capacity and Close it is all
// of a block.Device but the submitting.
type Router struct {
	route      Route
	initiators uint32
	targets    [][]int32 // their drives
	drives     int64
	flows      int32
	turn       uint32
	capacity   int64
	zone       int64 // how far apart zones begin, if the drives have any
}

// NewRouter makes a router for so many initiators and the drives of each target, of which the least has a
// capacity.
func NewRouter(route Route, initiators int, targets [][]int32, capacity int64) (Router, error) {
	r := Router{route: route, initiators: uint32(initiators), targets: targets, capacity: capacity}
	for _, t := range targets {
		r.drives += int64(len(t))
	}
	if r.drives == 0 || initiators == 0 {
		return r, fmt.Errorf("an array of %d drives for %d initiators", r.drives, initiators)
	}
	if route.Drive == ByStripe {
		unit := int64(route.Unit)
		if r.capacity = capacity / unit * unit * r.drives; r.capacity == 0 {
			return r, fmt.Errorf("drives of %v hold no stripe of %v", units.Bytes(capacity), route.Unit)
		}
	}
	return r, nil
}

// SetOwners sets the initiator of each flow, for ByFlow.
func (t *Router) SetOwners(owners []int32) { t.route.Owners = owners }

// Open implements block.Device. Flows have no queues of their own here.
func (t *Router) Open(block.QueueConfig) (block.QueueID, error) {
	t.flows++
	return block.QueueID(t.flows - 1), nil
}

// Capacity implements block.Device: the size of each volume.
func (t *Router) Capacity(int) int64 { return t.capacity }

// Close implements block.Device. What the router has is given up by whoever gave it.
func (t *Router) Close() error { return nil }

// initiator chooses who issues a request.
func (t *Router) initiator(q block.QueueID, r *block.Request) int32 {
	n := t.initiators
	switch t.route.Initiator {
	case ByFlow:
		return t.route.Owners[q]
	case ByVolume:
		return int32(r.Volume % n)
	case ByHash:
		return int32(rng.Mix(rng.Golden+(uint64(r.Volume)<<32^uint64(r.Offset/int64(t.route.Unit))^1<<63)) % uint64(n))
	}
	if t.zone > 0 && (r.Op.OfZone() || r.Op == block.Write && !r.Append) {
		// Hosts share no lock: the order in a zone is kept by one of them.
		return int32(r.Offset / t.zone % int64(n))
	}
	t.turn++
	return int32((t.turn - 1) % n)
}

// part is the command that a request's bytes from done on begin with.
func (t *Router) part(r *block.Request, done int64) (drive int32, part block.Request) {
	drive, offset, room := t.place(r, r.Offset+done)
	part = *r
	part.Data = nil // content is left out
	part.Offset, part.Length = offset, min(r.Length-done, room, int64(t.route.MaxTransfer))
	return drive, part
}

// place is where an address of a request's volume lies: the drive, the address in it, and how much behind it lies
// there too.
func (t *Router) place(r *block.Request, offset int64) (drive int32, at, room int64) {
	unit := int64(t.route.Unit)
	switch t.route.Drive {
	case ByStripe:
		stripe, within := offset/unit, offset%unit
		return int32((stripe + int64(r.Volume)) % t.drives), stripe/t.drives*unit + within, unit - within
	case ByHash:
		return int32(rng.Mix(rng.Golden+(uint64(r.Volume)<<32^uint64(offset/unit))) % uint64(t.drives)), offset,
			unit - offset%unit
	case ByTarget:
		n := uint32(len(t.targets))
		own := t.targets[r.Volume%n]
		return own[r.Volume/n%uint32(len(own))], offset, whole
	}
	return int32(int64(r.Volume) % t.drives), offset, whole
}

// whole is more than any volume has.
const whole = int64(1) << 62

// holders are the first and the last drive that may hold something of a request's volume.
func (t *Router) holders(r *block.Request) (first, last int32) {
	if t.route.Drive == ByVolume || t.route.Drive == ByTarget {
		first, _, _ = t.place(r, 0)
		return first, first
	}
	return 0, int32(t.drives) - 1
}

// Recorder is a block.Device that notes what is submitted to it, as jobs for drives and network in turns, and
// completes nothing.
type Recorder struct {
	Router
	eng  *sim.Engine
	Jobs []Job
	// Requests are those that the jobs are parts of, in order, and Initiators who issued each.
	Requests   []block.Request
	Initiators []int32
}

// NewRecorder makes a recorder.
func NewRecorder(eng *sim.Engine, router Router) *Recorder {
	return &Recorder{Router: router, eng: eng}
}

// Submit implements block.Device.
func (c *Recorder) Submit(q block.QueueID, r block.Request) bool {
	n := int32(len(c.Requests))
	c.Requests = append(c.Requests, r)
	c.Initiators = append(c.Initiators, c.initiator(q, &r))
	if r.Length == 0 {
		c.Jobs = append(c.Jobs, Job{Arrival: c.eng.Now(), Request: n, Command: r})
	}
	for done := int64(0); done < r.Length; {
		drive, part := c.part(&r, done)
		done += part.Length
		c.Jobs = append(c.Jobs, Job{Arrival: c.eng.Now(), Request: n, Drive: drive, Command: part})
	}
	return true
}

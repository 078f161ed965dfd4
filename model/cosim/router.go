package cosim

import (
	"errors"
	"fmt"
	"math"

	"farflash/block"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Spread is the property by which requests are distributed.
type Spread uint8

const (
	// ByTurn distributes requests in rotation; requests that need an order in their zone, by zone.
	ByTurn Spread = iota
	// ByVolume uses the volume's number.
	ByVolume
	// ByTarget uses the volume's number to select a target, and then one of its drives.
	ByTarget
	// ByHash uses a hash of volume and address, in extents.
	ByHash
	// ByStripe uses the address, in stripes.
	ByStripe
	// ByFlow uses the flow of the host.
	ByFlow
)

// Route determines which initiator issues a request and which drive serves it.
type Route struct {
	Initiator Spread // Initiator is ByTurn, ByVolume, ByHash or ByFlow.
	// Drive is ByVolume, ByTarget, ByHash or ByStripe; ByTurn, the zero value, is ByVolume.
	Drive       Spread
	Unit        units.Bytes // Unit is the length of stripes, or of hashed extents.
	MaxTransfer units.Bytes // MaxTransfer is the largest command; 0 is no limit.
	// Owners has the initiator of each flow, and -1 for those of which Initiator decides: with ByFlow none.
	Owners []int32
}

// Router determines the initiator of a request and its drives.
type Router struct {
	route      Route
	initiators uint32
	targets    [][]int32 // their drives
	drives     int64
	flows      int32
	closed     bool
	turn       uint32
	capacity   int64
	zone       int64 // distance between zone starts, 0 if the drives have no zones
}

// NewRouter returns a router for initiators and each target's drives. capacity is that of the smallest drive.
func NewRouter(route Route, initiators int, targets [][]int32, capacity int64) (Router, error) {
	r := Router{route: route, initiators: uint32(initiators), targets: targets, capacity: capacity}
	for _, t := range targets {
		r.drives += int64(len(t))
	}
	if r.drives == 0 || initiators <= 0 || initiators > math.MaxInt32 {
		return r, fmt.Errorf("an array of %d drives for %d initiators", r.drives, initiators)
	}
	if err := r.check(); err != nil {
		return r, err
	}
	if route.MaxTransfer == 0 {
		r.route.MaxTransfer = units.Bytes(whole)
	}
	if route.Drive == ByStripe {
		unit := int64(route.Unit)
		if r.capacity = times(capacity/unit*unit, r.drives); r.capacity == 0 {
			return r, fmt.Errorf("drives of %v are smaller than a stripe of %v", units.Bytes(capacity), route.Unit)
		}
	}
	return r, nil
}

// SetOwners sets Route.Owners.
func (t *Router) SetOwners(owners []int32) error {
	if err := t.checkOwners(owners); err != nil {
		return err
	}
	t.route.Owners = owners
	return nil
}

// Open implements block.Device. Flows share the initiators' queues.
func (t *Router) Open(block.QueueConfig) (block.QueueID, error) {
	if t.closed {
		return 0, errors.New("cosim: the array is closed")
	}
	t.flows++
	return block.QueueID(t.flows - 1), nil
}

// Capacity implements block.Device: the size of each volume.
func (t *Router) Capacity(int) int64 { return t.capacity }

// Close implements block.Device. The router owns no resources.
func (t *Router) Close() error {
	t.closed, t.flows = true, 0 // so that status finds no open queue
	return nil
}

// initiator returns the initiator that issues a request.
func (t *Router) initiator(q block.QueueID, r *block.Request) int32 {
	n := t.initiators
	if int(q) < len(t.route.Owners) && t.route.Owners[q] >= 0 {
		return t.route.Owners[q]
	}
	switch t.route.Initiator {
	case ByVolume:
		return int32(r.Volume % n)
	case ByHash:
		return int32(rng.Mix(rng.Golden+(uint64(r.Volume)<<32^uint64(r.Offset/int64(t.route.Unit))^1<<63)) % uint64(n))
	}
	if t.zone > 0 && (r.Op.OfZone() || r.Op == block.Write && !r.Append) {
		// Hosts share no lock, so one of them keeps a zone's order.
		return int32(r.Offset / t.zone % int64(n))
	}
	t.turn++
	return int32((t.turn - 1) % n)
}

// part returns the next command of a request, starting at its byte done, and its drive.
func (t *Router) part(r *block.Request, done int64) (drive int32, part block.Request) {
	drive, offset, room := t.place(r, r.Offset+done)
	part = *r
	part.Data = nil // content is not simulated
	part.Offset, part.Length = offset, min(r.Length-done, room, int64(t.route.MaxTransfer))
	return drive, part
}

// place returns the location of an address of a request's volume: the drive, the address in it, and the number of bytes
// from there on that are contiguous in it.
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

// whole exceeds any volume's size.
const whole = int64(1) << 62

// holders returns the first and the last drive that may hold data of a request's volume.
func (t *Router) holders(r *block.Request) (first, last int32) {
	if t.route.Drive == ByVolume || t.route.Drive == ByTarget || t.route.Drive == ByTurn { // place takes it as ByVolume
		first, _, _ = t.place(r, 0)
		return first, first
	}
	return 0, int32(t.drives) - 1
}

// Recorder is a block.Device that records requests as jobs for Iterative.
type Recorder struct {
	Router
	eng  *sim.Engine
	Jobs []Job
	// Requests are the requests that the jobs belong to, in order; Initiators has the initiator of each.
	Requests   []block.Request
	Initiators []int32
	err        error
}

// NewRecorder returns a recorder of what a router from NewRouter divides.
func NewRecorder(eng *sim.Engine, router Router) (*Recorder, error) {
	if eng == nil || router.drives == 0 {
		return nil, errors.New("cosim: a recorder needs an engine and a router from NewRouter")
	}
	return &Recorder{Router: router, eng: eng}, nil
}

// Err returns the error of the first request that was not recorded.
func (c *Recorder) Err() error { return c.err }

// Submit implements block.Device. Err reports a request without a drive.
func (c *Recorder) Submit(q block.QueueID, r block.Request) bool {
	s := c.status(q, &r)
	if s == block.OK && r.Length/int64(c.route.MaxTransfer) > mostOutstanding {
		s = block.Invalid
	}
	if s != block.OK {
		if c.err == nil {
			c.err = fmt.Errorf("cosim: request %d (%v of %v at %d): %v", len(c.Requests)+1, r.Op,
				units.Bytes(r.Length), r.Offset, s)
		}
		return false
	}
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

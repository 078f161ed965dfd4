package cosim

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"farflash/block"
	"farflash/internal/fifo"
	"farflash/numeric/units"
	"farflash/sim"
)

// mostWaves bounds the numbers of waves, which a host counts through.
const mostWaves = 1 << 16

// check reports what a flow cannot be, on its device.
func (f *Flow) check(dev block.Device) error {
	switch {
	case f.Source == nil:
		return errors.New("its source is nil")
	case f.Outstanding < 0 || f.Outstanding > mostOutstanding:
		return fmt.Errorf("%d outstanding requests are not possible; use 0 to %d", f.Outstanding, mostOutstanding)
	case f.Start < 0 || f.Until < 0 || f.Think < 0:
		return fmt.Errorf("it starts at %v, ends at %v and pauses for %v; use 0s or more", f.Start, f.Until, f.Think)
	case f.Think > 0 && f.ThinkEvery < 1:
		return fmt.Errorf("a pause after every %d requests is not possible; use 1 or more", f.ThinkEvery)
	case f.Wave < 0 || f.Wave > mostWaves:
		return fmt.Errorf("wave %d is not possible; use 0 to %d", f.Wave, mostWaves)
	case f.Last < 0:
		return fmt.Errorf("its last sector is %d; use 0 or more", f.Last)
	case dev.Capacity(int(f.Namespace)) <= 0:
		return fmt.Errorf("the device has no namespace %d", f.Namespace)
	}
	if z, ok := dev.(block.Zoned); ok && f.Loose && z.Zones(int(f.Namespace)).Count > 0 {
		return errors.New("loose addresses are not possible in a namespace with zones")
	}
	return nil
}

// check reports what a route cannot be, for the drives of each target.
func (t *Router) check() error {
	route := &t.route
	var bad units.Faults
	bad.Hold(route.Initiator == ByTurn || route.Initiator == ByVolume || route.Initiator == ByHash ||
		route.Initiator == ByFlow, "initiator", "spread %d is not possible; use ByTurn, ByVolume, ByHash or ByFlow",
		route.Initiator)
	bad.Hold(route.Drive != ByFlow && route.Drive <= ByFlow, "drive",
		"spread %d is not possible; use ByVolume, ByTarget, ByHash or ByStripe", route.Drive)
	bad.Hold(route.Unit >= 0 && route.Unit%units.Sector == 0, "unit", "%v is not possible; use a multiple of %v",
		route.Unit, units.Sector)
	bad.Hold(route.Unit > 0 || route.Initiator != ByHash && route.Drive != ByHash && route.Drive != ByStripe, "unit",
		"none is given for stripes or extents; use a size such as 64KiB")
	bad.Hold(route.MaxTransfer >= 0 && route.MaxTransfer%units.Sector == 0, "max_transfer",
		"%v is not possible; use a multiple of %v, or 0B for no limit", route.MaxTransfer, units.Sector)
	bad.Hold(t.capacity >= 0, "capacity", "%v is not possible", units.Bytes(t.capacity))
	for i, list := range t.targets {
		bad.Hold(len(list) > 0 || route.Drive != ByTarget, fmt.Sprintf("targets[%d]", i), "it has no drives")
		for _, d := range list {
			bad.Hold(d >= 0 && int64(d) < t.drives, fmt.Sprintf("targets[%d]", i),
				"it has drive %d; the drives are numbered from 0 to %d", d, t.drives-1)
		}
	}
	if err := bad.Err(); err != nil {
		return fmt.Errorf("cosim: %w", err)
	}
	return t.checkOwners(route.Owners)
}

// checkOwners reports flows whose initiator does not exist.
func (t *Router) checkOwners(owners []int32) error {
	for i, o := range owners {
		if o < 0 && (o < -1 || t.route.Initiator == ByFlow) || o >= 0 && uint32(o) >= t.initiators {
			return fmt.Errorf("cosim: flow %d has initiator %d; there are %d", i, o, t.initiators)
		}
	}
	return nil
}

// status is the status of a request that cannot be passed on to drives, or OK. Drives check what is left: the
// alignment, the namespace and zones.
func (t *Router) status(q block.QueueID, x *block.Request) block.Status {
	switch {
	case x.Op >= block.Ops || uint(q) >= uint(t.flows):
		return block.Invalid
	case t.route.Initiator == ByFlow && int(q) >= len(t.route.Owners):
		return block.Invalid
	case x.Op == block.Flush:
		return block.OK
	case x.Offset < 0 || x.Length < 0:
		return block.Invalid
	case x.Offset > t.capacity-x.Length:
		return block.OutOfRange
	}
	return block.OK
}

// times returns the product of two numbers that are not negative, at most the largest int64. It saturates, so that a
// product of sizes never becomes negative.
func times(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi > 0 || lo > 1<<63-1 {
		return 1<<63 - 1
	}
	return int64(lo)
}

// refusals complete requests that a device cannot serve, at the time of their submission but not inside Submit. Each
// has an event of its own, which completes the oldest in list.
type refusals struct {
	eng    *sim.Engine
	sink   func(block.Completion)
	self   sim.Component
	target sim.Target // 0 until the first of them
	list   fifo.Ring[block.Completion]
}

// refuse completes a request with a status.
//
//go:noinline
func (f *refusals) refuse(q block.QueueID, r *block.Request, status block.Status) {
	if f.target == 0 {
		f.self, f.target = f.eng.NewComponent(), f.eng.AddHandler(f)
	}
	now := f.eng.Now()
	f.list.Push(block.Completion{Tag: r.Tag, Submitted: now, Fetched: now, Finished: now, Length: r.Length, Queue: q,
		Op: r.Op, Status: status})
	f.eng.Schedule(f.self, f.target, now, 0, 0)
}

func (f *refusals) Handle(sim.Event) { f.sink(f.list.Pop()) }

// Validate reports invalid settings.
func (c *IterativeConfig) Validate() error {
	var bad units.Faults
	bad.Hold(c.Threshold >= 0 && c.Threshold <= math.MaxFloat64, "threshold", "%v is not possible; use 0 or more",
		c.Threshold)
	bad.Hold(c.StableRange >= 0 && c.StableRange <= math.MaxFloat64, "stable_range",
		"%v is not possible; use 0 or more", c.StableRange)
	bad.Hold(c.StableFor >= 0, "stable_for", "%d is not possible; use 0 or more", c.StableFor)
	for i, w := range c.Weights {
		bad.Hold(w >= 0 && w <= 1, fmt.Sprintf("weights[%d]", i), "%v is not possible; use 0 to 1", w)
	}
	bad.Hold(c.Most >= 0, "most", "%d is not possible; use 0 or more", c.Most)
	bad.Hold(c.Acceleration <= Anderson, "acceleration", "%d does not exist", c.Acceleration)
	bad.Hold(math.Abs(c.Relaxation) <= math.MaxFloat64, "relaxation", "%v is not possible; use a number", c.Relaxation)
	bad.Hold(c.DriveDepth >= 0 && c.DriveDepth <= mostDepth, "drive_depth", "%d is not possible; use 1 to %d",
		c.DriveDepth, mostDepth)
	return bad.Err()
}

// check reports what a job cannot be.
func (j *Job) check(jobs, drives int) error {
	switch {
	case j.Arrival < 0:
		return fmt.Errorf("it arrives at %v; use 0s or more", j.Arrival)
	case j.Drive < 0 || int(j.Drive) >= drives:
		return fmt.Errorf("it goes to drive %d; there are %d", j.Drive, drives)
	case j.Request < 0 || int(j.Request) >= jobs:
		return fmt.Errorf("it belongs to request %d; %d jobs belong to requests 0 to %d", j.Request, jobs, jobs-1)
	case j.Command.Length < 0:
		return fmt.Errorf("its length is %d bytes; use 0 or more", j.Command.Length)
	}
	return nil
}

package cluster

import (
	"math"

	"farflash/model/cluster/put"
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// Derives the protocols' plan from a configuration.

// durations returns the parameters that all durations follow from.
func (c *Config) durations() reserve.Config {
	t := c.Protocol.traits()
	r := t.Times()
	r.ControlSize = c.Control.Unicast
	if t.Finds == put.FindsBidders {
		r.Group = c.Group
	}
	if t.Reserves {
		r.ControlSize = c.Control.Replicast
		r.ReservedPercent = 100 - int64(math.Round(float64(c.Control.Share)*100))
	}
	if t.Gathers && c.Control.Queued {
		// The bids of a group arrive together and take turns on the gateway's link.
		r.Lead = units.Duration(c.Group-1) * c.Link.Effective().TimeFor(c.Control.Replicast)
	}
	if c.BidWidth > 0 {
		r.WidthPercent, r.WiderPercent = int64(math.Round(float64(c.BidWidth)*100)), 0
	}
	if t.Reserves {
		// Processing time: the request is sent and handled, a bid is sent, all the bids of a group are handled, and the
		// acceptance is sent and handled.
		r.Lead += units.Duration(c.Group+5) * c.Processor.Message
	}
	r.Compat = reserve.Compat(c.Compat != CompatNone)
	if c.Compat == CompatSURGEHead || t.Build == CompatSURGEHead {
		r.Rules = reserve.RulesHead
	}
	r.LinkRate, r.OverheadPercent = c.Link.Rate, int64(math.Round(float64(c.Link.Overhead)*100))
	r.FrameSize, r.ChunkSize, r.Trip, r.Replicas = c.Link.Frame, c.piece(), c.Link.Trip, c.copies()
	r.DiskRate, r.DiskQueue = c.Disk.Rate*units.ByteRate(c.Disk.Count), c.Disk.Queue*units.Bytes(c.Disk.Count)
	if r.Group < r.Replicas {
		r.Group = r.Replicas // unicast has no groups
	}
	return r
}

// surgeBidWait is SURGE's initial patience of a choosy gateway: how far away the best bid may be. SURGE computes it
// before it knows how long a control message takes.
const surgeBidWait = 6 * units.Microsecond

// plan returns the protocols' plan.
func (c *Config) plan(seed uint64) (put.Plan, error) {
	d, err := reserve.New(c.durations())
	if err != nil {
		return put.Plan{}, err
	}
	if c.Compat != CompatNone {
		d.MaxBidWait = surgeBidWait
	}
	alone := d.DiskChunk
	if c.Disk.Count > 1 {
		alone = c.Disk.Rate.TimeFor(c.piece())
	}
	return put.Plan{
		Alone:  alone,
		Traits: c.Protocol.traits(), Times: d, Seed: seed,
		Gateways: c.Gateways, Targets: c.Targets, Copies: c.copies(), Piece: c.piece(), Coded: c.Code.Data > 0,
		Frame: c.Link.Frame, Trip: c.Link.Trip,
		GroupSize: c.Group, Racks: c.Racks, Candidates: c.candidates(), Spread: c.Placement == PlaceRandom,
		Choices: c.Choices, Overcommit: c.Overcommit, Choosy: c.Choosy, Ahead: c.ahead(d), Room: c.Memory,
		Queued: c.Control.Queued, Lossy: c.lossy(), WriteBack: c.Acknowledge == WriteBack,
		Grows: c.Disk.Latency == LatencyGrows, Compat: c.Compat,
	}, nil
}

// ahead returns how much work a target still has when it sends an offer.
func (c *Config) ahead(d *reserve.Durations) units.Duration {
	if c.Ahead > 0 {
		return c.Ahead
	}
	once := d.Send(c.piece(), d.Effective)
	hop := d.Send(min(c.Link.Frame, c.piece()), d.Effective) + d.Trip
	// Until the first piece arrives: an offer is sent and handled, others are collected, the acceptance is sent, and a
	// frame is sent and handled.
	first := sim.Time(2+c.candidates()*c.Group)*d.Control + 2*d.Trip + once + d.Trip + 3*c.Processor.Message +
		2*c.Processor.Frame
	if c.Code.Data > 0 {
		return first + sim.Time(c.copies()-1)*once // the remaining offers arrive while the first pieces are being sent
	}
	return first + sim.Time(c.copies()-1)*hop + d.DiskChunk/2
}

// UsualAhead returns the value that an Ahead of 0 stands for.
func (c *Config) UsualAhead() (units.Duration, error) {
	usual := *c
	usual.Ahead = 0
	d, err := reserve.New(usual.durations())
	if err != nil {
		return 0, err
	}
	return usual.ahead(d), nil
}

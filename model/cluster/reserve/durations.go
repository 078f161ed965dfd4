package reserve

import (
	"fmt"
	"math/bits"

	"farflash/numeric/units"
	"farflash/sim"
)

// Durations has the values derived from a Config. They are immutable; queues and choosers share one by pointer.
type Durations struct {
	Config

	Effective   units.BitRate // the link's rate without overhead
	DataRate    units.BitRate
	ControlRate units.BitRate

	Control sim.Time // transmission time of a control message
	Chunk   sim.Time // transmission time of a chunk, as one piece
	Frame   sim.Time // transmission time of a full frame

	Window   sim.Time // width of a bid
	Accepted sim.Time // most of a bid that a gateway takes
	Needed   sim.Time // least that a gateway takes: below it the chunk might not fit

	// MaxBidWait is the initial patience of a choosy gateway: how far away the best bid may be, three round trips of
	// control messages. (SURGE computes it before it knows a message's time, so its own value is 6 us; set it here to
	// reproduce that.)
	MaxBidWait sim.Time

	DiskChunk     sim.Time // write time of a chunk
	DiskFrame     sim.Time // write time of a frame's bytes
	MaxDiskChunks int      // limit of the chunks that wait for a disk
}

// New validates a Config and derives its durations.
func New(c Config) (*Durations, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	d := &Durations{Config: c}
	d.Effective = c.LinkRate - c.LinkRate*units.BitRate(c.OverheadPercent)/100
	d.DataRate, d.ControlRate = d.Effective, d.Effective
	if c.ReservedPercent < 100 {
		d.DataRate = d.Effective * units.BitRate(c.ReservedPercent) / 100
		d.ControlRate = d.Effective - d.DataRate
	}
	if d.DataRate <= 0 || d.ControlRate <= 0 {
		return nil, fmt.Errorf("a link of %v leaves %v for data and %v for control messages", c.LinkRate, d.DataRate,
			d.ControlRate)
	}
	d.Trip, d.Lead, d.Gap = c.Compat.cut(c.Trip), c.Compat.cut(c.Lead), c.Compat.cut(c.Gap)
	d.Control = d.Send(c.ControlSize, d.ControlRate)
	d.Chunk = d.Send(c.ChunkSize, d.DataRate)
	d.Frame = d.Send(c.FrameSize, d.DataRate)
	d.MaxBidWait = 6 * (d.Control + d.Trip)

	d.DiskChunk = d.Write(c.ChunkSize)
	d.DiskFrame = d.Write(c.FrameSize)
	d.MaxDiskChunks = max(2, int(c.DiskQueue/c.ChunkSize))

	d.widths(c.WidthPercent)
	if c.WiderPercent > c.WidthPercent && d.Window < 3*d.Frame {
		d.widths(c.WiderPercent)
	}
	switch c.Accept {
	case AcceptSlack:
		d.takeOfSlack()
	case AcceptWindow:
		d.Accepted = d.Window - d.Trip
	case AcceptAll:
		d.Accepted = d.Window
	}
	d.Needed = min(d.Accepted, d.least())
	if c.Compat.wholeOnly() {
		d.Needed = d.Accepted
	}
	return d, nil
}

// least returns the time that a transfer needs in a window: its chunk and a frame for its end, times the number of
// replicas that are sent in the window.
func (d *Durations) least() sim.Time {
	t := d.Chunk + d.Frame
	if d.ReplicasInWindow {
		t *= sim.Time(d.Replicas)
	}
	return t
}

// widths sets the widths of bids and of accepted windows.
func (d *Durations) widths(percent int64) {
	if d.ReplicasInWindow {
		percent = 110 * int64(d.Replicas)
	}
	d.Window = d.Compat.cut(muldiv(d.Chunk+d.Trip, percent, 100))
	d.Accepted = d.least()
	if d.Window < d.Accepted {
		// The paper's build leaves slack for finding a common window; the last build does not.
		d.Window = d.Accepted
		if d.Rules == RulesPaper {
			d.Window += d.Frame
		}
	}
}

// takeOfSlack widens the accepted window when bids are much wider than a chunk, so that late frames still fit.
func (d *Durations) takeOfSlack() {
	frames := (d.Window - d.Accepted) / d.Frame
	if frames <= 4 {
		return
	}
	chunks, least := d.Chunk, d.least()
	if d.ReplicasInWindow {
		chunks *= sim.Time(d.Replicas)
		if d.Compat.forgetsReplicas() {
			chunks, least = d.Chunk, 0
		}
	}
	d.Accepted = max(least, chunks+d.Frame*(frames/3))
}

// Send returns the transmission time of a size at a rate.
func (d *Durations) Send(size units.Bytes, rate units.BitRate) sim.Time {
	return d.Compat.cut(muldiv(units.Second, int64(size)*8, int64(rate)))
}

// Write returns the time in which a disk writes a size.
func (d *Durations) Write(size units.Bytes) sim.Time {
	return d.Compat.cut(muldiv(units.Second, int64(size), int64(d.DiskRate)))
}

// earliest returns when a gateway that asks for a window not before notBefore can use it: the bid must have reached it,
// and its acceptance must have been sent.
func (d *Durations) earliest(now, notBefore sim.Time) sim.Time {
	return max(now+2*d.Control+d.Trip+d.Lead, notBefore)
}

// muldiv returns t*a/b, rounded down, for non-negative arguments. The product may have 128 bits.
func muldiv(t sim.Time, a, b int64) sim.Time {
	q, _ := muldivrem(int64(t), a, 0, b)
	return sim.Time(q)
}

// muldivrem returns (x*a+more)/b and the remainder. A quotient that does not fit into 63 bits saturates at sim.Forever.
func muldivrem(x, a, more, b int64) (quotient, remainder int64) {
	hi, lo := bits.Mul64(uint64(x), uint64(a))
	lo, carry := bits.Add64(lo, uint64(more), 0)
	hi += carry
	if hi >= uint64(b) {
		return int64(sim.Forever), 0
	}
	q, r := bits.Div64(hi, lo, uint64(b))
	if q > uint64(sim.Forever) {
		return int64(sim.Forever), 0
	}
	return int64(q), int64(r)
}

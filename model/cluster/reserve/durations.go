package reserve

import (
	"fmt"
	"math/bits"

	"farflash/numeric/units"
	"farflash/sim"
)

// Durations are what follows from a Config. They do not change; queues and choosers share one by pointer.
type Durations struct {
	Config

	Effective   units.BitRate // the link without overhead
	DataRate    units.BitRate
	ControlRate units.BitRate

	Control sim.Time // to send one control message
	Chunk   sim.Time // to send one chunk, in one piece
	Frame   sim.Time // to send one full frame

	Window   sim.Time // a bid's width
	Accepted sim.Time // what a gateway takes of it at most
	Needed   sim.Time // what a gateway takes at least: below it the chunk might not fit

	// MaxBidWait is how far away a choosy gateway at first lets the best bid be: three round trips of control
	// messages. (SURGE computes it before it knows a message's time, so its own value is 6 us; set that here to have
	// it.)
	MaxBidWait sim.Time

	DiskChunk     sim.Time // to write a chunk
	DiskFrame     sim.Time // to write a frame's bytes
	MaxDiskChunks int      // that may wait for a disk
}

// New derives all durations.
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

// least is what a transfer needs in a window: its chunk, a frame for its end, and all that as often as it is sent.
func (d *Durations) least() sim.Time {
	t := d.Chunk + d.Frame
	if d.ReplicasInWindow {
		t *= sim.Time(d.Replicas)
	}
	return t
}

// widths sets the bids' and the accepted widths.
func (d *Durations) widths(percent int64) {
	if d.ReplicasInWindow {
		percent = 110 * int64(d.Replicas)
	}
	d.Window = d.Compat.cut(muldiv(d.Chunk+d.Trip, percent, 100))
	d.Accepted = d.least()
	if d.Window < d.Accepted {
		// The paper's build leaves room to find a common window; the last one has none.
		d.Window = d.Accepted
		if d.Rules == RulesPaper {
			d.Window += d.Frame
		}
	}
}

// takeOfSlack widens what is accepted when bids are much wider than a chunk, so that frames that come late do no
// harm.
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

// Send is how long so many bytes take at a rate.
func (d *Durations) Send(size units.Bytes, rate units.BitRate) sim.Time {
	return d.Compat.cut(muldiv(units.Second, int64(size)*8, int64(rate)))
}

// Write is how long a disk takes to write so many bytes.
func (d *Durations) Write(size units.Bytes) sim.Time {
	return d.Compat.cut(muldiv(units.Second, int64(size), int64(d.DiskRate)))
}

// earliest is when a gateway that asks for a window not before notBefore can use it: the bid must reach it and its
// acceptance be on the way.
func (d *Durations) earliest(now, notBefore sim.Time) sim.Time {
	return max(now+2*d.Control+d.Trip+d.Lead, notBefore)
}

// muldiv is t times a over b, rounded down, for numbers that are not negative; the product may have 128 bits.
func muldiv(t sim.Time, a, b int64) sim.Time {
	q, _ := muldivrem(int64(t), a, 0, b)
	return sim.Time(q)
}

// muldivrem is (x times a plus more) over b and its remainder. A quotient above 63 bits is held there: nothing lasts
// longer.
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

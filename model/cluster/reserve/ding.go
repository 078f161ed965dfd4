package reserve

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Dinger is a receiver of UCH-AIMD. It periodically inspects the frames in flight to it, and dings senders that are too
// closely spaced, or all of them when its disk's queue is full.
type Dinger struct {
	d        *Durations
	interval sim.Time
	frame    sim.Time // transmission time of a full frame on the whole link
	last     sim.Time
	flows    []flow
}

// Arrival is a frame in flight to a receiver, with its time of arrival.
type Arrival struct {
	Flow uint64
	At   sim.Time
}

// overlaps is the number of frames within a frame's time of the previous one from which the receiver dings.
const overlaps = 2

// NewDinger returns a receiver without flows whose first inspection is due one interval after time 0.
func NewDinger(d *Durations) *Dinger {
	size, rate := d.FrameSize, d.Effective
	if d.Compat.ignoresOptions() && d.Rules == RulesHead {
		size, rate = surgeFrame, surgeLink
	}
	g := &Dinger{d: d, frame: d.Send(size, rate), flows: make([]flow, 0, firstBids)}
	g.interval = g.frame + 3*d.Trip
	return g
}

// Len returns the number of flows.
func (g *Dinger) Len() int { return len(g.flows) }

// Admit adds a flow of the given size.
func (g *Dinger) Admit(id uint64, total units.Bytes) {
	g.flows = append(g.flows, flow{id: id, total: total})
}

// Received records that a flow's bytes below offset have arrived.
func (g *Dinger) Received(id uint64, offset units.Bytes) { received(g.flows, id, offset) }

// Remove removes a flow that has ended. It reports whether there was one.
func (g *Dinger) Remove(id uint64) bool { return remove(&g.flows, id) }

// Due returns the time after which the next inspection is due.
func (g *Dinger) Due() sim.Time { return g.last + g.interval }

// Look appends to dst the flows to be dinged, once per ding, if an inspection is due. arrivals are the data frames in
// flight or not yet received, in order of time; busy is how long the disk will be busy.
//
// A full disk dings once for each frame. Otherwise only the flow of the first frame is dinged, unless it is near its
// end or was dinged less than a frame ago.
func (g *Dinger) Look(now sim.Time, arrivals []Arrival, busy sim.Time, dst []uint64) []uint64 {
	if now-g.last <= g.interval {
		return dst
	}
	g.last = now
	if g.d.queuedChunks(busy) >= g.d.MaxDiskChunks {
		for _, a := range arrivals {
			if k := indexOf(g.flows, a.Flow); k >= 0 {
				dst = g.ding(k, dst)
			}
		}
		return dst
	}
	near := 0
	for i := 1; i < len(arrivals); i++ {
		if arrivals[i].At-arrivals[i-1].At <= g.frame {
			near++
		}
	}
	if near < overlaps {
		return dst
	}
	k := indexOf(g.flows, arrivals[0].Flow)
	if k < 0 {
		return dst
	}
	f := &g.flows[k]
	if f.offset+3*g.d.FrameSize < f.total && f.mark+g.d.FrameSize < f.offset {
		dst = g.ding(k, dst)
	}
	return dst
}

func (g *Dinger) ding(k int, dst []uint64) []uint64 {
	f := &g.flows[k]
	f.mark = f.offset + g.d.FrameSize
	return append(dst, f.id)
}

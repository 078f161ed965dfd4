package put

import (
	"slices"

	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// Plan has the constant parameters of a protocol.
type Plan struct {
	Traits *Traits
	Times  *reserve.Durations
	Seed   uint64

	Gateways, Targets int
	Copies            int         // targets of a chunk
	Piece             units.Bytes // size that each of them stores
	Coded             bool        // the pieces of a chunk differ
	Frame             units.Bytes // the largest
	// time in which one disk writes a piece; Times treats the disks of a target as a single one with their combined
	// rate
	Alone sim.Time
	Trip  sim.Time // one-way delay between nodes

	GroupSize  int  // targets of a negotiating group
	Racks      int  // number of racks: target t is in rack t modulo Racks; 0: none
	Candidates int  // groups that a chunk asks
	Spread     bool // targets are drawn at random, excluding those of the gateway's last chunk, instead of placed
	Choices    int  // candidates for each replica, of which the least loaded one is chosen
	Overcommit int  // replicas that a target grants to concurrently
	Choosy     bool
	Room       units.Bytes // memory of a target for pieces until they are written; 0: unlimited
	Ahead      sim.Time    // how much work a target still has when it sends an offer

	Queued bool // each end of a link carries one frame at a time
	// for forecasts only: messages and windows can overtake each other, as in a network with separate classes for
	// control and data and with several paths
	Pass      bool
	Lossy     bool // messages may be lost and targets may fail
	WriteBack bool // replicas are acknowledged when they have arrived
	Grows     bool // a disk's acknowledgements are delayed by its backlog
	Compat    Compat

	onLink    sim.Time // transmission time of a control message
	fullFrame sim.Time // transmission time of a full frame
}

// Settle derives the plan's unexported fields from the others. A bus's plan is settled.
func (p *Plan) Settle() {
	p.onLink, p.fullFrame = p.Times.Control, p.Times.Send(p.Frame, p.Times.Effective)
	if p.Queued {
		p.onLink = p.Times.Send(p.Times.ControlSize, p.Times.Effective)
	}
}

// Node returns the node of a target.
func (p *Plan) Node(target int32) int32 { return int32(p.Gateways) + target }

// SameRack reports whether two targets are in the same rack.
func (p *Plan) SameRack(a, b int32) bool { return p.Racks > 0 && a%int32(p.Racks) == b%int32(p.Racks) }

// shares reports whether a target is in the rack of any of the others.
func (p *Plan) shares(others []int32, target int32) bool {
	return p.Racks > 0 && slices.ContainsFunc(others, func(t int32) bool { return p.SameRack(t, target) })
}

// OnLink returns the transmission time of a control message. Without queues, control messages have their reserved share
// of the link; with queues they have the whole link.
func (p *Plan) OnLink() sim.Time { return p.onLink }

// listens returns how long a gateway collects offers after the first one, until it has received all that were made
// simultaneously.
func (p *Plan) listens() sim.Time { return sim.Time(p.Candidates*p.GroupSize) * p.onLink }

// FrameTime returns the transmission time of a frame at the link's rate.
func (p *Plan) FrameTime(size units.Bytes) sim.Time {
	if size == p.Frame {
		return p.fullFrame
	}
	return p.Times.Send(size, p.Times.Effective)
}

// dataTime returns the time to send a chunk's frames at the rate for data, and the last one at the rate of its link.
func (p *Plan) dataTime() sim.Time { return p.dataTimeOf(p.Piece) }

// dataTimeOf is dataTime of a piece of the given size.
func (p *Plan) dataTimeOf(piece units.Bytes) sim.Time {
	full := (piece - 1) / p.Frame
	rate := p.Times.DataRate
	if p.Queued {
		rate = p.Times.Effective
	}
	return sim.Time(full)*p.Times.Frame + p.Times.Send(piece-full*p.Frame, rate)
}

// Acknowledges reports whether a target acknowledges a piece at once, given how long its disk will be busy with it, and
// if not, how much later than its completion on the disk.
func (p *Plan) Acknowledges(busy sim.Time) (now bool, late sim.Time) {
	if p.Times.AckDelay(busy, p.WriteBack) == 0 {
		return true, 0
	}
	if p.Grows {
		late = p.Times.VariableLatency(busy)
	}
	return false, late
}

// keepTime returns the time from the arrival of a piece to its acknowledgement, for an idle disk that writes it in the
// given time.
func (p *Plan) keepTime(takes sim.Time) sim.Time {
	now, late := p.Acknowledges(takes)
	if now {
		return 0
	}
	return takes + late
}

// kept is keepTime of the configured disk.
func (p *Plan) kept() sim.Time { return p.keepTime(p.Alone) }

// Chained reports whether data is forwarded from target to target.
func (p *Plan) Chained() bool { return p.Traits.Chained && !p.Coded }

// probing returns the time to ask candidates for their load.
func (p *Plan) probing() sim.Time {
	if p.Choices == 1 {
		return 0
	}
	n := sim.Time(p.Choices * p.Copies)
	// The requests leave one after the other, and the answers arrive one after the other.
	return n*p.OnLink() + 2*p.Times.Trip + p.OnLink()
}

// fromGateway returns how long pieces of a size occupy their gateway's link. A chain needs only one of them.
func (p *Plan) fromGateway(pieces int, size units.Bytes) sim.Time {
	if p.Chained() {
		pieces = min(pieces, 1)
	}
	return sim.Time(pieces) * p.dataTimeOf(size)
}

// alongChain returns the time until a lone chunk's data is at all its targets: through the chain, or sent to one after
// the other.
func (p *Plan) alongChain() sim.Time {
	frame := min(p.Frame, p.Piece)
	if p.Pass {
		frame = (p.Piece-1)%frame + 1 // the last frame may overtake others
	}
	each := p.Times.Send(frame, p.Times.Effective) + p.Times.Trip
	if !p.Chained() {
		each = p.dataTime()
	}
	return p.dataTime() + p.Times.Trip + sim.Time(p.Copies-1)*each
}

// oneByOne returns the time of a lone chunk whose replicas are requested and sent one after the other, where all frames
// of a replica but the last take frames, and the last takes last. Each replica needs a request, an answer and its
// frames. The next one is requested when the last frame begins, or, if messages queue on the link, when it has left.
// The last frame's trip, the disk and the acknowledgement complete the chunk.
func (p *Plan) oneByOne(frames, last sim.Time) sim.Time {
	d := p.Times
	k := sim.Time(p.Copies)
	t := k*(2*(d.Control+d.Trip)+frames) + last + d.Trip + p.kept() + d.Control + d.Trip
	if p.Queued {
		t += p.ahead((k - 1) * last)
	}
	return t + p.probing()
}

// ahead returns how long a transmission delays the traffic behind it on a node's link, for messages of both kinds; zero
// where they pass each other.
func (p *Plan) ahead(takes sim.Time) sim.Time {
	if p.Pass {
		return 0
	}
	return takes
}

// sideBySide returns the time of a lone chunk whose gateway sends all replicas without a request: one after the other
// on its link, the disk and the acknowledgement.
func (p *Plan) sideBySide() sim.Time {
	d := p.Times
	return p.probing() + sim.Time(p.Copies)*p.dataTime() + d.Trip + p.kept() + p.OnLink() + d.Trip
}

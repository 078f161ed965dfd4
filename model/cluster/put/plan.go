package put

import (
	"slices"

	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// Plan is what protocols go by and what does not change.
type Plan struct {
	Traits *Traits
	Times  *reserve.Durations
	Seed   uint64

	Gateways, Targets int
	Copies            int         // targets of a chunk
	Piece             units.Bytes // what each of them keeps
	Coded             bool        // the pieces differ
	Frame             units.Bytes // the largest
	// that a disk takes for a piece; a target of several disks is as fast as all, by Times
	Alone sim.Time
	Trip  sim.Time // from node to node

	GroupSize  int  // targets of a negotiating group
	Racks      int  // of targets, target t in rack t modulo Racks; 0: none
	Candidates int  // groups that a chunk asks
	Spread     bool // targets are drawn, but for those of the gateway's last chunk: no placement says which
	Choices    int  // candidates for each replica, of which the least loaded is taken
	Overcommit int  // replicas that a target grants at a time
	Choosy     bool
	Room       units.Bytes // of a target's memory for pieces until they are written; 0: no limit
	Ahead      sim.Time    // for how long a target still has work when it offers itself

	Queued bool // each end of a link carries one frame at a time
	// of a plan to forecast by: messages pass each other, as in a network with classes for control and data and
	// several ways, and so do windows
	Pass      bool
	Lossy     bool // messages may be lost and targets may fail
	WriteBack bool // replicas are acknowledged when they have arrived
	Grows     bool // a disk's acknowledgements come later the more waits
	Compat    Compat

	onLink    sim.Time // of a control message
	fullFrame sim.Time // on a link
}

// Settle derives what follows from the plan's other fields; a bus has a plan that is settled.
func (p *Plan) Settle() {
	p.onLink, p.fullFrame = p.Times.Control, p.Times.Send(p.Frame, p.Times.Effective)
	if p.Queued {
		p.onLink = p.Times.Send(p.Times.ControlSize, p.Times.Effective)
	}
}

// Node is the number of a target among all nodes.
func (p *Plan) Node(target int32) int32 { return int32(p.Gateways) + target }

// SameRack reports whether two targets stand in one rack.
func (p *Plan) SameRack(a, b int32) bool { return p.Racks > 0 && a%int32(p.Racks) == b%int32(p.Racks) }

// Shares reports whether a target stands in the rack of one of others.
func (p *Plan) Shares(others []int32, target int32) bool {
	return p.Racks > 0 && slices.ContainsFunc(others, func(t int32) bool { return p.SameRack(t, target) })
}

// OnLink is how long a control message is on a link. By itself it has the share of the link that is kept for such;
// where messages take turns it has the whole link.
func (p *Plan) OnLink() sim.Time { return p.onLink }

// Listens is for how long a gateway listens after an offer before it has heard all that were made at the same time.
func (p *Plan) Listens() sim.Time { return sim.Time(p.Candidates*p.GroupSize) * p.onLink }

// FrameTime is how long a frame is on a link, at the link's rate.
func (p *Plan) FrameTime(size units.Bytes) sim.Time {
	if size == p.Frame {
		return p.fullFrame
	}
	return p.Times.Send(size, p.Times.Effective)
}

// dataTime is how long it takes to send a chunk's frames at the rate for data, and the last one at the rate of its
// link.
func (p *Plan) dataTime() sim.Time { return p.dataTimeOf(p.Piece) }

// dataTimeOf is dataTime of a piece.
func (p *Plan) dataTimeOf(piece units.Bytes) sim.Time {
	full := (piece - 1) / p.Frame
	rate := p.Times.DataRate
	if p.Queued {
		rate = p.Times.Effective
	}
	return sim.Time(full)*p.Times.Frame + p.Times.Send(piece-full*p.Frame, rate)
}

// Acknowledges says whether a target acknowledges a piece at once that keeps its disk busy for so long, and if not,
// how much later than when it is on the disk.
func (p *Plan) Acknowledges(busy sim.Time) (now bool, late sim.Time) {
	if p.Times.AckDelay(busy, p.WriteBack) == 0 {
		return true, 0
	}
	if p.Grows {
		late = p.Times.VariableLatency(busy)
	}
	return false, late
}

// KeepTime is how long a target holds back the acknowledgement of a piece for which its disk, which is idle, takes a
// time.
func (p *Plan) KeepTime(takes sim.Time) sim.Time {
	now, late := p.Acknowledges(takes)
	if now {
		return 0
	}
	return takes + late
}

// kept is KeepTime of a usual disk.
func (p *Plan) kept() sim.Time { return p.KeepTime(p.Alone) }

// Chained reports whether data goes from target to target.
func (p *Plan) Chained() bool { return p.Traits.Chained && !p.Coded }

// probing is how long it takes to ask candidates how busy they are.
func (p *Plan) probing() sim.Time {
	if p.Choices == 1 {
		return 0
	}
	n := sim.Time(p.Choices * p.Copies)
	return n*p.OnLink() + 2*p.Times.Trip + p.OnLink() // the requests leave and the answers come one after the other
}

// fromGateway is how long so many pieces of a size are on their gateway's link; those of a chain are one.
func (p *Plan) fromGateway(pieces int, size units.Bytes) sim.Time {
	if p.Chained() {
		pieces = min(pieces, 1)
	}
	return sim.Time(pieces) * p.dataTimeOf(size)
}

// alongChain is how long data takes to all targets of a chunk that is alone: through the chain, or to one after the
// other.
func (p *Plan) alongChain() sim.Time {
	frame := min(p.Frame, p.Piece)
	if p.Pass {
		frame = (p.Piece-1)%frame + 1 // the last one may overtake others
	}
	each := p.Times.Send(frame, p.Times.Effective) + p.Times.Trip
	if !p.Chained() {
		each = p.dataTime()
	}
	return p.dataTime() + p.Times.Trip + sim.Time(p.Copies-1)*each
}

// oneByOne is how long a chunk takes that is alone and whose replicas are asked for and sent one after the other,
// where the frames of each but the last take a time, and the last one another: for each replica a request, an answer
// and its frames; the next is asked when the last frame is begun, or, if messages take turns on the link, when it is
// sent; then the last frame's path, the disk and the acknowledgement.
func (p *Plan) oneByOne(frames, last sim.Time) sim.Time {
	d := p.Times
	k := sim.Time(p.Copies)
	t := k*(2*(d.Control+d.Trip)+frames) + last + d.Trip + p.kept() + d.Control + d.Trip
	if p.Queued {
		t += p.ahead((k - 1) * last)
	}
	return t + p.probing()
}

// ahead is how long something on a node's link holds up what is sent behind it, by messages of both kinds: where they
// pass each other, not at all.
func (p *Plan) ahead(takes sim.Time) sim.Time {
	if p.Pass {
		return 0
	}
	return takes
}

// sideBySide is how long a chunk takes that is alone and whose replicas are all sent by its gateway, which need not
// ask: all on its link one after the other, the disk and the acknowledgement.
func (p *Plan) sideBySide() sim.Time {
	d := p.Times
	return p.probing() + sim.Time(p.Copies)*p.dataTime() + d.Trip + p.kept() + p.OnLink() + d.Trip
}

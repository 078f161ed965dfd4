package put

import (
	"farflash/model/cluster/placement"
	"farflash/model/cluster/reserve"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Nodes are numbered with gateways first, from 0, then targets (Plan.Node). Gateways and targets are also numbered
// separately, each from 0.

// Messages carries control messages, which all have the same size under a plan. Each message arrives at each of its
// receivers at most once, not before its trip, and may be lost. Arguments may be reused when a call returns.
type Messages interface {
	// Send sends a message from a node to others as one multicast. to may be empty, for a group that is down; the
	// message occupies its sender's link all the same.
	Send(from int32, m Message, to []int32)
	// Hold sends a message from target m.From to gateway m.To after a delay. It is lost if the target fails before.
	Hold(m Message, after sim.Time)
	// Cancel is like Send, but the message is not lost on its path: a real sender repeats the revocation of a promise
	// until it is acknowledged, and this is not simulated. The message is lost at a target that is down.
	Cancel(from int32, m Message, to []int32)
	// Accept sends a message from gateway m.From to targets. A target with a pick receives its own number as N and the
	// pick's window as A and B.
	Accept(m Message, targets []int32, picks []reserve.Pick)
}

// Frames carries data. The frames of a node arrive in the order in which they are sent. Where links queue, frames leave
// one after the other, behind waiting control messages.
type Frames interface {
	// Send sends a frame of a chunk from a node to others as one multicast; Frame.Target is ignored. takes is its
	// transmission time on a link without queues; a queued link uses the link's rate.
	Send(from, chunk int32, f Frame, takes sim.Time, to []int32)
	// Waiting appends the frames of puts that wait at a target's port, in order, with the time that each one takes.
	Waiting(target int32, seen []WaitingFrame) []WaitingFrame
}

// WaitingFrame is a frame at a port. Takes includes the time of preceding traffic there that has no WaitingFrame of its
// own.
type WaitingFrame struct {
	Arg   uint32
	Takes sim.Time
}

// Disks are the disks of the targets.
type Disks interface {
	// Backlog returns how long a target's disk will be busy with the work it has.
	Backlog(target int32) sim.Time
	// WriteTime returns how long the disk takes to write a piece of a chunk.
	WriteTime(target int32) sim.Time
	// Write has a target write a piece that has arrived in full. The message is sent to gateway m.To when the piece is
	// on the disk, or when the target acknowledges otherwise.
	Write(target int32, m Message)
}

// Outcomes receives the outcomes of chunks. When a chunk is over, its number may be reused before the call returns.
type Outcomes interface {
	// Acknowledged reports one more stored replica to the gateway. The last one ends the chunk.
	Acknowledged(chunk int32)
	// Abort ends the attempt because the targets have no capacity for the chunk. The next attempt begins after wait;
	// under SURGE's rules the chunk is over.
	Abort(chunk int32, wait sim.Time)
	// Bound reports that the gateway's wait for capacity is over and that it sends; the targets predict that the chunk
	// is stored after takes. The cluster times the two phases separately, because their durations and their errors
	// differ.
	Bound(chunk int32, takes sim.Time)
}

// Bus is a protocol's view of a cluster.
type Bus struct {
	Plan
	Clock
	Groups
	Messages Messages
	Frames   Frames
	Disks    Disks
	Outcomes Outcomes
	// Chunks are the chunks in flight, by number.
	Chunks []Chunk
	// Places finds targets where no group bids.
	Places placement.Placer
	// Rand is the random stream of protocols.
	Rand rng.Stream
	// Tally has the counters of protocols.
	Tally *Tally
	// OnBid is called when a target makes a bid, and when the target learns its outcome. It may be nil, or point to
	// nil.
	OnBid *sim.Probe[*BidChange]
	// Unpaced is set if a network paces all data itself.
	Unpaced bool

	one  [1]int32
	some [MaxHeard]int32
}

// NewBus returns a bus with a plan and its groups; all other fields are zero.
func NewBus(p Plan) (*Bus, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	p.Settle()
	return &Bus{Plan: p, Groups: newGroups(p.Gateways, p.Targets)}, nil
}

// Clock is the simulation's clock.
type Clock struct {
	Engine *sim.Engine
	Self   sim.Component
	// Events of Kind go to Handler, which calls Protocol.Timer with their argument.
	Handler sim.Target
	Kind    uint16
}

// Now returns the simulated time.
func (c *Clock) Now() sim.Time { return c.Engine.Now() }

// After schedules a call of Protocol.Timer.
func (c *Clock) After(at sim.Time, arg uint32) {
	c.Engine.Schedule(c.Self, c.Handler, max(at, c.Engine.Now()), c.Kind, arg)
}

// NewTimer returns a timer that calls Protocol.Timer.
func (c *Clock) NewTimer(arg uint32) sim.Timer {
	return c.Engine.NewTimer(c.Self, c.Handler, c.Kind, arg)
}

// Arm sets a timer.
func (c *Clock) Arm(t sim.Timer, at sim.Time) { c.Engine.Arm(t, at) }

// Disarm stops a timer.
func (c *Clock) Disarm(t sim.Timer) { c.Engine.Disarm(t) }

// Tally has the counters of protocols.
type Tally struct {
	Bids         Overlap // Replicast's
	Dings        uint64  // dings that made a sender slow down
	Impatient    uint64  // renewed requests of choosy gateways
	LateRejected uint64  // windows revoked after double booking
}

// BidChange is a bid when it is made, and when its gateway or the last byte of the data ends it.
type BidChange struct {
	At      sim.Time
	Target  int32
	Gateway int32
	Chunk   uint64
	State   reserve.State
	Done    bool           // the data has arrived; State is Accepted
	Window  reserve.Window // the window offered or reserved; zero if canceled
}

// showBid calls OnBid for a bid that is made or ends.
func (b *Bus) showBid(target, gateway int32, chunk uint64, state reserve.State, w reserve.Window) {
	if b.OnBid != nil && *b.OnBid != nil {
		(*b.OnBid)(&BidChange{At: b.Now(), Target: target, Gateway: gateway, Chunk: chunk, State: state, Window: w})
	}
}

// showDone calls OnBid for a reservation that has been used.
func (b *Bus) showDone(target int32, x *Chunk) {
	if b.OnBid != nil && *b.OnBid != nil {
		(*b.OnBid)(&BidChange{At: b.Now(), Target: target, Gateway: x.Gateway, Chunk: x.ID, State: reserve.Accepted,
			Done: true})
	}
}

// pieceOf returns the size that each target stores of a chunk.
func (b *Bus) pieceOf(i int32) units.Bytes {
	if size := b.Chunks[i].Piece; size > 0 {
		return size
	}
	return b.Piece
}

// live reports whether a message belongs to the present attempt at its chunk.
func (b *Bus) live(m *Message) bool { return b.Chunks[m.Chunk].ID == m.ID }

// nodes returns the nodes of targets, valid until the next call.
func (b *Bus) nodes(targets []int32) []int32 {
	for k, t := range targets {
		b.some[k] = b.Node(t)
	}
	return b.some[:len(targets)]
}

// toTarget sends a message from gateway m.From to target m.To.
func (b *Bus) toTarget(m Message) {
	b.one[0] = b.Node(m.To)
	b.Messages.Send(m.From, m, b.one[:])
}

// toTargets sends a message from gateway m.From to several targets at once.
func (b *Bus) toTargets(m Message, targets []int32) { b.Messages.Send(m.From, m, b.nodes(targets)) }

// toGateway sends a message from target m.From to gateway m.To, after a delay at the target.
func (b *Bus) toGateway(m Message, after sim.Time) {
	if after > 0 {
		b.Messages.Hold(m, after)
		return
	}
	b.one[0] = m.To
	b.Messages.Send(b.Node(m.From), m, b.one[:])
}

// toNode sends a message from a node to another.
func (b *Bus) toNode(from int32, m Message, node int32) {
	b.one[0] = node
	b.Messages.Send(from, m, b.one[:])
}

// cancel revokes promises to targets, from gateway m.From.
func (b *Bus) cancel(m Message, targets []int32) {
	if len(targets) > 0 {
		b.Messages.Cancel(m.From, m, b.nodes(targets))
	}
}

// cancelEach notifies each of a chunk's targets that its gateway has abandoned this attempt.
func (b *Bus) cancelEach(i int32, kind uint8) {
	x := &b.Chunks[i]
	for _, t := range x.Targets[:x.N] {
		b.one[0] = b.Node(t)
		b.Messages.Cancel(x.Gateway, Message{Kind: kind, From: x.Gateway, Chunk: i, ID: x.ID}, b.one[:])
	}
}

// sendPaced sends a frame of a chunk from its gateway to targets at the protocol's own pace.
func (b *Bus) sendPaced(i int32, arg uint32, size units.Bytes, takes sim.Time, targets []int32) {
	b.Frames.Send(b.Chunks[i].Gateway, i, Frame{Arg: arg, Size: size}, takes, b.nodes(targets))
}

// send sends a frame of a chunk from a node to another at the rate of their links.
func (b *Bus) send(from, i int32, size units.Bytes, node int32) {
	b.one[0] = node
	b.Frames.Send(from, i, Frame{Arg: uint32(i), Size: size}, b.FrameTime(size), b.one[:])
}

// sendOut sends a chunk from its gateway at the rate of its link: to the first target of the chain, or else each piece
// to its target, one after the other.
func (b *Bus) sendOut(i int32) {
	x, piece := &b.Chunks[i], b.pieceOf(i)
	for k, t := range x.Targets[:x.N] {
		if k > 0 && b.Chained() {
			break
		}
		for sent := units.Bytes(0); sent < piece; {
			size := min(b.Frame, piece-sent)
			sent += size
			b.send(x.Gateway, i, size, b.Node(t))
		}
	}
}

// passOn has a target forward a frame to the next one of the chain.
func (b *Bus) passOn(i int32, f Frame) {
	x := &b.Chunks[i]
	if k := x.Place(f.Target); k+1 < int(x.N) && b.Chained() {
		b.send(b.Node(f.Target), i, f.Size, b.Node(x.Targets[k+1]))
	}
}

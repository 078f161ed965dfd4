package put

import (
	"farflash/model/cluster/placement"
	"farflash/model/cluster/reserve"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Nodes are numbered: gateways from 0, and behind them targets (Plan.Node). Gateways and targets are also numbered by
// themselves, from 0.

// Messages carries control messages. All of a plan have one size. Each arrives at each of its receivers at most once
// and not before its trip, and may be lost; what it is given may be used again when a call returns.
type Messages interface {
	// Send sends a message from a node to others at the same time. There may be none, of a group that is down: the
	// message takes its sender's link all the same.
	Send(from int32, m Message, to []int32)
	// Hold sends a message from target m.From to gateway m.To after a time. It is gone if the target fails meanwhile.
	Hold(m Message, after sim.Time)
	// Cancel is as Send, but the message is not lost on its path: who sends one that takes back a promise repeats it
	// until it is acknowledged, which is not simulated. It is lost at a target that is down.
	Cancel(from int32, m Message, to []int32)
	// Accept sends a message from gateway m.From to targets. Where a target has a pick, the message that it gets has
	// its own number as N and the pick's window as A and B.
	Accept(m Message, targets []int32, picks []reserve.Pick)
}

// Frames carries data. A node's frames arrive in the order in which they are sent. Where links queue they leave one
// after the other, behind control messages that wait.
type Frames interface {
	// Send sends a frame of a chunk from a node to others at the same time: Frame.Target is not read. Takes is how
	// long it is on a link that does not queue; one that does takes it at the link's rate.
	Send(from, chunk int32, f Frame, takes sim.Time, to []int32)
	// Waiting appends the frames that wait at a target's port, the next first: of chunks that are being put, with how
	// long each takes.
	Waiting(target int32, seen []WaitingFrame) []WaitingFrame
}

// WaitingFrame is a frame at a port. Takes counts what comes before it there but has no WaitingFrame of its own.
type WaitingFrame struct {
	Arg   uint32
	Takes sim.Time
}

// Disks are those of the targets.
type Disks interface {
	// Backlog is how long a target's disk will be busy with what it has.
	Backlog(target int32) sim.Time
	// WriteTime is how long it takes for a piece of a chunk.
	WriteTime(target int32) sim.Time
	// Write has a target write a piece that has arrived as a whole. The message goes from there to gateway m.To when
	// it is on the disk, or when the target acknowledges otherwise.
	Write(target int32, m Message)
}

// Outcomes takes note of what becomes of chunks. When a chunk is over its number may be another's before the call
// returns.
type Outcomes interface {
	// Acknowledged: the gateway knows that one more replica is kept. With the last one the chunk is over.
	Acknowledged(chunk int32)
	// Abort: there is no room for the chunk, and its gateway ends the attempt. The next one begins after a time; by
	// the rules of SURGE the chunk is over.
	Abort(chunk int32, wait sim.Time)
	// Bound: the gateway waits for nobody any more and sends, and by what targets have said the chunk is kept after a
	// time. What waited for room and what is on its way take different times, and what is late differs.
	Bound(chunk int32, takes sim.Time)
}

// Bus is what protocols see of a cluster.
type Bus struct {
	Plan
	Clock
	Groups
	Messages Messages
	Frames   Frames
	Disks    Disks
	Outcomes Outcomes
	// Chunks are those that are being put or got, by number.
	Chunks []Chunk
	// Places finds targets where no group bids.
	Places placement.Placer
	// Rand is what protocols draw from.
	Rand rng.Stream
	// Tally counts what they do.
	Tally *Tally
	// OnBid is called when a target gives a bid, and when it hears what becomes of it; it may be nil, or point to nil.
	OnBid *sim.Probe[*BidChange]
	// Unpaced is set where a network of its own paces what is sent.
	Unpaced bool

	one  [1]int32
	some [MaxHeard]int32
}

// NewBus returns the bus of a plan, with groups and without all else.
func NewBus(p Plan) *Bus {
	p.Settle()
	return &Bus{Plan: p, Groups: newGroups(p.Gateways, p.Targets)}
}

// Clock is the simulation's.
type Clock struct {
	Engine *sim.Engine
	Self   sim.Component
	// Events with Kind go to Handler, which calls Protocol.Timer with their argument.
	Handler sim.Target
	Kind    uint16
}

// Now is the time.
func (c *Clock) Now() sim.Time { return c.Engine.Now() }

// After asks for a call of Protocol.Timer at a time.
func (c *Clock) After(at sim.Time, arg uint32) {
	c.Engine.Schedule(c.Self, c.Handler, max(at, c.Engine.Now()), c.Kind, arg)
}

// NewTimer returns a timer that calls Protocol.Timer.
func (c *Clock) NewTimer(arg uint32) sim.Timer {
	return c.Engine.NewTimer(c.Self, c.Handler, c.Kind, arg)
}

// Arm sets a timer to a time.
func (c *Clock) Arm(t sim.Timer, at sim.Time) { c.Engine.Arm(t, at) }

// Disarm stops a timer.
func (c *Clock) Disarm(t sim.Timer) { c.Engine.Disarm(t) }

// Tally counts what protocols do.
type Tally struct {
	Bids         Overlap // of Replicast
	Dings        uint64  // that senders took to heart
	Impatient    uint64  // times that a choosy gateway asked again
	LateRejected uint64  // windows that were taken back
}

// BidChange is a bid when it is given, and when its gateway or the last byte of the data ends it.
type BidChange struct {
	At      sim.Time
	Target  int32
	Gateway int32
	Chunk   uint64
	State   reserve.State
	Done    bool           // the data have come; State is Accepted
	Window  reserve.Window // that is given, or that is taken; of a canceled one zero
}

// showBid tells of a bid that is given or ends.
func (b *Bus) showBid(target, gateway int32, chunk uint64, state reserve.State, w reserve.Window) {
	if b.OnBid != nil && *b.OnBid != nil {
		(*b.OnBid)(&BidChange{At: b.Now(), Target: target, Gateway: gateway, Chunk: chunk, State: state, Window: w})
	}
}

// showDone tells that a reservation has been used.
func (b *Bus) showDone(target int32, x *Chunk) {
	if b.OnBid != nil && *b.OnBid != nil {
		(*b.OnBid)(&BidChange{At: b.Now(), Target: target, Gateway: x.Gateway, Chunk: x.ID, State: reserve.Accepted,
			Done: true})
	}
}

// pieceOf is what each target of a chunk keeps.
func (b *Bus) pieceOf(i int32) units.Bytes {
	if size := b.Chunks[i].Piece; size > 0 {
		return size
	}
	return b.Piece
}

// live reports whether a message is about the present attempt at its chunk.
func (b *Bus) live(m *Message) bool { return b.Chunks[m.Chunk].ID == m.ID }

// nodes are the nodes of targets, until the next call.
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

// toGateway sends a message from target m.From to gateway m.To; after is how long the target holds it back.
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

// cancel takes back, from gateway m.From, what targets have been promised.
func (b *Bus) cancel(m Message, targets []int32) {
	if len(targets) > 0 {
		b.Messages.Cancel(m.From, m, b.nodes(targets))
	}
}

// cancelEach tells a chunk's targets, each with a message of its own, that its gateway has given up this attempt.
func (b *Bus) cancelEach(i int32, kind uint8) {
	x := &b.Chunks[i]
	for _, t := range x.Targets[:x.N] {
		b.one[0] = b.Node(t)
		b.Messages.Cancel(x.Gateway, Message{Kind: kind, From: x.Gateway, Chunk: i, ID: x.ID}, b.one[:])
	}
}

// sendPaced sends a frame of a chunk from its gateway to targets, at its protocol's own pace.
func (b *Bus) sendPaced(i int32, arg uint32, size units.Bytes, takes sim.Time, targets []int32) {
	b.Frames.Send(b.Chunks[i].Gateway, i, Frame{Arg: arg, Size: size}, takes, b.nodes(targets))
}

// send sends a frame of a chunk from a node to another at the rate of their links.
func (b *Bus) send(from, i int32, size units.Bytes, node int32) {
	b.one[0] = node
	b.Frames.Send(from, i, Frame{Arg: uint32(i), Size: size}, b.FrameTime(size), b.one[:])
}

// sendOut has a chunk's gateway send it at the rate of its link: to the first target of the chain, or each piece to
// its target, one after the other.
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

// passOn has a target send a frame on to the next one of the chain.
func (b *Bus) passOn(i int32, f Frame) {
	x := &b.Chunks[i]
	if k := x.Place(f.Target); k+1 < int(x.N) && b.Chained() {
		b.send(b.Node(f.Target), i, f.Size, b.Node(x.Targets[k+1]))
	}
}

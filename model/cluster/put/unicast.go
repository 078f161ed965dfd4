package put

import (
	"farflash/model/cluster/internal/slab"
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// unicast is the common part of uch and aimd: a gateway puts the replicas of a chunk one after the other. It asks a
// target, sends once the answer has arrived, and asks the next target when it has begun to send the last frame.
type unicast struct {
	b     *Bus
	link  []reserve.Leaky // by gateway: its transmit rate
	port  []reserve.Leaky // by target: its receive rate, which senders debit at the moment they send; SURGE's oracle
	flows slab.Slab[flow]
	last  [][MaxReplicas]int32 // by gateway: the targets of its last chunk
	clock []sim.Timer          // by flow
	of    [][MaxReplicas]int32 // by chunk: its flows, -1 for none
	pick  chooser
	to    [1]int32
}

// flow is a replica in flight.
type flow struct {
	chunk          int32
	epoch          uint32 // incremented when a flow number is reused
	gateway        int32
	target         int32
	id             uint64 // of the attempt at the chunk
	replica        int8
	started        bool // the target has answered
	piece          units.Bytes
	sent, received units.Bytes
	free           sim.Time // when its last frame, or its request, has left the link
	pace                    // of uch
}

// pace is the rate state of a flow whose target assigns the rate. It is embedded in the flow because each frame needs
// both.
type pace struct {
	waiting units.BitRate // a new rate that arrived before the answer
	rate    units.BitRate // 0: not assigned yet, or abandoned
	own     reserve.Leaky
}

// Kinds of control messages of unicast protocols.
const (
	putRequest uint8 = iota
	rateInit         // the answer to a request
	rateSet
	replicaAck
	putCancel
	dinged // the sender is too fast
)

var unicastMessages = []string{putRequest: "request", rateInit: "rate", rateSet: "new rate", replicaAck: "ack",
	putCancel: "cancel", dinged: "ding"}

func newUnicast(b *Bus) unicast {
	u := unicast{b: b, last: make([][MaxReplicas]int32, b.Gateways)}
	for range b.Gateways {
		u.link = append(u.link, reserve.NewLeaky(b.Times, b.Times.Effective))
	}
	for range b.Targets {
		u.port = append(u.port, reserve.NewLeaky(b.Times, b.Times.Effective))
	}
	for g := range u.last {
		for k := range u.last[g] {
			u.last[g][k] = -1
		}
	}
	return u
}

// Begin implements Protocol.
func (u *unicast) Begin(i int32) {
	b := u.b
	for int(i) >= len(u.of) {
		u.of = append(u.of, [MaxReplicas]int32{})
	}
	for k := range u.of[i] {
		u.of[i][k] = -1
	}
	if !b.Spread || b.Choices > 1 {
		u.pick.choose(i)
		return
	}
	u.draw(&b.Chunks[i])
	u.pick.chosen(i)
}

// draw draws the chunk's targets, excluding those of the gateway's last chunk.
func (u *unicast) draw(x *Chunk) {
	b := u.b
	last := &u.last[x.Gateway]
	for tries := 0; int(x.N) < b.Copies; tries++ {
		t := int32(b.Rand.IntN(int64(b.Targets)))
		// Bounded, because too few targets may be left.
		taken := b.Away[t] && tries < 64*b.Targets || b.shares(x.Targets[:x.N], t)
		for k := range b.Copies {
			taken = taken || last[k] == t || k < int(x.N) && x.Targets[k] == t
		}
		if !taken {
			x.Targets[x.N] = t
			x.N++
		}
	}
	*last = x.Targets
}

// ask starts a replica: it requests permission, and possibly a rate, from the target. It returns the flow's number.
func (u *unicast) ask(i int32, replica int8) int32 {
	b := u.b
	x := &b.Chunks[i]
	n := u.flows.Take()
	if int(n) == len(u.clock) {
		u.clock = append(u.clock, b.NewTimer(uint32(n)))
	}
	now := b.Now()
	u.of[i][replica] = n
	f := &u.flows.Items[n]
	*f = flow{chunk: i, epoch: f.epoch + 1, gateway: x.Gateway, target: x.Targets[replica], id: x.ID,
		replica: replica, piece: b.pieceOf(i), free: now + b.Times.Control}
	u.link[x.Gateway].Use(now, 8*int64(b.Times.ControlSize))
	b.toTarget(Message{Kind: putRequest, From: x.Gateway, To: x.Targets[replica], Chunk: i, ID: x.ID, N: n})
	return n
}

// next returns the size of a flow's next frame.
func (u *unicast) next(f *flow) units.Bytes { return min(u.b.Frame, f.piece-f.sent) }

// may reports whether a flow may send its next frame now; own is the earliest time that its own rate allows. If not,
// the flow's timer is armed for the time when it may.
func (u *unicast) may(n int32, own sim.Time) bool {
	b, f := u.b, &u.flows.Items[n]
	now, need := b.Now(), 8*int64(u.next(f))
	at := max(f.free, own, u.link[f.gateway].When(now, need))
	if oracle := b.Compat != CompatNone; oracle && at <= now {
		at = u.port[f.target].When(now, need)
	}
	if at > now {
		b.Arm(u.clock[n], at)
		return false
	}
	if b.Compat != CompatNone {
		u.port[f.target].Use(now, need)
	}
	return true
}

// send sends a flow's next frame at a rate, and reports whether there are more. If not, the next replica can start.
func (u *unicast) send(n int32, rate units.BitRate) (more bool) {
	b, f := u.b, &u.flows.Items[n]
	size := u.next(f)
	f.sent += size
	takes := b.Times.Send(size, rate)
	f.free = b.Now() + takes
	u.to[0] = f.target
	b.sendPaced(f.chunk, uint32(n), size, takes, u.to[:])
	if more = f.sent < f.piece; more || b.Compat == CompatNone {
		u.link[f.gateway].Use(b.Now(), 8*int64(size)) // SURGE does not charge the link for the last frame
	}
	return more
}

// kept handles the acknowledgement of a replica.
func (u *unicast) kept(m *Message) {
	b, f := u.b, &u.flows.Items[m.N]
	if f.id != m.ID || b.Chunks[f.chunk].ID != m.ID {
		return
	}
	i := f.chunk
	u.of[i][f.replica] = -1
	f.id = 0
	u.flows.Give(m.N)
	b.Outcomes.Acknowledged(i)
}

// arrives counts a received frame at its target, and reports whether that completes the replica, which is then written.
func (u *unicast) arrives(x Frame) (f *flow, whole bool) {
	f = &u.flows.Items[x.Arg]
	if f.received += x.Size; f.received < f.piece {
		return f, false
	}
	u.b.Disks.Write(f.target,
		Message{Kind: replicaAck, From: f.target, To: f.gateway, Chunk: f.chunk, N: int32(x.Arg), ID: f.id})
	return f, true
}

// key identifies a flow at its target.
func (u *unicast) key(n int32) uint64 { return uint64(uint32(n)) | uint64(u.flows.Items[n].epoch)<<32 }

// flowOf returns the flow of a key, or nil if its gateway has abandoned it and the target has not learnt that yet.
func (u *unicast) flowOf(key uint64) (n int32, f *flow) {
	if n = int32(uint32(key)); u.key(n) != key {
		return n, nil
	}
	return n, &u.flows.Items[n]
}

// Abandon implements Recovery.
func (u *unicast) Abandon(i int32) {
	b := u.b
	for _, n := range u.of[i] {
		if n < 0 {
			continue
		}
		f := &u.flows.Items[n]
		b.Disarm(u.clock[n])
		u.to[0] = f.target
		b.cancel(Message{Kind: putCancel, From: f.gateway, Chunk: i, ID: f.id, N: n, A: sim.Time(u.key(n))}, u.to[:])
		f.id, f.started = 0, false
		u.flows.Give(n)
	}
}

package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// What a cluster tells those who watch it: messages and frames as they come in, bids as their state changes, and writes to disks. A
// probe that nobody has set costs a nil check.

// Probes are what may be watched. What they are given holds until the call returns.
type Probes struct {
	// OnSend is told of each control message and frame as its sender hands it to its link, once for all its receivers.
	OnSend sim.Probe[*Passage]
	// OnReceive is told of the same at each receiver, when it has come in as a whole.
	OnReceive sim.Probe[*Passage]
	// OnBid is told when a target gives a bid, and when it hears what becomes of it.
	OnBid sim.Probe[*BidChange]
	// OnWrite is told when a target has a replica and puts it into its disk's queue.
	OnWrite sim.Probe[*Write]
}

// Passage is a control message or a frame of data between nodes. Nodes are gateways, then targets.
type Passage struct {
	Kind     string // of a control message; "data" for a frame
	Data     bool
	Chunk    uint64 // what it is about, counted from 1; 0 if the protocol does not say
	Gateway  int32  // that the chunk is of; of others the one that sends or receives
	From     int32
	To       []int32 // all receivers when it is sent, one when it is received
	Size     units.Bytes
	Takes    sim.Time // on a link
	Sent     sim.Time // when its sender handed it to its link
	Received sim.Time
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

// Write is a replica's place in a disk's queue.
type Write struct {
	Target   int32
	Chunk    uint64
	At       sim.Time // when it is queued
	From, To sim.Time // when it is written
}

// speaker is a protocol whose messages have names.
type speaker interface {
	says(kind uint8) string
}

// carrier is a protocol that knows the chunk of a frame.
type carrier interface {
	carries(arg uint32) int32
}

var (
	replicastNames = [...]string{askBids: "request", bid: "bid", accept: "accept", kept: "ack"}
	uchNames       = [...]string{putRequest: "request", rateInit: "rate", rateSet: "new rate", replicaAck: "ack"}
)

func (p *replicast) says(kind uint8) string { return replicastNames[kind] }
func (p *hybrid) says(kind uint8) string    { return replicastNames[kind] }
func (u *uch) says(kind uint8) string       { return uchNames[kind] }

func (p *replicast) carries(arg uint32) int32 { return int32(arg) }
func (p *hybrid) carries(arg uint32) int32    { return p.flows[arg].chunk }
func (u *uch) carries(arg uint32) int32       { return u.flows[arg].chunk }

// sees notes who sends a parcel and when, and tells of it.
func (c *Cluster) sees(node, i int32) {
	p := &c.parcels[i]
	p.sender, p.sent = node, c.eng.Now()
	if c.OnSend != nil {
		x := c.passage(p)
		x.To = p.to[:p.n]
		c.OnSend(&x)
	}
}

// shows tells of a parcel that has come in at a node.
func (c *Cluster) shows(p *parcel, node int32) {
	if c.OnReceive != nil {
		c.showReceipt(p, node)
	}
}

func (c *Cluster) showReceipt(p *parcel, node int32) {
	x := c.passage(p)
	to := [1]int32{node}
	x.To, x.Received = to[:], c.eng.Now()
	c.OnReceive(&x)
}

func (c *Cluster) passage(p *parcel) Passage {
	x := Passage{Data: p.data, From: p.sender, Size: p.size, Takes: p.takes, Sent: p.sent, Kind: "data"}
	i := p.message.chunk
	if p.data {
		i = -1
		if k, ok := c.proto.(carrier); ok {
			i = k.carries(p.arg)
		}
	} else {
		x.Chunk, x.Kind = p.message.id, "message"
		if s, ok := c.proto.(speaker); ok {
			x.Kind = s.says(p.message.kind)
		}
	}
	if x.Chunk == 0 && i >= 0 {
		x.Chunk = c.chunks[i].id
	}
	if x.Gateway = p.sender; p.sender >= int32(len(c.gateways)) {
		x.Gateway = p.to[0]
	}
	return x
}

// showBid tells of a bid that is given or ends.
func (c *Cluster) showBid(target, gateway int32, chunk uint64, state reserve.State, w reserve.Window) {
	c.decides(target, state)
	if c.OnBid != nil {
		c.OnBid(&BidChange{At: c.eng.Now(), Target: target, Gateway: gateway, Chunk: chunk, State: state, Window: w})
	}
}

// showDone tells that a reservation has been used.
func (c *Cluster) showDone(target int32, x *chunk) {
	c.claims(target, -1)
	if c.OnBid != nil {
		c.OnBid(&BidChange{At: c.eng.Now(), Target: target, Gateway: x.gateway, Chunk: x.id, State: reserve.Accepted, Done: true})
	}
}

// showWrite tells of a write that has been queued and will be done at a time.
func (c *Cluster) showWrite(target int32, m *message, done sim.Time) {
	if c.OnWrite == nil {
		return
	}
	id := m.id
	if id == 0 {
		id = c.chunks[m.chunk].id
	}
	c.OnWrite(&Write{Target: target, Chunk: id, At: c.eng.Now(), From: done - c.d.DiskChunk, To: done})
}

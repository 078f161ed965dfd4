package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// What a cluster tells those who watch it: messages and frames as they come in, bids as their state changes, and what disks do. A
// probe that nobody has set costs a nil check.

// Probes are what may be watched. What they are given holds until the call returns.
type Probes struct {
	// OnSend is told of each control message and frame as its sender hands it to its link, once for all its receivers.
	OnSend sim.Probe[*Passage]
	// OnReceive is told of the same at each receiver, when it has come in as a whole.
	OnReceive sim.Probe[*Passage]
	// OnBid is told when a target gives a bid, and when it hears what becomes of it.
	OnBid sim.Probe[*BidChange]
	// OnDisk is told when a target's disk begins to write or read a piece, and when a drive is done with it.
	OnDisk sim.Probe[*Work]
}

// Passage is a control message or a frame of data between nodes. Nodes are gateways, then targets.
type Passage struct {
	Kind     string // of a control message; "data" for a frame
	Data     bool
	Chunk    uint64 // what it is about, counted from 1; 0 if the protocol does not say
	Gateway  int32  // that the chunk is of, or the target that makes a piece of it again; of chunks that are over, the one that sends or receives
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

// Work is what a disk does for a piece of a chunk.
type Work struct {
	Target       int32
	Chunk        uint64   // 0 of a piece that is made again
	At           sim.Time // when it is queued
	From, To     sim.Time // when it is done, if the target does not fail meanwhile
	Read, Repair bool
}

// speaker is a protocol whose messages have names.
type speaker interface {
	says(kind uint8) string
}

var (
	replicastNames = [...]string{askBids: "request", bid: "bid", accept: "accept", kept: "ack", lateReject: "late reject"}
	proxiedNames   = [...]string{askProxy: "request", proxyAnswer: "window", proxyTakes: "reserve", proxyKept: "ack", memberDone: "done"}
	windowNames    = [...]string{writeBegins: "request", written: "ack"}
	uchNames       = [...]string{putRequest: "request", rateInit: "rate", rateSet: "new rate", replicaAck: "ack", putCancel: "cancel", dinged: "ding"}
	pullNames      = [...]string{askRoom: "request", offer: "offer", take: "take", pullNow: "pull", stored: "ack", giveUp: "cancel"}
	chainedNames   = [...]string{chainKept: "ack", chainCancel: "cancel"}
	grantsNames    = [...]string{granted: "grant", grantKept: "ack", grantCancel: "cancel"}
	dctcpNames     = [...]string{frameAck: "frame ack", dctcpKept: "ack", dctcpCancel: "cancel"}
	readNames      = [...]string{readAsk - firstRead: "read request", readBid - firstRead: "read bid", readNow - firstRead: "read", readLeave - firstRead: "leave", readBegun - firstRead: "begun"}
)

func (p *replicast) says(kind uint8) string     { return replicastNames[kind] }
func (p *hybrid) says(kind uint8) string        { return replicastNames[kind] }
func (u *uch) says(kind uint8) string           { return uchNames[kind] }
func (p *pull) says(kind uint8) string          { return pullNames[kind] }
func (p *proxied) says(kind uint8) string       { return proxiedNames[kind] }
func (p *commandWindow) says(kind uint8) string { return windowNames[kind] }
func (p *chained) says(kind uint8) string       { return chainedNames[kind] }
func (p *grants) says(kind uint8) string        { return grantsNames[kind] }
func (p *dctcp) says(kind uint8) string         { return dctcpNames[kind] }

// said is a message's name.
func (c *Cluster) said(kind uint8) string {
	switch {
	case kind >= firstRead:
		return readNames[kind-firstRead]
	case kind == probe:
		return "probe"
	case kind == probed:
		return "load"
	}
	if s, ok := c.proto.(speaker); ok {
		return s.says(kind)
	}
	return "message"
}

// LastChunk is the number of the last attempt at a chunk that has begun.
func (c *Cluster) LastChunk() uint64 { return c.attempts }

// sees notes who sends a parcel and when, and tells of it.
func (c *Cluster) sees(node, i int32) {
	p := &c.parcels[i]
	p.sender, p.sent = node, c.eng.Now()
	if c.OnSend != nil {
		x := c.passage(p)
		x.To = c.to(p)
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
	x := Passage{Data: p.data, From: p.sender, Size: p.size, Takes: p.takes, Sent: p.sent, Chunk: p.message.id, Kind: "data"}
	if !p.data {
		x.Kind = c.said(p.message.kind)
	}
	i := p.message.chunk
	if x.Chunk == 0 {
		x.Chunk = c.chunks[i].id // of protocols that never begin again, some messages name a chunk's place alone
	}
	switch {
	case c.chunks[i].id == x.Chunk:
		x.Gateway = c.chunks[i].gateway
	case p.sender >= int32(len(c.gateways)):
		x.Gateway = c.to(p)[0]
	default:
		x.Gateway = p.sender
	}
	return x
}

// showBid tells of a bid that is given or ends.
func (c *Cluster) showBid(target, gateway int32, chunk uint64, state reserve.State, w reserve.Window) {
	if c.OnBid != nil {
		c.OnBid(&BidChange{At: c.eng.Now(), Target: target, Gateway: gateway, Chunk: chunk, State: state, Window: w})
	}
}

// showDone tells that a reservation has been used.
func (c *Cluster) showDone(target int32, x *chunk) {
	if c.OnBid != nil {
		c.OnBid(&BidChange{At: c.eng.Now(), Target: target, Gateway: x.gateway, Chunk: x.id, State: reserve.Accepted, Done: true})
	}
}

// showWork tells of what a disk does from one time to another.
func (c *Cluster) showWork(target int32, j *job, from, to sim.Time) {
	if c.OnDisk == nil {
		return
	}
	x := Work{Target: target, Chunk: j.message.id, At: j.since, From: from, To: to, Read: j.read, Repair: j.repairs}
	if x.Chunk == 0 && !j.repairs {
		x.Chunk = c.chunks[j.message.chunk].id
	}
	c.OnDisk(&x)
}

package cluster

import (
	"farflash/model/cluster/put"
	"farflash/numeric/units"
	"farflash/sim"
)

// What a cluster tells those who watch it: messages and frames as they come in, bids as their state changes, and what
// disks do. A probe that nobody has set costs a nil check.

// Probes are what may be watched. What they are given holds until the call returns.
type Probes struct {
	// OnSend is called with each control message and frame as its sender hands it to its link, once for all its
	// receivers.
	OnSend sim.Probe[*Passage]
	// OnReceive is called with the same at each receiver, when it has come in as a whole.
	OnReceive sim.Probe[*Passage]
	// OnBid is called when a target gives a bid, and when it hears what becomes of it.
	OnBid sim.Probe[*BidChange]
	// OnDisk is called when a target's disk begins to write or read a piece, and when a drive is done with it.
	OnDisk sim.Probe[*Work]
}

// Passage is a control message or a frame of data between nodes. Nodes are gateways, then targets.
type Passage struct {
	Kind  string // of a control message; "data" for a frame
	Data  bool
	Chunk uint64 // what it is about, counted from 1; 0 if the protocol does not say
	// that the chunk is of, or the target that makes a piece of it again; of chunks that are over, the one that sends
	// or receives
	Gateway  int32
	From     int32
	To       []int32 // all receivers when it is sent, one when it is received
	Size     units.Bytes
	Takes    sim.Time // on a link
	Sent     sim.Time // when its sender handed it to its link
	Received sim.Time
}

// BidChange is a bid when it is given, and when its gateway or the last byte of the data ends it.
type BidChange = put.BidChange

// Work is what a disk does for a piece of a chunk.
type Work struct {
	Target, Disk int32    // disks are numbered over all targets
	Chunk        uint64   // 0 of a piece that is made again
	At           sim.Time // when it is queued
	From, To     sim.Time // when it is done, if the target does not fail meanwhile
	Read, Repair bool
}

var readNames = [...]string{readAsk - put.FirstRead: "read request", readBid - put.FirstRead: "read bid",
	readNow - put.FirstRead: "read", readLeave - put.FirstRead: "leave", readBegun - put.FirstRead: "begun",
	partWanted - put.FirstRead: "read part", partKept - put.FirstRead: "part kept"}

// says is a message's name.
func (c *Cluster) says(kind uint8) string {
	if kind >= put.FirstRead {
		return readNames[kind-put.FirstRead]
	}
	return c.bus.Traits.Says(kind)
}

// LastChunk is the number of the last attempt at a chunk that has begun.
func (c *Cluster) LastChunk() uint64 { return c.attempts }

// sees notes who sends a parcel and when, and tells of it.
func (c *Cluster) sees(node, i int32) {
	p := &c.parcels.Items[i]
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
	x := Passage{Data: p.data, From: p.sender, Size: p.size, Takes: p.takes, Sent: p.sent, Chunk: p.message.ID,
		Kind: "data"}
	if !p.data {
		x.Kind = c.says(p.message.Kind)
	}
	i := p.message.Chunk
	if x.Chunk == 0 {
		x.Chunk = c.bus.Chunks[i].ID // of protocols that never begin again, some messages name a chunk's place alone
	}
	switch {
	case c.bus.Chunks[i].ID == x.Chunk:
		x.Gateway = c.bus.Chunks[i].Gateway
	case p.sender >= int32(len(c.gateways)):
		x.Gateway = c.to(p)[0]
	default:
		x.Gateway = p.sender
	}
	return x
}

// showWork tells of what a disk does from one time to another.
func (c *Cluster) showWork(target int32, j *job, from, to sim.Time) {
	if c.OnDisk == nil {
		return
	}
	x := Work{Target: target, Disk: j.disk, Chunk: j.message.ID, At: j.since, From: from, To: to, Read: j.read,
		Repair: j.repairs}
	if x.Chunk == 0 && !j.repairs {
		x.Chunk = c.bus.Chunks[j.message.Chunk].ID
	}
	c.OnDisk(&x)
}

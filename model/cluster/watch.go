package cluster

import (
	"farflash/model/cluster/put"
	"farflash/numeric/units"
	"farflash/sim"
)

// Probes of a cluster: messages and frames in flight, state changes of bids, and jobs of disks. An unset probe costs a
// nil check.

// Probes are the events that can be observed. Their arguments are valid until the call returns.
type Probes struct {
	// OnSend is called with each control message and frame when its sender hands it to its link, once for all
	// receivers.
	OnSend sim.Probe[*Passage]
	// OnReceive is called with each control message and frame at each receiver, once it has arrived in full.
	OnReceive sim.Probe[*Passage]
	// OnBid is called when a target makes a bid, and when the target learns its outcome.
	OnBid sim.Probe[*BidChange]
	// OnDisk is called when a target's disk begins to write or read a piece; for a drive, when it completes.
	OnDisk sim.Probe[*Work]
}

// Passage is a control message or a frame of data between nodes. Nodes are numbered gateways first, then targets.
type Passage struct {
	Kind  string // name of a control message; "data" for a frame
	Data  bool
	Chunk uint64 // the attempt's ID, from 1; 0 if the protocol does not name it
	// the chunk's gateway, or the target that rebuilds a piece of it; for a stale chunk, the one that sends or receives
	Gateway  int32
	From     int32
	To       []int32 // all receivers in OnSend, the one in OnReceive
	Size     units.Bytes
	Takes    sim.Time // transmission time on a link
	Sent     sim.Time // when its sender handed it to its link
	Received sim.Time
}

// BidChange is a bid when it is made, and when its gateway or the last byte of the data ends it.
type BidChange = put.BidChange

// Work is a disk's job for a piece of a chunk.
type Work struct {
	Target, Disk int32    // Disk is numbered over all targets
	Chunk        uint64   // 0 for a piece that is being rebuilt
	At           sim.Time // when it was queued
	From, To     sim.Time // To is the completion time, if the target does not fail before
	Read, Repair bool
}

var readNames = [...]string{readAsk - put.FirstRead: "read request", readBid - put.FirstRead: "read bid",
	readNow - put.FirstRead: "read", readLeave - put.FirstRead: "leave", readBegun - put.FirstRead: "begun",
	partWanted - put.FirstRead: "read part", partKept - put.FirstRead: "part kept"}

// says returns the name of a kind of message.
func (c *Cluster) says(kind uint8) string {
	if kind >= put.FirstRead {
		return readNames[kind-put.FirstRead]
	}
	return c.bus.Traits.Says(kind)
}

// LastChunk returns the ID of the last attempt that has begun.
func (c *Cluster) LastChunk() uint64 { return c.attempts }

// sees records a parcel's sender and time, and calls OnSend.
func (c *Cluster) sees(node, i int32) {
	p := &c.parcels.Items[i]
	p.sender, p.sent = node, c.eng.Now()
	if c.OnSend != nil {
		x := c.passage(p)
		x.To = c.to(p)
		c.OnSend(&x)
	}
}

// shows calls OnReceive for a parcel that has arrived at a node.
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
		x.Chunk = c.bus.Chunks[i].ID // some messages of protocols that never retry carry only the chunk's slot
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

// showWork calls OnDisk for a job.
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

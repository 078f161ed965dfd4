// Package put has the protocols by which gateways of an object cluster put chunks on targets: who asks whom, who
// sends when, and what is done when a message is lost or a target fails.
//
// A protocol is a Protocol: a plain state machine that has both roles, gateways' and targets', and is called when a
// chunk begins, a message or a frame of data has come, or a time has come that it asked for. It acts through a Bus
// (bus.go), which has what a protocol may know and do: the Plan (plan.go), all sizes and times that do not change;
// chunks; a clock; and four narrow interfaces to the nodes' links and disks. Traits (table.go) say what others need
// to know of a protocol. Each protocol has a file of its own; chunks find their targets by Groups (groups.go), or by
// a placement and a chooser (choose.go). What protocols decide by, bids and rates, is package model/cluster/reserve.
//
// It follows Aizman and Bestler, "Scalable Object Storage with Resource Reservations and Dynamic Load Balancing" (the
// Replicast paper), sections II to IV, and the models of its simulator SURGE; chain replication, Homa, NDP and DCTCP
// as their files say; and docs/adr/0006-pull.md.
//
// What it leaves out: links, disks, reading, failures, and who puts when, which are package cluster's.
package put

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Protocol is how chunks are put. The cluster calls it, one call at a time, and it acts through its Bus before it
// returns.
type Protocol interface {
	// Begin puts a chunk, whose ID, Gateway and Begun are set and which has no targets yet.
	Begin(chunk int32)
	// Message: a control message has arrived at Message.To, if that is a target, or at the chunk's gateway. It holds
	// until the call returns.
	Message(m *Message)
	// Frame: a frame of data has arrived at a target. Frames of chunks that are over or have begun again do not come.
	Frame(f Frame)
	// Timer: a time has come that the protocol asked for.
	Timer(arg uint32)
}

// Forecast is what a protocol foresees; all have it.
type Forecast interface {
	// Floor is how long a chunk takes by a plan that is alone: no chunk takes less by it. The plan is the bus's, or
	// one with times that are shorter.
	Floor(p *Plan) sim.Time
	// Expects reports whether data is promised to a target or has come in part, and whether the target has made an
	// offer that is open.
	Expects(target int32) (promised, open bool)
}

// Recovery is what a protocol does besides where messages are lost and targets fail; those whose Traits.Stuck is
// empty have it.
type Recovery interface {
	// Abandon: the gateway gives up its attempt at a chunk. It forgets what it knows of it and tells the targets.
	Abandon(chunk int32)
	// Restart: a target has lost all that it knew.
	Restart(target int32)
}

// Ahead is what a protocol may have that keeps much of each target.
type Ahead interface {
	// Ahead reads what it is going to read when something comes to a target, so that many are read together, and
	// returns something of it.
	Ahead(target int32) int64
}

// Message is a control message. What frames have of one is first.
type Message struct {
	ID       uint64 // the chunk's
	Chunk    int32
	Kind     uint8 // below FirstRead, and below probe for all but a chooser's
	From, To int32 // of a gateway or a target, as the kind says
	N        int32
	A, B     sim.Time // what it says
}

// FirstRead is the first kind of message that is none of a protocol's: reading has those from here on.
const FirstRead uint8 = 64

// Frame is a frame of data at its target.
type Frame struct {
	Arg    uint32 // what the sender gave with it
	Target int32
	Size   units.Bytes
	Marked bool // it found a long queue on its path; where Traits.Marks
}

// MaxArg is above all that a sender may give with a frame.
const MaxArg uint32 = 1 << 31

// Chunk is what a protocol sees of a chunk that is put, and what it sets: its targets. It takes two lines of the
// processor's cache, of which the first has what a frame needs of a chunk with few targets.
type Chunk struct {
	ID      uint64 // of this attempt, counted from 1; 0: nobody puts it
	Gateway int32
	Piece   units.Bytes // what each of its targets keeps; 0 is the plan's, which is the most
	N       int8        // targets that are chosen
	Acked   int8        // replicas that are kept
	Targets [MaxReplicas]int32
	Groups  [MaxGroups]int32 // that may keep it, of protocols that have groups
	Begun   sim.Time         // since when it waits
	_       [8]byte
}

// Limits of what is simulated.
const (
	// MaxReplicas is how many targets keep a part of a chunk at most.
	MaxReplicas = 16
	// MaxGroups is how many candidate groups a chunk has at most.
	MaxGroups = 4
	// MaxHeard is how many nodes hear one multicast at most.
	MaxHeard = 64
)

// Keeps reports whether a target has been chosen for the chunk.
func (c *Chunk) Keeps(target int32) bool { return c.Place(target) >= 0 }

// Place is a target's number among those of the chunk, -1 if it is none.
func (c *Chunk) Place(target int32) int {
	for k, t := range c.Targets[:c.N] {
		if t == target {
			return k
		}
	}
	return -1
}

// Package put implements the protocols by which gateways of an object cluster put chunks on targets: who asks whom, who
// sends when, and how lost messages and failed targets are handled.
//
// A protocol is a Protocol: a plain state machine that plays both roles, gateways' and targets'. It is called when a
// chunk begins, when a message or a frame of data arrives, and when a timer expires. It acts through a Bus (bus.go),
// which provides all that a protocol may know and do: the Plan (plan.go) with all constant sizes and times; chunks; a
// clock; and four narrow interfaces to the nodes' links and disks. Traits (table.go) are the properties of a protocol
// that other code depends on. Each protocol has a file of its own; chunks find their targets by Groups (groups.go), or
// by a placement and a chooser (choose.go). Bids and rates, on which protocols base their decisions, are in package
// model/cluster/reserve.
//
// It follows Aizman and Bestler, "Scalable Object Storage with Resource Reservations and Dynamic Load Balancing" (the
// Replicast paper), sections II to IV, and the models of its simulator SURGE; chain replication, Homa, NDP and DCTCP as
// cited in their files; and docs/adr/0006-pull.md.
//
// It leaves out links, disks, reads, failures, and the arrival of chunks, which package cluster models.
package put

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Protocol puts chunks. The cluster makes one call at a time, and the protocol acts through its Bus before the call
// returns.
type Protocol interface {
	// Begin puts a chunk. Its ID, Gateway and Begun are set; it has no targets yet.
	Begin(chunk int32)
	// Message handles a control message that has arrived at Message.To, if that is a target, or at the chunk's gateway.
	// m is valid until the call returns.
	Message(m *Message)
	// Frame handles a frame of data that has arrived at a target. Frames of completed or abandoned attempts are not
	// delivered.
	Frame(f Frame)
	// Timer handles the expiry of a timer that the protocol has set.
	Timer(arg uint32)
}

// Forecast predicts a protocol's behaviour. Every protocol implements it.
type Forecast interface {
	// Floor returns the time of a lone chunk under a plan, which no chunk can beat. The plan is the bus's, or one with
	// shorter times.
	Floor(p *Plan) sim.Time
	// Expects reports whether a target expects data, promised or received in part, and whether it has an open offer
	// or a tentative bid.
	Expects(target int32) (promised, open bool)
}

// Recovery is the part of a protocol that handles lost messages and failed targets. Protocols whose Traits.Stuck is
// empty implement it.
type Recovery interface {
	// Abandon ends an attempt at a chunk: the gateway drops its state of it and notifies the targets.
	Abandon(chunk int32)
	// Restart resets a target that has lost all its state.
	Restart(target int32)
}

// Ahead is optional, for protocols with much state per target.
type Ahead interface {
	// Ahead touches the state that the protocol is about to read when something arrives at a target, so that the cache
	// misses of many targets overlap. It returns a value derived from it, so that the loads are not removed.
	Ahead(target int32) int64
}

// Message is a control message. The fields that frames use come first.
type Message struct {
	ID       uint64 // of the attempt at the chunk
	Chunk    int32
	Kind     uint8 // below FirstRead, and below probe except for a chooser's
	From, To int32 // a gateway or a target, depending on Kind
	N        int32
	A, B     sim.Time // arguments, depending on Kind
}

// FirstRead is the first kind of message that does not belong to a put protocol; reads use the kinds from here on.
const FirstRead uint8 = 64

// Frame is a data frame that has arrived at its target.
type Frame struct {
	Arg    uint32 // the sender's argument
	Target int32
	Size   units.Bytes
	Marked bool // ECN-marked: it found a long queue on its path, where Traits.Marks
}

// MaxArg is the exclusive upper limit of a frame's argument.
const MaxArg uint32 = 1 << 31

// Chunk is the part of a chunk in flight that protocols see; they set its targets. It occupies two cache lines, the
// first of which has all that a frame needs of a chunk with few targets.
type Chunk struct {
	ID      uint64 // of this attempt, counted from 1; 0: the slot is free
	Gateway int32
	Piece   units.Bytes // size that each of its targets stores; 0 is the plan's, the largest
	N       int8        // number of targets chosen
	Acked   int8        // number of acknowledged replicas
	Targets [MaxReplicas]int32
	Groups  [MaxGroups]int32 // candidate groups, for protocols that have groups
	Begun   sim.Time         // when it arrived; its latency counts from here
	_       [8]byte
}

// Limits of the simulation.
const (
	// MaxReplicas is the largest number of targets that store a part of a chunk.
	MaxReplicas = 16
	// MaxGroups is the largest number of candidate groups of a chunk.
	MaxGroups = 4
	// MaxHeard is the largest number of receivers of a multicast.
	MaxHeard = 64
)

// Keeps reports whether a target has been chosen for the chunk.
func (c *Chunk) Keeps(target int32) bool { return c.Place(target) >= 0 }

// Place returns a target's index among those of the chunk, or -1.
func (c *Chunk) Place(target int32) int {
	for k, t := range c.Targets[:c.N] {
		if t == target {
			return k
		}
	}
	return -1
}

// Package cluster models object clusters: gateways that put chunks, and targets that keep replicas
// of them on their disks.
//
// The main types are Config, which describes a cluster and a protocol in plain values, and Cluster, one event loop
// with all nodes. The path of a chunk: a gateway takes it (chunk.go) and the protocol, a state machine of package
// model/cluster/put on the bus that bus.go makes, chooses targets and sends; control messages and frames of data
// travel over the nodes' links (link.go); a target writes a chunk that has arrived as a whole to its disk (disk.go)
// and acknowledges it; the chunk is done with the last acknowledgement. bound.go says what no protocol can exceed,
// and why.
//
// What a protocol decides by, bids and rates, is package model/cluster/reserve; where replicas may go is package
// model/cluster/placement.
//
// It follows Aizman and Bestler, "Scalable Object Storage with Resource Reservations and Dynamic Load Balancing" (the
// Replicast paper), sections II to IV, and the models of its simulator SURGE, build d92018f. What SURGE does
// differently from a real cluster is behind Compat.
//
// What it leaves out: the core of the network, which never blocks; metadata; and the chunks' content.
package cluster

import (
	"math"

	"farflash/model/cluster/put"
	"farflash/numeric/units"
)

// Config describes a cluster and what its gateways do.
type Config struct {
	// Gateways is how many initiators put chunks.
	Gateways int
	// Targets is how many targets there are, each with a disk.
	Targets int
	// Protocol is how chunks are put.
	Protocol Scheme
	// Chunk is the size of a chunk.
	Chunk units.Bytes
	// Sizes are shares of smaller chunks, up to Chunk; without them all have that size.
	Sizes []Size
	// Replicas is how many targets keep each chunk. command-window has 1 where nothing is said.
	Replicas int
	// Group is how many targets a negotiating group of Replicast has.
	Group int
	// Groups is how many negotiating groups a chunk of protocol pull asks.
	Groups int
	// Ahead is for how long a target of protocol pull still has work when it offers itself. 0 is the time in which a
	// single chunk reaches its last target, plus half a write for the other offers to arrive.
	Ahead units.Duration
	// BidWidth is how wide the bids of Replicast are, as a share of the time that a chunk and a trip take. A bid is
	// never narrower than the chunk and a frame. 0 is as in the paper: 140%, for replicast-h 110%, and 120% if that
	// is less than three frames.
	BidWidth units.Fraction
	// Code is an erasure code: a chunk is cut into pieces, of which some can be lost. Without one there are Replicas.
	Code Code
	// Placement is how targets are found by the protocols that have no groups: random (as SURGE does), ring, hrw,
	// jump, maglev, straw2, bounded-load or copysets.
	Placement Placement
	// Choices is how many candidates are asked for each replica; the least loaded one is taken. 1 asks none.
	Choices int
	// Outstanding is how many chunks a gateway works on at once; in an open loop, others wait. The default is 2 for
	// command-window.
	Outstanding int
	// Load is what gateways do. The default is a closed loop.
	Load Load
	// Reads is the share of chunks that are read.
	Reads units.Fraction
	// Update overwrites parts of stored chunks.
	Update Update
	// Read says who delivers a chunk.
	Read Reading
	// HedgeAfter is after how long a hedged read asks another target; 0 is the time that 19 of 20 of its gateway's
	// reads take.
	HedgeAfter units.Duration
	// Objects is how many chunks can be read.
	Objects int
	// Disk is each target's disk.
	Disk Disk
	// Core is what connects the nodes. With packet, the congestion control of section fabric replaces protocol
	// dctcp's windows.
	Core Core
	// Link is each node's link.
	Link Link
	// Control is what control messages are.
	Control Control
	// Processor is the time that a node's processor takes for messages; without it they take none.
	Processor Processor
	// Memory is how much incoming data a target holds until it is on the disk. The rest waits in the network. 0 is no
	// limit.
	Memory units.Bytes
	// Acknowledge says when a target acknowledges a replica. The default is write-through, with compat: surge-9872498
	// write-back.
	Acknowledge Acknowledge
	// Choosy lets a gateway of replicast-h and replicast-h-double cancel all bids and ask again when the best is too
	// far away, with twice the patience each time. The default is true for replicast-h-double and compat:
	// surge-9872498.
	Choosy bool
	// RetryAfter is the time after which an unfinished chunk is begun again, if messages can be lost. 0 is learnt by
	// each gateway.
	RetryAfter units.Duration
	// Failures are targets that fail.
	Failures []Failure
	// Repair is what happens when targets have failed.
	Repair Repair
	// Quorum is how many acknowledgements a put needs. The gateway still keeps the chunk until the others have come.
	// 0 is all of them.
	Quorum int
	// Racks is how many racks the targets are in. Target t is in rack t modulo this number, and no two pieces of a
	// chunk share a rack. 0 is no racks.
	Racks int
	// Overcommit is how many replicas a target of protocol grants may grant to at a time.
	Overcommit int
	// Compat is whose deviations from a real cluster are reproduced: none, surge-d92018f (the build of the Replicast
	// paper) or surge-9872498 (the last one).
	Compat Compat
}

// Disk is a target's disk.
type Disk struct {
	// Model is what the disk is: rate, with a constant rate, one piece after the other; or ssd, the drive of the
	// scenario's section ssd.
	Model Model
	// Count is how many such disks a target has; they are lost together.
	Count int
	// Depth is how many commands a target gives its ssd to do at once.
	Depth int
	// Rate is how fast it is; for an ssd, the rate that protocols use to plan ahead.
	Rate units.ByteRate
	// Queue is how much may wait for each disk before a target delays what it is sent; at least two chunks.
	Queue units.Bytes
	// Latency says whether acknowledgements take longer the more waits for the disk: constant or grows. The default
	// is grows for command-window.
	Latency DiskLatency
	// Kinds are disks that differ, each of a share of the targets.
	Kinds []Kind
}

// Kind is a kind of disk.
type Kind struct {
	// Share of the targets, drawn at random, that have it.
	Share units.Fraction
	// Rate is how fast it is; 0 is as all others.
	Rate units.ByteRate
	// Weight is its capacity, where that of all others is 1: placements give it as many times the chunks.
	Weight float64
}

// Code is an erasure code.
type Code struct {
	// Data is how many pieces a chunk has; 0 is no code.
	Data int
	// Parity is how many pieces are added, and how many can be lost.
	Parity int
}

// Link is a node's link to a core that never blocks.
type Link struct {
	// Rate of the link.
	Rate units.BitRate
	// Overhead is the share of the rate that headers take.
	Overhead units.Fraction
	// Frame is the largest frame.
	Frame units.Bytes
	// Trip is the time from one node to another, beside the frame's own.
	Trip units.Duration
	// Loss is the share of frames and messages that are lost on their way, at each receiver by itself.
	Loss units.Fraction
	// Mark is from which queue before a node's link on frames are marked, for protocol dctcp.
	Mark units.Bytes
}

// Effective is the rate without headers.
func (l *Link) Effective() units.BitRate {
	return l.Rate - l.Rate*units.BitRate(math.Round(float64(l.Overhead)*100))/100
}

// CheckOverhead is an error if headers cannot take such a share.
func (l *Link) CheckOverhead() error {
	var f units.Faults
	f.Hold(l.Overhead >= 0 && l.Overhead < 1 && l.Overhead.WholePercent(), "overhead",
		"%v is not possible; use whole per cent from 0%% to 99%%", l.Overhead)
	return f.Err()
}

// Control is what control messages are.
type Control struct {
	// Unicast is the size of a control message of the unicast protocols.
	Unicast units.Bytes
	// Replicast is the size of one of Replicast's.
	Replicast units.Bytes
	// Share is the share of a link that Replicast keeps for control messages.
	Share units.Fraction
	// Queued makes control messages wait for each other at both ends of a link; without it any number of them pass at
	// the same time.
	Queued bool
}

// DefaultConfig is the cluster of the Replicast paper's table 2: 90 gateways, 90 targets, 128 KiB, disks of 400 MiB/s.
func DefaultConfig() Config {
	return Config{
		Gateways: 90, Targets: 90, Protocol: ReplicastM, Chunk: 128 * units.KiB, Replicas: 3, Group: 9, Groups: 2,
		Choices: 1, Overcommit: 4, Outstanding: 1, Objects: 20_000,
		Repair:  Repair{Detect: 5 * units.Millisecond, Streams: 0.5, Disk: 1, Link: 1},
		Disk:    Disk{Count: 1, Depth: 8, Rate: 400 * units.ByteRate(units.MiB), Queue: 256 * units.KiB},
		Link:    Link{Rate: 10 * units.Gbps, Overhead: 0.01, Frame: 9000, Trip: units.Microsecond, Mark: 90_000},
		Control: Control{Unicast: 100, Replicast: 300, Share: 0.1, Queued: true},
	}
}

// Validate reports what cannot be, each with its key.
func (c *Config) Validate() error {
	var f units.Faults
	f.Hold(c.Gateways >= 1 && c.Gateways <= maxNodes, "gateways", "%d is not possible; use 1 to %d", c.Gateways,
		maxNodes)
	f.Hold(c.Targets >= 1 && c.Targets <= maxNodes, "targets", "%d is not possible; use 1 to %d", c.Targets, maxNodes)
	f.Hold(c.Chunk >= 1 && c.Chunk <= units.GiB, "chunk", "%v is not possible; use 1B to 1GiB", c.Chunk)
	f.Hold(c.Replicas >= 1 && c.Replicas <= maxReplicas, "replicas", "%d is not possible; use 1 to %d", c.Replicas,
		maxReplicas)
	f.Hold(c.copies() <= c.Targets, "replicas", "%d replicas need as many targets, and there are %d", c.copies(),
		c.Targets)
	f.Hold(c.BidWidth == 0 || c.BidWidth >= 1 && c.BidWidth <= 100 && c.BidWidth.WholePercent(), "bid_width",
		"%v is not possible; use whole per cent from 100%% to 10000%%, or 0", c.BidWidth)
	c.checkCode(&f)
	c.checkSizes(&f)
	c.checkUpdate(&f)
	c.checkLoad(&f)
	c.checkKinds(&f)
	c.checkModel(&f)
	c.checkCore(&f)
	c.checkFailures(&f)
	f.Hold(c.Outstanding >= 1 && c.Outstanding <= 1024, "outstanding", "%d is not possible; use 1 to 1024",
		c.Outstanding)
	f.Hold(c.Outstanding <= 1 || c.Control.Queued || c.Protocol.traits().Finds == put.FindsOwn, "outstanding",
		"%d chunks at once take turns on their gateway's link, which needs control.queued: true", c.Outstanding)
	f.Hold(c.Disk.Count >= 1 && c.Disk.Count <= 256, "disk.count", "%d are not possible; use 1 to 256", c.Disk.Count)
	f.Hold(c.Disk.Count <= 1 || c.Control.Queued, "disk.count", "several disks need control.queued: true")
	f.Hold(c.Disk.Count <= 1 || c.Protocol.traits().Finds != put.FindsOwn, "disk.count",
		"%v writes to one disk a gateway; leave it out", c.Protocol)
	f.Hold(c.Disk.Rate > 0, "disk.rate", "%v is not possible; use a rate such as 400MiB/s", c.Disk.Rate)
	f.Hold(c.Disk.Queue >= 0, "disk.queue", "%v is not possible; use a size such as 256KiB", c.Disk.Queue)
	f.Hold(c.Link.Rate > 0 && c.Link.Rate <= 1e6*units.Gbps, "link.rate",
		"%v is not possible; use a rate such as 10Gbps, and at most 1000Tbps", c.Link.Rate)
	f.Within("link", c.Link.CheckOverhead())
	f.Hold(c.Link.Frame >= 64 && c.Link.Frame <= 64*units.KiB, "link.frame", "%v is not possible; use 64B to 64KiB",
		c.Link.Frame)
	f.Hold(c.Link.Trip >= 0 && c.Link.Trip <= units.Second, "link.trip", "%v is not possible; use 0s to 1s",
		c.Link.Trip)
	key, size := "control.unicast", c.Control.Unicast
	if c.Protocol.traits().Reserves {
		key, size = "control.replicast", c.Control.Replicast
	}
	f.Hold(size >= 1 && size <= c.Link.Frame, key, "%v is not possible; use 1B to a frame, %v", size, c.Link.Frame)
	c.checkProcessor(&f)
	c.checkMemory(&f)
	c.checkCompat(&f)
	c.checkTargets(&f)
	c.checkRacks(&f)
	c.checkUnused(&f)
	return f.Err()
}

// Limits of what is simulated.
const (
	maxNodes    = 1 << 20
	maxReplicas = put.MaxReplicas
)

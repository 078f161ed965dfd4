// Package cluster models object clusters: gateways that put chunks, and targets that store replicas of them on their
// disks.
//
// The main types are Config, which describes a cluster and a protocol in plain values, and Cluster, one event loop with
// all nodes. The path of a chunk: a gateway takes it (chunk.go) and the protocol, a state machine of package
// model/cluster/put on the bus that bus.go builds, chooses targets and sends; control messages and frames of data
// travel over the nodes' links (link.go); a target writes a chunk to its disk once all of it has arrived (disk.go) and
// acknowledges it; the last acknowledgement completes the chunk. bound.go computes the throughput and latency limits
// that no protocol can beat.
//
// Bids and rates, on which protocols base their decisions, are in package model/cluster/reserve; the placement of
// replicas is in package model/cluster/placement.
//
// It follows Aizman and Bestler, "Scalable Object Storage with Resource Reservations and Dynamic Load Balancing" (the
// Replicast paper), sections II to IV, and the models of its simulator SURGE, build d92018f. SURGE's deviations from a
// real cluster are behind Compat.
//
// It leaves out the core of the network, which never blocks; metadata; and the chunks' content.
package cluster

import (
	"math"

	"farflash/model/cluster/put"
	"farflash/numeric/units"
)

// Config describes a cluster and its workload.
type Config struct {
	// Gateways is the number of initiators that put chunks.
	Gateways int
	// Targets is the number of targets, each with a disk.
	Targets int
	// Protocol is the protocol by which chunks are put.
	Protocol Scheme
	// Chunk is the size of a chunk.
	Chunk units.Bytes
	// Sizes are shares of smaller chunks, up to Chunk. By default every chunk has size Chunk.
	Sizes []Size
	// Replicas is the number of targets that store each chunk. The default for command-window is 1.
	Replicas int
	// Group is the number of targets in a negotiating group of Replicast.
	Group int
	// Groups is the number of negotiating groups that protocol pull asks for a chunk.
	Groups int
	// Ahead is the work that a target of protocol pull has left when it sends an offer. 0 is the time in which a lone
	// chunk reaches its last target, plus half a write for the other offers to arrive.
	Ahead units.Duration
	// BidWidth is the width of Replicast's bids, as a share of the time that a chunk and a trip take, and at least the
	// chunk and a frame. 0 is the paper's 140%; for replicast-h 110%, or 120% if that is less than three frames.
	BidWidth units.Fraction
	// Code cuts a chunk into pieces of an erasure code, some of which can be lost. Without it, chunks are stored as
	// Replicas.
	Code Code
	// Placement is how the protocols without groups find targets: random (as SURGE does), ring, hrw, jump, maglev,
	// straw2, bounded-load or copysets.
	Placement Placement
	// Choices is the number of candidates asked for each replica; the least loaded one is chosen. 1 asks none.
	Choices int
	// Outstanding is a gateway's largest number of chunks in flight; in an open loop, further ones queue. The default
	// is 2 for command-window.
	Outstanding int
	// Load is how chunks arrive at the gateways. The default is a closed loop.
	Load Load
	// Reads is the share of chunks that are read.
	Reads units.Fraction
	// Update overwrites parts of stored chunks.
	Update Update
	// Read is how a gateway chooses the targets that deliver a chunk.
	Read Reading
	// HedgeAfter is the delay after which a hedged read asks another target; 0 is the 95th percentile of the gateway's
	// recent read times.
	HedgeAfter units.Duration
	// Objects is the number of stored chunks that can be read.
	Objects int
	// Disk is the disk of each target.
	Disk Disk
	// Core is the network between the nodes. With packet, the congestion control of section fabric replaces protocol
	// dctcp's windows.
	Core Core
	// Link is the link of each node.
	Link Link
	// Control is the size of control messages and how links carry them.
	Control Control
	// Processor is the time that a node's processor takes for messages. The default is none.
	Processor Processor
	// Memory is the incoming data that a target can buffer until it is on the disk. Further data wait in the network. 0
	// is no limit.
	Memory units.Bytes
	// Acknowledge is when a target acknowledges a replica. The default is write-through, or write-back with compat:
	// surge-9872498.
	Acknowledge Acknowledge
	// Choosy lets a gateway of replicast-h and replicast-h-double cancel all bids and ask again when the best one is
	// too late, with twice the patience each time. The default is true for replicast-h-double and compat:
	// surge-9872498.
	Choosy bool
	// RetryAfter is the time after which an unfinished chunk is retried, if messages can be lost. 0 lets each gateway
	// derive it from its completion times.
	RetryAfter units.Duration
	// Failures are the failures of targets.
	Failures []Failure
	// Repair is how lost pieces are rebuilt after targets have failed.
	Repair Repair
	// Quorum is the number of acknowledgements that complete a put. The gateway still keeps the chunk until the others
	// have arrived. 0 is all of them.
	Quorum int
	// Racks is the number of racks. Target t is in rack t modulo this number, and no two pieces of a chunk share a
	// rack. 0 is no racks.
	Racks int
	// Overcommit is the number of replicas to which a target of protocol grants may grant at a time.
	Overcommit int
	// Compat selects whose deviations from a real cluster are reproduced: none, surge-d92018f (the build of the
	// Replicast paper) or surge-9872498 (the last build).
	Compat Compat
}

// Disk is the disk of a target.
type Disk struct {
	// Model is the model of the disk: rate, one piece at a time at a constant rate; or ssd, the drive of section ssd.
	Model Model
	// Count is the number of such disks in a target; they fail together.
	Count int
	// Depth is the number of commands a target has outstanding at its ssd.
	Depth int
	// Rate is the disk's write and read rate; for an ssd, the rate by which protocols plan.
	Rate units.ByteRate
	// Queue is the data that may wait for each disk before a target throttles its senders; at least two chunks.
	Queue units.Bytes
	// Latency is whether acknowledgements take longer as the disk's queue grows: constant or grows. The default is
	// grows for command-window.
	Latency DiskLatency
	// Kinds are kinds of disks that differ from the rest, each for a share of the targets.
	Kinds []Kind
}

// Kind is a kind of disk.
type Kind struct {
	// Share is the share of the targets, drawn at random, that have this kind.
	Share units.Fraction
	// Rate is the rate of this kind; 0 is the rate of all others.
	Rate units.ByteRate
	// Weight is its capacity relative to the other disks', 1: placements give it that multiple of the chunks.
	Weight float64
}

// Code is an erasure code.
type Code struct {
	// Data is the number of pieces that a chunk is divided into; 0 is no code.
	Data int
	// Parity is the number of pieces added, and the number that can be lost.
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
	// Trip is the one-way delay between two nodes, without the frame's transmission time.
	Trip units.Duration
	// Loss is the probability that a frame or message is lost, independently at each receiver.
	Loss units.Fraction
	// Mark is the queue length at a node's link above which frames are ECN-marked, for protocol dctcp.
	Mark units.Bytes
}

// Effective returns the rate without headers.
func (l *Link) Effective() units.BitRate {
	return l.Rate - l.Rate*units.BitRate(math.Round(float64(l.Overhead)*100))/100
}

// CheckOverhead returns an error if headers cannot take this share.
func (l *Link) CheckOverhead() error {
	var f units.Faults
	f.Hold(l.Overhead >= 0 && l.Overhead < 1 && l.Overhead.WholePercent(), "overhead",
		"%v is not possible; use whole per cent from 0%% to 99%%", l.Overhead)
	return f.Err()
}

// Control is the size of control messages and how links carry them.
type Control struct {
	// Unicast is the size of a control message of the unicast protocols.
	Unicast units.Bytes
	// Replicast is the size of a control message of Replicast.
	Replicast units.Bytes
	// Share is the share of a link that Replicast reserves for control messages.
	Share units.Fraction
	// Queued makes control messages queue at both ends of a link. Otherwise any number of them pass at the same time.
	Queued bool
}

// DefaultConfig returns the cluster of the Replicast paper's table 2: 90 gateways, 90 targets, 128 KiB, disks of
// 400 MiB/s.
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

// Validate reports every invalid setting, each with its key.
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
		"%d chunks in flight share their gateway's link, which needs control.queued: true", c.Outstanding)
	f.Hold(c.Disk.Count >= 1 && c.Disk.Count <= 256, "disk.count", "%d are not possible; use 1 to 256", c.Disk.Count)
	f.Hold(c.Disk.Count <= 1 || c.Control.Queued, "disk.count", "several disks need control.queued: true")
	f.Hold(c.Disk.Count <= 1 || c.Protocol.traits().Finds != put.FindsOwn, "disk.count",
		"%v writes to one disk per gateway; leave it out", c.Protocol)
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

// Limits of the simulation.
const (
	maxNodes    = 1 << 20
	maxReplicas = put.MaxReplicas
)

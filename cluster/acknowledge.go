package cluster

import (
	"farflash/cluster/reserve"
	"farflash/internal/spelling"
	"farflash/sim"
)

// Acknowledge is when a target acknowledges a replica.
type Acknowledge uint8

// The choices.
const (
	// WriteThrough waits until the replica is on the disk: the Replicast paper's rule (section IV-A).
	WriteThrough Acknowledge = iota
	// WriteBack acknowledges what has arrived, unless the disk's queue is full: then it waits as WriteThrough does. It is the rule of SURGE's
	// last build.
	WriteBack
)

var acknowledgeNames = []string{"write-through", "write-back"}

// MarshalText writes the choice's name.
func (a Acknowledge) MarshalText() ([]byte, error) { return []byte(acknowledgeNames[a]), nil }

// UnmarshalText reads a choice's name.
func (a *Acknowledge) UnmarshalText(text []byte) error {
	return spelling.OneOf(text, acknowledgeNames, a)
}

// DiskLatency is what a disk's queue does to its acknowledgements.
type DiskLatency uint8

// The choices.
const (
	// LatencyConstant does nothing to them.
	LatencyConstant DiskLatency = iota
	// LatencyGrows delays them by 1, 2, 3, 4 and 8 chunks' time of the disk when 4, 8, 12, 16 and 20 chunks wait, as in SURGE's models b and c.
	LatencyGrows
)

var diskLatencyNames = []string{"constant", "grows"}

// MarshalText writes the choice's name.
func (l DiskLatency) MarshalText() ([]byte, error) { return []byte(diskLatencyNames[l]), nil }

// UnmarshalText reads a choice's name.
func (l *DiskLatency) UnmarshalText(text []byte) error {
	return spelling.OneOf(text, diskLatencyNames, l)
}

// ackDelay is how long a target holds back the acknowledgement of a replica that keeps its disk busy for so long.
func (c *Cluster) ackDelay(busy sim.Time) sim.Time {
	delay := c.d.AckDelay(busy, c.cfg.Acknowledge == WriteBack)
	if delay > 0 && c.cfg.Disk.Latency == LatencyGrows {
		delay += c.d.VariableLatency(busy)
	}
	return delay
}

// keepTime is how long an idle target holds back the acknowledgement of a replica.
func (c *Cluster) keepTime(d *reserve.Durations) sim.Time { return c.ackDelay(d.DiskChunk) }

package cluster

import (
	"farflash/units"
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

var acknowledgeNames = units.Names[Acknowledge]{"write-through", "write-back"}

// String is the choice's name in scenarios.
func (a Acknowledge) String() string { return acknowledgeNames.Name(a) }

// MarshalText writes the choice's name.
func (a Acknowledge) MarshalText() ([]byte, error) { return acknowledgeNames.Marshal(a) }

// UnmarshalText reads a choice's name.
func (a *Acknowledge) UnmarshalText(text []byte) error { return acknowledgeNames.Unmarshal(text, a) }

// DiskLatency is what a disk's queue does to its acknowledgements.
type DiskLatency uint8

// The choices.
const (
	// LatencyConstant does nothing to them.
	LatencyConstant DiskLatency = iota
	// LatencyGrows delays them by 1, 2, 3, 4 and 8 chunks' time of the disk when 4, 8, 12, 16 and 20 chunks wait, as in SURGE's models b and c.
	LatencyGrows
)

var diskLatencyNames = units.Names[DiskLatency]{"constant", "grows"}

// String is the choice's name in scenarios.
func (d DiskLatency) String() string { return diskLatencyNames.Name(d) }

// MarshalText writes the choice's name.
func (d DiskLatency) MarshalText() ([]byte, error) { return diskLatencyNames.Marshal(d) }

// UnmarshalText reads a choice's name.
func (d *DiskLatency) UnmarshalText(text []byte) error { return diskLatencyNames.Unmarshal(text, d) }

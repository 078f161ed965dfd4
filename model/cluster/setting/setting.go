// Package setting has the choices that an object cluster's configuration is made of and that say no more than their
// names: when targets acknowledge, what their disks and the network between nodes are, and who delivers what is read.
// Package cluster has them by the same names.
//
// What it leaves out: numbers, and what the choices do, which are package cluster's.
package setting

import "farflash/numeric/units"

// Acknowledge is when a target acknowledges a replica.
type Acknowledge uint8

// The choices.
const (
	// WriteThrough waits until the replica is on the disk: the Replicast paper's rule (section IV-A).
	WriteThrough Acknowledge = iota
	// WriteBack acknowledges what has arrived, unless the disk's queue is full: then it waits as WriteThrough does.
	// It is the rule of SURGE's last build.
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
	// LatencyGrows delays them by 1, 2, 3, 4 and 8 chunks' time of the disk when 4, 8, 12, 16 and 20 chunks wait, as
	// in SURGE's models b and c.
	LatencyGrows
)

var diskLatencyNames = units.Names[DiskLatency]{"constant", "grows"}

// String is the choice's name in scenarios.
func (d DiskLatency) String() string { return diskLatencyNames.Name(d) }

// MarshalText writes the choice's name.
func (d DiskLatency) MarshalText() ([]byte, error) { return diskLatencyNames.Marshal(d) }

// UnmarshalText reads a choice's name.
func (d *DiskLatency) UnmarshalText(text []byte) error { return diskLatencyNames.Unmarshal(text, d) }

// Core is what lies between nodes.
type Core uint8

// The cores.
const (
	// CoreIdeal never blocks.
	CoreIdeal Core = iota
	// CorePacket is a network that is simulated packet by packet.
	CorePacket
)

var coreNames = units.Names[Core]{"ideal", "packet"}

// String is the core's name in scenarios.
func (c Core) String() string { return coreNames.Name(c) }

// MarshalText writes the core's name.
func (c Core) MarshalText() ([]byte, error) { return coreNames.Marshal(c) }

// UnmarshalText reads a core's name.
func (c *Core) UnmarshalText(text []byte) error { return coreNames.Unmarshal(text, c) }

// Model is what a target's disk is.
type Model uint8

// The models.
const (
	// ModelRate is a disk that does one thing after the other at a constant rate.
	ModelRate Model = iota
	// ModelSSD is a drive.
	ModelSSD
)

var modelNames = units.Names[Model]{"rate", "ssd"}

// String is the model's name in scenarios.
func (m Model) String() string { return modelNames.Name(m) }

// MarshalText writes the model's name.
func (m Model) MarshalText() ([]byte, error) { return modelNames.Marshal(m) }

// UnmarshalText reads a model's name.
func (m *Model) UnmarshalText(text []byte) error { return modelNames.Unmarshal(text, m) }

// Reading is who delivers a chunk that is read, of those who have it.
type Reading uint8

// The choices.
const (
	// ReadBids asks the chunk's groups by multicast; each target says when its disk could begin, or that it does not
	// have the chunk, and the gateway takes the earliest (the Replicast paper, section II-C). Where chunks have no
	// groups, it asks those who have it.
	ReadBids Reading = iota
	// ReadRandom takes anyone.
	ReadRandom
	// ReadLeastLoaded asks those who have the chunk, each by a message of its own, how long their disks will be busy,
	// and takes the least.
	ReadLeastLoaded
	// ReadHedged takes anyone, and another one when nothing has come for a time (Dean and Barroso, The Tail at Scale,
	// CACM 2013).
	ReadHedged
	// ReadTied asks one more than are needed. Each whose disk begins tells the others, and one that has not begun
	// drops the request when as many have as are needed (the same).
	ReadTied
)

var readingNames = units.Names[Reading]{"bids", "random", "least-loaded", "hedged", "tied"}

// String is the choice's name in scenarios.
func (r Reading) String() string { return readingNames.Name(r) }

// MarshalText writes the choice's name.
func (r Reading) MarshalText() ([]byte, error) { return readingNames.Marshal(r) }

// UnmarshalText reads a choice's name.
func (r *Reading) UnmarshalText(text []byte) error { return readingNames.Unmarshal(text, r) }

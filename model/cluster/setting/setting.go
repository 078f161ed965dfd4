// Package setting defines the enumerated settings of an object cluster's configuration: when targets acknowledge, the
// models of their disks and of the network between nodes, and who delivers reads. Package cluster re-exports them under
// the same names.
//
// It leaves out numeric settings; package cluster implements the behaviour.
package setting

import "farflash/numeric/units"

// Acknowledge is when a target acknowledges a replica.
type Acknowledge uint8

// The choices.
const (
	// WriteThrough: waits until the replica is on the disk: the Replicast paper's rule (section IV-A).
	WriteThrough Acknowledge = iota
	// WriteBack: acknowledges a replica on arrival, or as write-through does if the disk's queue is full: the rule of
	// SURGE's last build.
	WriteBack
)

var acknowledgeNames = units.Names[Acknowledge]{"write-through", "write-back"}

// String returns the choice's name in scenarios.
func (a Acknowledge) String() string { return acknowledgeNames.Name(a) }

// MarshalText returns the choice's name.
func (a Acknowledge) MarshalText() ([]byte, error) { return acknowledgeNames.Marshal(a) }

// UnmarshalText parses a choice's name.
func (a *Acknowledge) UnmarshalText(text []byte) error { return acknowledgeNames.Unmarshal(text, a) }

// DiskLatency is the effect of a disk's queue on its acknowledgements.
type DiskLatency uint8

// The choices.
const (
	// LatencyConstant is no effect.
	LatencyConstant DiskLatency = iota
	// LatencyGrows: delays them by 1, 2, 3, 4 and 8 chunk write times when 4, 8, 12, 16 and 20 chunks wait, as in
	// SURGE's models b and c.
	LatencyGrows
)

var diskLatencyNames = units.Names[DiskLatency]{"constant", "grows"}

// String returns the choice's name in scenarios.
func (d DiskLatency) String() string { return diskLatencyNames.Name(d) }

// MarshalText returns the choice's name.
func (d DiskLatency) MarshalText() ([]byte, error) { return diskLatencyNames.Marshal(d) }

// UnmarshalText parses a choice's name.
func (d *DiskLatency) UnmarshalText(text []byte) error { return diskLatencyNames.Unmarshal(text, d) }

// Core is the network between nodes.
type Core uint8

// The cores.
const (
	// CoreIdeal never blocks.
	CoreIdeal Core = iota
	// CorePacket is a network that is simulated packet by packet.
	CorePacket
)

var coreNames = units.Names[Core]{"ideal", "packet"}

// String returns the core's name in scenarios.
func (c Core) String() string { return coreNames.Name(c) }

// MarshalText returns the core's name.
func (c Core) MarshalText() ([]byte, error) { return coreNames.Marshal(c) }

// UnmarshalText parses a core's name.
func (c *Core) UnmarshalText(text []byte) error { return coreNames.Unmarshal(text, c) }

// Model is the model of a target's disk.
type Model uint8

// The models.
const (
	// ModelRate is a disk that serves one job at a time at a constant rate.
	ModelRate Model = iota
	// ModelSSD is a simulated drive.
	ModelSSD
)

var modelNames = units.Names[Model]{"rate", "ssd"}

// String returns the model's name in scenarios.
func (m Model) String() string { return modelNames.Name(m) }

// MarshalText returns the model's name.
func (m Model) MarshalText() ([]byte, error) { return modelNames.Marshal(m) }

// UnmarshalText parses a model's name.
func (m *Model) UnmarshalText(text []byte) error { return modelNames.Unmarshal(text, m) }

// Reading is the choice of the targets that deliver a chunk, among those that store it.
type Reading uint8

// The choices.
const (
	// ReadBids: asks the chunk's groups by multicast; each target answers when its disk could start, or that it lacks
	// the chunk, and the gateway chooses the earliest (the Replicast paper, section II-C). For chunks without groups,
	// it asks the targets that store it.
	ReadBids Reading = iota
	// ReadRandom chooses at random.
	ReadRandom
	// ReadLeastLoaded: asks each target that stores the chunk, by unicast, for how long its disk will be busy, and
	// chooses the least busy.
	ReadLeastLoaded
	// ReadHedged chooses at random, and asks another target if no data has arrived after a delay (Dean and Barroso, The
	// Tail at Scale, CACM 2013).
	ReadHedged
	// ReadTied: asks one target more than needed. Each target whose disk starts notifies the others, and one that has
	// not started drops the request when enough others have (Dean and Barroso).
	ReadTied
)

var readingNames = units.Names[Reading]{"bids", "random", "least-loaded", "hedged", "tied"}

// String returns the choice's name in scenarios.
func (r Reading) String() string { return readingNames.Name(r) }

// MarshalText returns the choice's name.
func (r Reading) MarshalText() ([]byte, error) { return readingNames.Marshal(r) }

// UnmarshalText parses a choice's name.
func (r *Reading) UnmarshalText(text []byte) error { return readingNames.Unmarshal(text, r) }

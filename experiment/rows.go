package experiment

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Flow is one flow of a network and what became of it, for flows.parquet.
type Flow struct {
	ID       int64
	Group    int32 // which of the scenario's sources made it
	Src, Dst int32 // nodes
	Port     uint16
	Size     units.Bytes
	Start    units.Duration
	FCT      units.Duration // until its sender knew that all had arrived; sim.Forever if it did not
	Ideal    units.Duration // were it alone
}

// Pause is a port that is told to pause, or to go on, for pauses.parquet.
type Pause struct {
	Time units.Duration
	Node int32
	// Switch says that the node is one.
	Switch bool
	// Port counts from 1 within the node.
	Port   int
	Class  int
	Resume bool
}

// Chunk is a chunk that was put, a write or an exchange of events, for chunks.parquet.
type Chunk struct {
	ID          uint64 // counted from 1 in the order in which they are done
	Op          string // put, get, write or exchange
	Gateway     int32
	Target      int32 // -1: several
	Size        units.Bytes
	Begun, Done sim.Time
}

// ChunkRows tells of chunks until there is an error, which it keeps.
type ChunkRows struct {
	Tell func(Chunk) error // nil: nobody
	Err  error
	n    uint64
}

// Add numbers a chunk and tells of it.
func (c *ChunkRows) Add(x Chunk) {
	c.n++
	if c.Tell != nil && c.Err == nil {
		x.ID = c.n
		c.Err = c.Tell(x)
	}
}

package experiment

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Flow is one flow of a network with its result, for flows.parquet.
type Flow struct {
	ID       int64
	Group    int32 // index of its source in the scenario
	Src, Dst int32 // nodes
	Port     uint16
	Size     units.Bytes
	Start    units.Duration
	FCT      units.Duration // until its sender had all acknowledgements; sim.Forever if it did not complete
	Ideal    units.Duration // the completion time in an idle network
}

// Pause is a request to a port to pause or to resume, for pauses.parquet.
type Pause struct {
	Time   units.Duration
	Node   int32
	Switch bool // Switch means that the node is a switch.
	Port   int  // Port counts from 1 within the node.
	Class  int
	Resume bool
}

// Chunk is a put or get of a chunk, a write or an exchange, for chunks.parquet.
type Chunk struct {
	ID          uint64 // counted from 1 in order of completion
	Op          string // put, get, write or exchange
	Gateway     int32
	Target      int32 // -1: several
	Size        units.Bytes
	Begun, Done sim.Time
}

// ChunkRows reports chunks until the first error, which it stores.
type ChunkRows struct {
	Emit func(Chunk) error // nil: not reported
	Err  error
	n    uint64
}

// Add numbers a chunk and reports it.
func (c *ChunkRows) Add(x Chunk) {
	c.n++
	if c.Emit != nil && c.Err == nil {
		x.ID = c.n
		c.Err = c.Emit(x)
	}
}

package durability

import (
	"fmt"

	"farflash/numeric/units"
)

// Spread selects how chunks are spread over copysets.
type Spread uint8

// Kinds of spreads.
const (
	Everywhere Spread = iota // any nodes: allCopysets, and every node helps to rebuild
	Window                   // windowCopysets of the scatter width
	Copysets                 // fewestCopysets of the scatter width
)

// Fleet is a cluster of identical drives, one per node.
type Fleet struct {
	Scheme  Scheme
	Nodes   int
	AFR     units.Fraction // of a drive
	Chunks  float64        // in the cluster
	Spread  Spread
	Scatter int // number of other nodes that hold shards of a node's chunks; with Everywhere it is all
	// Rebuild describes the rebuild of a drive. Its Data and Helpers are ignored; they follow from the scheme and the
	// scatter width.
	Rebuild Rebuild
	Repair  Repair
}

// Assessment is the durability of a fleet.
type Assessment struct {
	MTTF     Hours   // of a drive
	Rebuild  Hours   // of a drive
	Copysets float64 // expected number of copysets in use
	Group    Hours   // mean time until a given copyset's chunks are lost
	MTTDL    Hours   // mean time until any chunk is lost
	Loss     float64 // probability that any chunk is lost within a year
	Chunk    float64 // probability that a given chunk is lost within a year
}

// Nines returns the nines of the fleet: no chunk is lost in a year.
func (a Assessment) Nines() float64 { return nines(a.Loss) }

// ChunkNines returns the nines of one chunk, which providers advertise.
func (a Assessment) ChunkNines() float64 { return nines(a.Chunk) }

// Assess solves the chain of a copyset and treats the copysets as independent groups: losses are rare, so the drives
// that two sets share hardly matter (Simulation quantifies this). A copyset counts as short of a shard until the whole
// drive is rebuilt, though its own part may be complete earlier, so the results are conservative.
func Assess(f Fleet) (Assessment, error) {
	var a Assessment
	if err := f.Scheme.check(); err != nil {
		return a, err
	}
	w := f.Scheme.Width()
	switch {
	case f.Nodes < w:
		return a, fmt.Errorf("%d nodes cannot hold %d shards on different ones", f.Nodes, w)
	case !(f.Chunks >= 1):
		return a, fmt.Errorf("%v chunks; a fleet needs at least one", f.Chunks)
	case f.Spread > Copysets:
		return a, fmt.Errorf("spread %d is unknown", f.Spread)
	case f.Spread != Everywhere && (f.Scatter < w-1 || f.Scatter >= f.Nodes):
		return a, fmt.Errorf("invalid scatter width, %d; with %d shards on %d nodes it must be %d to %d", f.Scatter, w,
			f.Nodes, w-1, f.Nodes-1)
	}
	r := f.Rebuild
	r.Data = f.Scheme.Data
	possible := 0.0
	switch f.Spread {
	case Everywhere:
		r.Helpers, possible = f.Nodes-1, allCopysets(f.Scheme, f.Nodes)
	case Window:
		r.Helpers, possible = f.Scatter, windowCopysets(f.Scheme, f.Nodes, f.Scatter)
	case Copysets:
		r.Helpers, possible = f.Scatter, fewestCopysets(f.Scheme, f.Nodes, f.Scatter)
	}
	a.Copysets = distinct(possible, f.Chunks)
	var err error
	if a.Rebuild, err = r.time(); err != nil {
		return a, err
	}
	if a.MTTF, err = mttf(f.AFR); err != nil {
		return a, err
	}
	c, err := New(Config{Scheme: f.Scheme, MTTF: a.MTTF, Rebuild: a.Rebuild, Repair: f.Repair})
	if err != nil {
		return a, err
	}
	a.Group = c.MTTDL()
	a.MTTDL = a.Group / Hours(a.Copysets)
	a.Chunk = c.lossWithin(Year)
	a.Loss = Any(a.Chunk, a.Copysets)
	return a, nil
}

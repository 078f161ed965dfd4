package tco

import "farflash/policy/ftl/waf"

// Certificate proves that no plan of a problem costs less than Rate per gigabyte. Package planner/tco/certify checks
// it.
//
// For a rate r, a plan that costs less has cost - r data < 0. Assign a price to each workload (Value). Then each drive
// can be considered alone, because it pays or earns the prices of the workloads it takes. The least value a drive of a
// class can reach, over all sets of workloads, is bounded by a few further prices: per GB written to its flash, per GB
// of its space and per IOPS, for each range of the day on which its first workload arrives and of the day on
// which it dies. If the prices of all workloads and the minima of all drives add up to a non-negative sum, no plan
// costs less than r. docs/adr/0007-planner.md has the proof.
type Certificate struct {
	Rate float64 // money per GB
	// Exhaustive means that there are no prices: the workloads are so few that every plan can be examined.
	Exhaustive bool
	Cases      []Case // by the number of drives in use
}

// Case is a proof for plans that use Least to Most drives.
type Case struct {
	Least, Most int
	// Impossible means that this number of drives cannot hold the workloads' space or I/O, so the case needs no further
	// proof.
	Impossible bool
	// Whole means that drives are counted: at least as many are in use as the space and I/O of all workloads that never
	// end require.
	Whole   bool
	Value   []float64 // money, per workload
	Classes []ClassProof
}

// ClassProof bounds the least value that a drive of one class can reach.
type ClassProof struct {
	// Minorant is a concave piecewise-linear function that lies nowhere above the class's write amplification. Under
	// it, a mix of writes wears the flash no less than its parts would alone.
	Minorant []waf.MixPoint
	Blocks   []Block
}

// Block is for drives whose first workload arrives from day From to day To.
type Block struct {
	From, To float64
	Pieces   []Piece
}

// Piece is for drives that die from day From to day To, which may be infinite, and their prices.
type Piece struct {
	From, To    float64
	Wear        float64 // money per GB written to the NAND
	Space, IOPS float64 // money per GB, and per IOPS
}

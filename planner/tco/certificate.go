package tco

import "farflash/policy/ftl/waf"

// Certificate proves that no plan of a problem costs less than Rate for a gigabyte. Package planner/tco/certify
// checks it.
//
// For a rate r, a plan that costs less has cost - r data < 0. Put a price on each workload (Value): then each drive
// may be looked at alone, for it pays or earns the prices of what it takes. What a drive of a class can reach at
// least, over all sets of workloads, is bounded by a few prices more: of a GB that its flash is written, of a GB of
// its space and of an I/O a second, for each range of the day on which its first workload comes and of the day on
// which it dies. If the prices of all workloads and the least of all drives together are not negative, no plan costs
// less than r. docs/adr/0007-planner.md has the proof.
type Certificate struct {
	Rate float64 // money a GB
	// Exhaustive says that there are no prices: there are so few workloads that every plan can be looked at.
	Exhaustive bool
	Cases      []Case // by how many drives have a workload
}

// Case is a proof for plans that use from Least to Most drives.
type Case struct {
	Least, Most int
	// Impossible says that so few drives cannot hold the workloads' space, or their I/O; there is nothing else to be
	// proved.
	Impossible bool
	// Whole says that drives are counted: as many are in use as hold the space and the I/O of all workloads that
	// never end.
	Whole   bool
	Value   []float64 // money, of each workload
	Classes []ClassProof
}

// ClassProof bounds what a drive of one class can reach.
type ClassProof struct {
	// Minorant is a concave line of knots that lies nowhere above the class's write amplification. A mix of writes
	// wears no less than its parts would alone, by it.
	Minorant []waf.MixPoint
	Blocks   []Block
}

// Block is for drives whose first workload comes from day From to day To.
type Block struct {
	From, To float64
	Pieces   []Piece
}

// Piece is for drives that die from day From to day To, which may be infinite, and their prices.
type Piece struct {
	From, To    float64
	Wear        float64 // money a GB written to the NAND
	Space, IOPS float64 // money a GB, and for an I/O a second
}

package cluster

import "farflash/numeric/units"

// Keeping describes how and where a cluster stores a chunk, as input for durability models.
type Keeping struct {
	// Data and Parity are the numbers of its pieces: any Data of them restore it. With replicas, Data is 1.
	Data, Parity int
	// Piece is the size of each.
	Piece units.Bytes
	// Nodes is the number of nodes among which the pieces are distributed.
	Nodes int
	// Groups is the number of disjoint groups of Nodes nodes, one of which stores all pieces of a chunk; 0: no groups.
	Groups int
	// Scatter is the number of other nodes that share chunks with a node, if placement limits it; 0: all.
	Scatter int
}

// Keeping returns the Keeping of the configuration.
func (c *Config) Keeping() Keeping {
	k := Keeping{Data: 1, Parity: c.Replicas - 1, Piece: c.piece(), Nodes: c.Targets}
	if c.Code.Data > 0 {
		k.Data, k.Parity = c.Code.Data, c.Code.Parity
	}
	switch {
	case c.candidates() == 1:
		k.Nodes, k.Groups = c.Group, c.Targets/max(c.Group, 1)
	case c.candidates() == 0 && c.Placement == PlaceCopysets:
		k.Scatter = scatterWidth * max(c.copies()-1, 1)
	}
	return k
}

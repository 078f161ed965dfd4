package cluster

import "farflash/numeric/units"

// Keeping is how and where a cluster keeps a chunk, for those who ask what that is worth.
type Keeping struct {
	// Data and Parity are its pieces: any Data of them restore it. Of replicas that is one.
	Data, Parity int
	// Piece is the size of each.
	Piece units.Bytes
	// Nodes are those among which the pieces are.
	Nodes int
	// Groups is how many groups of so many nodes there are, in one of which a chunk stays; 0: there are none.
	Groups int
	// Scatter is how many others have pieces of what a node has, where that is limited; 0: all.
	Scatter int
}

// Keeping is the configuration's.
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

package ssd

import (
	"farflash/internal/divide"
	"farflash/ssd/nand"
	"farflash/units"
)

// namespace is a namespace's part of the drive. Its logical pages are numbered
// from base on in the drive's map; its mapping pages follow all data.
type namespace struct {
	sectors int64  // that the host can address
	base    uint32 // its first logical page in the drive's map
	pages   uint32

	// Consecutive addresses that nobody wrote visit planeOf in turn.
	planeOf []int32
	turn    divide.By // by their number
	// Consecutive logical pages are written to poolOf in turn.
	poolOf   []int32
	poolTurn divide.By // by their number

	mapBase  uint32 // its first mapping page in the drive's map
	mapPages uint32
	stored   uint32 // mapping pages that are on flash from the start

	stream   int // its first write stream
	streams  int
	mapping  int // the stream of its mapping pages
	cache    CacheMode
	cacheSet int // which cache it uses
	cmt      int // which cached mapping table it uses

	// formulaBase is where, in each of its planes, its formula addresses start.
	formulaBase []int32
}

// layOut divides the drive among its namespaces and numbers everything.
func (c *Config) layOut() []namespace {
	g := c.Geometry
	specs := c.namespaces()
	out := make([]namespace, len(specs))
	users := make([]int, g.Planes())
	for i := range specs {
		out[i].planeOf = specs[i].planesInTurn(g, c.Mapping.Scheme)
		out[i].turn = divide.New(uint64(len(out[i].planeOf)))
		for _, p := range out[i].planeOf {
			users[p]++
		}
	}
	spp := int64(g.SectorsPerPage())
	perPlane := float64(g.PagesPerPlane()*spp) * (1 - float64(c.OverProvisioning))
	formula := make([]int32, g.Planes())
	next := uint32(0)
	stream := 0
	for i := range out {
		n := &out[i]
		// Pages go round the planes evenly, so the plane with the smallest share sets
		// the size.
		least := int64(perPlane)
		for _, p := range n.planeOf {
			share := int64(perPlane / float64(users[p]))
			least = min(least, share)
			n.sectors += share
		}
		if !c.Quirks.SharesSummed {
			n.sectors = least * int64(len(n.planeOf))
		}
		n.pages = uint32((n.sectors + spp - 1) / spp)
		n.base = next
		next += n.pages
		n.stream, n.streams = stream, max(specs[i].Streams, 1)
		stream += n.streams
		n.cache = c.Cache.Mode
		if specs[i].Cache != nil {
			n.cache = *specs[i].Cache
		}
		turns := int32((int64(n.pages) + int64(len(n.planeOf)) - 1) / int64(len(n.planeOf)))
		n.formulaBase = make([]int32, len(n.planeOf))
		for k, p := range n.planeOf {
			n.formulaBase[k] = formula[p]
			formula[p] += turns
		}
	}
	per := c.entriesPerMappingPage()
	for i := range out {
		n := &out[i]
		n.mapBase = next
		n.mapPages = uint32((int64(n.pages) + per - 1) / per)
		n.stored = uint32(int64(n.pages) / per) // a last, partial one is not
		next += n.mapPages
		n.mapping = stream + i
		if c.Cache.Partitioned {
			n.cacheSet = i
		}
		if !c.Mapping.CMTShared {
			n.cmt = i
		}
	}
	return out
}

// planesInTurn lists the namespace's planes in the order in which consecutive
// logical pages visit them.
func (n *Namespace) planesInTurn(g nand.Geometry, s Scheme) []int32 {
	ids := map[byte][]int{
		'C': orAll(n.Channels, g.Channels), 'W': orAll(n.Chips, g.ChipsPerChannel),
		'D': orAll(n.Dies, g.DiesPerChip), 'P': orAll(n.Planes, g.PlanesPerDie),
	}
	total := 1
	for _, l := range ids {
		total *= len(l)
	}
	out := make([]int32, total)
	for i := range out {
		at := map[byte]int{}
		rest := i
		for _, letter := range s {
			l := ids[letter]
			at[letter] = l[rest%len(l)]
			rest /= len(l)
		}
		out[i] = int32(g.Plane(at['C'], at['W'], at['D'], at['P']))
	}
	return out
}

func orAll(ids []int, n int) []int {
	if len(ids) > 0 {
		return ids
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// place returns the plane that the formula puts the namespace's page i in, and where there.
func (n *namespace) place(i uint32) (plane int32, index int32) {
	turn, k := n.turn.Split(uint64(i))
	return n.planeOf[k], n.formulaBase[k] + int32(turn)
}

// pool returns the pool that the namespace's page i is written to.
func (n *namespace) pool(i uint32) int32 {
	_, k := n.poolTurn.Split(uint64(i))
	return n.poolOf[k]
}

// Capacity is what the host can address of a namespace.
func (n *namespace) capacity() units.Bytes { return units.Bytes(n.sectors) * nand.SectorSize }

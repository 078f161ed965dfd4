package ssd

import (
	"farflash/internal/divide"
	"farflash/model/ssd/nand"
	"farflash/numeric/units"
)

// namespace is a namespace's part of the drive. Its logical pages have the size of the map's grain and are numbered
// from base on in the drive's map. Its mapping pages, which have the same size, follow the data of all namespaces.
type namespace struct {
	sectors int64  // size that the host can address
	base    uint32 // its first logical page in the drive's map
	pages   uint32

	// Addresses never written are striped over planeOf by the formula, in stripes of a page of flash's grains.
	planeOf []int32
	turn    divide.By // divides by its length
	// Consecutive logical pages are written to poolOf in turn, in stripes of the same size.
	poolOf   []int32   // those of each reclaim group together
	poolTurn divide.By // divides by its length
	// readPlaneOf and readPoolOf place pages that are read before they are written (Quirks.DiesForPlanes); nil: as when
	// written.
	readPlaneOf, readPoolOf []int32
	grains                  uint32    // in a page of flash
	perPage                 divide.By // divides by grains

	mapBase  uint32 // its first mapping page in the drive's map
	mapPages uint32
	stored   uint32 // mapping pages that are on flash from the start

	stream     int         // its first write stream
	placements []placement // what its placement hints select
	mapping    int         // the stream of its mapping pages
	cache      CacheMode
	cacheSet   int   // the cache it uses
	start      int64 // its first sector in the drive
	last       int64 // last sector that is not folded; see Drive.Bound
	// distance in sectors of its first sector from the start of one of the drive's pages (Quirks.CutAcross)
	shift int64
	cmt   int // the cached mapping table it uses

	zones *zoning // nil: the namespace is conventional

	// formulaBase is the first formula page of the namespace in each of its planes.
	formulaBase []int32
}

// layOut divides the drive among its namespaces and numbers their pages, streams, caches and tables.
func (c *Config) layOut() []namespace {
	g := c.Geometry
	specs := c.namespaces()
	out := make([]namespace, len(specs))
	users := make([]int, g.Planes())
	for i := range specs {
		out[i].planeOf = specs[i].planesInTurn(g, c.Mapping.Scheme)
		out[i].turn = divide.New(uint64(len(out[i].planeOf)))
		if c.Quirks.DiesForPlanes && string(c.Mapping.Scheme[:]) == "DWCP" {
			out[i].readPlaneOf = specs[i].readPlanesInTurn(g, c.Mapping.Scheme)
		}
		for _, p := range out[i].planeOf {
			users[p]++
		}
	}
	pool := 1
	if c.Zones != nil {
		p := c.planePools(out)
		pool = p.size
	}
	spp := int64(c.sectorsPerGrain())
	grains := c.grainsPerPage()
	perPlane := float64(g.PagesPerPlane()*int64(g.SectorsPerPage())) * (1 - float64(c.OverProvisioning))
	formula := make([]int32, g.Planes())
	next := uint32(0)
	before := int64(0) // sectors of the preceding namespaces
	stream := 0
	for i := range out {
		n := &out[i]
		n.grains, n.perPage = uint32(grains), divide.New(uint64(grains))
		// Pages are striped over the planes evenly, so the plane with the smallest share determines the size.
		least := int64(perPlane)
		for _, p := range n.planeOf {
			share := int64(perPlane / float64(users[p]))
			least = min(least, share)
			n.sectors += share
		}
		if !c.Quirks.SharesSummed {
			n.sectors = least * int64(len(n.planeOf))
		}
		if c.isZoned(i) {
			n.sectors = c.divideZones(n, pool, n.sectors)
		}
		n.pages = uint32((n.sectors + spp - 1) / spp)
		n.base = next
		next += n.pages
		if c.Quirks.CutAcross && spp <= 32 {
			// sectors of a part beyond its page get bits of their own in a bitmap of 64
			n.shift = before % spp
		}
		n.start, n.last = before, n.sectors-1
		before += n.sectors
		n.placements = c.placements(&specs[i], stream)
		n.stream = int(n.placements[0].stream)
		if stream += len(n.placements); c.FDP != nil {
			stream = c.FDP.Handles // they are shared by all namespaces
		}
		n.cache = c.Cache.Mode
		if specs[i].Cache != nil {
			n.cache = *specs[i].Cache
		}
		turns := n.formulaPages()
		if n.zones != nil {
			turns = 0 // unwritten addresses of zones hold no data
		}
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
		n.stored = uint32(int64(n.pages) / per) // a last, partial one is not on flash
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

// planesInTurn lists the namespace's planes in the order in which consecutive logical pages visit them.
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

// readPlanesInTurn is planesInTurn for pages that are read before they are written (Quirks.DiesForPlanes): plane
// numbers are taken from the list of dies, and are 0 beyond its end.
func (n *Namespace) readPlanesInTurn(g nand.Geometry, s Scheme) []int32 {
	dies := orAll(n.Dies, g.DiesPerChip)
	planes := make([]int, len(orAll(n.Planes, g.PlanesPerDie)))
	for i := range planes {
		if i < len(dies) {
			planes[i] = dies[i] % g.PlanesPerDie
		}
	}
	as := *n
	as.Planes = planes
	return as.planesInTurn(g, s)
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

// formulaPages returns the number of pages of flash that the formula uses in each plane for the namespace's data.
func (n *namespace) formulaPages() int32 {
	pages := (int64(n.pages) + int64(n.grains) - 1) / int64(n.grains)
	return int32((pages + int64(len(n.planeOf)) - 1) / int64(len(n.planeOf)))
}

// place returns the plane and the page of flash within it where the formula puts the namespace's page i.
func (n *namespace) place(i uint32) (plane int32, index int32) {
	if n.grains > 1 {
		i = uint32(n.perPage.Of(uint64(i)))
	}
	turn, k := n.turn.Split(uint64(i))
	return n.planeOf[k], n.formulaBase[k] + int32(turn)
}

// pool returns the pool that the namespace's page i is written to if the write names no reclaim group.
func (n *namespace) pool(i uint32) int32 {
	_, k := n.inTurn(i)
	return n.poolOf[k]
}

// inTurn returns the position k in poolOf of the pool that the namespace's page i is written to, and the number of its
// pages before it in that pool.
func (n *namespace) inTurn(i uint32) (before uint32, k int) {
	if z := n.zones; z != nil { // a zone is in one pool
		zone, in := z.zone(i)
		q, k := n.poolTurn.Split(uint64(zone))
		return uint32(q)*z.capacity + in, int(k)
	}
	if n.grains == 1 {
		q, k := n.poolTurn.Split(uint64(i))
		return uint32(q), int(k)
	}
	page, in := n.perPage.Split(uint64(i))
	q, r := n.poolTurn.Split(page)
	return uint32(q)*n.grains + uint32(in), int(r)
}

// outOfTurn is the inverse of inTurn.
func (n *namespace) outOfTurn(before uint32, k int) uint32 {
	turn := uint32(len(n.poolOf))
	if z := n.zones; z != nil {
		q, in := z.byCapacity.Split(uint64(before))
		return (uint32(q)*turn+uint32(k))*z.size + uint32(in)
	}
	if n.grains == 1 {
		return before*turn + uint32(k)
	}
	q, in := n.perPage.Split(uint64(before))
	return (uint32(q)*turn+uint32(k))*n.grains + uint32(in)
}

// shareOf returns how many of the namespace's first pages are written to its k-th pool in turn.
func (n *namespace) shareOf(pages uint32, k int) uint32 {
	turn := uint32(len(n.poolOf))
	if z := n.zones; z != nil {
		zones, _ := z.zone(pages)
		return (zones + turn - 1 - uint32(k)) / turn * z.capacity
	}
	whole, rest := n.perPage.Split(uint64(pages))
	share := (uint32(whole) + turn - 1 - uint32(k)) / turn * n.grains
	if uint32(whole)%turn == uint32(k) {
		share += uint32(rest)
	}
	return share
}

// capacity returns the size that the host can address.
func (n *namespace) capacity() units.Bytes { return units.Bytes(n.sectors) * nand.SectorSize }

// CapacityOf returns the bytes that a host can address of a namespace of a valid configuration.
func (c *Config) CapacityOf(namespace int) units.Bytes {
	if uint(namespace) >= uint(len(c.namespaces())) {
		return 0
	}
	return c.layOut()[namespace].capacity()
}

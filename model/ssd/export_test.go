package ssd

import "farflash/numeric/units"

// Limits of settings.
const (
	MaxNamespaces = maxNamespaces
	MaxStreams    = maxStreams
	MaxHandles    = maxHandles
)

// Whole makes the map store every page, so that the end check walks them all. It reports whether this changed the map.
func (d *Drive) Whole() bool {
	if d.l2p.chunks != nil {
		return false
	}
	d.l2p.toArrays()
	return true
}

// FailPrograms fails the programs of the pages for which fails returns true.
func (d *Drive) FailPrograms(fails func(page uint32) bool) { d.programFails = fails }

// PoolPages returns the number of pages in a pool of the translation layer, and in a block of it.
func (d *Drive) PoolPages() (pool, block int) {
	return int(d.pools.flash.PagesPerPlane()), d.pools.flash.PagesPerBlock
}

// GroupOf returns the reclaim group that stores a logical page, or -1.
func (d *Drive) GroupOf(l int64) int {
	page := d.l2p.get(uint32(l))
	if page >= trimmed {
		return -1
	}
	pool, _, in := d.split(page)
	plane, _ := d.pools.at(pool, in)
	g := &d.cfg.Geometry
	return int(plane) / g.PlanesPerDie / (g.Dies() / d.cfg.FDP.Groups)
}

// Parts is the sum of a breakdown's parts.
func (b *Breakdown) Parts() units.Total { return partsOf(b) }

// Namespaces returns the number of namespaces.
func (d *Drive) Namespaces() int { return len(d.ns) }

// LogicalSize returns the size that the host can address, summed over all namespaces.
func (d *Drive) LogicalSize() units.Bytes {
	total := units.Bytes(0)
	for i := range d.ns {
		total += d.ns[i].capacity()
	}
	return total
}

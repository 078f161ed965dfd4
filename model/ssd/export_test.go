package ssd

import "farflash/numeric/units"

// Whole has the map keep every page, so that the end check walks them all. It reports whether it did not before.
func (d *Drive) Whole() bool {
	if d.l2p.chunks != nil {
		return false
	}
	d.l2p.toArrays()
	return true
}

// FailPrograms has the programs of pages fail of which fails says so.
func (d *Drive) FailPrograms(fails func(page uint32) bool) { d.programFails = fails }

// PoolPages is how many pages a pool of the translation layer has, and a block of it.
func (d *Drive) PoolPages() (pool, block int) {
	return int(d.pools.flash.PagesPerPlane()), d.pools.flash.PagesPerBlock
}

// GroupOf is the reclaim group whose die a logical page lies in, or -1.
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

package ssd

// FailPrograms has the programs of pages fail of which fails says so.
func (d *Drive) FailPrograms(fails func(page uint32) bool) { d.programFails = fails }

// PoolPages is how many pages a pool of the translation layer has, and a block of it.
func (d *Drive) PoolPages() (pool, block int) {
	return int(d.pools.flash.PagesPerPlane()), d.pools.flash.PagesPerBlock
}

package ftl

// Static wear levelling. Data that is never overwritten keeps its blocks from being erased, so the other blocks wear
// instead. When a block lags behind the most worn one by Config.StaticWear erases and its data has stayed for two
// turnovers of the pool (twice as many erases as it has blocks), the data is moved to the most worn free block and the
// block returns to use. The second condition spares blocks that lag but whose data will soon be collected anyway. At
// most one block is started for each erase.

// wearDue reports whether it is time to look for a block to relocate.
func (f *FTL) wearDue(p *pool) bool {
	return f.cfg.StaticWear > 0 && int(p.mostErases) >= f.cfg.StaticWear && p.erases >= p.wearAt
}

// leastWorn returns the block to relocate: the one with the fewest erases and, among equals, the one filled first. If
// there is none it postpones the next search by a sixteenth of a turnover, because a search scans all blocks.
func (f *FTL) leastWorn(p *pool) int32 {
	best := none
	for i := range p.blocks {
		m := &p.blocks[i]
		if m.state != closed && m.state != ranked || int(m.erases)+f.cfg.StaticWear > int(p.mostErases) ||
			p.erases-uint32(m.pending) < 2*uint32(f.blocks) {
			continue
		}
		if best == none || m.erases < p.blocks[best].erases ||
			m.erases == p.blocks[best].erases && uint32(m.pending) < uint32(p.blocks[best].pending) {
			best = int32(i)
		}
	}
	if best == none {
		p.wearAt = p.erases + uint32(f.blocks)/16 + 1
	}
	return best
}

// EraseHistogram returns, at index n, how many blocks have been erased n times.
func (f *FTL) EraseHistogram() []int64 {
	h := []int64{0}
	for _, p := range f.pools {
		h[0] += int64(f.blocks) - int64(len(p.blocks))
		for i := range p.blocks {
			n := int(p.blocks[i].erases)
			for n >= len(h) {
				h = append(h, 0)
			}
			h[n]++
		}
	}
	return h
}

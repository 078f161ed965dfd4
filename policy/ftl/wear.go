package ftl

// Static wear levelling: data that is never overwritten keeps its blocks from being
// erased, so the others wear for them. When a block lags behind the most worn one by
// Config.StaticWear erases, and its data has stayed for two turnovers of the pool
// (as many erases as it has blocks, twice), the data is moved to the most worn free
// block and the block comes into use. The second condition leaves alone those that
// lag but hold data which will soon be collected anyway. At most one block is begun
// for each erase.

// wearDue reports whether to look for a block to relocate.
func (f *FTL) wearDue(p *pool) bool {
	return f.cfg.StaticWear > 0 && int(p.mostErases) >= f.cfg.StaticWear && p.erases >= p.wearAt
}

// leastWorn returns the block to relocate, the one with the fewest erases, which has
// stayed longest among equals. When there is none it lets a sixteenth of a turnover
// pass before the next look.
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

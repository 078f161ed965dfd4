package ftl

import "slices"

// Renew asks that the data of a block be moved, for a reason that only the driver knows: they get old, or are read
// too much. Next begins with it when it can afford to, before it looks for wear, as any victim, with Reason Renewal.
// It reports false, and nothing changes, if the block is no candidate for collection (it is free, written, or
// collected already) or was asked for already.
func (f *FTL) Renew(b Block) bool {
	pool, i := int(b)/int(f.blocks), int32(int(b)%int(f.blocks))
	if p := f.pools[pool]; int(i) >= len(p.blocks) || p.blocks[i].state != closed && p.blocks[i].state != ranked ||
		slices.Contains(p.renewals, i) {
		return false
	}
	p := f.touch(pool)
	p.renewals = append(p.renewals, i)
	p.wake = true
	f.changed(pool, p)
	return true
}

// startRenewal begins the first of the blocks that Renew named.
func (f *FTL) startRenewal(p *pool) bool {
	for len(p.renewals) > 0 {
		b := p.renewals[0]
		if m := &p.blocks[b]; m.state == closed || m.state == ranked {
			return f.begin(p, b, Renewal)
		}
		p.renewals = p.renewals[1:] // it fails meanwhile, and is moved for that
	}
	return false
}

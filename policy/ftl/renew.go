package ftl

import "slices"

// Renew asks for the data of a block to be moved for a reason that only the driver knows, such as retention age or read
// disturb. Next starts it as a victim with Reason Renewal when it can afford to, ahead of wear levelling. Renew returns
// false, without effect, if the block is no candidate for collection (it is free, being written or already a victim) or
// has been named before.
func (f *FTL) Renew(b Block) bool {
	pool, i := f.poolOf(b), int32(int(b)%int(f.blocks))
	if p := f.at(pool); int(i) >= len(p.blocks) || p.blocks[i].state != closed && p.blocks[i].state != ranked ||
		slices.Contains(p.renewals, i) {
		return false
	}
	p := f.touch(pool)
	p.renewals = append(p.renewals, i)
	p.wake = true
	f.changed(pool, p)
	return true
}

// startRenewal starts the first of the blocks named by Renew.
func (f *FTL) startRenewal(p *pool) bool {
	for len(p.renewals) > 0 {
		b := p.renewals[0]
		if m := &p.blocks[b]; m.state == closed || m.state == ranked {
			return f.begin(p, b, Renewal)
		}
		p.renewals = p.renewals[1:] // it has failed since, and is moved for that reason
	}
	return false
}

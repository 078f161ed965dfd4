package ctl

import "farflash/policy/ftl"

// Stored returns the places of the stored parts of the map and of their list, as byte offsets on their devices.
func (p *Pool) Stored() (leaves, list []int64) {
	p.lock()
	defer p.leave()
	c := p.core
	offset := func(at ftl.PPA) int64 {
		_, offset := c.at(at)
		return offset
	}
	c.homes.from(0, func(leaf uint64) bool {
		at, _, _ := c.homes.get(leaf)
		leaves = append(leaves, offset(at))
		return true
	})
	for _, at := range c.list {
		list = append(list, offset(at))
	}
	return leaves, list
}

// Fetch brings the parts of the map that Remap needs for steps into memory, with step executing the devices'
// operations, and keeps them there until the function that it returns is called.
func (p *Pool) Fetch(steps []Step, step func()) (release func()) {
	var pins []uint64
	p.lock()
	for done := true; done; p.lock() {
		if !p.core.leavesFor(steps, &pins, func(error) { done = false }) {
			break
		}
		p.leave()
		for done {
			step()
		}
		done = true
	}
	p.leave()
	return func() {
		p.lock()
		p.core.unpinAll(&pins)
		p.leave()
	}
}

// LeafSums returns the number of pages whose leaves have a checksum, and of those whose checksum is in memory elsewhere
// too, but another.
func (p *Pool) LeafSums(pages uint64) (known, wrong int) {
	p.lock()
	defer p.leave()
	c := p.core
	for page := range pages {
		at := c.Lookup(ftl.LPA(page))
		if at == ftl.NoPPA {
			continue
		}
		sum, ok := c.table.Sum(page, at)
		if !ok {
			continue
		}
		known++
		if is, ok := c.ledger.SumAt(at); ok && !c.table.Matches(is, sum) {
			wrong++
		}
	}
	return known, wrong
}

// Kept returns the memory that keeps changed places for a checkpoint, its limit, and whether writes wait for it.
func (p *Pool) Kept() (bytes, most int64, full bool) {
	p.lock()
	defer p.leave()
	return p.core.body.kept.bytes, p.core.mostKept(), p.core.body.kept.full
}

package ctl

// economise keeps the memory of the map within Config.Map, a little at each call. Only lanes may be using a slot of a
// page that is in no frame, and they see that it is gone.
func (c *core) economise() {
	if c.over() {
		c.table.Fold()
		c.dropSums(dropLooks)
		c.dropLeaves()
	}
}

// dropLeaves drops stored leaves of the table while these and all else take too much memory.
func (c *core) dropLeaves() {
	if c.homes.n > 0 && c.over() {
		c.table.Drop(c.mapBytes()-c.cfg.Map, func(leaf uint64) bool {
			_, _, ok := c.homes.get(leaf)
			return ok && c.keep[leaf] == 0
		})
	}
}

// over reports whether the map takes more memory than Config.Map.
func (c *core) over() bool { return c.cfg.Map > 0 && c.mapBytes() > c.cfg.Map }

// mapBytes returns the memory of the map.
func (c *core) mapBytes() int64 { return c.table.Bytes() + c.homes.bytes() + c.ledger.Bytes() }

// MapBytes returns the memory of the map: the state of pages, and of places.
func (p *Pool) MapBytes() (pages, places int64) {
	p.lock()
	defer p.leave()
	return p.table.Bytes() + p.core.homes.bytes(), p.core.ledger.Bytes()
}

// dropLooks is the number of segments that economise looks at.
const dropLooks = 16

// dropSums drops checksums and owners that the checkpoint in force has. At least a quarter of the memory is theirs.
func (c *core) dropSums(looks int) {
	most := max(c.cfg.Map-c.table.Bytes()-c.homes.bytes(), c.cfg.Map/4)
	c.ledger.Drop(most, looks, func(segment int64) (sums, owners bool) {
		s := &c.segments[segment]
		return s.settled && s.moving == 0, s.settledAll
	})
}

// bareAll reports whether the memory of the map has no space for the checksums of all places. Then those in a
// checkpoint are not even remembered while it is read.
func (c *core) bareAll() bool { return c.cfg.Map > 0 && c.ledger.Places()*4 > c.cfg.Map/4 }

package ctl

// economise keeps the memory of the map within Config.Map, a little at each call. Only lanes may be using a slot of a
// page that is in no frame, and they see that it is gone.
func (c *core) economise() {
	if c.over() {
		c.table.Fold()
		c.dropSums(dropLooks)
	}
}

// over reports whether the map takes more memory than Config.Map.
func (c *core) over() bool { return c.cfg.Map > 0 && c.table.Bytes()+c.ledger.Bytes() > c.cfg.Map }

// MapBytes returns the memory of the map: of what is known of pages, and of places.
func (p *Pool) MapBytes() (pages, places int64) {
	p.lock()
	defer p.leave()
	return p.table.Bytes(), p.core.ledger.Bytes()
}

// dropLooks is the number of segments that economise looks at.
const dropLooks = 16

// dropSums drops checksums and owners that the checkpoint in force has. At least a quarter of the memory is theirs.
func (c *core) dropSums(looks int) {
	c.ledger.Drop(max(c.cfg.Map-c.table.Bytes(), c.cfg.Map/4), looks, func(segment int64) (sums, owners bool) {
		s := &c.segments[segment]
		return s.settled && s.moving == 0, s.settledAll
	})
}

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
func (c *core) over() bool { return c.cfg.Map > 0 && c.table.Loose()+c.ledger.Bytes() > c.cfg.Map }

// dropLooks is the number of segments that economise looks at.
const dropLooks = 16

// dropSums drops checksums that the checkpoint in force has. At least a quarter of the memory is theirs.
func (c *core) dropSums(looks int) {
	c.ledger.Drop(max(c.cfg.Map-c.table.Loose(), c.cfg.Map/4), looks,
		func(segment int64) bool { return c.segments[segment].settled })
}

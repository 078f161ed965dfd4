package ctl

// economise keeps the memory of the map within Config.Map, a little at each call. Nothing is using a slot of a page that
// is in no frame, except lanes, which see that it is gone.
func (c *core) economise() {
	if c.cfg.Map > 0 && c.table.Loose()+c.ledger.Bytes() > c.cfg.Map {
		c.table.Fold()
	}
}

package cluster

import (
	"farflash/model/cluster/put"
	"farflash/numeric/units"
)

// Keys without effect are mistakes: whoever sets one expects it to matter. Only keys that differ from their defaults
// count.

// Unused is a key that is not at its default and has no effect.
type Unused struct {
	Key, Why string
	// Reset sets the key to its default.
	Reset func()
}

// unused collects keys without effect.
type unused []Unused

// hold records a key that differs from its default and has no effect.
func hold[T comparable](list *unused, key string, v *T, def T, acts bool, why string) {
	if !acts && *v != def {
		*list = append(*list, Unused{key, why, func() { *v = def }})
	}
}

// Unused returns the keys that the protocol ignores.
func (c *Config) Unused() []Unused {
	var list unused
	d, t := DefaultConfig(), c.Protocol.traits()
	name := t.Name
	hold(&list, "group", &c.Group, d.Group, t.Finds == put.FindsBidders,
		name+" has no groups that bid; leave it out, or use a protocol such as pull")
	hold(&list, "groups", &c.Groups, d.Groups, t.Several, name+" asks "+asks(t)+"; leave it out, or use pull")
	hold(&list, "ahead", &c.Ahead, d.Ahead, t.Offers,
		"targets of "+name+" send no offers; leave it out, or use pull")
	hold(&list, "bid_width", &c.BidWidth, d.BidWidth, t.Reserves,
		"targets of "+name+" bid no windows; leave it out, or use a protocol such as replicast-m")
	hold(&list, "overcommit", &c.Overcommit, d.Overcommit, t.Grants,
		"targets of "+name+" grant nothing; leave it out, or use grants")
	hold(&list, "link.mark", &c.Link.Mark, d.Link.Mark, t.Marks && c.Core == CoreIdeal, marks(t, c.Core))
	hold(&list, "disk.queue", &c.Disk.Queue, d.Disk.Queue, !t.NoBackPressure || c.Acknowledge == WriteBack,
		"targets of "+name+" never delay data; leave it out, or use acknowledge: write-back, which "+
			"uses it")
	hold(&list, "control.unicast", &c.Control.Unicast, d.Control.Unicast, !t.Reserves,
		"messages of "+name+" have the size of control.replicast; leave it out, or set that")
	hold(&list, "control.replicast", &c.Control.Replicast, d.Control.Replicast, t.Reserves,
		"messages of "+name+" have the size of control.unicast; leave it out, or set that")
	hold(&list, "control.share", &c.Control.Share, d.Control.Share, t.Reserves,
		name+" reserves no share of the links for control messages; leave it out, or use a protocol such as replicast-m")
	return list
}

func asks(t *put.Traits) string {
	if t.Finds == put.FindsBidders {
		return "one group"
	}
	return "no groups"
}

func marks(t *put.Traits, core Core) string {
	if t.Marks && core != CoreIdeal {
		return "the switches of a packet network mark by fabric.ecn; leave it out"
	}
	return t.Name + " marks no frames; leave it out, or use dctcp"
}

// Idle returns the keys that have no effect given the rest of the configuration. reads is whether anything is read.
func (c *Config) Idle(reads bool) []Unused {
	var list unused
	d := DefaultConfig()
	fails := len(c.Failures) > 0
	reads = reads || c.Reads > 0 || fails
	kept := reads || c.Update.Share > 0 // a repair reads a piece as a gateway does
	hold(&list, "read", &c.Read, d.Read, reads, "there are no reads; leave it out, or give reads")
	hold(&list, "objects", &c.Objects, d.Objects, kept, "there are no reads; leave it out, or give reads")
	hold(&list, "hedge_after", &c.HedgeAfter, d.HedgeAfter, reads && c.Read == ReadHedged,
		"no read is hedged; leave it out, or use read: hedged")
	hold(&list, "retry_after", &c.RetryAfter, d.RetryAfter, c.lossy(),
		"no losses, so no retries; leave it out, or give link.loss or failures")
	hold(&list, "repair.detect", &c.Repair.Detect, d.Repair.Detect, fails,
		"no target fails; leave it out, or give failures")
	hold(&list, "repair.streams", &c.Repair.Streams, d.Repair.Streams, fails,
		"no target fails; leave it out, or give failures")
	hold(&list, "repair.disk", &c.Repair.Disk, d.Repair.Disk, fails, "no target fails; leave it out, or give failures")
	hold(&list, "repair.link", &c.Repair.Link, d.Repair.Link, fails, "no target fails; leave it out, or give failures")
	hold(&list, "disk.depth", &c.Disk.Depth, d.Disk.Depth, c.Disk.Model == ModelSSD,
		"a disk of constant rate serves one job at a time; leave it out, or use disk.model: ssd")
	return list
}

func (c *Config) checkUnused(f *units.Faults) {
	for _, u := range c.Unused() {
		f.Hold(false, u.Key, "%s", u.Why)
	}
}

package cluster

import (
	"math"

	"farflash/model/cluster/uses"
	"farflash/sim"
)

// Where the time of what bounds the cluster went: each disk's always, and each link's where links are what allows
// least. At every moment one is used for one thing, so the parts add up to all of the time. Whatever comes first in
// the list of uses takes a time in which several things are so.

// books are all ledgers.
type books struct {
	disks   []uses.Ledger // of each
	links   []uses.Ledger // of gateways or targets, where those bound the cluster
	targets bool          // they are the targets'
	sends   bool          // in the direction from the node
	under   []int32       // chunks under way, by gateway
}

// open opens the books.
func (b *books) open(c *Cluster) {
	b.disks = make([]uses.Ledger, len(c.disks))
	for t := range b.disks {
		b.disks[t].Now = uses.Idle
	}
	b.under = make([]int32, len(c.gateways))
	n := 0
	switch binds, sends := c.binding(); binds {
	case boundTargets:
		n, b.targets, b.sends = c.cfg.used(), true, sends
	case boundGateways:
		n, b.sends = len(c.gateways), sends
	}
	if n > 0 {
		b.links = make([]uses.Ledger, n)
	}
	for k := range b.links {
		b.links[k].Now = uses.Idle
	}
}

// binding is which resource allows least, of disks and links, and in which direction of links. Links that do not
// queue carry any number of messages, and are none; those of a packet network are its own.
func (c *Cluster) binding() (resource string, sends bool) {
	least := Bound{boundDisks, math.Inf(1)}
	for _, b := range c.Bounds() {
		switch {
		case b.Chunks >= least.Chunks || b.Resource == boundOutstanding:
		case b.Resource == boundDisks || b.Resource == boundDrives:
			least = Bound{boundDisks, b.Chunks}
		case c.cfg.Control.Queued && c.cfg.Core == CoreIdeal:
			least = b
		}
	}
	fromGateways, fromTargets, toGateways, toTargets := c.crossings()
	if least.Resource == boundTargets {
		return boundTargets, fromTargets > toTargets
	}
	return least.Resource, fromGateways >= toGateways
}

// looks brings the books of a target up to date after something has happened there.
func (c *Cluster) looks(node int32) {
	t := node - int32(len(c.gateways))
	if t < 0 {
		c.turnsLink(node)
		return
	}
	// A disk that works goes on until it is done, which turns says.
	for i := t * int32(c.cfg.Disk.Count); i < (t+1)*int32(c.cfg.Disk.Count); i++ {
		if l := &c.books.disks[i]; l.Now > uses.Repair {
			l.Turn(c.eng.Now(), c.diskUse(i))
		}
	}
	c.turnsLink(node)
}

// turns brings the books of a target's disks up to date when they have something else to do.
func (c *Cluster) turns(target int32) {
	for i := target * int32(c.cfg.Disk.Count); i < (target+1)*int32(c.cfg.Disk.Count); i++ {
		c.turnsDisk(i)
	}
}

// turnsDisk is turns of one disk.
func (c *Cluster) turnsDisk(i int32) {
	c.books.disks[i].Turn(c.eng.Now(), c.diskUse(i))
	c.turnsLink(c.nodeOfTarget(c.disks[i].target))
}

// turnsLink brings the books of a node's link up to date.
func (c *Cluster) turnsLink(node int32) {
	b := &c.books
	if b.links == nil {
		return
	}
	k := node
	if b.targets {
		k -= int32(len(c.gateways))
	}
	if k < 0 || int(k) >= len(b.links) {
		return // the other end's
	}
	end, parcel := &c.in[node], c.in[node].parcel
	if b.sends {
		end, parcel = &c.out[node], c.out[node].parcel
	}
	b.links[k].Turn(c.eng.Now(), c.linkUse(node, end, parcel))
}

// comes: data comes in at a node from one time, which is at most a trip away, to another, where links do not queue.
// Frames that are less than that apart are taken as one.
func (c *Cluster) comes(node int32, from, to sim.Time) {
	t := node - int32(len(c.gateways))
	if t < 0 {
		return
	}
	l := &c.books.disks[t] // with several disks links queue
	l.Turn(c.eng.Now(), c.diskUse(t))
	if l.To <= c.eng.Now() {
		l.From = from
	}
	l.To = max(l.To, to)
}

// works reports whether any of a target's disks does something.
func (c *Cluster) works(target int32) bool {
	n := int32(c.cfg.Disk.Count)
	for i := target * n; i < (target+1)*n; i++ {
		if c.diskUse(i) <= uses.Repair {
			return true
		}
	}
	return false
}

// diskUse is what a disk does.
func (c *Cluster) diskUse(at int32) uses.Use {
	d := &c.disks[at]
	target, t := d.target, &c.targets[d.target]
	i := d.current
	if v := d.drive; v != nil && len(v.inside) > 0 {
		i = v.inside[0]
	}
	switch {
	case t.down:
		return uses.Down
	case i >= 0 && c.jobs.Items[i].repairs:
		return uses.Repair
	case i >= 0:
		return uses.Work
	}
	node := c.nodeOfTarget(target)
	if c.in[node].busy && c.parcels.Items[c.in[node].parcel].data {
		return uses.Receiving
	}
	return c.expected(target)
}

// expected is what a target waits for that does nothing.
func (c *Cluster) expected(target int32) uses.Use {
	switch promised, open := c.forecast.Expects(target); {
	case promised:
		return uses.Reserved
	case open:
		return uses.Tentative
	}
	return uses.Idle
}

// linkUse is what one direction of a node's link does; the parcel is what it carries if it is busy.
func (c *Cluster) linkUse(node int32, end *port, parcel int32) uses.Use {
	t := node - int32(len(c.gateways))
	switch {
	case t >= 0 && c.targets[t].down:
		return uses.Down
	case end.busy && c.parcels.Items[parcel].data:
		return uses.Work
	case end.busy:
		return uses.Control
	case t < 0 && c.books.under[node] > 0 || t >= 0 && c.books.sends && c.works(t):
		return uses.Waiting
	case t < 0 || c.books.sends:
		return uses.Idle
	}
	return c.expected(t)
}

// Binding is what bounds the cluster, disks or links.
func (c *Cluster) Binding() string {
	name, _ := c.binding()
	return name
}

// Speeds are how many pieces a second each target's disks can write or read.
func (c *Cluster) Speeds() []float64 {
	out := make([]float64, c.cfg.used())
	for t := range out {
		out[t] = 1 / c.writeTime(int32(t)).Seconds()
	}
	return out
}

// Groups is how many negotiating groups the cluster has; 0 if its protocol has none.
func (c *Cluster) Groups() int {
	if c.cfg.candidates() == 0 {
		return 0
	}
	return c.bus.GroupCount()
}

// Spent is what the time of each target's disks that chunks go to until a time went to, the sum over them, and of
// each link if links bound the cluster. The cluster has run up to that time.
func (c *Cluster) Spent(at sim.Time) (disks, links []uses.Spent) {
	settled := func(list []uses.Ledger) []uses.Spent {
		out := make([]uses.Spent, len(list))
		for k := range list {
			l := list[k]
			l.Turn(at, l.Now)
			out[k] = l.Spent
		}
		return out
	}
	disks, links = settled(c.books.disks[:c.cfg.used()*c.cfg.Disk.Count]), settled(c.books.links)
	if n := c.cfg.Disk.Count; n > 1 {
		for t := range c.cfg.used() {
			sum := disks[t*n]
			for k := 1; k < n; k++ {
				for u := range sum {
					sum[u] += disks[t*n+k][u]
				}
			}
			disks[t] = sum
		}
		disks = disks[:c.cfg.used()]
	}
	return disks, links
}

package cluster

import (
	"math"

	"farflash/model/cluster/uses"
	"farflash/sim"
)

// Time accounting of the bottleneck: of every disk always, and of every link if links are the bottleneck. At each
// moment a resource is in exactly one use, so the parts add up to the total time. If several uses apply, the first one
// in the list of uses counts.

// books is the set of all ledgers.
type books struct {
	disks   []uses.Ledger // by disk
	links   []uses.Ledger // by gateway or target, if their links are the bottleneck
	targets bool          // links are the targets', not the gateways'
	sends   bool          // links are accounted in the sending direction
	under   []int32       // chunks in flight, by gateway
}

// open initializes the books.
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

// binding returns the tightest resource, of disks and links, and the direction if it is links. Links without queues
// carry any number of messages and never bind; the links of a packet network are not the cluster's.
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

// looks updates the books of a target after an event there.
func (c *Cluster) looks(node int32) {
	t := node - int32(len(c.gateways))
	if t < 0 {
		c.turnsLink(node)
		return
	}
	// A working disk stays so until its job completes, which turnsDisk handles.
	for i := t * int32(c.cfg.Disk.Count); i < (t+1)*int32(c.cfg.Disk.Count); i++ {
		if l := &c.books.disks[i]; l.Now > uses.Repair {
			l.Turn(c.eng.Now(), c.diskUse(i))
		}
	}
	c.turnsLink(node)
}

// turns updates the books of a target's disks when their jobs change.
func (c *Cluster) turns(target int32) {
	for i := target * int32(c.cfg.Disk.Count); i < (target+1)*int32(c.cfg.Disk.Count); i++ {
		c.turnsDisk(i)
	}
}

// turnsDisk updates the books of one disk.
func (c *Cluster) turnsDisk(i int32) {
	c.books.disks[i].Turn(c.eng.Now(), c.diskUse(i))
	c.turnsLink(c.nodeOfTarget(c.disks[i].target))
}

// turnsLink updates the books of a node's link.
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
		return // the links of the other side are accounted
	}
	end, parcel := &c.in[node], c.in[node].parcel
	if b.sends {
		end, parcel = &c.out[node], c.out[node].parcel
	}
	b.links[k].Turn(c.eng.Now(), c.linkUse(node, end, parcel))
}

// comes announces data that a node receives from one time, which is at most a trip away, to another, where links do not
// queue. Frames less than a trip apart count as one interval.
func (c *Cluster) comes(node int32, from, to sim.Time) {
	t := node - int32(len(c.gateways))
	if t < 0 {
		return
	}
	l := &c.books.disks[t] // links always queue if targets have several disks
	l.Turn(c.eng.Now(), c.diskUse(t))
	if l.To <= c.eng.Now() {
		l.From = from
	}
	l.To = max(l.To, to)
}

// works reports whether any of a target's disks is working.
func (c *Cluster) works(target int32) bool {
	n := int32(c.cfg.Disk.Count)
	for i := target * n; i < (target+1)*n; i++ {
		if c.diskUse(i) <= uses.Repair {
			return true
		}
	}
	return false
}

// diskUse returns the current use of a disk.
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

// expected returns what an idle target waits for.
func (c *Cluster) expected(target int32) uses.Use {
	switch promised, open := c.forecast.Expects(target); {
	case promised:
		return uses.Reserved
	case open:
		return uses.Tentative
	}
	return uses.Idle
}

// linkUse returns the current use of one direction of a node's link; parcel is the one on it if end is busy.
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

// Binding names the bottleneck: disks, or the links of gateways or targets.
func (c *Cluster) Binding() string {
	name, _ := c.binding()
	return name
}

// Speeds returns the number of pieces per second that each target's disks can write or read.
func (c *Cluster) Speeds() []float64 {
	out := make([]float64, c.cfg.used())
	for t := range out {
		out[t] = 1 / c.writeTime(int32(t)).Seconds()
	}
	return out
}

// Groups returns the number of negotiating groups; 0 if the protocol has none.
func (c *Cluster) Groups() int {
	if c.cfg.candidates() == 0 {
		return 0
	}
	return c.bus.GroupCount()
}

// Spent returns how the disks of each target that chunks go to (the sum over its disks) and each link, if links are the
// bottleneck, have spent their time up to at. The cluster must have run up to at.
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

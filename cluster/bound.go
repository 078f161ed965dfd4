package cluster

import (
	"farflash/sim"
)

// Bound is what a resource allows.
type Bound struct {
	Resource string
	Chunks   float64 // a second, over the whole cluster
}

// Bounds are what the resources allow that every chunk needs, each by itself: the disks write each replica, the targets'
// links bring it, the gateways' links send what the protocol sends, and a gateway with so many chunks outstanding cannot do
// more than these in the time that one takes when it is alone. Headers, and for Replicast the share that is kept for control
// messages, are left out of the links' rates.
func (c *Cluster) Bounds() []Bound {
	k := float64(c.cfg.Replicas)
	rate := c.d.DataRate
	if c.cfg.Control.Queued {
		rate = c.d.Effective
	}
	data := c.d.Send(c.cfg.Chunk, rate).Seconds() // of a chunk on a link
	copies := k
	if c.cfg.Protocol.multicasts() {
		copies = 1
	}
	return []Bound{
		{"disks", float64(c.cfg.used()) / (k * c.d.DiskChunk.Seconds())},
		{"targets' links", float64(c.cfg.used()) / (k * data)},
		{"gateways' links", float64(c.cfg.Gateways) / (copies * data)},
		{"chunks outstanding", float64(c.cfg.Gateways*c.cfg.Outstanding) / c.Floor().Seconds()},
	}
}

// Bound is the least of the Bounds.
func (c *Cluster) Bound() Bound {
	var least Bound
	for i, b := range c.Bounds() {
		if i == 0 || b.Chunks < least.Chunks {
			least = b
		}
	}
	return least
}

// Floor is how long a chunk takes that is alone in the cluster.
func (c *Cluster) Floor() sim.Time { return c.proto.floor() }

// Busy is how long each disk, each gateway's sending and each target's receiving link have been busy until a time.
func (c *Cluster) Busy(at sim.Time) (disks, sent, got []sim.Time) {
	for i := range c.targets {
		d := &c.targets[i].disk
		disks = append(disks, d.busy-d.backlog(at))
		got = append(got, c.in[int(c.nodeOfTarget(int32(i)))].used)
	}
	for i := range c.gateways {
		sent = append(sent, c.out[i].used)
	}
	return disks, sent, got
}

// Events is how many events have been handled.
func (c *Cluster) Events() uint64 { return c.eng.Events() }

package cluster

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// NodeBytes is what a node's link has carried since the start. What is multicast counts once where it is sent and
// once at each receiver; a packet network has no multicast, so there it is sent once for each.
type NodeBytes struct {
	Sent    units.Bytes // handed to the link
	Data    units.Bytes // received
	Control units.Bytes // received
}

// sends counts a parcel that a node hands to its link.
func (c *Cluster) sends(node int32, p *parcel) {
	times := units.Bytes(1)
	if c.net != nil {
		times = units.Bytes(p.n)
	}
	c.bytes[node].Sent += times * p.size
}

// gets counts a parcel that a node has received.
func (c *Cluster) gets(node int32, p *parcel) {
	if p.data {
		c.bytes[node].Data += p.size
	} else {
		c.bytes[node].Control += p.size
	}
}

// AppendBytes appends what each node's link has carried, gateways first.
func (c *Cluster) AppendBytes(dst []NodeBytes) []NodeBytes { return append(dst, c.bytes...) }

// SumBytes is what the links of gateways and of targets have carried.
func (c *Cluster) SumBytes() (gateways, targets NodeBytes) {
	for i := range c.bytes {
		sum := &gateways
		if i >= len(c.gateways) {
			sum = &targets
		}
		sum.Sent += c.bytes[i].Sent
		sum.Data += c.bytes[i].Data
		sum.Control += c.bytes[i].Control
	}
	return gateways, targets
}

// OnLink is how long so many bytes are on a link.
func (c *Cluster) OnLink(n units.Bytes) sim.Time { return c.d.Effective.TimeFor(n) }

// DiskFrames is how many frames wait for the disks now, all together, and for the one with most.
func (c *Cluster) DiskFrames() (sum, most int) {
	for i := range c.targets {
		n := c.d.QueuedFrames(c.backlogOf(int32(i)))
		sum += n
		most = max(most, n)
	}
	return sum, most
}

// Nodes is how many gateways and how many targets there are.
func (c *Cluster) Nodes() (gateways, targets int) { return len(c.gateways), len(c.targets) }

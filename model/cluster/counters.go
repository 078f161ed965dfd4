package cluster

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// NodeBytes is the traffic on a node's link since the start. A multicast counts once at its sender and once at each
// receiver; a packet network has no multicast, so there it counts once at the sender for each receiver.
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

// AppendBytes appends the traffic of each node's link to dst, gateways first.
func (c *Cluster) AppendBytes(dst []NodeBytes) []NodeBytes { return append(dst, c.bytes...) }

// SumBytes returns the traffic of the links of all gateways and of all targets.
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

// OnLink returns the transmission time of n bytes on a link.
func (c *Cluster) OnLink(n units.Bytes) sim.Time { return c.d.Effective.TimeFor(n) }

// DiskFrames returns the number of frames queued for the disks: the sum over targets, and the longest queue.
func (c *Cluster) DiskFrames() (sum, most int) {
	for i := range c.targets {
		n := c.d.QueuedFrames(c.backlogOf(int32(i)))
		sum += n
		most = max(most, n)
	}
	return sum, most
}

// Nodes returns the number of gateways and of targets.
func (c *Cluster) Nodes() (gateways, targets int) { return len(c.gateways), len(c.targets) }

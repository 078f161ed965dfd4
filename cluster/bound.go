package cluster

import (
	"farflash/sim"
	"farflash/units"
)

// The resources.
const (
	boundDisks       = "disks"
	boundDrives      = "drives"
	boundTargets     = "targets' links"
	boundGateways    = "gateways' links"
	boundOutstanding = "chunks outstanding"
)

// Bound is what a resource allows.
type Bound struct {
	Resource string
	Chunks   float64 // a second, over the whole cluster
}

// Bounds are what the resources allow that every chunk needs, each by itself: the disks write each piece that is put and read those that are got,
// the links of targets and gateways carry what the protocol sends over them, in each direction, and a gateway of a closed loop with so many chunks
// outstanding cannot do more than these in the time that one takes when it is alone. Headers, and for Replicast the share that is kept for
// control messages, are left out of the links' rates.
func (c *Cluster) Bounds() []Bound { return c.BoundsWithout(0) }

// BoundsWithout are the Bounds of what is left when so many targets are not there.
func (c *Cluster) BoundsWithout(failed int) []Bound {
	rate := c.d.DataRate
	if c.cfg.Control.Queued {
		rate = c.d.Effective
	}
	get := float64(c.cfg.Reads)
	piece := c.mean(func(size units.Bytes) float64 { return c.d.Send(size, rate).Seconds() }) // on a link
	fromGateways, fromTargets, read, written := c.crossings()
	gateways, targets := float64(c.cfg.Gateways), float64(max(c.cfg.used()-failed, 0))
	disks, fastest := 0.0, c.bus.Alone
	for i := range c.disks[:c.cfg.used()*c.cfg.Disk.Count] {
		disks += 1 / c.mean(func(size units.Bytes) float64 { return c.takes(int32(i), size).Seconds() })
		fastest = min(fastest, c.takes(int32(i), c.piece))
	}
	if failed > 0 {
		disks *= targets / float64(c.cfg.used())
	}
	list := []Bound{{boundDisks, disks / (written + read)}}
	if c.cfg.Disk.Model == ModelSSD {
		list = list[:0]
		if most := c.ceiling; most.Write > 0 && most.Read > 0 {
			list = append(list, Bound{boundDrives, targets * float64(c.cfg.Disk.Count) / max(written*c.mean(func(size units.Bytes) float64 { return most.Write.TimeFor(size).Seconds() }), read*c.mean(func(size units.Bytes) float64 { return most.Read.TimeFor(size).Seconds() }))})
		}
	}
	add := func(resource string, nodes, pieces float64) {
		if pieces > 0 {
			list = append(list, Bound{resource, nodes / (pieces * piece)})
		}
	}
	add(boundTargets, targets, max(written, fromTargets))
	add(boundGateways, gateways, max(fromGateways, read))
	if !c.cfg.Load.open() && c.load.source == nil && get == 0 && len(c.cfg.Sizes) == 0 && c.cfg.Update.Share == 0 {
		list = append(list, Bound{boundOutstanding, gateways * float64(c.cfg.Outstanding) / (c.Floor() - c.bus.KeepTime(c.bus.Alone) + c.bus.KeepTime(fastest)).Seconds()})
	}
	return list
}

// crossings are how many pieces of a chunk cross the links in each direction, mean over puts and gets.
func (c *Cluster) crossings() (fromGateways, fromTargets, toGateways, toTargets float64) {
	get := float64(c.cfg.Reads)
	put := 1 - get
	written, read := float64(put*float64(c.copies)), float64(get*float64(c.cfg.pieces()))
	if share := float64(c.cfg.Update.Share); share > 0 {
		before, after := c.cfg.parts().Mean()
		written = float64(written*(1-share)) + float64(put*share*after)
		read += float64(put * share * before)
	}
	switch {
	case c.cfg.Protocol.traits().Multicasts && c.cfg.Core == CoreIdeal:
		return put, read, read, written // one multicast
	case c.bus.Chained():
		return put, read + float64(put*float64(c.copies-1)), read, written
	}
	return written, read, read, written
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
func (c *Cluster) Floor() sim.Time { return c.forecast.Floor() }

// Busy is how long each target's disks, mean over them, each gateway's sending and each target's receiving link have been busy until a time.
func (c *Cluster) Busy(at sim.Time) (disks, sent, got []sim.Time) {
	// The peers count a write as soon as it is queued, and what is on a link as soon as it is sent.
	ends := at
	if c.cfg.Compat != CompatNone {
		ends = sim.Forever
	}
	for i := range c.targets {
		used := sim.Time(0)
		for k := range c.disksOf(int32(i)) {
			d := &c.disksOf(int32(i))[k]
			if c.cfg.Compat != CompatNone {
				used += d.busy + d.waiting
			} else {
				used += d.used(at)
			}
		}
		disks = append(disks, used/sim.Time(c.cfg.Disk.Count))
		node := c.nodeOfTarget(int32(i))
		in := c.in[node].until(ends)
		if c.net != nil {
			_, in = c.net.Busy(node, at)
		}
		got = append(got, in)
	}
	for i := range c.gateways {
		out := c.out[i].until(ends)
		if c.net != nil {
			out, _ = c.net.Busy(int32(i), at)
		}
		sent = append(sent, out)
	}
	return disks, sent, got
}

// Events is how many events have been handled.
func (c *Cluster) Events() uint64 { return c.eng.Events() }

package cluster

import (
	"farflash/model/cluster/put"
	"farflash/numeric/units"
	"farflash/sim"
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

// Bounds are what the resources allow that every chunk needs, each by itself: the disks write each piece that is put
// and read those that are got, the links of targets and gateways carry what the protocol sends over them, in each
// direction, and a gateway of a closed loop with so many chunks outstanding cannot do more than these in the least
// time that one takes. Headers, and for Replicast the share that is kept for control messages, are left out of the
// links' rates. A packet network says what its links carry.
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
	targets := float64(max(c.cfg.used()-failed, 0))
	disks := 0.0
	for i := range c.disks[:c.cfg.used()*c.cfg.Disk.Count] {
		disks += 1 / c.mean(func(size units.Bytes) float64 { return c.takes(int32(i), size).Seconds() })
	}
	if failed > 0 {
		disks *= targets / float64(c.cfg.used())
	}
	list := []Bound{{boundDisks, disks / (written + read)}}
	if c.cfg.Disk.Model == ModelSSD {
		list = list[:0]
		if most := c.ceiling; most.Write > 0 && most.Read > 0 {
			list = append(list, Bound{boundDrives,
				targets * float64(c.cfg.Disk.Count) /
					max(written*c.mean(func(size units.Bytes) float64 { return most.Write.TimeFor(size).Seconds() }),
						read*c.mean(func(size units.Bytes) float64 { return most.Read.TimeFor(size).Seconds() }))})
		}
	}
	add := func(resource string, links, pieces float64) {
		if pieces > 0 {
			list = append(list, Bound{resource, links / (pieces * piece)})
		}
	}
	first, used := int32(len(c.gateways)), int32(c.cfg.used())
	add(boundTargets, c.links(first, first+used, rate)*targets/float64(used), max(written, fromTargets))
	add(boundGateways, c.links(0, first, rate), max(fromGateways, read))
	if !c.cfg.Load.open() && c.load.source == nil && get == 0 && len(c.cfg.Sizes) == 0 && c.cfg.Update.Share == 0 {
		list = append(list, Bound{boundOutstanding, float64(c.cfg.Gateways*c.cfg.Outstanding) / c.Least().Seconds()})
	}
	return list
}

// links are how many links of a rate nodes have, from one to before another, or what carries as much.
func (c *Cluster) links(from, to int32, rate units.BitRate) float64 {
	if c.net == nil {
		return float64(to - from)
	}
	sum := 0.0
	for node := from; node < to; node++ {
		sum += float64(c.net.Rate(node))
	}
	return sum / float64(rate)
}

// Least is the least time that a chunk can take which is put: its way is the shortest, and its disks are the fastest.
// A drive may take in no time what it has room for.
func (c *Cluster) Least() sim.Time {
	p := c.bus.Plan
	if c.net != nil {
		p = c.swiftest()
	}
	// Of several chunks the control messages of one go before the data of others, and a window that is asked for anew
	// may be at the same time as another.
	p.Pass = c.net != nil || c.cfg.Outstanding > 1 || c.cfg.Choosy || c.cfg.Protocol == ReplicastHDouble
	for i := range c.disks[:c.cfg.used()*c.cfg.Disk.Count] {
		if c.disks[i].drive != nil {
			p.Alone = 0
			break
		}
		p.Alone = min(p.Alone, c.takes(int32(i), c.piece))
	}
	return c.forecast.Floor(&p)
}

// swiftest is the plan by which nothing takes longer than it can in the network: each node has the links of the one
// that has most, and all messages the shortest way.
func (c *Cluster) swiftest() put.Plan {
	cfg := c.cfg
	cfg.Link.Rate, cfg.Link.Overhead = c.d.Effective, 0 // protocols pace by that what they pace
	for node := range int32(len(c.gateways) + len(c.targets)) {
		cfg.Link.Rate = max(cfg.Link.Rate, c.net.Rate(node))
	}
	frame := min(c.piece, cfg.Link.Frame)
	cfg.Link.Trip = min(c.net.Trip(c.control), c.net.Trip(frame), c.net.Trip((c.piece-1)%frame+1))
	p, err := cfg.plan(c.seed)
	if err != nil {
		panic("cluster: faster links make a plan impossible: " + err.Error()) // what depends on them only gets shorter
	}
	p.Settle()
	return p
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
func (c *Cluster) Floor() sim.Time { return c.forecast.Floor(&c.bus.Plan) }

// Busy is how long each target's disks, mean over them, each gateway's sending and each target's receiving link have
// been busy until a time.
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

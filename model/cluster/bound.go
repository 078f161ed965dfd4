package cluster

import (
	"math"
	"slices"

	"farflash/model/cluster/put"
	"farflash/numeric/units"
	"farflash/sim"
)

// Names of the resources that Bounds reports.
const (
	boundDisks       = "disks"
	boundDrives      = "drives"
	boundTargets     = "targets' links"
	boundGateways    = "gateways' links"
	boundOutstanding = "chunks outstanding"
)

// Bound is the throughput ceiling that one resource imposes.
type Bound struct {
	Resource string
	Chunks   float64 // per second, over the whole cluster
}

// Bounds returns the throughput ceiling of every resource that each chunk uses, each taken alone. The disks write every
// piece of a put and read every piece of a get; the links of targets and gateways carry, in each direction, whatever
// the protocol sends over them; and a closed-loop gateway with n chunks outstanding cannot complete more than n in the
// least time one takes. Headers are excluded from the link rates, and so is the share that Replicast reserves for
// control messages. With a packet network, the network reports the capacity of its links. A resource that a chunk
// occupies for no time, as SURGE's links do with a chunk of one byte, imposes no ceiling and is left out.
func (c *Cluster) Bounds() []Bound { return c.BoundsWithout(0) }

// BoundsWithout returns the Bounds of the cluster with the given number of targets failed.
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
	// Failed targets take the mean share of the disks with them.
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
	return slices.DeleteFunc(list, func(b Bound) bool { return math.IsInf(b.Chunks, 1) })
}

// links returns the capacity of the links of nodes [from, to), expressed in links of the given rate.
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

// Least returns a lower bound on the time to put a chunk: shortest path, fastest disks. A drive may absorb a piece in
// no time while its buffer has space.
func (c *Cluster) Least() sim.Time {
	p := c.bus.Plan
	if c.net != nil {
		p = c.swiftest()
	}
	// With several chunks in flight, the control messages of one overtake the data of others, and a renewed request may
	// be granted a window at the same time as another.
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

// swiftest returns a plan whose times are lower bounds for the network: every node has the links of the best-connected
// node, and every message takes the shortest path.
func (c *Cluster) swiftest() put.Plan {
	cfg := c.cfg
	cfg.Link.Rate, cfg.Link.Overhead = c.d.Effective, 0 // protocols keep the rate that they pace at
	for node := range int32(len(c.gateways) + len(c.targets)) {
		cfg.Link.Rate = max(cfg.Link.Rate, c.net.Rate(node))
	}
	frame := min(c.piece, cfg.Link.Frame)
	cfg.Link.Trip = min(c.net.Trip(c.control), c.net.Trip(frame), c.net.Trip((c.piece-1)%frame+1))
	p, err := cfg.plan(c.seed)
	if err != nil {
		// Faster links only shorten the times that depend on them.
		panic("cluster: faster links make a plan impossible: " + err.Error())
	}
	p.Settle()
	return p
}

// crossings returns the mean number of a chunk's pieces that cross the links in each direction, averaged over puts and
// gets.
func (c *Cluster) crossings() (fromGateways, fromTargets, toGateways, toTargets float64) {
	get := float64(c.cfg.Reads)
	put := 1 - get
	written, read := float64(put*float64(c.copies)), float64(get*float64(c.cfg.pieces()))
	if share := float64(c.cfg.Update.Share); share > 0 {
		before, after := c.cfg.parts().mean()
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

// Bound returns the tightest of the Bounds. A drive without a ceiling of its own still has links, so there is one.
func (c *Cluster) Bound() Bound {
	least := Bound{Chunks: math.Inf(1)}
	for _, b := range c.Bounds() {
		if b.Chunks < least.Chunks {
			least = b
		}
	}
	return least
}

// Floor returns the time that a chunk takes when it is alone in the cluster.
func (c *Cluster) Floor() sim.Time { return c.forecast.Floor(&c.bus.Plan) }

// Busy returns the busy time until at: of each target's disks (their mean), of each gateway's transmit link and of each
// target's receive link.
func (c *Cluster) Busy(at sim.Time) (disks, sent, got []sim.Time) {
	// The peers count a write as soon as it is queued, and a transmission as soon as it starts.
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

// Events returns the number of events handled.
func (c *Cluster) Events() uint64 { return c.eng.Events() }

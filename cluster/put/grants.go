package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// grants is receiver-driven transport over hashed placement, in the manner of Homa (Montazeri et al., SIGCOMM 2018) and NDP (Handley et al., SIGCOMM 2017). A gateway
// sends all replicas at the same time, of each as much at once as a link carries in a round trip; the rest when the target grants it. A target
// grants to the replicas of which the least is missing, a few at a time, so much ahead that its link does not idle; and not while its disk has as much
// waiting as it may. It leaves out the priorities of Homa's packets and the trimming of NDP's.
type grants struct {
	c     *Cluster
	d     *reserve.Durations
	pick  chooser
	sends [][maxReplicas]transfer // by chunk
	come  []arrivals              // of targets
	clock []sim.Timer             // of targets: when the disk has room
	reach units.Bytes             // what is granted ahead
	node  [1]int32
}

// transfer is a replica on its way, as its gateway sees it.
type transfer struct{ sent, granted units.Bytes }

// Kinds of control messages of grants.
const (
	granted uint8 = iota
	grantKept
	grantCancel
)

func newGrants(c *Cluster, d *reserve.Durations) *grants {
	p := &grants{c: c, d: d, come: make([]arrivals, len(c.targets))}
	p.pick = chooser{c: c, chosen: p.chosen, coming: func(t int32) int { return len(p.come[t]) }}
	roundTrip := 2*d.Trip + d.Control
	p.reach = units.Bytes(int64(roundTrip/d.Frame)+2) * d.FrameSize
	for t := range c.targets {
		p.clock = append(p.clock, c.eng.NewTimer(c.self, c.here, evTimer, uint32(t)))
	}
	return p
}

// begin implements protocol.
func (p *grants) begin(i int32) {
	for int(i) >= len(p.sends) {
		p.sends = append(p.sends, [maxReplicas]transfer{})
	}
	p.sends[i] = [maxReplicas]transfer{}
	p.pick.choose(i)
}

// chosen has the gateway send what needs no grant.
func (p *grants) chosen(i int32) {
	for k := range p.c.chunks[i].n {
		p.grant(i, int(k), min(p.reach, p.c.piece))
	}
}

// grant lets a gateway send a replica up to an offset.
func (p *grants) grant(i int32, k int, upTo units.Bytes) {
	c := p.c
	x, s := &c.chunks[i], &p.sends[i][k]
	s.granted = max(s.granted, upTo)
	p.node[0] = c.nodeOfTarget(x.targets[k])
	for s.sent < s.granted {
		size := min(c.cfg.Link.Frame, s.granted-s.sent)
		s.sent += size
		c.send(x.gateway, i, x.id, uint32(i), size, p.node[:])
	}
}

// message implements protocol.
func (p *grants) message(m *message) {
	c := p.c
	if p.pick.message(m) {
		return
	}
	switch m.kind {
	case granted:
		if c.chunks[m.chunk].id == m.id {
			p.grant(m.chunk, int(m.n), units.Bytes(m.a))
		}
	case grantCancel:
		p.come[m.to].forget(m.id)
		p.serve(m.to)
	case grantKept:
		if c.chunks[m.chunk].id == m.id {
			c.acknowledged(m.chunk)
		}
	}
}

// frame implements protocol.
func (p *grants) frame(arg uint32, target int32, size units.Bytes) {
	c := p.c
	i := int32(arg)
	x, a := &c.chunks[i], &p.come[target]
	k := a.add(x, i, target, size)
	r := &(*a)[k]
	r.granted = max(r.granted, min(p.reach, c.piece))
	if r.received == c.piece {
		c.keep(target, message{kind: grantKept, from: target, to: x.gateway, chunk: i, id: x.id})
		a.remove(k)
	}
	p.serve(target)
}

// serve has a target grant what it can.
func (p *grants) serve(target int32) {
	c := p.c
	list := p.come[target]
	now := c.eng.Now()
	if wait := p.d.UnicastDelay(c.targets[target].disk.backlog(now)); wait > 0 {
		if len(list) > 0 {
			c.eng.Arm(p.clock[target], now+wait)
		}
		return
	}
	// The list is kept in the order of what is missing, the least first; it is short, and mostly in order already.
	for k := 1; k < len(list); k++ {
		for j := k; j > 0 && list[j].received > list[j-1].received; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	for k := range list[:min(len(list), c.cfg.Overcommit)] {
		r := &list[k]
		if upTo := min(r.received+p.reach, c.piece); upTo > r.granted {
			r.granted = upTo
			p.node[0] = r.gateway
			c.tell(c.nodeOfTarget(target), message{kind: granted, from: target, chunk: r.chunk, id: r.id, n: int32(r.place), a: sim.Time(upTo)}, p.node[:])
		}
	}
}

// timer implements protocol: a target's disk may have room.
func (p *grants) timer(arg uint32) { p.serve(int32(arg)) }

// floor implements protocol: all replicas on the gateway's link one after the other, the disk and the acknowledgement.
func (p *grants) floor() sim.Time {
	c, d := p.c, p.d
	return c.probing() + sim.Time(c.copies)*c.dataTime(d) + d.Trip + c.keepTime(d.DiskChunk) + c.onLink(d) + d.Trip
}

// abandon implements recovery.
func (p *grants) abandon(i int32) {
	p.c.cancelAll(i, grantCancel)
}

// restart implements recovery.
func (p *grants) restart(target int32) { p.come[target] = p.come[target][:0] }

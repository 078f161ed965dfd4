package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// chained is chain replication of data (van Renesse and Schneider, OSDI 2004; the pipeline of GFS, SOSP 2003) over hashed placement: a gateway sends to
// the chunk's first target, which passes each frame on to the second as it comes, and so on. Nobody asks before sending, so what comes together at a target queues
// before its link. Each target acknowledges by itself. With an erasure code the gateway sends each piece to its target.
type chained struct {
	c    *Cluster
	d    *reserve.Durations
	pick chooser
	come []arrivals // of targets
	node [1]int32
}

func newChained(c *Cluster, d *reserve.Durations) *chained {
	p := &chained{c: c, d: d, come: make([]arrivals, len(c.targets))}
	p.pick = chooser{c: c, chosen: p.chosen, coming: func(t int32) int { return len(p.come[t]) }}
	return p
}

// begin implements protocol.
func (p *chained) begin(i int32) { p.pick.choose(i) }

// Kinds of control messages of chained.
const (
	chainKept uint8 = iota
	chainCancel
)

// chosen has the gateway send.
func (p *chained) chosen(i int32) {
	c := p.c
	x := &c.chunks[i]
	for k, t := range x.targets[:x.n] {
		if k > 0 && c.chained() {
			break
		}
		p.node[0] = c.nodeOfTarget(t)
		for sent := units.Bytes(0); sent < c.piece; {
			size := min(c.cfg.Link.Frame, c.piece-sent)
			sent += size
			c.send(x.gateway, i, x.id, uint32(i), size, p.node[:])
		}
	}
}

// message implements protocol.
func (p *chained) message(m *message) {
	switch {
	case p.pick.message(m):
	case m.kind == chainCancel:
		p.come[m.to].forget(m.id)
	case p.c.chunks[m.chunk].id == m.id:
		p.c.acknowledged(m.chunk)
	}
}

// timer implements protocol: there are none.
func (p *chained) timer(uint32) {}

// frame implements protocol.
func (p *chained) frame(arg uint32, target int32, size units.Bytes) {
	c := p.c
	i := int32(arg)
	x := &c.chunks[i]
	k := x.place(target)
	if k+1 < int(x.n) && c.chained() {
		p.node[0] = c.nodeOfTarget(x.targets[k+1])
		c.send(c.nodeOfTarget(target), i, x.id, arg, size, p.node[:])
	}
	if p.come[target].whole(x, i, target, size, c.piece) {
		c.keep(target, message{kind: chainKept, from: target, to: x.gateway, chunk: i, id: x.id})
	}
}

// floor implements protocol: the data's way along the chain, the disk and the acknowledgement.
func (p *chained) floor() sim.Time {
	c, d := p.c, p.d
	last := d.Send(min(c.cfg.Link.Frame, c.piece), d.Effective) + d.Trip
	if !c.chained() {
		last = c.dataTime(d)
	}
	return c.probing() + c.dataTime(d) + d.Trip + sim.Time(c.copies-1)*last + c.keepTime(d.DiskChunk) + c.onLink(d) + d.Trip
}

// abandon implements recovery: targets that have a part of the chunk forget it.
func (p *chained) abandon(i int32) { p.c.cancelAll(i, chainCancel) }

// restart implements recovery.
func (p *chained) restart(target int32) { p.come[target] = p.come[target][:0] }

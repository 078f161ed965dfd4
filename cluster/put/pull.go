package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// pull is receiver pull with late binding, our own protocol; docs/adr/0006-pull.md says why it is as it is. A gateway asks the targets of two
// groups by one multicast. Each remembers it and offers itself when it runs out of work, to who has waited longest. With as many offers as
// replicas the gateway binds: it tells both groups which targets it takes, those that are free the soonest first, and which it leaves. The
// data goes from the gateway to the first, from there to the second as it comes in, and so on, each hop when the next one
// pulls.
type pull struct {
	c      *Cluster
	d      *reserve.Durations
	ends   []*reserve.Puller // of targets
	clock  []sim.Timer       // of targets: when they may make their next offer
	puts   []chain           // by chunk
	nodes  []int32
	groups []int32
}

// chain is a chunk on its way.
type chain struct {
	offers [maxReplicas]offered // in the order of readiness
	n      int8
	hops   [maxReplicas]hop // the last is the way to the last target
}

// offered is an offer that a gateway has.
type offered struct {
	target int32
	ready  sim.Time // when its link is free
}

// hop is the way from one node of a chain to the next.
type hop struct {
	wanted bool        // the next one has pulled
	have   units.Bytes // at the node that sends
	sent   units.Bytes
}

// maxGroups is how many candidate groups a chunk has at most.
const maxGroups = 4

// Kinds of control messages of pull.
const (
	askRoom uint8 = iota
	offer
	take
	pullNow
	stored
	giveUp
)

func newPull(c *Cluster, d *reserve.Durations) *pull {
	p := &pull{c: c, d: d}
	for t := range c.targets {
		p.ends = append(p.ends, p.end())
		p.clock = append(p.clock, c.eng.NewTimer(c.self, c.here, evTimer, uint32(t)))
	}
	return p
}

// end is a target that knows nothing. Where messages are lost it keeps an offer open for so long as two chunks take that are alone.
func (p *pull) end() *reserve.Puller {
	patience := sim.Forever
	if p.c.cfg.lossy() {
		patience = 2 * p.floor()
	}
	return reserve.NewPuller(p.d, p.c.cfg.ahead(p.d), patience)
}

// abandon implements recovery.
func (p *pull) abandon(i int32) {
	x := &p.c.chunks[i]
	p.c.cancel(x.gateway, message{kind: giveUp, from: x.gateway, chunk: i, id: x.id}, p.asked(i))
}

// restart implements recovery.
func (p *pull) restart(target int32) { p.ends[target] = p.end() }

// begin implements protocol.
func (p *pull) begin(i int32) {
	c := p.c
	for int(i) >= len(p.puts) {
		p.puts = append(p.puts, chain{})
	}
	x, s := &c.chunks[i], &p.puts[i]
	*s = chain{}
	drawGroups(&c.rand, c.groups(), x.groups[:c.cfg.Groups])
	c.tell(x.gateway, message{kind: askRoom, from: x.gateway, chunk: i, id: x.id, a: c.eng.Now() - x.begun}, p.asked(i))
}

// asked are the nodes of the targets that a chunk asks.
func (p *pull) asked(i int32) []int32 {
	p.nodes = p.nodes[:0]
	for _, g := range p.c.chunks[i].groups[:p.c.cfg.Groups] {
		p.groups = p.c.groupOf(g, p.groups[:0])
		for _, t := range p.groups {
			p.nodes = append(p.nodes, p.c.nodeOfTarget(t))
		}
	}
	return p.nodes
}

// message implements protocol.
func (p *pull) message(m *message) {
	c := p.c
	now := c.eng.Now()
	switch m.kind {
	case askRoom:
		p.ends[m.to].Ask(reserve.Waiting{ID: m.id, Tag: m.chunk, From: m.from, Since: now - m.a})
		p.offer(m.to)
	case offer:
		p.offered(m)
	case take:
		x := &c.chunks[m.chunk]
		if k := x.place(m.to); x.id == m.id && k >= 0 {
			p.ends[m.to].Take(reserve.Coming{ID: m.id, Tag: m.chunk, From: p.before(x, k), Place: int8(k), Left: c.piece})
			p.pull(m.to)
		} else {
			p.ends[m.to].Forget(m.id)
		}
		p.offer(m.to)
	case pullNow:
		if c.chunks[m.chunk].id != m.id {
			return
		}
		p.puts[m.chunk].hops[m.n].wanted = true
		p.send(m.chunk, int(m.n))
	case giveUp:
		p.ends[m.to].Forget(m.id)
		p.ends[m.to].Drop(m.id)
		p.pull(m.to)
		p.offer(m.to)
	case stored:
		if c.chunks[m.chunk].id == m.id {
			c.acknowledged(m.chunk)
		}
	}
}

// offer has a target make an offer if it is time, or else look again when it is.
func (p *pull) offer(target int32) {
	c := p.c
	now := c.eng.Now()
	end, backlog, write := p.ends[target], c.targets[target].disk.backlog(now), c.takes(target, c.piece)
	if to, ready, ok := end.Offer(now, backlog, write); ok {
		c.tell(c.nodeOfTarget(target), message{kind: offer, from: target, chunk: to.Tag, id: to.ID, a: ready}, p.node(to.From))
	}
	if in := end.Wake(now, backlog, write); in < sim.Forever {
		c.eng.Arm(p.clock[target], now+in)
	}
}

func (p *pull) node(n int32) []int32 {
	p.nodes = append(p.nodes[:0], n)
	return p.nodes
}

// offered: a gateway has an offer for a chunk. With the last that it needs it binds.
func (p *pull) offered(m *message) {
	c := p.c
	x, s := &c.chunks[m.chunk], &p.puts[m.chunk]
	if x.id != m.id || x.n > 0 {
		return // it has all that it needs, and has said so
	}
	o := offered{m.from, c.eng.Now() + m.a}
	k := int(s.n)
	for k > 0 && o.ready < s.offers[k-1].ready {
		s.offers[k] = s.offers[k-1]
		k--
	}
	s.offers[k] = o
	if s.n++; int(s.n) < c.copies {
		return
	}
	for k := range s.offers[:s.n] {
		x.targets[k] = s.offers[k].target
	}
	x.n = s.n
	for k := range s.hops[:x.n] {
		if k == 0 || !c.chained() {
			s.hops[k].have = c.piece
		}
	}
	c.tell(x.gateway, message{kind: take, from: x.gateway, chunk: m.chunk, id: x.id}, p.asked(m.chunk))
}

// pull has a target tell who sends to it that it may.
func (p *pull) pull(target int32) {
	c := p.c
	for {
		x, ok := p.ends[target].Pull()
		if !ok {
			return
		}
		c.tell(c.nodeOfTarget(target), message{kind: pullNow, from: target, chunk: x.Tag, id: x.ID, n: int32(x.Place)}, p.node(x.From))
	}
}

// before is the node that sends to the k-th target of a chunk: the target before it, or the gateway, which sends to all if their pieces differ.
func (p *pull) before(x *chunk, k int) int32 {
	if k == 0 || !p.c.chained() {
		return x.gateway
	}
	return p.c.nodeOfTarget(x.targets[k-1])
}

// send sends what a hop has and may send.
func (p *pull) send(i int32, k int) {
	c := p.c
	x, h := &c.chunks[i], &p.puts[i].hops[k]
	if !h.wanted {
		return
	}
	from := p.before(x, k)
	for h.sent < h.have {
		size := min(c.cfg.Link.Frame, h.have-h.sent)
		h.sent += size
		c.send(from, i, x.id, uint32(i), size, p.node(c.nodeOfTarget(x.targets[k])))
	}
}

// timer implements protocol: a target may make an offer.
func (p *pull) timer(arg uint32) { p.offer(int32(arg)) }

// frame implements protocol.
func (p *pull) frame(arg uint32, target int32, size units.Bytes) {
	c := p.c
	i := int32(arg)
	x := &c.chunks[i]
	k := x.place(target)
	if k+1 < c.copies && c.chained() {
		p.puts[i].hops[k+1].have += size
		p.send(i, k+1)
	}
	if p.ends[target].Received(x.id, size) {
		c.keep(target, message{kind: stored, from: target, to: x.gateway, chunk: i, id: x.id})
	}
	p.pull(target)
	p.offer(target)
}

// floor implements protocol: request, offer, taking, pulling, the data's way along the chain, the disk and the acknowledgement.
func (p *pull) floor() sim.Time {
	c, d := p.c, p.d
	last := d.Send(min(c.cfg.Link.Frame, c.piece), d.Effective) + d.Trip // from target to target
	if !c.chained() {
		last = c.dataTime(d)
	}
	return 5*(c.onLink(d)+d.Trip) + c.dataTime(d) + d.Trip + sim.Time(c.copies-1)*last + c.keepTime(d.DiskChunk)
}

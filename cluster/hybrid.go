package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// hybrid is Replicast with multicast control and unicast data (the Replicast paper, sections III-F and IV-D; SURGE's model 8).
// A gateway takes bids whose windows follow each other, sends to one target after another, and asks again for what is
// missing.
type hybrid struct {
	c     *Cluster
	d     *reserve.Durations
	bids  []*reserve.Sparse // of targets
	puts  []sequel          // by chunk
	flows []unicast
	spare []int32
	picks []reserve.Pick
	group []int32
}

// sequel is what a gateway knows of a chunk that it puts.
type sequel struct {
	group     int32
	offers    *reserve.Offers
	order     *reserve.Sequence
	asked     int
	flows     [maxReplicas]int32 // as many as targets that are chosen
	notBefore sim.Time
	again     sim.Time // when it asks for what is missing
	control   sim.Time // until when its last control message is on the link
}

// unicast is a replica on its way.
type unicast struct {
	chunk     int32
	target    int32
	sent, got units.Bytes
	dead      bool // given up; its timer still runs
}

func newHybrid(c *Cluster, d *reserve.Durations) *hybrid {
	p := &hybrid{c: c, d: d}
	for range c.targets {
		p.bids = append(p.bids, reserve.NewSparse(d))
	}
	return p
}

// begin implements protocol.
func (p *hybrid) begin(i int32) {
	c := p.c
	for int(i) >= len(p.puts) {
		p.puts = append(p.puts, sequel{offers: reserve.NewOffers(p.d), order: reserve.NewSequence(p.d)})
	}
	s := &p.puts[i]
	s.group, s.notBefore = c.chooseGroup(&c.chunks[i]), c.eng.Now()
	c.chunks[i].groups[0] = s.group
	s.again = -1
	s.order.Start()
	p.ask(i)
}

// ask requests bids of all of the group that have no replica yet.
func (p *hybrid) ask(i int32) {
	c := p.c
	x, s := &c.chunks[i], &p.puts[i]
	s.offers.Reset()
	p.group = p.others(x, s.group)
	s.asked = len(p.group)
	s.control = c.eng.Now() + c.onLink(p.d)
	c.toTargets(message{kind: askBids, from: x.gateway, chunk: i, id: x.id, a: s.notBefore}, c.onLink(p.d), p.group)
}

// others are the targets of a chunk's group that have not been chosen.
func (p *hybrid) others(x *chunk, group int32) []int32 {
	list := p.c.groupOf(group, p.group[:0])
	kept := list[:0]
	for _, t := range list {
		if !x.keeps(t) {
			kept = append(kept, t)
		}
	}
	return kept
}

// message implements protocol.
func (p *hybrid) message(m *message) {
	c := p.c
	now := c.eng.Now()
	switch m.kind {
	case askBids:
		if c.lossy {
			p.bids[m.to].Expire(now, 0)
		}
		w := p.bids[m.to].Request(now, m.id, m.from, m.a, p.d.BidDelay(c.targets[m.to].disk.backlog(now)), &c.rand)
		c.toGateway(message{kind: bid, from: m.to, to: m.from, chunk: m.chunk, id: m.id, a: w.Left, b: w.Right}, c.onLink(p.d), 0)
	case bid:
		s := &p.puts[m.chunk]
		if c.chunks[m.chunk].id != m.id {
			return
		}
		s.offers.Add(m.from, reserve.Window{Left: m.a, Right: m.b}, c.ties()) // bids of an idle group come at the same time
		if s.offers.Len() == s.asked {
			p.choose(m.chunk)
		}
	case accept:
		if m.a < m.b && m.n == m.to {
			p.bids[m.to].Accept(now, m.id, reserve.Window{Left: m.a, Right: m.b})
			return
		}
		if !p.bids[m.to].Cancel(now, m.id) {
			p.bids[m.to].Done(m.id) // accepted before, and given up now
		}
	case kept:
		if c.chunks[m.chunk].id == m.id {
			c.acknowledged(m.chunk)
		}
	}
}

// choose takes from a chunk's bids, which are all there, and begins to send.
func (p *hybrid) choose(i int32) {
	c := p.c
	now := c.eng.Now()
	x, s := &c.chunks[i], &p.puts[i]
	p.group = p.others(x, s.group)
	p.picks = s.order.Choose(now, s.offers, c.copies-int(x.n), p.picks[:0])
	if c.cfg.Compat == CompatSURGE {
		for k := range s.offers.Len() {
			o := s.offers.At(k)
			p.bids[o.Server].Foresee(x.id, o.Window)
		}
	}
	s.control = now + c.onLink(p.d)
	c.accept(message{kind: accept, from: x.gateway, chunk: i, id: x.id}, c.onLink(p.d), p.group, p.picks)
	for _, pick := range p.picks {
		x.targets[x.n] = pick.Server
		x.n++
		f := p.flow(unicast{chunk: i, target: pick.Server})
		s.flows[x.n-1] = f
		c.after(max(pick.Window.Left, s.control), uint32(f)<<1)
	}
	if int(x.n) < c.copies {
		at, notBefore := s.order.More(now, p.picks)
		s.notBefore = notBefore
		s.again = max(at, now)
		c.after(s.again, uint32(i)<<1|1)
	}
}

// flow returns the number of a new flow.
func (p *hybrid) flow(f unicast) int32 {
	if k := len(p.spare) - 1; k >= 0 {
		n := p.spare[k]
		p.spare = p.spare[:k]
		p.flows[n] = f
		return n
	}
	p.flows = append(p.flows, f)
	return int32(len(p.flows) - 1)
}

// timer implements protocol: the next frame of a flow may be sent, or it is time to ask for more.
func (p *hybrid) timer(arg uint32) {
	c := p.c
	if arg&1 != 0 {
		if i := int32(arg >> 1); p.puts[i].again == c.eng.Now() {
			p.ask(i)
		}
		return
	}
	f := &p.flows[arg>>1]
	if f.dead {
		p.spare = append(p.spare, int32(arg>>1))
		return
	}
	if until := p.puts[f.chunk].control; until > c.eng.Now() {
		c.after(until, arg)
		return
	}
	size := min(c.cfg.Link.Frame, c.piece-f.sent)
	takes := p.d.Send(size, p.d.DataRate)
	to := [1]int32{f.target}
	c.sendFrame(c.chunks[f.chunk].gateway, f.chunk, arg>>1, size, takes, to[:])
	if f.sent += size; f.sent < c.piece {
		c.after(c.eng.Now()+takes, arg)
	}
}

// abandon implements recovery.
func (p *hybrid) abandon(i int32) {
	c := p.c
	x, s := &c.chunks[i], &p.puts[i]
	s.again = -1
	for k := range x.n {
		n := s.flows[k]
		switch {
		case n < 0: // it has arrived, and its number may be another's
		case p.flows[n].sent < c.piece:
			p.flows[n].dead = true
		default:
			p.spare = append(p.spare, n)
		}
	}
	p.group = p.group[:0]
	for _, t := range c.groupOf(s.group, nil) {
		p.group = append(p.group, c.nodeOfTarget(t))
	}
	c.cancel(x.gateway, message{kind: accept, from: x.gateway, chunk: i, id: x.id, n: -1}, p.group)
}

// restart implements recovery.
func (p *hybrid) restart(target int32) { p.bids[target] = reserve.NewSparse(p.d) }

// frame implements protocol.
func (p *hybrid) frame(arg uint32, target int32, size units.Bytes) {
	c := p.c
	f := &p.flows[arg]
	if f.got += size; f.got < c.piece {
		return
	}
	x := &c.chunks[f.chunk]
	p.bids[target].Done(x.id)
	c.keep(target, message{kind: kept, from: target, to: x.gateway, chunk: f.chunk, id: x.id})
	p.spare = append(p.spare, int32(arg))
	p.puts[f.chunk].flows[x.place(target)] = -1
}

// floor implements protocol: as Replicast's for the first replica; the others, alone, are asked for again and again.
func (p *hybrid) floor() sim.Time {
	ctl, trip := p.c.onLink(p.d), p.d.Trip
	first := ctl + trip + 2*p.d.Control + trip + p.d.Lead
	return first + sim.Time(p.c.copies)*p.c.dataTime(p.d) + trip + p.d.DiskChunk + ctl + trip
}

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
	idle  [][]*reserve.Choosy // of gateways: choices that no chunk uses
}

// sequel is what a gateway knows of a chunk that it puts.
type sequel struct {
	group     int32
	offers    *reserve.Offers
	order     *reserve.Choosy
	notBefore sim.Time
	again     sim.Time // when it asks for what is missing
	control   sim.Time // until when its last control message is on the link
	asked     int      // of how many targets
	round     int32    // how often bids were asked for
	booked    [maxReplicas]booking
	before    int8 // replicas that were chosen before the last choice
}

// unicast is a replica on its way.
type unicast struct {
	chunk     int32
	target    int32
	sent, got units.Bytes
	dead      bool // given up; its timer still runs
}

func newHybrid(c *Cluster, d *reserve.Durations) *hybrid {
	p := &hybrid{c: c, d: d, idle: make([][]*reserve.Choosy, len(c.gateways))}
	for range c.targets {
		p.bids = append(p.bids, reserve.NewSparse(d))
	}
	return p
}

// begin implements protocol.
func (p *hybrid) begin(i int32) {
	c := p.c
	for int(i) >= len(p.puts) {
		p.puts = append(p.puts, sequel{offers: reserve.NewOffers(p.d)})
	}
	s := &p.puts[i]
	s.group, s.notBefore = c.chooseGroup(&c.chunks[i]), c.eng.Now()
	s.order = p.orderOf(c.chunks[i].gateway)
	c.chunks[i].groups[0] = s.group
	s.order.Start()
	p.ask(i)
}

// ask requests bids of all of the group that have no replica yet.
func (p *hybrid) ask(i int32) {
	c := p.c
	x, s := &c.chunks[i], &p.puts[i]
	s.offers.Reset()
	s.round++
	s.again = sim.Forever
	p.group = p.others(x, s.group)
	c.askOrder(s.group, x.gateway, p.group)
	s.asked = len(p.group)
	s.control = c.eng.Now() + c.onLink(p.d)
	c.toTargets(message{kind: askBids, from: x.gateway, chunk: i, id: x.id, a: s.notBefore, n: s.round}, c.onLink(p.d), p.group)
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
		c.Counters.Bids.asked(p.bids[m.to])
		w := p.bids[m.to].Request(now, m.key(), m.from, m.a, p.d.BidDelay(c.targets[m.to].disk.backlog(now)), &c.rand)
		c.showBid(m.to, m.from, m.id, reserve.Tentative, w)
		c.toGateway(message{kind: bid, from: m.to, to: m.from, chunk: m.chunk, id: m.id, n: m.n, a: w.Left, b: w.Right}, c.onLink(p.d), 0)
	case bid:
		s := &p.puts[m.chunk]
		if m.n != s.round || m.id != c.chunks[m.chunk].id {
			return // it has been given up, or a late rejection has made the gateway ask again
		}
		s.offers.Add(m.from, reserve.Window{Left: m.a, Right: m.b}, c.ties()) // bids of an idle group come at the same time
		if s.offers.Len() == s.asked {
			p.choose(m.chunk)
		}
	case accept:
		c.Counters.Bids.decided(p.bids[m.to], now, m.key())
		if m.a < m.b && m.n == m.to {
			p.bids[m.to].Accept(now, m.key(), reserve.Window{Left: m.a, Right: m.b})
			c.showBid(m.to, m.from, m.id, reserve.Accepted, reserve.Window{Left: m.a, Right: m.b})
			return
		}
		if !p.bids[m.to].Cancel(now, m.key()) && !p.bids[m.to].Done(m.key()) { // accepted before, and given up now
			return
		}
		c.showBid(m.to, m.from, m.id, reserve.Canceled, reserve.Window{})
	case kept:
		x := &c.chunks[m.chunk]
		if x.id != m.id {
			return
		}
		if int(x.acked)+1 == c.copies {
			p.putBack(m.chunk) // before the gateway takes its next chunk
		}
		c.acknowledged(m.chunk)
	}
}

// choose takes from a chunk's bids, which are all there, and begins to send.
func (p *hybrid) choose(i int32) {
	c := p.c
	now := c.eng.Now()
	x, s := &c.chunks[i], &p.puts[i]
	p.group = p.others(x, s.group)
	p.picks = p.picksOf(s, c.copies-int(x.n))
	s.before = x.n
	if c.cfg.Compat != CompatNone {
		for k := range s.offers.Len() {
			o := s.offers.At(k)
			p.bids[o.Server].Foresee(key(x.id, i), o.Window)
		}
	}
	s.control = now + c.onLink(p.d)
	c.accept(message{kind: accept, from: x.gateway, chunk: i, id: x.id}, c.onLink(p.d), p.group, p.picks)
	for _, pick := range p.picks {
		x.targets[x.n] = pick.Server
		f := p.flow(unicast{chunk: i, target: pick.Server})
		s.booked[x.n] = booking{f, pick.Window.Right}
		x.n++
		c.after(max(pick.Window.Left, s.control), uint32(f)<<1)
	}
	if int(x.n) < c.copies {
		at, notBefore := p.more(s)
		p.askAt(i, at, notBefore)
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
	s.again = sim.Forever
	p.putBack(i)
	for k := range x.n {
		n := s.booked[k].flow
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
	if p.bids[target].Done(key(x.id, f.chunk)) {
		c.showDone(target, x)
	}
	c.keep(target, message{kind: kept, from: target, to: x.gateway, chunk: f.chunk, id: x.id})
	p.spare = append(p.spare, int32(arg))
	p.puts[f.chunk].booked[x.place(target)].flow = -1
}

// orderOf takes a gateway's choice that no other of its chunks uses.
func (p *hybrid) orderOf(gateway int32) *reserve.Choosy {
	list := p.idle[gateway]
	if k := len(list) - 1; k >= 0 {
		p.idle[gateway] = list[:k]
		return list[k]
	}
	return reserve.NewChoosy(p.d)
}

// putBack has a gateway keep a chunk's choice for its next one.
func (p *hybrid) putBack(i int32) {
	g := p.c.chunks[i].gateway
	p.idle[g] = append(p.idle[g], p.puts[i].order)
}

// picksOf takes windows of a chunk's bids.
func (p *hybrid) picksOf(s *sequel, missing int) []reserve.Pick {
	now := p.c.eng.Now()
	if !p.c.cfg.Choosy {
		return s.order.Sequence.Choose(now, s.offers, missing, p.picks[:0])
	}
	patience := s.order.Patience()
	picks := s.order.Choose(now, s.offers, missing, p.picks[:0])
	if s.order.Patience() > patience {
		p.c.Counters.Impatient++
	}
	return picks
}

// more says when to ask for what is missing after a choice.
func (p *hybrid) more(s *sequel) (at, notBefore sim.Time) {
	if p.c.cfg.Choosy {
		return s.order.More(p.c.eng.Now(), p.picks)
	}
	return s.order.Sequence.More(p.c.eng.Now(), p.picks)
}

// askAt asks for more bids of a chunk at a time, and not before unless asked again.
func (p *hybrid) askAt(i int32, at, notBefore sim.Time) {
	s := &p.puts[i]
	s.notBefore, s.again = notBefore, max(at, p.c.eng.Now())
	p.c.after(s.again, uint32(i)<<1|1)
}

// floor implements protocol: as Replicast's for the first replica; the others, alone, are asked for again and again.
func (p *hybrid) floor() sim.Time {
	ctl, trip := p.c.onLink(p.d), p.d.Trip
	first := ctl + trip + 2*p.d.Control + trip + p.d.Lead
	return first + sim.Time(p.c.copies)*p.c.dataTime(p.d) + trip + p.c.keepTime(p.d.DiskChunk) + ctl + trip
}

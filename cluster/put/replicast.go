package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// replicast is Replicast with multicast of control and data (the Replicast paper, sections II-B and IV-E; SURGE's model 7). A
// gateway multicasts a request to the chunk's negotiating group; each target of it answers with a bid, a window of time that it
// keeps; the gateway takes the earliest window that enough bids have in common and multicasts its acceptance, which cancels the others; at the
// window's beginning it multicasts the data. Without a common window the chunk is given up, and the gateway begins another.
type replicast struct {
	c     *Cluster
	d     *reserve.Durations
	bids  []*reserve.Regular // of targets
	puts  []put              // by chunk
	picks []reserve.Pick
	group []int32 // targets of a group, for sending
}

// put is what a gateway knows of a chunk that it puts.
type put struct {
	group  int32
	asked  int
	offers *reserve.Offers
	sent   units.Bytes
	next   sim.Time                 // when a frame may be sent
	got    [maxReplicas]units.Bytes // at each target
}

// Kinds of control messages of Replicast.
const (
	askBids uint8 = iota
	bid
	accept
	kept // a replica is on its disk
)

func newReplicast(c *Cluster, d *reserve.Durations) *replicast {
	p := &replicast{c: c, d: d}
	for range c.targets {
		p.bids = append(p.bids, reserve.NewRegular(d))
	}
	return p
}

// begin implements protocol.
func (p *replicast) begin(i int32) {
	c := p.c
	for int(i) >= len(p.puts) {
		p.puts = append(p.puts, put{offers: reserve.NewOffers(p.d)})
	}
	x := &c.chunks[i]
	o := p.puts[i].offers
	o.Reset()
	p.puts[i] = put{group: c.chooseGroup(x), offers: o, next: -1}
	x.groups[0] = p.puts[i].group
	p.group = c.groupOf(p.puts[i].group, p.group[:0])
	c.askOrder(p.puts[i].group, x.gateway, p.group)
	p.puts[i].asked = len(p.group)
	c.toTargets(message{kind: askBids, from: x.gateway, chunk: i, id: x.id}, c.onLink(p.d), p.group)
}

// message implements protocol.
func (p *replicast) message(m *message) {
	c := p.c
	now := c.eng.Now()
	switch m.kind {
	case askBids:
		if c.lossy {
			p.bids[m.to].Expire(now, 0)
		}
		c.Counters.Bids.asked(p.bids[m.to])
		w := p.bids[m.to].Request(now, m.id, m.from, 0, p.d.BidDelay(c.targets[m.to].disk.backlog(now)), &c.rand)
		c.showBid(m.to, m.from, m.id, reserve.Tentative, w)
		c.toGateway(message{kind: bid, from: m.to, to: m.from, chunk: m.chunk, id: m.id, a: w.Left, b: w.Right}, c.onLink(p.d), 0)
	case bid:
		if c.chunks[m.chunk].id != m.id {
			return
		}
		o := p.puts[m.chunk].offers
		o.Add(m.from, reserve.Window{Left: m.a, Right: m.b}, c.ties()) // bids of an idle group come at the same time
		if o.Len() == p.puts[m.chunk].asked {
			p.choose(m.chunk)
		}
	case accept:
		c.Counters.Bids.decided(p.bids[m.to], now, m.id)
		if x := &c.chunks[m.chunk]; m.n > 0 && x.id == m.id && x.keeps(m.to) {
			p.bids[m.to].Accept(now, m.id, reserve.Window{Left: m.a, Right: m.b})
			c.showBid(m.to, m.from, m.id, reserve.Accepted, reserve.Window{Left: m.a, Right: m.b})
			return
		}
		if !p.bids[m.to].Cancel(now, m.id) && !p.bids[m.to].Done(m.id) { // accepted before, and given up now
			return
		}
		c.showBid(m.to, m.from, m.id, reserve.Canceled, reserve.Window{})
	case kept:
		if c.chunks[m.chunk].id == m.id {
			c.acknowledged(m.chunk)
		}
	}
}

// choose takes from a chunk's bids, which are all there.
func (p *replicast) choose(i int32) {
	c := p.c
	x := &c.chunks[i]
	var found bool
	p.picks, found = p.d.Intersect(c.eng.Now(), p.puts[i].offers, c.copies, p.picks[:0])
	m := message{kind: accept, from: x.gateway, chunk: i, id: x.id}
	if found {
		for k, pick := range p.picks {
			x.targets[k] = pick.Server
		}
		x.n = int8(len(p.picks))
		m.n, m.a, m.b = int32(len(p.picks)), p.picks[0].Window.Left, p.picks[0].Window.Right
	}
	p.group = c.groupOf(p.puts[i].group, p.group[:0])
	c.toTargets(m, c.onLink(p.d), p.group)
	if !found {
		c.abort(i)
		return
	}
	p.puts[i].next = max(m.a, c.eng.Now()+c.onLink(p.d))
	c.after(p.puts[i].next, uint32(i))
}

// timer implements protocol: the next frame of a chunk may be sent.
func (p *replicast) timer(arg uint32) {
	c := p.c
	x, f := &c.chunks[arg], &p.puts[arg]
	if c.eng.Now() != f.next {
		return // of an attempt that was given up
	}
	size := min(c.cfg.Link.Frame, c.piece-f.sent)
	takes := p.d.Send(size, p.d.DataRate)
	c.sendFrame(x.gateway, int32(arg), arg, size, takes, x.targets[:x.n])
	if f.sent += size; f.sent < c.piece {
		f.next = c.eng.Now() + takes
		c.after(f.next, arg)
	}
}

// abandon implements recovery.
func (p *replicast) abandon(i int32) {
	c := p.c
	x := &c.chunks[i]
	p.puts[i].next = -1
	p.group = p.group[:0]
	for _, t := range c.groupOf(p.puts[i].group, nil) {
		p.group = append(p.group, c.nodeOfTarget(t))
	}
	c.cancel(x.gateway, message{kind: accept, from: x.gateway, chunk: i, id: x.id}, p.group)
}

// restart implements recovery.
func (p *replicast) restart(target int32) { p.bids[target] = reserve.NewRegular(p.d) }

// frame implements protocol.
func (p *replicast) frame(arg uint32, target int32, size units.Bytes) {
	c := p.c
	x, f := &c.chunks[arg], &p.puts[arg]
	k := x.place(target)
	if f.got[k] += size; f.got[k] < c.piece {
		return
	}
	if p.bids[target].Done(x.id) {
		c.showDone(target, x)
	}
	c.keep(target, message{kind: kept, from: target, to: x.gateway, chunk: int32(arg), id: x.id})
}

// floor implements protocol: request, bid, the earliest window after it, the data, the disk and the acknowledgement.
func (p *replicast) floor() sim.Time {
	ctl, trip := p.c.onLink(p.d), p.d.Trip
	return ctl + trip + 2*p.d.Control + trip + p.d.Lead + p.c.dataTime(p.d) + trip + p.c.keepTime(p.d.DiskChunk) + ctl + trip
}

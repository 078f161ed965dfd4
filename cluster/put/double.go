package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
)

// double is Replicast-H with double booking (SURGE's model 9): a target promises the window of its latest tentative bid to a second gateway
// as long as it can take it back. If both accept, the first one has it, and the other gets a late rejection and asks again for the replica
// that it has lost. Most tentative bids are canceled, and then the second gateway has a window that would have stood empty.
//
// A rejection that comes when the gateway has begun to send, which takes control messages that wait for each other, is too late: the target takes
// what comes.
type double struct {
	hybrid
	twice []*reserve.DoubleBooked // of targets; hybrid.bids are what they are made of
}

// lateReject tells a gateway that a window which it was promised is another's.
const lateReject uint8 = kept + 1

// booking is a window that a gateway has taken.
type booking struct {
	flow  int32 // -1 when it has arrived as a whole
	right sim.Time
}

// key is what a target's queue knows a chunk by: its id and its place, so that the place can be told to who has lost its window.
func key(id uint64, chunk int32) uint64 { return id<<placeBits | uint64(chunk) }

// placeBits are those of a chunk's place: 2^20 gateways with 2^10 chunks each.
const placeBits = 30

// key is that of the chunk that a message is about.
func (m *message) key() uint64 { return key(m.id, m.chunk) }

func newDouble(c *Cluster, d *reserve.Durations) *double {
	p := &double{hybrid: *newHybrid(c, d)}
	p.twice = make([]*reserve.DoubleBooked, len(c.targets))
	for t := range c.targets {
		p.restart(int32(t))
	}
	return p
}

// restart implements recovery.
func (p *double) restart(target int32) {
	q := reserve.NewDoubleBooked(p.d)
	p.twice[target], p.bids[target] = q, &q.Sparse
}

// message implements protocol.
func (p *double) message(m *message) {
	c := p.c
	now := c.eng.Now()
	switch {
	case m.kind == askBids:
		if c.lossy {
			p.twice[m.to].Expire(now, 0)
		}
		c.Counters.Bids.asked(p.bids[m.to])
		w := p.twice[m.to].Request(now, m.key(), m.from, m.a, p.d.BidDelay(c.targets[m.to].disk.backlog(now)), &c.rand)
		c.showBid(m.to, m.from, m.id, reserve.Tentative, w)
		c.toGateway(message{kind: bid, from: m.to, to: m.from, chunk: m.chunk, id: m.id, n: m.n, a: w.Left, b: w.Right}, c.onLink(p.d), 0)
	case m.kind == accept && m.a < m.b && m.n == m.to:
		c.Counters.Bids.decided(p.bids[m.to], now, m.key())
		v := p.twice[m.to].Accept(now, m.key(), reserve.Window{Left: m.a, Right: m.b})
		if v.Verdict == reserve.Taken || v.Verdict == reserve.TakenFrom {
			c.showBid(m.to, m.from, m.id, reserve.Accepted, reserve.Window{Left: m.a, Right: m.b})
		}
		if v.Verdict != reserve.TakenFrom {
			return // a bid that had been rejected: the rejection is on its way
		}
		i := int32(v.Loser.Chunk & (1<<placeBits - 1))
		c.showBid(m.to, v.Loser.Gateway, v.Loser.Chunk>>placeBits, reserve.Canceled, reserve.Window{})
		if c.cfg.Compat != CompatNone {
			p.puts[i].offers.Reject(m.to) // in SURGE the bid is one object, which both sides see
		}
		c.toGateway(message{kind: lateReject, from: m.to, to: v.Loser.Gateway, chunk: i, id: v.Loser.Chunk >> placeBits}, c.onLink(p.d), 0)
	case m.kind == lateReject:
		p.lose(m)
	default:
		p.hybrid.message(m)
	}
}

// lose has a gateway give up a window that was taken back, and ask again for the replica.
func (p *double) lose(m *message) {
	c := p.c
	x, s := &c.chunks[m.chunk], &p.puts[m.chunk]
	if x.id != m.id {
		return
	}
	k := x.place(m.from)
	if k < 0 {
		s.offers.Reject(m.from) // it has not been chosen, and will not be
		return
	}
	n := s.booked[k].flow
	if n < 0 || p.flows[n].sent > 0 {
		return
	}
	p.flows[n].dead = true
	c.Counters.LateRejected++
	copy(x.targets[k:], x.targets[k+1:x.n])
	copy(s.booked[k:], s.booked[k+1:x.n])
	x.n--
	if k < int(s.before) {
		s.before--
	}
	last := sim.Time(0)
	if s.before < x.n {
		last = s.booked[x.n-1].right
	}
	at, notBefore := s.order.Rejected(c.eng.Now(), s.again, s.notBefore, s.control, last)
	if at != s.again {
		p.askAt(m.chunk, at, notBefore)
	}
}

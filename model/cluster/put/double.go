package put

import (
	"farflash/model/cluster/reserve"
	"farflash/sim"
)

// ReplicastHDouble is ReplicastH with windows that are promised twice (model 9).
const ReplicastHDouble Scheme = 9

var replicastDouble = Traits{Name: "replicast-h-double", Number: "9", Build: CompatSURGEHead, Finds: FindsBidders,
	Chosen:     byBids,
	Sequential: true, Reserves: true, Gathers: true,
	Times: reserve.HybridConfig, Messages: replicastMessages, New: func(b *Bus) Protocol { return newDouble(b) }}

// double is Replicast-H with double booking (SURGE's model 9): a target promises the window of its latest tentative
// bid to a second gateway as long as it can take it back. If both accept, the first one has it, and the other gets a
// late rejection and asks again for the replica that it has lost. Most tentative bids are canceled, and then the
// second gateway has a window that would have stood empty.
//
// A rejection that comes when the gateway has begun to send, which takes control messages that wait for each other,
// is too late: the target takes what comes.
type double struct {
	hybrid
	twice []*reserve.DoubleBooked // of targets; hybrid.bids are what they are made of
}

func newDouble(b *Bus) *double {
	d := &double{hybrid: *newHybrid(b)}
	d.twice = make([]*reserve.DoubleBooked, b.Targets)
	for t := range b.Targets {
		d.Restart(int32(t))
	}
	return d
}

// Restart implements Recovery.
func (d *double) Restart(target int32) {
	q := reserve.NewDoubleBooked(d.b.Times)
	d.twice[target], d.bids[target] = q, &q.Sparse
}

// Message implements Protocol.
func (d *double) Message(m *Message) {
	b := d.b
	now := b.Now()
	switch {
	case m.Kind == askBids:
		b.giveBid(d.twice[m.To], m, m.key())
	case m.Kind == accept && m.A < m.B && m.N == m.To:
		b.Tally.Bids.decided(d.bids[m.To], now, m.key())
		v := d.twice[m.To].Accept(now, m.key(), reserve.Window{Left: m.A, Right: m.B})
		if v.Verdict == reserve.Taken || v.Verdict == reserve.TakenFrom {
			b.showBid(m.To, m.From, m.ID, reserve.Accepted, reserve.Window{Left: m.A, Right: m.B})
		}
		if v.Verdict != reserve.TakenFrom {
			return // a bid that had been rejected: the rejection is in flight
		}
		i := int32(v.Loser.Chunk & (1<<placeBits - 1))
		b.showBid(m.To, v.Loser.Gateway, v.Loser.Chunk>>placeBits, reserve.Canceled, reserve.Window{})
		if b.Compat != CompatNone {
			d.puts[i].offers.Reject(m.To) // in SURGE the bid is one object, which both sides see
		}
		b.toGateway(Message{Kind: lateReject, From: m.To, To: v.Loser.Gateway, Chunk: i,
			ID: v.Loser.Chunk >> placeBits}, 0)
	case m.Kind == lateReject:
		d.lose(m)
	default:
		d.hybrid.Message(m)
	}
}

// lose has a gateway give up a window that was taken back, and ask again for the replica.
func (d *double) lose(m *Message) {
	b := d.b
	x, s := &b.Chunks[m.Chunk], &d.puts[m.Chunk]
	if x.ID != m.ID {
		return
	}
	k := x.Place(m.From)
	if k < 0 {
		s.offers.Reject(m.From) // it has not been chosen, and will not be
		return
	}
	n := s.booked[k].flow
	if n < 0 || d.flows.Items[n].sent > 0 {
		return
	}
	d.flows.Items[n].dead = true
	b.Tally.LateRejected++
	copy(x.Targets[k:], x.Targets[k+1:x.N])
	copy(s.booked[k:], s.booked[k+1:x.N])
	x.N--
	if k < int(s.before) {
		s.before--
	}
	last := sim.Time(0)
	if s.before < x.N {
		last = s.booked[x.N-1].right
	}
	at, notBefore := s.order.Rejected(b.Now(), s.again, s.notBefore, s.control, last)
	if at != s.again {
		d.askAt(m.Chunk, at, notBefore)
	}
}

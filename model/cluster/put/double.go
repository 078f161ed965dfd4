package put

import (
	"farflash/model/cluster/reserve"
	"farflash/sim"
)

// ReplicastHDouble is ReplicastH with double booking of windows (model 9).
const ReplicastHDouble Scheme = 9

var replicastDouble = Traits{Name: "replicast-h-double", Number: "9", Build: CompatSURGEHead, Finds: FindsBidders,
	Chosen:     byBids,
	Sequential: true, Reserves: true, Gathers: true,
	Times: reserve.HybridConfig, Messages: replicastMessages, New: func(b *Bus) Protocol { return newDouble(b) }}

// double is Replicast-H with double booking (SURGE's model 9): while a target's latest bid is tentative, it offers the
// same window to a second gateway. If both accept, the first one has it; the other gets a late rejection and asks again
// for the replica that it has lost. Most tentative bids are canceled, and then the second gateway uses a window that
// would have stayed idle.
//
// Where control messages queue, a rejection may arrive after the gateway has begun to send. It is then too late, and
// the target receives the data.
type double struct {
	hybrid
	twice []*reserve.DoubleBooked // by target; each entry of hybrid.bids is the Sparse within
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
			return // the bid was already revoked, and its rejection is in flight
		}
		i := int32(v.Loser.Chunk & (1<<placeBits - 1))
		b.showBid(m.To, v.Loser.Gateway, v.Loser.Chunk>>placeBits, reserve.Canceled, reserve.Window{})
		if b.Compat != CompatNone {
			d.puts[i].offers.Reject(m.To) // in SURGE the bid is one object that both sides share
		}
		b.toGateway(Message{Kind: lateReject, From: m.To, To: v.Loser.Gateway, Chunk: i,
			ID: v.Loser.Chunk >> placeBits}, 0)
	case m.Kind == lateReject:
		d.lose(m)
	default:
		d.hybrid.Message(m)
	}
}

// lose has a gateway give up a window that was revoked, and ask again for the replica.
func (d *double) lose(m *Message) {
	b := d.b
	x, s := &b.Chunks[m.Chunk], &d.puts[m.Chunk]
	if x.ID != m.ID {
		return
	}
	k := x.Place(m.From)
	if k < 0 {
		s.offers.Reject(m.From) // not chosen yet, and cannot be any more
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

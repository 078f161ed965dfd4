package reserve

import (
	"farflash/numeric/rng"
	"farflash/sim"
)

// DoubleBooked is a Sparse queue that offers the window of its latest tentative bid to a second gateway while there is
// still time to revoke it. Most tentative bids are canceled, and then the second gateway has a window that would
// otherwise stay idle. If both accept, the first acceptance wins and the other gateway gets a late rejection before it
// would begin to send.
//
// It is SURGE's model 9, of its last build.
type DoubleBooked struct {
	Sparse
}

// NewDoubleBooked returns an empty queue.
func NewDoubleBooked(d *Durations) *DoubleBooked { return &DoubleBooked{Sparse{queue: newQueue(d)}} }

// Request is Sparse.Request, but may return a window that another gateway has already been offered.
func (q *DoubleBooked) Request(now sim.Time, chunk uint64, gateway int32, notBefore, diskDelay sim.Time,
	rnd *rng.Stream) Window {
	q.withdraw(chunk)
	if diskDelay <= 0 {
		if k := q.toDouble(now, notBefore); k >= 0 {
			b := &q.bids[k]
			b.other, b.paired = chunk, true
			first, w := b.Chunk, Window{b.Offered, b.Offered + q.d.Window}
			n := &q.bids[q.give(now, chunk, gateway, w)]
			n.other, n.paired = first, true
			q.tally.DoubleBooked++
			return w
		}
	}
	return q.Sparse.Request(now, chunk, gateway, notBefore, diskDelay, rnd)
}

// toDouble returns the index of the bid whose window can be offered to a second gateway, or -1.
func (q *DoubleBooked) toDouble(now, notBefore sim.Time) int {
	for k := len(q.bids) - 1; k >= 0; k-- {
		b := &q.bids[k]
		if q.partner(k) >= 0 || b.State != Tentative {
			continue // both halves of a double booking are pending, or the bid is accepted
		}
		// Before the window begins, both bids must reach their gateways, the acceptances must return, and a rejection
		// must be sent. The older bid has been in flight since it was made.
		age := now - b.Created
		if age < q.d.Control {
			return -1 // it has not left yet
		}
		sure := now + 3*(q.d.Control+q.d.Trip) - age + 2*q.d.Trip
		if b.Offered < max(sure, notBefore) {
			return -1
		}
		return k
	}
	return -1
}

// partner returns the index of the other bid for the same window, or -1.
func (q *DoubleBooked) partner(k int) int {
	if !q.bids[k].paired {
		return -1
	}
	return q.find(q.bids[k].other)
}

// Accept handles a gateway's acceptance of window w, which must lie in its bid. If the verdict is TakenFrom, the caller
// must send a late rejection to the loser's gateway. A rejected bid stays until its gateway's acceptance or
// cancellation arrives.
func (q *DoubleBooked) Accept(_ sim.Time, chunk uint64, w Window) Acceptance {
	k := q.find(chunk)
	switch {
	case k < 0 || q.bids[k].State == Accepted:
		return Acceptance{}
	case q.bids[k].State == Rejected:
		q.remove(k)
		q.tally.Refused++
		return Acceptance{Verdict: Late}
	}
	k = q.take(k, w)
	if p := q.partner(k); p >= 0 && q.bids[p].State == Tentative {
		q.bids[p].State = Rejected
		return Acceptance{Verdict: TakenFrom, Loser: q.bids[p]}
	}
	return Acceptance{Verdict: Taken}
}

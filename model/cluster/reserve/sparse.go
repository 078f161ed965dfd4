package reserve

import (
	"farflash/numeric/rng"
	"farflash/sim"
)

// Sparse is the bid queue of Replicast-H's targets. A bid takes the first hole that is wide enough at or after the
// requested time; a canceled bid leaves a hole.
type Sparse struct {
	queue
}

// NewSparse returns an empty queue.
func NewSparse(d *Durations) *Sparse { return &Sparse{queue: newQueue(d)} }

// Request makes a bid for a chunk, not before notBefore, and not before diskDelay from now if the disk is full. A
// second request for a chunk withdraws the bid of the first. Under the paper's rules the stream decides whether an idle
// target widens its bid; without a stream it never does.
func (q *Sparse) Request(now sim.Time, chunk uint64, gateway int32, notBefore, diskDelay sim.Time,
	rnd *rng.Stream) Window {
	q.withdraw(chunk)
	left := max(q.d.earliest(now, notBefore), now+diskDelay)
	for k := range q.bids {
		w := q.bids[k].Window
		if q.bids[k].State == Rejected {
			continue // the other gateway has its window
		}
		if w.Left-left >= q.d.Window+q.d.Gap {
			break
		}
		left = max(left, w.Right+q.d.Gap+q.d.Trip)
	}
	w := Window{left, left + q.d.Window}
	if wider := q.stretch(diskDelay, rnd); wider > 0 {
		w.Right += wider
		q.tally.Stretched++
	}
	q.give(now, chunk, gateway, w)
	return w
}

// stretch returns how much an idle target widens its bid, so that it is preferred.
func (q *Sparse) stretch(diskDelay sim.Time, rnd *rng.Stream) sim.Time {
	switch {
	case len(q.bids) > 0:
		return 0
	case q.d.Rules == RulesHead && diskDelay <= 0:
		return 2 * q.d.Trip
	case q.d.Rules == RulesPaper && diskDelay < q.d.Chunk && rnd != nil && rnd.IntN(2) == 0:
		return 2 * q.d.Chunk
	}
	return 0
}

func (q *Sparse) withdraw(chunk uint64) {
	if k := q.find(chunk); k >= 0 {
		q.remove(k)
		q.tally.Withdrawn++
	}
}

// Cancel handles a gateway's cancellation. It reports whether there was a bid.
func (q *Sparse) Cancel(_ sim.Time, chunk uint64) bool {
	k := q.find(chunk)
	if k < 0 || q.bids[k].State == Accepted {
		return false
	}
	q.remove(k)
	q.tally.Canceled++
	return true
}

// Accept handles a gateway's acceptance of window w, which must lie in its bid.
func (q *Sparse) Accept(_ sim.Time, chunk uint64, w Window) Acceptance {
	k := q.find(chunk)
	if k < 0 || q.bids[k].State != Tentative {
		return Acceptance{}
	}
	q.take(k, w)
	return Acceptance{Verdict: Taken}
}

// take marks a bid as accepted with window w and returns its index.
func (q *Sparse) take(k int, w Window) int {
	mustLieIn(w, &q.bids[k])
	q.bids[k].State, q.bids[k].Window = Accepted, w
	q.tally.Accepted++
	return q.settle(k)
}

// Reserve enters a bid that a proxy has made and accepted on this target's behalf.
func (q *Sparse) Reserve(now sim.Time, chunk uint64, gateway int32, w Window) {
	q.withdraw(chunk)
	q.bids[q.give(now, chunk, gateway, w)].State = Accepted
	q.tally.Accepted++
}

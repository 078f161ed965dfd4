package reserve

import (
	"farflash/numeric/rng"
	"farflash/sim"
)

// Regular is the bid queue of Replicast-M's targets. Each new bid goes behind the last one. A canceled bid stays in the
// queue: it merges with canceled neighbours, grows into time that its neighbours release, and is offered to the next
// gateway that asks, until too little of it is left.
type Regular struct {
	queue
	canceled int // number of canceled bids in the queue
}

// NewRegular returns an empty queue.
func NewRegular(d *Durations) *Regular { return &Regular{queue: newQueue(d)} }

// reuseBelow is the queue length from which canceled bids are not reused: they would be far away.
const reuseBelow = 4

// Request makes a bid for a chunk, not before notBefore, and not before diskDelay from now if the disk is full. A
// second request for a chunk withdraws the bid of the first. The stream is unused; it is a parameter because other
// queues draw from it.
func (q *Regular) Request(now sim.Time, chunk uint64, gateway int32, notBefore, diskDelay sim.Time,
	_ *rng.Stream) Window {
	if k := q.find(chunk); k >= 0 {
		q.tally.Withdrawn++
		q.cancel(k)
	}
	q.forget(now)
	earliest := q.d.earliest(now, notBefore)
	if q.canceled > 0 && diskDelay <= 0 && len(q.bids) < reuseBelow {
		if w, ok := q.reuse(now, chunk, gateway, earliest); ok {
			return w
		}
	}
	left := earliest
	if l := len(q.bids); l > 0 {
		left = max(left, q.bids[l-1].Window.Right+q.d.Gap+q.d.Trip)
	}
	if diskDelay > 0 {
		left = max(left, now+diskDelay)
	}
	w := Window{left, left + q.d.Window}
	if len(q.bids) == 0 && diskDelay < q.d.Chunk {
		// An idle target widens its bid, which makes an overlap with others' bids more likely.
		w.Right += 2 * q.d.Chunk
		q.tally.Stretched++
	}
	q.give(now, chunk, gateway, w)
	return w
}

// reuse offers the latest canceled bid again if enough of it is left.
func (q *Regular) reuse(now sim.Time, chunk uint64, gateway int32, earliest sim.Time) (Window, bool) {
	for k := len(q.bids) - 1; k >= 0; k-- {
		b := &q.bids[k]
		if b.State != Canceled {
			continue
		}
		if earliest > b.Window.Left {
			if b.Window.Right-earliest < q.d.Window {
				return Window{}, false // earlier ones have still less left
			}
			if !q.d.Compat.reusesThePast() {
				b.Window.Left = earliest
			}
		}
		q.canceled--
		q.tally.Given++
		q.tally.Reused++
		*b = Bid{Chunk: chunk, Gateway: gateway, Window: b.Window, Created: now, Offered: b.Window.Left}
		return b.Window, true
	}
	return Window{}, false
}

// Cancel handles a gateway's cancellation. It reports whether there was a bid.
func (q *Regular) Cancel(now sim.Time, chunk uint64) bool {
	q.forget(now)
	k := q.find(chunk)
	if k < 0 || q.bids[k].State != Tentative {
		return false
	}
	q.tally.Canceled++
	q.cancel(k)
	return true
}

// cancel marks a bid as canceled and merges it with canceled neighbours.
func (q *Regular) cancel(k int) {
	q.bids[k].State = Canceled
	q.canceled++
	if k+1 < len(q.bids) && q.bids[k+1].State == Canceled {
		q.bids[k].Window.Right = q.bids[k+1].Window.Right
		q.remove(k + 1)
		q.canceled--
	}
	if k > 0 && q.bids[k-1].State == Canceled {
		q.bids[k].Window.Left = q.bids[k-1].Window.Left
		q.remove(k - 1)
		q.canceled--
	}
}

// Accept handles a gateway's acceptance of window w, which must lie in its bid. The remainder goes to canceled
// neighbours.
func (q *Regular) Accept(now sim.Time, chunk uint64, w Window) Acceptance {
	q.forget(now)
	k := q.find(chunk)
	if k < 0 || q.bids[k].State != Tentative {
		return Acceptance{}
	}
	b := &q.bids[k]
	mustLieIn(w, b)
	b.State, b.Window = Accepted, w
	q.tally.Accepted++
	if k+1 < len(q.bids) {
		next := &q.bids[k+1]
		if next.State == Canceled && next.Window.Left-w.Right > q.d.Gap+q.d.Control {
			next.Window.Left = w.Right + q.d.Gap
		}
	}
	if k > 0 {
		previous := &q.bids[k-1]
		if previous.State == Canceled && w.Left-previous.Window.Right > q.d.Gap+q.d.Control {
			previous.Window.Right = w.Left - q.d.Gap
		}
	}
	return Acceptance{Verdict: Taken}
}

// Expire is queue.Expire.
func (q *Regular) Expire(now, grace sim.Time) int {
	n := q.queue.Expire(now, grace)
	q.canceled = 0
	for i := range q.bids {
		if q.bids[i].State == Canceled {
			q.canceled++
		}
	}
	return n
}

// forget removes useless canceled bids: those at the end of the queue, because a new bid can begin there, and those of
// which too little is left for a gateway that is offered them now.
func (q *Regular) forget(now sim.Time) {
	for l := len(q.bids); l > 0 && q.bids[l-1].State == Canceled; l-- {
		q.remove(l - 1)
		q.canceled--
	}
	if q.canceled == 0 {
		return
	}
	earliest := now + q.d.Control + q.d.Trip
	for k := 0; k < len(q.bids); {
		b := &q.bids[k]
		if b.State == Canceled && earliest > b.Window.Left && b.Window.Right-earliest < q.d.Window {
			q.remove(k)
			q.canceled--
			continue
		}
		k++
	}
}

package reserve

import "farflash/sim"

// firstBids is how many bids a queue has room for before it grows: a group's gateways rarely have more of them
// pending.
const firstBids = 16

// queue is what the three queues have in common: bids in the order of their left edges. A queue
// is as long as there are gateways that ask at once, so it is searched from one end to the other.
type queue struct {
	d     *Durations
	bids  []Bid
	tally Tally
}

func newQueue(d *Durations) queue { return queue{d: d, bids: make([]Bid, 0, firstBids)} }

// Len is how many bids are pending, canceled ones that wait for another gateway among them.
func (q *queue) Len() int { return len(q.bids) }

// At is the pending bid i in the order of left edges.
func (q *queue) At(i int) Bid { return q.bids[i] }

// Find is the pending bid for a chunk that is not canceled.
func (q *queue) Find(chunk uint64) (Bid, bool) {
	if k := q.find(chunk); k >= 0 {
		return q.bids[k], true
	}
	return Bid{}, false
}

// Tally counts what has become of the bids so far.
func (q *queue) Tally() Tally { return q.tally }

// find is the place of a chunk's bid, or -1.
func (q *queue) find(chunk uint64) int {
	for k := range q.bids {
		if q.bids[k].Chunk == chunk && q.bids[k].State != Canceled {
			return k
		}
	}
	return -1
}

func (q *queue) remove(k int) {
	q.bids = append(q.bids[:k], q.bids[k+1:]...)
}

// insert puts a bid behind those that begin at the same moment or earlier, and returns its place.
func (q *queue) insert(b Bid) int {
	q.bids = append(q.bids, b)
	return q.settle(len(q.bids) - 1)
}

// settle moves a bid whose window has changed to where it belongs in the order, and returns its place.
func (q *queue) settle(k int) int {
	for ; k > 0 && q.bids[k-1].Window.Left > q.bids[k].Window.Left; k-- {
		q.bids[k-1], q.bids[k] = q.bids[k], q.bids[k-1]
	}
	for ; k+1 < len(q.bids) && q.bids[k+1].Window.Left < q.bids[k].Window.Left; k++ {
		q.bids[k+1], q.bids[k] = q.bids[k], q.bids[k+1]
	}
	return k
}

// give makes a bid, counts it, and returns its place.
func (q *queue) give(now sim.Time, chunk uint64, gateway int32, w Window) int {
	q.tally.Given++
	return q.insert(Bid{Chunk: chunk, Gateway: gateway, Window: w, Created: now, Offered: w.Left})
}

// Done says that a chunk's last byte has arrived: its bid ends. It reports whether there was an accepted one.
func (q *queue) Done(chunk uint64) bool {
	k := q.find(chunk)
	if k < 0 || q.bids[k].State != Accepted {
		return false
	}
	q.remove(k)
	q.tally.Done++
	return true
}

// Expire gives back what nobody has answered or used: bids of any state whose window ended more than grace before
// now. It returns how many chunks have lost their bid by it. Only lost messages and dead gateways make it needed; a
// caller that has neither need not call it.
func (q *queue) Expire(now, grace sim.Time) int {
	n, kept := 0, q.bids[:0]
	for _, b := range q.bids {
		if b.Window.Right+grace >= now {
			kept = append(kept, b)
			continue
		}
		if b.State != Canceled {
			n++
		}
	}
	q.bids = kept
	q.tally.Expired += int64(n)
	return n
}

// mustLieIn holds that a gateway takes no more than it was given.
func mustLieIn(w Window, b *Bid) {
	if !w.Within(b.Window) || w.Width() <= 0 {
		panic("reserve: a gateway accepts a window outside of its bid")
	}
}

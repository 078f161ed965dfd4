package reserve

import "farflash/sim"

// firstBids is the initial capacity of a queue: a group's gateways rarely have more bids pending.
const firstBids = 16

// queue is the common part of the three queues: bids in the order of their left edges. Its length is the number of
// gateways that ask concurrently, which is small, so it is searched linearly.
type queue struct {
	d     *Durations
	bids  []Bid
	tally Tally
}

func newQueue(d *Durations) queue { return queue{d: d, bids: make([]Bid, 0, firstBids)} }

// Len returns the number of pending bids, including canceled ones that are kept for reuse.
func (q *queue) Len() int { return len(q.bids) }

// At returns pending bid i in the order of left edges.
func (q *queue) At(i int) Bid { return q.bids[i] }

// Find returns the pending bid for a chunk, ignoring canceled ones.
func (q *queue) Find(chunk uint64) (Bid, bool) {
	if k := q.find(chunk); k >= 0 {
		return q.bids[k], true
	}
	return Bid{}, false
}

// Tally returns the counters of the bids' outcomes so far.
func (q *queue) Tally() Tally { return q.tally }

// find returns the index of a chunk's bid, or -1.
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

// insert inserts a bid after those that begin at the same time or earlier, and returns its index.
func (q *queue) insert(b Bid) int {
	q.bids = append(q.bids, b)
	return q.settle(len(q.bids) - 1)
}

// settle restores the order after a bid's window has changed, and returns the bid's index.
func (q *queue) settle(k int) int {
	for ; k > 0 && q.bids[k-1].Window.Left > q.bids[k].Window.Left; k-- {
		q.bids[k-1], q.bids[k] = q.bids[k], q.bids[k-1]
	}
	for ; k+1 < len(q.bids) && q.bids[k+1].Window.Left < q.bids[k].Window.Left; k++ {
		q.bids[k+1], q.bids[k] = q.bids[k], q.bids[k+1]
	}
	return k
}

// give makes a bid, counts it, and returns its index.
func (q *queue) give(now sim.Time, chunk uint64, gateway int32, w Window) int {
	q.tally.Given++
	return q.insert(Bid{Chunk: chunk, Gateway: gateway, Window: w, Created: now, Offered: w.Left})
}

// Done ends a chunk's bid when the last byte has arrived. It reports whether there was an accepted bid.
func (q *queue) Done(chunk uint64) bool {
	k := q.find(chunk)
	if k < 0 || q.bids[k].State != Accepted {
		return false
	}
	q.remove(k)
	q.tally.Done++
	return true
}

// Expire removes the bids, in any state, whose windows ended more than grace before now: they were neither answered nor
// used. It returns the number of chunks that have lost a bid. Only lost messages and dead gateways make this necessary.
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

// mustLieIn panics if a gateway takes more than it was offered.
func mustLieIn(w Window, b *Bid) {
	if !w.within(b.Window) || w.Width() <= 0 {
		panic("reserve: a gateway accepts a window outside of its bid")
	}
}

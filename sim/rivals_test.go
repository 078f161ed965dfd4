package sim

import (
	"math/bits"
	"slices"
)

// pendingSet is the common interface of the queue and its rivals.
type pendingSet interface {
	push(entry)
	pop() entry
	len() int
}

// binaryHeap is the textbook heap: the reference for the queue's order.
type binaryHeap struct{ events []entry }

func (h *binaryHeap) len() int { return len(h.events) }

func (h *binaryHeap) push(e entry) {
	h.events = append(h.events, e)
	i := len(h.events) - 1
	for i > 0 && e.less(h.events[(i-1)/2].key) {
		h.events[i] = h.events[(i-1)/2]
		i = (i - 1) / 2
	}
	h.events[i] = e
}

func (h *binaryHeap) pop() entry {
	first, n := h.events[0], len(h.events)-1
	e := h.events[n]
	h.events = h.events[:n]
	i := 0
	for child := 1; child < n; child = 2*i + 1 {
		if child+1 < n && h.events[child+1].less(h.events[child].key) {
			child++
		}
		if !h.events[child].less(e.key) {
			break
		}
		h.events[i] = h.events[child]
		i = child
	}
	if n > 0 {
		h.events[i] = e
	}
	return first
}

// quadHeap is a heap with four children per node.
type quadHeap struct{ events []entry }

func (h *quadHeap) len() int { return len(h.events) }

func (h *quadHeap) push(e entry) {
	h.events = append(h.events, e)
	i := len(h.events) - 1
	for i > 0 && e.less(h.events[(i-1)/4].key) {
		h.events[i] = h.events[(i-1)/4]
		i = (i - 1) / 4
	}
	h.events[i] = e
}

func (h *quadHeap) pop() entry {
	first, n := h.events[0], len(h.events)-1
	e := h.events[n]
	h.events = h.events[:n]
	i := 0
	for child := 1; child < n; child = 4*i + 1 {
		least := child
		for c := child + 1; c < min(child+4, n); c++ {
			if h.events[c].less(h.events[least].key) {
				least = c
			}
		}
		if !h.events[least].less(e.key) {
			break
		}
		h.events[i] = h.events[least]
		i = least
	}
	if n > 0 {
		h.events[i] = e
	}
	return first
}

// sortedList keeps all events in order, the first at the end.
type sortedList struct{ events []entry }

func (l *sortedList) len() int { return len(l.events) }

func (l *sortedList) push(e entry) {
	l.events = append(l.events, e)
	i := len(l.events) - 1
	for i > 0 && l.events[i-1].less(e.key) {
		l.events[i] = l.events[i-1]
		i--
	}
	l.events[i] = e
}

func (l *sortedList) pop() entry {
	n := len(l.events) - 1
	e := l.events[n]
	l.events = l.events[:n]
	return e
}

// radixHeap files events by the highest bit in which they differ from the last one popped. It requires that pushes are
// not before that one, ties included, so equal times are sorted separately.
type radixHeap struct {
	buckets [65][]entry
	last    Time
	n       int
}

func (h *radixHeap) len() int { return h.n }

func (h *radixHeap) push(e entry) {
	h.n++
	b := bits.Len64(uint64(Time(e.at) ^ h.last))
	h.buckets[b] = append(h.buckets[b], e)
	if b == 0 {
		sink(h.buckets[0])
	}
}

func (h *radixHeap) pop() entry {
	if len(h.buckets[0]) == 0 {
		b := 1
		for len(h.buckets[b]) == 0 {
			b++
		}
		first := Forever
		for i := range h.buckets[b] {
			first = min(first, Time(h.buckets[b][i].at))
		}
		h.last = first
		for _, e := range h.buckets[b] {
			to := bits.Len64(uint64(Time(e.at) ^ first))
			h.buckets[to] = append(h.buckets[to], e)
		}
		h.buckets[b] = h.buckets[b][:0]
		sortLastFirst(h.buckets[0])
	}
	h.n--
	n := len(h.buckets[0]) - 1
	e := h.buckets[0][n]
	h.buckets[0] = h.buckets[0][:n]
	return e
}

// sink moves the last event of a list, whose first event is at the end, to its position.
func sink(events []entry) {
	i := len(events) - 1
	e := events[i]
	for i > 0 && events[i-1].less(e.key) {
		events[i] = events[i-1]
		i--
	}
	events[i] = e
}

// sortLastFirst sorts so that the first event is at the end.
func sortLastFirst(events []entry) {
	if len(events) > 24 {
		slices.SortFunc(events, func(a, b entry) int {
			if a.less(b.key) {
				return 1
			}
			return -1
		})
		return
	}
	for i := range events {
		sink(events[:i+1])
	}
}

// slotWheel is a hierarchical timing wheel of 16 ns slots, 256 per level, with a bitmap of the occupied ones. A slot is
// sorted when it is reached.
type slotWheel struct {
	open     []entry // the current slot, first event at the end
	cursor   uint64  // the current slot
	occupied [6][4]uint64
	slots    [6][256][]entry
	n        int
}

const wheelSlotBits = 14

func (w *slotWheel) len() int { return w.n }

func (w *slotWheel) push(e entry) {
	w.n++
	w.file(e)
}

func (w *slotWheel) file(e entry) {
	s := e.at >> wheelSlotBits
	if s <= w.cursor {
		w.open = append(w.open, e)
		sink(w.open)
		return
	}
	l := (bits.Len64(s^w.cursor) - 1) / 8
	i := s >> (8 * l) & 255
	w.slots[l][i] = append(w.slots[l][i], e)
	w.occupied[l][i/64] |= 1 << (i % 64)
}

func (w *slotWheel) pop() entry {
	for len(w.open) == 0 {
		w.advance()
	}
	w.n--
	n := len(w.open) - 1
	e := w.open[n]
	w.open = w.open[:n]
	return e
}

func (w *slotWheel) advance() {
	for l := range w.occupied {
		for word, b := range w.occupied[l] {
			if b == 0 {
				continue
			}
			i := uint64(word*64 + bits.TrailingZeros64(b))
			w.occupied[l][word] &= b - 1
			w.cursor = w.cursor>>(8*l+8)<<(8*l+8) | i<<(8*l)
			if l == 0 {
				w.open, w.slots[0][i] = w.slots[0][i], w.open
				sortLastFirst(w.open)
				return
			}
			events := w.slots[l][i]
			w.slots[l][i] = events[:0]
			start := len(w.open)
			for _, e := range events {
				if e.at>>wheelSlotBits == w.cursor {
					w.open = append(w.open, e)
				} else {
					w.file(e)
				}
			}
			sortLastFirst(w.open[start:])
			return
		}
	}
}

// ladder is the ladder queue of Tang, Goh and Thng (ACM TOMACS 15(3), 2005): an unsorted top, rungs of ever finer
// buckets, a sorted bottom.
type ladder struct {
	top      []entry
	topStart Time
	rungs    []rung
	depth    int
	bottom   []entry // first at the end
	n        int
}

type rung struct {
	start, width Time
	next         int // the first bucket not yet taken
	end          int
	buckets      [][]entry
}

const ladderThreshold = 50

func (q *ladder) len() int { return q.n }

func (q *ladder) push(e entry) {
	q.n++
	if Time(e.at) >= q.topStart {
		q.top = append(q.top, e)
		return
	}
	for i := range q.rungs[:q.depth] {
		r := &q.rungs[i]
		if b := int((Time(e.at) - r.start) / r.width); Time(e.at) >= r.start && b >= r.next && b < r.end {
			r.buckets[b] = append(r.buckets[b], e)
			return
		}
	}
	q.bottom = append(q.bottom, e)
	sink(q.bottom)
}

// spread distributes events over a new rung for [start, end).
func (q *ladder) spread(events []entry, start, end Time) {
	if q.depth == len(q.rungs) {
		q.rungs = append(q.rungs, rung{})
	}
	r := &q.rungs[q.depth]
	q.depth++
	r.start, r.next = start, 0
	r.width = max(1, (end-start+Time(len(events))-1)/Time(len(events)))
	r.end = int((end - start + r.width - 1) / r.width)
	for len(r.buckets) < r.end {
		r.buckets = append(r.buckets, nil)
	}
	for i := range events {
		b := (Time(events[i].at) - start) / r.width
		r.buckets[b] = append(r.buckets[b], events[i])
	}
}

func (q *ladder) pop() entry {
	for len(q.bottom) == 0 {
		if q.depth == 0 {
			first, last := Time(q.top[0].at), Time(q.top[0].at)
			for i := range q.top {
				first, last = min(first, Time(q.top[i].at)), max(last, Time(q.top[i].at))
			}
			q.spread(q.top, first, last+1)
			q.top, q.topStart = q.top[:0], last+1
		}
		r := &q.rungs[q.depth-1]
		for r.next < r.end && len(r.buckets[r.next]) == 0 {
			r.next++
		}
		if r.next == r.end {
			q.depth--
			continue
		}
		events := r.buckets[r.next]
		r.buckets[r.next] = events[:0]
		start, width := r.start+Time(r.next)*r.width, r.width
		r.next++
		if len(events) > ladderThreshold && width > 1 {
			q.spread(events, start, start+width)
			continue
		}
		q.bottom = append(q.bottom, events...)
		sortLastFirst(q.bottom)
	}
	q.n--
	n := len(q.bottom) - 1
	e := q.bottom[n]
	q.bottom = q.bottom[:n]
	return e
}

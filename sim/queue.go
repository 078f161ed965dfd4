package sim

import "math/bits"

// The queue is a timing wheel whose slots open like the rungs of a ladder queue:
// only when they are reached, and only as finely as their crowd needs. It has
// two parts.
//
//	front  up to 64 events, sorted: all that come before the rest
//	wheel  every later event, unsorted, in the slots of a 64-ary hierarchy
//
// A drive has some tens of events pending: they never leave the front, which is
// the fastest thing there is for so few. When the front overflows, its later part
// goes to the wheel; when it runs dry, the first occupied slot is opened, straight
// into the front if it holds few events however wide it is, else one digit finer.
//
// The hierarchy goes by the digits of the whole key, the time's and then the order
// key's, not of the time alone. Keys are distinct, so that a crowd can always be
// split, a million events at one time included, and nothing is ever sorted in
// bulk. An event moves at most once a digit, mostly once or twice.
//
// The structure is exact whatever the keys: events may be pushed before ones
// that next has already looked at, or in any order at the time that is running.

const (
	frontLen  = 64 // a power of two
	openLimit = 32 // the largest slot that is opened into the front
	topUp     = 8  // opening goes on until the front holds this many

	digitBits = 6
	radix     = 1 << digitBits
	digits    = 11 // of a time or an order key: 66 bits
	levels    = 2 * digits

	chunkLen = 10 // 248 bytes
)

// key is an event's place in the order. Comparing keys compares (time, order).
type key struct{ at, order uint64 }

func (e *Event) key() key { return key{uint64(e.At), e.order} }

func (k key) less(o key) bool { return k.at < o.at || k.at == o.at && k.order < o.order }

// chunk is a stretch of a slot's list.
type chunk struct {
	n      uint32
	next   uint32 // 0 ends the list
	events [chunkLen]Event
}

type queue struct {
	// front is a ring: n events in order, the first at head.
	front   [frontLen]Event
	head, n uint
	// last is the greatest key that belongs in the front.
	last key

	// cursor is the key that levels are reckoned from: an event is filed at the
	// level of the highest digit in which it differs from cursor, in the slot of
	// its own digit there. No filed event is before cursor.
	cursor   key
	filed    int
	occupied uint32         // a bit for each level with occupied slots
	slots    [levels]uint64 // a bit for each occupied slot
	lists    [levels * radix]uint32

	// chunks hold the lists; chunks[0] is unused, free heads the unused others.
	chunks []chunk
	free   uint32
}

func (q *queue) init() {
	q.last = key{^uint64(0), ^uint64(0)}
}

func (q *queue) len() int { return int(q.n) + q.filed }

// push adds an event.
func (q *queue) push(e Event) {
	if k := e.key(); !q.last.less(k) {
		if q.n < frontLen {
			q.insert(e)
			return
		}
		q.spill()
		q.push(e)
		return
	}
	q.file(&e)
}

// insert puts an event in its place in the front, which has room.
func (q *queue) insert(e Event) {
	q.head--
	i := q.head
	for end := q.head + q.n; i != end; i++ {
		f := &q.front[(i+1)%frontLen]
		if !f.before(&e) {
			break
		}
		q.front[i%frontLen] = *f
	}
	q.front[i%frontLen] = e
	q.n++
}

// next is the time of the first event. The queue must not be empty.
func (q *queue) next() Time {
	if q.n == 0 {
		q.refill()
	}
	return q.front[q.head%frontLen].At
}

// pop removes the first event. The queue must not be empty.
func (q *queue) pop() Event {
	if q.n == 0 {
		q.refill()
	}
	e := q.front[q.head%frontLen]
	q.head++
	q.n--
	return e
}

// digit is the index of the highest digit that is not zero, 0 if there is none.
func digit(x uint64) int { return (bits.Len64(x|1) - 1) / digitBits }

// level is the level that a key is filed at, from base.
func level(k, base key) int {
	if x := k.at ^ base.at; x != 0 {
		return digits + digit(x)
	}
	return digit(k.order ^ base.order)
}

// file puts an event that is not before cursor in the wheel.
func (q *queue) file(e *Event) {
	var l int
	var s uint64
	if x := uint64(e.At) ^ q.cursor.at; x != 0 {
		d := digit(x)
		l = digits + d
		s = uint64(e.At) >> (d * digitBits) % radix
	} else {
		l = digit(e.order ^ q.cursor.order)
		s = e.order >> (l * digitBits) % radix
	}
	q.filed++
	list := &q.lists[l*radix+int(s)]
	c := *list
	if c == 0 || q.chunks[c].n == chunkLen {
		c = q.grow(c)
		*list = c
		q.slots[l] |= 1 << s
		q.occupied |= 1 << l
	}
	ch := &q.chunks[c]
	ch.events[ch.n] = *e
	ch.n++
}

// grow returns an empty chunk, followed by next.
func (q *queue) grow(next uint32) uint32 {
	c := q.free
	if c == 0 {
		if len(q.chunks) == 0 {
			q.chunks = make([]chunk, 1, 16)
		}
		q.chunks = append(q.chunks, chunk{})
		c = uint32(len(q.chunks) - 1)
	} else {
		q.free = q.chunks[c].next
	}
	q.chunks[c].n, q.chunks[c].next = 0, next
	return c
}

// spill moves the later part of the front to the wheel, about half of it.
func (q *queue) spill() {
	// The cut is the key with the most trailing zeros between the first and the
	// third quarter: round keys make the fewest slots straddle it.
	lo, cut := q.front[(q.head+q.n/4)%frontLen].key(), q.front[(q.head+q.n*3/4)%frontLen].key()
	if x := lo.at ^ cut.at; x != 0 {
		cut = key{cut.at &^ below(x), 0}
		q.last = key{cut.at - 1, ^uint64(0)}
	} else {
		cut.order &^= below(lo.order ^ cut.order)
		q.last = key{cut.at, cut.order - 1}
	}
	if q.filed == 0 || cut.less(q.cursor) {
		q.rebase(key{uint64(q.front[q.head%frontLen].At), 0})
	}
	for q.n > 0 {
		e := &q.front[(q.head+q.n-1)%frontLen]
		if q.last.less(e.key()) {
			q.file(e)
			q.n--
			continue
		}
		return
	}
}

// below has a bit for each one below the highest of x.
func below(x uint64) uint64 { return 1<<(bits.Len64(x)-1) - 1 }

// rebase moves cursor back to k, or anywhere if nothing is filed. What was filed
// below the level at which the two differ now belongs there.
func (q *queue) rebase(k key) {
	finer := q.occupied & (1<<level(k, q.cursor) - 1)
	q.cursor = k
	for ; finer != 0; finer &= finer - 1 {
		l := bits.TrailingZeros32(finer)
		for q.slots[l] != 0 {
			q.split(q.take(l, bits.TrailingZeros64(q.slots[l])))
		}
	}
}

// take empties a slot and returns what was its list.
func (q *queue) take(l, s int) uint32 {
	list := &q.lists[l*radix+s]
	c := *list
	*list = 0
	q.slots[l] &^= 1 << s
	if q.slots[l] == 0 {
		q.occupied &^= 1 << l
	}
	return c
}

// refill opens slots until the front holds events. There are filed ones.
func (q *queue) refill() {
	for q.n < topUp && q.filed > 0 {
		l := bits.TrailingZeros32(q.occupied)
		s := bits.TrailingZeros64(q.slots[l])
		n := q.n
		for c := q.lists[l*radix+s]; c != 0 && n <= openLimit; c = q.chunks[c].next {
			n += uint(q.chunks[c].n)
		}
		if q.n > 0 && n > openLimit {
			return
		}
		c := q.take(l, s)
		// cursor goes to the slot's first key.
		shift := l % digits * digitBits
		inside := uint64(1)<<shift - 1
		if l >= digits {
			q.cursor.at = q.cursor.at&^(inside<<digitBits|(radix-1)) | uint64(s)<<shift
			q.cursor.order = 0
		} else {
			q.cursor.order = q.cursor.order&^(inside<<digitBits|(radix-1)) | uint64(s)<<shift
		}
		if n > openLimit {
			q.split(c)
			continue
		}
		q.open(c)
		if l >= digits {
			q.last = key{q.cursor.at | inside, ^uint64(0)}
		} else {
			q.last = key{q.cursor.at, q.cursor.order | inside}
		}
	}
	if q.filed == 0 {
		q.last = key{^uint64(0), ^uint64(0)}
	}
}

// open moves a list to the end of the front.
func (q *queue) open(c uint32) {
	for c != 0 {
		ch := &q.chunks[c]
		q.filed -= int(ch.n)
		for k := range ch.events[:ch.n] {
			e := &ch.events[k]
			i := q.head + q.n
			for i != q.head {
				f := &q.front[(i-1)%frontLen]
				if !e.before(f) {
					break
				}
				q.front[i%frontLen] = *f
				i--
			}
			q.front[i%frontLen] = *e
			q.n++
		}
		next := ch.next
		ch.next, q.free = q.free, c
		c = next
	}
}

// split files a list anew, at finer levels.
func (q *queue) split(c uint32) {
	for c != 0 {
		n, next := q.chunks[c].n, q.chunks[c].next
		q.filed -= int(n)
		for k := range n {
			e := q.chunks[c].events[k]
			q.file(&e)
		}
		q.chunks[c].next, q.free = q.free, c
		c = next
	}
}

package sim

// The queue is a timing wheel whose slots are opened like the rungs of a ladder queue: only when they are reached, and
// only as finely as their number of entries requires. It has two parts.
//
//	front  the first events, at most frontCap, in order
//	wheel  every later event, unsorted, in the slots of a hierarchy of 256 per level
//
// A drive has some tens of events pending. They never leave the front, and for that few no structure is faster. When
// the front overflows, its later part moves to the wheel. When it runs empty, the first occupied slot is opened:
// directly into the front if it holds few events, however wide it is, otherwise one level finer.
//
// The hierarchy follows the digits of the whole key, first the time's and then the order key's. Keys are distinct, so
// any number of entries can be split, even a million events at one time, and there is no bulk sorting. An event moves
// at most once per level and usually once or twice.
//
// Pushes may use any key: earlier than keys that ready has already examined, and in any order within the current time.

// key is an event's position in the order.
type key struct {
	at    uint64 // a Time, which is never negative
	order uint64
}

// less reports whether k comes before o.
func (k key) less(o key) bool { return k.at < o.at || k.at == o.at && k.order < o.order }

// before returns the key just before k, which must not be the first of all.
func (k key) before() key {
	if k.order == 0 {
		return key{k.at - 1, ^uint64(0)}
	}
	return key{k.at, k.order - 1}
}

// endless returns a key after every event's.
func endless() key { return key{^uint64(0), ^uint64(0)} }

// entry is an event as stored in the queue: three words. The compiler keeps structs of up to four fields in
// registers. A struct of the five parts would go through memory, stored field by field and loaded 16 bytes at a time,
// and waiting for those stores took longer than all the rest.
type entry struct {
	key
	what uint64 // Arg, Kind and To
}

func newEntry(at Time, order uint64, arg uint32, kind uint16, to Target) entry {
	return entry{key{uint64(at), order}, uint64(arg) | uint64(kind)<<32 | uint64(to)<<48}
}

func (x entry) to() Target { return Target(x.what >> 48) }

const (
	frontLen = 64 // a power of two
	frontCap = frontLen - 1
	openMost = 32 // the largest slot that is opened into the front
	openTill = 8  // slots are opened until the front holds this many
)

type queue struct {
	// front is a ring of n entries in order, the first at head. They are followed by an entry with the key endless,
	// which terminates searches.
	front [frontLen]entry
	head  uint
	n     uint
	// last is the largest key that belongs in the front.
	last  key
	wheel wheel
	// opened, if set, is called after the front was refilled.
	opened func()
}

func (q *queue) init() {
	q.front[0].key = endless()
	q.last = endless()
}

func (q *queue) len() int { return int(q.n) + q.wheel.n }

// push adds an entry. It is not inlined: the inliner, guided by a profile, would otherwise inline push but not its
// callees.
//
//go:noinline
func (q *queue) push(x entry) {
	switch {
	case q.last.less(x.key):
		q.wheel.file(x)
	case q.n < frontCap:
		q.insert(x)
	default:
		q.pushFull(x)
	}
}

// pushFull handles a push into a full front. As a rare path it is not inlined, so that the common paths need not save
// registers for it.
//
//go:noinline
func (q *queue) pushFull(x entry) {
	for !q.last.less(x.key) {
		if q.n < frontCap {
			q.insert(x)
			return
		}
		q.spill()
	}
	q.wheel.file(x)
}

// insert places an entry into the front, which has space. The search starts at the nearer end: compared with the
// pending ones, delays are mostly either short (a message) or long (a flash operation).
func (q *queue) insert(x entry) {
	if q.n >= 8 && q.front[(q.head+q.n/2)%frontLen].at < x.at {
		i := (q.head + q.n) % frontLen
		q.n++
		q.front[(i+1)%frontLen].key = endless()
		for {
			last := (i - 1) % frontLen
			f := &q.front[last]
			if f.less(x.key) {
				break
			}
			q.front[i] = *f
			i = last
		}
		q.front[i] = x
		return
	}
	q.head--
	q.n++
	i := q.head % frontLen
	for {
		next := (i + 1) % frontLen
		f := &q.front[next]
		if !f.less(x.key) {
			break
		}
		q.front[i] = *f
		i = next
	}
	q.front[i] = x
}

// first returns the time of the front's first entry, or a time after every event if the front is empty.
func (q *queue) first() uint64 { return q.front[q.head%frontLen].at }

// ready reports whether there is an event at or before until, which must not be negative. It opens no slot that begins
// later, so that pushes after a run up to until rarely precede the open part.
func (q *queue) ready(until Time) bool {
	return q.first() <= uint64(until) || q.n == 0 && q.refill(uint64(until))
}

// take removes and returns the first entry. The caller must have checked ready.
func (q *queue) take() entry {
	x := q.front[q.head%frontLen]
	q.head++
	q.n--
	return x
}

// refill opens slots that begin at or before until to fill the empty front, and returns the result of ready.
func (q *queue) refill(until uint64) bool {
	w := &q.wheel
	for q.n < openTill && w.n > 0 {
		l, s := w.first()
		start, end := w.span(l, s)
		if start.at > until {
			break
		}
		crowd := w.count(l, s, openMost)
		if q.n > 0 && q.n+crowd > openMost {
			break
		}
		list := w.take(l, s)
		w.cursor = start
		if crowd > openMost {
			q.last = start.before() // filed entries must not be before cursor
			w.split(list)
			continue
		}
		q.open(list)
		q.last = end
	}
	if w.n == 0 {
		q.last = endless()
	}
	if q.opened != nil {
		q.opened()
	}
	return q.front[q.head%frontLen].at <= until
}

// open inserts the entries of a list into the front, searching from its late end.
func (q *queue) open(list uint32) {
	w := &q.wheel
	for list != 0 {
		_, entries := w.chunk(list)
		for _, x := range entries {
			i := q.head + q.n
			q.n++
			for i != q.head {
				f := q.front[(i-1)%frontLen]
				if f.less(x.key) {
					break
				}
				q.front[i%frontLen] = f
				i--
			}
			q.front[i%frontLen] = x
		}
		w.n -= len(entries)
		list = w.release(list)
	}
	q.front[(q.head+q.n)%frontLen].key = endless()
}

// spill moves about half of the front, the later part, to the wheel.
func (q *queue) spill() {
	// Cut at the key with the most trailing zeros between the first and the third quarter, so that few slots straddle
	// the cut.
	lo, cut := q.front[(q.head+q.n/4)%frontLen].key, q.front[(q.head+q.n*3/4)%frontLen].key
	if x := lo.at ^ cut.at; x != 0 {
		cut = key{cut.at &^ belowTop(x), 0}
	} else {
		cut.order &^= belowTop(lo.order ^ cut.order)
	}
	q.last = cut.before()
	if q.wheel.n == 0 || cut.less(q.wheel.cursor) {
		q.wheel.rebase(key{q.front[q.head%frontLen].at, 0})
	}
	for {
		x := q.front[(q.head+q.n-1)%frontLen]
		if x.less(cut) { // true at lo at the latest
			break
		}
		q.wheel.file(x)
		q.n--
	}
	q.front[(q.head+q.n)%frontLen].key = endless()
}

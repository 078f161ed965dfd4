package sim

// The queue is a timing wheel whose slots open like the rungs of a ladder queue:
// only when they are reached, and only as finely as their crowd needs. It has
// two parts.
//
//	front  the first events, at most frontCap, in order
//	wheel  every later event, unsorted, in the slots of a hierarchy of 256 a level
//
// A drive has some tens of events pending. They never leave the front, and for so
// few nothing is faster. When the front overflows, its later part goes to the
// wheel; when it runs dry, the first occupied slot is opened: straight into the
// front if it holds few events, however wide it is, else one level finer.
//
// The hierarchy goes by the digits of the whole key, first the time's and then the
// order key's. Keys are distinct, so a crowd can always be split, a million events
// at one time included, and nothing is ever sorted in bulk. An event moves at most
// once a level and mostly once or twice.
//
// Nothing is assumed about the keys that are pushed. They may be earlier than ones
// that ready has already looked at, and in any order at the time that is running.

// key is an event's place in the order.
type key struct {
	at    uint64 // a Time, which is never negative
	order uint64
}

// less reports whether k comes before o.
func (k key) less(o key) bool { return k.at < o.at || k.at == o.at && k.order < o.order }

// before is the key just before k, which is not the first of all.
func (k key) before() key {
	if k.order == 0 {
		return key{k.at - 1, ^uint64(0)}
	}
	return key{k.at, k.order - 1}
}

// endless is after every event's key.
func endless() key { return key{^uint64(0), ^uint64(0)} }

// entry is an event as the queue keeps it: three words. The compiler keeps structs
// of up to four fields in registers. An Event has five; it goes through memory,
// stored field by field and loaded by sixteen bytes, and waiting for that store
// took longer than all the rest.
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
	openTill = 8  // slots are opened until the front holds so many
)

type queue struct {
	// front is a ring. It holds n entries in order, the first at head, and after
	// them one with the key endless, where a search stops.
	front [frontLen]entry
	head  uint
	n     uint
	// last is the greatest key that belongs in the front.
	last  key
	wheel wheel
	// opened, if it is set, is called when the front has been filled anew.
	opened func()
}

func (q *queue) init() {
	q.front[0].key = endless()
	q.last = endless()
}

func (q *queue) len() int { return int(q.n) + q.wheel.n }

// push adds an entry. It stays apart: of what is inlined because a profile says so, what that calls is not.
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

// pushFull is push of what belongs into the front, which is full. It is apart, as what hardly ever happens is
// elsewhere, so that nothing of the usual ways has to be kept for it.
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

// insert puts an entry in its place in the front, which has room. The search
// starts at the nearer end: delays are mostly either short beside those pending, a
// message, or long, a flash operation.
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

// first is when the first entry of the front is, and later than every event if the front is empty.
func (q *queue) first() uint64 { return q.front[q.head%frontLen].at }

// ready reports whether there is an event at or before until, which is not
// negative. It opens no slot that begins later, so that pushes that follow a run
// up to until seldom come before what is open.
func (q *queue) ready(until Time) bool {
	return q.first() <= uint64(until) || q.n == 0 && q.refill(uint64(until))
}

// take removes the first entry and returns it. There is one: ready has said so.
func (q *queue) take() entry {
	x := q.front[q.head%frontLen]
	q.head++
	q.n--
	return x
}

// refill opens slots that begin at or before until, to fill the empty front, and
// reports what ready does.
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
			q.last = start.before() // what is filed must not be before cursor
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

// open moves a list to the late end of the front.
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

// spill moves the later part of the front to the wheel, about half of it.
func (q *queue) spill() {
	// Cut at the key with the most trailing zeros between the first and the
	// third quarter, so that few slots straddle the cut.
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
		if x.less(cut) { // at the latest lo is
			break
		}
		q.wheel.file(x)
		q.n--
	}
	q.front[(q.head+q.n)%frontLen].key = endless()
}

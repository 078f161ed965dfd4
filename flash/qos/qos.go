// Package qos decides which access to the pool begins next: token buckets that bound what each tenant (an export) may
// do in a second, and two classes, of which the one that needs short latencies goes first without starving the other.
//
// Scheduler is the main type: Offer puts an access in its tenant's queue, Withdraw takes it out again, Next takes one
// that may begin, Done says that it has ended, When says how long to wait for the next. It is a plain state machine;
// times are the caller's, in nanoseconds, and only need not to go back.
//
// What holds, and is tested as properties: in any span of time a tenant is given at most its rate over that span and
// one burst more, and one access; tenants of a class that have accesses waiting are given the same bytes, to within
// their largest accesses; while both classes wait, throughput is given at least one byte for each Share bytes of
// latency; an access that may begin does as soon as there is room.
//
// It leaves out weights, and who is whose tenant. It is what FlashNet (Trivedi et al., ACM TOS 14(4), 2018, section
// 6) leaves to the future; the buckets are the generic cell rate algorithm's (ITU-T I.371), classes at one device
// after ReFlex (Klimovic et al., ASPLOS 2017).
package qos

import (
	"fmt"
	"math"
	"math/bits"

	"farflash/internal/fifo"
	"farflash/numeric/units"
)

// Class is how urgent a tenant's accesses are.
type Class uint8

// The classes.
const (
	Throughput Class = iota
	Latency
	classes
)

// Limit is what a tenant may have.
type Limit struct {
	Class      Class
	Bytes      int64 // a second; 0: any number
	Operations int64 // a second; 0: any number
	Burst      int64 // nanoseconds of its rate that a tenant that did nothing may have at once
}

// DefaultBurst is a tenth of a second.
const DefaultBurst = 100_000_000

// Validate says what is wrong with l.
func (l Limit) Validate() error {
	var f units.Faults
	f.Hold(l.Class < classes, "class", "there is no class %d", l.Class)
	f.Hold(l.Bytes >= 0 && l.Operations >= 0, "rate", "less than nothing")
	f.Hold(l.Burst >= 0 && l.Burst <= 1e12, "burst", "%d ns; give 0 to 1000 seconds", l.Burst)
	return f.Err()
}

// Share is how many bytes of latency may go before one byte of throughput that waits.
const Share = 8

// Depth is a default for how many bytes are under way at once.
const Depth = 4 << 20

// Scheduler decides for items of type T. The zero value is not one; use New.
type Scheduler[T any] struct {
	depth, under int64
	tenants      []tenant[T]
	clock        [classes]int64 // by class: what the tenant that was served last had been given before
	passed       int64          // bytes of latency since throughput has waited
	waiting      int
	unlimited    bool
}

type tenant[T any] struct {
	limit        Limit
	bytes        int64 // when the bucket of bytes is no longer in debt
	operations   int64
	served       int64 // bytes, counted such that who was idle has no advantage from it
	queue        fifo.Ring[item[T]]
	bytesGranted int64
}

type item[T any] struct {
	what  T
	bytes int64
}

// New returns a scheduler that has so many bytes under way at once, or one access.
func New[T any](depth int64) *Scheduler[T] { return &Scheduler[T]{depth: max(depth, 1)} }

// Add adds a tenant, and returns its number.
func (s *Scheduler[T]) Add(l Limit) (int, error) {
	if err := l.Validate(); err != nil {
		return 0, fmt.Errorf("qos: %w", err)
	}
	s.tenants = append(s.tenants, tenant[T]{limit: l, bytes: math.MinInt64 / 2, operations: math.MinInt64 / 2})
	return len(s.tenants) - 1, nil
}

// Open lifts all limits and the depth: what waits may begin, in the order it would have.
func (s *Scheduler[T]) Open() { s.unlimited = true }

// Waiting is how many accesses wait.
func (s *Scheduler[T]) Waiting() int { return s.waiting }

// Granted is how many bytes a tenant was given.
func (s *Scheduler[T]) Granted(t int) int64 { return s.tenants[t].bytesGranted }

// Offer puts an access at the end of a tenant's queue.
func (s *Scheduler[T]) Offer(t int, bytes int64, what T) {
	x := &s.tenants[t]
	if x.queue.N == 0 {
		x.served = max(x.served, s.clock[x.limit.Class])
	}
	x.queue.Push(item[T]{what, max(bytes, 1)})
	s.waiting++
}

// Withdraw takes accesses of a tenant that wait out of its queue: those for which gone says so, in their order.
func (s *Scheduler[T]) Withdraw(t int, gone func(T) bool) (out []T) {
	q := &s.tenants[t].queue
	for range q.N {
		i := q.Pop()
		if gone(i.what) {
			out = append(out, i.what)
			s.waiting--
		} else {
			q.Push(i)
		}
	}
	return out
}

// due is when a tenant's first access may begin, as far as its buckets go.
func (x *tenant[T]) due() int64 { return max(x.bytes, x.operations) }

// pick is the tenant of a class that is served next, -1 if none may be now.
func (s *Scheduler[T]) pick(c Class, now int64) int {
	best := -1
	for i := range s.tenants {
		x := &s.tenants[i]
		if x.limit.Class == c && x.queue.N > 0 && (s.unlimited || x.due() <= now) &&
			(best < 0 || x.served < s.tenants[best].served) {
			best = i
		}
	}
	return best
}

// cost is the time that n of a rate take, rounded up.
func cost(n, rate int64) int64 {
	if rate == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), 1e9)
	lo, carry := bits.Add64(lo, uint64(rate)-1, 0)
	if hi += carry; hi >= uint64(rate) {
		return 1 << 60
	}
	q, _ := bits.Div64(hi, lo, uint64(rate))
	return int64(min(q, 1<<60))
}

// Next takes an access that may begin now.
func (s *Scheduler[T]) Next(now int64) (what T, ok bool) {
	if s.waiting == 0 || s.under >= s.depth && !s.unlimited {
		return what, false
	}
	urgent, other := s.pick(Latency, now), s.pick(Throughput, now)
	t := urgent
	switch {
	case other < 0:
		s.passed = 0
	case urgent < 0 || s.passed >= Share*s.tenants[other].queue.First().bytes:
		t = other
	}
	if t < 0 {
		return what, false
	}
	x := &s.tenants[t]
	i := *x.queue.First()
	x.queue.Pop()
	s.waiting--
	switch {
	case t == other:
		s.passed -= min(s.passed, Share*i.bytes)
	case other >= 0:
		s.passed += i.bytes
	}
	s.clock[x.limit.Class] = x.served
	x.served += i.bytes
	x.bytesGranted += i.bytes
	if x.limit.Bytes > 0 {
		x.bytes = max(x.bytes, now-x.limit.Burst) + cost(i.bytes, x.limit.Bytes)
	}
	if x.limit.Operations > 0 {
		x.operations = max(x.operations, now-x.limit.Burst) + cost(1, x.limit.Operations)
	}
	s.under += i.bytes
	return i.what, true
}

// Done says that an access of so many bytes has ended.
func (s *Scheduler[T]) Done(bytes int64) { s.under -= max(bytes, 1) }

// When is how long, from now on, until a bucket lets an access begin; false if there is nothing that time alone lets
// begin.
func (s *Scheduler[T]) When(now int64) (wait int64, ok bool) {
	if s.waiting == 0 || s.under >= s.depth {
		return 0, false
	}
	at := int64(math.MaxInt64)
	for i := range s.tenants {
		if x := &s.tenants[i]; x.queue.N > 0 {
			at = min(at, x.due())
		}
	}
	return max(0, at-now), true
}

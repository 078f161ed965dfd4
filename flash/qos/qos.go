// Package qos schedules accesses to the pool. Token buckets bound the rates of each tenant (an export), and of two
// classes the one that needs low latency goes first without starving the other.
//
// Scheduler is the main type: Offer queues an access of a tenant, Withdraw removes queued ones, Next returns one that
// may begin, Done completes it, and When returns how long to wait for the next. Set changes a tenant's limit at any
// time. It is a plain state machine; times are the caller's, in nanoseconds, and must not go backwards.
//
// The guarantees, tested as properties: in any span of time a tenant is granted at most its rate over that span plus
// one burst and one access, where a rate that changes counts with each value for as long as that is in force, and the
// burst is that of the first access; from a Set on, a tenant is granted at most the new rate and one access, without
// a burst, and its debt of before it pays at the new rate; backlogged tenants of a class are granted
// equal bytes, to within their largest accesses; while both classes wait, throughput is granted at least one byte for
// every Share bytes of latency; an eligible access begins as soon as the depth permits.
//
// Steer is about one client: it divides the client's accesses between reads and writes by the rate at which its network
// accepts read data, with the code of the simulated target (package ratecontrol).
//
// It leaves out weights of tenants and the assignment of accesses to tenants. FlashNet (Trivedi et al., ACM TOS
// 14(4), 2018, section 6) leaves this to future work; the buckets implement the generic cell rate algorithm (ITU-T
// I.371), and the classes on one device follow ReFlex (Klimovic et al., ASPLOS 2017).
package qos

import (
	"fmt"
	"math"
	"math/bits"

	"farflash/internal/fifo"
)

// Share is the number of latency bytes that may pass one waiting throughput byte.
const Share = 8

// Depth is a default for the bytes in flight at once.
const Depth = 4 << 20

// Scheduler schedules items of type T. Use New; the zero value is invalid.
type Scheduler[T any] struct {
	depth, under int64
	tenants      []tenant[T]
	clock        [classes]int64 // by class: served, before the last grant, of the tenant granted last
	passed       int64          // latency bytes granted while throughput waited
	waiting      int
	unlimited    bool
}

type tenant[T any] struct {
	limit        Limit
	bytes        int64 // when the bucket of bytes is out of debt
	operations   int64
	served       int64 // bytes, on a virtual clock that gives no credit for idle time
	queue        fifo.Ring[item[T]]
	bytesGranted int64
}

type item[T any] struct {
	what  T
	bytes int64
}

// New returns a scheduler that starts accesses while fewer than depth bytes are in flight.
func New[T any](depth int64) *Scheduler[T] { return &Scheduler[T]{depth: max(depth, 1)} }

// Add adds a tenant and returns its number.
func (s *Scheduler[T]) Add(l Limit) (int, error) {
	if err := l.Validate(); err != nil {
		return 0, fmt.Errorf("qos: %w", err)
	}
	s.tenants = append(s.tenants, tenant[T]{limit: l, bytes: math.MinInt64 / 2, operations: math.MinInt64 / 2})
	return len(s.tenants) - 1, nil
}

// Set changes the limit of a tenant from now on, its queued accesses included. It keeps no unused part of its rates. A
// rate that was unlimited has no debt.
func (s *Scheduler[T]) Set(t int, l Limit, now int64) error {
	if err := l.Validate(); err != nil {
		return fmt.Errorf("qos: %w", err)
	}
	x := &s.tenants[t]
	if x.limit == l {
		return nil
	}
	x.bytes = now + transfer(x.bytes-now, x.limit.Bytes, l.Bytes)
	x.operations = now + transfer(x.operations-now, x.limit.Operations, l.Operations)
	if x.limit.Class != l.Class {
		x.served = s.clock[l.Class] // as a tenant of the new class that begins to wait
	}
	x.limit = l
	return nil
}

// transfer returns the time that a debt, which takes this time at the old rate, takes at the new one.
func transfer(debt, old, now int64) int64 {
	if debt <= 0 || old == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(debt), uint64(old))
	lo, carry := bits.Add64(lo, 1e9-1, 0)
	if hi += carry; hi >= 1e9 {
		return cost(math.MaxInt64, now)
	}
	n, _ := bits.Div64(hi, lo, 1e9)
	return cost(int64(min(n, math.MaxInt64)), now)
}

// Open lifts all limits and the depth: everything queued may begin, in the scheduling order.
func (s *Scheduler[T]) Open() { s.unlimited = true }

// Waiting returns the number of queued accesses.
func (s *Scheduler[T]) Waiting() int { return s.waiting }

// Granted returns the bytes granted to a tenant.
func (s *Scheduler[T]) Granted(t int) int64 { return s.tenants[t].bytesGranted }

// Offer appends an access to a tenant's queue.
func (s *Scheduler[T]) Offer(t int, bytes int64, what T) {
	x := &s.tenants[t]
	if x.queue.N == 0 {
		x.served = max(x.served, s.clock[x.limit.Class])
	}
	x.queue.Push(item[T]{what, max(bytes, 1)})
	s.waiting++
}

// Withdraw removes from a tenant's queue the accesses for which gone returns true, and returns them in order.
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

// due returns the time at which the buckets let a tenant's first access begin.
func (x *tenant[T]) due() int64 { return max(x.bytes, x.operations) }

// pick returns the tenant of a class to be served next, or -1 if none is eligible now.
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

// cost returns the time in nanoseconds for n at the given rate per second, rounded up.
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

// Next removes and returns an access that may begin now.
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
	// Without a limit there is no cost, and the time is never later than now.
	x.bytes = max(x.bytes, now-x.limit.Burst) + cost(i.bytes, x.limit.Bytes)
	x.operations = max(x.operations, now-x.limit.Burst) + cost(1, x.limit.Operations)
	s.under += i.bytes
	return i.what, true
}

// Done reports the completion of an access of the given bytes.
func (s *Scheduler[T]) Done(bytes int64) { s.under -= max(bytes, 1) }

// When returns the time from now until a bucket lets an access begin; false if the passing of time alone makes none
// eligible.
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

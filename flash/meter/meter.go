// Package meter counts the operations of a server by export and protocol: how many of each kind, their bytes, failures
// and latencies, and how many are outstanding.
//
// A Meter hands out a Use to each connection that opens an export. Use.Begin and Use.End count one operation with a few
// atomic additions: they take no lock, allocate nothing and, because connections get shards of their own as long as
// there are as many as processors, seldom share a cache line. Samples sums the shards, which is slow, when somebody
// asks.
//
// Latencies go into the cells of Bounds, which are fine enough that both a native Prometheus histogram of schema 3
// (Prometheus, "Native Histograms", 2025: eight buckets an octave, so a quantile is within 4.4 %) and one with a few
// decimal buckets are exact sums of cells.
//
// Trace has one of every n operations traced, and Record all of them: a Trace is the times at which an operation
// reached each Stage.
//
// The package knows no format: flash/server writes the samples for Prometheus, and flash/otlp sends the traces. It
// leaves out what a pool counts itself.
package meter

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is the kind of an operation.
type Kind uint8

// The kinds. Those before timed have latencies.
const (
	Read Kind = iota
	Write
	Flush
	Trim
	Zero
	Cache
	Kinds

	timed = Flush + 1
)

func (k Kind) String() string {
	return [Kinds]string{"read", "write", "flush", "trim", "zero", "cache"}[k]
}

// Timed reports whether latencies of the kind are kept.
func (k Kind) Timed() bool { return k < timed }

// Failure is the reason why an operation failed.
type Failure uint8

// The failures. Dropped is none: the operation was not carried out because its connection or the daemon ended.
const (
	Succeeded Failure = iota
	Full              // no space
	IO                // a device failed, or data are damaged
	Other             // refused
	Failures
	Dropped = Failures
)

func (f Failure) String() string {
	return [Failures + 1]string{"", "ENOSPC", "EIO", "other", "dropped"}[f]
}

// histogram holds latencies.
type histogram struct {
	cells [cells]atomic.Int64
	nanos atomic.Int64
}

// shard holds the counts of one or a few connections.
type shard struct {
	uses    int // guarded by Meter.mu
	begun   atomic.Int64
	dropped atomic.Int64
	untimed [Kinds - timed]atomic.Int64
	bytes   [Kinds]atomic.Int64
	failed  [Kinds][Failures]atomic.Int64
	latency [timed]histogram
}

// series holds the counts of one export over one protocol.
type series struct {
	export, protocol string
	shards           []*shard
	uses             int
	used             int64 // value of Meter.opens when it was last opened
}

// Meter counts the operations of a server. It is safe for concurrent use.
type Meter struct {
	began time.Time
	most  int // series
	wide  int // shards of a series

	tracing *tracing // nil: nothing is traced

	mu       sync.Mutex
	all      map[[2]string]*series
	shards   int // of all series
	opens    int64
	replaced int64
}

// New returns a meter of at most this many pairs of an export and a protocol, at least 1. One beyond that takes the
// place of the pair that has been out of use the longest; if all are in use, it is counted under the empty name. There
// are about twice as many shards at most, of 8 KiB each.
func New(most int) *Meter {
	table.once.Do(fill)
	return &Meter{began: time.Now(), most: max(most, 1), wide: runtime.GOMAXPROCS(0), all: map[[2]string]*series{}}
}

// Use is one connection's use of an export. Its methods are safe for concurrent use; a nil Use counts nothing.
type Use struct {
	// Peer is the client's address for traces, if all operations come from it.
	Peer string

	began            time.Time
	shard            *shard
	tracing          *tracing
	series           *series
	meter            *Meter
	export, protocol string
}

// Open begins the use of an export over a protocol. The caller calls Close once.
func (m *Meter) Open(export, protocol string) *Use {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.find(export, protocol)
	m.opens++
	x.uses++
	x.used = m.opens
	s := x.least()
	if s == nil || s.uses > 0 && len(x.shards) < m.wide && m.shards < 2*m.most {
		s = new(shard)
		x.shards = append(x.shards, s)
		m.shards++
	}
	s.uses++
	return &Use{began: m.began, shard: s, tracing: m.tracing, series: x, meter: m, export: export, protocol: protocol}
}

// find returns the series of an export, an existing or a new one.
func (m *Meter) find(export, protocol string) *series {
	key := [2]string{export, protocol}
	if x := m.all[key]; x != nil {
		return x
	}
	if len(m.all) >= m.most {
		var idle *series
		for _, x := range m.all {
			if x.uses == 0 && (idle == nil || x.used < idle.used) {
				idle = x
			}
		}
		switch {
		case idle != nil:
			delete(m.all, [2]string{idle.export, idle.protocol})
			m.shards -= len(idle.shards)
			m.replaced++
		case export != "":
			return m.find("", protocol) // one more series for each protocol
		}
	}
	x := &series{export: export, protocol: protocol}
	m.all[key] = x
	return x
}

// least returns the shard with the fewest uses, nil if there is none.
func (x *series) least() *shard {
	if len(x.shards) == 0 {
		return nil
	}
	return slices.MinFunc(x.shards, func(a, b *shard) int { return cmp.Compare(a.uses, b.uses) })
}

// Close ends the use. Operations begun before may still end.
func (u *Use) Close() {
	if u == nil {
		return
	}
	u.meter.mu.Lock()
	u.shard.uses--
	u.series.uses--
	u.meter.mu.Unlock()
}

// Begin counts the arrival of n operations. It returns the time for End and the number of the first for Trace.
func (u *Use) Begin(n int) (at, first int64) {
	if u == nil {
		return 0, 0
	}
	first = u.shard.begun.Add(int64(n)) - int64(n)
	return int64(time.Since(u.began)), first
}

// End counts the end of one operation of n bytes that arrived at the given time.
func (u *Use) End(at int64, k Kind, n int, f Failure) {
	if u == nil {
		return
	}
	u.shard.end(k, n, f, int64(time.Since(u.began))-at)
}

func (s *shard) end(k Kind, n int, f Failure, nanos int64) {
	switch {
	case f == Dropped:
		s.dropped.Add(1)
		return
	case f != Succeeded:
		s.failed[k][f].Add(1)
	default:
		s.bytes[k].Add(int64(n))
	}
	if k >= timed {
		s.untimed[k-timed].Add(1)
		return
	}
	h := &s.latency[k]
	h.cells[cellOf(nanos)].Add(1)
	h.nanos.Add(nanos)
}

// Latency is the distribution of the latencies of one kind of operation.
type Latency struct {
	Cells [cells]int64 // by Bounds
	Nanos int64        // sum
}

// Count returns the number of operations.
func (l *Latency) Count() (n int64) {
	for _, c := range l.Cells {
		n += c
	}
	return n
}

// Quantile returns an upper bound of a quantile, up to 9 % above it or 119 ns, and 0 without operations.
func (l *Latency) Quantile(q float64) time.Duration {
	rank := int64(math.Ceil(q * float64(l.Count())))
	for i, n := range l.Cells {
		if rank -= n; n > 0 && rank <= 0 {
			if i == len(l.Cells)-1 { // it has no upper bound
				i--
			}
			return time.Duration(table.upper[i])
		}
	}
	return 0
}

// Sample is the sum of the counts of one export over one protocol.
type Sample struct {
	Export, Protocol string
	Operations       [Kinds]int64 // ended, failed ones included
	Bytes            [Kinds]int64 // of those that succeeded
	Failed           [Kinds][Failures]int64
	Latency          [timed]Latency
	Outstanding      int64 // arrived and not ended
	Uses             int   // open now
}

// Samples returns the sums of all exports that were used, ordered by name and protocol, and the number of those that
// made room for others.
func (m *Meter) Samples() (all []*Sample, replaced int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.all {
		s := &Sample{Export: x.export, Protocol: x.protocol, Uses: x.uses}
		for _, from := range x.shards {
			s.add(from)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Sample) int {
		return cmp.Or(cmp.Compare(a.Export, b.Export), cmp.Compare(a.Protocol, b.Protocol))
	})
	return all, m.replaced
}

// add adds a shard. An operation that ends meanwhile is counted as outstanding: its end is looked for first.
func (s *Sample) add(from *shard) {
	ended := from.dropped.Load()
	for k := range Kinds {
		n := int64(0)
		if k >= timed {
			n = from.untimed[k-timed].Load()
		} else {
			h, l := &from.latency[k], &s.Latency[k]
			for i := range h.cells {
				c := h.cells[i].Load()
				l.Cells[i] += c
				n += c
			}
			l.Nanos += h.nanos.Load()
		}
		s.Operations[k] += n
		ended += n
		s.Bytes[k] += from.bytes[k].Load()
		for f := range Failures {
			s.Failed[k][f] += from.failed[k][f].Load()
		}
	}
	s.Outstanding += from.begun.Load() - ended
}

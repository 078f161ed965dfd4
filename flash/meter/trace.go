package meter

import (
	"sync/atomic"
	"time"

	"farflash/numeric/rng"
)

// Stage is a point in the course of an operation.
type Stage uint8

// The stages, in order. An operation need not reach all: it waits only if it must, and writes over iWARP have no
// answer.
const (
	Stalled  Stage = iota // it began to wait for the memory of its connection
	Resumed               // it got that
	Arrived               // it was counted
	Admitted              // its export's rate limit lets it begin
	Done                  // the pool has read or written
	Sent                  // the answer is sent
	Stages
)

// Trace is the course of one operation that was drawn to be traced. The methods of a nil Trace do nothing.
type Trace struct {
	Export, Protocol string
	Peer             string // address of the client
	Kind             Kind
	Offset           uint64 // in the export
	Bytes            int
	Failure          Failure
	Zero             time.Time // at which the times are 0; set by End

	times [Stages]atomic.Int64
	of    *tracing
	drawn bool // for Meter.Trace, not only for Meter.Record
}

// Time returns when the operation reached a stage, and false if it did not.
func (t *Trace) Time(s Stage) (time.Time, bool) {
	n := t.times[s].Load()
	return t.Zero.Add(time.Duration(n)), n != 0
}

// Reach notes that the operation reaches a stage now. It is safe for concurrent use.
func (t *Trace) Reach(s Stage) {
	if t != nil {
		t.Reached(s, t.of.now())
	}
}

// Reached notes when the operation reached a stage, as Meter.Now; at 0 it did not.
func (t *Trace) Reached(s Stage, at int64) {
	if t != nil {
		t.times[s].Store(at)
	}
}

// End hands the trace over. The operation must not use it any more.
func (t *Trace) End(f Failure) {
	if t == nil {
		return
	}
	t.Failure = f
	// The wall clock may have been set since the meter began, so it is asked now.
	now := time.Now()
	t.Zero = now.Round(0).Add(-now.Sub(t.of.began))
	if t.of.record != nil {
		t.of.record(t)
	}
	if t.drawn {
		t.of.take(t)
	}
}

// tracing draws the operations to trace.
type tracing struct {
	began  time.Time
	every  int64 // 0: none is drawn
	key    uint64
	take   func(*Trace)
	record func(*Trace) // nil: only those that are drawn are traced
}

func (t *tracing) now() int64 { return int64(time.Since(t.began)) }

// drawn reports whether an operation is traced: of each `every` operations, counted by shard, one at an arbitrary
// place, so that the choice does not follow a period of the load.
func (t *tracing) drawn(number int64) bool {
	if t.every == 0 {
		return false
	}
	block, at := number/t.every, number%t.every
	return int64(rng.Mix(uint64(block)+t.key)%uint64(t.every)) == at
}

// Trace has one of `every` operations traced, at least 1, and passes each trace to take when the operation has ended.
// take must not wait. key draws the operations. It is called before Open.
func (m *Meter) Trace(every int, key uint64, take func(*Trace)) {
	t := m.traced()
	t.every, t.key, t.take = int64(max(every, 1)), key, take
}

// Record has all operations traced, and passes each trace to record when the operation has ended. record must neither
// wait nor keep the trace. It is called before Open.
func (m *Meter) Record(record func(*Trace)) { m.traced().record = record }

func (m *Meter) traced() *tracing {
	if m.tracing == nil {
		m.tracing = &tracing{began: m.began}
	}
	return m.tracing
}

// Now returns the time since the meter began, in nanoseconds.
func (m *Meter) Now() int64 { return int64(time.Since(m.began)) }

// Trace returns the trace of an operation by its number, as Begin counts them, or nil if it is not to be traced.
func (u *Use) Trace(number int64) *Trace {
	if u == nil || u.tracing == nil {
		return nil
	}
	return u.drawn(number)
}

func (u *Use) drawn(number int64) *Trace {
	drawn := u.tracing.drawn(number)
	if !drawn && u.tracing.record == nil {
		return nil
	}
	t := &Trace{Export: u.export, Protocol: u.protocol, Peer: u.Peer, of: u.tracing, drawn: drawn}
	t.Reach(Arrived)
	return t
}

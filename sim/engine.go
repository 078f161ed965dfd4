// Package sim is the discrete-event core under every model: a clock, an event
// queue and cancellable timers.
//
// Its main types are Time, Event, Engine and Timer. Events are plain
// values dispatched through a table: no closure, map or allocation per event.
//
// Order. Events run in order of (time, id of the component that scheduled them,
// that component's own counter). Nothing depends on a global sequence, so a
// model that is later split over several engines runs its events in the same
// order and gives the same bytes.
//
// What it leaves out: random numbers (package rng), threads, wall time, I/O and real-number time. The choice of the
// queue is in docs/adr/0002-event-queue.md, the measured costs of its rivals in docs/validation/speed.md.
package sim

import (
	"fmt"
	"math"

	"farflash/numeric/units"
)

// Time is a point of simulated time, or a span of it, in picoseconds. An int64
// holds 106 days.
type Time = units.Duration

// Forever is later than every event.
const Forever Time = 1<<63 - 1

// Component is the identity of whatever schedules events. It breaks ties.
type Component uint32

// Target is the identity of a Handler that events are dispatched to.
type Target uint16

// Event is one thing to happen at one time. Kind and Arg mean what the handler
// says they mean: Arg is usually an index into its own tables. An Event has so few
// fields that it is passed in registers.
type Event struct {
	At   Time
	Arg  uint32
	Kind uint16
}

const (
	counterBits = 40 // a component may schedule 1.1e12 events
	// MaxComponents is how many components one engine can tell apart.
	MaxComponents = 1 << (64 - counterBits)
	// MaxTargets is how many handlers one engine can dispatch to.
	MaxTargets = 1 << 16
)

// Handler is implemented by a model. The engine calls Handle once an event, at
// the event's time, on the one goroutine that runs the engine. Handle may
// schedule events at the current time or later, and arm or stop timers.
type Handler interface {
	Handle(Event)
}

// Engine holds the clock and what is still to happen. It is used by one
// goroutine. The zero Engine is not ready; use New.
type Engine struct {
	now      Time
	queue    queue
	counters []uint64 // the next order key of each component: id<<counterBits | counter
	handlers []Handler
	timers   []timer
	released []Timer
	events   uint64
	bound    uint64 // the Run in progress dispatches what is before it; 0: nothing any more
	pulse    func()
	due      uint64 // the count of events at which pulse is called next
}

// New returns an engine at time 0 with nothing to do.
func New() *Engine {
	e := &Engine{due: math.MaxUint64}
	e.queue.init()
	e.handlers = append(e.handlers, nil) // target 0 is the engine's own: timers
	return e
}

// Sibling returns another engine, with a clock and events of its own, for a model that is divided over several. They
// have the components that e has so far in common, with their counters: each is to schedule on one of them only, and
// none is added to any.
func (e *Engine) Sibling() *Engine {
	s := New()
	s.counters = e.counters[:len(e.counters):len(e.counters)]
	return s
}

// Wait moves the clock on to a time before which nothing is left to happen, for a model that is called from outside
// of its engine then.
func (e *Engine) Wait(until Time) {
	if e.Next() < until {
		panic("sim: an event is left to happen before the time that was waited for")
	}
	e.now = max(e.now, until)
}

// NewComponent returns the next component id. Ids follow the order of the calls,
// which a scenario makes in a fixed order.
func (e *Engine) NewComponent() Component {
	if len(e.counters) == MaxComponents {
		panic("sim: too many components")
	}
	id := Component(len(e.counters))
	e.counters = append(e.counters, uint64(id)<<counterBits)
	return id
}

// AddHandler makes h a target of events.
func (e *Engine) AddHandler(h Handler) Target {
	if len(e.handlers) == MaxTargets {
		panic("sim: too many handlers")
	}
	e.handlers = append(e.handlers, h)
	return Target(len(e.handlers) - 1)
}

// Now is the time of the event that is being handled, or of the last one.
func (e *Engine) Now() Time { return e.now }

// Events is how many events have been dispatched.
func (e *Engine) Events() uint64 { return e.events }

// Pending is how many events are queued, stopped timers' included.
func (e *Engine) Pending() int { return e.queue.len() }

// Schedule queues an event for handler to, at time at, on behalf of component
// from. at must not lie in the past.
func (e *Engine) Schedule(from Component, to Target, at Time, kind uint16, arg uint32) {
	if at < e.now {
		e.refuse(at, "event scheduled")
	}
	order := &e.counters[from]
	x := newEntry(at, *order, arg, kind, to)
	*order++
	e.queue.push(x)
}

// Claim takes the next place of a component in the order of what it schedules, for an event that is scheduled with
// ScheduleAs if it is not advanced to.
func (e *Engine) Claim(from Component) uint64 {
	order := e.counters[from]
	e.counters[from] = order + 1
	return order
}

// ScheduleAs is Schedule with a place that was claimed before, and is used once.
func (e *Engine) ScheduleAs(order uint64, to Target, at Time, kind uint16, arg uint32) {
	if at < e.now {
		e.refuse(at, "event scheduled")
	}
	e.queue.push(newEntry(at, order, arg, kind, to))
}

// ClockError is what an engine panics with that is asked for a time behind the clock's end: the sum of two times that
// an int64 does not hold has come out negative. It is no fault of a model, but what the times that a user has given
// add up to. Whoever runs models for users makes an error of it.
type ClockError struct{ Now Time }

// Error says what would be right.
func (e *ClockError) Error() string {
	return fmt.Sprintf("something would happen more than 106 days after the beginning, where the clock ends (it "+
		"stands at %v); the times and rates of what is simulated make it last longer", e.Now)
}

// refuse panics for a time that lies in the past.
//
//go:noinline
func (e *Engine) refuse(at Time, what string) {
	if at < 0 {
		panic(&ClockError{e.now})
	}
	panic("sim: " + what + " in the past")
}

// Components is how many component ids there are.
func (e *Engine) Components() int { return len(e.counters) }

// Next is when the next event may happen, Forever if none is queued. A stopped timer's event
// counts.
func (e *Engine) Next() Time {
	if !e.queue.ready(Forever) {
		return Forever
	}
	return Time(e.queue.front[e.queue.head%frontLen].at)
}

// Run dispatches events in order until none is left at or before until, or Stop
// is called. It reports the number dispatched. The clock stays at the last event.
//
//go:noinline
func (e *Engine) Run(until Time) uint64 {
	start := e.events
	if until < e.now {
		return 0
	}
	e.bound = uint64(until) + 1
	for {
		if e.events >= e.due && e.bound > 0 {
			e.beat()
			continue
		}
		if e.queue.first() >= e.bound && (e.bound == 0 || !e.queue.ready(until)) {
			break
		}
		x := e.queue.take()
		if x.to() == 0 {
			e.fire(x)
			continue
		}
		e.dispatch(x)
	}
	return e.events - start
}

// dispatch hands an event to its handler.
func (e *Engine) dispatch(x entry) {
	e.now = Time(x.at)
	e.events++
	e.handlers[x.to()].Handle(Event{At: Time(x.at), Arg: uint32(x.what), Kind: uint16(x.what >> 32)})
}

// fire dispatches what a timer's queued event stands for, if it still does.
func (e *Engine) fire(x entry) {
	if what, fires := e.expire(x); fires {
		x.what = what
		e.dispatch(x)
	}
}

// Advance moves the clock to a later time if nothing else happens up to then and
// reports whether it did. A handler whose last act would be to schedule an event may
// do this instead and go on as if the event had come: the order of everything stays
// the same, and a trip through the queue is saved. It counts as an event. A handler
// that does anything else afterwards would do it at the wrong time.
func (e *Engine) Advance(to Time) bool {
	if uint64(to) >= e.bound || e.queue.first() <= uint64(to) || e.queue.n == 0 && e.queue.refill(uint64(to)) {
		return false
	}
	e.now = to
	e.events++
	return true
}

// pulseEvery is after how many events a pulse comes.
const pulseEvery = 1 << 14

// OnPulse has f called now and then, after some thousands of events, by the goroutine that runs the engine: it may
// call Stop, as whoever has asked for the run may want no more of it, whatever the models are at. It must change
// nothing else.
func (e *Engine) OnPulse(f func()) {
	e.pulse, e.due = f, e.events+pulseEvery
}

func (e *Engine) beat() {
	e.due = e.events + pulseEvery
	e.pulse()
}

// Foresee has f called with events of a target that are about to be handled, some tens of them at a time and hardly
// ever all that will be, in the order in which they come. It is to read what their handling is going to read: a model
// that does not fit into a processor's cache waits for memory once for all of them, and not for each by itself. It
// must change nothing.
func (e *Engine) Foresee(to Target, f func([]Event)) {
	var list [frontLen]Event
	e.queue.opened = func() {
		q, n := &e.queue, 0
		for i := range q.n {
			x := q.front[(q.head+i)%frontLen]
			what := x.what
			if x.to() == 0 {
				what = e.timers[uint32(what)].what
			}
			if Target(what>>48) == to {
				list[n] = Event{At: Time(x.at), Arg: uint32(what), Kind: uint16(what >> 32)}
				n++
			}
		}
		f(list[:n])
	}
}

// Stop makes Run return after the event being handled.
func (e *Engine) Stop() { e.bound = 0 }

// Probe is an observation point. A model holds it as a field that is nil unless
// somebody listens, so that an unused probe costs one comparison.
type Probe[T any] func(T)

// Fire hands v to whoever listens.
func (p Probe[T]) Fire(v T) {
	if p != nil {
		p(v)
	}
}

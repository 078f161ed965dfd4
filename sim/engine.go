// Package sim is the discrete-event core of every model: a clock, an event queue and cancellable timers.
//
// Its main types are Time, Event, Engine and Timer. Events are plain values dispatched through a table: no closure, map
// or allocation per event.
//
// Events run in order of (time, id of the scheduling component, that component's own counter). The order does not
// depend on a global sequence, so a model that is later split over several engines runs its events in the same order
// and produces the same bytes.
//
// It leaves out random numbers (package rng), threads, wall time, I/O and floating-point time. The choice of the
// queue is in docs/adr/0002-event-queue.md, the measured costs of its rivals in docs/validation/speed.md.
package sim

import (
	"fmt"
	"math"

	"farflash/numeric/units"
)

// Time is a point in simulated time, or a span of it, in picoseconds. An int64 holds 106 days.
type Time = units.Duration

// Forever is later than every event.
const Forever Time = 1<<63 - 1

// Component identifies a source of events. It breaks ties between events of the same time.
type Component uint32

// Target identifies the Handler to which an event is dispatched.
type Target uint16

// Event is something that happens at one time. The handler defines Kind and Arg; Arg is usually an index into its own
// tables. An Event has few enough fields to be passed in registers.
type Event struct {
	At   Time
	Arg  uint32
	Kind uint16
}

const (
	counterBits = 40 // a component may schedule 1.1e12 events
	// maxComponents is the largest number of components of one engine.
	maxComponents = 1 << (64 - counterBits)
	// maxTargets is the largest number of handlers of one engine.
	maxTargets = 1 << 16
)

// Handler is implemented by a model. The engine calls Handle once per event, at the event's time, on the goroutine that
// runs the engine. Handle may schedule events at the current time or later, and arm or disarm timers.
type Handler interface {
	Handle(Event)
}

// Engine holds the clock and the pending events. It is not safe for concurrent use. Use New; the zero Engine is
// invalid.
type Engine struct {
	now      Time
	queue    queue
	counters []uint64 // next order key of each component: id<<counterBits | counter
	handlers []Handler
	timers   []timer
	released []Timer
	events   uint64
	bound    uint64 // exclusive time limit of the Run in progress; 0 stops it
	pulse    func()
	due      uint64 // event count at which pulse is called next
}

// New returns an engine at time 0 without events.
func New() *Engine {
	e := &Engine{due: math.MaxUint64}
	e.queue.init()
	e.handlers = append(e.handlers, nil) // target 0 is the engine's own, for timers
	return e
}

// Sibling returns another engine, with its own clock and events, for a model that is divided over several. The two
// share e's present components and their counters: each component must schedule on only one of the engines, and no
// components may be added to either.
func (e *Engine) Sibling() *Engine {
	s := New()
	s.counters = e.counters[:len(e.counters):len(e.counters)]
	return s
}

// Wait advances the clock to a time before which no event is pending, for a model that is called from outside of its
// engine at that time.
func (e *Engine) Wait(until Time) {
	if e.Next() < until {
		panic("sim: Wait past a pending event")
	}
	e.now = max(e.now, until)
}

// NewComponent returns the next component id. Ids follow the order of the calls, which a scenario makes in a fixed
// order.
func (e *Engine) NewComponent() Component {
	if len(e.counters) == maxComponents {
		panic("sim: too many components")
	}
	id := Component(len(e.counters))
	e.counters = append(e.counters, uint64(id)<<counterBits)
	return id
}

// AddHandler registers h, which is not nil, and returns its Target.
func (e *Engine) AddHandler(h Handler) Target {
	if h == nil {
		panic("sim: AddHandler of nil")
	}
	if len(e.handlers) == maxTargets {
		panic("sim: too many handlers")
	}
	e.handlers = append(e.handlers, h)
	return Target(len(e.handlers) - 1)
}

// Now returns the time of the event being handled, or of the last one.
func (e *Engine) Now() Time { return e.now }

// Events returns the number of events dispatched.
func (e *Engine) Events() uint64 { return e.events }

// Pending returns the number of queued events, including those of disarmed timers.
func (e *Engine) Pending() int { return e.queue.len() }

// Schedule queues an event for handler to at time at, on behalf of component from. Both must be the engine's, and at
// must not be in the past. A handler that does not exist is refused by Run, when the event is due.
func (e *Engine) Schedule(from Component, to Target, at Time, kind uint16, arg uint32) {
	if at < e.now {
		e.refuse(at, "event scheduled")
	}
	if uint(from) >= uint(len(e.counters)) || to == 0 {
		panic(e.unknown(from, to))
	}
	order := &e.counters[from]
	x := newEntry(at, *order, arg, kind, to)
	*order++
	e.queue.push(x)
}

// Claim reserves the next order key of a component, for an event that is either reached by Advance or scheduled with
// ScheduleAs.
func (e *Engine) Claim(from Component) uint64 {
	if uint(from) >= uint(len(e.counters)) {
		panic(noComponent)
	}
	order := e.counters[from]
	e.counters[from] = order + 1
	return order
}

// ScheduleAs is Schedule with a claimed order key. A key must be used only once.
func (e *Engine) ScheduleAs(order uint64, to Target, at Time, kind uint16, arg uint32) {
	if at < e.now {
		e.refuse(at, "event scheduled")
	}
	if to == 0 {
		panic(e.unknown(0, to))
	}
	e.queue.push(newEntry(at, order, arg, kind, to))
}

// ClockError is the panic value of an engine for a time beyond the end of the clock: the sum of two times overflowed
// int64 and became negative. It is not a fault of a model but a consequence of the user's times. Callers that run
// models for users convert it to an error.
type ClockError struct{ Now Time }

func (e *ClockError) Error() string {
	return fmt.Sprintf("an event is due more than 106 days after the start, past the end of the simulated clock (now "+
		"%v); the times and rates of the scenario make the run too long", e.Now)
}

// refuse panics because a time is in the past.
//
//go:noinline
func (e *Engine) refuse(at Time, what string) {
	if at < 0 {
		panic(&ClockError{e.now})
	}
	panic("sim: " + what + " in the past")
}

// noComponent is the refusal of a component where Claim must remain small enough to be inlined.
const noComponent = "sim: Claim of a component that NewComponent has not returned"

// unknown is the refusal of a component or a target that is not the engine's.
//
//go:noinline
func (e *Engine) unknown(from Component, to Target) string {
	return fmt.Sprintf("sim: no component %d of %d, or no handler %d of %d; use the numbers that NewComponent and "+
		"AddHandler return, 0 is no handler", from, len(e.counters), to, len(e.handlers))
}

// Next returns the time of the first queued event, or Forever if there is none. The event of a disarmed timer counts.
func (e *Engine) Next() Time {
	if !e.queue.ready(Forever) {
		return Forever
	}
	return Time(e.queue.front[e.queue.head%frontLen].at)
}

// Run dispatches events in order until none is left at or before until, or until Stop is called. It returns the number
// dispatched. The clock stays at the last event.
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
	to := x.to()
	if int(to) >= len(e.handlers) { // checked here rather than in Schedule, where it would cost a load
		panic(e.unknown(0, to))
	}
	e.handlers[to].Handle(Event{At: Time(x.at), Arg: uint32(x.what), Kind: uint16(x.what >> 32)})
}

// fire dispatches the event that a timer's queued entry stands for, unless the timer was disarmed or moved.
func (e *Engine) fire(x entry) {
	if what, fires := e.expire(x); fires {
		x.what = what
		e.dispatch(x)
	}
}

// Advance moves the clock to a later time if no other event is pending up to then, and reports whether it did. A
// handler whose last action would be to schedule an event can call Advance instead and continue as if the event had
// arrived: the order of all events stays the same, and a round trip through the queue is saved. It counts as an event.
// The caller must do no further work of the previous time afterwards.
func (e *Engine) Advance(to Time) bool {
	if to < e.now || uint64(to) >= e.bound || e.queue.first() <= uint64(to) ||
		e.queue.n == 0 && e.queue.refill(uint64(to)) {
		return false
	}
	e.now = to
	e.events++
	return true
}

// pulseEvery is the number of events between pulses.
const pulseEvery = 1 << 14

// OnPulse registers f to be called every few thousand events on the goroutine that runs the engine. f may call Stop,
// for example after the run was cancelled, whatever state the models are in. It must not change any other state. nil
// ends the calls.
func (e *Engine) OnPulse(f func()) {
	if f == nil {
		e.pulse, e.due = nil, math.MaxUint64
		return
	}
	e.pulse, e.due = f, e.events+pulseEvery
}

func (e *Engine) beat() {
	e.due = e.events + pulseEvery
	e.pulse()
}

// Foresee registers f to be called with batches of up to some tens of upcoming events of a target, in order. Most
// events, but not all, are announced. f should read the memory that their handling will read: a model larger than the
// processor's cache then overlaps its cache misses instead of taking them one by one. f must not change any state.
func (e *Engine) Foresee(to Target, f func([]Event)) {
	if f == nil || to == 0 || int(to) >= len(e.handlers) {
		panic("sim: Foresee of a handler that AddHandler has not returned, or with a nil function")
	}
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

// Probe is an observation point. A model holds it as a field that is nil unless there is an observer, so that an unused
// probe costs one comparison.
type Probe[T any] func(T)

// Fire passes v to the observer, if any.
func (p Probe[T]) Fire(v T) {
	if p != nil {
		p(v)
	}
}

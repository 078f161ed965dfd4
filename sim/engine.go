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

// Time is a point in simulated time, or a span, in picoseconds: up to 106 days.
type Time = units.Duration

// Forever is later than every event.
const Forever Time = 1<<63 - 1

// Component identifies a source of events and breaks ties between their times.
type Component uint32

// Target identifies the Handler to which an event is dispatched.
type Target uint16

// Event happens at one time. Its handler defines Kind and Arg.
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

// Handler is a model. The engine calls Handle once per event, at its time, on the goroutine that runs the engine.
// Handle may schedule events at the current time or later, and arm or disarm timers.
type Handler interface {
	Handle(Event)
}

// Engine holds the clock and the pending events, for use by one goroutine. Use New.
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

// Sibling returns another engine for a part of a divided model. It shares e's present components and their counters;
// each must schedule on one of the engines only, and neither accepts new ones.
func (e *Engine) Sibling() *Engine {
	s := New()
	s.counters = e.counters[:len(e.counters):len(e.counters)]
	return s
}

// Wait advances the clock to a time before which no event is pending.
func (e *Engine) Wait(until Time) {
	if e.Next() < until {
		panic("sim: Wait past a pending event")
	}
	e.now = max(e.now, until)
}

// NewComponent returns the next component id, in the order of the calls.
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

// Pending returns the number of queued events, with those of disarmed timers.
func (e *Engine) Pending() int { return e.queue.len() }

// Schedule queues an event for handler at a time that is not past, on behalf of component from. A handler that does not
// exist is refused by Run, when the event is due.
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

// Claim reserves a component's next order key, for Advance or ScheduleAs.
func (e *Engine) Claim(from Component) uint64 {
	if uint(from) >= uint(len(e.counters)) {
		panic(noComponent)
	}
	order := e.counters[from]
	e.counters[from] = order + 1
	return order
}

// ScheduleAs is Schedule with a claimed order key, used only once.
func (e *Engine) ScheduleAs(order uint64, to Target, at Time, kind uint16, arg uint32) {
	if at < e.now {
		e.refuse(at, "event scheduled")
	}
	if to == 0 {
		panic(e.unknown(0, to))
	}
	e.queue.push(newEntry(at, order, arg, kind, to))
}

// ClockError is the panic value for a time that overflowed the clock: a consequence of the user's times, not a fault of
// a model. Callers that run models for users convert it to an error.
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

// Next returns the time of the first queued event, also of a disarmed timer, or Forever.
func (e *Engine) Next() Time {
	if !e.queue.ready(Forever) {
		return Forever
	}
	return Time(e.queue.front[e.queue.head%frontLen].at)
}

// Run dispatches events in order up to until, or until Stop is called, and returns their number. The clock stays at the
// last event.
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

// Advance moves the clock to a later time if no event is pending up to then, and reports whether it did. A handler
// whose last action would be to schedule an event can call it and continue as if the event had arrived. It counts as an
// event.
func (e *Engine) Advance(to Time) bool {
	// The order of all events stays the same, and a round trip through the queue is saved.
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

// OnPulse registers f to be called every few thousand events, on the engine's goroutine; nil ends it. f may call Stop
// and must not change any other state.
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

// Foresee registers f to be called with batches of upcoming events of a target, most of them and in order. f should
// read the memory that their handling will read, which overlaps cache misses, and must not change any state.
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

// Probe is an observation point: a field of a model, nil unless there is an observer.
type Probe[T any] func(T)

// Fire passes v to the observer, if any.
func (p Probe[T]) Fire(v T) {
	if p != nil {
		p(v)
	}
}

package sim

import "fmt"

// Timer identifies an event of an engine that can be moved or cancelled.
type Timer uint32

// timer is a reusable event. Moving it to a later time, as each packet does to a retransmission timer, leaves the
// queued event in place; when that is reached, it is queued again for the current due time. A timer that is moved a
// million times a second therefore usually has a single event pending.
type timer struct {
	due    key    // when it fires, if armed
	queued key    // the valid queued event; others are dropped
	what   uint64 // Arg, Kind and To of the event it stands for
	from   Component
	armed  bool
	inside bool // queued is valid
}

// released is the component of a timer that Release has freed. No engine has so many.
const released = 1<<32 - 1

// unknownTimer is the refusal of a timer.
//
//go:noinline
func (e *Engine) unknownTimer(t Timer) string {
	return fmt.Sprintf("sim: no timer %d among %d, or Release has freed it", t, len(e.timers))
}

// NewTimer returns a disarmed timer that will send (kind, arg) to the handler to, on behalf of component from.
func (e *Engine) NewTimer(from Component, to Target, kind uint16, arg uint32) Timer {
	if uint(from) >= uint(len(e.counters)) || to == 0 || int(to) >= len(e.handlers) {
		panic(e.unknown(from, to))
	}
	if k := len(e.released) - 1; k >= 0 {
		t := e.released[k]
		e.released = e.released[:k]
		// An event still queued for the released timer has a key that no longer matches, and is dropped.
		e.timers[t] = timer{from: from, what: newEntry(0, 0, arg, kind, to).what}
		return t
	}
	e.timers = append(e.timers, timer{from: from, what: newEntry(0, 0, arg, kind, to).what})
	return Timer(len(e.timers) - 1)
}

// Arm sets the timer to fire at a time that is not past, replacing any setting.
func (e *Engine) Arm(t Timer, at Time) {
	if at < e.now {
		e.refuse(at, "timer armed")
	}
	if uint(t) >= uint(len(e.timers)) {
		panic(e.unknownTimer(t))
	}
	tm := &e.timers[t]
	if uint(tm.from) >= uint(len(e.counters)) {
		panic(e.unknownTimer(t))
	}
	tm.due = key{uint64(at), e.counters[tm.from]}
	tm.armed = true
	e.counters[tm.from]++
	if !tm.inside || tm.due.less(tm.queued) {
		e.queueTimer(t)
	}
}

// queueTimer queues the timer's own event at its due time.
func (e *Engine) queueTimer(t Timer) {
	tm := &e.timers[t]
	tm.queued, tm.inside = tm.due, true
	e.queue.push(entry{tm.due, uint64(t)})
}

// Disarm cancels the timer. Disarming a timer that is not armed has no effect.
func (e *Engine) Disarm(t Timer) {
	if uint(t) >= uint(len(e.timers)) {
		panic(e.unknownTimer(t))
	}
	e.timers[t].armed = false
}

// Release frees a timer for a later NewTimer; the caller must not use it again.
func (e *Engine) Release(t Timer) {
	if uint(t) >= uint(len(e.timers)) || e.timers[t].from == released {
		panic(e.unknownTimer(t))
	}
	e.timers[t].armed, e.timers[t].from = false, released
	e.released = append(e.released, t)
}

// Armed reports whether the timer will fire.
func (e *Engine) Armed(t Timer) bool {
	if uint(t) >= uint(len(e.timers)) {
		panic(e.unknownTimer(t))
	}
	return e.timers[t].armed
}

// expire returns the event that a timer's queued entry stands for, or reports false if the timer was disarmed or moved
// since.
func (e *Engine) expire(x entry) (what uint64, fires bool) {
	tm := &e.timers[x.what]
	switch {
	case x.key != tm.queued:
		return 0, false
	case tm.armed && tm.due != x.key:
		e.queueTimer(Timer(x.what))
		return 0, false
	}
	tm.inside = false
	fires, tm.armed = tm.armed, false
	return tm.what, fires
}

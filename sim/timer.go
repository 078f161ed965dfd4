package sim

// Timer names a timer of an engine: an event that can be moved or taken back.
type Timer uint32

// timer is a reusable event. live is the order key of the queued event that
// counts; a queued event with another key was stopped or superseded and is
// dropped when its time comes.
type timer struct {
	live  uint64
	armed bool
	from  Component
	to    Target
	kind  uint16
	arg   uint32
}

// NewTimer returns a stopped timer that will send (kind, arg) to the handler to.
func (e *Engine) NewTimer(from Component, to Target, kind uint16, arg uint32) Timer {
	e.timers = append(e.timers, timer{from: from, to: to, kind: kind, arg: arg})
	return Timer(len(e.timers) - 1)
}

// Arm sets the timer to fire at time at, instead of whatever it was set to.
func (e *Engine) Arm(t Timer, at Time) {
	tm := &e.timers[t]
	tm.live, tm.armed = e.counters[tm.from], true
	e.Schedule(tm.from, 0, at, 0, uint32(t))
}

// Disarm takes the timer back. Disarming a timer that is not armed does nothing.
func (e *Engine) Disarm(t Timer) { e.timers[t].armed = false }

// Armed reports whether the timer will fire.
func (e *Engine) Armed(t Timer) bool { return e.timers[t].armed }

// expire turns a timer's queued event into the event it stands for, or reports
// false if the timer has been stopped or moved since.
func (e *Engine) expire(ev *Event) bool {
	tm := &e.timers[ev.Arg]
	if !tm.armed || tm.live != ev.order {
		return false
	}
	tm.armed = false
	ev.To, ev.Kind, ev.Arg = tm.to, tm.kind, tm.arg
	return true
}

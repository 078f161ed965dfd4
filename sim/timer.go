package sim

// Timer names a timer of an engine: an event that can be moved or taken back.
type Timer uint32

// timer is a reusable event. Moving it on, as each packet moves a retransmission
// timer on, leaves the event that is queued where it is; when that comes it is
// queued again for the time that counts by then. So a timer that is moved a
// million times a second has one event pending, mostly.
type timer struct {
	due    key    // where it fires, if it is armed
	queued key    // the queued event that is looked at; others are dropped
	what   uint64 // Arg, Kind and To of the event it stands for
	from   Component
	armed  bool
	inside bool // queued holds
}

// NewTimer returns a stopped timer that will send (kind, arg) to the handler to.
func (e *Engine) NewTimer(from Component, to Target, kind uint16, arg uint32) Timer {
	if k := len(e.released) - 1; k >= 0 {
		t := e.released[k]
		e.released = e.released[:k]
		// The event that is still queued for it has a key that no other has, and is dropped.
		e.timers[t] = timer{from: from, what: newEntry(0, 0, arg, kind, to).what}
		return t
	}
	e.timers = append(e.timers, timer{from: from, what: newEntry(0, 0, arg, kind, to).what})
	return Timer(len(e.timers) - 1)
}

// Arm sets the timer to fire at time at, instead of whatever it was set to. at must
// not lie in the past.
func (e *Engine) Arm(t Timer, at Time) {
	if at < e.now {
		e.refuse(at, "timer armed")
	}
	tm := &e.timers[t]
	tm.due = key{uint64(at), e.counters[tm.from]}
	tm.armed = true
	e.counters[tm.from]++
	if !tm.inside || tm.due.less(tm.queued) {
		e.queueTimer(t)
	}
}

// queueTimer queues the timer's own event for when it is due.
func (e *Engine) queueTimer(t Timer) {
	tm := &e.timers[t]
	tm.queued, tm.inside = tm.due, true
	e.queue.push(entry{tm.due, uint64(t)})
}

// Disarm takes the timer back. Disarming a timer that is not armed does nothing.
func (e *Engine) Disarm(t Timer) { e.timers[t].armed = false }

// Release takes a timer back for good: the next NewTimer may return it.
func (e *Engine) Release(t Timer) {
	e.timers[t].armed = false
	e.released = append(e.released, t)
}

// Armed reports whether the timer will fire.
func (e *Engine) Armed(t Timer) bool { return e.timers[t].armed }

// expire returns what a timer's queued event stands for, or reports false if the
// timer has been stopped or moved since.
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

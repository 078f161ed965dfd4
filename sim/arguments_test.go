package sim

import (
	"testing"

	"farflash/internal/hostile"
	"farflash/internal/patience"
)

// TestArguments verifies that an engine refuses components, handlers, timers and times that it cannot have.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "sim")
	for _, c := range []struct {
		name string
		do   func(e *Engine, self Component, to Target, tm Timer)
		want string
	}{
		{"nil handler", func(e *Engine, _ Component, _ Target, _ Timer) { e.AddHandler(nil) }, "AddHandler of nil"},
		{"component", func(e *Engine, c Component, to Target, _ Timer) { e.Schedule(c+1, to, 0, 0, 0) },
			"no component 1 of 1"},
		{"target 0", func(e *Engine, c Component, _ Target, _ Timer) { e.Schedule(c, 0, 0, 0, 0) }, "no handler 0"},
		{"target", func(e *Engine, c Component, to Target, _ Timer) { e.Schedule(c, to+1, 0, 0, 0); e.Run(Forever) },
			"no handler 2 of 2"},
		{"negative time", func(e *Engine, c Component, to Target, _ Timer) { e.Schedule(c, to, -1, 0, 0) },
			"past the end of the simulated clock"},
		{"the past", func(e *Engine, c Component, to Target, _ Timer) { e.Wait(5); e.Schedule(c, to, 4, 0, 0) },
			"in the past"},
		{"claim", func(e *Engine, c Component, _ Target, _ Timer) { e.Claim(c + 1) }, "Claim of a component"},
		{"claimed target", func(e *Engine, c Component, _ Target,
			_ Timer) {
			e.ScheduleAs(e.Claim(c), 9, 0, 0, 0)
			e.Run(Forever)
		},
			"no handler 9"},
		{"timer of no component", func(e *Engine, c Component, to Target, _ Timer) { e.NewTimer(c+1, to, 0, 0) },
			"no component 1"},
		{"timer of no handler", func(e *Engine, c Component, _ Target, _ Timer) { e.NewTimer(c, 0, 0, 0) },
			"no handler 0"},
		{"armed timer", func(e *Engine, _ Component, _ Target, tm Timer) { e.Arm(tm+1, 0) }, "no timer 1 among 1"},
		{"armed in the past", func(e *Engine, _ Component, _ Target, tm Timer) { e.Wait(5); e.Arm(tm, 1) },
			"in the past"},
		{"disarmed timer", func(e *Engine, _ Component, _ Target, tm Timer) { e.Disarm(tm + 1) }, "no timer 1"},
		{"asked timer", func(e *Engine, _ Component, _ Target, tm Timer) { e.Armed(tm + 1) }, "no timer 1"},
		{"released timer", func(e *Engine, _ Component, _ Target, tm Timer) { e.Release(tm + 1) }, "no timer 1"},
		{"released twice", func(e *Engine, _ Component, _ Target, tm Timer) { e.Release(tm); e.Release(tm) },
			"Release has freed it"},
		{"armed after its release", func(e *Engine, _ Component, _ Target, tm Timer) { e.Release(tm); e.Arm(tm, 1) },
			"Release has freed it"},
		{"foreseen by nobody", func(e *Engine, _ Component, to Target, _ Timer) { e.Foresee(to, nil) }, "Foresee"},
		{"foreseen for nobody", func(e *Engine, _ Component, to Target, _ Timer) { e.Foresee(to+1, func([]Event) {}) },
			"Foresee"},
		{"waited past an event", func(e *Engine, c Component, to Target, _ Timer) {
			e.Schedule(c, to, 1, 0, 0)
			e.Wait(2)
		}, "past a pending event"},
	} {
		e, _, to := newRecorder()
		self := e.NewComponent()
		tm := e.NewTimer(self, to, 0, 0)
		refused(c.name, func() error { c.do(e, self, to, tm); return nil }, c.want)
	}
	e, r, to := newRecorder()
	self := e.NewComponent()
	r.act = func(ev Event) {
		if e.Advance(ev.At - 1) {
			t.Error("the clock goes back")
		}
	}
	e.Schedule(self, to, 5, 0, 0)
	e.OnPulse(func() { t.Error("a pulse that was ended") })
	e.OnPulse(nil)
	e.Run(Forever)
	if e.Now() != 5 {
		t.Errorf("the clock stands at %v", e.Now())
	}
}

// FuzzEngine makes calls that the input describes, from outside of an engine and from handlers: it runs the events in
// order of time, and refuses what it cannot schedule without running anything else.
func FuzzEngine(f *testing.F) {
	f.Add([]byte{0, 0, 1, 5, 1, 0, 3, 2, 0, 9, 3, 0, 4, 0, 5, 0, 6, 200, 7, 7, 7, 7, 7, 7})
	f.Add([]byte{1, 1, 1, 200, 1, 2, 2, 200, 2, 3, 3, 200, 3, 240, 1, 2, 3, 4, 5, 6, 7, 8, 4, 4, 4, 4, 5, 5, 5, 6, 6,
		6})
	f.Add([]byte("timers are armed, moved, released and armed again, at times that never were"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		code := hostile.Code(in)
		e, r, to := newRecorder()
		self := e.NewComponent()
		calls, last := 0, Time(0)
		call := func() {
			if calls++; calls > 300 || !code.More() {
				return
			}
			hostile.Refused(t, "sim", func() {
				at := e.Now() + Time(code.Int())
				switch code.Below(11) {
				case 0:
					e.Schedule(self, to, at, 0, 0)
				case 1:
					e.Schedule(Component(code.Int()), Target(code.Int()), at, 0, 0)
				case 2:
					e.NewTimer(self, to, 1, 0)
				case 3:
					e.Arm(Timer(code.Int()), at)
				case 4:
					e.Disarm(Timer(code.Int()))
				case 5:
					e.Release(Timer(code.Int()))
				case 6:
					e.Armed(Timer(code.Int()))
				case 7:
					e.ScheduleAs(e.Claim(self), Target(code.Int()), at, 0, 0)
				case 8:
					if e.Advance(at) && e.Now() != at {
						t.Errorf("advanced to %v instead of %v", e.Now(), at)
					}
				case 9:
					self = e.NewComponent()
				default:
					e.Stop()
				}
			})
		}
		r.act = func(ev Event) {
			if ev.At < last || ev.At > e.Now() {
				t.Errorf("an event of %v after one of %v, at %v", ev.At, last, e.Now())
			}
			for range 3 {
				call()
			}
			last = e.Now()
		}
		for code.More() && calls < 300 {
			call()
			hostile.Refused(t, "sim", func() { e.Run(e.Now() + Time(code.Byte())) })
		}
		for range 400 { // each Stop ends one Run
			hostile.Refused(t, "sim", func() { e.Run(Forever) })
		}
		if e.Next() != Forever {
			t.Errorf("events are left: the next is at %v", e.Next())
		}
	})
}

package sim

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTimers(t *testing.T) {
	type step struct {
		at  Time // when to act
		do  string
		arg Time
	}
	cases := []struct {
		name  string
		steps []step
		want  []string
	}{
		{"fires once", []step{{0, "arm", 50}}, []string{"50:3:4"}},
		{"at once", []step{{20, "arm", 20}}, []string{"20:3:4"}},
		{"later", []step{{0, "arm", 50}, {10, "arm", 80}}, []string{"80:3:4"}},
		{"sooner", []step{{0, "arm", 50}, {10, "arm", 30}}, []string{"30:3:4"}},
		{"to the same time", []step{{0, "arm", 50}, {10, "arm", 50}}, []string{"50:3:4"}},
		{"to and fro", []step{{0, "arm", 50}, {10, "arm", 80}, {20, "arm", 50}}, []string{"50:3:4"}},
		{"disarmed", []step{{0, "arm", 50}, {10, "disarm", 0}}, nil},
		{"disarmed unarmed", []step{{0, "disarm", 0}}, nil},
		{"disarmed, armed again", []step{{0, "arm", 50}, {10, "disarm", 0}, {20, "arm", 50}}, []string{"50:3:4"}},
		{"again after it fired", []step{{0, "arm", 50}, {60, "arm", 70}}, []string{"50:3:4", "70:3:4"}},
		{"in its own time", []step{{0, "arm", 50}, {50, "arm", 50}}, []string{"50:3:4"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e, r, to := newRecorder()
			driver := e.NewComponent() // ordered before the timer's component
			tm := e.NewTimer(e.NewComponent(), to, 3, 4)
			script := &recorder{engine: e, act: func(ev Event) {
				switch s := c.steps[ev.Arg]; s.do {
				case "arm":
					e.Arm(tm, s.arg)
					if !e.Armed(tm) {
						t.Error("armed, yet not Armed")
					}
				case "disarm":
					e.Disarm(tm)
					if e.Armed(tm) {
						t.Error("disarmed, yet Armed")
					}
				}
			}}
			drive := e.AddHandler(script)
			for i, s := range c.steps {
				e.Schedule(driver, drive, s.at, 0, uint32(i))
			}
			e.Run(Forever)
			equal(t, r.lines, c.want)
			if got := e.Events(); got != uint64(len(c.steps)+len(c.want)) {
				t.Errorf("%d events counted", got)
			}
			if e.Armed(tm) || e.Pending() != 0 {
				t.Errorf("armed %v, %d pending at the end", e.Armed(tm), e.Pending())
			}
		})
	}
}

func TestTimerArmsItself(t *testing.T) {
	e, r, to := newRecorder()
	tm := e.NewTimer(e.NewComponent(), to, 1, 0)
	r.act = func(ev Event) {
		if e.Armed(tm) {
			t.Error("armed while it fires")
		}
		if e.Now() < 30 {
			e.Arm(tm, e.Now()+10)
		}
	}
	e.Arm(tm, 10)
	e.Run(Forever)
	equal(t, r.lines, []string{"10:1:0", "20:1:0", "30:1:0"})
}

// Timers are ordered among their component's events by the time of arming.
func TestTimerOrder(t *testing.T) {
	e, r, to := newRecorder()
	a, b := e.NewComponent(), e.NewComponent()
	tm := e.NewTimer(a, to, 9, 0)
	e.Schedule(b, to, 5, 1, 0)
	e.Schedule(a, to, 5, 0, 0)
	e.Arm(tm, 5)
	e.Schedule(a, to, 5, 0, 1)
	e.Run(Forever)
	equal(t, r.lines, []string{"5:0:0", "5:9:0", "5:0:1", "5:1:0"})
}

// A disarmed timer's event does not move the clock.
func TestDisarmedTimerLeavesTheClock(t *testing.T) {
	e, r, to := newRecorder()
	c := e.NewComponent()
	tm := e.NewTimer(c, to, 0, 0)
	e.Schedule(c, to, 10, 0, 1)
	e.Arm(tm, 1000)
	e.Disarm(tm)
	e.Run(2000)
	if e.Now() != 10 {
		t.Errorf("now %d", e.Now())
	}
	e.Schedule(c, to, 500, 0, 2)
	e.Run(Forever)
	equal(t, r.lines, []string{"10:0:1", "500:0:2"})
}

// After any sequence of operations, the timers that fire, and their times and order, are those of a simple list of
// armed timers.
func TestTimerMachine(t *testing.T) {
	type op struct {
		at    Time
		timer int
		ahead Time // the delay to arm for, or negative to disarm
	}
	rapid.Check(t, func(t *rapid.T) {
		const timers = 6
		ops := make([]op, rapid.IntRange(1, 200).Draw(t, "ops"))
		at := Time(0)
		for i := range ops {
			at += Time(rapid.IntRange(0, 20).Draw(t, "after"))
			ops[i] = op{at, rapid.IntRange(0, timers-1).Draw(t, "timer"),
				Time(rapid.IntRange(-10, 60).Draw(t, "ahead"))}
		}

		e, r, to := newRecorder()
		driver, script := e.NewComponent(), &recorder{engine: e}
		var handles [timers]Timer
		var owners [timers]Component
		for i := range handles {
			if i%2 == 0 {
				owners[i] = e.NewComponent()
			} else {
				owners[i] = owners[i-1]
			}
			handles[i] = e.NewTimer(owners[i], to, uint16(i), 0)
		}
		script.act = func(ev Event) {
			if o := ops[ev.Arg]; o.ahead < 0 {
				e.Disarm(handles[o.timer])
			} else {
				e.Arm(handles[o.timer], o.at+o.ahead)
			}
		}
		drive := e.AddHandler(script)
		for i, o := range ops {
			e.Schedule(driver, drive, o.at, 0, uint32(i))
		}
		e.Run(Forever)

		var want []string
		var armed [timers]bool
		var due [timers]key
		counter := uint64(0)
		fire := func(before Time) {
			for {
				first := -1
				for i := range timers {
					if armed[i] && due[i].at < uint64(before) && (first < 0 || due[i].less(due[first])) {
						first = i
					}
				}
				if first < 0 {
					return
				}
				armed[first] = false
				want = append(want, fmt.Sprintf("%d:%d:0", due[first].at, first))
			}
		}
		for _, o := range ops {
			fire(o.at)
			counter++
			armed[o.timer] = o.ahead >= 0
			due[o.timer] = key{uint64(o.at + o.ahead), uint64(owners[o.timer])<<counterBits | counter}
		}
		fire(Forever)
		if !slices.Equal(r.lines, want) {
			t.Fatalf("got  %v\nwant %v", r.lines, want)
		}
	})
}

// TestTimerUsedAgain verifies that a released timer is returned by the next NewTimer with its new event, and that the
// event queued for its previous use does not fire.
func TestTimerUsedAgain(t *testing.T) {
	e, r, to := newRecorder()
	c := e.NewComponent()
	first := e.NewTimer(c, to, 1, 2)
	e.Arm(first, 10)
	e.Release(first)
	second := e.NewTimer(c, to, 3, 4)
	if second != first || e.Armed(second) || e.NewTimer(c, to, 5, 6) == first {
		t.Errorf("timer %d after %d", second, first)
	}
	e.Arm(second, 20)
	e.Run(Forever)
	equal(t, r.lines, []string{"20:3:4"})
}

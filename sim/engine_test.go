package sim

import (
	"farflash/numeric/rng"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unsafe"
)

// recorder records the events that it handles, and can react to them.
type recorder struct {
	engine *Engine
	lines  []string
	act    func(Event)
}

func (r *recorder) Handle(ev Event) {
	r.lines = append(r.lines, fmt.Sprintf("%d:%d:%d", r.engine.Now(), ev.Kind, ev.Arg))
	if r.act != nil {
		r.act(ev)
	}
}

func newRecorder() (*Engine, *recorder, Target) {
	e := New()
	r := &recorder{engine: e}
	return e, r, e.AddHandler(r)
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestEngineOrder(t *testing.T) {
	e, r, to := newRecorder()
	a, b := e.NewComponent(), e.NewComponent()
	e.Schedule(b, to, 5, 1, 0)
	e.Schedule(b, to, 5, 1, 1)
	e.Schedule(a, to, 5, 0, 0)
	e.Schedule(b, to, 3, 1, 2)
	e.Schedule(a, to, 5, 0, 1)
	e.Schedule(a, to, 7, 0, 2)
	if n := e.Run(Forever); n != 6 {
		t.Errorf("%d events", n)
	}
	equal(t, r.lines, []string{"3:1:2", "5:0:0", "5:0:1", "5:1:0", "5:1:1", "7:0:2"})
}

// An event scheduled at the current time is ordered by component among the remaining events of that time.
func TestEngineScheduleNow(t *testing.T) {
	e, r, to := newRecorder()
	a, b, c := e.NewComponent(), e.NewComponent(), e.NewComponent()
	r.act = func(ev Event) {
		if ev.Kind == 1 && ev.Arg == 0 {
			e.Schedule(c, to, ev.At, 2, 1)
			e.Schedule(a, to, ev.At, 0, 1)
			e.Schedule(b, to, ev.At, 1, 1)
		}
	}
	e.Schedule(b, to, 9, 1, 0)
	e.Schedule(c, to, 9, 2, 0)
	e.Run(9)
	equal(t, r.lines, []string{"9:1:0", "9:0:1", "9:1:1", "9:2:0", "9:2:1"})
}

// chatter is a component that schedules itself after random delays, often at the times of others.
type chatter struct {
	engine *Engine
	self   Component
	to     Target
	name   uint16
	draws  rng.Stream
	trace  *[]string
}

func (c *chatter) Handle(ev Event) {
	if c.trace != nil {
		*c.trace = append(*c.trace, fmt.Sprintf("%d:%d:%d", ev.At, c.name, ev.Arg))
	}
	for range c.draws.IntN(3) {
		c.engine.Schedule(c.self, c.to, ev.At+Time(c.draws.IntN(4))*1000, 0, ev.Arg+1)
	}
}

// chat runs some chatters with unrelated components registered between them.
func chat(others int) []string {
	e := New()
	var trace []string
	for name := range uint16(8) {
		add := func(trace *[]string, stream string) {
			c := &chatter{engine: e, self: e.NewComponent(), name: name, trace: trace, draws: rng.NewStream(3, stream)}
			c.to = e.AddHandler(c)
			for arg := range uint32(20) {
				e.Schedule(c.self, c.to, Time(arg)*500, 0, 100*arg)
			}
		}
		for i := range others {
			add(nil, fmt.Sprintf("other[%d.%d]", name, i))
		}
		add(&trace, fmt.Sprintf("chatter[%d]", name))
	}
	for until := Time(0); until < 50000 && e.Pending() > 0; until += 700 {
		e.Run(until)
	}
	return trace
}

func TestEngineOrderIgnoresUnrelatedComponents(t *testing.T) {
	alone := chat(0)
	if len(alone) < 500 {
		t.Fatalf("only %d events", len(alone))
	}
	for _, others := range []int{1, 3, 20} {
		equal(t, chat(others), alone)
	}
}

func TestEngineRun(t *testing.T) {
	e, r, to := newRecorder()
	c := e.NewComponent()
	for _, at := range []Time{0, 10, 20, 20, 30, Forever} {
		e.Schedule(c, to, at, 0, uint32(at))
	}
	steps := []struct {
		until   Time
		ran     uint64
		now     Time
		pending int
	}{
		{-1, 0, 0, 6},
		{0, 1, 0, 5},
		{9, 0, 0, 5},
		{19, 1, 10, 4},
		{5, 0, 10, 4},
		{20, 2, 20, 2},
		{Forever - 1, 1, 30, 1},
		{Forever, 1, Forever, 0},
		{Forever, 0, Forever, 0},
	}
	for _, s := range steps {
		if ran := e.Run(s.until); ran != s.ran || e.Now() != s.now || e.Pending() != s.pending {
			t.Errorf("Run(%d) ran %d, now %d, pending %d; want %d, %d, %d",
				s.until, ran, e.Now(), e.Pending(), s.ran, s.now, s.pending)
		}
	}
	if e.Events() != 6 || len(r.lines) != 6 {
		t.Errorf("%d events, %d handled", e.Events(), len(r.lines))
	}
}

// After Run(until) the next event may be hours away, and the caller can still schedule at any time from now on.
func TestEngineScheduleBeforePending(t *testing.T) {
	e, r, to := newRecorder()
	c := e.NewComponent()
	e.Schedule(c, to, 10, 0, 0)
	e.Schedule(c, to, 1e15, 0, 1)
	e.Run(1e14)
	e.Schedule(c, to, 10, 0, 2)
	e.Schedule(c, to, 1e13, 0, 3)
	e.Run(Forever)
	equal(t, r.lines, []string{"10:0:0", "10:0:2", "10000000000000:0:3", "1000000000000000:0:1"})
}

func TestEngineStop(t *testing.T) {
	e, r, to := newRecorder()
	c := e.NewComponent()
	r.act = func(ev Event) {
		if ev.Arg == 1 {
			e.Stop()
		}
	}
	for i := range uint32(3) {
		e.Schedule(c, to, 7, 0, i)
	}
	if n := e.Run(Forever); n != 2 {
		t.Errorf("ran %d before the stop", n)
	}
	if n := e.Run(Forever); n != 1 {
		t.Errorf("ran %d after it", n)
	}
	equal(t, r.lines, []string{"7:0:0", "7:0:1", "7:0:2"})
}

func TestEnginePastPanics(t *testing.T) {
	e, _, to := newRecorder()
	c := e.NewComponent()
	e.Schedule(c, to, 7, 0, 0)
	e.Run(Forever)
	defer func() {
		if recover() == nil {
			t.Error("scheduling in the past did not panic")
		}
	}()
	e.Schedule(c, to, 6, 0, 0)
}

// TestPastIsSaid verifies that a time beyond the clock's end, which has become negative, is distinguished from a time
// in the past.
func TestPastIsSaid(t *testing.T) {
	for at, want := range map[Time]any{
		6: "sim: event scheduled in the past", 0: "sim: event scheduled in the past", -1: &ClockError{7},
		-Forever: &ClockError{7},
	} {
		e, _, to := newRecorder()
		c := e.NewComponent()
		e.Schedule(c, to, 7, 0, 0)
		e.Run(Forever)
		func() {
			defer func() {
				if got := recover(); !reflect.DeepEqual(got, want) {
					t.Errorf("%d: %v, want %v", at, got, want)
				}
			}()
			e.Schedule(c, to, at, 0, 0)
		}()
	}
}

// TestEngineNext verifies the time of the next event, in the front or far in the future, and of an empty queue.
func TestEngineNext(t *testing.T) {
	e, _, to := newRecorder()
	if e.Next() != Forever {
		t.Errorf("the next of none is at %v", e.Next())
	}
	c := e.NewComponent()
	e.Schedule(c, to, 1e15, 0, 0)
	if e.Next() != 1e15 {
		t.Errorf("the next is at %v", e.Next())
	}
	e.Schedule(c, to, 3, 0, 0)
	if e.Next() != 3 {
		t.Errorf("the next is at %v", e.Next())
	}
}

// TestAdvanceEndsWithTheRun verifies that a handler does not advance beyond the end of the run or another event.
func TestAdvanceEndsWithTheRun(t *testing.T) {
	e := New()
	c := e.NewComponent()
	var went []bool
	to := e.AddHandler(handle(func(ev Event) {
		if ev.Arg == 0 {
			went = append(went, e.Advance(ev.At+4), e.Advance(ev.At+20), e.Advance(ev.At+21), e.Advance(ev.At+40))
		}
	}))
	e.Schedule(c, to, 10, 0, 0)
	e.Schedule(c, to, 45, 0, 1)
	e.Run(30)
	if !reflect.DeepEqual(went, []bool{true, true, false, false}) || e.Now() != 30 {
		t.Errorf("%v, and the clock at %v", went, e.Now())
	}
	went = nil
	e.Schedule(c, to, 40, 0, 0)
	e.Run(100)
	if !reflect.DeepEqual(went, []bool{true, false, false, false}) || e.Now() != 45 {
		t.Errorf("%v, and the clock at %v", went, e.Now())
	}
}

// TestClaim verifies that an event with a claimed order key precedes those scheduled later for the same time, and that
// it is equivalent to advancing.
func TestClaim(t *testing.T) {
	run := func(claims bool) (order []uint32, events uint64) {
		e := New()
		c := e.NewComponent()
		var to Target
		to = e.AddHandler(handle(func(ev Event) {
			order = append(order, ev.Arg)
			if ev.Arg != 0 {
				return
			}
			if !claims {
				e.Schedule(c, to, ev.At+5, 0, 1)
				e.Schedule(c, to, ev.At+5, 0, 2)
				e.Schedule(c, to, ev.At+3, 0, 3)
				return
			}
			first := e.Claim(c)
			e.Schedule(c, to, ev.At+5, 0, 2)
			third := e.Claim(c)
			e.ScheduleAs(first, to, ev.At+5, 0, 1)
			if !e.Advance(ev.At + 3) {
				t.Fatal("nothing is before the third, and it cannot be advanced to")
			}
			_ = third // a claimed key can stay unused
			order = append(order, 3)
		}))
		e.Schedule(c, to, 10, 0, 0)
		e.Run(100)
		return order, e.Events()
	}
	order, n := run(false)
	if claimed, m := run(true); !reflect.DeepEqual(order, []uint32{0, 3, 1, 2}) ||
		!reflect.DeepEqual(claimed, order) || n != m {
		t.Errorf("%v in %d events, and %v in %d with places that were claimed", order, n, claimed, m)
	}
}

// handle is a function as a Handler.
type handle func(Event)

func (f handle) Handle(e Event) { f(e) }

// TestPulse verifies that pulses arrive and can stop the run.
func TestPulse(t *testing.T) {
	e := New()
	c := e.NewComponent()
	var to Target
	to = e.AddHandler(handle(func(ev Event) { e.Schedule(c, to, ev.At+1, 0, 0) }))
	e.Schedule(c, to, 0, 0, 0)
	beats := 0
	e.OnPulse(func() {
		if beats++; beats == 3 {
			e.Stop()
		}
	})
	if n := e.Run(100 * pulseEvery); beats != 3 || n != 3*pulseEvery {
		t.Errorf("%d pulses in %d events", beats, n)
	}
}

type catcher struct{ got Event }

func (c *catcher) Handle(ev Event) { c.got = ev }

func TestEventFieldsSurviveTheQueue(t *testing.T) {
	want := Event{At: Forever, Arg: 1<<32 - 3, Kind: 1<<16 - 4}
	e, c := New(), &catcher{}
	e.Schedule(e.NewComponent(), e.AddHandler(c), want.At, want.Kind, want.Arg)
	e.Run(Forever)
	if c.got != want {
		t.Errorf("got %+v, want %+v", c.got, want)
	}
}

// looper keeps a number of events pending forever, and a timer that one of them moves.
type looper struct {
	engine *Engine
	self   Component
	to     Target
	timer  Timer
	delays [1 << 12]Time
	i      int
	left   uint64 // events until it stops the engine
}

func newLooper(draw func(*rng.Stream, int) Time, pending int) *looper {
	e := New()
	l := &looper{engine: e, self: e.NewComponent()}
	l.to = e.AddHandler(l)
	l.timer = e.NewTimer(l.self, l.to, 1, 0)
	s := rng.NewStream(1, "looper")
	for i := range l.delays {
		l.delays[i] = draw(&s, pending)
	}
	for i := range pending {
		e.Schedule(l.self, l.to, l.delays[i%len(l.delays)], 0, uint32(i))
	}
	return l
}

func (l *looper) Handle(ev Event) {
	l.left--
	if l.left == 0 {
		l.engine.Stop()
	}
	if ev.Kind == 1 {
		return
	}
	if ev.Arg == 0 {
		l.engine.Arm(l.timer, ev.At+50*1000*1000)
	}
	l.engine.Schedule(l.self, l.to, ev.At+l.delays[l.i%len(l.delays)], 0, ev.Arg)
	l.i++
}

// run handles n events.
func (l *looper) run(n int) {
	l.left = uint64(n)
	l.engine.Run(Forever)
}

func TestEngineAllocatesNothing(t *testing.T) {
	l := newLooper(driveDelay, 100)
	l.run(100000)
	if a := testing.AllocsPerRun(10, func() { l.run(10000) }); a != 0 {
		t.Errorf("%v allocations in 10000 events", a)
	}
}

func TestEngineIsSmall(t *testing.T) {
	if b := unsafe.Sizeof(Engine{}); b > 24<<10 {
		t.Errorf("an engine takes %d B", b)
	}
	if a := testing.AllocsPerRun(100, func() { New() }); a > 2 {
		t.Errorf("New allocates %v times", a)
	}
}

func TestProbe(t *testing.T) {
	var p Probe[int]
	p.Fire(1)
	sum := 0
	p = func(v int) { sum += v }
	p.Fire(2)
	p.Fire(3)
	if sum != 5 {
		t.Errorf("sum is %d", sum)
	}
}

// foreteller records the events that it handles and those announced before.
type foreteller struct {
	t     *testing.T
	e     *Engine
	here  Target
	self  Component
	told  map[uint32]bool
	known int // of the handled events
	left  int
}

func (f *foreteller) Handle(x Event) {
	if f.told[x.Arg] {
		f.known++
	}
	if f.left > 0 {
		f.left--
		f.e.Schedule(f.self, f.here, f.e.Now()+Time(1000+x.Arg%7*100), 3, x.Arg+1000)
	}
}

// TestForesee verifies that most of many events are announced before they are handled, including timers and excluding
// those of other handlers, and that the order is unchanged.
func TestForesee(t *testing.T) {
	e := New()
	f := &foreteller{t: t, e: e, self: e.NewComponent(), told: map[uint32]bool{}, left: 5000}
	f.here = e.AddHandler(f)
	other := e.AddHandler(&foreteller{e: e, told: map[uint32]bool{}})
	e.Foresee(f.here, func(list []Event) {
		for i, x := range list {
			if x.Kind != 3 || i > 0 && x.At < list[i-1].At || x.At < e.Now() {
				t.Fatalf("%+v is told of after %v", x, list[:i])
			}
			f.told[x.Arg] = true
		}
	})
	for i := range uint32(200) {
		e.Schedule(f.self, f.here, Time(i*10), 3, i)
		e.Schedule(f.self, other, Time(i*10), 4, i)
		e.Arm(e.NewTimer(f.self, f.here, 3, 500+i), Time(i*10+5))
	}
	if n := e.Run(Forever); n != 5600 || f.known < 4000 {
		t.Errorf("%d events, of %d it was told before", n, f.known)
	}
}

package experiment_test

import (
	"context"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/numeric/units"
	"farflash/sim"
)

// spinner is a model in which each event schedules another after a fixed time.
type spinner struct {
	eng  *sim.Engine
	self sim.Component
	to   sim.Target
	gap  sim.Time
	each func()
}

func spin(gap sim.Time) *spinner {
	s := &spinner{eng: sim.New(), gap: gap}
	s.self, s.to = s.eng.NewComponent(), s.eng.AddHandler(s)
	s.eng.Schedule(s.self, s.to, 0, 0, 0)
	return s
}

// Handle implements sim.Handler.
func (s *spinner) Handle(sim.Event) {
	if s.each != nil {
		s.each()
	}
	s.eng.Schedule(s.self, s.to, s.eng.Now()+s.gap, 0, 0)
}

// TestWatch verifies that a run without progress is stalled if and only if something waits and no change is scheduled.
func TestWatch(t *testing.T) {
	const long = 100 * units.Second
	moves := uint64(0)
	for _, c := range []struct {
		name    string
		gap     sim.Time
		watch   experiment.Watch
		each    func(n uint64)
		stalled bool
	}{
		{name: "time passes", gap: units.Microsecond, stalled: true},
		{name: "the clock stands", stalled: true},
		{name: "the clock stands, and the run ends by time", watch: experiment.Watch{Until: long}, stalled: true},
		{name: "the clock hardly moves", gap: 2, watch: experiment.Watch{Patience: func() sim.Time { return long }}},
		{name: "the run ends by time", gap: units.Microsecond, watch: experiment.Watch{Until: long}},
		{name: "nobody waits", gap: units.Microsecond, watch: experiment.Watch{Waits: func() string { return "" }}},
		{name: "something is to come", gap: units.Microsecond,
			watch: experiment.Watch{Pending: func() bool { return true }}},
		{name: "patience", gap: units.Microsecond, watch: experiment.Watch{Patience: func() sim.Time { return long }}},
		{name: "now and then something moves", gap: units.Microsecond, each: func(n uint64) {
			if n%1000000 == 0 {
				moves++
			}
		}},
		{name: "few events in a long time", gap: units.Second},
	} {
		s := spin(c.gap)
		n := uint64(0)
		s.each = func() {
			if n++; c.each != nil {
				c.each(n)
			}
			if n == 12e6 || c.gap == units.Second && n == 1e6 {
				s.eng.Stop()
			}
		}
		w := c.watch
		w.Moves = func() uint64 { return moves }
		if w.Waits == nil {
			w.Waits = func() string { return "a flow waits for its queue" }
		}
		w.Attend(context.Background(), s.eng)
		s.eng.Run(sim.Forever)
		text := w.Stalled()
		if c.stalled != (text != "") || c.stalled && !strings.Contains(text, "a flow waits for its queue") {
			t.Errorf("%s: %q after %d events", c.name, text, n)
		}
	}
}

// TestWatchEndsAtOnce verifies that the engine stops with the context.
func TestWatchEndsAtOnce(t *testing.T) {
	s := spin(units.Microsecond)
	ctx, cancel := context.WithCancel(context.Background())
	s.each = func() {
		if s.eng.Now() == units.Millisecond {
			cancel()
		}
	}
	new(experiment.Watch).Attend(ctx, s.eng)
	s.eng.Run(sim.Forever)
	if n := s.eng.Events(); n > 1<<15 {
		t.Errorf("%d events after the context has ended", n)
	}
}

// standing is an experiment with a fixed standing.
type standing struct{ experiment.RunState }

func (s standing) Advance(context.Context, sim.Time) (experiment.RunState, error) {
	return s.RunState, nil
}
func (standing) Meters() []experiment.Meter                      { return nil }
func (standing) Fill(context.Context, *experiment.Outcome) error { return nil }
func (standing) Close() error                                    { return nil }

// TestStuck verifies that models without events but with outstanding requests are reported as faulty, also before the
// time limit of the run.
func TestStuck(t *testing.T) {
	for _, c := range []struct {
		until units.Duration
		now   experiment.RunState
		want  string
	}{
		{0, experiment.RunState{At: units.Second, Over: true, Begun: 7, Done: 5, Stuck: 2},
			"stuck at 1s: 2 of 7 requests have not completed"},
		{0, experiment.RunState{At: units.Second, Over: true, Begun: 7, Done: 6, Stuck: 1},
			"stuck at 1s: 1 of 7 requests have not completed"},
		{units.Minute, experiment.RunState{At: units.Second, Over: true, Begun: 7, Done: 5, Stuck: 2},
			"stuck at 1s: 2 of 7 requests have not completed"},
		{units.Second, experiment.RunState{At: units.Second, Over: true, Begun: 7, Done: 5, Stuck: 2}, ""},
		{0, experiment.RunState{At: units.Second, Over: true, Begun: 7, Done: 7}, ""},
		{0, experiment.RunState{At: units.Second, Stalled: "stalled at 1s: who waits for whom"},
			"stalled at 1s: who waits for whom"},
	} {
		_, err := (&experiment.Loop{Until: c.until}).Run(context.Background(), standing{c.now})
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("until %v, %+v: %v", c.until, c.now, err)
		}
	}
}

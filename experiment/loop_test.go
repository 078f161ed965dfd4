package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario"
	"farflash/sim"
)

// script is an experiment that replays a list of standings, one per call of Advance, and records the calls made to it.
type script struct {
	stands []experiment.RunState // the last one repeats
	meters []experiment.Meter
	calls  []string
	each   func() error // called in each Advance
	fill   func(*experiment.Outcome) error
	closed error
}

func (x *script) note(format string, args ...any) {
	x.calls = append(x.calls, fmt.Sprintf(format, args...))
}

func (x *script) Advance(_ context.Context, to sim.Time) (experiment.RunState, error) {
	x.note("to %v", to)
	if x.each != nil {
		if err := x.each(); err != nil {
			return experiment.RunState{}, err
		}
	}
	now := x.stands[0]
	if len(x.stands) > 1 {
		x.stands = x.stands[1:]
	}
	return now, nil
}

func (x *script) Meters() []experiment.Meter { return x.meters }

func (x *script) Fill(_ context.Context, o *experiment.Outcome) error {
	x.note("fill")
	if x.fill != nil {
		return x.fill(o)
	}
	return nil
}

func (x *script) Close() error {
	x.note("close")
	return x.closed
}

// gauge is a meter with slices of equal length that settles after a number of them.
type gauge struct {
	x       *script
	name    string
	width   sim.Time
	taken   int
	settles int // 0: never
}

func (g *gauge) Next() sim.Time { return g.width * sim.Time(g.taken+1) }

func (g *gauge) Slice(at sim.Time) bool {
	g.taken++
	g.x.note("%s slice %v", g.name, at)
	return g.taken == g.settles
}

func (g *gauge) End(at sim.Time) { g.x.note("%s end %v", g.name, at) }

// TestLoop verifies that models advance to the end of the next slice of any meter, that each meter is called for its
// own slices, and that all are called at the end: when no events are left, when the time limit is reached, when a meter
// has settled, or when the context has ended.
func TestLoop(t *testing.T) {
	const ms = units.Millisecond
	at := func(list ...sim.Time) (out []experiment.RunState) {
		for _, x := range list {
			out = append(out, experiment.RunState{At: x, Done: uint64(x / ms), Expected: 9})
		}
		return out
	}
	over := func(list []experiment.RunState) []experiment.RunState {
		list[len(list)-1].Over = true
		return list
	}
	for _, c := range []struct {
		name        string
		until       units.Duration
		stands      []experiment.RunState
		settles     int
		cancel      int // the call of Advance in which the context ends
		want        string
		interrupted bool
	}{
		{name: "everything has happened", stands: over(at(2*ms, 3*ms, 4*ms, 5*ms)),
			want: "to 2ms, a slice 2ms, to 3ms, b slice 3ms, to 4ms, a slice 4ms, to 6ms, a end 5ms, b end 5ms"},
		{name: "it is time", until: 5 * ms, stands: at(2*ms, 3*ms, 4*ms, 5*ms),
			want: "to 2ms, a slice 2ms, to 3ms, b slice 3ms, to 4ms, a slice 4ms, to 5ms, a end 5ms, b end 5ms"},
		{name: "one slice each ends at once", until: 7 * ms, stands: at(2*ms, 3*ms, 4*ms, 6*ms, 7*ms),
			want: "to 2ms, a slice 2ms, to 3ms, b slice 3ms, to 4ms, a slice 4ms, to 6ms, a slice 6ms, b slice 6ms, " +
				"to 7ms, a end 7ms, b end 7ms"},
		{name: "settled", stands: at(2*ms, 3*ms, 4*ms, 6*ms), settles: 2,
			want: "to 2ms, a slice 2ms, to 3ms, b slice 3ms, to 4ms, a slice 4ms, a end 4ms, b end 4ms"},
		{name: "settled before another's slice ends", stands: at(2*ms, 3*ms, 4*ms, 6*ms), settles: 3,
			want: "to 2ms, a slice 2ms, to 3ms, b slice 3ms, to 4ms, a slice 4ms, to 6ms, a slice 6ms, b slice 6ms, " +
				"a end 6ms, b end 6ms"},
		{name: "interrupted", stands: at(2*ms, 2*ms+1), cancel: 2, interrupted: true,
			want: "to 2ms, a slice 2ms, to 3ms, a end 2ms+1, b end 2ms+1"},
		{name: "interrupted as it ends", stands: over(at(2*ms, 3*ms)), cancel: 2,
			want: "to 2ms, a slice 2ms, to 3ms, a end 3ms, b end 3ms"},
		{name: "interrupted when it is time", until: 3 * ms, stands: at(2*ms, 3*ms), cancel: 2,
			want: "to 2ms, a slice 2ms, to 3ms, a end 3ms, b end 3ms"},
		{name: "it stands at an event in a slice before", stands: at(2*ms, ms), cancel: 2, interrupted: true,
			want: "to 2ms, a slice 2ms, to 3ms, a end 2ms, b end 2ms"},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		x := &script{stands: c.stands}
		x.meters = []experiment.Meter{&gauge{x: x, name: "a", width: 2 * ms, settles: c.settles},
			&gauge{x: x, name: "b", width: 3 * ms}}
		calls := 0
		x.each = func() error {
			if calls++; calls == c.cancel {
				cancel()
			}
			return nil
		}
		var told []experiment.Progress
		l := experiment.Loop{Until: c.until, Progress: func(p experiment.Progress) { told = append(told, p) }}
		interrupted, err := l.Run(ctx, x)
		cancel()
		if got := strings.ReplaceAll(strings.Join(x.calls, ", "), (2*ms + 1).String(), "2ms+1"); got != c.want ||
			interrupted != c.interrupted || err != nil {
			t.Errorf("%s: interrupted %v, %v\n%s\nnot\n%s", c.name, interrupted, err, got, c.want)
		}
		if p := told[0]; len(told) != calls ||
			p != (experiment.Progress{Requests: 2, Expected: 9, Simulated: 2 * ms, Until: c.until}) {
			t.Errorf("%s: of %d calls %d are told, first %+v", c.name, calls, len(told), p)
		}
	}
	x := &script{each: func() error { return errors.New("no room") }}
	if _, err := (&experiment.Loop{}).Run(context.Background(), x); err == nil || err.Error() != "no room" ||
		!slices.Equal(x.calls, []string{"to " + sim.Forever.String()}) {
		t.Errorf("%v after %v", err, x.calls)
	}
}

// TestEven verifies the number of slices of a run, and that the last one ends with the run despite rounding.
func TestEven(t *testing.T) {
	for _, c := range []struct {
		until sim.Time
		n     int
		want  []sim.Time
	}{{10, 3, []sim.Time{3, 6, 10}}, {12, 4, []sim.Time{3, 6, 9, 12}}, {7, 1, []sim.Time{7}}} {
		var got []sim.Time
		e := &experiment.Even{Until: c.until, N: c.n, Take: func(at sim.Time) { got = append(got, at) }}
		for e.Next() < c.until {
			if e.Slice(e.Next()) {
				t.Error("equal slices settle")
			}
		}
		if e.End(e.Next()); !slices.Equal(got, c.want) {
			t.Errorf("%v in %d: %v", c.until, c.n, got)
		}
	}
	if got := experiment.BusyShare([]sim.Time{40, 90}, []sim.Time{10, 20}, 200); got != 0.25 {
		t.Errorf("30 and 70 of 200 are %v", got)
	}
}

// TestShare verifies that progress is the larger of the shares of requests and of time, and that each of several passes
// counts for its part of the whole.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		p    experiment.Progress
		want float64
	}{
		{experiment.Progress{Requests: 5, Simulated: 5}, 0},
		{experiment.Progress{Requests: 5, Expected: 20}, 0.25},
		{experiment.Progress{Simulated: 5, Until: 10}, 0.5},
		{experiment.Progress{Requests: 5, Expected: 20, Simulated: 5, Until: 10}, 0.5},
		{experiment.Progress{Requests: 15, Expected: 20, Simulated: 5, Until: 10}, 0.75},
		{experiment.Progress{Requests: 1, Expected: 1}, 1},
		{experiment.Progress{Simulated: 1, Until: 1}, 1},
		{experiment.Progress{Requests: 21, Expected: 20}, 1},
		{experiment.Progress{Requests: 10, Expected: 20, Passes: 1}, 0.5},
		{experiment.Progress{Requests: 10, Expected: 20, Pass: 1, Passes: 2}, 0.75},
		{experiment.Progress{Pass: 1, Passes: 4}, 0.25},
	} {
		if got := c.p.Share(); got != c.want {
			t.Errorf("%+v: %v, not %v", c.p, got, c.want)
		}
	}
}

// TestChunkRows verifies that chunks are numbered from 1, whatever their ID, and that no row follows an error.
func TestChunkRows(t *testing.T) {
	var told []uint64
	full := errors.New("the disk is full")
	c := experiment.ChunkRows{Emit: func(x experiment.Chunk) error {
		if told = append(told, x.ID); x.ID == 3 {
			return full
		}
		return nil
	}}
	for range 5 {
		c.Add(experiment.Chunk{ID: 77, Op: "put"})
	}
	if !slices.Equal(told, []uint64{1, 2, 3}) || c.Err != full {
		t.Errorf("%v, %v", told, c.Err)
	}
	var nobody experiment.ChunkRows
	if nobody.Add(experiment.Chunk{}); nobody.Err != nil {
		t.Error(nobody.Err)
	}
}

// words returns the vocabulary that all experiments have in common.
func words() *result.Vocabulary { return result.NewVocabulary(experiment.Words()) }

// TestCutWarmUp verifies that the warm-up consists of the whole slices that end within the requested time, but never of
// all slices, and that the result states its length and the reason.
func TestCutWarmUp(t *testing.T) {
	ends := []sim.Time{10 * units.Second, 20 * units.Second, 30 * units.Second, 40 * units.Second}
	settling := stats.NewSeries(stats.SeriesConfig{Width: units.Second, Bins: 64})
	for i := range 40 {
		v := int64(1000 + i%2)
		if i < 10 {
			v = 9000
		}
		settling.Add(units.Duration(i)*units.Second, v)
	}
	short := stats.NewSeries(stats.SeriesConfig{Width: units.Second, Bins: 64})
	short.Add(0, 1)
	for _, c := range []struct {
		name    string
		w       scenario.WarmUp
		means   *stats.Series
		skip    int
		explain string
		warning string
	}{
		{name: "none"},
		{name: "a time", w: scenario.WarmUp{Time: 20 * units.Second}, skip: 2, explain: "as the scenario says"},
		{name: "a time within a slice", w: scenario.WarmUp{Time: 20*units.Second - 1}, skip: 1,
			explain: "as the scenario says"},
		{name: "a time before the first slice ends", w: scenario.WarmUp{Time: units.Second}},
		{name: "all of it", w: scenario.WarmUp{Time: units.Minute}, skip: 3, explain: "as the scenario says"},
		{name: "a share", w: scenario.WarmUp{Share: 0.25}, skip: 1,
			explain: "the share of the run that the scenario says"},
		{name: "auto", w: scenario.WarmUp{Auto: true}, means: settling, skip: 1,
			explain: "MSER-5 cuts the first 10 of 40 observations (25 %)"},
		{name: "auto that finds nothing", w: scenario.WarmUp{Auto: true}, means: short,
			warning: "no warm-up was cut: 1 observations are too few"},
	} {
		r := result.New(words(), "digest", 1, "version")
		skip, until := experiment.CutWarmUp(c.w, ends, c.means, r)
		want := sim.Time(0)
		if c.skip > 0 {
			want = ends[c.skip-1]
		}
		if skip != c.skip || until != want || r.WarmUp != (result.WarmUp{UntilS: want.Seconds(), Explain: c.explain}) {
			t.Errorf("%s: %d slices, until %v, %+v", c.name, skip, until, r.WarmUp)
		}
		if got := strings.Join(r.Warnings, "\n"); !strings.HasPrefix(got, c.warning) || c.warning == "" && got != "" {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	if skip, until := experiment.CutWarmUp(scenario.WarmUp{Time: 1}, []sim.Time{1, 2}, nil,
		result.New(words(), "", 1, "")); skip != 1 || until != 1 {
		t.Errorf("of a picosecond %d slices are cut, until %v", skip, until)
	}
	instant := []sim.Time{0, 0, 0}
	if skip, until := experiment.CutWarmUp(scenario.WarmUp{Share: 0.5}, instant, nil,
		result.New(words(), "", 1, "")); skip != 0 || until != 0 {
		t.Errorf("of a run that takes no time %d slices are cut", skip)
	}
}

// TestClose verifies that a result states whether the conservation check holds, the number of events, and the time of
// an interruption.
func TestClose(t *testing.T) {
	for _, c := range []struct {
		err         error
		interrupted bool
		want        string
	}{
		{want: "{bytes true all arrived} 7 []"},
		{err: errors.New("3 are lost"), want: "{bytes false 3 are lost} 7 []"},
		{interrupted: true, want: "{bytes true all arrived} 7 [incomplete: the run was interrupted at 2.5s of " +
			"simulated time]"},
	} {
		o := &experiment.Outcome{Result: result.New(words(), "", 1, ""), Events: 7, Interrupted: c.interrupted}
		o.Result.SimulatedS = 2.5
		experiment.Close(o, "bytes", c.err, "all arrived")
		if got := fmt.Sprint(o.Result.Checks[0], o.Result.Metrics[0].Value, o.Result.Warnings); got != c.want {
			t.Errorf("%s, not %s", got, c.want)
		}
	}
}

// TestOperation verifies that an operation has a rate, of which more is better, only if it moves bytes, and a count of
// aborted operations only if it can be aborted.
func TestOperation(t *testing.T) {
	for _, c := range []struct{ aborted, rate bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		var l result.Lexicon
		experiment.Operation(&l, "put", c.aborted, c.rate)
		have := map[string]result.Direction{}
		for _, d := range l.Metrics {
			have[strings.TrimPrefix(d.Name, "cluster.put.")] = d.Better
		}
		_, aborted := have["aborted"]
		better, rate := have["rate"]
		if aborted != c.aborted || rate != c.rate || rate && better != result.HigherIsBetter {
			t.Errorf("%+v: aborted %v, rate %v, direction %v", c, aborted, rate, better)
		}
		for _, name := range []string{"count", "iops", "latency.mean", "latency.stddev", "latency.min", "latency.p50",
			"latency.p99_99", "latency.max"} {
			if _, ok := have[name]; !ok {
				t.Errorf("no cluster.put.%s", name)
			}
		}
		if len(l.Histograms) != 1 || l.Histograms[0].Name != "cluster.put.latency" {
			t.Errorf("%+v", l.Histograms)
		}
	}
}

// TestLook verifies when a watch declares a run stalled, from both sides of each bound, for a run in mid-life: progress
// at 5 s, after 1000 events.
func TestLook(t *testing.T) {
	const (
		begun  = 5 * units.Second
		before = 1000
		vain   = 1 << 21
		stands = 1 << 23
	)
	type look struct {
		after  units.Duration
		events int
	}
	for _, c := range []struct {
		name    string
		watch   experiment.Watch
		looks   []look
		stalled bool
	}{
		{"long enough, and enough events", experiment.Watch{}, []look{{units.Second, vain}}, true},
		{"too few events", experiment.Watch{}, []look{{units.Second, vain - 1}}, false},
		{"not long enough", experiment.Watch{}, []look{{units.Second - 1, vain}}, false},
		{"more patience", experiment.Watch{Patience: func() sim.Time { return units.Minute }},
			[]look{{units.Minute - 1, vain}}, false},
		{"more patience at its end", experiment.Watch{Patience: func() sim.Time { return units.Minute }},
			[]look{{units.Minute, vain}}, true},
		{"something is to come", experiment.Watch{Pending: func() bool { return true }}, []look{{units.Minute, vain}},
			false},
		{"nothing is to come", experiment.Watch{Pending: func() bool { return false }}, []look{{units.Minute, vain}},
			true},
		{"it ends by time", experiment.Watch{Until: units.Hour}, []look{{units.Minute, vain}}, false},
		{"the clock stands", experiment.Watch{Until: units.Hour}, []look{{stands - 1, stands}}, true},
		{"the clock stands, but not for long", experiment.Watch{}, []look{{0, stands - 1}}, false},
		{"the clock hardly moves", experiment.Watch{}, []look{{stands, stands}}, false},
		{"nobody waits", experiment.Watch{Waits: nobodyUntil(1)}, []look{{units.Second, vain}}, false},
		{"nobody waited a while ago", experiment.Watch{Waits: nobodyUntil(1)},
			[]look{{units.Second, vain}, {2*units.Second - 1, 2 * vain}}, false},
		{"nobody waited long ago", experiment.Watch{Waits: nobodyUntil(1)},
			[]look{{units.Second, vain}, {2 * units.Second, 2 * vain}}, true},
		{"who counts events began anew", experiment.Watch{},
			[]look{{units.Second, -500}, {3 * units.Second, vain - 501}}, false},
		{"who counts events began anew long ago", experiment.Watch{},
			[]look{{units.Second, -500}, {2 * units.Second, vain - 500}}, true},
	} {
		w := c.watch
		w.Moves = func() uint64 { return 3 }
		if w.Waits == nil {
			w.Waits = func() string { return "a read waits" }
		}
		if w.Look(begun, before) || w.Stalled() != "" {
			t.Errorf("%s: stalled where something moves", c.name)
		}
		got := false
		for _, l := range c.looks {
			got = w.Look(begun+l.after, uint64(before+l.events))
		}
		if got != c.stalled || got != (w.Stalled() != "") {
			t.Errorf("%s: %v, %q", c.name, got, w.Stalled())
		}
	}
	w := experiment.Watch{Moves: func() uint64 { return 3 }, Waits: func() string { return "a read waits" }}
	w.Look(begun, before)
	w.Look(begun+2*units.Second, before+vain)
	if want := "stalled at 7s: the last 2097152 events, since 5s, completed no request: a read waits"; w.Stalled() !=
		want {
		t.Errorf("%q", w.Stalled())
	}
	if (&experiment.Watch{Waits: w.Waits}).Look(units.Hour, math.MaxUint64) {
		t.Error("without a count of progress there is a stall")
	}
}

// nobodyUntil returns a Waits function that reports no waiter in its first n calls, and one from then on.
func nobodyUntil(n int) func() string {
	return func() string {
		if n--; n >= 0 {
			return ""
		}
		return "a read waits"
	}
}

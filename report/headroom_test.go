package report

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario/shape"
	"farflash/study"
	"farflash/study/headroom"
)

// looked returns a search in which latency gives a trial's latency in us, by load and replicate; a negative latency
// makes the trial fail.
func looked(t *testing.T, reps int, change func(*headroom.Config),
	latency func(load float64, rep int) float64) *headroom.Headroom {
	t.Helper()
	c := headroom.DefaultConfig()
	c.Source, c.Reps, c.Within, c.Most = studiedSource(), reps, 0.2, 8
	for _, text := range []string{"read.latency.p99>500us", "read.iops<10"} {
		x, err := result.ParseCondition(trial.Vocabulary().Metrics, text)
		if err != nil {
			t.Fatal(err)
		}
		c.Limits = append(c.Limits, x)
	}
	if change != nil {
		change(&c)
	}
	h, err := headroom.Plan(c)
	if err != nil {
		t.Fatal(err)
	}
	run := func(_ context.Context, trials []trial.Trial) []study.Outcome {
		var out []study.Outcome
		for rep, x := range trials {
			l := &x.Scenario.Workload[0]
			var load float64
			if mean := l.Synthetic.Reads.Interarrival.Mean; mean > 0 {
				load = (50 * units.Microsecond).Seconds() / mean.Seconds()
			} else {
				load = float64(l.Closed) / 4
			}
			o := study.Outcome{Trial: x, State: study.Done,
				Result: result.New(trial.Vocabulary(), x.Digest, x.Seed, "test")}
			if us := latency(load, rep); us < 0 {
				o.State, o.Result, o.Err = study.Failed, nil, errors.New("the drive is full")
			} else {
				o.Result.Set("read.latency.p99", us)
				o.Result.Set("read.iops", 20000*load)
				o.Result.Set("all.iops", 20000*load)
			}
			out = append(out, o)
		}
		return out
	}
	if err := h.Search(context.Background(), run, nil); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHeadroomText verifies that the answer names the loads on either side of the limit and the figure at both, or the
// reason why there is no such pair, and for several seeds the load at which each crosses it.
func TestHeadroomText(t *testing.T) {
	const closed = "name: closed\nworkload: [{synthetic: {reads: {size: 4KiB}, requests: 200}, closed: 4}]\nssd: " +
		"mqsim-default\n"
	depth := func(c *headroom.Config) {
		c.Source, c.Depth = shape.Source{File: "closed.yaml", Text: []byte(closed)}, true
	}
	linear := func(load float64, _ int) float64 { return 100 * load }
	for _, c := range []struct {
		name    string
		reps    int
		config  func(*headroom.Config)
		latency func(float64, int) float64
		change  func(*headroom.Headroom)
		want    []string
	}{
		{"between two", 1, nil, linear, nil,
			[]string{"headroom: x4.757, where read.latency.p99 is 476 us; at x5.657 read.latency.p99 is 566 us"}},
		{"seeds", 2, nil, func(load float64, rep int) float64 { return 100 * load * (1 + 0.1*float64(rep)) }, nil,
			[]string{"headroom: x4.757, where read.latency.p99 is 499 us; at x5.657 read.latency.p99 is 594 us",
				"individual seeds exceed the limit at x4.773 +- 60.5 % on average (95 % interval of 2 seeds)"}},
		{"seeds that do not pass it", 2, nil,
			func(load float64, rep int) float64 { return 200 * load * float64(rep) }, nil,
			[]string{"headroom: x4.757, where read.latency.p99 is 476 us; at x5.657 read.latency.p99 is 566 us",
				"some seeds do not cross the limit between these loads, because seeds differ more than the loads; use " +
					"more --reps or longer runs"}},
		{"none", 1, nil, func(float64, int) float64 { return 700 }, nil,
			[]string{"headroom: none, already at x0.1250 of the load read.latency.p99 is 700 us"}},
		{"more than was tried", 1, nil, func(float64, int) float64 { return 7 }, nil,
			[]string{"headroom: more than x8.000, where read.latency.p99 is 7.00 us"}},
		{"no more is possible", 1, depth, func(float64, int) float64 { return 7 },
			func(h *headroom.Headroom) { h.Refused = errors.New("closed: too deep") },
			[]string{"headroom: more than x8.000, where read.latency.p99 is 7.00 us",
				"a larger load is not possible: closed: too deep"}},
		{"whole numbers", 1, func(c *headroom.Config) { depth(c); c.Within = 0.001 },
			func(load float64, _ int) float64 { return 499 * load }, nil,
			[]string{"headroom: x1.000, where read.latency.p99 is 499 us; at x1.189 read.latency.p99 is 624 us",
				"the load is an integer, with no value between the two"}},
		{"another limit", 1, func(c *headroom.Config) { c.Limits[0], c.Limits[1] = c.Limits[1], c.Limits[0] }, linear,
			nil, []string{"headroom: x4.757, where read.latency.p99 is 476 us; at x5.657 read.latency.p99 is 566 us"}},
		{"trials that fail", 1, nil, func(load float64, _ int) float64 {
			if load > 2 {
				return -1
			}
			return 7
		}, nil, []string{"headroom: x2.000, where read.latency.p99 is 7.00 us; at x2.378 seed 1 failed: the drive is " +
			"full"}},
		{"interrupted", 1, nil, linear,
			func(h *headroom.Headroom) { h.Interrupted, h.Points, h.Under, h.Over = true, nil, -1, -1 },
			[]string{"interrupted after 0 loads; results so far", "headroom: unknown"}},
	} {
		h := looked(t, c.reps, c.config, c.latency)
		if c.change != nil {
			c.change(h)
		}
		if got := headroomText(h); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q\n%d %d %+v", c.name, got, h.Under, h.Over, h.Crossing)
		}
	}
}

// TestHeadroomTable verifies that each load has a row with the first key's value and the figures, those of the limits
// first, then the requested ones, and that a load over the limit is marked.
func TestHeadroomTable(t *testing.T) {
	for _, c := range []struct {
		reps     int
		patterns []string
		want     string
	}{
		{1, nil, `<studied>: headroom until read.latency.p99>500us or read.iops<10
load: workload[0].synthetic.reads.interarrival.mean, 50us, divided by the load
6 loads, seed 1

load    interarrival.mean  read.latency.p99  read.iops  all.iops
x1.000               50us            100 us      20.0k     20.0k
x2.000               25us            200 us      40.0k     40.0k
x4.000             12.5us            400 us      80.0k     80.0k
x4.757        10.510826us            476 us      95.1k     95.1k
x5.657         8.838607us            566 us       113k      113k  over
x8.000             6.25us            800 us       160k      160k  over

headroom: x4.757, where read.latency.p99 is 476 us; at x5.657 read.latency.p99
  is 566 us
`},
		{2, []string{"read.iops"}, `<studied>: headroom until read.latency.p99>500us or read.iops<10
load: workload[0].synthetic.reads.interarrival.mean, 50us, divided by the load
6 loads, seeds 1 to 2, means with 95 % intervals

load    interarrival.mean  read.latency.p99       read.iops
x1.000               50us  105 us +- 60.5 %  20.0k +- 0.0 %
x2.000               25us  210 us +- 60.5 %  40.0k +- 0.0 %
x4.000             12.5us  420 us +- 60.5 %  80.0k +- 0.0 %
x4.757        10.510826us  499 us +- 60.5 %  95.1k +- 0.0 %
x5.657         8.838607us  594 us +- 60.5 %   113k +- 0.0 %  over
x8.000             6.25us  840 us +- 60.5 %   160k +- 0.0 %  over

headroom: x4.757, where read.latency.p99 is 499 us; at x5.657 read.latency.p99
  is 594 us
individual seeds exceed the limit at x4.773 +- 60.5 % on average (95 %
  interval of 2 seeds)
`},
	} {
		h := looked(t, c.reps, nil, func(load float64, rep int) float64 { return 100 * load * (1 + 0.1*float64(rep)) })
		var b strings.Builder
		if err := WriteHeadroomText(&b, h, c.patterns, term.Style{}); err != nil || b.String() != c.want {
			t.Errorf("%v\n%s", err, b.String())
		}
	}
}

// TestHeadroomPage verifies that a search's page has the answer, a figure with the limit for each metric, a row for
// each load, and the unscaled scenario.
func TestHeadroomPage(t *testing.T) {
	linear := func(load float64, _ int) float64 { return 100 * load }
	page := func(h *headroom.Headroom) string {
		var b strings.Builder
		if err := WriteHeadroom(&b, h, Study{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := page(looked(t, 1, nil, linear))
	for _, want := range []string{
		"<h1>Headroom: &lt;studied&gt;</h1>",
		"Headroom until read.latency.p99&gt;500us or read.iops&lt;10. Headroom: x4.757, where " +
			"read.latency.p99 is 476 us; at x5.657 read.latency.p99 is 566 us.",
		"<li>Loads <b>6</b></li><li>Replicates <b>1</b></li><li>First seed <b>1</b></li>",
		"Load is workload[0].synthetic.reads.interarrival.mean, 50us, divided by the load.",
		"<figcaption>read.latency.p99</figcaption>", "<figcaption>all.iops</figcaption>",
		`<td class="text name">4.757</td><td>476 us</td>`,
		"Resolved scenario at load x1", "mean: 50us",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(text, "interrupted") || strings.Count(text, ">limit<") == 0 {
		t.Error("it says that it was interrupted, or of no limit")
	}
	// For an interrupted search that started at a different load, the page shows the scenario of its first point.
	h := looked(t, 1, nil, linear)
	h.Interrupted, h.Points, h.Under, h.Over = true, h.Points[1:2], 0, -1
	// once in the summary and once as a warning
	if text := page(h); strings.Count(text, "Interrupted after 1 loads; results so far.") != 2 ||
		!strings.Contains(text, "mean: 25us") {
		t.Error("an interrupted search does not say so")
	}
	h.Points = nil
	h.Under = -1
	if text := page(h); !strings.Contains(text, "Headroom: unknown.") || strings.Contains(text, `id="points"`) ||
		strings.Contains(text, "Resolved scenario") {
		t.Error("of no load there is a table or a scenario")
	}
}

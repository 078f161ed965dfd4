package report

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/result"
	"farflash/scenario/shape"
	"farflash/study"
)

const studied = `
name: <studied>
workload:
  - synthetic: {reads: {size: 4KiB, interarrival: {mean: 50us, kind: exponential}}, requests: 200}
ssd: mqsim-default
`

func studiedSource() shape.Source {
	return shape.Source{File: "studied.yaml", Text: []byte(studied)}
}

// outcomes makes up the outcomes of a plan's trials.
func outcomes(p *study.Plan, fill func(r *result.Result, point, rep int) error) []study.Outcome {
	var out []study.Outcome
	for k, t := range p.Trials() {
		r := result.New(trial.Vocabulary(), t.Digest, t.Seed, "test")
		o := study.Outcome{Trial: t, State: study.Done, Result: r}
		if err := fill(r, k/p.Reps, k%p.Reps); err != nil {
			o.State, o.Result, o.Err = study.Failed, nil, err
		}
		out = append(out, o)
	}
	return out
}

func comparison3(t *testing.T, reps int, fill func(r *result.Result, arm, rep int) error) *study.Effects {
	t.Helper()
	p, err := study.NewComparison([]study.Arm{
		{Label: "studied", Source: studiedSource()},
		{Label: "over_provisioning=28%", Source: studiedSource(),
			Changes: []shape.Change{{Path: "ssd.over_provisioning", Value: "28%"}}},
		{Label: "<again>", Source: studiedSource()},
	}, 1, reps)
	if err != nil {
		t.Fatal(err)
	}
	x, err := study.Compare(p, outcomes(p, fill), study.DefaultTest())
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// everyVerdict sets a metric for each possible verdict.
func everyVerdict(r *result.Result, arm, rep int) error {
	if arm == 2 {
		arm = 0
	}
	b, wave := float64(arm), float64([]int{1, -2, 3, -1, 2, -3, 1, -1}[rep])
	mean := (200 + 50*wave) * (1 - b*(0.1-0.005*wave))
	r.Set("read.latency.mean", mean)                  // better
	r.Set("read.latency.p99", 100+wave+3000*b)        // x31
	r.Set("read.latency.p50", 1000+wave+b+0.1*b*wave) // worse, by less than 1%
	r.Set("write.latency.mean", 100+20*b*wave)        // too few runs
	r.Set("read.iops", 1000+b*wave)                   // no evidence, less than 1%
	// likewise, in the primary family
	r.Set("all.bandwidth", 1000+b*(wave-0.25)/10)
	r.Set("write.latency.p99", 100+b*(6+float64([]int{0, 25, 1, 0, 2, 1, 0, 30}[rep]))) // too few runs
	r.Set("workload[0].read.latency.mean", 2*mean)                                      // an alias of the first
	r.Set("ssd.waf", 2)                                                                 // identical
	r.Set("ssd.gc.count", 5*b+b*float64(rep%2))                                         // A is 0
	return nil
}

func TestEffectsText(t *testing.T) {
	x := comparison3(t, 8, everyVerdict)
	text := func(hints, all bool) string {
		var b strings.Builder
		if err := WriteEffectsText(&b, x, hints, all, term.Style{}); err != nil {
			t.Fatal(err)
		}
		return unwrapped(b.String())
	}
	whole := text(true, true)
	for _, want := range []string{
		"A  studied\nB  over_provisioning=28%\nC  <again>\n8 replicates of each on common random numbers, seeds 1 to 8\n",
		"\nB against A\nbetter: read.latency.mean -", "\nworse: read.latency.p99 x31.0, read.latency.p50 +0.10 %",
		"\ntoo few runs to tell: write.latency.p99 +12.8 %, write.latency.mean -8.40 %; ", " more for all of them",
		" better ", " x31.0 ", " differs by less than 1% ", "=  identical", " too few runs to tell: ",
		"any of these 6 metrics in less than 5 % of comparisons (t tests, Holm)",
		"replicates beyond the 8 that detect an effect of this size with a power of 80 %",
		"Exploratory: 1 of 2 other metrics differ. ", "ssd.gc.count ",
		"no evidence of a difference: C is the same scenario as A",
	} {
		if !strings.Contains(whole, want) {
			t.Errorf("no %q in\n%s", want, whole)
		}
	}
	if strings.Contains(whole, "workload[0]") {
		t.Errorf("one number is there twice:\n%s", whole)
	}
	// Differing metrics come first, the largest effect first.
	at := -1
	for _, name := range []string{"read.latency.p99 ", "read.latency.mean ", "read.latency.p50 ",
		"write.latency.p99 ", "write.latency.mean "} {
		next := strings.Index(whole, "\n"+name)
		if next <= at {
			t.Errorf("%s is not where its effect puts it:\n%s", name, whole)
		}
		at = next
	}
	if text := text(true, false); strings.Contains(text, "read.iops") || !strings.Contains(text, "ssd.gc.count") {
		t.Errorf("without --all:\n%s", text)
	}
	if text := text(false, false); strings.Contains(text, "Exploratory") {
		t.Errorf("without hints:\n%s", text)
	}
	x.Looks, x.Apart = []int{5, 7, 8}, true
	for _, want := range []string{"8 replicates of each on separate seeds, A's seeds 1 to 8\n",
		"looks planned after 5, 7, 8 replicates. It ended at the limit of 8\n",
		" at any of the 3 looks in less than 5 %"} {
		if whole := text(true, false); !strings.Contains(whole, want) {
			t.Errorf("no %q in\n%s", want, whole)
		}
	}
	x.Looks = []int{5, 8, 20}
	for i := range x.Pairs {
		x.Pairs[i].Effects = nil
	}
	if whole, want := text(true, false),
		"It ended after 8: every primary metric is decided\n"; !strings.Contains(whole, want) {
		t.Errorf("no %q in\n%s", want, whole)
	}
}

func TestEffectsPage(t *testing.T) {
	x := comparison3(t, 8, func(r *result.Result, arm, rep int) error {
		if arm == 1 && rep == 7 {
			return errors.New("the <queue> is broken")
		}
		return everyVerdict(r, arm, rep)
	})
	var b strings.Builder
	if err := WriteEffects(&b, x, Study{Version: "test", Command: "farflash compare 'a & b' c"}); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	sound(t, html)
	for _, want := range []string{"<h1>Comparison: &lt;studied&gt;</h1>", "Seeds <b>1 to 7</b>", "1 trial failed",
		"the &lt;queue&gt; is broken", "seed 8", "Differences",
		"ssd.over_provisioning", "B against A", "B against A: exploratory",
		"read.latency.mean (as workload[0].read.latency.mean)", "C against A",
		"Open circle: not distinguishable from chance. Arrow: the interval continues.", "too few runs to tell",
		"the same scenario as A", "farflash compare &#39;a &amp; b&#39; c"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in the page", want)
		}
	}
}

func curvesOf(t *testing.T, reps int, fill func(r *result.Result, point, rep int) error, axes ...string) *study.Curves {
	t.Helper()
	var list []study.Axis
	for _, text := range axes {
		a, err := study.ParseAxis(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	p, err := study.NewSweep(studiedSource(), nil, list, 1, reps)
	if err != nil {
		t.Fatal(err)
	}
	c, err := study.Respond(p, outcomes(p, fill), 0.95)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCurves draws sweeps of one axis, two axes, three axes, and with too many lines, with failures.
func TestCurves(t *testing.T) {
	fill := func(r *result.Result, point, rep int) error {
		if point == 1 {
			return fmt.Errorf("no room on the %dth point", point)
		}
		r.Set("read.latency.mean", 10+float64(point)+float64(rep))
		r.Set("ssd.waf", 2+float64(point))
		return nil
	}
	many := "ssd.timing.read_latency=10us..80us:+10us"
	for _, c := range []struct {
		axes    []string
		charts  int
		wanted  []string
		columns int
	}{
		{[]string{"ssd.over_provisioning=7%..28%:x2"}, 2, []string{"14%", "whiskers"}, 3},
		{[]string{"ssd.collection.victim=greedy,random"}, 2, []string{"greedy"}, 3},
		{[]string{"ssd.over_provisioning=7%,14%", "ssd.collection.victim=greedy,random"}, 2,
			[]string{"ssd.collection.victim random"}, 4},
		{[]string{"ssd.over_provisioning=7%,14%", "ssd.collection.victim=greedy,random",
			"ssd.cache.capacity=4MiB,8MiB"}, 2, []string{"ssd.collection.victim random, ssd.cache.capacity 8MiB"}, 5},
		{[]string{"ssd.over_provisioning=7%,14%", many}, 2, []string{"80us"}, 4},
		{[]string{"ssd.over_provisioning=7%,14%", "ssd.collection.victim=greedy,random", many}, 0, []string{"80us"}, 5},
	} {
		x := curvesOf(t, 3, fill, c.axes...)
		var page, text strings.Builder
		if err := WriteCurves(&page, x, Study{Version: "test", Scenario: studied}); err != nil {
			t.Fatal(err)
		}
		html := page.String()
		sound(t, html)
		if n := strings.Count(html, "<figure"); n != c.charts {
			t.Errorf("%v: %d charts", c.axes, n)
		}
		for _, want := range append(c.wanted, "<h1>Sweep: &lt;studied&gt;</h1>", "3 trials failed",
			"no room on the 1th point", ">failed<") {
			if !strings.Contains(html, want) {
				t.Errorf("%v: no %q in the page", c.axes, want)
			}
		}
		if err := WriteCurvesText(&text, x, nil, term.Style{}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(unwrapped(text.String())), "\n")
		if len(lines) != 5+len(x.Points) || len(strings.Fields(lines[4])) != c.columns {
			t.Errorf("%v:\n%s", c.axes, text.String())
		}
		if !strings.Contains(lines[5], " +- ") || !strings.Contains(lines[6], "failed") {
			t.Errorf("%v:\n%s\n%s", c.axes, lines[5], lines[6])
		}
	}
}

// TestHeatScale verifies that heat maps of one quantity use the same colours for the same number.
func TestHeatScale(t *testing.T) {
	c := curvesOf(t, 1, func(r *result.Result, point, _ int) error {
		r.Set("read.latency.p99", float64(10+point))
		r.Set("write.latency.p99", float64(20+10*point))
		r.Set("read.iops", float64(20+10*point))
		return nil
	}, "ssd.over_provisioning=7%,14%", "ssd.timing.read_latency=10us..80us:+10us")
	colour := func(f figure, number string) string {
		m := regexp.MustCompile(`fill="(#[0-9a-f]+)"><title>[^<]*: ` + number + `<`).FindStringSubmatch(string(f.SVG))
		if m == nil {
			t.Fatalf("%s has no cell of %s:\n%s", f.Caption, number, f.SVG)
		}
		return m[1]
	}
	f := curveFigures(c, []string{"read.latency.p99", "write.latency.p99", "read.iops"}, nil)
	if a, b := colour(f[0], "20 us"), colour(f[1], "20 us"); a != b {
		t.Errorf("20 us is %s among reads and %s among writes", a, b)
	}
	if a, b := colour(f[0], "25 us"), colour(f[1], "170 us"); a == b {
		t.Errorf("the largest of both have one colour, %s", a)
	}
}

// unwrapped rejoins the wrapped lines of a terminal's text.
func unwrapped(text string) string { return strings.ReplaceAll(text, "\n  ", " ") }

// TestCountsInWords verifies the singular of one point and one metric, and that counts of 0 are left out.
func TestCountsInWords(t *testing.T) {
	c := &study.Curves{Reps: 1, Seed: 1, Points: make([]study.PointSummary, 1)}
	if got := curvesFacts(c); got != "1 point, seed 1" {
		t.Error(got)
	}
	c.Points = append(c.Points, study.PointSummary{})
	if got := curvesFacts(c); got != "2 points, seed 1" {
		t.Error(got)
	}
	x := &study.Effects{Arms: []study.ArmSummary{{Digest: "a"}, {Digest: "b"}}}
	none, alike := study.Effect{Name: "x", Primary: true, Verdict: study.NoEvidence},
		study.Effect{Name: "y", Primary: true, Verdict: study.Identical}
	better, few := none, none
	better.Verdict, few.Verdict, few.More = study.Better, study.TooFew, 4
	for want, pair := range map[string]study.Pair{
		"no evidence of a difference in any of 1 metric":                                                         {Family: 1, Effects: []study.Effect{none}},
		"no evidence of a difference in any of 2 metrics|too few runs to tell: x 0, x 0; 4 more for all of them": {Family: 2, Effects: []study.Effect{few, few}},
		"better: x 0|too few runs to tell: x 0; 4 more for all of them":                                          {Family: 2, Effects: []study.Effect{better, few, alike}},
		"no evidence of a difference: 1 metric, identical in every replicate":                                    {Effects: []study.Effect{alike}},
		"no evidence of a difference: 1 metric, identical in every replicate|B warns: it limited nothing": {
			Effects: []study.Effect{alike}, Remarks: []string{"it limited nothing"}},
		"no evidence of a difference: the arms have no primary metric of this kind of experiment; name others " +
			"with --metric": {Explored: 1, Effects: []study.Effect{{Name: "z", Verdict: study.Higher}}},
	} {
		pair.Arm = 1
		if got := strings.Join(findings(x, &pair), "|"); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
	wild := few
	wild.Unit, wild.Ratio, wild.Deviation, wild.RangeA, wild.RangeB = "us", true, 1, [2]float64{90, 100},
		[2]float64{95, 4000}
	if got, want := findings(x, &study.Pair{Arm: 1, Family: 1, Effects: []study.Effect{wild}}),
		"single runs vary widely: x A 90.0 us to 100 us, B 95.0 us to 4.00 ms"; got[len(got)-1] != want {
		t.Errorf("%q; want %s", got, want)
	}
	x.Arms[1].Digest = "a"
	if got := findings(x, &study.Pair{Arm: 1}); len(got) != 1 ||
		got[0] != "no evidence of a difference: B is the same scenario as A" {
		t.Error(got)
	}
}

// TestCurvesOfTransients verifies that points in a transient are marked in the table, on the page and in the charts,
// with the reason, and that others are not.
func TestCurvesOfTransients(t *testing.T) {
	for _, steady := range []bool{false, true} {
		c := curvesOf(t, 2, func(r *result.Result, point, rep int) error {
			r.Set("ssd.waf", float64(2+point))
			if point == 1 && rep == 1 && !steady {
				r.Transient = "free space fell by 4.7 blocks"
			}
			return nil
		}, "ssd.over_provisioning=7%,14%", "ssd.collection.victim=greedy,random")
		var page, text strings.Builder
		if err := errors.Join(WriteCurves(&page, c, Study{Version: "test", Scenario: studied}),
			WriteCurvesText(&text, c, nil, term.Style{})); err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			in, want string
			n        int
		}{
			{text.String(), "random *", 1}, {text.String(), "greedy *", 0},
			{unwrapped(text.String()), "the figures rest on a transient: free space fell by 4.7 blocks", 1},
			{page.String(), "random *<", 1},
			{page.String(), "<li>over_provisioning=7%, victim=random: the figures rest on a transient: free space " +
				"fell by 4.7 blocks</li>", 1},
		} {
			n := x.n
			if steady {
				n = 0
			}
			if got := strings.Count(x.in, x.want); got != n {
				t.Errorf("steady %v: %d times %q in\n%s", steady, got, x.want, text.String())
			}
		}
		if strings.Contains(page.String(), ">rests on a transient<") == steady {
			t.Errorf("steady %v: the chart's key", steady)
		}
	}
}

// TestEffectTable verifies that each metric has a cell in every column, even an identical one without figures.
func TestEffectTable(t *testing.T) {
	x := comparison3(t, 8, everyVerdict)
	for _, pair := range x.Pairs {
		table := effectTable(x, pair.Effects, "B", "p (Holm)")
		for i, row := range table.Rows {
			if len(row) != len(table.Head) {
				t.Errorf("%s has %d cells, of %d columns", pair.Effects[i].Name, len(row), len(table.Head))
			}
		}
	}
}

// TestCurvesText verifies that a sweep's text has a row for each point below its facts, and a line for each knee below
// the table.
func TestCurvesText(t *testing.T) {
	c := curvesOf(t, 1, func(r *result.Result, point, _ int) error {
		r.Set("read.latency.mean", 100+float64(50*max(0, point-4)))
		return nil
	}, "ssd.over_provisioning=5%..40%:+5%")
	var b strings.Builder
	if err := WriteCurvesText(&b, c, nil, term.Style{}); err != nil {
		t.Fatal(err)
	}
	const want = `<studied>
ssd.over_provisioning over 5%, 10%, 15%, ..., 40% (8)
8 points, seed 1

ssd.over_provisioning  read.latency.mean
5%                                100 us
10%                               100 us
15%                               100 us
20%                               100 us
25%                               100 us
30%                               150 us
35%                               200 us
40%                               250 us

knee of read.latency.mean: 25%
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}

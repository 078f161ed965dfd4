package report

import (
	"math"
	"slices"
	"testing"

	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/study"

	"pgregory.net/rapid"
)

// TestColumnsHoldAll verifies that the columns of a histogram cover all values without gaps and count each value in its
// column, within the resolution of the histogram's buckets.
func TestColumnsHoldAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := group{}
		var values [][]float64
		for range rapid.IntRange(1, 3).Draw(t, "curves") {
			h := &stats.Histogram{}
			var list []float64
			for range rapid.IntRange(1, 60).Draw(t, "n") {
				d := units.Duration(math.Exp(rapid.Float64Range(0, 30).Draw(t, "exponent")))
				h.Record(d)
				list = append(list, d.Microseconds())
			}
			r := &Run{Result: &result.Result{Histograms: []result.Histogram{{Name: "x", H: h}}}}
			g.curves, values = append(g.curves, curve{run: r, what: "x"}), append(values, list)
		}
		edges, parts := latencyColumns(g)
		for i := 1; i < len(edges); i++ {
			if math.Abs(edges[i]/edges[i-1]-math.Exp2(1.0/perOctave)) > 1e-9 {
				t.Fatalf("a column from %v to %v", edges[i-1], edges[i])
			}
		}
		for k, p := range parts {
			sum, inside := 0.0, 0.0
			for i, v := range p.V {
				sum += v
				if v < -1e-12 {
					t.Errorf("column %d has %v", i, v)
				}
				inside = 0
				for _, x := range values[k] {
					if x <= edges[i+1]+math.Max(edges[i+1]/64, 1e-3) { // a bucket of the histogram
						inside++
					}
				}
				if share := inside / float64(len(values[k])); sum > share+1e-9 {
					t.Errorf("%v are up to %v us, of which %v are", sum, edges[i+1], share)
				}
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("the columns have %v of all", sum)
			}
			if least, most := slices.Min(values[k]), slices.Max(values[k]); edges[0] > math.Max(least, 1e-3) ||
				edges[len(edges)-1] < most {
				t.Errorf("columns from %v to %v, values from %v to %v", edges[0], edges[len(edges)-1], least, most)
			}
		}
	})
}

// TestEvenly verifies the number of selected values, and that both ends are among them.
func TestEvenly(t *testing.T) {
	for n := range 40 {
		for most := 2; most < 12; most++ {
			got := evenly(n, most)
			if len(got) != min(n, most) || !slices.IsSorted(got) ||
				len(slices.Compact(slices.Clone(got))) != len(got) || n > 0 && (got[0] != 0 || got[len(got)-1] != n-1) {
				t.Fatalf("%d of %d: %v", most, n, got)
			}
		}
	}
}

// TestEffectWords verifies that an effect is shown as a percentage of A, as a ratio if it or its interval is large,
// and as a difference in the metric's own unit if there is no ratio.
func TestEffectWords(t *testing.T) {
	for _, c := range []struct {
		ratio, factor    float64 // the interval is from ratio/factor to ratio*factor
		effect, interval string
	}{
		{1, 1, "0.00 %", "0.00 to 0.00 %"},
		{0.9, 1.125, "-10.0 %", "-20.0 to +1.25 %"},
		{1.005, 1.01, "+0.50 %", "-0.50 to +1.51 %"},
		{9.9, 1, "+890 %", "+890 to +890 %"},
		{4, 4, "x4.00", "x1.00 to x16.0"},
		{0.5, 8, "x0.500", "x0.0625 to x4.00"},
		{5000, 1, "x5.00k", "x5.00k to x5.00k"},
	} {
		e := study.Effect{Unit: "count"}
		e.Ratio, e.Effect.Mean, e.Effect.Half = true, math.Log(c.ratio), math.Log(c.factor)
		if effect, interval := effectText(&e); effect != c.effect || interval != c.interval {
			t.Errorf("%+v: %s, %s", c, effect, interval)
		}
	}
	for _, c := range []struct {
		mean, half       float64
		effect, interval string
	}{{3, 1, "+3", "+2 to +4"}, {-3, 5, "-3", "-8 to +2"}} {
		e := study.Effect{Unit: "count"}
		e.Effect.Mean, e.Effect.Half = c.mean, c.half
		if effect, interval := effectText(&e); effect != c.effect || interval != c.interval {
			t.Errorf("%+v: %s, %s", c, effect, interval)
		}
	}
}

// TestVerdictWords verifies that a verdict's text includes its extent.
func TestVerdictWords(t *testing.T) {
	for want, e := range map[string]study.Effect{
		"better":                 {Verdict: study.Better},
		"worse, by less than 1%": {Verdict: study.Worse, Within: true, Doubtful: true},
		"worse, but Wilcoxon's test does not confirm it": {Verdict: study.Worse, Doubtful: true},
		"no evidence of a difference":                    {Verdict: study.NoEvidence, More: 30},
		"differs by less than 1%":                        {Verdict: study.NoEvidence, Within: true},
		"too few runs to tell: 1,234 more":               {Verdict: study.TooFew, More: 1234},
		"too few runs to tell: over 1,000,000 more":      {Verdict: study.TooFew, More: -1},
		"too few runs to tell":                           {Verdict: study.TooFew},
		"identical":                                      {Verdict: study.Identical},
	} {
		if got := verdictText(&e, 0.01); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
	for want, p := range map[string]float64{"<0.0001": 0.00009, "0.0001": 0.0001, "1.0000": 1, "0.0500": 0.05} {
		if got := probability(p); got != want {
			t.Errorf("%v is %s, want %s", p, got, want)
		}
	}
	for want, seeds := range map[string][]uint64{"no seed": nil, "seed 7": {7}, "seeds 1 to 3": {1, 2, 3},
		"seeds 1 2 4": {1, 2, 4}} {
		if got := seedsText(seeds); got != want {
			t.Errorf("%v are %s, want %s", seeds, got, want)
		}
	}
	for want, i := range map[string]int{"A": 0, "Z": 25, "arm 27": 26} {
		if got := ArmLetter(i); got != want {
			t.Errorf("arm %d is %s, want %s", i, got, want)
		}
	}
}

// TestCapitals verifies that the first letter is capitalised in any script.
func TestCapitals(t *testing.T) {
	for text, want := range map[string]string{"": "", "read": "Read", "Read": "Read", "über": "Über", "日本": "日本",
		"1 us": "1 us", "\xff": "\xff"} {
		if got := capital(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestEachDriveAnyOrder verifies that the figures of drives are assigned correctly whatever their order in the result,
// and that a drive without a metric has NaN.
func TestEachDriveAnyOrder(t *testing.T) {
	r := &Run{Result: &result.Result{Metrics: []result.Metric{{Name: "ssd[10].waf", Value: 10},
		{Name: "ssd.waf", Value: 5}, {Name: "ssd[0].gc.count", Value: 3}, {Name: "ssd[2].waf", Value: 2},
		{Name: "ssd[10].gc.count", Value: 4}, {Name: "ssd[x].waf", Value: 1}, {Name: "ssd[0", Value: 1}}}}
	d := r.eachDrive()
	if !slices.Equal(d.number, []int{0, 2, 10}) {
		t.Fatalf("drives %v", d.number)
	}
	if v := d.of["ssd.waf"]; len(v) != 3 || !math.IsNaN(v[0]) || v[1] != 2 || v[2] != 10 {
		t.Errorf("%v", v)
	}
	if v := d.of["ssd.gc.count"]; len(v) != 3 || v[0] != 3 || !math.IsNaN(v[1]) || v[2] != 4 {
		t.Errorf("%v", v)
	}
	if s, ok := d.spread("ssd.waf"); !ok || s.least != 2 || s.greatest != 10 || s.mean != 6 || s.first != 2 ||
		s.last != 10 {
		t.Errorf("%+v", s)
	}
	if _, ok := d.spread("ssd.energy"); ok {
		t.Error("what no drive has has a range")
	}
}

// TestTwoValues verifies that if half of the requests take one time and half a hundred times as long, no request is
// shown in between.
func TestTwoValues(t *testing.T) {
	h := &stats.Histogram{}
	for range 500 {
		h.Record(10 * units.Microsecond)
		h.Record(1000 * units.Microsecond)
	}
	d := distribution(h, "x", 0)
	for _, us := range []float64{11, 30, 100, 900} {
		if got := shareWithin(d, us); got != 0.5 {
			t.Errorf("%v are within %v us", got, us)
		}
	}
	edges, parts := latencyColumns(
		group{curves: []curve{{run: &Run{Result: &result.Result{Histograms: []result.Histogram{{Name: "x", H: h}}}},
			what: "x"}}})
	for i, v := range parts[0].V {
		if here := edges[i] <= 10.2 && edges[i+1] >= 10 || edges[i] <= 1000 && edges[i+1] >= 980; v > 0 && !here {
			t.Errorf("%v are between %v and %v us", v, edges[i], edges[i+1])
		}
	}
}

// TestOneValue verifies that requests which all take the same time are within it, and not before.
func TestOneValue(t *testing.T) {
	h := &stats.Histogram{}
	for range 3 {
		h.Record(10 * units.Microsecond)
	}
	d := distribution(h, "x", 0)
	if len(d.Value) != 1 || shareWithin(d, 10) != 1 || shareWithin(d, 9.9) != 0 || shareWithin(d, 11) != 1 {
		t.Errorf("%v have the shares %v", d.Value, d.Share)
	}
}

// TestLargestFirst verifies that the parts of a whole are listed as shares, largest first, ties in their order, without
// those that round to 0 %.
func TestLargestFirst(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	for want, v := range map[string][]float64{
		"":                               {0, 0, 0, 0},
		"b 67 %, a 33 %":                 {0.25, 0.5, 0, 0},
		"a 50 %, c 50 %":                 {0.1, 0, 0.1, 0},
		"d 100 %, a 0 %":                 {1, 0, 0, 199},
		"d 100 %":                        {1, 0, 0, 201},
		"a 40 %, b 30 %, c 20 %, d 10 %": {4, 3, 2, 1},
		"a 100 %":                        {3, -1, 0, 0},
	} {
		if got := largestFirst(names, v); got != want {
			t.Errorf("%v: %q, not %q", v, got, want)
		}
	}
}

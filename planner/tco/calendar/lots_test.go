package calendar

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
)

// TestMixes verifies that the lines of an interval are nowhere above the write amplification in it and together meet it
// at its ends, and that the intervals leave no gap.
func TestMixes(t *testing.T) {
	r := rng.NewStream(1, "mixes")
	for n := range 300 {
		var w tco.WAF
		whole := n%2 == 0 || n%3 == 0 // every point of it is an end
		if n%3 == 0 {
			w = waf.SequentialMix{Random: 1 + 6*r.Float64(), Sequential: 1 + r.Float64(), Turn: 0.9 * r.Float64(),
				Slope: 0.2*r.Float64() - 0.1}
		} else {
			var points []waf.MixPoint
			for range map[bool]int{true: 4, false: 14}[whole] {
				points = append(points, waf.MixPoint{S: r.Float64(), WAF: 1 + 6*r.Float64()})
			}
			slices.SortFunc(points, func(a, b waf.MixPoint) int { return int(math.Copysign(1, a.S-b.S)) })
			table, err := tco.NewTable(points)
			if err != nil {
				continue
			}
			w = table
		}
		parts := mixes(w)
		if parts == nil && n%3 > 0 {
			t.Errorf("%v: no lines", w)
		}
		reached := 0.0
		for _, x := range parts {
			if x.from != reached {
				t.Errorf("%v: nothing from %v to %v", w, reached, x.from)
			}
			reached = x.to
			for k := range 201 {
				s := x.from + (x.to-x.from)*float64(k)/200
				most := math.Inf(-1)
				for _, l := range x.lines {
					most = max(most, l[0]+l[1]*s)
				}
				if most > w.At(s) || whole && (k == 0 || k == 200) && most < w.At(s)-1e-6 {
					t.Errorf("%v from %v to %v: lines reach %v at %v, not %v", w, x.from, x.to, most, s, w.At(s))
				}
			}
		}
		if parts != nil && reached != 1 {
			t.Errorf("%v: nothing from %v on", w, reached)
		}
	}
	for _, w := range []tco.WAF{tco.Constant(3), waf.SequentialMix{Random: 1, Sequential: 3, Turn: 0.5}} {
		if parts := mixes(w); parts != nil {
			t.Errorf("%v is told apart: %v", w, parts)
		}
	}
}

// still returns a problem of workloads that arrive on day 0, stay, and each wear a drive by a given share of its
// budget, five to a drive.
func still(t *testing.T, jobs int, wear float64, w tco.WAF) (*Calendar, *tco.Problem) {
	t.Helper()
	c, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	d := tco.Drive{Name: "d", Buy: 1000, Budget: 1e6, Capacity: 1000, IOPS: 1e5, WAF: w,
		Upkeep: tco.Upkeep{Members: 1, Next: 1000}}
	p := &tco.Problem{Config: tco.Config{Horizon: tco.DefaultHorizon, FillSpace: 1, FillIOPS: 1},
		Classes: []tco.Class{{Drive: d, Count: jobs, Optional: true}}, Pricer: c}
	for j := range jobs {
		p.Jobs = append(p.Jobs,
			tco.Workload{Name: fmt.Sprint("w", j), WriteRate: wear * d.Budget / tco.DefaultHorizon, WorkingSet: 200,
				PeakIOPS: 1})
	}
	return c, p
}

// TestWholeDrives verifies that ten workloads of a quarter of a budget each, which are two and a half drives by wear,
// cost three: a drive for every five and one successor, or three drives. With the third drive's successor they cost
// four.
func TestWholeDrives(t *testing.T) {
	for _, x := range []struct{ wear, drives float64 }{{0.2, 2}, {0.249, 3}, {0.301, 4}} {
		c, p := still(t, 10, x.wear, tco.Constant(1))
		if got := c.Floor(p).Least / 1000; math.Abs(got-x.drives) > 0.02 {
			t.Errorf("%v of a budget each: %v drives, not %v", x.wear, got, x.drives)
		}
	}
}

// TestToldApart verifies that if one half of the workloads is random and the other sequential, a single drive with all
// of them wears by their mix, which is more than the sum of their separate wear.
func TestToldApart(t *testing.T) {
	c, p := still(t, 4, 0.3, waf.SequentialMix{Random: 4, Sequential: 1, Turn: 0.5})
	p.Classes[0].Count = 1
	for j := range p.Jobs {
		p.Jobs[j].Sequential = float64(j % 2)
	}
	best, err := tco.Optimise(tco.DefaultOptimiseConfig(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Separately they wear 3 budgets, together 4.8.
	if f := c.Floor(p); best.Cost != 5000 || f.Least > best.Cost || f.Least < 4000 {
		t.Errorf("a bound of %v, and the best is %v", f.Least, best.Cost)
	}
}

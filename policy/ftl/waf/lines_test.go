package waf_test

import (
	"math"
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl/waf"
)

// line evaluates a piecewise linear curve at a share.
func line(knots []waf.MixPoint, s float64) float64 {
	for i := 1; i < len(knots); i++ {
		if a, b := knots[i-1], knots[i]; s <= b.S {
			return a.WAF + (b.WAF-a.WAF)*(s-a.S)/(b.S-a.S)
		}
	}
	return knots[len(knots)-1].WAF
}

// TestFitLines verifies that the curve fitted to noisy points of equation 7 has few knots, all of them input points,
// and stays within the tolerance.
func TestFitLines(t *testing.T) {
	r := rng.NewStream(1, "lines")
	for _, noise := range []float64{0, 0.01} {
		m := waf.DefaultSequentialMix(7)
		var points []waf.MixPoint
		for i := range 21 {
			s := float64(i) / 20
			points = append(points, waf.MixPoint{S: s, WAF: m.At(s) * (1 + noise*(2*r.Float64()-1))})
		}
		knots, off := waf.FitLines(points, 0.03)
		worst := 0.0
		for _, x := range points {
			worst = max(worst, math.Abs(line(knots, x.S)/x.WAF-1))
		}
		if math.Abs(worst-off) > 1e-12 || off > 0.03 || len(knots) > 10 || len(knots) < 3 {
			t.Errorf("noise %v: %d knots, off by %v, said %v", noise, len(knots), worst, off)
		}
		for _, k := range knots {
			if !slices.Contains(points, k) {
				t.Errorf("%v is no point", k)
			}
		}
	}
	// By hand: the middle point is on the line and therefore no knot.
	knots, off := waf.FitLines([]waf.MixPoint{{S: 0, WAF: 6}, {S: 0.5, WAF: 5}, {S: 1, WAF: 4}}, 0)
	if want := []waf.MixPoint{{S: 0, WAF: 6}, {S: 1, WAF: 4}}; !slices.Equal(knots, want) || off != 0 {
		t.Errorf("%v, %v; %v is right", knots, off, want)
	}
}

// TestFitHolds verifies that at 7 % of over-provisioning, where equation 7 is worst, the curve is within 5 % of
// simulations, both at the fitted shares and half-way between them.
func TestFitHolds(t *testing.T) {
	e := waf.DefaultExperiment()
	e.Alpha, e.Blocks, e.Pages = 1.07, 300, 64
	at := func(s float64) float64 {
		e.Sequential = s
		r, err := waf.Simulate(e)
		if err != nil {
			t.Fatal(err)
		}
		return r.WAF
	}
	points, err := waf.Sweep(e, []float64{0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}, waf.SweepWithin)
	if err != nil {
		t.Fatal(err)
	}
	knots, off := waf.FitLines(points, waf.KnotsWithin)
	if off > 0.05 {
		t.Errorf("off by %v of its own points", off)
	}
	for _, s := range []float64{0.125, 0.475, 0.625, 0.775, 0.875, 0.925} {
		if v, got := at(s), line(knots, s); math.Abs(got/v-1) > 0.05 {
			t.Errorf("at %v the line is at %.3f, the simulation at %.3f", s, got, v)
		}
	}
	m, _, err := waf.FitSequentialMix(points)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for _, x := range points {
		worst = max(worst, math.Abs(m.At(x.S)/x.WAF-1))
	}
	t.Logf("%d points, %d knots, off by %.1f %%; equation 7 by %.1f %%", len(points), len(knots), 100*off, 100*worst)
}

// TestSweepErrs verifies that an invalid experiment is an error.
func TestSweepErrs(t *testing.T) {
	if points, err := waf.Sweep(waf.Experiment{}, []float64{0, 1}, waf.SweepWithin); err == nil {
		t.Errorf("nothing was simulated: %v", points)
	}
}

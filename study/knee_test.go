package study

import (
	"math"
	"strconv"
	"testing"

	"farflash/numeric/stats"
)

// curve returns the sweep of a function.
func curve(geometric bool, half float64, x []float64, f func(x float64) float64) *Curves {
	c := &Curves{Axes: []Axis{{Path: "load", Geometric: geometric}}}
	for _, v := range x {
		text := strconv.FormatFloat(v, 'g', -1, 64)
		c.Axes[0].Values = append(c.Axes[0].Values, text)
		c.Points = append(c.Points,
			PointSummary{Values: []string{text},
				Metrics: []Estimate{{Name: "m", Interval: stats.Interval{Mean: f(v), Half: half}}}})
	}
	return c
}

// TestKnee finds the knee of M/M/1's time in system, 1/(1-rho), up to a load of r: its tangent is parallel to the
// chord at 1-sqrt(1-r).
func TestKnee(t *testing.T) {
	steps := func(to float64, n int) (x []float64) {
		for i := range n + 1 {
			x = append(x, to*float64(i)/float64(n))
		}
		return x
	}
	mm1 := func(rho float64) float64 { return 1 / (1 - rho) }
	for _, most := range []float64{0.96, 0.75, 0.99} {
		want := 1 - math.Sqrt(1-most)
		k := curve(false, 0, steps(most, 48), mm1).Knees([]string{"m"})
		if len(k) != 1 {
			t.Fatalf("up to %v: %v", most, k)
		}
		if at, err := strconv.ParseFloat(k[0].At, 64); err != nil || math.Abs(at-want) > most/48 {
			t.Errorf("up to %v the knee is at %v, and should be at %v", most, k[0].At, want)
		}
	}
	// Throughput that saturates at a depth of 16: min(x, 16); on a logarithmic axis x is convex up to there.
	if k := curve(false, 0, []float64{1, 4, 8, 16, 24, 32},
		func(x float64) float64 { return min(x, 16) }).Knees([]string{"m"}); len(k) != 1 || k[0].At != "16" ||
		k[0].Point != 3 {
		t.Errorf("%v", k)
	}
	for name, c := range map[string]*Curves{
		"a straight line":      curve(false, 0, steps(1, 10), func(x float64) float64 { return 3 * x }),
		"a straight line, log": curve(true, 0, []float64{1, 2, 4, 8, 16}, math.Log),
		"nothing":              curve(false, 0, steps(1, 10), func(float64) float64 { return 3 }),
		"noise":                curve(false, 5, steps(0.9, 10), mm1),
		"noise as wide as it": curve(false, 2.5, []float64{0, 1, 2, 3, 4}, func(x float64) float64 {
			// a distance of 7.5 of 10, and half-widths of 2.5 at each of three points
			if x > 0 {
				return max(10, x)
			}
			return 0
		}),
		"too few points": curve(false, 0, steps(0.9, 3), mm1),
		"a wave": curve(false, 0, steps(1, 20),
			func(x float64) float64 { return x + 0.3*math.Sin(2*math.Pi*x) }),
	} {
		if k := c.Knees([]string{"m"}); k != nil {
			t.Errorf("%s has a knee: %v", name, k)
		}
	}
}

// TestInterrupted verifies that documents report missing trials.
func TestInterrupted(t *testing.T) {
	x := &Effects{Seeds: []uint64{1, 2}, Arms: []ArmSummary{{Done: 2}, {Done: 1, Failed: []Failure{{Seed: 2}}}}}
	if x.Document().Interrupted {
		t.Error("a comparison that was carried out is said to be interrupted")
	}
	x.Arms[1] = ArmSummary{Done: 1, Pending: 1}
	if !x.Document().Interrupted {
		t.Error("a comparison that lacks a trial is not said to be interrupted")
	}
	c := curve(false, 0, []float64{1, 2}, func(x float64) float64 { return x })
	if c.Document().Interrupted {
		t.Error("a sweep that was carried out is said to be interrupted")
	}
	c.Points[1].Pending = 1
	if !c.Document().Interrupted {
		t.Error("a sweep that lacks a trial is not said to be interrupted")
	}
}

package waf

import (
	"math"
	"testing"
)

func TestSequentialMix(t *testing.T) {
	m := DefaultSequentialMix(7)
	eta, mu, gamma := m.Parabola()
	near(t, "eta", eta, -19.834711, 1e-6)
	near(t, "mu", mu, 17.851240, 1e-6)
	near(t, "gamma", gamma, 2.983471, 1e-6)
	for _, c := range [][2]float64{{-1, 7}, {0, 7}, {0.3, 7}, {0.45, 7}, {0.6, 6.5537}, {0.8, 4.5702}, {0.9, 2.9835},
		{1, 1}, {2, 1}} {
		near(t, "A", m.At(c[0]), c[1], 6e-5)
	}
	// The same curve by its coefficients, with a slope.
	m = SequentialMix{Random: 4, Sequential: 1.2, Turn: 0.3, Slope: -0.5}
	eta, mu, gamma = m.Parabola()
	for s := 0.0; s <= 1; s += 0.05 {
		want := 4 - 0.5*s
		if s > 0.3 {
			want = eta*s*s + mu*s + gamma
		}
		near(t, "A", m.At(s), want, 1e-12)
	}
	if got := (SequentialMix{Random: 1, Sequential: 0.2}).At(1); got != 1 {
		t.Errorf("the write amplification is %v", got)
	}
}

func TestFitSequentialMix(t *testing.T) {
	want := SequentialMix{Random: 5, Sequential: 1.1, Turn: 0.37, Slope: -0.2}
	var points []MixPoint
	for s := 0.0; s < 1.01; s += 0.1 {
		points = append(points, MixPoint{min(s, 1), want.At(s)})
	}
	got, rms, err := FitSequentialMix(points)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "random", got.Random, want.Random, 1e-6)
	near(t, "sequential", got.Sequential, want.Sequential, 1e-6)
	near(t, "turn", got.Turn, want.Turn, 1e-9)
	near(t, "slope", got.Slope, want.Slope, 1e-6)
	near(t, "error", rms, 0, 1e-6)

	for _, points := range [][]MixPoint{nil, {{0, 1}, {0.5, 1}, {1, 1}}, {{0, 1}, {0.1, 1}, {0.2, 1}, {2, 1}},
		{{0, 1}, {0.1, 1}, {0.2, 1}, {1, math.NaN()}}} {
		if _, _, err := FitSequentialMix(points); err == nil {
			t.Errorf("%v were fitted", points)
		}
	}
}

// TestSimulatedMix compares simulated loops among random writes with the specification's own simulation and with the
// fit.
func TestSimulatedMix(t *testing.T) {
	if testing.Short() {
		t.Skip("nine simulations")
	}
	e := DefaultExperiment()
	e.Blocks, e.WarmUp, e.Measure = 250, 20, 15 // the random part is slow to settle
	var points []MixPoint
	for i, want := range []float64{6.94, 6.93, 6.88, 6.40, 5.70, 4.45, 2.71, 1.00} {
		s := []float64{0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1}[i]
		e.Sequential = s
		r, err := Simulate(e)
		if err != nil {
			t.Fatal(err)
		}
		points = append(points, MixPoint{s, r.WAF})
		near(t, "the loop's write amplification", r.WAF, want, 0.03*want)
	}
	m, rms, err := FitSequentialMix(points)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("fit %+v, error %.3f", m, rms)
	if m.Turn < 0.35 || m.Turn > 0.6 || rms > 0.2 {
		t.Errorf("fit %+v, error %v", m, rms)
	}
	e.Sequential, e.Run = 0.8, 32
	r, err := Simulate(e)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "runs of 32 pages", r.WAF, 4.98, 0.03*4.98)
}

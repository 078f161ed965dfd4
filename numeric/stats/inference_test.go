package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestMomentsClosedForm(t *testing.T) {
	// 1, 2, 3, 4, 10 by hand: mean 4, squares of deviations 9+4+1+0+36 = 50, cubes -27-8-1+0+216 = 180,
	// products of neighbours' deviations 6+2+0+0 = 8.
	var m Moments
	for _, x := range []float64{1, 2, 3, 4, 10} {
		m.Add(x)
	}
	near(t, "mean", m.Mean(), 4, 1e-15)
	near(t, "variance", m.Variance(), 10, 1e-14)
	near(t, "sample variance", m.sampleVariance(), 12.5, 1e-14)
	near(t, "scv", m.SCV(), 10.0/16, 1e-14)
	near(t, "skewness", m.Skewness(), 36/math.Pow(10, 1.5), 1e-14)
	near(t, "acf1", m.ACF1(), 8.0/50, 1e-14)
	if m.N() != 5 || m.Min() != 1 || m.Max() != 10 {
		t.Errorf("n %d, min %v, max %v", m.N(), m.Min(), m.Max())
	}
	var one Moments
	one.Add(7)
	if one.Mean() != 7 || one.Variance() != 0 || one.Skewness() != 0 || one.ACF1() != 0 {
		t.Error("moments of one number")
	}
}

func TestMomentsOffset(t *testing.T) {
	// A large offset must not cancel the small deviations.
	r := rand.New(rand.NewPCG(5, 6))
	var a, b Moments
	x := 0.0
	for range 200000 {
		x = 0.7*x + r.NormFloat64()
		a.Add(x)
		b.Add(x + 1e9)
	}
	near(t, "acf1", a.ACF1(), 0.7, 0.01)
	near(t, "acf1 with an offset", b.ACF1(), a.ACF1(), 1e-6)
	near(t, "variance with an offset", b.Variance(), a.Variance(), 1e-6)
	near(t, "variance", a.Variance(), 1/(1-0.49), 0.05)
	near(t, "skewness", a.Skewness(), 0, 0.03)
}

func TestMomentsExponential(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var m Moments
	for range 1000000 {
		m.Add(r.ExpFloat64())
	}
	near(t, "scv", m.SCV(), 1, 0.02)
	near(t, "skewness", m.Skewness(), 2, 0.05)
	near(t, "acf1", m.ACF1(), 0, 0.005)
}

func TestWarmUp(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	settling := make([]float64, 500)
	for i := range settling {
		settling[i] = 100 + r.NormFloat64() + 200*math.Exp(-float64(i)/20)
	}
	c := WarmUp(settling)
	if !c.Found || c.Index < 60 || c.Index > 180 {
		t.Errorf("cut at %d (%s), want it where exp(-i/20) has died out", c.Index, c.Explain)
	}
	flat := make([]float64, 100)
	for i := range flat {
		flat[i] = 5
	}
	if c := WarmUp(flat); !c.Found || c.Index != 0 {
		t.Errorf("a flat series is cut at %d", c.Index)
	}
	rising := make([]float64, 100)
	for i := range rising {
		rising[i] = float64(i)
	}
	if c := WarmUp(rising); c.Found || c.Index != 0 || !strings.Contains(c.Explain, "no steady state") {
		t.Errorf("a rising series: %+v", c)
	}
	if c := WarmUp(flat[:7]); c.Found || !strings.Contains(c.Explain, "too few") {
		t.Errorf("a short series: %+v", c)
	}
	gap := append([]float64{math.NaN(), math.NaN()}, settling...)
	if d := WarmUp(gap); d.Index != c.Index+2 {
		t.Errorf("with two empty bins in front the cut is at %d, want %d", d.Index, c.Index+2)
	}
}

func TestTQuantile(t *testing.T) {
	// Printed tables of Student's t.
	for _, c := range []struct {
		p       float64
		degrees int
		want    float64
	}{{0.975, 1, 12.706}, {0.975, 4, 2.776}, {0.975, 9, 2.262}, {0.95, 30, 1.697}, {0.995, 10, 3.169},
		{0.975, 100000, 1.960}} {
		near(t, "t", TQuantile(c.p, c.degrees), c.want, 5e-4)
	}
}

func TestReplicates(t *testing.T) {
	// 1..5: mean 3, s = sqrt(2.5), half = 2.7764 * s / sqrt(5).
	i, err := Replicates([]float64{1, 2, 3, 4, 5}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean", i.Mean, 3, 1e-15)
	near(t, "half width", i.Half, 2.776445*math.Sqrt(0.5), 1e-5)
	if i.Low() != i.Mean-i.Half || i.High() != i.Mean+i.Half {
		t.Error("ends of the interval")
	}
	if i, err := Replicates([]float64{1.1, 1.1, 1.1}, 0.95); err != nil || i.Mean != 1.1 || i.Half != 0 {
		t.Errorf("of equal values: %+v, %v", i, err)
	}
	if _, err := Replicates([]float64{1}, 0.95); err == nil {
		t.Error("one replicate gave an interval")
	}
	if _, err := Replicates([]float64{1, 2}, 1); err == nil {
		t.Error("level 1 gave an interval")
	}
}

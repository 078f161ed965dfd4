package synth

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mathext"
)

// moments returns mean, SCV, skewness and lag-1 autocorrelation of the intervals of an MMPP(2) from its matrices
// alone: with M = (-D0)^-1 and the embedded chain P = M D1, they are pi M 1, 2 pi M^2 1, 6 pi M^3 1 and pi M P M 1.
func (m *MMPP2) moments() (mean, scv, skewness, acf1 float64) {
	l, s := m.lambda, m.sigma
	det := (l[0]+s[0])*(l[1]+s[1]) - s[0]*s[1]
	inv := [2][2]float64{{(l[1] + s[1]) / det, s[0] / det}, {s[1] / det, (l[0] + s[0]) / det}}
	var chain [2][2]float64
	for i := range chain {
		for j := range chain[i] {
			chain[i][j] = inv[i][j] * l[j]
		}
	}
	p0 := chain[1][0] / (chain[0][1] + chain[1][0])
	pi := [2]float64{p0, 1 - p0}
	apply := func(a [2][2]float64, v [2]float64) [2]float64 {
		return [2]float64{a[0][0]*v[0] + a[0][1]*v[1], a[1][0]*v[0] + a[1][1]*v[1]}
	}
	dot := func(v [2]float64) float64 { return pi[0]*v[0] + pi[1]*v[1] }
	one := apply(inv, [2]float64{1, 1})
	two := apply(inv, one)
	three := apply(inv, two)
	mean = dot(one)
	e2, e3 := 2*dot(two), 6*dot(three)
	variance := e2 - mean*mean
	joint := dot(apply(inv, apply(chain, one)))
	return mean, variance / (mean * mean), (e3 - 3*mean*e2 + 2*mean*mean*mean) / math.Pow(variance, 1.5),
		(joint - mean*mean) / variance
}

func near(t *testing.T, name string, got, want, relative float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s = %.10g, want %.10g within %g of it", name, got, want, relative)
	}
}

// TestWorkedExample fits a mean of 57 us, SCV 4, skewness 6 and lag-1 autocorrelation 0.2, whose parameters were
// computed independently.
func TestWorkedExample(t *testing.T) {
	shape := Shape{SCV: 4, Skewness: 6, ACF1: 0.2}
	h, err := shape.fit()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "p", h.p, 0.1071505267, 1e-9)
	near(t, "m1", h.m1*57, 258.5173546, 1e-9)
	near(t, "m2", h.m2*57, 32.81597869, 1e-9)
	near(t, "gamma", h.stay, 0.5333333333, 1e-9)
	m, err := shape.Process(57)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "lambda1", m.lambda[0], 0.0290408942, 1e-8)
	near(t, "lambda2", m.lambda[1], 0.002164779563, 1e-8)
	near(t, "sigma1", m.sigma[0], 0.001341299998, 1e-8)
	near(t, "sigma2", m.sigma[1], 0.001794198322, 1e-8)
	near(t, "rho5", correlationBound(4)*math.Pow(h.stay, 5), 0.0161817284, 1e-8)
}

// TestFitIsExact draws feasible shapes and computes the moments of the fitted process from its matrices.
func TestFitIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		scv := 1 + math.Exp(r.Float64()*6-3)
		shape := Shape{SCV: scv, Skewness: SkewnessBound(scv) * (1 + 0.01 + 3*r.Float64()),
			ACF1: correlationBound(scv) * (0.001 + 0.99*r.Float64())}
		if r.IntN(4) == 0 {
			shape.Skewness = 0
		}
		mean := math.Exp(r.Float64()*10 - 5)
		m, err := shape.Process(mean)
		if err != nil {
			t.Fatalf("%+v: %v", shape, err)
		}
		for i := range 2 {
			if !(m.lambda[i] >= 0 && m.sigma[i] >= 0) {
				t.Fatalf("%+v gives %+v", shape, m)
			}
		}
		gotMean, gotSCV, gotSkewness, gotACF := m.moments()
		near(t, "mean", gotMean, mean, 1e-8)
		near(t, "scv", gotSCV, shape.SCV, 1e-7)
		if shape.Skewness != 0 {
			near(t, "skewness", gotSkewness, shape.Skewness, 1e-6)
		}
		near(t, "acf1", gotACF, shape.ACF1, 1e-5)
		if t.Failed() {
			t.Fatalf("%+v", shape)
		}
	}
}

func TestInfeasibleShapes(t *testing.T) {
	for _, c := range []struct {
		shape Shape
		want  string
	}{
		{Shape{SCV: -1}, "must not be negative"},
		{Shape{SCV: math.NaN()}, "scv is NaN"},
		{Shape{SCV: 4, Skewness: math.Inf(1)}, "skewness is +Inf"},
		{Shape{SCV: 4, Skewness: 3}, "it must exceed 3.0625 (or be left out)"},
		{Shape{SCV: 4, ACF1: 0.375}, "below (1-1/scv)/2 = 0.375"},
		{Shape{SCV: 4, ACF1: -0.1}, "it must be at least 0"},
		{Shape{SCV: 0.5, ACF1: 0.1}, "kind gamma has no correlation"},
		{Shape{SCV: 0.5, Skewness: 3}, "it is 1.41421; leave it out"},
		{Shape{Skewness: 1}, "kind constant"},
		{Shape{Kind: Exponential, SCV: 2}, "an exponential has 1"},
		{Shape{Kind: Hyper, SCV: 0.5}, "needs one above 1"},
		{Shape{Kind: Gamma, SCV: 2}, "at most 1 here"},
		{Shape{Kind: Constant, SCV: 2}, "a constant has 0"},
		{Shape{Kind: 77}, "(77) is not a distribution"},
		{Shape{SCV: 1e300}, "use at most 1e+06"},
		{Shape{SCV: 5e-324}, "at least 1e-12"},
	} {
		if _, err := c.shape.fit(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.shape, err, c.want)
		}
	}
	var k Kind
	for _, name := range kindNames {
		if err := k.UnmarshalText([]byte(name)); err != nil || k.String() != name {
			t.Errorf("kind %q: %v", name, err)
		}
	}
	if k.UnmarshalText([]byte("weibull")) == nil {
		t.Error("weibull is not a kind")
	}
}

func TestUpperGamma(t *testing.T) {
	for _, a := range []float64{1, 1.5, 2, 7.3, 33, 400, 2.5e4} {
		for _, f := range []float64{0, 0.01, 0.5, 0.9, 1, 1.1, 2, 10} {
			want := mathext.GammaIncRegComp(a, a*f)
			if got := upperGamma(a, a*f); math.Abs(got-want) > 1e-12+1e-10*want {
				t.Errorf("Q(%v, %v) = %v, want %v", a, a*f, got, want)
			}
		}
	}
}

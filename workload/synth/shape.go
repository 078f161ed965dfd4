package synth

import (
	"fmt"
	"math"

	"farflash/numeric/units"
)

// Kind is the distribution of a sequence of sizes or of inter-arrival times.
type Kind uint8

// The kinds. Auto selects the simplest one with the requested moments.
const (
	Auto        Kind = iota // the simplest with the requested moments
	Constant                // no variation (scv 0)
	Exponential             // scv 1, no correlation
	Gamma                   // scv up to 1, no correlation; Erlang if 1/scv is an integer
	Hyper                   // two-phase hyperexponential (H2): scv above 1, no correlation
	Modulated               // two-state Markov-modulated Poisson process, MMPP(2): scv above 1, correlated
)

var kindNames = units.Names[Kind]{"auto", "constant", "exponential", "gamma", "h2", "mmpp2"}

func (k Kind) String() string { return kindNames.Name(k) }

func (k Kind) MarshalText() ([]byte, error) { return kindNames.Marshal(k) }

func (k *Kind) UnmarshalText(text []byte) error { return kindNames.Unmarshal(text, k) }

// Shape describes a sequence apart from its mean. The default is a constant.
type Shape struct {
	Kind Kind `yaml:"kind,omitempty"` // Kind is the distribution.
	// SCV is the squared coefficient of variation, variance over squared mean. A constant has 0, an exponential 1.
	SCV float64 `yaml:"scv,omitempty"`
	// Skewness is the third standardised moment. 0 leaves it open: a hyperexponential then has balanced means.
	Skewness float64 `yaml:"skewness,omitempty"`
	// ACF1 is the autocorrelation of successive values; at higher lags it decays geometrically.
	ACF1 float64 `yaml:"acf1,omitempty"`
}

// phases is a fitted sequence of mean 1: exponential with mean m1 with probability p, otherwise with mean m2, where a
// draw keeps the previous phase with probability stay and otherwise chooses anew. Kinds with one phase have p = 1.
type phases struct {
	kind   Kind
	p      float64
	m1, m2 float64
	stay   float64
	form   float64 // Gamma: 1/SCV
}

// resolve replaces Auto.
func (s *Shape) resolve() Kind {
	switch {
	case s.Kind != Auto:
		return s.Kind
	case s.SCV == 0:
		return Constant
	case s.SCV < 1:
		return Gamma
	case s.ACF1 != 0:
		return Modulated
	case s.SCV == 1 && (s.Skewness == 0 || s.Skewness == 2):
		return Exponential
	}
	return Hyper
}

// fit returns the sequence of mean 1 with this shape, or an error that gives the feasible range.
func (s *Shape) fit() (phases, error) {
	none := phases{}
	for _, v := range []struct {
		name  string
		value float64
	}{{"scv", s.SCV}, {"skewness", s.Skewness}, {"acf1", s.ACF1}} {
		if math.IsNaN(v.value) || math.IsInf(v.value, 0) {
			return none, fmt.Errorf("%s is %v; it must be a number", v.name, v.value)
		}
	}
	if s.SCV < 0 {
		return none, fmt.Errorf("scv is %v; it must not be negative", s.SCV)
	}
	const most = 1e6 // beyond it no sequence of feasible length shows its moments
	if s.SCV > most {
		return none, fmt.Errorf("scv is %v; use at most %g", s.SCV, most)
	}
	kind := s.resolve()
	if kind != Modulated && s.ACF1 != 0 {
		return none, fmt.Errorf(
			"acf1 is %v, but a sequence of kind %s has no correlation; correlation needs an scv above 1 (mmpp2)",
			s.ACF1, kind)
	}
	switch kind {
	case Constant:
		if s.SCV != 0 {
			return none, fmt.Errorf("scv is %v, but a constant has 0", s.SCV)
		}
		return phases{kind: kind, p: 1, m1: 1}, s.only(0)
	case Exponential:
		if s.SCV != 1 && s.SCV != 0 {
			return none, fmt.Errorf("scv is %v, but an exponential has 1", s.SCV)
		}
		return phases{kind: kind, p: 1, m1: 1}, s.only(2)
	case Gamma:
		if !(s.SCV > 0 && s.SCV <= 1) {
			return none, fmt.Errorf("scv is %v; a gamma distribution needs one above 0 and at most 1 here", s.SCV)
		}
		const least = 1e-12 // below it draws do not differ in the digits of a time, and finally 1/scv is no number
		if s.SCV < least {
			return none, fmt.Errorf("scv is %v; use 0 for a constant, or at least %g", s.SCV, least)
		}
		return phases{kind: kind, p: 1, form: 1 / s.SCV}, s.only(2 * math.Sqrt(s.SCV))
	case Hyper, Modulated:
		h, err := s.hyper()
		if err != nil {
			return none, err
		}
		h.kind = kind
		if kind == Modulated {
			most := correlationBound(s.SCV)
			if !(s.ACF1 >= 0 && s.ACF1 < most) {
				return none, fmt.Errorf(
					"acf1 is %v; at an scv of %v it must be at least 0 and below (1-1/scv)/2 = %.6g", s.ACF1, s.SCV,
					most)
			}
			h.stay = s.ACF1 / most
		}
		return h, nil
	}
	return none, fmt.Errorf("%v is not a distribution", kind)
}

// correlationBound is the upper bound, not attained, of the autocorrelation of an MMPP(2) with that SCV.
func correlationBound(scv float64) float64 { return (1 - 1/scv) / 2 }

// only rejects a skewness other than the kind's own.
func (s *Shape) only(skewness float64) error {
	if s.Skewness == 0 || math.Abs(s.Skewness-skewness) < 1e-6 {
		return nil
	}
	return fmt.Errorf("skewness is %v, but of kind %s with an scv of %v it is %.6g; leave it out", s.Skewness,
		s.resolve(), s.SCV, skewness)
}

// SkewnessBound returns the infimum of a hyperexponential's skewness at that SCV (above 1).
func SkewnessBound(scv float64) float64 {
	second := 1 + scv
	third := float64(1.5 * float64(second*second))
	return (third - 1 - float64(3*scv)) / (scv * math.Sqrt(scv))
}

// hyper fits an H2 to mean 1, SCV and skewness (the three-moment match of Whitt, Bell Labs Tech. J. 61(8), 1982), or
// with balanced means if the skewness is free.
func (s *Shape) hyper() (phases, error) {
	c := s.SCV
	if !(c > 1) {
		return phases{}, fmt.Errorf("scv is %v; kind %s needs one above 1", c, s.resolve())
	}
	if s.Skewness == 0 {
		p := float64((1 + math.Sqrt((c-1)/(c+1))) / 2)
		return phases{p: p, m1: 1 / (2 * p), m2: 1 / (2 * (1 - p))}, nil
	}
	if bound := SkewnessBound(c); !(s.Skewness > bound) {
		return phases{}, fmt.Errorf("skewness is %v; at an scv of %v it must exceed %.6g (or be left out)",
			s.Skewness, c, bound)
	}
	r1, r2 := 1.0, float64((1+c)/2)
	r3 := (1 + float64(3*c) + float64(s.Skewness*float64(c*math.Sqrt(c)))) / 6
	d := r2 - float64(r1*r1)
	sum := (r3 - float64(r1*r2)) / d
	product := (float64(r1*r3) - float64(r2*r2)) / d
	root := math.Sqrt(float64(sum*sum) - float64(4*product))
	m1 := float64((sum + root) / 2)
	m2 := product / m1 // (sum - root)/2 without its cancellation
	p := (r1 - m2) / (m1 - m2)
	if !(p > 0 && p < 1 && m2 > 0 && m1 < math.Inf(1)) {
		return phases{}, fmt.Errorf(
			"an scv of %v and a skewness of %v are too extreme for 64-bit arithmetic", c, s.Skewness)
	}
	return phases{p: p, m1: m1, m2: m2}, nil
}

// MMPP2 is a two-state Markov-modulated Poisson process: in state i requests arrive at rate Lambda[i], and the process
// leaves the state at rate Sigma[i].
type MMPP2 struct {
	lambda, sigma [2]float64 // per unit of the mean
}

// Process returns the shape, of kind h2 or mmpp2, with the given mean in the notation of the literature.
func (s *Shape) Process(mean float64) (MMPP2, error) {
	h, err := s.fit()
	if err != nil {
		return MMPP2{}, err
	}
	if h.kind != Hyper && h.kind != Modulated {
		return MMPP2{}, fmt.Errorf("kind %s is not an MMPP(2)", h.kind)
	}
	u1, u2 := 1/(h.m1*mean), 1/(h.m2*mean)
	product := float64(u1 * u2)
	leave := float64((1 - h.stay) * product * mean)
	total := u1 + u2 - leave
	root := math.Sqrt(float64(total*total) - float64(4*h.stay*product))
	lambda1, lambda2 := float64((total+root)/2), float64((total-root)/2)
	sigma2 := (float64((1-h.stay)*product) - float64(lambda2*leave)) / (lambda1 - lambda2)
	return MMPP2{[2]float64{lambda1, lambda2}, [2]float64{leave - sigma2, sigma2}}, nil
}

package synth

import (
	"farflash/numeric/rng"
	"math"
)

// sequence draws numbers of mean 1 from fitted phases.
type sequence struct {
	phases
	stream rng.Stream
	second bool // phase of the latest draw
	begun  bool
}

func newSequence(p phases, seed uint64, name string) sequence {
	return sequence{phases: p, stream: rng.NewStream(seed, name)}
}

// next draws the next number. In an MMPP(2), the phase is kept with probability stay and otherwise chosen anew. That
// suffices, because the process with matrices D0 = -diag(u), D1 = diag(u)(stay I + (1-stay) 1 pi) has exactly this
// embedded chain.
func (s *sequence) next() float64 {
	switch s.kind {
	case Constant:
		return 1
	case Exponential:
		return s.stream.Exp()
	case Gamma:
		return s.gamma()
	}
	if !s.begun || s.stay == 0 || s.stream.Float64() >= s.stay {
		s.second = s.stream.Float64() >= s.p
		s.begun = true
	}
	if s.second {
		return s.m2 * s.stream.Exp()
	}
	return s.m1 * s.stream.Exp()
}

// gamma draws from the gamma distribution with mean 1 and shape parameter form, at least 1 (Marsaglia and Tsang, ACM
// TOMS 26(3), 2000).
func (s *sequence) gamma() float64 {
	d := s.form - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := s.stream.Norm()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = float64(v * v * v)
		u := 1 - s.stream.Float64()
		squared := float64(x * x)
		if u < 1-float64(0.0331*float64(squared*squared)) ||
			rng.Log(u) < float64(0.5*squared)+float64(d*(1-v+rng.Log(v))) {
			return float64(d*v) / s.form
		}
	}
}

// beyond returns, for a threshold c >= 0, partial moments of the distribution with mean 1: the integrals from c to
// infinity of S(x) and of x S(x), where S is the survival function. The first is the expected excess over c.
func (p *phases) beyond(c float64) (excess, weighted float64) {
	switch p.kind {
	case Constant:
		if c < 1 {
			return 1 - c, (1 - float64(c*c)) / 2
		}
		return 0, 0
	case Gamma:
		k, x := p.form, c*p.form // in units of the scale 1/k
		q0, q1, q2 := upperGamma(k, x), upperGamma(k+1, x), upperGamma(k+2, x)
		excess = q1 - float64(c*q0)
		weighted = (float64((1+1/k)*q2) - float64(float64(c*c)*q0)) / 2
		return max(excess, 0), max(weighted, 0)
	}
	one := func(weight, mean float64) {
		if weight == 0 {
			return
		}
		tail := float64(float64(weight*mean) * rng.Exp(-c/mean))
		excess += tail
		weighted += float64(tail * (c + mean))
	}
	one(p.p, p.m1)
	one(1-p.p, p.m2)
	return excess, weighted
}

// upperGamma returns the regularized upper incomplete gamma function Q(a, x), a > 0, x >= 0, by its series below a+1
// and its continued fraction above (Abramowitz and Stegun 6.5.29 and 6.5.31, the latter with Lentz's method).
func upperGamma(a, x float64) float64 {
	if x <= 0 {
		return 1
	}
	front := rng.Exp(float64(a*rng.Log(x)) - x - logGamma(a))
	if x < a+1 {
		term := 1 / a
		sum := term
		for n := 1; n < 100000; n++ {
			term = float64(term*x) / (a + float64(n))
			sum += term
			if term < float64(sum*1e-17) {
				break
			}
		}
		return max(0, 1-float64(front*sum))
	}
	const tiny = 1e-300
	b := x + 1 - a
	c := 1 / tiny
	d := 1 / b
	h := d
	for n := 1; n < 100000; n++ {
		an := float64(-float64(n) * (float64(n) - a))
		b += 2
		if d = float64(an*d) + b; math.Abs(d) < tiny {
			d = tiny
		}
		if c = b + an/c; math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		step := float64(d * c)
		h *= step
		if math.Abs(step-1) < 1e-16 {
			break
		}
	}
	return float64(front * h)
}

// logGamma returns the logarithm of the gamma function for a > 0, by Stirling's series from 16 on and the recurrence
// below.
func logGamma(a float64) float64 {
	shift := 1.0
	for a < 16 {
		shift *= a
		a++
	}
	z := 1 / float64(a*a)
	series := 1.0 / 156
	for _, c := range [...]float64{-691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12} {
		series = float64(series*z) + c
	}
	const halfLogTwoPi = 0.91893853320467274178
	return float64((a-0.5)*rng.Log(a)) - a + halfLogTwoPi + series/a - rng.Log(shift)
}

package rng

import "math"

// Models use these functions instead of math.Exp and math.Log, whose last bit differs between processors (assembly on
// some, fused multiply-add on others). Every product is rounded explicitly before it is added, so that no compiler can
// fuse the two.

const (
	ln2High = 6.93147180369123816490e-01 // the upper 32 bits of ln 2
	ln2Low  = 1.90821492927058770002e-10 // ln 2 - ln2High
)

// Log returns the natural logarithm to 2 units in the last place, with the same bits on every machine. Log(0) is -Inf,
// of a negative number NaN.
func Log(x float64) float64 {
	switch {
	case math.IsNaN(x) || x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case math.IsInf(x, 1):
		return x
	}
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	// ln m = 2 artanh(s), s = (m-1)/(m+1), |s| < 0.1716: eleven terms reach 2^-55.
	f := m - 1
	s := f / (2 + f)
	z := float64(s * s)
	p := 1.0 / 23
	for k := 21; k >= 3; k -= 2 {
		p = float64(p*z) + 1/float64(k)
	}
	// 2s + 2s*z*p, written so that f carries the leading bits: 2s = f - s*f.
	tail := float64(2 * s * float64(z*p))
	lead := f - float64(s*f)
	ke := float64(e)
	return float64(ke*ln2High) + (lead + (tail + float64(ke*ln2Low)))
}

// Exp returns e to the power x to 2 units in the last place, with the same bits on every machine.
func Exp(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x > 709.79:
		return math.Inf(1)
	case x < -745.14:
		return 0
	}
	k := math.Floor(float64(x*(1/math.Ln2)) + 0.5)
	r := (x - float64(k*ln2High)) - float64(k*ln2Low)
	p := 1.0
	for n := 14; n >= 1; n-- {
		p = float64(p*(r/float64(n))) + 1
	}
	return math.Ldexp(p, int(k))
}

// Pow returns x to the power y for x > 0, with the same bits on every machine. Its relative error grows with |y ln x|:
// 1e-14 at 50.
func Pow(x, y float64) float64 {
	if y == 0 || x == 1 {
		return 1
	}
	return Exp(float64(y * Log(x)))
}

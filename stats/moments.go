package stats

import "math"

// Moments describes a stream of numbers in constant memory: count, extremes, mean, variance, skewness (all by Welford's
// updates) and lag-1 autocorrelation. The zero Moments is empty and ready.
type Moments struct {
	n        int64
	min, max float64
	mean     float64
	m2, m3   float64 // sums of the second and third powers of the deviations from the mean
	first    float64
	last     float64 // less first
	sum      float64 // of x - first
	products float64 // of neighbours' (x - first)
}

// Add counts x.
func (m *Moments) Add(x float64) {
	if m.n == 0 {
		*m = Moments{n: 1, min: x, max: x, mean: x, first: x}
		return
	}
	m.min, m.max = math.Min(m.min, x), math.Max(m.max, x)
	before := float64(m.n)
	m.n++
	n := float64(m.n)
	d := x - m.mean
	step := d / n
	term := float64(float64(d*step) * before)
	m.mean += step
	m.m3 += float64(float64(term*step)*(n-2)) - float64(3*float64(step*m.m2))
	m.m2 += term
	// Shifting by the first value keeps the sums small when the mean is far from zero.
	y := x - m.first
	m.products += float64(y * m.last)
	m.sum += y
	m.last = y
}

// N returns how many numbers were added.
func (m *Moments) N() int64 { return m.n }

// Min returns the least number, 0 if there is none.
func (m *Moments) Min() float64 { return m.min }

// Max returns the largest number, 0 if there is none.
func (m *Moments) Max() float64 { return m.max }

// Mean returns the mean, 0 if there is none.
func (m *Moments) Mean() float64 { return m.mean }

// Variance returns the variance of the numbers themselves (divisor n); 0 for fewer than two.
func (m *Moments) Variance() float64 {
	if m.n < 2 {
		return 0
	}
	return m.m2 / float64(m.n)
}

// SampleVariance returns the unbiased estimate of the variance that the numbers were drawn from (divisor n-1).
func (m *Moments) SampleVariance() float64 {
	if m.n < 2 {
		return 0
	}
	return m.m2 / float64(m.n-1)
}

// StdDev returns the square root of Variance.
func (m *Moments) StdDev() float64 { return math.Sqrt(m.Variance()) }

// SCV returns the squared coefficient of variation, variance / mean^2; 0 if the mean is 0.
func (m *Moments) SCV() float64 {
	if m.mean == 0 {
		return 0
	}
	return m.Variance() / float64(m.mean*m.mean)
}

// Skewness returns the third standardised moment (divisor n); 0 if all numbers are equal.
func (m *Moments) Skewness() float64 {
	v := m.Variance()
	if v <= 0 {
		return 0
	}
	return m.m3 / float64(m.n) / float64(v*math.Sqrt(v))
}

// ACF1 returns the lag-1 autocorrelation coefficient: the sum of the products of neighbours' deviations from the mean over
// the sum of all squared deviations; 0 if all numbers are equal.
func (m *Moments) ACF1() float64 {
	if m.n < 2 || m.m2 <= 0 {
		return 0
	}
	// With y = x - first and mean my: sum (y_i-my)(y_i+1-my) = products - my*(2*sum - y_1 - y_n) + (n-1)*my^2, and y_1 = 0.
	my := m.sum / float64(m.n)
	ends := float64(2*m.sum) - m.last
	cross := m.products - float64(my*ends) + float64(float64(m.n-1)*float64(my*my))
	return cross / m.m2
}

package stats

import "math"

// Moments describes a stream of numbers in constant memory: count, minimum, maximum, mean, variance, skewness
// (Welford's updates) and lag-1 autocorrelation, with the same bits on every machine. The zero Moments is empty.
type Moments struct {
	n        int64
	min, max float64
	mean     float64
	m2, m3   float64 // sums of the second and third powers of the deviations from the mean
	last     float64
	headMean float64 // of all numbers but the last
	tailMean float64 // of all numbers but the first
	comoment float64 // of neighbours, about these two means
}

// Add counts x.
func (m *Moments) Add(x float64) {
	if m.n == 0 {
		*m = Moments{n: 1, min: x, max: x, mean: x, last: x}
		return
	}
	m.min, m.max = math.Min(m.min, x), math.Max(m.max, x)
	before := float64(m.n)
	head := m.last - m.headMean
	m.headMean += head / before
	m.tailMean += (x - m.tailMean) / before
	m.comoment += float64(head * (x - m.tailMean))
	m.last = x
	m.n++
	n := float64(m.n)
	d := x - m.mean
	step := d / n
	term := float64(float64(d*step) * before)
	m.mean += step
	m.m3 += float64(float64(term*step)*(n-2)) - float64(3*float64(step*m.m2))
	m.m2 += term
}

// N returns the count of numbers added.
func (m *Moments) N() int64 { return m.n }

// Min returns the smallest number, 0 if there is none.
func (m *Moments) Min() float64 { return m.min }

// Max returns the largest number, 0 if there is none.
func (m *Moments) Max() float64 { return m.max }

// Mean returns the mean, 0 if there are no numbers.
func (m *Moments) Mean() float64 { return m.mean }

// Variance returns the variance (divisor n); 0 for fewer than two.
func (m *Moments) Variance() float64 {
	if m.n < 2 {
		return 0
	}
	return m.m2 / float64(m.n)
}

// sampleVariance returns the unbiased estimate of the population variance (divisor n-1).
func (m *Moments) sampleVariance() float64 {
	if m.n < 2 {
		return 0
	}
	return m.m2 / float64(m.n-1)
}

// StdDev returns the square root of Variance.
func (m *Moments) StdDev() float64 { return math.Sqrt(m.Variance()) }

// SCV returns variance / mean^2; 0 if the mean is 0.
func (m *Moments) SCV() float64 {
	if m.mean == 0 {
		return 0
	}
	return m.Variance() / float64(m.mean*m.mean)
}

// Skewness returns the third standardised moment (divisor n); 0 if all are equal.
func (m *Moments) Skewness() float64 {
	sigma := m.StdDev()
	if sigma <= 0 {
		return 0
	}
	return m.m3 / float64(m.n) / float64(float64(sigma*sigma)*sigma)
}

// ACF1 returns the lag-1 autocorrelation coefficient; 0 if all are equal.
func (m *Moments) ACF1() float64 {
	if m.n < 2 || m.m2 <= 0 {
		return 0
	}
	// The co-moment is about the means of the two overlapping parts; shift it to the overall mean.
	shift := float64(float64(m.n-1) * float64((m.headMean-m.mean)*(m.tailMean-m.mean)))
	return (m.comoment + shift) / m.m2
}

package characterise

import (
	"math"

	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// mostBatches and leastBatches bound the number of batches behind a rate's confidence interval.
const (
	mostBatches  = 64
	leastBatches = 8
)

// batches are byte counts of equal time intervals, starting at the first request. When the time exceeds the last batch,
// the interval doubles.
type batches struct {
	length units.Duration
	bytes  [mostBatches]int64
}

func (b *batches) add(since units.Duration, bytes int64) {
	if b.length == 0 {
		b.length = units.Second
	}
	since = max(since, 0)
	for since/b.length >= mostBatches {
		for i := range mostBatches / 2 {
			b.bytes[i] = b.bytes[2*i] + b.bytes[2*i+1]
		}
		clear(b.bytes[mostBatches/2:])
		b.length *= 2
	}
	b.bytes[since/b.length] += bytes
}

// within is half the width of the 95 % confidence interval of the mean rate, as a fraction of the rate: Student's t
// over the batches that the span covers, assuming independence. It is NaN with fewer than eight batches or without
// writes.
func (b *batches) within(span units.Duration) float64 {
	n := 0
	if b.length > 0 {
		n = min(int(span/b.length), mostBatches)
	}
	var m stats.Moments
	for _, v := range b.bytes[:n] {
		m.Add(float64(v))
	}
	if n < leastBatches || !(m.Mean() > 0) {
		return math.NaN()
	}
	return stats.TQuantile(0.975, n-1) * math.Sqrt(m.Variance()/float64(n-1)) / m.Mean()
}

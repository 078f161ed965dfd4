package characterise

import (
	"math"

	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// mostBatches and leastBatches are of how many batches a rate's confidence is formed.
const (
	mostBatches  = 64
	leastBatches = 8
)

// batches are bytes in equal lengths of time from the first request on. When they do not reach any further, each
// becomes twice as long.
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

// within is half of the interval that the mean rate is in with 95 % confidence, as a share of it: Student's t over
// the batches that the span covers, as if they were independent. NaN with fewer than eight, or if nothing was
// written.
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

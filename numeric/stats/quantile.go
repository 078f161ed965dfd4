package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"

	"farflash/numeric/rng"
)

// QuantileRanks returns the ranks, from 1, of n independent values between which the quantile q lies with at least the
// probability level, whatever the distribution (David and Nagaraja, Order Statistics, 3rd ed., 7.1). low is 0 and high
// n+1 where there is no bound, or for a q or level not between 0 and 1.
func QuantileRanks(n int64, q, level float64) (low, high int64) {
	if n < 0 || n == math.MaxInt64 {
		panic("stats: QuantileRanks of fewer than 0 values, or more than 2^63-2")
	}
	if !inside(q) || !inside(level) {
		return 0, n + 1
	}
	tail := (1 - level) / 2
	// from returns the first count whose tail probability passes a threshold.
	from := func(most float64, upper bool) int64 {
		return int64(sort.Search(int(n)+1, func(k int) bool {
			if upper {
				return 1-atMost(int64(k)-1, n, q) <= most
			}
			return atMost(int64(k), n, q) > most
		}))
	}
	low = from(tail, false)
	if high = from(tail, true); !QuantileKnown(n, q, level) {
		high = n + 1
	}
	return low, high
}

// QuantileKnown reports whether n independent values bound the quantile q above: 368 for the 99th percentile at 95 %.
func QuantileKnown(n int64, q, level float64) bool {
	return inside(q) && inside(level) && float64(float64(n)*rng.Log(q)) <= rng.Log((1-level)/2)
}

// inside reports whether x is between 0 and 1.
func inside(x float64) bool { return x > 0 && x < 1 }

// QuantileNeeds returns the least n for QuantileKnown, or the largest int64.
func QuantileNeeds(q, level float64) int64 {
	if !inside(q) || !inside(level) {
		return math.MaxInt64
	}
	return int64(math.Ceil(rng.Log((1-level)/2) / rng.Log(q)))
}

// atMost returns the probability that at most k of n values are below the quantile q. It is rounded, so that the ranks
// are identical on every machine.
func atMost(k, n int64, q float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n:
		return 1
	}
	return rounded(mathext.RegIncBeta(float64(n-k), float64(k+1), 1-q), 9)
}

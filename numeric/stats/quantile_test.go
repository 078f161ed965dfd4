package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantileRanks(t *testing.T) {
	// The median of ten lies between the second and the ninth with probability 1 - 2 * 11/1024 (Conover, Practical
	// Nonparametric Statistics, 3rd ed., 3.2).
	for _, c := range []struct {
		n         int64
		q         float64
		low, high int64
	}{{10, 0.5, 2, 9}, {5, 0.5, 0, 6}, {6, 0.5, 1, 6}, {367, 0.99, 359, 368}, {368, 0.99, 360, 368},
		{16, 0.999, 16, 17}} {
		if low, high := QuantileRanks(c.n, c.q, 0.95); low != c.low || high != c.high {
			t.Errorf("quantile %v of %d: between %d and %d, want %d and %d", c.q, c.n, low, high, c.low, c.high)
		}
	}
	for q, n := range map[float64]int64{0.5: 6, 0.99: 368, 0.999: 3688, 0.9999: 36887} {
		if got := QuantileNeeds(q, 0.95); got != n || QuantileKnown(n-1, q, 0.95) || !QuantileKnown(n, q, 0.95) {
			t.Errorf("the quantile %v needs %d", q, got)
		}
	}
	if low, high := QuantileRanks(1_000_000, 0.99, 0.95); math.Abs(float64(low)-(990000-195)) > 2 ||
		math.Abs(float64(high)-(990000+196)) > 2 {
		t.Errorf("of a million between %d and %d, want what the normal distribution gives", low, high)
	}
}

// TestQuantileRanksHold draws samples of a known distribution: at least 95 % of the intervals contain its quantile.
func TestQuantileRanksHold(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		n int64
		q float64
	}{{20, 0.5}, {100, 0.9}, {400, 0.99}, {100, 0.99}} {
		const runs = 2000
		held := 0
		low, high := QuantileRanks(c.n, c.q, 0.95)
		truth := -math.Log(1 - c.q)
		for range runs {
			xs := make([]float64, c.n)
			for i := range xs {
				xs[i] = r.ExpFloat64()
			}
			slices.Sort(xs)
			if (low == 0 || xs[low-1] <= truth) && (high > c.n || truth <= xs[high-1]) {
				held++
			}
		}
		if share := float64(held) / runs; share < 0.94 {
			t.Errorf("quantile %v of %d: %v of the intervals hold it", c.q, c.n, share)
		}
	}
}

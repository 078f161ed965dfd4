package stats

import "math"

// QuantileOf returns the smallest of the sorted values, at least one, that a share of them does not exceed.
func QuantileOf(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		panic("stats: QuantileOf no values; use at least one")
	}
	i := int(math.Ceil(rankOf(share, uint64(len(sorted))))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Ratio returns a/b, or NaN if b is 0.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// Micro rounds to millionths, for charts.
func Micro(x float64) float64 { return math.Round(x*1e6) / 1e6 }

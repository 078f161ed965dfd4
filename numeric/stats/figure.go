package stats

import "math"

// QuantileOf is the smallest of sorted values, of which there is at least one, that at least a share of them do not
// exceed.
func QuantileOf(sorted []float64, share float64) float64 {
	i := int(math.Ceil(rankOf(share, uint64(len(sorted))))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Ratio is a/b, NaN if b is 0.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// Micro rounds to millionths, which is as exact as a picture can be and keeps what is written of it short.
func Micro(x float64) float64 { return math.Round(x*1e6) / 1e6 }

package stats

import (
	"cmp"
	"slices"
)

// Holm adjusts the p values of a family of tests so that the chance of even one false finding among them stays below the level
// that they are compared with (Holm, Scandinavian Journal of Statistics 6(2), 1979). The smallest is multiplied by their
// number m, the next by m-1 and so on; none falls below one that was smaller before it, and none exceeds 1.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out := make([]float64, len(p))
	least := 0.0
	for k, i := range order {
		least = max(least, min(1, float64(len(p)-k)*p[i]))
		out[i] = least
	}
	return out
}

package stats

import (
	"cmp"
	"slices"
)

// Holm adjusts the p values of a family of tests so that the probability of even one false finding among them stays
// below the level with which they are compared (Holm, Scandinavian Journal of Statistics 6(2), 1979). The smallest is
// multiplied by their number m, the next by m-1 and so on; none falls below the adjusted value of a smaller one, and
// none exceeds 1.
func Holm(p []float64) []float64 {
	order := ByValue(p)
	out := make([]float64, len(p))
	least := 0.0
	for k, i := range order {
		least = max(least, min(1, float64(len(p)-k)*p[i]))
		out[i] = least
	}
	return out
}

// BenjaminiHochberg adjusts the p values of a family of tests so that among those below a level the expected share of
// false findings stays below that level (Benjamini and Hochberg, Journal of the Royal Statistical Society B 57(1),
// 1995; valid for tests that are independent or positively dependent). The largest of m is unchanged, the next is
// multiplied by m/(m-1), the smallest by m; none exceeds the adjusted value of a larger one.
func BenjaminiHochberg(p []float64) []float64 {
	order := ByValue(p)
	out := make([]float64, len(p))
	most := 1.0
	for k := len(order) - 1; k >= 0; k-- {
		i := order[k]
		most = min(most, float64(len(p))*p[i]/float64(k+1))
		out[i] = most
	}
	return out
}

// ByValue returns the indices of values in ascending order; equal values keep their order.
func ByValue(p []float64) []int {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	return order
}

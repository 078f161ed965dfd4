package stats

import (
	"cmp"
	"slices"
)

// Holm adjusts a family's p values so that the probability of even one false finding stays below the level (Holm,
// Scandinavian Journal of Statistics 6(2), 1979).
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

// BenjaminiHochberg adjusts a family's p values so that the expected share of false findings stays below the level
// (Journal of the Royal Statistical Society B 57(1), 1995; for independent or positively dependent tests).
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

// ByValue returns the indices of values in ascending, stable order.
func ByValue(p []float64) []int {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	return order
}

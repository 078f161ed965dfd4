package tco

import (
	"cmp"
	"math"
	"slices"
)

// Whole is a kind of drive that is bought in whole units: the cost and capacity of one, and how many are available.
type Whole struct{ Cost, Space, IO, Count float64 }

// mostNodes limits the combinations of drives that are examined.
const mostNodes = 200_000

// Cover returns the minimum cost of whole drives that together provide the given space and I/O rate, by branch and
// bound. It returns 0, a valid lower bound for any cost, if they cannot provide it or if there are too many
// combinations. It reorders kinds.
func Cover(kinds []Whole, space, io float64) float64 {
	slices.SortStableFunc(kinds, func(a, b Whole) int { return cmp.Compare(a.Cost/a.Space, b.Cost/b.Space) })
	best, nodes := math.Inf(1), 0
	var look func(k int, space, io, cost float64)
	look = func(k int, space, io, cost float64) {
		if space <= 0 && io <= 0 {
			best = min(best, cost)
			return
		}
		if nodes++; k == len(kinds) || nodes > mostNodes {
			return
		}
		perGB, perIO := math.Inf(1), math.Inf(1)
		for _, q := range kinds[k:] {
			perGB, perIO = min(perGB, q.Cost/q.Space), min(perIO, q.Cost/q.IO)
		}
		if cost+max(float64(max(0, space)*perGB), float64(max(0, io)*perIO)) >= best {
			return
		}
		q := kinds[k]
		for n := min(q.Count, math.Ceil(max(0, space/q.Space, io/q.IO))); n >= 0; n-- {
			look(k+1, space-float64(n*q.Space), io-float64(n*q.IO), cost+float64(n*q.Cost))
		}
	}
	look(0, space, io, 0)
	if nodes > mostNodes || math.IsInf(best, 1) {
		return 0
	}
	return best
}

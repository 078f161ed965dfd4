package tco

import (
	"cmp"
	"math"
	"slices"
)

// Whole is a kind of drives of which whole ones are bought: what one costs and holds, and how many there are at most.
type Whole struct{ Cost, Space, IO, Count float64 }

// mostNodes is how many combinations of drives are looked at.
const mostNodes = 200_000

// Cover is the least that whole drives cost which hold a space and an I/O rate together, by branch and bound: 0,
// which bounds any cost from below, where they do not hold it, or where there are too many combinations to look at.
// It changes the order of kinds.
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

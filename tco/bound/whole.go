package bound

import (
	"cmp"
	"math"
	"slices"
)

// mostNodes is how many combinations of drives are looked at.
const mostNodes = 200_000

// wholes is what whole drives come to at least, of those that hold the space and the I/O of all workloads that never end, if a drive of each class comes
// to so much: 0 where there are too many combinations to look at. All classes are optional.
func (d *dual) wholes(each []float64) float64 {
	type kind struct{ cost, space, io, count float64 }
	var kinds []kind
	space, io := 0.0, 0.0
	for j := range d.rate {
		leastSpace, leastIO := math.Inf(1), math.Inf(1) // where it takes least
		for i := range d.classes {
			leastSpace, leastIO = min(leastSpace, d.classes[i].space[j]), min(leastIO, d.classes[i].io[j])
		}
		space, io = space+leastSpace, io+leastIO
	}
	for i := range d.classes {
		if c := &d.classes[i]; c.c.Count > 0 {
			kinds = append(kinds, kind{each[i], c.spaceMost, c.ioMost, float64(c.c.Count)})
		}
	}
	space, io = float64(space*(1-1e-6)), float64(io*(1-1e-6)) // rounding must not make a drive more of a sum that just fits
	slices.SortStableFunc(kinds, func(a, b kind) int { return cmp.Compare(a.cost/a.space, b.cost/b.space) })
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
			perGB, perIO = min(perGB, q.cost/q.space), min(perIO, q.cost/q.io)
		}
		if cost+max(float64(max(0, space)*perGB), float64(max(0, io)*perIO)) >= best {
			return
		}
		q := kinds[k]
		for n := min(q.count, math.Ceil(max(0, space/q.space, io/q.io))); n >= 0; n-- {
			look(k+1, space-float64(n*q.space), io-float64(n*q.io), cost+float64(n*q.cost))
		}
	}
	look(0, space, io, 0)
	if nodes > mostNodes || math.IsInf(best, 1) {
		return 0
	}
	return best
}

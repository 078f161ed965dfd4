package topo

import (
	"slices"

	"farflash/sim"
)

// Partition divides the nodes among at most n parts, numbered from 0: whole pods, as
// many in each part as can be, and the nodes without pod in turn. There are never more parts than
// pods, and a network without pods is one part.
func (g *Graph) Partition(n int) []int32 {
	out := make([]int32, len(g.Nodes))
	var pods []int32
	for i := range g.Nodes {
		if p := g.Nodes[i].Pod; p >= 0 {
			pods = append(pods, p)
		}
	}
	slices.Sort(pods)
	pods = slices.Compact(pods)
	parts := min(n, len(pods))
	if parts < 2 {
		return out
	}
	turn := 0
	for i := range g.Nodes {
		if p := g.Nodes[i].Pod; p >= 0 {
			rank, _ := slices.BinarySearch(pods, p)
			out[i] = int32(rank * parts / len(pods))
			continue
		}
		out[i] = int32(turn % parts)
		turn++
	}
	return out
}

// Lookahead is the smallest delay of a link between two parts: for so long nothing
// that happens in one part matters to another. Without such a link it is sim.Forever.
func (g *Graph) Lookahead(parts []int32) sim.Time {
	least := sim.Forever
	for _, l := range g.Links {
		if parts[l.A] != parts[l.B] {
			least = min(least, l.Delay)
		}
	}
	return least
}

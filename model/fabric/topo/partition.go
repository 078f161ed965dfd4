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

// Apart reports whether a partition's parts can be simulated for some time without each other: no link between two of
// them is without delay.
func (g *Graph) Apart(of []int32) bool {
	for _, l := range g.Links {
		if of[l.A] != of[l.B] && l.Delay <= 0 {
			return false
		}
	}
	return true
}

// Delays are the least times that anything takes from one of so many parts to another, along links and through other
// parts, sim.Forever if there is no way: for so long nothing that happens in the one matters to the other.
func (g *Graph) Delays(of []int32, parts int) [][]sim.Time {
	d := make([][]sim.Time, parts)
	for i := range d {
		d[i] = slices.Repeat([]sim.Time{sim.Forever}, parts)
		d[i][i] = 0
	}
	for _, l := range g.Links {
		if a, b := of[l.A], of[l.B]; a != b {
			d[a][b] = min(d[a][b], l.Delay)
			d[b][a] = d[a][b]
		}
	}
	for k := range d {
		for i := range d {
			for j := range d {
				if d[i][k] < sim.Forever-d[k][j] {
					d[i][j] = min(d[i][j], d[i][k]+d[k][j])
				}
			}
		}
	}
	return d
}

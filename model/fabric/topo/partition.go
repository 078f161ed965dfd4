package topo

import (
	"fmt"
	"slices"

	"farflash/sim"
)

// Partition divides the nodes among at most n parts, from 0: whole pods, evenly. A network without pods is one part.
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

// Apart reports whether every link between two parts has a delay.
func (g *Graph) Apart(of []int32) bool {
	g.checkOf(of)
	for _, l := range g.Links {
		if of[l.A] != of[l.B] && l.Delay <= 0 {
			return false
		}
	}
	return true
}

// checkOf refuses parts of other nodes than the graph's.
func (g *Graph) checkOf(of []int32) {
	if len(of) != len(g.Nodes) {
		panic(fmt.Sprintf("topo: the parts of %d nodes; there are %d", len(of), len(g.Nodes)))
	}
}

// Delays returns the shortest times for one part to affect another, or sim.Forever.
func (g *Graph) Delays(of []int32, parts int) [][]sim.Time {
	g.checkOf(of)
	for _, p := range of {
		if p < 0 || int(p) >= parts {
			panic(fmt.Sprintf("topo: Delays of a node in part %d; there are %d", p, parts))
		}
	}
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

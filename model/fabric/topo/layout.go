package topo

import (
	"cmp"
	"math"
	"slices"
)

// Point is a position in a picture: X from 0, left, to 1; Y from 0, top, to 1.
type Point struct{ X, Y float64 }

// Layout places the nodes for a picture: tiers above each other with the hosts at the bottom, pods side by side; a
// network with global links is a circle of its groups.
func (g *Graph) Layout() []Point {
	// Where switches have no tiers, their distance to the nearest host is used.
	out := make([]Point, len(g.Nodes))
	tier := make([]uint8, len(g.Nodes))
	top := uint8(0)
	for i, n := range g.Nodes {
		tier[i] = n.Tier
		top = max(top, n.Tier)
	}
	if top == 0 {
		tier = g.tiers()
		for _, t := range tier {
			top = max(top, t)
		}
	}
	pods := int32(0)
	for _, n := range g.Nodes {
		pods = max(pods, n.Pod+1)
	}
	around := slices.ContainsFunc(g.Links, func(l Link) bool { return l.Global })
	ports := g.ports()
	for t := int(top); t >= 0; t-- {
		var loose []int32
		inPod := make([][]int32, pods)
		for i, n := range g.Nodes {
			switch {
			case int(tier[i]) != t:
			case n.Pod < 0:
				loose = append(loose, int32(i))
			default:
				inPod[n.Pod] = append(inPod[n.Pod], int32(i))
			}
		}
		y := 1 - (float64(t)+0.5)/float64(int(top)+1)
		sortBelow(loose, t, tier, ports, out)
		for k, node := range loose {
			out[node] = Point{snap((float64(k) + 0.5) / float64(len(loose))), snap(y)}
		}
		for pod, nodes := range inPod {
			for k, node := range nodes {
				// A tenth of a pod's width stays free on either side.
				within := 0.1 + float64(0.8*(float64(k)+0.5))/float64(len(nodes))
				x := (float64(pod) + within) / float64(pods)
				if around {
					out[node] = onCircle(x, 0.48-float64(0.32*float64(t))/float64(int(top)+1))
					continue
				}
				out[node] = Point{snap(x), snap(y)}
			}
		}
	}
	return out
}

// sortBelow orders the nodes of a tier by the mean position of their neighbours above, so that fewer links cross. The
// sort is stable: equal nodes stay in order of number.
func sortBelow(nodes []int32, t int, tier []uint8, ports *Ports, at []Point) {
	mean := make(map[int32]float64, len(nodes))
	for _, n := range nodes {
		sum, count := 0.0, 0
		for _, p := range ports.of(n) {
			if int(tier[p.peer]) > t {
				sum += at[p.peer].X
				count++
			}
		}
		if count > 0 {
			mean[n] = sum / float64(count)
		}
	}
	slices.SortStableFunc(nodes, func(a, b int32) int { return cmp.Compare(mean[a], mean[b]) })
}

// onCircle returns the point at an angle in turns, from 0 to 1, clockwise from the top.
func onCircle(turn, radius float64) Point {
	sin, cos := math.Sincos(float64(2 * math.Pi * turn))
	return Point{snap(0.5 + float64(radius*sin)), snap(0.5 - float64(radius*cos))}
}

// snap rounds to a grid finer than any picture can show, so that processors that differ in the last bit still produce
// the same bytes.
func snap(x float64) float64 { return math.Round(float64(x*1e6)) / 1e6 }

package topo

import (
	"fmt"
	"slices"
)

// Tree finds a multicast tree from a host to others along shortest paths. Its links are ordered so that each starts at
// the source or where an earlier one ends, and each node is entered once. The source and repeated members are ignored.
// pick chooses among n equal hops, 0 to n-1, and is called from each member towards the source; nil takes the first.
//
// A packet starts on channel 0 and moves up one channel with each global link it passes.
func (g *Graph) Tree(r *Routes, src int32, members []int32, pick func(n int) int) ([]Directed, error) {
	var out, path []Directed
	// Global links passed on the way to each node of the tree; -1 if the node is not in it.
	globals := slices.Repeat([]int32{-1}, len(g.Nodes))
	if src < 0 || int(src) >= len(g.Nodes) {
		return nil, fmt.Errorf("there is no node %d; there are %d", src, len(g.Nodes))
	}
	globals[src] = 0
	for _, m := range members {
		if m < 0 || int(m) >= len(g.Nodes) {
			return nil, fmt.Errorf("there is no node %d; there are %d", m, len(g.Nodes))
		}
		if !r.Reachable(m, src) {
			return nil, fmt.Errorf("%s cannot reach %s: no path", g.name(src), g.name(m))
		}
		// From the member to the tree, so that no node is entered twice: paths towards the member could meet again
		// after they part.
		path = path[:0]
		for node := m; globals[node] < 0; {
			next := r.Next(node, src)
			k := 0
			if pick != nil && len(next) > 1 {
				k = pick(len(next))
			}
			p := r.ports.Of(node)[next[k].Port]
			path = append(path, Directed{Link: p.Link, From: p.Peer, To: node})
			node = p.Peer
		}
		for _, l := range slices.Backward(path) {
			passed := globals[l.From]
			l.Channel = uint8(min(int(passed), g.channels()-1))
			if g.Links[l.Link].Global {
				passed++
			}
			globals[l.To] = passed
			out = append(out, l)
		}
	}
	return out, nil
}

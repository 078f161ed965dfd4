package topo

import (
	"fmt"

	"farflash/numeric/units"
)

// maxPlanes is the largest number of parallel networks that a host can be linked to.
const maxPlanes = 16

// planes makes n copies of a network that share its hosts, each of which has a link to every copy. Switches of the
// copies after the first have the prefix p1., p2. and so on, and are in the same pods.
func (g *Graph) planes(n int) (*Graph, error) {
	hosts, switches := g.Hosts(), len(g.Nodes)-g.Hosts()
	if int64(switches)*int64(n) > maxSwitches || int64(len(g.Links))*int64(n) > maxLinks {
		return nil, units.Wrong("planes",
			"%d planes of %d switches and %d links are too many; use at most %d switches and %d links", n, switches,
			len(g.Links), maxSwitches, maxLinks)
	}
	out := &Graph{Nodes: g.Nodes, Links: g.Links, Channels: g.Channels}
	for p := 1; p < n; p++ {
		for _, s := range g.Nodes[hosts:] {
			s.Name = fmt.Sprintf("p%d.%s", p, s.Name)
			out.Nodes = append(out.Nodes, s)
		}
		behind := func(node int32) int32 {
			if int(node) < hosts {
				return node
			}
			return node + int32(p*switches)
		}
		for _, l := range g.Links {
			l.A, l.B = behind(l.A), behind(l.B)
			out.Links = append(out.Links, l)
		}
	}
	return out, nil
}

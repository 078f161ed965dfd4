package scenario

import (
	"fmt"

	"farflash/model/fabric/topo"
	"farflash/scenario/peer"
)

// NodeName returns the name of a node of a topology file.
func NodeName(t *peer.NS3Topology, i int) string {
	if t.IsSwitch(i) {
		return fmt.Sprintf("s%d", i)
	}
	return fmt.Sprintf("h%d", i)
}

// topologyGraph returns the graph of a topology file.
func topologyGraph(t *peer.NS3Topology) *topo.Graph {
	g := &topo.Graph{Channels: 1}
	for i := range t.Nodes {
		n := topo.Node{Name: NodeName(t, i), Pod: -1}
		if t.IsSwitch(i) {
			n.Kind = topo.Switch
		}
		g.Nodes = append(g.Nodes, n)
	}
	for _, l := range t.Links {
		g.Links = append(g.Links,
			topo.Link{A: int32(l.A), B: int32(l.B), Rate: l.Rate, Delay: l.Delay, Loss: l.ErrorRate})
	}
	g.SetTiers()
	return g
}

package topo

import "fmt"

// Check reports the first reason why the graph cannot be simulated, with the names of the nodes.
func (g *Graph) Check() error {
	_, err := g.CheckedRoutes()
	return err
}

// CheckedRoutes is Check followed by Route with all links up.
func (g *Graph) CheckedRoutes() (*Routes, error) {
	if err := g.checkParts(); err != nil {
		return nil, err
	}
	r := g.Route(nil)
	if err := r.checkWays(); err != nil {
		return nil, err
	}
	return r, nil
}

// checkParts checks nodes and links one by one.
func (g *Graph) checkParts() error {
	if g.Channels < 0 || g.Channels > maxChannels {
		return fmt.Errorf("%d channels are not possible; use 1 to %d", g.Channels, maxChannels)
	}
	hosts := g.Hosts()
	if hosts == 0 {
		return fmt.Errorf("the network has no host")
	}
	if n := len(g.Nodes) - hosts; n > maxSwitches {
		return fmt.Errorf("%d switches are more than %d", n, maxSwitches)
	}
	degree := make([]int, len(g.Nodes))
	for i := range g.Links {
		if err := g.checkLink(i); err != nil {
			return err
		}
		degree[g.Links[i].A]++
		degree[g.Links[i].B]++
	}
	for i, d := range degree {
		if d > maxPorts {
			return fmt.Errorf("%s has %d links; a node has at most %d", g.name(int32(i)), d, maxPorts)
		}
		if d == 0 && g.Nodes[i].Kind == Host {
			return fmt.Errorf("%s has no link", g.name(int32(i)))
		}
	}
	return nil
}

func (g *Graph) checkLink(i int) error {
	l := &g.Links[i]
	for _, end := range [2]int32{l.A, l.B} {
		if end < 0 || int(end) >= len(g.Nodes) {
			return fmt.Errorf("link %d ends at node %d; nodes are numbered from 0 to %d", i, end, len(g.Nodes)-1)
		}
	}
	between := g.name(l.A) + " to " + g.name(l.B)
	switch {
	case l.A == l.B:
		return fmt.Errorf("the link from %s ends at the same node", between)
	case l.Rate <= 0:
		return fmt.Errorf("the link from %s has no rate", between)
	case l.Delay < 0:
		return fmt.Errorf("the link from %s has a negative delay", between)
	case !(l.Loss >= 0 && l.Loss < 1):
		return fmt.Errorf("the link from %s loses %v of its packets; use at least 0 and less than 1", between, l.Loss)
	case l.Global && (g.Nodes[l.A].Kind == Host || g.Nodes[l.B].Kind == Host):
		return fmt.Errorf("the link from %s is global but ends at a host", between)
	}
	return nil
}

// checkWays looks for two hosts that cannot reach each other. Destinations with the same neighbours are reached alike,
// so one of each class is enough, plus a second one for the first itself.
func (r *Routes) checkWays() error {
	g := r.graph
	for _, members := range r.members {
		for src := range int32(len(g.Nodes)) {
			if g.Nodes[src].Kind != Host {
				continue
			}
			to := members[0]
			if to == src && len(members) > 1 {
				to = members[1]
			}
			if !r.Reachable(src, to) {
				return fmt.Errorf("%s cannot reach %s: no path", g.name(src), g.name(to))
			}
		}
	}
	return nil
}

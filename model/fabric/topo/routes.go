package topo

import (
	"fmt"
	"slices"
)

// Hop is one link out of a node.
type Hop struct {
	Port    uint16 // Port is the node's port, from 0.
	Channel uint8  // Channel is the virtual channel to take on the link.
}

// Routes are the shortest paths from every node to every host over the links that are up, through no host: those with
// the fewest global links, and the fewest links among those. Equal paths have the HPCC simulator's order.
type Routes struct {
	graph *Graph
	ports *Ports
	down  []bool

	class   []int32   // of each node: its class, shared by hosts with the same neighbours; -1 for a switch
	members [][]int32 // the hosts of each class, ascending

	columns int     // of rows
	column  []int32 // of each node; a host with a single link uses its switch's
	alone   []int32 // of a host with a single link: its Hop in hops, one for each channel; -1 for other nodes
	rows    []row   // by class and column
	hops    []Hop   // the lists that rows refer to

	lastFirst []int32 // of each node, in last, plus one entry at the end
	last      []delivery
}

// row describes how a node reaches the hosts of a class.
type row struct {
	first    uint32 // in Routes.hops
	count    uint16 // 0 where the host itself is next
	distance uint16 // in links; far is no path
}

const far = 1<<16 - 1

// delivery is the last hop to a host: the links that a neighbour has to it.
type delivery struct {
	neighbour int32
	first     uint32
	count     uint16
}

// arc is a link as seen by the search.
type arc struct {
	peer int32
	port uint16 // at the peer
	cost uint64
}

// Path costs are compared as one number: a global link outweighs any number of links.
const (
	perHop    = 1
	perGlobal = 1<<32 + perHop
	noPath    = 1<<64 - 1
)

// Equal paths have a fixed order, that of the HPCC simulator: a search goes breadth first from the destination and
// visits each node's neighbours by ascending node number, and the next hops of a node are in the order in which the
// search visited them. Parallel links are in order of port number.
//
// Hosts that are attached to the same switches share a row of the table, and a host with a single link has the next
// hops of its switch; so the table has a row for each switch with hosts, not for each host.

// Route finds the shortest paths over the links that are not down; nil: all are up.
func (g *Graph) Route(down []bool) *Routes {
	if len(down) != 0 && len(down) != len(g.Links) {
		panic(fmt.Sprintf("topo: Route with the states of %d links; there are %d", len(down), len(g.Links)))
	}
	n := len(g.Nodes)
	r := &Routes{graph: g, ports: g.ports(), down: slices.Clone(down), class: make([]int32, n),
		column: make([]int32, n),
		alone:  make([]int32, n), lastFirst: make([]int32, n+1)}
	s := &search{r: r, cost: make([]uint64, n), counts: make([]int32, n+1), seen: map[string]uint32{},
		before: make([]row, n)}
	s.link()
	r.classify(s)
	s.drop()
	r.rows = make([]row, len(r.members)*r.columns)
	for c := range r.members {
		s.run(c)
	}
	return r
}

// up reports whether a link is up.
func (r *Routes) up(link int32) bool { return int(link) >= len(r.down) || !r.down[link] }

// classify groups the hosts by their neighbours, assigns columns to nodes, and records the last hops.
func (r *Routes) classify(s *search) {
	g := r.graph
	final := uint8(g.channels() - 1)
	classes := map[string]int32{}
	var key []byte
	for i := range g.Nodes {
		node := int32(i)
		r.class[i], r.column[i], r.alone[i] = -1, -1, -1
		r.lastFirst[i] = int32(len(r.last))
		if g.Nodes[i].Kind == Switch {
			continue
		}
		key = key[:0]
		arcs := s.of(node)
		for k := 0; k < len(arcs); {
			peer, ports := arcs[k].peer, s.list[:0]
			for ; k < len(arcs) && arcs[k].peer == peer; k++ {
				ports = append(ports, Hop{arcs[k].port, final})
			}
			s.list = ports
			first, count := s.intern(ports)
			r.last = append(r.last, delivery{peer, first, count})
			key = append(key, byte(peer), byte(peer>>8), byte(peer>>16), byte(peer>>24))
		}
		c, ok := classes[string(key)]
		if !ok {
			c = int32(len(r.members))
			classes[string(key)] = c
			r.members = append(r.members, nil)
		}
		r.class[i] = c
		r.members[c] = append(r.members[c], node)
		if len(arcs) == 1 && g.Nodes[arcs[0].peer].Kind == Switch {
			r.alone[i] = r.soleHops(s, node)
		}
	}
	r.lastFirst[len(g.Nodes)] = int32(len(r.last))
	for i := range g.Nodes {
		if r.alone[i] < 0 {
			r.column[i] = int32(r.columns)
			r.columns++
		}
	}
	for i := range g.Nodes {
		if r.alone[i] >= 0 {
			r.column[i] = r.column[s.of(int32(i))[0].peer]
		}
	}
}

// soleHops stores the only hop of a host for each channel, one after the other.
func (r *Routes) soleHops(s *search, host int32) int32 {
	s.list = s.list[:0]
	for k, p := range r.ports.of(host) {
		if !r.up(p.link) {
			continue
		}
		for c := range r.graph.channels() {
			s.list = append(s.list, Hop{uint16(k), uint8(c)})
		}
	}
	first, _ := s.intern(s.list)
	return int32(first)
}

// Next returns the next hops to a host, in fixed order and not to be changed; none without a path.
func (r *Routes) Next(node, dst int32) []Hop {
	if uint(node) >= uint(len(r.column)) || uint(dst) >= uint(len(r.class)) {
		panic(r.noNode(node, dst))
	}
	if node == dst {
		return nil
	}
	w := &r.rows[int(r.class[dst])*r.columns+int(r.column[node])]
	if a := r.alone[node]; a >= 0 {
		switch {
		case w.distance == far:
			return nil
		case w.count > 0:
			a += int32(r.hops[w.first].Channel)
		default:
			a += int32(r.graph.channels() - 1)
		}
		return r.hops[a : a+1 : a+1]
	}
	if w.distance != 1 {
		return r.hops[w.first : w.first+uint32(w.count) : w.first+uint32(w.count)]
	}
	for _, l := range r.last[r.lastFirst[dst]:r.lastFirst[dst+1]] {
		if l.neighbour == node {
			return r.hops[l.first : l.first+uint32(l.count) : l.first+uint32(l.count)]
		}
	}
	return nil
}

// Distance returns the number of links to a host, -1 without a path.
func (r *Routes) Distance(node, dst int32) int {
	if uint(node) >= uint(len(r.column)) || uint(dst) >= uint(len(r.class)) {
		panic(r.noNode(node, dst))
	}
	if node == dst {
		return 0
	}
	w := &r.rows[int(r.class[dst])*r.columns+int(r.column[node])]
	switch {
	case w.distance == far:
		return -1
	case r.alone[node] >= 0:
		return int(w.distance) + 1
	}
	return int(w.distance)
}

// Reachable reports whether there is a path from a node to a host.
func (r *Routes) Reachable(node, dst int32) bool { return r.Distance(node, dst) >= 0 }

// noNode is the refusal of a node that the graph does not have.
//
//go:noinline
func (r *Routes) noNode(node, dst int32) string {
	return fmt.Sprintf("topo: no route from node %d to node %d; there are %d nodes", node, dst, len(r.class))
}

// Ports returns the ports of the graph's nodes, to which Hop refers.
func (r *Routes) Ports() *Ports { return r.ports }

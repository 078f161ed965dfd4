// Package topo describes the shape of a network: hosts, switches, the links between them, and the paths that packets
// can take.
//
// Its main type is Graph. Build makes the shapes of the literature (star, dumbbell, leaf-spine, Clos, fat-tree,
// dragonfly) and explicit ones; Route finds the shortest paths, Check rejects graphs that cannot be simulated, and
// Cycle finds the circular waits in which flow control by pausing could deadlock. Partition and Layout serve parallel
// runs and pictures.
//
// The Clos is that of SNIS (section III-A) and SRC (section IV): hosts below ToRs, every ToR linked to every leaf of
// its pod, every leaf to every spine. Fat-trees follow Al-Fares et al. (SIGCOMM 2008), dragonflies Kim et al. (ISCA
// 2008). Equal paths are ordered as in the HPCC simulator.
//
// It leaves out how a switch chooses among equal paths, paths that are not shortest, queues, and any time beyond a
// link's delay.
package topo

import (
	"fmt"

	"farflash/numeric/units"
	"farflash/sim"
)

// Kind is the kind of a node.
type Kind uint8

const (
	Host Kind = iota
	Switch
)

// Node is a host or a switch.
type Node struct {
	Name string
	Kind Kind
	// Tier is 0 for hosts and increases upwards, as drawn in a picture of the network.
	Tier uint8
	// Pod groups nodes that belong together; -1 is none. Simulations are divided by pods.
	Pod int32
}

// Link is a cable between two nodes, the same in both directions.
type Link struct {
	A, B  int32
	Rate  units.BitRate
	Delay sim.Time
	// Loss is the probability that a packet is corrupted on the link, in each direction.
	Loss float64
	// Global marks a link between groups of a dragonfly. Paths minimise global links first, and then links.
	Global bool
}

// Graph is a network of nodes from 0. Port k of a node, from 0, is the k-th entry of Links that mentions it.
type Graph struct {
	Nodes []Node
	Links []Link
	// Channels is the largest number of virtual channels that a packet uses one after the other so that no cycle of
	// waits can form; 1 where none can anyway. Zero means 1.
	Channels int
}

// Limits of a graph: ports are numbered and distances counted in 16 bits.
const (
	maxPorts    = 1<<16 - 1
	maxSwitches = 1<<16 - 4
	maxChannels = 1 << 8
)

// port is where a link is attached to a node.
type port struct {
	// link is the index of the link, Peer the node at its other end.
	link, peer int32
}

// Ports are the ports of all nodes.
type Ports struct {
	first []int32 // of each node, plus one entry at the end
	list  []port
	at    [][2]uint16 // of each link: its port number at A and at B
}

// of returns the ports of a node, by port number.
func (p *Ports) of(node int32) []port { return p.list[p.first[node]:p.first[node+1]] }

// Number returns a link's port number at one of its ends: at A, or else at B.
func (p *Ports) Number(link int32, atA bool) uint16 {
	if atA {
		return p.at[link][0]
	}
	return p.at[link][1]
}

// ports numbers the ports of a graph. All links must end at its nodes.
func (g *Graph) ports() *Ports {
	p := &Ports{first: make([]int32, len(g.Nodes)+1), list: make([]port, 2*len(g.Links)),
		at: make([][2]uint16, len(g.Links))}
	for _, l := range g.Links {
		p.first[l.A+1]++
		p.first[l.B+1]++
	}
	for i := range g.Nodes {
		p.first[i+1] += p.first[i]
	}
	next := make([]int32, len(g.Nodes))
	add := func(node, link, peer int32) uint16 {
		k := next[node]
		next[node]++
		p.list[p.first[node]+k] = port{link, peer}
		return uint16(k)
	}
	for i, l := range g.Links {
		p.at[i] = [2]uint16{add(l.A, int32(i), l.B), add(l.B, int32(i), l.A)}
	}
	return p
}

// Hosts returns the number of hosts.
func (g *Graph) Hosts() int {
	n := 0
	for i := range g.Nodes {
		if g.Nodes[i].Kind == Host {
			n++
		}
	}
	return n
}

func (g *Graph) channels() int { return max(g.Channels, 1) }

// name returns the name of a node in errors.
func (g *Graph) name(node int32) string {
	if node < 0 || int(node) >= len(g.Nodes) || g.Nodes[node].Name == "" {
		return fmt.Sprintf("node %d", node)
	}
	return g.Nodes[node].Name
}

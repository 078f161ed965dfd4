// Package topo is the shape of a network: hosts, switches, the links between them,
// and the paths that packets may take.
//
// Its main type is Graph. Build makes the shapes of the literature (star, dumbbell,
// leaf-spine, Clos, fat-tree, dragonfly) and explicit ones; Route finds the shortest paths, Check
// refuses what cannot work, and Cycle finds the circular waits that flow control by pausing could
// lock up in. Tree, Partition and Layout serve multicast, parallel runs and pictures.
//
// The Clos is that of SNIS (section III-A) and SRC (section IV): hosts below ToRs, every ToR to
// every leaf of its pod, every leaf to every spine. Fat-trees follow Al-Fares et al. (SIGCOMM
// 2008), dragonflies Kim et al. (ISCA 2008). Equal paths have the order that the HPCC simulator
// gives them.
//
// What it leaves out: how a switch chooses among equal paths, paths that are not the shortest,
// queues, and time beyond a link's delay.
package topo

import (
	"fmt"

	"farflash/numeric/units"
	"farflash/sim"
)

// Kind is what a node is.
type Kind uint8

// The kinds.
const (
	Host Kind = iota
	Switch
)

// Node is a host or a switch.
type Node struct {
	Name string
	Kind Kind
	// Tier is 0 for hosts and counts upwards, as a picture of the network has it.
	Tier uint8
	// Pod groups nodes that stand together: -1 is none. A simulation is divided by pods.
	Pod int32
}

// Link is a cable between two nodes, the same in both directions.
type Link struct {
	A, B  int32
	Rate  units.BitRate
	Delay sim.Time
	// Loss is the probability that a packet is corrupted on the way, in each direction.
	Loss float64
	// Global is a link between the groups of a dragonfly. A path has as few global links
	// as it can, and only then as few links.
	Global bool
}

// Graph is a network. Nodes are numbered from 0, hosts and switches in any order.
// Port k of a node is the k-th of Links that mentions it, from 0.
type Graph struct {
	Nodes []Node
	Links []Link
	// Channels is how many virtual channels a packet passes at most, one after the
	// other, so that no cycle of waits can form; 1 where none can anyway. Zero is 1.
	Channels int
}

// What a graph has at most: ports are numbered and distances counted in 16 bits.
const (
	MaxPorts    = 1<<16 - 1
	MaxSwitches = 1<<16 - 4
	MaxChannels = 1 << 8
)

// Port is where a link is attached to a node.
type Port struct {
	// Link is the index of the link, Peer the node at its other end.
	Link, Peer int32
}

// Ports are all nodes' ports.
type Ports struct {
	first []int32 // of each node; one more at the end
	list  []Port
	at    [][2]uint16 // of each link: its port number at A and at B
}

// Of returns the ports of a node, by port number.
func (p *Ports) Of(node int32) []Port { return p.list[p.first[node]:p.first[node+1]] }

// Number returns a link's port number at one of its ends: at A, or else at B.
func (p *Ports) Number(link int32, atA bool) uint16 {
	if atA {
		return p.at[link][0]
	}
	return p.at[link][1]
}

// Ports numbers the ports of a graph whose links end at its nodes.
func (g *Graph) Ports() *Ports {
	p := &Ports{first: make([]int32, len(g.Nodes)+1), list: make([]Port, 2*len(g.Links)),
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
		p.list[p.first[node]+k] = Port{link, peer}
		return uint16(k)
	}
	for i, l := range g.Links {
		p.at[i] = [2]uint16{add(l.A, int32(i), l.B), add(l.B, int32(i), l.A)}
	}
	return p
}

// Hosts is the number of hosts.
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

// name is what errors call a node.
func (g *Graph) name(node int32) string {
	if node < 0 || int(node) >= len(g.Nodes) || g.Nodes[node].Name == "" {
		return fmt.Sprintf("node %d", node)
	}
	return g.Nodes[node].Name
}

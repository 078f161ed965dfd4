package topo

import (
	"farflash/units"
)

// Config is a network's shape. Exactly one of its shapes is given.
type Config struct {
	// Star is one switch with all hosts.
	Star *Star
	// Dumbbell is two switches with hosts and one link between them.
	Dumbbell *Dumbbell
	// LeafSpine is hosts below leaves, and every leaf linked to every spine.
	LeafSpine *LeafSpine
	// Clos is pods of ToRs and leaves below spines, as in the papers SNIS and SRC.
	Clos *Clos
	// FatTree is the three-tier network of equal switches of Al-Fares et al. (SIGCOMM 2008).
	FatTree *FatTree
	// Dragonfly is fully linked groups of routers, every group linked to every other (Kim et al., ISCA 2008).
	Dragonfly *Dragonfly
	// Links lists every link by the names of its ends. Hosts are h0, h1 and so on
	// without gaps: a name of h and a number is a host, every other name is a switch.
	Links []LinkSpec
	// Planes is how many networks of the shape there are side by side, each host with a link to each; 0 is one. A queue pair keeps to one plane, by its hash.
	Planes int
}

// Star is one switch, s0, with all hosts.
type Star struct {
	// Hosts is how many hosts there are.
	Hosts int
}

// Dumbbell is two switches, s0 and s1, and one link between them, which has the rate
// of the links between switches.
type Dumbbell struct {
	// Left is how many hosts s0 has; they are numbered first.
	Left int
	// Right is how many hosts s1 has.
	Right int
}

// LeafSpine is two tiers of switches. A leaf and its hosts are a pod.
type LeafSpine struct {
	// Leaves is how many leaves there are.
	Leaves int
	// Spines is how many spines there are; each has a link to every leaf.
	Spines int
	// HostsPerLeaf is how many hosts each leaf has.
	HostsPerLeaf int
}

// Clos is three tiers of switches: every host has a link to its ToR, every ToR to every
// leaf of its pod, every leaf to every spine.
type Clos struct {
	// Pods is how many pods there are.
	Pods int
	// Leaves is how many leaves each pod has.
	Leaves int
	// Tors is how many top-of-rack switches each pod has.
	Tors int
	// HostsPerPod is how many hosts each pod has, spread evenly over its ToRs.
	HostsPerPod int
	// Spines is how many spines there are in all.
	Spines int
}

// FatTree is three tiers of switches that all have K ports: K pods of K/2 edge and K/2
// aggregation switches, (K/2)^2 core switches and K^3/4 hosts.
type FatTree struct {
	// K is how many ports a switch has, an even number.
	K int
}

// Dragonfly is groups of routers. Routers of a group are all linked to each other. The
// group's global links are spread evenly over the other groups; those that are left over stay
// unused, and there are none left over in the balanced case of Groups = Routers*GlobalLinks + 1.
// Global links have the rate of the links between switches.
type Dragonfly struct {
	// Groups is how many groups there are, at most Routers*GlobalLinks + 1.
	Groups int
	// Routers is how many routers each group has (a of Kim et al.).
	Routers int
	// HostsPerRouter is how many hosts each router has (p of Kim et al.).
	HostsPerRouter int
	// GlobalLinks is how many links to other groups each router has (h of Kim et al.).
	GlobalLinks int
}

// LinkSpec is a link between two named nodes.
type LinkSpec struct {
	// A is the name of one end: h and a number is a host, any other name a switch.
	A string
	// B is the name of the other end.
	B string
	// Rate of each direction. Without it, the link of a host has the rate of host
	// links, and one between switches that of links between switches.
	Rate units.BitRate
	// Delay is the propagation delay. Without it, it is that of all links.
	Delay *units.Duration
	// Loss is the probability that a packet is corrupted on the way, in each direction.
	Loss units.Fraction
}

// DefaultConfig is a star of two hosts.
func DefaultConfig() Config { return Config{Star: &Star{Hosts: 2}} }

package topo

import (
	"farflash/numeric/units"
)

// Config is a network's shape, exactly one of the following.
type Config struct {
	Star      *Star      // Star is one switch with all hosts.
	Dumbbell  *Dumbbell  // Dumbbell is two switches with hosts and one link between them.
	LeafSpine *LeafSpine // LeafSpine is hosts below leaves, and every leaf linked to every spine.
	// Clos is pods of ToRs and leaves below spines, as in the papers SNIS and SRC.
	Clos *Clos
	// FatTree is the three-tier network of equal switches of Al-Fares et al. (SIGCOMM 2008).
	FatTree *FatTree
	// Dragonfly is fully linked groups of routers, every group linked to every other (Kim et al., ISCA 2008).
	Dragonfly *Dragonfly
	// Links lists every link by the names of its ends. Hosts are h0, h1 and so on without gaps; every other name is a
	// switch.
	Links []LinkSpec
	// Planes is the number of parallel networks of this shape. Each host has a link to each; a queue pair keeps to one,
	// chosen by its hash. 0 means one.
	Planes int
}

// Star is one switch, s0, with all hosts.
type Star struct {
	Hosts int // Hosts is the number of hosts.
}

// Dumbbell is two switches, s0 and s1, with one link between them, which has the rate of links between switches.
type Dumbbell struct {
	Left  int // Left is the number of hosts of s0. They are numbered first.
	Right int // Right is the number of hosts of s1.
}

// LeafSpine is two tiers of switches. A leaf and its hosts are a pod.
type LeafSpine struct {
	Leaves       int // Leaves is the number of leaves.
	Spines       int // Spines is the number of spines. Each has a link to every leaf.
	HostsPerLeaf int // HostsPerLeaf is the number of hosts of each leaf.
}

// Clos is three tiers of switches. Every host has a link to its ToR, every ToR to every leaf of its pod, every leaf to
// every spine.
type Clos struct {
	Pods   int // Pods is the number of pods.
	Leaves int // Leaves is the number of leaves of each pod.
	Tors   int // Tors is the number of top-of-rack switches of each pod.
	// HostsPerPod is the number of hosts of each pod, spread evenly over its ToRs.
	HostsPerPod int
	Spines      int // Spines is the total number of spines.
}

// FatTree is three tiers of switches that all have K ports: K pods of K/2 edge and K/2
// aggregation switches, (K/2)^2 core switches and K^3/4 hosts.
type FatTree struct {
	K int // K is the number of ports of a switch, an even number.
}

// Dragonfly is groups of routers that are linked to each other. A group's global links are spread evenly over the other
// groups; any remainder stays unused (none with groups = routers*global_links + 1). Global links have the rate of links
// between switches.
type Dragonfly struct {
	Groups         int // Groups is the number of groups, at most routers*global_links + 1.
	Routers        int // Routers is the number of routers in each group (a of Kim et al.).
	HostsPerRouter int // HostsPerRouter is the number of hosts of each router (p of Kim et al.).
	// GlobalLinks is each router's number of links to other groups (h of Kim et al.).
	GlobalLinks int
}

// LinkSpec is a link between two named nodes.
type LinkSpec struct {
	A string // A is one end: h and a number is a host, any other name a switch.
	B string // B is the other end.
	// Rate is the rate of each direction. The default is host_link for a host's link, and up_link between switches.
	Rate  units.BitRate
	Delay *units.Duration // Delay is the propagation delay. The default is the network's.
	// Loss is the probability that the link corrupts a packet, in each direction.
	Loss units.Fraction
}

// DefaultConfig is a star of two hosts.
func DefaultConfig() Config { return Config{Star: &Star{Hosts: 2}} }

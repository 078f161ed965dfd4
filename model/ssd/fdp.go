package ssd

import (
	"fmt"

	"farflash/numeric/units"
)

// FDP is Flexible Data Placement (NVMe TP4146): each write names a reclaim unit handle, and data of different handles
// go to different reclaim units, which are superblocks. Each handle has one in each reclaim group.
type FDP struct {
	// Handles is the number of the drive's reclaim unit handles, shared by all namespaces.
	Handles int
	// Groups is the number of reclaim groups, each of an equal number of dies, in order of channel, chip and die.
	Groups int
	// Isolation is how collection treats data of different handles: initially writes all moved data together;
	// persistently keeps those of each handle apart.
	Isolation Isolation
}

// Isolation is how long data of different handles stay apart.
type Isolation uint8

const (
	InitiallyIsolated Isolation = iota
	PersistentlyIsolated
	isolations
)

var isolationNames = units.Names[Isolation]{"initially", "persistently"}

func (i Isolation) String() string { return isolationNames.Name(i) }

func (i Isolation) MarshalText() ([]byte, error) { return isolationNames.Marshal(i) }

func (i *Isolation) UnmarshalText(text []byte) error { return isolationNames.Unmarshal(text, i) }

// DefaultFDP has eight initially isolated handles (Allison et al., EuroSys 2025, on a Samsung PM9D3).
func DefaultFDP() FDP { return FDP{Handles: 8, Groups: 1} }

// mostPlacements is the number of placements that a request can distinguish.
const mostPlacements = 1 << 8

// maxHandles is the largest number of reclaim unit handles of a drive.
const maxHandles = 64

// placement is the destination that a placement hint selects.
type placement struct {
	stream uint8 // of the translation layer
	group  uint8 // reclaim group
}

// placements returns the destinations of a namespace's placement hints, those of the first reclaim group first. first
// is the namespace's first stream if handles are not shared.
func (c *Config) placements(ns *Namespace, first int) []placement {
	handles := ns.Handles
	if len(handles) == 0 {
		n := max(ns.Streams, 1)
		if c.FDP != nil {
			first, n = 0, c.FDP.Handles
		}
		handles = make([]int, n)
		for k := range handles {
			handles[k] = first + k
		}
	}
	var out []placement
	for group := range c.Groups() {
		for _, k := range handles {
			out = append(out, placement{uint8(k), uint8(group)})
		}
	}
	return out
}

// Placements returns how many placement hints a namespace has in each reclaim group, 0 for no namespace.
func (c *Config) Placements(namespace int) int {
	if uint(namespace) >= uint(len(c.namespaces())) {
		return 0
	}
	return len(c.placements(&c.namespaces()[namespace], 0)) / c.Groups()
}

// streamsApart reports whether the survivors of each stream are kept apart.
func (c *Config) streamsApart() bool {
	return c.Collection.Streams || c.Quirks.FrontiersAtOnce || c.FDP != nil && c.FDP.Isolation == PersistentlyIsolated
}

// validateFDP checks all that does not depend on the geometry.
func (c *Config) validateFDP(bad *units.Faults) {
	f := c.FDP
	if f == nil {
		for i := range c.Namespaces {
			bad.Hold(len(c.Namespaces[i].Handles) == 0, fmt.Sprintf("namespaces[%d].handles", i),
				"handles need fdp; use streams, or add fdp")
		}
		return
	}
	bad.Hold(f.Handles >= 1 && f.Handles <= maxHandles, "fdp.handles", "%d is not possible; use 1 to %d", f.Handles,
		maxHandles)
	bad.Hold(f.Groups >= 1 && f.Groups <= mostPlacements, "fdp.groups", "%d is not possible; use 1 to %d", f.Groups,
		mostPlacements)
	bad.Hold(f.Groups*f.Handles <= mostPlacements, "fdp.groups",
		"%d groups of %d handles are %d placements, more than %d; lower groups or handles", f.Groups, f.Handles,
		f.Groups*f.Handles, mostPlacements)
	bad.Hold(f.Isolation < isolations, "fdp.isolation", "%d is not possible; use initially or persistently",
		f.Isolation)
	bad.Hold(!c.Collection.Streams, "collection.streams", "fdp.isolation determines where survivors go; leave it out")
	bad.Hold(c.Zones == nil, "fdp", "zones determine where data go; leave out zones or fdp")
	for i := range c.Namespaces {
		n := &c.Namespaces[i]
		bad.Hold(n.Streams <= 1, fmt.Sprintf("namespaces[%d].streams", i),
			"the drive's handles are its streams; leave it out, or use handles")
		key := fmt.Sprintf("namespaces[%d].handles", i)
		bad.Hold(len(n.Handles) <= maxStreams, key, "%d are more than %d", len(n.Handles), maxStreams)
		seen := map[int]bool{}
		for _, k := range n.Handles {
			bad.Hold(k >= 0 && k < f.Handles, key, "no handle %d; the drive has 0 to %d", k, f.Handles-1)
			bad.Hold(!seen[k], key, "handle %d is listed twice", k)
			seen[k] = true
		}
	}
}

// ReclaimUnit returns the size of a drive's reclaim unit.
func (c *Config) ReclaimUnit() units.Bytes {
	ns := c.layOut()
	p := c.planePools(ns)
	return c.superblockSize(p.size)
}

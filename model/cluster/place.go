package cluster

import (
	"farflash/model/cluster/placement"
	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// Placement is the policy that finds the targets of a chunk for protocols without groups.
type Placement uint8

// The policies, which package model/cluster/placement implements.
const (
	PlaceRandom Placement = iota // any targets but those of the gateway's last chunk, as in SURGE
	PlaceRing
	PlaceHRW
	PlaceJump
	PlaceMaglev
	PlaceStraw2
	PlaceBounded
	PlaceCopysets
)

var placementNames = units.Names[Placement]{"random", "ring", "hrw", "jump", "maglev", "straw2", "bounded-load",
	"copysets"}

// String returns the policy's name in scenarios.
func (p Placement) String() string { return placementNames.Name(p) }

// MarshalText returns the policy's name.
func (p Placement) MarshalText() ([]byte, error) { return placementNames.Marshal(p) }

// UnmarshalText parses a policy's name.
func (p *Placement) UnmarshalText(text []byte) error { return placementNames.Unmarshal(text, p) }

// Parameters of the policies, from their papers or from the systems that use them.
const (
	virtualNodes = placement.DefaultVirtualNodes
	boundedSlack = 0.25 // excess over the mean load that a target may have
	scatterWidth = 4    // of copysets, times the number of copies less one
)

// placer builds the placement of the targets that are present, weighted by capacity.
func (c *Cluster) placer() (placement.Placer, error) {
	m := placement.Uniform(len(c.targets))
	for t := range c.targets {
		if m.Weights[t] = c.targets[t].weight; c.bus.Away[t] {
			m.Weights[t] = 0
		}
	}
	if c.cfg.Racks > 0 {
		m.Domains = make([]int32, len(c.targets))
		for t := range m.Domains {
			m.Domains[t] = int32(t % c.cfg.Racks)
		}
	}
	switch c.cfg.Placement {
	case PlaceRing:
		return placement.NewRing(m, virtualNodes)
	case PlaceHRW:
		return placement.NewHRW(m)
	case PlaceJump:
		return placement.NewJump(m)
	case PlaceMaglev:
		return placement.NewMaglev(m, placement.MaglevTable(len(c.targets)))
	case PlaceStraw2:
		return placement.NewStraw2(m)
	case PlaceBounded:
		return placement.NewBoundedLoad(m, virtualNodes, boundedSlack)
	case PlaceCopysets:
		return placement.NewCopysets(m, c.copies, scatterWidth*max(c.copies-1, 1))
	}
	return placement.NewRandom(m, rng.NewStream(c.seed, "cluster/placement"), false)
}

// checkPlacer returns an error if the placement cannot find enough targets for a chunk's copies and their candidates.
func (c *Cluster) checkPlacer() error {
	if c.cfg.candidates() > 0 {
		return nil
	}
	if err := placement.Check(c.bus.Places, c.copies*max(c.cfg.Choices, 1)); err != nil {
		return units.Within("placement", err)
	}
	return nil
}

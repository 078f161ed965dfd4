package cluster

import (
	"farflash/model/cluster/placement"
	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// Placement is how the targets of a chunk are found where no group bids for it.
type Placement uint8

// The choices, which package model/cluster/placement has.
const (
	PlaceRandom Placement = iota // any targets but those of the gateway's last chunk, as SURGE does it
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

// String is the choice's name in scenarios.
func (p Placement) String() string { return placementNames.Name(p) }

// MarshalText writes the choice's name.
func (p Placement) MarshalText() ([]byte, error) { return placementNames.Marshal(p) }

// UnmarshalText reads a choice's name.
func (p *Placement) UnmarshalText(text []byte) error { return placementNames.Unmarshal(text, p) }

// Parameters of the placements, those of their papers or of the systems that use them.
const (
	virtualNodes = placement.DefaultVirtualNodes
	boundedSlack = 0.25 // above the mean that a target's load may be
	scatterWidth = 4    // of copysets, times the number of copies less one
)

// placer makes what finds the targets of chunks. Weights are the targets' capacities.
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

// checkPlacer is an error if the placement cannot serve a chunk's copies and their candidates.
func (c *Cluster) checkPlacer() error {
	if c.cfg.candidates() > 0 {
		return nil
	}
	if err := placement.Check(c.bus.Places, c.copies*max(c.cfg.Choices, 1)); err != nil {
		return units.Within("placement", err)
	}
	return nil
}

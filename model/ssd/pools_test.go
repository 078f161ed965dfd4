package ssd

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPools verifies, for random drives and namespaces, the properties that superblocks depend on: every plane is in
// exactly one pool, all pools are alike, the planes of a pool belong to the same namespaces and the same reclaim group,
// a namespace writes to the pools of all its planes and no others, and successive pages of a superblock on one die have
// the same number within their blocks, so that one command programs them.
func TestPools(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.Mapping.Grain = 0
		g := &cfg.Geometry
		g.Channels, g.ChipsPerChannel = rapid.IntRange(1, 5).Draw(t, "channels"), rapid.IntRange(1, 4).Draw(t, "chips")
		g.DiesPerChip, g.PlanesPerDie = rapid.IntRange(1, 3).Draw(t, "dies"), rapid.IntRange(1, 6).Draw(t, "planes")
		static := rapid.Bool().Draw(t, "static")
		if static {
			cfg.Mapping.Allocation = AllocateStatic
		}
		whole := true // every namespace uses whole dies
		for range rapid.IntRange(0, 3).Draw(t, "namespaces") {
			n := Namespace{Channels: rapid.SliceOfDistinct(rapid.IntRange(0, g.Channels-1), rapid.ID).Draw(t,
				"of channels")}
			if rapid.IntRange(0, 3).Draw(t, "some planes") == 0 {
				n.Planes = []int{0}
				whole = whole && g.PlanesPerDie == 1
			}
			cfg.Namespaces = append(cfg.Namespaces, n)
		}
		groups := 1
		if len(cfg.Namespaces) == 0 && rapid.Bool().Draw(t, "several groups") {
			for groups = rapid.IntRange(2, 12).Draw(t, "groups"); g.Dies()%groups > 0; {
				groups--
			}
			cfg.FDP = &FDP{Handles: 1, Groups: groups}
		}
		ns := cfg.layOut()
		p := cfg.planePools(ns)
		p.give(ns)
		seen := make([]int, g.Planes())
		for pool := range p.count() {
			for _, plane := range p.planes(pool) {
				seen[plane]++
				if p.of[plane] != int32(pool) {
					t.Errorf("plane %d is in pool %d and in %d", plane, pool, p.of[plane])
				}
			}
		}
		for plane, n := range seen {
			if n != 1 {
				t.Errorf("plane %d is in %d pools", plane, n)
			}
		}
		if static && p.size != 1 || len(cfg.Namespaces) == 0 && !static && p.count() != groups {
			t.Errorf("%d pools of %d planes, %d groups", p.count(), p.size, groups)
		}
		// A group consists of consecutive dies on as few channels as possible, and its pools are consecutive in the
		// turn.
		dies := g.Dies() / groups
		for turn, pool := range ns[0].poolOf {
			group := p.group(pool)
			for _, plane := range p.planes(int(pool)) {
				if die := int(plane) / g.PlanesPerDie; len(cfg.Namespaces) == 0 && die/dies != group {
					t.Errorf("die %d is in group %d", die, group)
				}
			}
			if want := turn / (len(ns[0].poolOf) / groups); group != want {
				t.Errorf("the pool in turn %d is of group %d, not %d", turn, group, want)
			}
		}
		for i := range ns {
			uses := map[int32]bool{}
			for _, plane := range ns[i].planeOf {
				uses[plane] = true
			}
			for _, pool := range ns[i].poolOf {
				for _, plane := range p.planes(int(pool)) {
					if !uses[plane] {
						t.Errorf("namespace %d writes to plane %d, which is not its own", i, plane)
					}
					delete(uses, plane)
				}
			}
			if len(uses) > 0 {
				t.Errorf("namespace %d never writes to planes %v", i, uses)
			}
		}
		if p.size%g.PlanesPerDie != 0 || !whole {
			return
		}
		for pool := range p.count() {
			for k := 0; k < 3*p.size; k += g.PlanesPerDie {
				first, page := p.at(pool, k)
				for j := 1; j < g.PlanesPerDie; j++ {
					if plane, same := p.at(pool, k+j); plane != first+int32(j) || same != page {
						t.Errorf("page %d of pool %d is page %d of plane %d, %d on page %d of plane %d", k, pool,
							page, first, j, same, plane)
					}
				}
			}
		}
	})
}

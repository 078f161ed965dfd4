package topo

import (
	"testing"

	"farflash/numeric/units"
	"farflash/sim"
)

func TestPartition(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		n      int
		parts  int // expected number of parts
	}{
		{"star", Config{Star: &Star{8}}, 4, 1},
		{"dumbbell", Config{Dumbbell: &Dumbbell{3, 3}}, 4, 2},
		{"Clos in one", Config{Clos: &Clos{4, 2, 4, 64, 4}}, 1, 1},
		{"Clos in none", Config{Clos: &Clos{4, 2, 4, 64, 4}}, 0, 1},
		{"Clos in 2", Config{Clos: &Clos{4, 2, 4, 64, 4}}, 2, 2},
		{"Clos in 3", Config{Clos: &Clos{4, 2, 4, 64, 4}}, 3, 3},
		{"fat-tree", Config{FatTree: &FatTree{8}}, 8, 8},
		{"dragonfly", Config{Dragonfly: &Dragonfly{9, 4, 2, 2}}, 100, 9},
	} {
		g := build(t, c.config)
		parts := g.Partition(c.n)
		podPart, podsIn, loose := map[int32]int32{}, map[int32]int{}, map[int32]int{}
		seen := map[int32]bool{}
		for i, n := range g.Nodes {
			seen[parts[i]] = true
			if n.Pod < 0 {
				loose[parts[i]]++
				continue
			}
			if before, ok := podPart[n.Pod]; ok && before != parts[i] {
				t.Errorf("%s: pod %d is divided", c.name, n.Pod)
			} else if !ok {
				podPart[n.Pod] = parts[i]
				podsIn[parts[i]]++
			}
		}
		if len(seen) != c.parts {
			t.Errorf("%s: %d parts, want %d", c.name, len(seen), c.parts)
		}
		for p := range int32(c.parts) {
			if !seen[p] {
				t.Errorf("%s: nothing is in part %d", c.name, p)
			}
			for q := range p {
				if d := podsIn[p] - podsIn[q]; d < -1 || d > 1 {
					t.Errorf("%s: %d pods in part %d, %d in part %d", c.name, podsIn[p], p, podsIn[q], q)
				}
				if d := loose[p] - loose[q]; d < -1 || d > 1 {
					t.Errorf("%s: %d nodes without pod in part %d, %d in part %d", c.name, loose[p], p, loose[q], q)
				}
			}
		}
		want := microsecond
		if c.parts == 1 {
			want = sim.Forever
		}
		least := sim.Forever
		for i, row := range g.Delays(parts, c.parts) {
			for j, d := range row {
				if i != j {
					least = min(least, d)
				}
			}
		}
		if least != want {
			t.Errorf("%s: %v between parts, want %v", c.name, least, want)
		}
	}
	g := build(t, Config{Dumbbell: &Dumbbell{1, 1}})
	g.Links[0].Delay, g.Links[2].Delay = 0, 3*units.Microsecond
	of := g.Partition(2)
	if d := g.Delays(of, 2); d[0][1] != 3*units.Microsecond || d[1][0] != d[0][1] || d[0][0] != 0 || !g.Apart(of) {
		t.Errorf("%v between parts, want the middle link's 3us; apart: %v", d, g.Apart(of))
	}
	// Three in a row: from the first to the last it takes both delays.
	g = &Graph{Nodes: make([]Node, 3), Links: []Link{{A: 0, B: 1, Delay: 2}, {A: 2, B: 1, Delay: 5}}}
	of = []int32{0, 1, 2}
	if d := g.Delays(of, 3); d[0][2] != 7 || d[2][0] != 7 || d[1][2] != 5 {
		t.Errorf("%v between parts in a row", d)
	}
	if g.Links[1].Delay = 0; g.Apart(of) {
		t.Error("parts without a delay between them are apart")
	}
}

func TestLayout(t *testing.T) {
	for _, c := range []Config{
		{Star: &Star{5}}, {Dumbbell: &Dumbbell{2, 3}}, {LeafSpine: &LeafSpine{3, 2, 2}},
		{Clos: &Clos{4, 2, 4, 64, 4}}, {FatTree: &FatTree{8}},
		{Dragonfly: &Dragonfly{9, 4, 2, 2}},
		{Links: []LinkSpec{{A: "h0", B: "a"}, {A: "h1", B: "b"}, {A: "a", B: "c"}, {A: "b", B: "c"},
			{A: "h2", B: "a"}}},
	} {
		g := build(t, c)
		at := g.Layout()
		seen := map[Point]int{}
		for i, p := range at {
			if !(p.X >= 0 && p.X <= 1 && p.Y >= 0 && p.Y <= 1) {
				t.Errorf("%s is at %v", g.Nodes[i].Name, p)
			}
			if other, ok := seen[p]; ok {
				t.Errorf("%s and %s are at %v", g.Nodes[other].Name, g.Nodes[i].Name, p)
			}
			seen[p] = i
		}
		if c.Dragonfly != nil {
			continue
		}
		for _, l := range g.Links {
			if a, b := g.Nodes[l.A], g.Nodes[l.B]; a.Tier < b.Tier && at[l.A].Y <= at[l.B].Y ||
				a.Tier > b.Tier && at[l.A].Y >= at[l.B].Y {
				t.Errorf("%s at %v, %s at %v", a.Name, at[l.A], b.Name, at[l.B])
			}
		}
		// Switches without tiers are placed by their distance.
		if c.Links != nil {
			for i := range g.Nodes {
				g.Nodes[i].Tier = 0
			}
			for i, p := range g.Layout() {
				if p != at[i] {
					t.Errorf("%s is at %v without tiers, %v with", g.Nodes[i].Name, p, at[i])
				}
			}
			// h0 and h2 are below a, h1 below b.
			if !(at[0].X < at[2].X && at[2].X < at[1].X) {
				t.Errorf("hosts are at %v", at[:3])
			}
		}
	}
}

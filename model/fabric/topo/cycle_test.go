package topo

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// ring returns n switches in a ring, each with a host.
func ring(t testing.TB, n int) *Graph {
	var links []LinkSpec
	for i := range n {
		links = append(links, LinkSpec{A: fmt.Sprint("h", i), B: fmt.Sprint("s", i)},
			LinkSpec{A: fmt.Sprint("s", i), B: fmt.Sprint("s", (i+1)%n)})
	}
	return build(t, Config{Links: links})
}

// closed reports why a cycle is invalid; "" if it is valid.
func closed(g *Graph, cycle []Directed) string {
	for i, l := range cycle {
		next := cycle[(i+1)%len(cycle)]
		link := g.Links[l.Link]
		switch {
		case l.To != next.From:
			return "does not close"
		case (l.From != link.A || l.To != link.B) && (l.From != link.B || l.To != link.A):
			return "has a link that is not between its ends"
		case slices.Index(cycle, l) != i:
			return "has a link twice"
		}
	}
	return ""
}

func TestCycle(t *testing.T) {
	narrow := func(g *Graph) *Graph { g.Channels = 1; return g }
	for _, c := range []struct {
		name string
		g    *Graph
		want bool
	}{
		{"star", build(t, Config{Star: &Star{9}}), false},
		{"dumbbell", build(t, Config{Dumbbell: &Dumbbell{4, 4}}), false},
		{"leaf-spine", build(t, Config{LeafSpine: &LeafSpine{6, 3, 4}}), false},
		{"Clos", build(t, Config{Clos: &Clos{4, 2, 4, 64, 4}}), false},
		{"fat-tree", build(t, Config{FatTree: &FatTree{8}}), false},
		{"ring of 3", ring(t, 3), false},
		{"ring of 4", ring(t, 4), true},
		{"ring of 5", ring(t, 5), true},
		{"dragonfly", build(t, Config{Dragonfly: &Dragonfly{9, 4, 2, 2}}), false},
		{"dragonfly, doubled", build(t, Config{Dragonfly: &Dragonfly{5, 4, 2, 2}}), false},
		{"dragonfly with one channel", narrow(build(t, Config{Dragonfly: &Dragonfly{9, 4, 2, 2}})), true},
		{"the smallest dragonfly with one channel", narrow(build(t, Config{Dragonfly: &Dragonfly{3, 2, 1, 1}})), true},
	} {
		cycle := c.g.Cycle(c.g.Route(nil))
		if (cycle != nil) != c.want {
			t.Errorf("%s: cycle %s, want one: %v", c.name, c.g.Names(cycle), c.want)
		}
		if bad := closed(c.g, cycle); bad != "" {
			t.Errorf("%s: the cycle %s %s", c.name, c.g.Names(cycle), bad)
		}
	}
}

// TestFailureMakesCycle takes links of a safe Clos down: paths then go down and up again.
func TestFailureMakesCycle(t *testing.T) {
	g := build(t, Config{LeafSpine: &LeafSpine{4, 4, 1}})
	down := make([]bool, len(g.Links))
	// The remaining links form a ring: leaf0 spine0 leaf1 spine1 leaf2 spine2 leaf3 spine3.
	for i := range 4 {
		for j := range 4 {
			down[4+4*i+j] = j != i && j != (i+3)%4
		}
	}
	if c := g.Cycle(g.Route(down)); c == nil {
		t.Error("no cycle in a ring of eight switches")
	}
}

// TestCycleIsFound compares Cycle with a search over all paths of all pairs.
func TestCycleIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := random(t)
		r := g.Route(nil)
		cycle := g.Cycle(r)
		if found := g.search(r); !slices.Equal(found, cycle) {
			t.Fatalf("found %s, without asking which links lead up %s", g.Names(cycle), g.Names(found))
		}
		if bad := closed(g, cycle); bad != "" {
			t.Fatalf("%s %s", g.Names(cycle), bad)
		}
		waits := map[Directed]map[Directed]bool{}
		ports := g.ports()
		var follow func(node, dst int32, in Directed)
		follow = func(node, dst int32, in Directed) {
			for _, h := range r.Next(node, dst) {
				p := ports.of(node)[h.Port]
				out := Directed{p.link, node, p.peer, h.Channel}
				if in.From >= 0 {
					if waits[in] == nil {
						waits[in] = map[Directed]bool{}
					}
					waits[in][out] = true
				}
				follow(p.peer, dst, out)
			}
		}
		for src := range g.Nodes {
			for dst := range g.Nodes {
				if g.Nodes[src].Kind == Host && g.Nodes[dst].Kind == Host {
					follow(int32(src), int32(dst), Directed{From: -1})
				}
			}
		}
		for i, l := range cycle {
			if !waits[l][cycle[(i+1)%len(cycle)]] {
				t.Fatalf("%s: nothing goes from %v to the next", g.Names(cycle), l)
			}
		}
		// Remove links that wait for no waiting link until all are gone, or none can be removed.
		for left := true; left; {
			left = false
			for l, after := range waits {
				for a := range after {
					if len(waits[a]) == 0 {
						delete(after, a)
					}
				}
				if len(after) == 0 {
					delete(waits, l)
					left = true
				}
			}
		}
		if (cycle != nil) != (len(waits) > 0) {
			t.Fatalf("found %s, and %d links wait for each other", g.Names(cycle), len(waits))
		}
	})
}

// Trees and Clos networks are recognised by their levels alone; other networks are searched.
func TestUpThenDown(t *testing.T) {
	for _, c := range []struct {
		name string
		g    *Graph
		want bool
	}{
		{"star", build(t, Config{Star: &Star{9}}), true},
		{"leaf-spine", build(t, Config{LeafSpine: &LeafSpine{6, 3, 4}}), true},
		{"Clos", build(t, Config{Clos: &Clos{4, 2, 4, 64, 4}}), true},
		{"fat-tree", build(t, Config{FatTree: &FatTree{8}}), true},
		{"dumbbell", build(t, Config{Dumbbell: &Dumbbell{4, 4}}), false}, // its switches are on the same level
		{"ring of 4", ring(t, 4), false},
		{"dragonfly", build(t, Config{Dragonfly: &Dragonfly{9, 4, 2, 2}}), false},
	} {
		if got := c.g.upThenDown(c.g.Route(nil)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	// A leaf-spine in which a leaf has lost spines: paths go down and up again.
	g := build(t, Config{LeafSpine: &LeafSpine{3, 3, 1}})
	down := make([]bool, len(g.Links))
	for i := range 3 {
		for j := range 3 {
			down[3+3*i+j] = j != i && j != (i+1)%3
		}
	}
	r := g.Route(down)
	if got, found := g.upThenDown(r), g.search(r); got && found != nil {
		t.Errorf("up and down, but there is a circle: %s", g.Names(found))
	}
}

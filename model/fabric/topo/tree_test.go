package topo

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := random(t)
		r := g.Route(nil)
		var hosts []int32
		for i, n := range g.Nodes {
			if n.Kind == Host {
				hosts = append(hosts, int32(i))
			}
		}
		src := rapid.SampledFrom(hosts).Draw(t, "src")
		members := rapid.SliceOf(rapid.SampledFrom(hosts)).Draw(t, "members")
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		tree, err := g.Tree(r, src, members, pick)
		if err != nil {
			for _, m := range members {
				if !r.Reachable(src, m) {
					return
				}
			}
			t.Fatal(err)
		}
		depth := map[int32]int{src: 0}
		used := map[int32]bool{}
		for _, l := range tree {
			d, in := depth[l.From]
			if _, again := depth[l.To]; !in || again || used[l.Link] {
				t.Fatalf("link %v: begins in the tree: %v, ends there: %v, used before: %v", l, in, again, used[l.Link])
			}
			used[l.Link], depth[l.To] = true, d+1
			if g.Nodes[l.From].Kind == Host && l.From != src {
				t.Fatalf("the tree goes through %s", g.name(l.From))
			}
		}
		for _, m := range members {
			if d, ok := depth[m]; !ok || d != r.Distance(src, m) {
				t.Fatalf("%s is %d links away in the tree, %d in the network", g.name(m), d, r.Distance(src, m))
			}
		}
		leaves := map[int32]bool{}
		for _, l := range tree {
			delete(leaves, l.From)
			leaves[l.To] = true
		}
		for n := range leaves {
			if g.Nodes[n].Kind != Host {
				t.Fatalf("a branch ends at %s", g.name(n))
			}
		}
	})
}

func TestTreeOfShapes(t *testing.T) {
	// From h0 up to a spine and down to two pods: 6 links to the first member of a pod, and one more for its neighbour
	// below the same ToR.
	g := build(t, Config{Clos: &Clos{3, 2, 2, 8, 2}})
	tree, err := g.Tree(g.Route(nil), 0, []int32{8, 9, 16, 0, 8}, nil)
	if err != nil || len(tree) != 6+1+3 {
		t.Errorf("%d links, %v; want 10", len(tree), err)
	}
	f := build(t, Config{Dragonfly: &Dragonfly{5, 2, 1, 2}})
	all := make([]int32, f.Hosts())
	for i := range all {
		all[i] = int32(i)
	}
	tree, err = f.Tree(f.Route(nil), 0, all, nil)
	if err != nil || len(tree) != len(f.Nodes)-1 {
		t.Errorf("%d links, %v; want %d", len(tree), err, len(f.Nodes)-1)
	}
	for _, l := range tree {
		away := f.Nodes[l.From].Pod != 0
		if l.Channel != 0 != away {
			t.Errorf("%s uses channel %d", f.Names([]Directed{l}), l.Channel)
		}
	}
	down := make([]bool, len(f.Links))
	down[3] = true
	if _, err := f.Tree(f.Route(down), 0, []int32{3}, nil); err == nil ||
		!strings.Contains(err.Error(), "h0 cannot reach h3") {
		t.Error(err)
	}
}

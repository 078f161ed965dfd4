package topo

import (
	"slices"
	"strings"
	"testing"

	"farflash/numeric/units"
)

const (
	microsecond = units.Microsecond
	slow        = 10 * units.Gbps
	quick       = 40 * units.Gbps
)

func build(t testing.TB, c Config) *Graph {
	t.Helper()
	g, err := Build(c, slow, quick, microsecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	return g
}

// degrees maps each name without its number to the number of ports of such nodes; -1 where they differ.
func degrees(g *Graph) map[string]int {
	out := map[string]int{}
	ports := g.ports()
	for i, n := range g.Nodes {
		kind, d := strings.TrimRight(n.Name, "0123456789"), len(ports.of(int32(i)))
		if before, ok := out[kind]; ok && before != d {
			d = -1
		}
		out[kind] = d
	}
	return out
}

func TestBuild(t *testing.T) {
	for _, c := range []struct {
		name                   string
		config                 Config
		hosts, switches, links int
		degrees                map[string]int
		pods                   int
		farthest               int // links between the two hosts furthest apart
	}{
		{"default", DefaultConfig(), 2, 1, 2, map[string]int{"h": 1, "s": 2}, 0, 2},
		{"star", Config{Star: &Star{17}}, 17, 1, 17, map[string]int{"h": 1, "s": 17}, 0, 2},
		{"dumbbell", Config{Dumbbell: &Dumbbell{3, 5}}, 8, 2, 9, map[string]int{"h": 1, "s": -1}, 2, 3},
		{"leaf-spine", Config{LeafSpine: &LeafSpine{4, 2, 8}}, 32, 6, 40,
			map[string]int{"h": 1, "leaf": 10, "spine": 4}, 4, 4},
		{"SNIS", Config{Clos: &Clos{4, 2, 4, 64, 4}}, 256, 28, 256 + 32 + 32,
			map[string]int{"h": 1, "tor": 18, "leaf": 8, "spine": 8}, 4, 6},
		{"fat-tree 2", Config{FatTree: &FatTree{2}}, 2, 5, 6, map[string]int{"h": 1, "edge": 2, "agg": 2, "core": 2},
			2, 6},
		{"fat-tree 8", Config{FatTree: &FatTree{8}}, 128, 80, 384,
			map[string]int{"h": 1, "edge": 8, "agg": 8, "core": 8}, 8, 6},
		{"dragonfly, balanced", Config{Dragonfly: &Dragonfly{9, 4, 2, 2}}, 72, 36, 72 + 54 + 36,
			map[string]int{"h": 1, "r": 7}, 9, 5},
		{"dragonfly, one group", Config{Dragonfly: &Dragonfly{1, 3, 1, 0}}, 3, 3, 6, map[string]int{"h": 1, "r": 3},
			1, 3},
		{"dragonfly, doubled", Config{Dragonfly: &Dragonfly{3, 4, 1, 1}}, 12, 12, 12 + 18 + 6,
			map[string]int{"h": 1, "r": 5}, 3, 5},
		{"dragonfly, left over", Config{Dragonfly: &Dragonfly{4, 5, 1, 1}}, 20, 20, 20 + 40 + 6,
			map[string]int{"h": 1, "r": -1}, 4, 5},
		{"links", Config{Links: []LinkSpec{{A: "s0", B: "h1"}, {A: "h0", B: "s0"}, {A: "s0", B: "tree"},
			{A: "tree", B: "h2"}}}, 3, 2, 4,
			map[string]int{"h": 1, "s": 3, "tree": 2}, 0, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := build(t, c.config)
			if g.Hosts() != c.hosts || len(g.Nodes) != c.hosts+c.switches || len(g.Links) != c.links {
				t.Errorf("%d hosts, %d switches, %d links; want %d, %d, %d", g.Hosts(), len(g.Nodes)-g.Hosts(),
					len(g.Links), c.hosts, c.switches, c.links)
			}
			got := degrees(g)
			for kind, d := range c.degrees {
				if got[kind] != d {
					t.Errorf("%s has %d ports, want %d", kind, got[kind], d)
				}
			}
			r := g.Route(nil)
			pods, farthest, last := map[int32]bool{}, 0, int32(-1)
			for i, n := range g.Nodes {
				if n.Pod >= 0 {
					pods[n.Pod] = true
				}
				if (i < c.hosts) != (n.Kind == Host) || (n.Kind == Host) != (n.Tier == 0) {
					t.Fatalf("node %d is %+v", i, n)
				}
				if i < c.hosts {
					if n.Pod < last {
						t.Errorf("%s of pod %d comes after pod %d", n.Name, n.Pod, last)
					}
					last = n.Pod
					for dst := range int32(c.hosts) {
						farthest = max(farthest, r.Distance(int32(i), dst))
					}
				}
			}
			if len(pods) != c.pods || farthest != c.farthest {
				t.Errorf("%d pods, hosts %d links apart; want %d, %d", len(pods), farthest, c.pods, c.farthest)
			}
			for _, l := range g.Links {
				want := quick
				if int(l.A) < c.hosts || int(l.B) < c.hosts {
					want = slow
				}
				if l.Rate != want || l.Delay != microsecond || l.Loss != 0 {
					t.Errorf("link %+v", l)
				}
			}
		})
	}
}

// TestDragonflyGroups verifies that every two groups are linked equally often.
func TestDragonflyGroups(t *testing.T) {
	for _, c := range []struct {
		shape Dragonfly
		each  int
	}{{Dragonfly{9, 4, 1, 2}, 1}, {Dragonfly{5, 4, 1, 2}, 2}, {Dragonfly{6, 4, 1, 2}, 1}, {Dragonfly{2, 3, 1, 2}, 6}} {
		g := build(t, Config{Dragonfly: &c.shape})
		seen := map[[2]int32]int{}
		for _, l := range g.Links {
			a, b := g.Nodes[l.A].Pod, g.Nodes[l.B].Pod
			if l.Global != (a != b) {
				t.Errorf("%+v: link from group %d to %d is global: %v", c.shape, a, b, l.Global)
			}
			if l.Global {
				seen[[2]int32{min(a, b), max(a, b)}]++
			}
		}
		if want := c.shape.Groups * (c.shape.Groups - 1) / 2; len(seen) != want {
			t.Errorf("%+v: %d pairs of groups are linked, want %d", c.shape, len(seen), want)
		}
		for pair, n := range seen {
			if n != c.each {
				t.Errorf("%+v: groups %v have %d links, want %d", c.shape, pair, n, c.each)
			}
		}
	}
}

func TestBuildLinks(t *testing.T) {
	short, own := units.Duration(0), 25*units.Gbps
	g := build(t, Config{Links: []LinkSpec{
		{A: "b", B: "h10", Delay: &short}, {A: "a", B: "b", Rate: own, Loss: 0.01}, {A: "h1", B: "a"},
		{A: "h2", B: "a"}, {A: "h0", B: "a"}, {A: "h3", B: "a"}, {A: "h4", B: "a"},
		{A: "h5", B: "a"}, {A: "h6", B: "a"}, {A: "h7", B: "a"}, {A: "h8", B: "a"}, {A: "h9", B: "a"},
		{A: "a", B: "x"}, {A: "x", B: "y"},
	}})
	var names []string
	for _, n := range g.Nodes {
		names = append(names, n.Name)
	}
	if want := strings.Fields("h0 h1 h2 h3 h4 h5 h6 h7 h8 h9 h10 b a x y"); !slices.Equal(names, want) {
		t.Errorf("nodes are %v, want %v", names, want)
	}
	if l := g.Links[0]; l.Delay != 0 || l.Rate != slow {
		t.Errorf("first link is %+v", l)
	}
	if l := g.Links[1]; l.Delay != microsecond || l.Rate != own || l.Loss != 0.01 {
		t.Errorf("second link is %+v", l)
	}
	if a, x, y := g.Nodes[12].Tier, g.Nodes[13].Tier, g.Nodes[14].Tier; a != 1 || x != 2 || y != 3 {
		t.Errorf("tiers of a, x, y are %d, %d, %d", a, x, y)
	}
}

func TestBuildErrors(t *testing.T) {
	negative := units.Duration(-1)
	pair := func(l LinkSpec) Config { return Config{Links: []LinkSpec{{A: "h0", B: "s0"}, l}} }
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, "no shape is given; use star,"},
		{Config{Star: &Star{2}, FatTree: &FatTree{4}}, "fat_tree: only one shape is possible, and star is given too"},
		{Config{Star: &Star{0}}, "star.hosts: 0 is not possible; use at least 1"},
		{Config{Star: &Star{70000}}, "star.hosts: 70000 is not possible; use at most 65535"},
		{Config{Dumbbell: &Dumbbell{1, 0}}, "dumbbell.right: 0 is"},
		{Config{Dumbbell: &Dumbbell{60000, 60000}}, "dumbbell: 120000 hosts are too many"},
		{Config{LeafSpine: &LeafSpine{2, 2, 0}}, "leaf_spine.hosts_per_leaf: 0 is"},
		{Config{LeafSpine: &LeafSpine{60000, 60000, 1}}, "leaf_spine: 120000 switches are too many"},
		{Config{Clos: &Clos{4, 2, 0, 64, 4}}, "clos.tors: 0 is not possible; use at least 1"},
		{Config{Clos: &Clos{4, 2, 3, 64, 4}},
			"clos.hosts_per_pod: 64 is not possible; use a multiple of clos.tors, which is 3"},
		{Config{Clos: &Clos{65535, 65535, 65535, 65535, 65535}}, "clos: 4294836225 hosts are too many"},
		{Config{Clos: &Clos{1, 20000, 20000, 20000, 1}}, "clos: 400040000 links are too many"},
		{Config{FatTree: &FatTree{5}}, "fat_tree.k: 5 is not possible; use an even number from 2 to 62"},
		{Config{Dragonfly: &Dragonfly{10, 4, 2, 2}},
			"dragonfly.groups: 10 is not possible; a group has 8 global links, so use at most 9 groups"},
		{Config{Dragonfly: &Dragonfly{2, 2, 2, -1}}, "dragonfly.global_links: -1 is"},
		{Config{Dragonfly: &Dragonfly{60000, 60000, 2, 60000}}, "dragonfly: 3600000000 switches"},
		{Config{Links: []LinkSpec{}}, "links: the list is empty"},
		{pair(LinkSpec{A: "", B: "s0"}), "links[1].a: a node needs a name"},
		{pair(LinkSpec{A: "s0", B: "h01"}), "links[1].b: h01 is not possible; write h1"},
		{pair(LinkSpec{A: "s0", B: "h99999"}), "links[1].b: h99999 is not possible"},
		{pair(LinkSpec{A: "s0", B: "s0"}), "links[1].b: s0 is the other end as well"},
		{pair(LinkSpec{A: "s0", B: "h2"}), "links: host h1 has no link"},
		{pair(LinkSpec{A: "s0", B: "h1", Rate: -1}), "links[1].rate: "},
		{pair(LinkSpec{A: "s0", B: "h1", Delay: &negative}), "links[1].delay: "},
		{pair(LinkSpec{A: "s0", B: "h1", Loss: 1}), "links[1].loss: 1 is"},
		{pair(LinkSpec{A: "s1", B: "h1"}), "links: h1 cannot reach h0: no path"},
		{Config{Links: []LinkSpec{{A: "s0", B: "s1"}}}, "links: no end is a host"},
	} {
		if _, err := Build(c.config, slow, quick, microsecond); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	for _, c := range []struct {
		host, up units.BitRate
		delay    units.Duration
		want     string
	}{{0, quick, 0, "host_link: 0"}, {slow, 0, 0, "up_link: 0"}, {slow, quick, -1, "delay: "}} {
		if _, err := Build(Config{FatTree: &FatTree{4}}, c.host, c.up, c.delay); err == nil ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := Build(DefaultConfig(), slow, 0, 0); err != nil {
		t.Errorf("a star without up_link: %v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		spoil func(g *Graph)
		want  string
	}{
		{func(g *Graph) { g.Links[1].B = 9 }, "link 1 ends at node 9; nodes are numbered from 0 to 6"},
		{func(g *Graph) { g.Links[1].A = g.Links[1].B }, "the link from leaf0 to leaf0 ends at the same node"},
		{func(g *Graph) { g.Links[0].Rate = 0 }, "the link from h0 to leaf0 has no rate"},
		{func(g *Graph) { g.Links[0].Delay = -1 }, "the link from h0 to leaf0 has a negative delay"},
		{func(g *Graph) { g.Links[0].Loss = 1 }, "the link from h0 to leaf0 loses 1 of its packets"},
		{func(g *Graph) { g.Links[0].Global = true }, "the link from h0 to leaf0 is global but ends at a host"},
		{func(g *Graph) { g.Links = g.Links[1:] }, "h0 has no link"},
		{func(g *Graph) { g.Links = g.Links[:5] }, "h2 cannot reach h0: no path"},
		{func(g *Graph) { g.Nodes[5].Kind, g.Nodes[6].Kind, g.Nodes[5].Name = Host, Host, "" },
			"h2 cannot reach h0: no path"},
		{func(g *Graph) { *g = Graph{} }, "the network has no host"},
		{func(g *Graph) { g.Channels = 1000 }, "1000 channels are not possible"},
	} {
		g := build(t, Config{LeafSpine: &LeafSpine{2, 1, 2}})
		c.spoil(g)
		if err := g.Check(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

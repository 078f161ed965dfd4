package topo

import (
	"fmt"
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

// random draws a connected network: hosts with one or more links, some of them to other hosts, switches and hosts
// numbered in any order, and parallel links.
func random(t *rapid.T) *Graph {
	g := &Graph{Channels: 1}
	switches := rapid.IntRange(1, 9).Draw(t, "switches")
	hosts := rapid.IntRange(1, 8).Draw(t, "hosts")
	kinds := append(slices.Repeat([]Kind{Switch}, switches), slices.Repeat([]Kind{Host}, hosts)...)
	kinds = rapid.Permutation(kinds).Draw(t, "kinds")
	var s, h []int32
	for i, k := range kinds {
		name := fmt.Sprint("s", i)
		if k == Host {
			name = fmt.Sprint("h", i)
			h = append(h, int32(i))
		} else {
			s = append(s, int32(i))
		}
		g.Nodes = append(g.Nodes, Node{Name: name, Kind: k, Pod: -1})
	}
	link := func(a, b int32) {
		g.Links = append(g.Links,
			Link{A: a, B: b, Rate: units.BitRate(rapid.IntRange(1, 4).Draw(t, "rate")) * units.Gbps,
				Delay: sim.Time(rapid.IntRange(0, 9).Draw(t, "delay"))})
	}
	any := func(of []int32) int32 { return rapid.SampledFrom(of).Draw(t, "end") }
	for i := 1; i < len(s); i++ {
		link(s[i], any(s[:i]))
	}
	for _, n := range h {
		link(any(s), n)
	}
	for range rapid.IntRange(0, 12).Draw(t, "more") {
		if a, b := any(append(s[:len(s):len(s)], h...)), any(s); a != b {
			link(a, b)
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "direct") == 0 && len(h) > 1 {
		link(h[0], h[1])
	}
	g.Links = rapid.Permutation(g.Links).Draw(t, "links")
	return g
}

// hop is a next hop by the node it leads to.
type hop struct {
	peer int32
	port uint16
}

// reference searches from one destination as the HPCC simulator does.
func reference(g *Graph, down []bool, dst int32) (distance []int, next [][]hop) {
	distance, next = slices.Repeat([]int{-1}, len(g.Nodes)), make([][]hop, len(g.Nodes))
	ports := g.ports()
	distance[dst] = 0
	queue := []int32{dst}
	for len(queue) > 0 {
		now := queue[0]
		queue = queue[1:]
		for peer := range int32(len(g.Nodes)) {
			linked := false
			for k, p := range ports.of(peer) {
				if p.peer != now || down != nil && down[p.link] {
					continue
				}
				if !linked && distance[peer] < 0 {
					distance[peer] = distance[now] + 1
					if g.Nodes[peer].Kind == Switch {
						queue = append(queue, peer)
					}
				}
				linked = true
				if distance[peer] == distance[now]+1 {
					next[peer] = append(next[peer], hop{now, uint16(k)})
				}
			}
		}
	}
	return distance, next
}

func compare(t interface {
	Helper()
	Fatalf(string, ...any)
}, g *Graph, down []bool, r *Routes) {
	t.Helper()
	ports := g.ports()
	for dst := range int32(len(g.Nodes)) {
		if g.Nodes[dst].Kind != Host {
			continue
		}
		distance, next := reference(g, down, dst)
		for node := range int32(len(g.Nodes)) {
			if d := r.Distance(node, dst); d != distance[node] || r.Reachable(node, dst) != (d >= 0) {
				t.Fatalf("%s is %d from %s, want %d", g.name(node), d, g.name(dst), distance[node])
			}
			var got []hop
			for _, h := range r.Next(node, dst) {
				p := ports.of(node)[h.Port]
				if down != nil && down[p.link] {
					t.Fatalf("%s to %s goes over a link that is down", g.name(node), g.name(dst))
				}
				if r.Distance(p.peer, dst) != distance[node]-1 || h.Channel != 0 {
					t.Fatalf("%s to %s goes by %s", g.name(node), g.name(dst), g.name(p.peer))
				}
				got = append(got, hop{p.peer, h.Port})
			}
			if !slices.Equal(got, next[node]) {
				t.Fatalf("%s to %s: next hops are %v, want %v", g.name(node), g.name(dst), got, next[node])
			}
		}
	}
}

// TestRoutes compares routes of random networks, before and after link failures, with HPCC's search.
func TestRoutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := random(t)
		if err := g.Check(); err != nil && !hostsBetween(g) {
			t.Fatal(err)
		}
		compare(t, g, nil, g.Route(nil))
		down := rapid.SliceOfN(rapid.SampledFrom([]bool{false, false, true}), len(g.Links), len(g.Links)).Draw(t,
			"down")
		compare(t, g, down, g.Route(down))
	})
}

// hostsBetween reports whether a link connects two hosts. It is no path for other hosts.
func hostsBetween(g *Graph) bool {
	return slices.ContainsFunc(g.Links,
		func(l Link) bool { return g.Nodes[l.A].Kind == Host && g.Nodes[l.B].Kind == Host })
}

func TestRoutesOfShapes(t *testing.T) {
	for _, c := range []Config{
		{Star: &Star{5}}, {Dumbbell: &Dumbbell{2, 3}}, {LeafSpine: &LeafSpine{3, 2, 2}}, {Clos: &Clos{2, 2, 2, 4, 2}},
		{FatTree: &FatTree{4}},
	} {
		g := build(t, c)
		compare(t, g, nil, g.Route(nil))
	}
}

// TestFailure takes the links of a spine down one by one.
func TestFailure(t *testing.T) {
	g := build(t, Config{LeafSpine: &LeafSpine{3, 2, 1}})
	down := make([]bool, len(g.Links))
	paths := func(r *Routes) int { return len(r.Next(3, 1)) } // leaf0 to h1
	if n := paths(g.Route(down)); n != 2 {
		t.Errorf("%d paths, want 2", n)
	}
	down[3] = true // leaf0 to spine0
	r := g.Route(down)
	if n := paths(r); n != 1 || r.Distance(0, 1) != 4 {
		t.Errorf("%d paths, %d links; want 1, 4", n, r.Distance(0, 1))
	}
	down[4] = true // leaf0 to spine1
	r = g.Route(down)
	if n := paths(r); n != 0 || r.Reachable(0, 1) || r.Reachable(1, 0) || !r.Reachable(1, 2) {
		t.Errorf("%d paths out of a leaf that is cut off", n)
	}
	if _, ok := r.Path(0, 1); ok || r.Serialisation(0, 1, 1, 1) != sim.Forever || r.Walk(nil, 0, 1, nil) != nil {
		t.Error("a path where there is none")
	}
	down[3], down[4], down[0] = false, false, true // h0's link
	if r = g.Route(down); r.Reachable(0, 1) || r.Reachable(1, 0) || r.Distance(0, 0) != 0 {
		t.Error("a host without a link that is up is reached")
	}
}

// TestDragonflyChannels verifies that minimal paths have at most one global link, and use the channels in the order
// that prevents cycles of waits.
func TestDragonflyChannels(t *testing.T) {
	g := build(t, Config{Dragonfly: &Dragonfly{9, 4, 2, 2}})
	r := g.Route(nil)
	hosts := int32(g.Hosts())
	stream := rng.NewStream(1, "pick")
	pick := func(n int) int { return int(stream.IntN(int64(n))) }
	var path []Directed
	for src := range hosts {
		for dst := range hosts {
			path = r.Walk(path[:0], src, dst, pick)
			last, globals := 0, 0
			for i, l := range path {
				rank := 2 * int(l.Channel)
				if g.Links[l.Link].Global {
					globals++
					rank++
				}
				if g.Nodes[l.From].Kind == Host || g.Nodes[l.To].Kind == Host {
					continue
				}
				if i > 1 && rank <= last {
					t.Fatalf("%s: %v climbs from %d to %d", g.Names(path), path, last, rank)
				}
				last = rank
			}
			if src != dst && int(path[0].Channel) != 1-globals {
				t.Fatalf("%s leaves the host on channel %d", g.Names(path), path[0].Channel)
			}
			if crosses := g.Nodes[src].Pod != g.Nodes[dst].Pod; globals > 1 || crosses != (globals == 1) ||
				len(path) != r.Distance(src, dst) {
				t.Fatalf("%s has %d global links", g.Names(path), globals)
			}
		}
	}
}

func TestPath(t *testing.T) {
	wire := 3 * units.Microsecond
	g := build(t, Config{Links: []LinkSpec{
		{A: "h0", B: "a", Rate: 100 * units.Gbps}, {A: "a", B: "b", Rate: 40 * units.Gbps, Delay: &wire},
		{A: "b", B: "h1", Rate: 100 * units.Gbps},
	}})
	r := g.Route(nil)
	p, ok := r.Path(0, 1)
	if want := (Path{3, 5 * microsecond, 40 * units.Gbps}); !ok || p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	if p, ok := r.Path(0, 0); !ok || p != (Path{}) {
		t.Errorf("to itself: %+v", p)
	}
	// 1048 B take 83.84 ns at 100 Gbps and 209.6 ns at 40.
	if d := r.Serialisation(0, 1, 1048, units.Picosecond); d != 2*83840+209600 {
		t.Errorf("%v", d)
	}
	if d := r.Serialisation(0, 1, 1048, units.Nanosecond); d != (2*83+209)*1000 {
		t.Errorf("%v in whole ns", d)
	}
	if d := r.Serialisation(0, 1, 1<<62, 1); d != sim.Forever {
		t.Errorf("%v for more than can be counted", d)
	}
	if s := g.Names(r.Walk(nil, 0, 1, nil)); s != "h0 > a > b > h1" {
		t.Error(s)
	}
}

func TestNextAllocates(t *testing.T) {
	g := build(t, Config{Clos: &Clos{2, 2, 2, 8, 2}})
	r := g.Route(nil)
	sum := 0
	if n := testing.AllocsPerRun(100, func() {
		for node := range int32(len(g.Nodes)) {
			sum += len(r.Next(node, 3)) + r.Distance(node, 3)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none; %d", n, sum)
	}
}

func BenchmarkRoute(b *testing.B) {
	for _, c := range []struct {
		name   string
		config Config
	}{
		{"clos-1024", Config{Clos: &Clos{8, 4, 8, 128, 8}}},
		{"clos-4096", Config{Clos: &Clos{16, 8, 16, 256, 16}}},
		{"fat-tree-3456", Config{FatTree: &FatTree{24}}},
		{"dragonfly-4160", Config{Dragonfly: &Dragonfly{65, 16, 4, 4}}},
	} {
		g := build(b, c.config)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Route(nil)
			}
		})
		b.Run(c.name+"/cycle", func(b *testing.B) {
			r := g.Route(nil)
			b.ReportAllocs()
			for b.Loop() {
				if g.Cycle(r) != nil {
					b.Fatal("a cycle")
				}
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	g := build(b, Config{Clos: &Clos{16, 8, 16, 256, 16}})
	r := g.Route(nil)
	b.ReportAllocs()
	n, sum := uint32(0), 0
	for b.Loop() {
		n = n*1664525 + 1013904223
		sum += len(r.Next(int32(4096+n>>16%300), int32(n>>8%4096)))
	}
	_ = sum
}

// TestReachable compares Reachable with a search, for each pair of hosts and each set of links that are down.
func TestReachable(t *testing.T) {
	for _, c := range []Config{
		{Star: &Star{4}}, {Dumbbell: &Dumbbell{2, 3}}, {LeafSpine: &LeafSpine{2, 2, 2}}, {Clos: &Clos{2, 2, 2, 4, 2}},
		{Links: []LinkSpec{{A: "h0", B: "a"}, {A: "h0", B: "b"}, {A: "h1", B: "a"}, {A: "h1", B: "b"},
			{A: "h2", B: "b"}, {A: "h2", B: "a"}}},
	} {
		g := build(t, c)
		for mask := range 1 << min(len(g.Links), 8) {
			down := make([]bool, len(g.Links))
			for i := range down {
				down[i] = mask>>i&1 != 0
			}
			r := g.Route(down)
			for a := range g.Nodes {
				for b := range g.Nodes {
					if a != b && g.Nodes[a].Kind == Host && g.Nodes[b].Kind == Host {
						want := reaches(g, down, int32(a), int32(b))
						if got := r.Reachable(int32(a), int32(b)); got != want {
							t.Fatalf("%+v, links %b down: %d reaches %d: %v, want %v", c, mask, a, b, got, want)
						}
					}
				}
			}
		}
	}
}

// reaches searches for a path that leads through no host.
func reaches(g *Graph, down []bool, from, to int32) bool {
	seen := map[int32]bool{from: true}
	for next := []int32{from}; len(next) > 0; next = next[1:] {
		at := next[0]
		if at != from && g.Nodes[at].Kind == Host {
			continue
		}
		for i, l := range g.Links {
			if down[i] || l.A != at && l.B != at {
				continue
			}
			if other := l.A + l.B - at; !seen[other] {
				seen[other] = true
				next = append(next, other)
			}
		}
	}
	return seen[to]
}

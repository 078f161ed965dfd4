package topo_test

import (
	"reflect"
	"testing"

	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
)

// two is a star of two hosts.
func two(t testing.TB) *topo.Graph {
	t.Helper()
	g, err := topo.Build(topo.Config{Star: &topo.Star{Hosts: 2}}, units.Gbps, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestArguments verifies that nodes, links and parts that a graph does not have are refused.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "topo")
	g := two(t)
	r := g.Route(nil)
	refused("next", func() error { r.Next(3, 0); return nil }, "node 3")
	refused("next to nowhere", func() error { r.Next(0, -1); return nil }, "node -1")
	refused("distance", func() error { r.Distance(-1, 0); return nil }, "node -1")
	refused("reachable", func() error { r.Reachable(0, 9); return nil }, "node 9")
	refused("path", func() error { r.Path(9, 0); return nil }, "node 9")
	refused("walk", func() error { r.Walk(nil, 9, 0, nil); return nil }, "node 9")
	refused("apart", func() error { g.Apart(nil); return nil }, "0 nodes")
	refused("delays", func() error { g.Delays([]int32{0, 0, 1}, 1); return nil }, "part 1")
	refused("links", func() error { g.Route(make([]bool, 7)); return nil }, "7 links")
	refused("graph", func() error { return (&topo.Graph{Nodes: make([]topo.Node, 1)}).Check() }, "no link")
	refused("link", func() error {
		return (&topo.Graph{Nodes: make([]topo.Node, 2), Links: []topo.Link{{A: 0, B: 9, Rate: 1}}}).Check()
	}, "9")
}

// sum returns the greatest number of a shape, 0 without a shape.
func sum(shape any) (most int) {
	v := reflect.ValueOf(shape)
	if v.IsNil() {
		return 0
	}
	for i := range v.Elem().NumField() {
		if x := v.Elem().Field(i); x.CanInt() {
			most = max(most, int(x.Int()))
		}
	}
	return most
}

// FuzzGraph builds what the input describes, or links nodes as it says. The graph is refused, or every route ends.
func FuzzGraph(f *testing.F) {
	f.Add([]byte{0, 2, 0, 1, 0, 0, 4, 0, 2, 1, 9, 9})
	f.Add([]byte{1, 5, 0, 0, 1, 2, 0, 3, 3, 1, 4, 3, 2, 4, 200, 3})
	f.Add([]byte("nodes that are hosts, links that lead nowhere, and shapes of any size"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		code := hostile.Code(in)
		var g *topo.Graph
		if code.Below(2) == 0 {
			cfg := topo.DefaultConfig()
			code.Change(&cfg, 1+code.Below(6))
			for _, x := range []int{sum(cfg.Star), sum(cfg.Dumbbell), sum(cfg.LeafSpine), sum(cfg.Clos),
				sum(cfg.FatTree),
				sum(cfg.Dragonfly), cfg.Planes} {
				if x > 24 {
					return // large networks are no different, and slow
				}
			}
			var err error
			if g, err = topo.Build(cfg, units.BitRate(code.Int()), units.BitRate(code.Int()),
				units.Duration(code.Int())); err != nil {
				return
			}
		} else {
			g = &topo.Graph{Nodes: make([]topo.Node, code.Below(8))}
			for i := range g.Nodes {
				g.Nodes[i].Kind = topo.Kind(code.Below(3))
			}
			for range code.Below(12) {
				g.Links = append(g.Links, topo.Link{A: int32(code.Below(9)), B: int32(code.Below(9)),
					Rate: units.BitRate(code.Int()), Delay: units.Duration(code.Int())})
			}
		}
		r, err := g.CheckedRoutes()
		if err != nil {
			return
		}
		g.SetTiers()
		g.Layout()
		g.Names(g.Cycle(r))
		g.Apart(g.Partition(int(code.Int())))
		for i := range min(len(g.Nodes), 12) {
			for k := range min(len(g.Nodes), 12) {
				if g.Nodes[k].Kind == topo.Host && r.Reachable(int32(i), int32(k)) {
					if p, ok := r.Path(int32(i), int32(k)); !ok || p.Hops != r.Distance(int32(i), int32(k)) {
						t.Errorf("from %d to %d: %+v", i, k, p)
					}
				}
			}
		}
	})
}

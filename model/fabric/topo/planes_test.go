package topo

import (
	"testing"

	"farflash/numeric/units"
)

// TestPlanes verifies that there are as many links and switches as planes, that paths are as long as in one plane, that
// each host has one choice per plane, and that no path leads from one plane to another.
func TestPlanes(t *testing.T) {
	for _, c := range []Config{{Star: &Star{Hosts: 4}}, {FatTree: &FatTree{K: 4}},
		{LeafSpine: &LeafSpine{Leaves: 3, Spines: 2, HostsPerLeaf: 2}},
		{Dragonfly: &Dragonfly{Groups: 3, Routers: 2, HostsPerRouter: 1, GlobalLinks: 1}}} {
		one, err := Build(c, units.Gbps, units.Gbps, 1)
		if err != nil {
			t.Fatal(err)
		}
		const n = 3
		c.Planes = n
		g, err := Build(c, units.Gbps, units.Gbps, 1)
		if err != nil {
			t.Fatal(err)
		}
		hosts := one.Hosts()
		if g.Hosts() != hosts || len(g.Links) != n*len(one.Links) || len(g.Nodes)-hosts != n*(len(one.Nodes)-hosts) {
			t.Errorf("%d hosts, %d nodes, %d links", g.Hosts(), len(g.Nodes), len(g.Links))
		}
		if err := g.Check(); err != nil {
			t.Error(err)
		}
		single, routes := one.Route(nil), g.Route(nil)
		names := map[string]bool{}
		for i := range g.Nodes {
			names[g.Nodes[i].Name] = true
		}
		if len(names) != len(g.Nodes) {
			t.Errorf("%d names of %d nodes", len(names), len(g.Nodes))
		}
		for a := range int32(hosts) {
			for b := range int32(hosts) {
				if routes.Distance(a, b) != single.Distance(a, b) {
					t.Fatalf("%d links from %d to %d, %d in one plane", routes.Distance(a, b), a, b,
						single.Distance(a, b))
				}
				if a != b && len(routes.Next(a, b)) != n*len(single.Next(a, b)) {
					t.Fatalf("%d ways from host %d to %d", len(routes.Next(a, b)), a, b)
				}
			}
		}
		plane := func(node int32) int { return (int(node) - hosts) / (len(one.Nodes) - hosts) }
		for _, l := range g.Links {
			if g.Nodes[l.A].Kind == Switch && g.Nodes[l.B].Kind == Switch && plane(l.A) != plane(l.B) {
				t.Fatalf("%s is linked to %s", g.Nodes[l.A].Name, g.Nodes[l.B].Name)
			}
		}
	}
	for _, c := range []Config{{Star: &Star{Hosts: 2}, Planes: 17}, {Star: &Star{Hosts: 2}, Planes: -1},
		{Links: []LinkSpec{{A: "h0", B: "h1"}}, Planes: 2}, {FatTree: &FatTree{K: 62}, Planes: 16}} {
		if _, err := Build(c, units.Gbps, units.Gbps, 1); len(units.FieldErrors(err)) != 1 ||
			units.FieldErrors(err)[0].Path != "planes" {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

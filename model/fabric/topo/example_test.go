package topo_test

import (
	"fmt"

	"farflash/model/fabric/topo"
	"farflash/numeric/units"
)

// The network of the paper SNIS: its size, the distance between its hosts, and whether pausing can deadlock it.
func Example() {
	c := topo.Config{Clos: &topo.Clos{Pods: 4, Leaves: 2, Tors: 4, HostsPerPod: 64, Spines: 4}}
	g, err := topo.Build(c, 10*units.Gbps, 40*units.Gbps, units.Microsecond)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := g.Route(nil)
	path, _ := r.Path(0, 255)
	fmt.Println(g.Hosts(), "hosts,", len(g.Nodes)-g.Hosts(), "switches,", len(g.Links), "links")
	fmt.Println(g.Names(r.Walk(nil, 0, 255, nil)))
	fmt.Println(path.Hops, "links,", path.Delay, "one way,", path.Rate, "at the narrowest")
	fmt.Println("can lock up:", g.Cycle(r) != nil)
	fmt.Println("parts wait no longer than", g.Delays(g.Partition(4), 4)[0][1])

	c.Clos.HostsPerPod = 63
	_, err = topo.Build(c, 10*units.Gbps, 40*units.Gbps, units.Microsecond)
	fmt.Println(err)
	// Output:
	// 256 hosts, 28 switches, 320 links
	// h0 > tor0 > leaf0 > spine0 > leaf6 > tor15 > h255
	// 6 links, 6us one way, 10Gbps at the narrowest
	// can lock up: false
	// parts wait no longer than 1us
	// clos.hosts_per_pod: 63 is not possible; use a multiple of clos.tors, which is 4
}

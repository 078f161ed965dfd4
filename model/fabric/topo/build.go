package topo

import (
	"fmt"
	"strings"

	"farflash/numeric/units"
)

// Build builds the network that c describes. Links of hosts have the rate hostLink and those between switches upLink;
// all have the delay. Hosts are nodes 0 to H-1, h0 to h(H-1), pod by pod; switches follow tier by tier. Errors begin
// with the offending key.
func Build(c Config, hostLink, upLink units.BitRate, delay units.Duration) (*Graph, error) {
	var given []string
	for _, shape := range []struct {
		key string
		is  bool
	}{
		{"star", c.Star != nil}, {"dumbbell", c.Dumbbell != nil}, {"leaf_spine", c.LeafSpine != nil},
		{"clos", c.Clos != nil},
		{"fat_tree", c.FatTree != nil}, {"dragonfly", c.Dragonfly != nil}, {"links", c.Links != nil},
	} {
		if shape.is {
			given = append(given, shape.key)
		}
	}
	switch {
	case len(given) == 0:
		return nil, units.Wrong("",
			"no shape is given; use star, dumbbell, leaf_spine, clos, fat_tree, dragonfly or links")
	case len(given) > 1:
		return nil, units.Wrong(given[1], "only one shape is possible, and %s is given too",
			strings.Join(append(given[:1:1], given[2:]...), " and "))
	case c.Planes < 0 || c.Planes > maxPlanes:
		return nil, units.Wrong("planes", "%d is not possible; use 0 (one) to %d", c.Planes, maxPlanes)
	case c.Planes > 1 && c.Links != nil:
		return nil, units.Wrong("planes",
			"%d planes of a list of links are not possible; list the links of all, or use a shape", c.Planes)
	case delay < 0:
		return nil, units.Wrong("delay", "%v is not possible; use 0s or more", delay)
	}
	d := &drawing{g: &Graph{Channels: 1}, hostLink: hostLink, upLink: upLink, delay: delay}
	var err error
	switch {
	case c.Star != nil:
		err = c.Star.draw(d)
	case c.Dumbbell != nil:
		err = c.Dumbbell.draw(d)
	case c.LeafSpine != nil:
		err = c.LeafSpine.draw(d)
	case c.Clos != nil:
		err = c.Clos.draw(d)
	case c.FatTree != nil:
		err = c.FatTree.draw(d)
	case c.Dragonfly != nil:
		err = c.Dragonfly.draw(d)
	default:
		err = drawLinks(d, c.Links)
	}
	if err != nil {
		return nil, err
	}
	if err := d.rates(); err != nil {
		return nil, err
	}
	if c.Planes > 1 {
		return d.g.planes(c.Planes)
	}
	if c.Links != nil {
		if err := d.g.Check(); err != nil {
			return nil, units.Within("links", err)
		}
	}
	return d.g, nil
}

// drawing is a graph under construction.
type drawing struct {
	g                *Graph
	hostLink, upLink units.BitRate
	delay            units.Duration
	usesHost, usesUp bool // whether the rates are used at all
}

// add adds n nodes named kind0, kind1 and so on, podSize of them to a pod, and returns the first. With podSize 0 they
// have no pod.
func (d *drawing) add(kind string, n int, tier uint8, podSize int) int32 {
	first := int32(len(d.g.Nodes))
	what := Switch
	if tier == 0 {
		what = Host
	}
	for i := range n {
		pod := int32(-1)
		if podSize > 0 {
			pod = int32(i / podSize)
		}
		d.g.Nodes = append(d.g.Nodes, Node{fmt.Sprint(kind, i), what, tier, pod})
	}
	return first
}

// hosts attaches n hosts to each switch from s on, in order from host h on.
func (d *drawing) hosts(h, s int32, switches, n int) {
	d.usesHost = true
	for i := range switches * n {
		d.g.Links = append(d.g.Links, Link{A: h + int32(i), B: s + int32(i/n), Rate: d.hostLink, Delay: d.delay})
	}
}

// up links two switches.
func (d *drawing) up(a, b int32) {
	d.usesUp = true
	d.g.Links = append(d.g.Links, Link{A: a, B: b, Rate: d.upLink, Delay: d.delay})
}

// mesh links each of the n switches from a on to each of the m from b on.
func (d *drawing) mesh(a int32, n int, b int32, m int) {
	for i := range n {
		for j := range m {
			d.up(a+int32(i), b+int32(j))
		}
	}
}

func (d *drawing) rates() error {
	if d.usesHost && d.hostLink <= 0 {
		return units.Wrong("host_link", "%v is not possible; use a rate such as 40Gbps", d.hostLink)
	}
	if d.usesUp && d.upLink <= 0 {
		return units.Wrong("up_link", "%v is not possible; use a rate such as 40Gbps", d.upLink)
	}
	return nil
}

// maxCount bounds every number in a shape, so that products do not overflow.
const maxCount = maxPorts

// count is a number in a shape, with its key.
type count struct {
	key string
	n   int
}

// counts rejects numbers that no shape can have.
func counts(all ...count) error {
	for _, c := range all {
		switch {
		case c.n < 1:
			return units.Wrong(c.key, "%d is not possible; use at least 1", c.n)
		case c.n > maxCount:
			return units.Wrong(c.key, "%d is not possible; use at most %d", c.n, maxCount)
		}
	}
	return nil
}

// maxLinks bounds a graph's memory.
const maxLinks = 1 << 22

// fits rejects networks that are too large, before they are built.
func fits(shape string, hosts, switches, links int64) error {
	switch {
	case hosts > maxPorts:
		return units.Wrong(shape, "%d hosts are too many; use at most %d", hosts, maxPorts)
	case switches > maxSwitches:
		return units.Wrong(shape, "%d switches are too many; use at most %d", switches, maxSwitches)
	case links > maxLinks:
		return units.Wrong(shape, "%d links are too many; use at most %d", links, maxLinks)
	}
	return nil
}

func (s *Star) draw(d *drawing) error {
	if err := counts(count{"star.hosts", s.Hosts}); err != nil {
		return err
	}
	h := d.add("h", s.Hosts, 0, 0)
	d.hosts(h, d.add("s", 1, 1, 0), 1, s.Hosts)
	return nil
}

func (b *Dumbbell) draw(d *drawing) error {
	if err := counts(count{"dumbbell.left", b.Left}, count{"dumbbell.right", b.Right}); err != nil {
		return err
	}
	if err := fits("dumbbell", int64(b.Left)+int64(b.Right), 2, int64(b.Left)+int64(b.Right)+1); err != nil {
		return err
	}
	h := d.add("h", b.Left+b.Right, 0, 0)
	s := d.add("s", 2, 1, 1)
	for i := range b.Left + b.Right {
		d.g.Nodes[i].Pod = 0
		if i >= b.Left {
			d.g.Nodes[i].Pod = 1
		}
	}
	d.hosts(h, s, 1, b.Left)
	d.hosts(h+int32(b.Left), s+1, 1, b.Right)
	d.up(s, s+1)
	return nil
}

func (l *LeafSpine) draw(d *drawing) error {
	if err := counts(count{"leaf_spine.leaves", l.Leaves}, count{"leaf_spine.spines", l.Spines},
		count{"leaf_spine.hosts_per_leaf", l.HostsPerLeaf}); err != nil {
		return err
	}
	hosts := int64(l.Leaves) * int64(l.HostsPerLeaf)
	if err := fits("leaf_spine", hosts, int64(l.Leaves)+int64(l.Spines),
		hosts+int64(l.Leaves)*int64(l.Spines)); err != nil {
		return err
	}
	h := d.add("h", int(hosts), 0, l.HostsPerLeaf)
	leaf := d.add("leaf", l.Leaves, 1, 1)
	spine := d.add("spine", l.Spines, 2, 0)
	d.hosts(h, leaf, l.Leaves, l.HostsPerLeaf)
	d.mesh(leaf, l.Leaves, spine, l.Spines)
	return nil
}

func (c *Clos) draw(d *drawing) error {
	if err := counts(count{"clos.pods", c.Pods}, count{"clos.leaves", c.Leaves}, count{"clos.tors", c.Tors},
		count{"clos.hosts_per_pod", c.HostsPerPod}, count{"clos.spines", c.Spines}); err != nil {
		return err
	}
	if c.HostsPerPod%c.Tors != 0 {
		return units.Wrong("clos.hosts_per_pod", "%d is not possible; use a multiple of clos.tors, which is %d",
			c.HostsPerPod, c.Tors)
	}
	hosts := int64(c.Pods) * int64(c.HostsPerPod)
	tors, leaves := int64(c.Pods)*int64(c.Tors), int64(c.Pods)*int64(c.Leaves)
	// The product with the spines comes last: the product of the others is below 2^48.
	if err := fits("clos", hosts, max(tors, leaves)+int64(c.Spines), 0); err != nil {
		return err
	}
	if err := fits("clos", hosts, tors+leaves+int64(c.Spines),
		hosts+tors*int64(c.Leaves)+leaves*int64(c.Spines)); err != nil {
		return err
	}
	h := d.add("h", int(hosts), 0, c.HostsPerPod)
	tor := d.add("tor", int(tors), 1, c.Tors)
	leaf := d.add("leaf", int(leaves), 2, c.Leaves)
	spine := d.add("spine", c.Spines, 3, 0)
	d.hosts(h, tor, int(tors), c.HostsPerPod/c.Tors)
	for p := range c.Pods {
		d.mesh(tor+int32(p*c.Tors), c.Tors, leaf+int32(p*c.Leaves), c.Leaves)
	}
	d.mesh(leaf, int(leaves), spine, c.Spines)
	return nil
}

func (f *FatTree) draw(d *drawing) error {
	// 62 is the largest K whose hosts can be numbered.
	if f.K < 2 || f.K > 62 || f.K%2 != 0 {
		return units.Wrong("fat_tree.k", "%d is not possible; use an even number from 2 to 62", f.K)
	}
	half := f.K / 2
	h := d.add("h", f.K*half*half, 0, half*half)
	edge := d.add("edge", f.K*half, 1, half)
	agg := d.add("agg", f.K*half, 2, half)
	core := d.add("core", half*half, 3, 0)
	d.hosts(h, edge, f.K*half, half)
	for p := range f.K {
		d.mesh(edge+int32(p*half), half, agg+int32(p*half), half)
	}
	// Aggregation switch j of every pod links to the j-th group of K/2 core switches.
	for i := range f.K * half {
		d.mesh(agg+int32(i), 1, core+int32(i%half*half), half)
	}
	return nil
}

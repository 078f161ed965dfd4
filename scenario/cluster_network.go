package scenario

import (
	"fmt"

	"farflash/cluster"
	"farflash/fabric/topo"
	"farflash/result"
	"farflash/shape"
	"farflash/sim"
	"farflash/units"
)

// An object cluster on a network that is simulated packet by packet: its nodes are hosts, gateways and targets spread alike.

// Traffic classes of its messages: control before data, where the scheduler is strict.
const (
	clusterControl = 1
	clusterData    = 3
)

// clusterNet is the network of an object cluster.
type clusterNet struct {
	*network
	c    *cluster.Cluster
	host []int32 // of each node
}

// Delivered implements fabric.Sink.
func (n *clusterNet) Delivered(m int32) { n.c.Delivered(m) }

// Acked implements fabric.Sink.
func (n *clusterNet) Acked(m int32) { n.net.Forget(m) }

// Send implements cluster.Network.
func (n *clusterNet) Send(from, to int32, size units.Bytes, control bool) (int32, error) {
	class := uint8(clusterData)
	if control {
		class = clusterControl
	}
	return n.net.Send(n.host[from], n.host[to], class, size)
}

// clusterNetwork makes the network, if the scenario has one.
func (s *Scenario) clusterNetwork(c *cluster.Cluster, eng *sim.Engine, seed uint64) (*clusterNet, error) {
	if s.ObjectCluster.Core != cluster.CorePacket {
		return nil, nil
	}
	n := &clusterNet{network: &network{s: s, eng: eng}, c: c}
	n.others = func(int32) bool { return true }
	if err := n.make(seed, n); err != nil {
		return nil, err
	}
	if err := n.use(1<<clusterControl | 1<<clusterData); err != nil {
		return nil, err
	}
	var err error
	if n.host, err = s.clusterHosts(n.hosts); err != nil {
		return nil, err
	}
	c.Carry(n)
	return n, nil
}

// clusterHosts is the host of each node. Gateways and targets are each spread evenly, so that every switch of a regular network has its share of
// both.
func (s *Scenario) clusterHosts(hosts []int32) ([]int32, error) {
	g, t := s.ObjectCluster.Gateways, s.ObjectCluster.Targets
	if g+t > len(hosts) {
		return nil, fmt.Errorf("fabric.topology: %d hosts are too few for %d gateways and %d targets", len(hosts), g, t)
	}
	nodes := make([]int32, g+t)
	// In the order of shares of a half of a step: two gateways and three targets stand as t g t g t.
	for i, a, b := 0, 0, 0; i < g+t; i++ {
		h := hosts[i*len(hosts)/(g+t)]
		if b == t || a < g && (2*a+1)*t <= (2*b+1)*g {
			nodes[a] = h
			a++
		} else {
			nodes[g+b] = h
			b++
		}
	}
	return nodes, nil
}

// checkClusterNetwork checks that there is a network if the cluster has one, with links as the cluster's, and makes the cluster reckon with its delays.
func (s *Scenario) checkClusterNetwork(d *shape.Decoder) {
	c := s.ObjectCluster
	if c.Core != cluster.CorePacket {
		if s.Fabric != nil {
			d.Fail(s.where("fabric"), "fabric: an object cluster has its network with object_cluster.core: packet only; set that, or leave fabric out")
		}
		return
	}
	if s.Fabric == nil {
		d.Fail(s.where("object_cluster.core"), "object_cluster.core: there is no section fabric that says which network; add one, such as fabric: {topology: {star: {hosts: %d}}, host_link: %v}", c.Gateways+c.Targets, c.Link.Rate)
		return
	}
	s.checkFabric(d)
	if len(d.Errs) > 0 {
		return
	}
	if _, said := d.Set["object_cluster.link.rate"]; said && c.Link.Rate != s.Fabric.HostLink {
		d.Fail(s.where("object_cluster.link.rate"), "object_cluster.link.rate: the hosts' links have %v, by fabric.host_link; leave one of both out", s.Fabric.HostLink)
	}
	c.Link.Rate = s.Fabric.HostLink
	g, err := s.Fabric.graph(s)
	if err != nil {
		return // checkFabric has told
	}
	hosts := hostsOf(g)
	if _, err := s.clusterHosts(hosts); err != nil {
		d.Fail(s.where("fabric.topology"), "%v", err)
		return
	}
	if _, said := d.Set["object_cluster.link.trip"]; !said {
		c.Link.Trip = farthest(g, hosts, s.Fabric.Payload)
	}
}

// farthest is how long a packet is on its way from the first to the last host of a network, beside its own time on the first link.
func farthest(g *topo.Graph, hosts []int32, packet units.Bytes) units.Duration {
	r := g.Route(nil)
	from, to := hosts[0], hosts[len(hosts)-1]
	p, ok := r.Path(from, to)
	if !ok {
		return 0
	}
	return p.Delay + r.Serialisation(from, to, packet, 1) - p.Rate.TimeFor(packet)
}

// clusterFabric measures the network while the cluster runs.
type clusterFabric struct {
	*fabricMeter
	warm sim.Time
}

// run runs the cluster up to a time, slice by slice of the network's.
func (m *clusterFabric) run(eng *sim.Engine, end sim.Time) {
	for m != nil && m.next() < end {
		to := m.next()
		if warming := m.warm > m.from.at && m.warm < to; warming {
			eng.Run(m.warm)
			m.net.Look(m.warm)
			m.from = m.state(m.warm)
		}
		eng.Run(to)
		m.net.Look(to)
		m.slice(to)
	}
	eng.Run(end)
}

// measureNetwork begins to measure a network; nil measures nothing.
func (s *Scenario) measureNetwork(n *clusterNet) *clusterFabric {
	if n == nil {
		return nil
	}
	return &clusterFabric{newFabricMeter(n.network), s.Measure.WarmUp.Time}
}

// finish fills in what the network did.
func (m *clusterFabric) finish(r *result.Result, at sim.Time, interrupted bool) {
	if m == nil {
		return
	}
	m.net.Look(at)
	m.slice(at)
	if len(m.from.ports) == 0 {
		m.from.ports = make([]portState, len(m.before.ports))
		if r.WarmUp.UntilS > 0 {
			r.Warn("figures of the network include the warm-up; give measure.warm_up as a time to leave it out there too")
		}
	}
	m.fill(r, &m.before, interrupted)
}

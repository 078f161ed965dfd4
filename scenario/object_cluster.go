package scenario

import (
	"fmt"

	"farflash/model/cluster"
	"farflash/model/cluster/tier"
	"farflash/model/cluster/traffic"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/scenario/shape"
)

// ForCluster returns the scenario of an object cluster with the given end and warm-up share.
func ForCluster(name string, cfg cluster.Config, until units.Duration, warmUp units.Fraction) (*Scenario, error) {
	s := &Scenario{}
	setDefault(s)
	c := defaultObjectCluster()
	c.Protocol, c.Config = ObjectProtocol(cfg.Protocol), cfg
	s.Name, s.ObjectCluster = name, &c
	d := language.Decoder()
	s.clusterDefaults(d) // no key is set, so all of the protocol's defaults apply
	s.given = true
	s.Measure.Until.Time, s.Measure.WarmUp.Share = until, warmUp
	if s.check(d); len(d.Errs) > 0 {
		return nil, d.Errs
	}
	return s, nil
}

// checkCluster validates an object cluster, which is a scenario of its own.
func (s *Scenario) checkCluster(d *shape.Decoder) {
	s.checkChunks(d)
	s.checkClusterNetwork(d)
	for _, x := range []struct {
		key   string
		there bool
	}{{"targets", len(s.Targets) > 0}, {"flows", len(s.Flows) > 0}} {
		if x.there {
			d.Fail(s.Where(x.key), "%s: an object cluster has none; leave it out, or leave out object_cluster", x.key)
		}
	}
	s.clusterDefaults(d)
	s.ofAnotherProtocol(d)
	s.checkClusterSections(d)
	d.Wrong("object_cluster", s.ObjectCluster.Validate())
	s.checkIdle(d)
	if s.Measure.Until.Time == 0 {
		d.Fail(s.Where("measure.until"), "measure.until: gateways never stop putting chunks; give a time such as 10ms")
	}
	s.Measure.check(d, s.Where("measure"))
	for _, x := range []struct {
		key string
		set bool
	}{{"flows", s.Measure.Flows}, {"pauses", s.Measure.Pauses}} {
		if x.set {
			d.Fail(s.Where("measure."+x.key), "measure.%s: an object cluster has none", x.key)
		}
	}
}

// clusterDefaults sets the values of absent keys that follow from other keys.
func (s *Scenario) clusterDefaults(d *shape.Decoder) {
	c := s.ObjectCluster
	unsaid := func(key string) bool {
		_, said := d.Set["object_cluster."+key]
		return !said && !s.given
	}
	scheme, puts := c.Protocol.put()
	if puts {
		c.Config.Protocol = scheme
	}
	if k, ok := c.Protocol.Traffic(); ok {
		s.trafficDefaults(k, unsaid)
	}
	if c.Protocol == Tiering {
		s.tierDefaults(unsaid)
	}
	head := c.Compat == cluster.CompatSURGEHead
	if unsaid("control.queued") && c.Compat != cluster.CompatNone {
		c.Control.Queued = false
	}
	if puts && scheme == cluster.CommandWindow {
		if unsaid("replicas") {
			c.Replicas = 1
		}
		if unsaid("outstanding") {
			c.Outstanding = 2
		}
		if unsaid("disk.latency") {
			c.Disk.Latency = cluster.LatencyGrows
		}
		head = false // its acknowledgements always wait for the disk
	}
	if unsaid("acknowledge") && head {
		c.Acknowledge = cluster.WriteBack
	}
	if unsaid("choosy") && puts && (scheme == cluster.ReplicastHDouble || scheme == cluster.ReplicastH && head) {
		c.Choosy = true
	}
}

// ofAnotherProtocol resets keys that a file sets for its own protocol, where the command line chooses another one that
// does not use them: one file serves for comparing protocols.
func (s *Scenario) ofAnotherProtocol(d *shape.Decoder) {
	changed, said := d.Set["object_cluster.protocol"]
	if !said || !changed.Flagged() || !s.ObjectCluster.Puts() {
		return
	}
	for _, u := range s.ObjectCluster.Unused() {
		if key := "object_cluster." + u.Key; !d.Set.At(key).Flagged() {
			u.Reset()
			delete(d.Set, key)
		}
	}
}

// checkIdle rejects keys that have no effect under the rest of the scenario, and failures that occur after the run.
func (s *Scenario) checkIdle(d *shape.Decoder) {
	c := s.ObjectCluster
	if !c.Puts() {
		return
	}
	for _, u := range c.Idle(len(s.Workload) > 0) {
		d.Fail(s.Where("object_cluster."+u.Key), "object_cluster.%s: %s", u.Key, u.Why)
	}
	for i, x := range c.Failures {
		if until := s.Measure.Until.Time; until > 0 && x.At >= until {
			at := fmt.Sprintf("object_cluster.failures[%d].at", i)
			d.Fail(s.Where(at), "%s: target %d fails at %v, and the run ends at %v; use an earlier time, or a later "+
				"measure.until", at, x.Target, x.At, until)
		}
	}
}

// trafficDefaults sets absent keys to the values of SURGE's model of a pattern.
func (s *Scenario) trafficDefaults(k traffic.Kind, unsaid func(string) bool) {
	c := s.ObjectCluster
	if unsaid("link.trip") {
		c.Link.Trip = k.Trip()
	}
	p, t := traffic.PatternOf(k, c.Targets), &c.Traffic
	p.Jitter = c.Link.Trip
	for _, x := range []struct {
		key string
		set func()
	}{
		{"both", func() { t.Both = p.Both }}, {"interval", func() { t.Interval = p.Interval }}, {"choices",
			func() { t.Choices = p.Choices }}, {"load", func() { t.Load = p.Load }},
		{"burst", func() { t.Burst = p.Burst }}, {"refill", func() { t.Refill = p.Refill }}, {"hops",
			func() { t.Hops = p.Hops }},
		{"outstanding", func() { t.Outstanding = p.Outstanding }}, {"apart", func() { t.Apart = p.Apart }}, {"jitter",
			func() { t.Jitter = p.Jitter }},
	} {
		if unsaid("traffic." + x.key) {
			x.set()
		}
	}
}

// absentOfCluster lists the sections of an object cluster that its protocol does not use.
func (s *Scenario) absentOfCluster() []string {
	if s.ObjectCluster == nil {
		return nil
	}
	var out []string
	if _, ok := s.ObjectCluster.Protocol.Traffic(); !ok {
		out = append(out, "object_cluster.traffic")
	}
	if s.ObjectCluster.Protocol != Tiering {
		out = append(out, "object_cluster.tier")
	}
	return out
}

// checkClusterSections rejects sections that the protocol does not use.
func (s *Scenario) checkClusterSections(d *shape.Decoder) {
	use := map[string]string{"object_cluster.traffic": "exchange events; leave it out, or use a protocol such as storm", "object_cluster.tier": "fill tiers; leave it out, or use protocol: tiering"}
	for _, section := range s.absentOfCluster() {
		if _, said := d.Set[section]; said {
			d.Fail(s.Where(section), "%s: gateways with %v do not %s", section, s.ObjectCluster.Protocol, use[section])
		}
	}
	if !s.ObjectCluster.Puts() && len(s.Workload) > 0 {
		d.Fail(s.Where("workload"),
			"workload: %v has a load of its own and replays no trace; leave it out, or use a protocol such as "+
				"replicast-m", s.ObjectCluster.Protocol)
	}
}

// tierDefaults sets absent keys to SURGE's constants for its tiers: one initiator, an SSD and nine HDDs.
func (s *Scenario) tierDefaults(unsaid func(string) bool) {
	c, d := s.ObjectCluster, tier.DefaultConfig()
	for _, x := range []struct {
		key string
		set func()
	}{
		{"gateways", func() { c.Gateways = 1 }}, {"targets", func() { c.Targets = 1 + d.HDDs }}, {"replicas",
			func() { c.Replicas = 1 }}, {"chunk", func() { c.Chunk = d.Chunk }},
		{"link.rate", func() { c.Link.Rate = d.Link }}, {"link.overhead",
			func() { c.Link.Overhead = 0 }}, {"link.trip", func() { c.Link.Trip = d.Trip }},
	} {
		if unsaid(x.key) {
			x.set()
		}
	}
}

// checkChunks validates the sections that an object cluster shares with other scenarios: a drive for its targets, and a
// trace of its requests.
func (s *Scenario) checkChunks(d *shape.Decoder) {
	c := s.ObjectCluster
	switch ssd := c.Disk.Model == cluster.ModelSSD; {
	case ssd && s.SSD == nil:
		d.Fail(s.Where("object_cluster.disk.model"),
			"object_cluster.disk.model: no section ssd that describes the drive; add one, such as ssd: "+
				"tlc-enterprise")
	case !ssd && s.SSD != nil:
		d.Fail(s.Where("ssd"),
			"ssd: targets of an object cluster use it only with object_cluster.disk.model: ssd; set "+
				"that, or leave ssd out")
	}
	if s.SSD != nil {
		if s.SSD.Reliability != nil {
			d.Fail(s.Where("ssd.reliability"),
				"ssd.reliability: an object cluster reads no other copy after a media error; "+
					"leave it out")
		}
		s.SSD.finish(d, "ssd")
		s.refuseZones(d, s.SSD, "ssd", "an object cluster writes its disks in any order")
	}
	for i := range s.Workload {
		s.checkLoad(d, i, false)
	}
	if len(s.Workload) == 0 {
		return
	}
	if len(s.Workload) > 1 || s.Workload[0].Trace == nil {
		d.Fail(s.Where("workload"),
			"workload: an object cluster replays one trace; leave out all others, or set with object_cluster.load "+
				"how many chunks arrive")
		return
	}
	if s.Workload[0].Closed > 0 {
		d.Fail(s.Where("workload[0].closed"),
			"workload[0].closed: object_cluster.outstanding limits a gateway's chunks in flight; leave closed out")
	}
	if c.Load != (cluster.Load{}) {
		d.Fail(s.Where("object_cluster.load"),
			"object_cluster.load: the trace determines when chunks arrive; leave out one of the two")
	}
	if len(c.Sizes) > 0 {
		d.Fail(s.Where("object_cluster.sizes"),
			"object_cluster.sizes: the trace determines the writes, in chunks; leave it out")
	}
	if c.Update.Share > 0 {
		d.Fail(s.Where("object_cluster.update.share"),
			"object_cluster.update.share: the trace determines the writes, in chunks; leave it out")
	}
	if c.Reads > 0 {
		d.Fail(s.Where("object_cluster.reads"),
			"object_cluster.reads: the trace determines the reads; leave out one of the two")
	}
	if !c.Control.Queued {
		d.Fail(s.Where("object_cluster.control.queued"),
			"object_cluster.control.queued: a trace needs links that carry one frame at a time; use true")
	}
}

// ClusterHosts returns each node's host; gateways and targets are each spread evenly.
func (s *Scenario) ClusterHosts(hosts []int32) ([]int32, error) {
	g, t := s.ObjectCluster.Gateways, s.ObjectCluster.Targets
	if g+t > len(hosts) {
		return nil, units.Wrong("fabric.topology", "%d hosts are too few for %d gateways and %d targets", len(hosts),
			g, t)
	}
	nodes := make([]int32, g+t)
	// Nodes are ordered by the midpoints of their equal shares: two gateways and three targets give t g t g t.
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

// checkClusterNetwork verifies that a network is present if the cluster uses one, with links equal to the cluster's,
// and sets the cluster's delays from it.
func (s *Scenario) checkClusterNetwork(d *shape.Decoder) {
	c := s.ObjectCluster
	if c.Core != cluster.CorePacket {
		if s.Fabric != nil {
			d.Fail(s.Where("fabric"),
				"fabric: an object cluster uses it only with object_cluster.core: packet; set that, or leave "+
					"fabric out")
		}
		return
	}
	if s.Fabric == nil {
		d.Fail(s.Where("object_cluster.core"),
			"object_cluster.core: no section fabric that describes the network; add one, such as fabric: "+
				"{topology: {star: {hosts: %d}}, host_link: %v}", c.Gateways+c.Targets, c.Link.Rate)
		return
	}
	s.checkFabric(d)
	if len(d.Errs) > 0 || c.Gateways < 1 || c.Targets < 1 { // Validate reports these
		return
	}
	if _, said := d.Set["object_cluster.link.rate"]; said && c.Link.Rate != s.Fabric.HostLink {
		d.Fail(s.Where("object_cluster.link.rate"),
			"object_cluster.link.rate: fabric.host_link sets the hosts' links to %v; leave out one of the two",
			s.Fabric.HostLink)
	}
	c.Link.Rate = s.Fabric.HostLink
	g, err := s.Graph()
	if err != nil {
		return // checkFabric has reported it
	}
	hosts := HostsOf(g)
	if _, err := s.ClusterHosts(hosts); err != nil {
		d.Wrong("", err)
		return
	}
	if _, said := d.Set["object_cluster.link.trip"]; !said {
		c.Link.Trip = farthest(g, hosts, s.Fabric.Payload)
	}
}

// farthest returns the delay of a packet from the first to the last host of a network, without its transmission time on
// the first link.
func farthest(g *topo.Graph, hosts []int32, packet units.Bytes) units.Duration {
	r := g.Route(nil)
	from, to := hosts[0], hosts[len(hosts)-1]
	p, ok := r.Path(from, to)
	if !ok {
		return 0
	}
	return p.Delay + r.Serialisation(from, to, packet, 1) - p.Rate.TimeFor(packet)
}

package convert

import (
	"fmt"
	"path/filepath"
	"strings"

	"farflash/model/fabric"
	"farflash/model/fabric/cc"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/peer"
	"farflash/scenario/shape"
	"farflash/workload/flows"
)

// HTSim holds the command-line settings of csg-htsim.
type HTSim struct {
	// Topology is a topology file; without one the network is the fat-tree of three tiers that fits the number of
	// hosts, with links of Rate and 1 us.
	Topology string
	Rate     units.BitRate
	// MTU is the payload of a packet (-mtu).
	MTU units.Bytes
}

// DefaultHTSim returns the defaults of htsim_roce: 100 Gbit/s, packets of 9000 B.
func DefaultHTSim() HTSim { return HTSim{Rate: 100 * units.Gbps, MTU: 9000} }

// Packets and queues of htsim_roce: headers and ACKs of 64 B; a port that pauses above 15 packets and resumes at 12;
// independent connections, at line rate.
const (
	htsimHeader         = 64
	htsimHigh, htsimLow = 15, 12
	// Parsing accepts scenarios of up to 16 MiB, and a flow takes some 100 B.
	htsimFlows = 100_000
)

// FromHTSim converts a connection matrix of csg-htsim and, if given, a topology file to a scenario: RoCE over lossless
// queues as in htsim_roce. Everything in the files has a counterpart or a note, or is rejected with its line.
func FromHTSim(matrix string, o HTSim) (*Conversion, error) {
	m, err := peer.ReadFile(matrix, peer.ReadHTSimMatrix)
	if err != nil {
		return nil, err
	}
	s := &scenario.Scenario{Name: strings.TrimSuffix(baseName(matrix), ".cm")}
	c := &htsimConversion{Conversion: &Conversion{Scenario: s, Scenarios: 1}, m: m}
	c.note("converted from %s of csg-htsim, for lossless RoCE at line rate as htsim_roce has it", filepath.Base(matrix))
	x := scenario.DefaultFabric()
	c.x, c.Scenario.Fabric = &x, &x
	if o.Topology != "" {
		t, err := peer.ReadFile(o.Topology, peer.ReadHTSimTopology)
		if err != nil {
			return nil, err
		}
		if err := c.shape(t); err != nil {
			return nil, err
		}
	} else if err := c.tree(o.Rate); err != nil {
		return nil, err
	}
	x.Payload, x.Header, x.Acks.Size = o.MTU, htsimHeader, htsimHeader
	x.CongestionControl.Algorithm = cc.SchemeNone
	x.ECN.Enabled = false
	x.QueuePairs.Life = fabric.PerMessage
	packet := o.MTU + htsimHeader
	x.PFC.Threshold, x.PFC.Reserve, x.PFC.ResumeOffset = fabric.Threshold{Size: htsimHigh * packet}, 0,
		(htsimHigh-htsimLow)*packet
	if x.Buffer < 64*units.MiB {
		x.Buffer = 64 * units.MiB // its queues do not share memory
	}
	c.note("a switch selects a connection's path by another hash than htsim, which draws it by the time of day")
	if err := c.flows(); err != nil {
		return nil, err
	}
	if _, err := scenario.Parse(shape.Source{File: c.Scenario.Name + ".yaml", Text: []byte(c.Scenario.Resolved())},
		nil); err != nil {
		return nil, fmt.Errorf("%s describes an invalid network:\n%w", matrix, err)
	}
	return c.Conversion, nil
}

type htsimConversion struct {
	*Conversion
	m *peer.HTSimMatrix
	x *scenario.Fabric
}

// tree builds the fat-tree that htsim uses without a topology file.
func (c *htsimConversion) tree(rate units.BitRate) error {
	k := 2
	for ; k*k*k/4 < c.m.Hosts; k += 2 {
	}
	if k*k*k/4 != c.m.Hosts {
		return fmt.Errorf("%s:1: Nodes: a fat-tree of three tiers has 2, 16, 54, 128, 250, 432 hosts or more, depending on "+
			"K, not %d; give a topology file", c.m.File, c.m.Hosts)
	}
	c.x.Topology.FatTree = &topo.FatTree{K: k}
	c.x.HostLink, c.x.UpLink, c.x.Delay = rate, rate, units.Microsecond
	return nil
}

// shape converts the network of a topology file.
func (c *htsimConversion) shape(t *peer.HTSimTopology) error {
	if t.Hosts < c.m.Hosts {
		return fmt.Errorf("%s:1: Nodes: the connections use %d hosts, and %s has %d", c.m.File, c.m.Hosts,
			filepath.Base(t.File), t.Hosts)
	}
	s, err := htsimSwitches(t)
	if err != nil {
		return err
	}
	for i, x := range t.Tiers {
		if x.SwitchLatency != t.Tiers[0].SwitchLatency {
			return fmt.Errorf("%s:%d: Switch_Latency_ns: switches of tier %d take %v and those of tier 0 %v; use one "+
				"latency for all", t.File, x.Line, i, x.SwitchLatency, t.Tiers[0].SwitchLatency)
		}
		if x.QueueDown > 0 || x.QueueUp > 0 {
			c.note("%s:%d: queue sizes of tier %d have no counterpart: a switch's ports share its buffer",
				filepath.Base(t.File), x.Line, i)
		}
	}
	x := c.x
	x.SwitchLatency = t.Tiers[0].SwitchLatency
	low, next, top := t.Tiers[0], t.Tiers[1], t.Tiers[len(t.Tiers)-1]
	x.HostLink, x.UpLink, x.Delay = low.Speed, next.Speed, low.Delay
	alike := low.Delay == next.Delay && low.Delay == top.Delay && next.Speed == top.Speed && next.Bundle == 1 &&
		top.Bundle == 1
	k := 2 * low.Down
	switch {
	case alike && len(t.Tiers) == 2:
		x.Topology.LeafSpine = &topo.LeafSpine{Leaves: s.tors, Spines: s.aggs, HostsPerLeaf: low.Down}
	case alike && t.Hosts == k*k*k/4 && s.pods == k && s.torsOfPod == k/2 && s.aggsOfPod == k/2 && s.cores == k*k/4 &&
		low.Up == k/2:
		x.Topology.FatTree = &topo.FatTree{K: k}
	default:
		x.Topology.Links = s.links(t)
	}
	return nil
}

// htsimTree holds the numbers of switches.
type htsimTree struct {
	pods, torsOfPod, aggsOfPod, tors, aggs, cores int
}

// htsimSwitches counts the switches as htsim does, and rejects the topologies that it rejects.
func htsimSwitches(t *peer.HTSimTopology) (s htsimTree, err error) {
	low, next := &t.Tiers[0], &t.Tiers[1]
	wrong := func(tier *peer.HTSimTier, format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s", t.File, tier.Line, fmt.Sprintf(format, args...))
	}
	for i := range t.Tiers {
		x := &t.Tiers[i]
		if x.Down%x.Bundle != 0 {
			return s, wrong(x, "Radix_Down %d is not a multiple of Bundle %d", x.Down, x.Bundle)
		}
		if i+1 < len(t.Tiers) && x.Up%t.Tiers[i+1].Bundle != 0 {
			return s, wrong(x, "Radix_Up %d is not a multiple of the Bundle of the tier above, %d", x.Up,
				t.Tiers[i+1].Bundle)
		}
	}
	switch {
	case low.Bundle != 1:
		return s, wrong(low, "Bundle %d: a host has one link", low.Bundle)
	case t.Hosts%t.PodSize != 0:
		return s, fmt.Errorf("%s:1: Nodes %d is not a multiple of Podsize %d", t.File, t.Hosts, t.PodSize)
	case t.PodSize%low.Down != 0:
		return s, wrong(low, "Podsize %d is not a multiple of Radix_Down %d", t.PodSize, low.Down)
	case low.Down/low.Up != low.Oversub:
		return s, wrong(low, "Radix_Down %d over Radix_Up %d is not Oversubscribed %d", low.Down, low.Up, low.Oversub)
	}
	s.pods = t.Hosts / t.PodSize
	s.torsOfPod = t.PodSize / low.Down
	s.tors = s.pods * s.torsOfPod
	s.aggsOfPod = low.Up / next.Bundle
	s.aggs = s.pods * s.aggsOfPod
	if len(t.Tiers) == 2 {
		// Every aggregation switch has links to every ToR, whatever the pods.
		s.aggs = s.aggsOfPod
		if s.tors*next.Bundle != next.Down {
			return s, wrong(next, "Radix_Down %d: %d switches of tier 0 with %d links each need %d", next.Down,
				s.tors, next.Bundle, s.tors*next.Bundle)
		}
		return s, nil
	}
	top := &t.Tiers[2]
	if s.torsOfPod*next.Bundle != next.Down {
		return s, wrong(next, "Radix_Down %d: the %d switches of tier 0 of a pod with %d links each need %d",
			next.Down, s.torsOfPod, next.Bundle, s.torsOfPod*next.Bundle)
	}
	s.cores = next.Up / top.Bundle * s.aggsOfPod
	if s.pods*top.Bundle != top.Down {
		return s, wrong(top, "Radix_Down %d: %d pods with %d links each need %d", top.Down, s.pods, top.Bundle,
			s.pods*top.Bundle)
	}
	return s, nil
}

// links lists all links individually.
func (s *htsimTree) links(t *peer.HTSimTopology) (out []topo.LinkSpec) {
	add := func(a, b string, tier *peer.HTSimTier) {
		for range tier.Bundle {
			delay := tier.Delay
			out = append(out, topo.LinkSpec{A: a, B: b, Rate: tier.Speed, Delay: &delay})
		}
	}
	for h := range t.Hosts {
		add(fmt.Sprintf("h%d", h), fmt.Sprintf("tor%d", h/t.Tiers[0].Down), &t.Tiers[0])
	}
	for tor := range s.tors {
		first := tor / s.torsOfPod * s.aggsOfPod
		if len(t.Tiers) == 2 {
			first = 0
		}
		for a := range s.aggsOfPod {
			add(fmt.Sprintf("tor%d", tor), fmt.Sprintf("agg%d", first+a), &t.Tiers[1])
		}
	}
	if len(t.Tiers) == 3 {
		for agg := range s.aggs {
			for l := range t.Tiers[1].Up / t.Tiers[2].Bundle {
				add(fmt.Sprintf("agg%d", agg), fmt.Sprintf("core%d", agg%s.aggsOfPod+s.aggsOfPod*l), &t.Tiers[2])
			}
		}
	}
	return out
}

// flows converts the connections to a list.
func (c *htsimConversion) flows() error {
	m := c.m
	if len(m.Connections) > htsimFlows {
		return fmt.Errorf("%s:%d: more than %d connections make the scenario too large to read; divide the "+
			"file", m.File, m.Connections[htsimFlows].Line, htsimFlows)
	}
	triggers := map[int64]*peer.HTSimTrigger{}
	for i := range m.Triggers {
		t := &m.Triggers[i]
		if was := triggers[t.ID]; was != nil {
			return fmt.Errorf("%s:%d: trigger %d is defined twice; first on line %d", m.File, t.Line, t.ID, was.Line)
		}
		triggers[t.ID] = t
	}
	type activator struct {
		at   int
		upon flows.Upon
	}
	by := map[int64][]activator{}
	targets := map[int64]int{}
	priority := 0
	name := func(i int) string { return fmt.Sprintf("line%d", m.Connections[i].Line) }
	for i := range m.Connections {
		x := &m.Connections[i]
		targets[x.Trigger]++
		if x.Priority {
			priority++
		}
		for _, of := range []struct {
			id   int64
			upon flows.Upon
		}{{x.SendDone, flows.Acknowledged}, {x.RecvDone, flows.Delivered}} {
			if of.id == 0 {
				continue
			}
			if triggers[of.id] == nil {
				return fmt.Errorf("%s:%d: no trigger %d", m.File, x.Line, of.id)
			}
			by[of.id] = append(by[of.id], activator{i, of.upon})
		}
	}
	named := map[int]bool{}
	list := make([]flows.Entry, len(m.Connections))
	for i := range m.Connections {
		x := &m.Connections[i]
		e := &list[i]
		*e = flows.Entry{Src: x.Src, Dst: x.Dst, Class: scenario.DataClass, Size: x.Size, Start: x.Start}
		if x.Trigger == 0 {
			continue
		}
		t, from := triggers[x.Trigger], by[x.Trigger]
		need := 1
		if t != nil && t.Kind == peer.HTSimBarrier {
			need = t.Count
		}
		switch {
		case t == nil:
			return fmt.Errorf("%s:%d: no trigger %d", m.File, x.Line, x.Trigger)
		case t.Kind == peer.HTSimMultiShot && (len(from) != 1 || targets[t.ID] != 1):
			return fmt.Errorf("%s:%d: trigger %d is a multishot of %d connections, activated by %d; which one starts "+
				"when depends on the run, which has no counterpart", m.File, t.Line, t.ID, targets[t.ID], len(from))
		case len(from) != need:
			return fmt.Errorf("%s:%d: trigger %d starts its connections after %d activations, but %d "+
				"connections activate it", m.File, t.Line, t.ID, need, len(from))
		}
		for _, a := range from {
			if a.upon != from[0].upon {
				return fmt.Errorf("%s:%d: trigger %d is activated by senders and by receivers; use send_done_trigger "+
					"or recv_done_trigger for all", m.File, t.Line, t.ID)
			}
			named[a.at] = true
			e.After = append(e.After, name(a.at))
		}
		e.Upon = from[0].upon
	}
	for i := range list {
		if named[i] {
			list[i].Name = name(i)
		}
	}
	if priority > 0 {
		c.note("prio of %d connections is left out: htsim_roce ignores it", priority)
	}
	c.Scenario.Flows = []scenario.FlowLoad{{Config: flows.Config{List: list}}}
	return nil
}

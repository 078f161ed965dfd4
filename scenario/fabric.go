package scenario

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"farflash/internal/spelling"
	"farflash/model/fabric"
	"farflash/model/fabric/spread"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/scenario/peer"
	"farflash/scenario/shape"
	"farflash/sim"
	"farflash/workload/flows"
)

// Fabric is the fabric section: the shape of a network, its links, and its NICs and switches.
type Fabric struct {
	// Compat is the simulator whose deviations from a real network are reproduced, for comparisons with it. The
	// section's other keys change the network further.
	Compat FabricCompat
	// Transport carries the messages. The section's other keys change the network further.
	Transport Transport
	Topology  Topology       // Topology is the network's shape.
	HostLink  units.BitRate  // HostLink is the rate of hosts' links.
	UpLink    units.BitRate  // UpLink is the rate of links between switches.
	Delay     units.Duration // Delay is the propagation delay of a link.
	// Loss is the probability that a link corrupts a packet, in each direction. A link's own loss overrides it.
	Loss     units.Fraction
	Failures []Failure // Failures are links that fail.
	// Parts is the number of parts, each of whole pods, that are simulated in turns so that each stays in the
	// processor's cache. 0 chooses a number. Results do not depend on it.
	Parts int
	// Threads is the number of parts that are simulated in parallel. Results do not depend on it.
	Threads int
	fabric.Config
}

// Topology is the shape of a network: a built-in shape, a list of links, or a file.
type Topology struct {
	// File is a topology file of the simulators HPCC and ns3-rdma; its links have their own rates and delays.
	File string
	topo.Config
}

// Failure is a link that goes down.
type Failure struct {
	// A is the node at one end of the link, by a name such as tor0, or by number.
	A     string
	B     string         // B is the node at the other end.
	At    units.Duration // At is when the link goes down.
	Until units.Duration // Until is when the link comes up again. 0 is never.
}

// FlowLoad is one source of flows, of exactly one kind.
type FlowLoad struct {
	File string         // File is a flow file of the simulator HPCC.
	From units.Duration // From is the time in the file at which the simulation starts.
	flows.Config
}

// FabricCompat is the simulator whose deviations from a real network are reproduced.
type FabricCompat uint8

const (
	FabricCompatNone    FabricCompat = iota // a network without deviations
	FabricCompatHPCC                        // HPCC's ns-3
	FabricCompatNS3RDMA                     // ns3-rdma
)

var fabricCompatNames = units.Names[FabricCompat]{"none", "hpcc", "ns3-rdma"}

func (c FabricCompat) String() string { return fabricCompatNames.Name(c) }

func (c FabricCompat) MarshalText() ([]byte, error) { return fabricCompatNames.Marshal(c) }

func (c *FabricCompat) UnmarshalText(text []byte) error { return fabricCompatNames.Unmarshal(text, c) }

// DefaultFabric returns a network of 40 Gbit/s links.
func DefaultFabric() Fabric {
	return Fabric{Threads: 1, HostLink: 40 * units.Gbps, UpLink: 40 * units.Gbps, Delay: units.Microsecond,
		Config: fabric.DefaultConfig()}
}

// DataClass is the traffic class of flows that name none, by RoCE's convention.
const DataClass = 3

// Prepare applies the transport's or simulator's values before the section's.
func (x *Fabric) Prepare(_ *shape.Decoder, n *shape.Node, _ string) {
	// Errors in these keys are reported when they are decoded.
	if t := n.Get("transport"); t != nil && t.Kind == shape.Scalar && x.Transport.UnmarshalText([]byte(t.Text)) == nil {
		x.Config = x.Transport.config()
	}
	if c := n.Get("compat"); c != nil && c.Kind == shape.Scalar && x.Compat.UnmarshalText([]byte(c.Text)) == nil &&
		x.Compat != FabricCompatNone {
		x.Config = x.Compat.Config()
	}
}

// Config returns the configuration of a simulator's networks.
func (c FabricCompat) Config() fabric.Config {
	switch c {
	case FabricCompatHPCC:
		return fabric.HPCC(fabric.DefaultConfig())
	case FabricCompatNS3RDMA:
		return fabric.NS3RDMA(fabric.DefaultConfig())
	}
	return fabric.DefaultConfig()
}

// Settings returns the models' configuration, with the compat simulator's values.
func (x *Fabric) Settings() fabric.Config {
	c := x.Config
	if x.Compat == FabricCompatNS3RDMA {
		c.Pools = fabric.NS3RDMAPools(c)
	}
	return c
}

// checkFabric validates the network's section and its flows.
func (s *Scenario) checkFabric(d *shape.Decoder) {
	x := s.Fabric
	var own units.Faults
	own.Hold(x.HostLink > 0, "host_link", "%v is not possible; use a rate such as 40Gbps", x.HostLink)
	own.Hold(x.UpLink > 0, "up_link", "%v is not possible; use a rate such as 40Gbps", x.UpLink)
	own.Hold(x.Parts >= 0 && x.Parts <= 256, "parts", "%d is not possible; use 0 (automatic) or 1 to 256", x.Parts)
	own.Hold(x.Threads >= 1 && x.Threads <= 256, "threads", "%d is not possible; use 1 to 256", x.Threads)
	own.Hold(x.Parts <= 1 || x.Random != fabric.NS3Random, "parts",
		"random: ns-3 draws all numbers from one sequence; use 1, or random: own")
	own.Hold(x.Compat == FabricCompatNone || x.Transport == RoCEv2, "transport",
		"%v is not simulated by %v; use rocev2, or compat: none", x.Transport, x.Compat)
	own.Hold(x.Compat == FabricCompatNone || x.LoadBalancing.Choice == spread.Hash, "load_balancing.choice",
		"%v is not simulated by %v; use hash, or compat: none", x.LoadBalancing.Choice, x.Compat)
	own.Hold(x.Compat == FabricCompatNone || x.Recovery.Reordering == 0 && x.Recovery.Window == 0, "recovery",
		"%v has no reordering and no window; use 0 for both, or compat: none", x.Compat)
	own.Hold(x.Compat == FabricCompatNone || !x.Trimming.Enabled, "trimming.enabled",
		"%v does not trim; use false, or compat: none", x.Compat)
	own.Hold(x.Loss >= 0 && x.Loss < 1, "loss", "%v is not possible; use 0%% to less than 100%%", float64(x.Loss))
	own.Hold(x.Delay >= 0, "delay", "%v is not possible; use a time such as 1us", x.Delay)
	cfg := x.Settings()
	own.Within("", cfg.Validate())
	for i, f := range x.Failures {
		own.Hold(f.At >= 0 && f.Until >= 0 && (f.Until == 0 || f.Until > f.At), fmt.Sprintf("failures[%d]", i),
			"the link is down from %v until %v; until must be later, or 0 for ever", f.At, f.Until)
	}
	d.Wrong("fabric", own.Err())
	if len(s.Flows) == 0 && len(s.Targets) == 0 && s.ObjectCluster == nil {
		d.Fail(s.Where(""), "the network has no flows; add some, such as \"flows: [{incast: {fan: 8, "+
			"size: 1MB}}]\"")
	}
	for i := range s.Flows {
		s.checkClasses(d, i)
	}
	if s.Measure.Until.Steady && len(s.Targets) == 0 {
		d.Fail(s.Where("measure.until"), "measure.until: steady is for drives; give a time such as 10ms, or end")
	}
	if len(d.Errs) > 0 {
		s.checkFlowsAnyway(d)
		return
	}
	g, err := s.Graph()
	if err != nil {
		d.Wrong("fabric", err)
		return
	}
	for i := range s.Flows {
		path := fmt.Sprintf("flows[%d]", i)
		if s.Flows[i].File != "" {
			list, err := s.fileFlows(&s.Flows[i], g)
			if err != nil {
				d.Fail(s.Where(path+".file"), "%s.file: %v", path, err)
			}
			for _, x := range list {
				if most := fabric.MaxClasses - max(g.Channels, 1); int(x.Class) > most {
					d.Fail(s.Where(path+".file"),
						"%s.file: priority group %d is not possible with the network's virtual channels; use 1 to %d",
						path, x.Class, most)
					break
				}
			}
		} else if src, err := flows.New(s.Flows[i].Config, s.offered(g, i, 1)); err != nil {
			d.Wrong(path, err)
		} else if _, ok := src.(flows.Reactive); ok && (len(s.Targets) > 0 || s.ObjectCluster != nil) {
			d.Fail(s.Where(path),
				"%s: flows that wait for others need a network alone; use independent flows with "+
					"targets and object clusters", path)
		}
	}
	s.checkChannels(d, fabric.MaxClasses-max(g.Channels, 1))
	for i, f := range x.Failures {
		if _, err := FindLink(g, f.A, f.B); err != nil {
			path := fmt.Sprintf("fabric.failures[%d]", i)
			d.Fail(s.Where(path), "%s: %v", path, err)
		}
	}
	// Only the network itself can tell whether a switch's buffer is large enough. Building a large network takes
	// seconds; its errors are reported when it runs.
	const large = 4096
	if len(g.Nodes) > large {
		return
	}
	if _, err := fabric.New(cfg, g, sim.New(), nil, 1, "fabric"); err != nil {
		d.Wrong("fabric", err)
	}
}

// checkFlowsAnyway validates the flows of a network that has errors, which are in d already. It substitutes defaults
// for the invalid values, as far as that yields a valid network.
func (s *Scenario) checkFlowsAnyway(d *shape.Decoder) {
	y, x, sound := *s, *s.Fabric, DefaultFabric()
	if x.HostLink <= 0 {
		x.HostLink = sound.HostLink
	}
	if x.UpLink <= 0 {
		x.UpLink = sound.UpLink
	}
	x.Delay = max(x.Delay, 0)
	y.Fabric = &x
	g, err := y.Graph()
	if err != nil {
		return
	}
	for i := range y.Flows {
		if y.Flows[i].File != "" {
			continue // its classes depend on the network's channels
		}
		if _, err := flows.New(y.Flows[i].Config, y.offered(g, i, 1)); err != nil {
			d.Wrong(fmt.Sprintf("flows[%d]", i), err)
		}
	}
}

// checkClasses verifies that no flow uses the class of control traffic.
func (s *Scenario) checkClasses(d *shape.Decoder, i int) {
	f := &s.Flows[i]
	path := fmt.Sprintf("flows[%d]", i)
	wrong := func(path string, class uint8) {
		if class == 0 || class >= fabric.MaxClasses {
			d.Fail(s.Where(path+".class"), "%s.class: %d is not possible; use 1 to %d (0 is for control traffic)",
				path, class, fabric.MaxClasses-1)
		}
	}
	if f.File == "" && len(f.List) == 0 {
		wrong(path, f.Class)
	}
	for k := range f.List {
		wrong(fmt.Sprintf("%s.list[%d]", path, k), f.List[k].Class)
	}
}

// checkChannels verifies that every class has enough virtual channels for the shape; most is the last class that has.
func (s *Scenario) checkChannels(d *shape.Decoder, most int) {
	wrong := func(path string, class uint8) {
		if int(class) > most {
			d.Fail(s.Where(path),
				"%s: %d is not possible: the network's shape needs %d virtual channels, which take the classes above "+
					"each; use 1 to %d", path, class, fabric.MaxClasses-most, most)
		}
	}
	for i := range s.Flows {
		f := &s.Flows[i]
		if f.File == "" && len(f.List) == 0 {
			wrong(fmt.Sprintf("flows[%d].class", i), f.Class)
		}
		for k := range f.List {
			wrong(fmt.Sprintf("flows[%d].list[%d].class", i, k), f.List[k].Class)
		}
	}
	if len(s.Targets) > 0 {
		wrong("nvmf.class", s.NVMf.Class)
	}
}

// Graph builds the network's graph; errors refer to the fabric section.
func (s *Scenario) Graph() (*topo.Graph, error) {
	x := s.Fabric
	if x.Topology.File == "" {
		g, err := topo.Build(x.Topology.Config, x.HostLink, x.UpLink, x.Delay)
		var wrong units.Faults
		for _, f := range units.FieldErrors(err) {
			if slices.Contains([]string{"host_link", "up_link", "delay"}, f.Path) {
				wrong.Within("", f)
			} else {
				wrong.Within("topology", f)
			}
		}
		if err := wrong.Err(); err != nil {
			return nil, err
		}
		return x.withLoss(g), nil
	}
	if x.Topology.Planes > 1 {
		return nil, units.Wrong("topology.planes",
			"%d planes of a file's network are not possible; the file has all links", x.Topology.Planes)
	}
	t, err := peer.ReadFile(s.Path(x.Topology.File), peer.ReadNS3Topology)
	var surplus *peer.NS3SurplusError
	if err != nil && !errors.As(err, &surplus) {
		return nil, units.Wrong("topology.file", "%v", err)
	}
	return x.withLoss(topologyGraph(t)), nil
}

// withLoss applies the section's loss to links without a loss of their own.
func (x *Fabric) withLoss(g *topo.Graph) *topo.Graph {
	for i := range g.Links {
		if l := &g.Links[i]; l.Loss == 0 {
			l.Loss = float64(x.Loss)
		}
	}
	return g
}

// HostsOf returns the nodes of a graph's hosts.
func HostsOf(g *topo.Graph) []int32 {
	var out []int32
	for i := range g.Nodes {
		if g.Nodes[i].Kind == topo.Host {
			out = append(out, int32(i))
		}
	}
	return out
}

// offered returns the network properties that a source of flows needs.
func (s *Scenario) offered(g *topo.Graph, i int, seed uint64) flows.Network {
	links := make([]units.BitRate, len(g.Nodes))
	for _, l := range g.Links {
		links[l.A] += l.Rate
		links[l.B] += l.Rate
	}
	hosts := links[:0]
	for n := range g.Nodes {
		if g.Nodes[n].Kind == topo.Host {
			hosts = append(hosts, links[n])
		}
	}
	if s.Flows[i].Name == "" {
		s.Flows[i].Name = fmt.Sprintf("flows[%d]", i)
	}
	return flows.Network{Hosts: len(hosts), Links: hosts, Seed: seed}
}

// Offer is the load that a network carries.
type Offer struct {
	Source  flows.Source
	Classes uint8 // bit mask
	Count   int   // of flows; 0 if unknown
	// Reactive holds the sources whose flows wait for other flows, indexed by section; the other entries are nil. The
	// slice is nil if there are none.
	Reactive []flows.Reactive
}

// OpenFlows creates the source of all flows.
func (s *Scenario) OpenFlows(g *topo.Graph, seed uint64) (Offer, error) {
	var all []flows.Source
	count, known := 0, true
	classes := uint8(0)
	var reactive []flows.Reactive
	for i := range s.Flows {
		f := &s.Flows[i]
		path := fmt.Sprintf("flows[%d]", i)
		if f.File == "" {
			src, err := flows.New(f.Config, s.offered(g, i, seed))
			if err != nil {
				return Offer{}, &shape.Error{At: s.Where(path), Msg: fmt.Sprintf("%s.%v", path, err)}
			}
			if r, ok := src.(flows.Reactive); ok {
				if reactive == nil {
					reactive = make([]flows.Reactive, len(s.Flows))
				}
				reactive[i] = r
			}
			all = append(all, flows.InGroup(src, uint16(i)))
			n, ok := f.Count(g.Hosts())
			count, known = count+n, known && ok
			classes |= 1 << f.Class
			for _, x := range f.List {
				classes |= 1 << x.Class
			}
			continue
		}
		list, err := s.fileFlows(f, g)
		if err != nil {
			return Offer{}, &shape.Error{At: s.Where(path), Msg: fmt.Sprintf("%s: %v", path, err)}
		}
		for i := range list {
			classes |= 1 << list[i].Class
		}
		all = append(all, flows.InGroup(flows.Slice(list), uint16(i)))
		count += len(list)
	}
	if !known {
		count = 0
	}
	return Offer{flows.Merge(all...), classes, count, reactive}, nil
}

// fileFlows reads a flow file of HPCC's simulator.
func (s *Scenario) fileFlows(f *FlowLoad, g *topo.Graph) ([]flows.Flow, error) {
	list, err := peer.ReadFile(s.Path(f.File),
		func(name string, r io.Reader) ([]peer.NS3Flow, error) { return peer.ReadHPCCFlows(name, r, nil) })
	var surplus *peer.NS3SurplusError
	if err != nil && !errors.As(err, &surplus) {
		return nil, err
	}
	number := make([]int32, len(g.Nodes))
	for i, n := range HostsOf(g) {
		number[n] = int32(i) + 1
	}
	out := make([]flows.Flow, len(list))
	for i, x := range list {
		if x.Priority == 0 {
			return nil, fmt.Errorf("%s:%d: priority group 0 is the class of control traffic; use 1 to 7", f.File,
				x.Line)
		}
		if s.Fabric.Compat == FabricCompatHPCC {
			x.Start = ns3Seconds(x.Start)
		}
		for _, n := range [...]int{x.Src, x.Dst} {
			if n < 0 || n >= len(number) || number[n] == 0 {
				return nil, fmt.Errorf("%s:%d: node %d is not a host of the topology", f.File, x.Line, n)
			}
		}
		if x.Start < f.From {
			return nil, fmt.Errorf("%s:%d: the flow starts at %v, before from, %v", f.File, x.Line, x.Start, f.From)
		}
		out[i] = flows.Flow{Src: number[x.Src] - 1, Dst: number[x.Dst] - 1, Class: uint8(x.Priority), Size: x.Bytes,
			Start: x.Start - f.From}
	}
	return out, nil
}

// ns3Seconds converts a time as ns-3 does. ns-3 holds seconds in a float64, separates the fraction and truncates it to
// whole nanoseconds, which can be one less than the file says.
func ns3Seconds(t units.Duration) units.Duration {
	v, err := strconv.ParseFloat(fmt.Sprintf("%d.%012d", t/units.Second, t%units.Second), 64)
	if err != nil {
		return t // t formats as a number
	}
	whole := math.Floor(v)
	part := v - whole
	product := part * 1e9
	ns := math.Floor(product)
	if ns == product && math.FMA(part, 1e9, -product) < 0 {
		ns--
	}
	return units.Duration(whole)*units.Second + units.Duration(ns)*units.Nanosecond
}

// FindLink returns the link between two nodes, each given by name or number.
func FindLink(g *topo.Graph, a, b string) (int32, error) {
	find := func(name string) (int32, error) {
		for i := range g.Nodes {
			if g.Nodes[i].Name == name || fmt.Sprint(i) == name {
				return int32(i), nil
			}
		}
		names := make([]string, len(g.Nodes))
		for i := range g.Nodes {
			names[i] = g.Nodes[i].Name
		}
		return 0, fmt.Errorf("no node %q; did you mean %s?", name, spelling.Nearest(name, names))
	}
	x, err := find(a)
	if err != nil {
		return 0, err
	}
	y, err := find(b)
	if err != nil {
		return 0, err
	}
	for i, l := range g.Links {
		if l.A == x && l.B == y || l.A == y && l.B == x {
			return int32(i), nil
		}
	}
	return 0, fmt.Errorf("no link between %s and %s", a, b)
}

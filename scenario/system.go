package scenario

import (
	"fmt"
	"reflect"

	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/model/fabric/topo"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/scenario/shape"
)

// TargetGroup is a number of equal targets.
type TargetGroup struct {
	Count int // Count is the number of targets of this kind.
	SSDs  int // SSDs is the number of drives in each.
	// SSD describes each drive: a preset's name, or a section. The default is the scenario's ssd.
	SSD *Drive
}

// Route says who issues a request and where it goes.
type Route struct {
	Initiator InitiatorRoute // Initiator says who issues a request.
	Target    TargetRoute    // Target is where a request goes.
}

// TargetRoute says where a request goes. It may be one word, or {stripe: 64KiB}.
type TargetRoute struct {
	By     TargetBy    // By says how the drive is chosen.
	Stripe units.Bytes // Stripe is the length of a stripe.
}

// Prepare selects striping where only a stripe's length is given.
func (r *TargetRoute) Prepare(_ *shape.Decoder, n *shape.Node, _ string) {
	if n.Get("stripe") != nil && n.Get("by") == nil {
		r.By = ByStripe
	}
}

// UnmarshalText parses the short form.
func (r *TargetRoute) UnmarshalText(text []byte) error { return r.By.UnmarshalText(text) }

// InitiatorRoute is who issues requests.
type InitiatorRoute uint8

const (
	RoundRobin     InitiatorRoute = iota // initiators take turns
	InitiatorTrace                       // the volume that the trace names decides
	InitiatorHash                        // a hash of volume and address decides
	InitiatorEach                        // every initiator runs the whole workload
)

var initiatorRoutes = units.Names[InitiatorRoute]{"round-robin", "trace", "hash", "each"}

func (r InitiatorRoute) String() string { return initiatorRoutes.Name(r) }

func (r InitiatorRoute) MarshalText() ([]byte, error) { return initiatorRoutes.Marshal(r) }

func (r *InitiatorRoute) UnmarshalText(text []byte) error { return initiatorRoutes.Unmarshal(text, r) }

// TargetBy is how a request's drive is chosen.
type TargetBy uint8

const (
	ByHash   TargetBy = iota // a hash of the volume and of the address, in extents of 1MiB
	ByStripe                 // the address, in stripes over all drives
	ByVolume                 // the volume that the trace names, one drive for each
	ByTrace                  // the volume selects a target, then one of its drives
)

var targetWays = units.Names[TargetBy]{"hash", "stripe", "volume", "trace"}

func (t TargetBy) String() string { return targetWays.Name(t) }

func (t TargetBy) MarshalText() ([]byte, error) { return targetWays.Marshal(t) }

func (t *TargetBy) UnmarshalText(text []byte) error { return targetWays.Unmarshal(text, t) }

// Place says which of the network's hosts are initiators and which targets.
type Place struct {
	Initiators Where // Initiators says which hosts are initiators.
	Targets    Where // Targets says which of the other hosts are targets.
	// InitiatorHosts lists the initiators' hosts by number, instead of initiators.
	InitiatorHosts []int
	TargetHosts    []int // TargetHosts lists the targets' hosts by number, instead of targets.
	// InitiatorNICs is the number of each initiator's network cards: consecutive hosts of the network.
	InitiatorNICs int
	TargetNICs    int // TargetNICs is that of each target.
}

// Where is a choice among hosts.
type Where uint8

const (
	FirstHosts  Where = iota // the first ones
	LastHosts                // the last ones
	SpreadHosts              // evenly spread over the hosts
)

var whereNames = units.Names[Where]{"first", "last", "spread"}

func (w Where) String() string { return whereNames.Name(w) }

func (w Where) MarshalText() ([]byte, error) { return whereNames.Marshal(w) }

func (w *Where) UnmarshalText(text []byte) error { return whereNames.Unmarshal(text, w) }

// Coupling says how the network and the drives are simulated together.
type Coupling struct {
	Mode      CouplingMode // Mode is how the network and the drives are simulated.
	Iterative Iterative    // Iterative has the settings of the iteration.
}

// Iterative is how SNIS iterates.
type Iterative struct {
	// Threshold is the change between iterations (Conv_C) below which they have converged.
	Threshold units.Fraction
	// StableRange is how far Conv_C may differ from the previous one to count as stable.
	StableRange units.Fraction
	// StableFor is the number of consecutive stable iterations that also count as convergence.
	StableFor int
	// Weights are those of the changes of the mean, the median and the 90th percentile of requests' throughput in
	// Conv_C.
	Weights    [3]units.Fraction
	Iterations int  // Iterations is the largest number of iterations.
	Full       bool // Full continues to the last iteration even after convergence.
	// FirstWriteArrival is when a write arrives at its drive in the first iteration, which SNIS' equation 2 does not
	// define.
	FirstWriteArrival FirstWrite
	WriteDelay        WriteDelay // WriteDelay is the delay of a write, which determines its throughput.
	// CountFrom is the number of the first iteration, 0 or 1. SNIS counts from 0, and also calls the iteration with the
	// first distance the second.
	CountFrom int
	// Redraw gives each iteration its own random numbers, like a simulator without a seed. Otherwise iterations differ
	// only by their arrivals.
	Redraw bool
	// Acceleration changes the writes' arrivals at drives between iterations, to converge sooner.
	Acceleration cosim.Acceleration
	// Relaxation is the share of the change that is applied with relaxation, and the first share with aitken.
	Relaxation units.Fraction
}

// CouplingMode is how the network and the drives are simulated together.
type CouplingMode uint8

const (
	Coupled       CouplingMode = iota // in one event loop, where every interaction is exact
	IterativeOnly                     // the drives and the network in turns, as in SNIS
	Both                              // both modes, to compare them
)

var couplingModes = units.Names[CouplingMode]{"coupled", "iterative", "both"}

func (m CouplingMode) String() string { return couplingModes.Name(m) }

func (m CouplingMode) MarshalText() ([]byte, error) { return couplingModes.Marshal(m) }

func (m *CouplingMode) UnmarshalText(text []byte) error { return couplingModes.Unmarshal(text, m) }

// FirstWrite is when a write arrives at its drive in the first iteration.
type FirstWrite uint8

const (
	// FirstAtArrival: at the write's arrival; the paper's text has both simulators process all requests in each
	// iteration.
	FirstAtArrival FirstWrite = iota
	FirstUnloaded             // when it would arrive if it were alone in the network
	FirstAbsent               // not at all, as the equation is printed
)

var firstWrites = units.Names[FirstWrite]{"arrival", "unloaded", "absent"}

func (f FirstWrite) String() string { return firstWrites.Name(f) }

func (f FirstWrite) MarshalText() ([]byte, error) { return firstWrites.Marshal(f) }

func (f *FirstWrite) UnmarshalText(text []byte) error { return firstWrites.Unmarshal(text, f) }

// WriteDelay is the definition of a write's delay in an iteration.
type WriteDelay uint8

const (
	// DelayOfStages: the network's delay in this iteration and the drive's, as SNIS' text says (it includes both).
	DelayOfStages WriteDelay = iota
	// DelayToDeparture: from arrival to departure from the drive (SD_i - A); by equation 2 the network's delay in it is
	// the last iteration's, and zero in the first.
	DelayToDeparture
)

var writeDelays = units.Names[WriteDelay]{"stages", "departure"}

func (w WriteDelay) String() string { return writeDelays.Name(w) }

func (w WriteDelay) MarshalText() ([]byte, error) { return writeDelays.Marshal(w) }

func (w *WriteDelay) UnmarshalText(text []byte) error { return writeDelays.Unmarshal(text, w) }

// systemKeys are the keys of scenarios with targets only.
var systemKeys = []string{"initiators", "targets", "route", "place", "protocol", "nvmf", "coupling"}

// localKeys are the keys of a workload item that refer to a local drive's queue.
var localKeys = []string{"queue", "namespace"}

// absent lists the keys that do not apply to this kind of scenario.
func (s *Scenario) absent() []string {
	var out []string
	if len(s.Targets) == 0 {
		out = append(s.absentOfCluster(), systemKeys...)
		if s.ObjectCluster != nil || s.Fabric != nil {
			out = append(out, "rate_control")
		}
	} else if s.HostRAID != nil {
		out = append(out, "route.target", "host_raid.drives")
	}
	for i := range s.Workload {
		if len(s.Targets) > 0 {
			for _, key := range localKeys {
				out = append(out, fmt.Sprintf("workload[%d].%s", i, key))
			}
		}
		if !s.HasDrives() || s.DriveOf(0).Groups() == 1 {
			out = append(out, fmt.Sprintf("workload[%d].group", i))
		}
	}
	return out
}

// defaultSystem sets the defaults of a system.
func (s *Scenario) defaultSystem() {
	s.Initiators = 1
	s.Route = Route{Target: TargetRoute{Stripe: 64 * units.KiB}}
	s.Place = Place{Targets: LastHosts, InitiatorNICs: 1, TargetNICs: 1}
	s.NVMf = nvmf.DefaultConfig()
	third := units.Fraction(1) / 3
	s.Coupling.Iterative = Iterative{Threshold: 0.1, StableRange: 0.02, StableFor: 3,
		Weights: [3]units.Fraction{third, third, third}, Iterations: 11, Relaxation: 0.5}
}

// DriveOf returns the drive of a group of targets, or the scenario's own.
func (s *Scenario) DriveOf(group int) *Drive {
	if group < len(s.Targets) && s.Targets[group].SSD != nil {
		return s.Targets[group].SSD
	}
	return s.SSD
}

// NetworkAlone reports whether the scenario is a network with its flows.
func (s *Scenario) NetworkAlone() bool {
	return s.Fabric != nil && len(s.Targets) == 0 && s.ObjectCluster == nil
}

// HasDrives reports whether there is a drive to simulate.
func (s *Scenario) HasDrives() bool { return s.DriveOf(0) != nil }

// CountTargets returns the numbers of targets and of drives.
func (s *Scenario) CountTargets() (targets, ssds int) {
	for i := range s.Targets {
		targets += s.Targets[i].Count
		ssds += s.Targets[i].Count * s.Targets[i].SSDs
	}
	return targets, ssds
}

// Upper limits, so that a typing error does not exhaust memory.
const (
	mostInitiators = 4096
	mostTargets    = 4096
	mostSSDs       = 16384
	mostNICs       = 16
)

// checkSystem validates the components of a system, and completes its network.
func (s *Scenario) checkSystem(d *shape.Decoder) {
	fail := func(path, format string, args ...any) { d.Fail(s.Where(path), path+": "+format, args...) }
	if s.Initiators < 1 || s.Initiators > mostInitiators {
		fail("initiators", "%d is not possible; use 1 to %d", s.Initiators, mostInitiators)
	}
	for i := range s.Targets {
		g := &s.Targets[i]
		path := fmt.Sprintf("targets[%d]", i)
		if g.Count < 1 || g.Count > mostTargets {
			fail(path+".count", "%d is not possible; use 1 to %d", g.Count, mostTargets)
		}
		if g.SSDs < 1 || g.SSDs > 256 {
			fail(path+".ssds", "%d is not possible; use 1 to 256", g.SSDs)
		}
		if g.SSD != nil {
			g.SSD.finish(d, path+".ssd")
		} else if s.SSD == nil {
			fail(path, "no ssd; add one, such as \"ssd: tlc-enterprise\"")
		}
	}
	if s.SSD != nil {
		s.SSD.finish(d, "ssd")
	}
	targets, ssds := s.CountTargets()
	if ssds > mostSSDs {
		fail("targets", "%d drives are above the limit of %d", ssds, mostSSDs)
	}
	d.Wrong("nvmf", s.NVMf.Validate())
	for _, x := range []struct {
		key string
		n   int
	}{{"place.initiator_nics", s.Place.InitiatorNICs}, {"place.target_nics", s.Place.TargetNICs}} {
		if x.n < 1 || x.n > mostNICs {
			fail(x.key, "%d is not possible; use 1 to %d", x.n, mostNICs)
		}
	}
	if s.Route.Target.Stripe < 4*units.KiB || s.Route.Target.Stripe%units.Sector != 0 {
		fail("route.target.stripe", "%v is not possible; use a multiple of 512B from 4KiB on", s.Route.Target.Stripe)
	}
	s.checkCoupling(fail)
	s.checkRateControl(d)
	if len(d.Errs) > 0 {
		return
	}
	s.checkPaths(d, fail)
	s.checkZonesBehind(fail)
	if s.Fabric == nil {
		f := DefaultFabric()
		s.Fabric = &f
	}
	if s.Fabric.Topology.File == "" && reflect.ValueOf(s.Fabric.Topology.Config).IsZero() {
		s.Fabric.Topology.Star = &topo.Star{Hosts: s.Initiators*s.Place.InitiatorNICs + targets*s.Place.TargetNICs}
	}
	s.checkTransport(fail)
	for _, x := range []struct {
		key string
		n   int
	}{{"fabric.parts", s.Fabric.Parts}, {"fabric.threads", s.Fabric.Threads}} {
		switch {
		case x.n <= 1:
		case s.Coupling.Mode != IterativeOnly:
			fail(x.key, "a coupled system cannot be divided; use 1, or coupling.mode: iterative")
		case len(s.Flows) > 0:
			fail(x.key, "a system with other flows cannot be divided; use 1")
		}
	}
}

// Controlled reports whether drives are divided between reads and writes.
func (s *Scenario) Controlled() bool {
	return s.RateControl != nil && s.RateControl.Kind != ratecontrol.None
}

// checkRateControl validates the section that divides drives between reads and writes.
func (s *Scenario) checkRateControl(d *shape.Decoder) {
	if s.RateControl == nil {
		return
	}
	d.Wrong("rate_control", s.RateControl.Validate())
	s.checkModel(d)
	fail := func(format string, args ...any) {
		d.Fail(s.Where("rate_control"), "rate_control: "+format, args...)
	}
	switch {
	case !s.Controlled():
	case !s.Protocol.Capsules():
		fail("protocol: %v has no transmit queue and no persistent queue pairs to hold reads back for; use "+
			"protocol: nvmeof", s.Protocol)
	case s.Coupling.Mode != Coupled:
		fail("drives and network in turns do not see each other while they run; use coupling.mode: coupled")
	case s.Fabric != nil && s.Fabric.QueuePairs.Life == fabric.PerMessage:
		fail("a queue pair per message has no lasting rate; use fabric.queue_pairs.life: persistent")
	case s.NVMf.Buffers.Count > 0:
		fail("a controller paces writes in the list in which reads would wait for buffers; use nvmf.buffers.count: 0")
	case s.Place.TargetNICs > 1:
		fail("a controller follows the rate of one link, and targets have %d; use place.target_nics: 1", s.Place.TargetNICs)
	}
}

// checkPaths validates the paths between initiators and targets, and their number.
func (s *Scenario) checkPaths(d *shape.Decoder, fail func(path, format string, args ...any)) {
	m := &s.NVMf.Multipath
	targets, _ := s.CountTargets()
	n, err := m.Fits(s.Place.InitiatorNICs, s.Place.TargetNICs, targets)
	d.Wrong("nvmf.multipath", err)
	if controllers := s.Initiators * targets * n; controllers > nvmf.MostControllers {
		fail("nvmf.multipath.paths", "%d paths make %d controllers, above the limit of %d; use fewer", n, controllers,
			nvmf.MostControllers)
	}
	switch at := "nvmf.multipath"; {
	case n == 1 && len(m.ANA) == 0:
	case s.Coupling.Mode != Coupled:
		fail(at, "several paths, and paths whose state changes, need coupling.mode: coupled")
	case !s.Protocol.Capsules():
		fail(at, "protocol %v has no controllers, of which each path is one; use protocol: nvmeof, or one network "+
			"card each", s.Protocol)
	case s.Fabric != nil && s.Fabric.QueuePairs.Life == fabric.PerMessage:
		fail(at, "a queue pair per message belongs to no path; use fabric.queue_pairs.life: persistent")
	case err == nil && s.Measure.Until.Time == 0:
		if i, target := m.Strands(n, targets); i >= 0 {
			fail(fmt.Sprintf("%s.ana[%d].state", at, i), "target %d has no path from then on, and commands to it wait "+
				"for ever; make one accessible later, or end the run at a time: measure.until", target)
		}
	}
}

// checkCoupling validates the coupling of the network and the drives.
func (s *Scenario) checkCoupling(fail func(path, format string, args ...any)) {
	it := &s.Coupling.Iterative
	const at = "coupling.iterative."
	if it.Threshold < 0 || it.Threshold >= 1 {
		fail(at+"threshold", "%v is not possible; use 0%% to less than 100%%", it.Threshold)
	}
	if it.StableRange < 0 || it.StableRange >= 1 {
		fail(at+"stable_range", "%v is not possible; use 0%% to less than 100%%", it.StableRange)
	}
	if it.StableFor < 1 || it.StableFor > 1000 {
		fail(at+"stable_for", "%d is not possible; use 1 to 1000", it.StableFor)
	}
	sum := units.Fraction(0)
	for _, w := range it.Weights {
		sum += w
		if w < 0 {
			fail(at+"weights", "%v is not possible; use shares whose sum is 1", w)
		}
	}
	if sum < 0.999 || sum > 1.001 {
		fail(at+"weights", "their sum is %.4g; it must be 1", float64(sum))
	}
	if it.Iterations < 2 || it.Iterations > 1000 {
		fail(at+"iterations", "%d is not possible; use 2 to 1000", it.Iterations)
	}
	if it.CountFrom != 0 && it.CountFrom != 1 {
		fail(at+"count_from", "%d is not possible; use 0 or 1", it.CountFrom)
	}
	if it.Relaxation <= 0 || it.Relaxation > 1 {
		fail(at+"relaxation", "%v is not possible; use more than 0%% up to 100%%", it.Relaxation)
	}
	if s.Coupling.Mode == Coupled {
		return
	}
	if s.Coupling.Mode == IterativeOnly && s.Protocol != nvmf.Flows {
		at := "protocol"
		if _, said := s.set[at]; !said {
			at = "coupling.mode"
		}
		fail(at, "protocol %v is not possible: drives and network in turns have one flow for each request; use "+
			"protocol: flows, or coupling.mode: both, which isolates the protocol's effect", s.Protocol)
	}
	for i := range s.Workload {
		if s.Workload[i].Closed > 0 || s.Workload[i].Fio != nil {
			fail(fmt.Sprintf("workload[%d]", i),
				"a closed loop issues a request when one completes, which drives and network in turns do not see "+
					"while they run; use coupling.mode: coupled, or requests with arrival times")
		}
		if s.Workload[i].Flush != nil {
			fail(fmt.Sprintf("workload[%d].flush", i),
				"drives and network in turns support only reads and writes; leave flushes out, or use coupling.mode: coupled")
		}
	}
	if s.Measure.Until.Time > 0 || s.Measure.Until.Steady {
		fail("measure.until",
			"drives and network in turns run to the end of the requests; use workload[i].until or limit")
	}
	if len(s.Flows) > 0 {
		fail("flows", "other traffic on a system's network needs coupling.mode: coupled")
	}
	if s.Fabric != nil && len(s.Fabric.Failures) > 0 {
		fail("fabric.failures", "links that fail need coupling.mode: coupled")
	}
	if s.NVMf.Limits.Any() {
		fail("nvmf.limits", "targets with limits need coupling.mode: coupled")
	}
}

// cards describes the network cards of machines that have several.
func (p *Place) cards() string {
	if p.InitiatorNICs == 1 && p.TargetNICs == 1 {
		return ""
	}
	return fmt.Sprintf(", with %d and %d network cards each", p.InitiatorNICs, p.TargetNICs)
}

// Places returns the hosts of initiators and targets, by number. Those of a machine's network cards follow each other.
func (s *Scenario) Places(hosts []int32) (initiators, targets []int32, err error) {
	count, _ := s.CountTargets()
	from, to := s.Initiators*s.Place.InitiatorNICs, count*s.Place.TargetNICs
	taken := make([]bool, len(hosts))
	choose := func(key string, n, nics int, where Where, list []int) ([]int32, error) {
		if len(list) > 0 && len(list) != n {
			return nil, units.Wrong("place."+key+"_hosts", "%d hosts for %d %ss%s", len(list), n/max(nics, 1), key,
				s.Place.cards())
		}
		var free []int
		for i := range hosts {
			if !taken[i] {
				free = append(free, i)
			}
		}
		if len(list) == 0 {
			if len(free) < n {
				return nil, units.Wrong("fabric.topology", "%d hosts are too few for %d initiators and %d targets%s",
					len(hosts), s.Initiators, count, s.Place.cards())
			}
			for i := range n {
				k := i
				switch where {
				case LastHosts:
					k = len(free) - n + i
				case SpreadHosts:
					k = (2*i + 1) * len(free) / (2 * n)
				}
				list = append(list, free[k])
			}
		}
		var out []int32
		for _, h := range list {
			if h < 0 || h >= len(hosts) {
				return nil, units.Wrong("place."+key+"_hosts", "no host %d; hosts are 0 to %d", h,
					len(hosts)-1)
			}
			if taken[h] {
				return nil, units.Wrong("place."+key+"_hosts", "host %d is already in use", h)
			}
			taken[h] = true
			out = append(out, int32(h))
		}
		return out, nil
	}
	// Explicitly listed hosts are placed first, so that an automatic choice does not claim them.
	if len(s.Place.TargetHosts) > 0 {
		if targets, err = choose("target", to, s.Place.TargetNICs, s.Place.Targets, s.Place.TargetHosts); err != nil {
			return nil, nil, err
		}
	}
	initiators, err = choose("initiator", from, s.Place.InitiatorNICs, s.Place.Initiators, s.Place.InitiatorHosts)
	if err != nil {
		return nil, nil, err
	}
	if targets == nil {
		targets, err = choose("target", to, s.Place.TargetNICs, s.Place.Targets, nil)
	}
	return initiators, targets, err
}

// checkPlaces verifies that the network has the hosts that the system needs.
func (s *Scenario) checkPlaces(d *shape.Decoder) {
	g, err := s.Graph()
	if err != nil {
		return // checkFabric has reported it
	}
	if _, _, err := s.Places(HostsOf(g)); err != nil {
		d.Wrong("", err)
	}
}

// checkWithoutTargets rejects the keys of a system where there is none.
func (s *Scenario) checkWithoutTargets(d *shape.Decoder) {
	for _, key := range systemKeys {
		if at, ok := d.Set[key]; ok {
			d.Fail(at, "%s needs targets; add some, such as \"targets: [{count: 2, ssds: 4, ssd: tlc-enterprise}]\"",
				key)
		}
	}
	s.checkLocalControl(d)
}

// checkRemote rejects localKeys in a system.
func (s *Scenario) checkRemote(d *shape.Decoder, i int) {
	for _, key := range localKeys {
		path := fmt.Sprintf("workload[%d].%s", i, key)
		if at, ok := d.Set[path]; ok {
			d.Fail(at, "%s is for a local drive; in a system, nvmf sets the queues", path)
		}
	}
}

// SameDrive returns the drive that all targets share, nil if they differ.
func (s *Scenario) SameDrive() *Drive {
	first := s.DriveOf(0)
	for i := range s.Targets {
		if x := s.DriveOf(i); x != first && !reflect.DeepEqual(x.Config, first.Config) {
			return nil
		}
	}
	return first
}

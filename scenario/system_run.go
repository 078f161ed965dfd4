package scenario

import (
	"context"
	"fmt"

	"farflash/block"
	"farflash/cosim"
	"farflash/fabric"
	"farflash/nvmf"
	"farflash/result"
	"farflash/sim"
	"farflash/ssd"
	"farflash/units"
)

// remote is the models of one run of a system: hosts, network, targets and drives in one event loop.
type remote struct {
	*system
	net     *network
	tap     *tap // between network and system; nil if there is no other traffic
	sys     *nvmf.System
	array   *cosim.Array
	traffic *cosim.Traffic // beside the requests; nil if there is none
	images  []*ssd.Image   // of each group of targets
}

// prepareDrives makes the images that drives start from, one for each group of targets.
func (s *Scenario) prepareDrives(seed uint64) ([]*ssd.Image, error) {
	images := make([]*ssd.Image, len(s.Targets))
	for i := range s.Targets {
		if i > 0 && s.drive(i) == s.drive(i-1) {
			images[i] = images[i-1]
			continue
		}
		m, err := ssd.Prepare(s.drive(i).Config, seed, fmt.Sprintf("targets[%d].ssd", i))
		if err != nil {
			return nil, fmt.Errorf("targets[%d].ssd: %w", i, err)
		}
		images[i] = m
	}
	return images, nil
}

// groupOf has the group of each drive, and the target.
func (s *Scenario) groupOf() (group, target []int) {
	t := 0
	for i := range s.Targets {
		for range s.Targets[i].Count {
			for range s.Targets[i].SSDs {
				group, target = append(group, i), append(target, t)
			}
			t++
		}
	}
	return group, target
}

// newDrive makes one of a system's drives.
func newDrive(m *ssd.Image, eng *sim.Engine, sink ssd.Sink, seed uint64, number int) *ssd.Drive {
	return ssd.NewFrom(m, eng, sink, seed, fmt.Sprintf("ssd[%d]", number))
}

// buildSystem makes the models.
func (s *Scenario) buildSystem(seed uint64, protocol nvmf.Protocol, images []*ssd.Image) (*remote, error) {
	y := &remote{system: &system{eng: sim.New(), same: s.sameDrive(), initiators: 1}, images: images}
	y.host = cosim.NewHost(y.eng)
	own := protocol == nvmf.NVMeoF && s.ownPairs()
	var err error
	if y.sys, err = nvmf.New(s.NVMf, protocol, own, y.eng); err != nil {
		return nil, fmt.Errorf("nvmf: %w", err)
	}
	y.net = &network{s: s, eng: y.eng}
	y.net.others = func(m int32) bool { return y.sys.Carries(m) || !y.net.net.Known(m) }
	var sink fabric.Sink = y.sys
	if len(s.Flows) > 0 {
		y.tap = &tap{System: y.sys}
		sink = y.tap
	}
	if err := y.net.make(seed, sink); err != nil {
		return nil, err
	}
	initiators, targets, err := s.places(y.net.hosts)
	if err != nil {
		return nil, err
	}
	for _, n := range initiators {
		y.sys.AddInitiator(y.net.hosts[n])
	}
	for _, n := range targets {
		y.sys.AddTarget(y.net.hosts[n])
	}
	group, target := s.groupOf()
	for i := range group {
		d := newDrive(images[group[i]], y.eng, y.sys, seed, i)
		if _, err := y.sys.AddDrive(int32(target[i]), d); err != nil {
			return nil, fmt.Errorf("ssd[%d]: %w", i, err)
		}
		y.drives = append(y.drives, d)
	}
	if s.Route.Initiator == InitiatorEach {
		y.initiators = s.Initiators
	}
	classes := uint8(1) << s.NVMf.Class
	if len(s.Flows) > 0 {
		src, more, _, err := s.openFlows(y.net.graph, seed)
		if err != nil {
			return nil, err
		}
		classes |= more
		y.traffic = cosim.NewTraffic(y.eng, y.net.net, src, y.net.hosts)
	}
	if err := y.net.use(classes); err != nil {
		return nil, err
	}
	route := s.routing(nil)
	if protocol == nvmf.Flows {
		route.MaxTransfer = 1 << 40
	}
	if y.array, err = cosim.NewArray(y.eng, y.sys, route, y.host.Complete); err != nil {
		return nil, err
	}
	y.dev = y.array
	y.sys.Connect(y.net.net, y.array)
	if err := s.addFlows(y.system, seed); err != nil {
		return nil, err
	}
	y.array.SetOwners(y.owners)
	return y, nil
}

// runSystem simulates a system, as its coupling says.
func (s *Scenario) runSystem(ctx context.Context, o Options, digest string) (*Outcome, error) {
	r := result.New(digest, o.Seed, o.Version)
	r.Name = s.Name
	if s.Coupling.Mode == Coupled {
		images, err := s.prepareDrives(o.Seed)
		if err != nil {
			return nil, err
		}
		run, err := s.runCoupled(ctx, o, s.Protocol, images, r)
		if err != nil {
			return nil, err
		}
		return &Outcome{Result: r, Events: run.events, Interrupted: run.interrupted, Remarks: run.remarks}, nil
	}
	return s.runInTurns(ctx, o, r)
}

// coupledRun is what a coupled run came to.
type coupledRun struct {
	events      uint64
	interrupted bool
	delays      []sim.Time // by request, if they were asked for
	remarks     []string
}

// runCoupled simulates a system in one event loop and fills in the result, unless that is nil: then it
// gives the requests' delays.
func (s *Scenario) runCoupled(ctx context.Context, o Options, protocol nvmf.Protocol, images []*ssd.Image, r *result.Result) (*coupledRun, error) {
	y, err := s.buildSystem(o.Seed, protocol, images)
	if err != nil {
		return nil, err
	}
	defer y.close()
	m := newMeter(s, y.system)
	m.inside = y.array.Inside
	fm := newFabricMeter(y.net)
	run := &coupledRun{}
	if o.Pause != nil && r != nil {
		y.net.net.OnPause = func(p fabric.Pause) { y.net.pauses = append(y.net.pauses, p) }
	}
	if r == nil {
		o.Timeline = nil
	}
	timeline := newTimeline(o, y.eng)
	timeline.showSystem(y)
	var failed error
	y.host.OnSample = func(x *cosim.Sample) {
		t := y.array.Trip()
		m.sample(x)
		m.trip(x.Op, x.Finished-x.Arrival, &t.Stage)
		if r == nil {
			for uint64(len(run.delays)) <= x.ID {
				run.delays = append(run.delays, 0)
			}
			run.delays[x.ID] = x.Finished - x.Arrival
			return
		}
		timeline.remote(x, t)
		if o.Sample != nil && failed == nil {
			x.Trip = t
			failed = o.Sample(*x)
		}
		if failed != nil {
			m.failed = true
			y.eng.Stop()
		}
	}
	y.host.OnProgress = func(n uint64) {
		if n%interruptEvery == 0 && ctx.Err() != nil {
			y.eng.Stop()
		}
	}
	if err := y.host.Attach(y.dev, y.flows); err != nil {
		return nil, err
	}
	if y.traffic != nil {
		if err := y.traffic.Start(); err != nil {
			return nil, err
		}
	}
	if err := y.host.Start(); err != nil {
		return nil, s.located(err)
	}
	run.interrupted = y.runLoop(ctx, s, m, fm, o)
	if y.net.dead {
		run.interrupted = false
	}
	switch {
	case failed != nil:
		return nil, failed
	case y.host.Err() != nil:
		return nil, s.located(y.host.Err())
	case y.sys.Err() != nil:
		return nil, y.sys.Err()
	case y.traffic != nil && y.traffic.Err() != nil:
		return nil, y.traffic.Err()
	}
	left := y.host.Issued() - y.host.Ended()
	lost := y.net.dead || y.net.net.Counters.DropCount() > 0 || y.net.net.Counters.Stranded > 0
	if left > 0 && !lost && !run.interrupted && s.Measure.Until.Time == 0 && !m.settled {
		return nil, fmt.Errorf("stuck at %v: %d of %d requests have not completed and nothing is left to happen; this is a fault in the model, please report it with the scenario",
			y.eng.Now(), left, y.host.Issued())
	}
	run.events = y.eng.Events()
	if r == nil {
		return run, nil
	}
	if run.remarks, err = timeline.close(); err != nil {
		return nil, err
	}
	if err := y.net.tellPauses(o.Pause); err != nil {
		return nil, err
	}
	m.events = run.events
	y.finish(s, m, fm, r, run.interrupted, left)
	return run, nil
}

// runLoop drives the engine slice by slice, until everything has happened or the run is to end. It reports whether the
// context ended it.
func (y *remote) runLoop(ctx context.Context, s *Scenario, m *meter, fm *fabricMeter, o Options) bool {
	end := sim.Forever
	if s.Measure.Until.Time > 0 {
		end = s.Measure.Until.Time
	}
	warm := s.Measure.WarmUp.Time
	expected := s.expected() * uint64(y.initiators)
	idle := false
	y.host.OnIdle = func(sim.Time) {
		idle = true
		y.eng.Stop()
	}
	for {
		next, nextFabric := m.next(), fm.next()
		to := min(next, nextFabric, end)
		if warm > fm.from.at && warm < to {
			to = warm
		}
		y.eng.Run(to)
		stop := ctx.Err() != nil
		if y.host.Err() != nil || y.sys.Err() != nil || m.failed {
			return false
		}
		dry := idle || y.net.dead || y.eng.Pending() == 0
		if dry || stop {
			to = y.eng.Now()
		}
		y.net.net.Look(to)
		if o.Progress != nil {
			o.Progress(Progress{Requests: y.host.Ended(), Expected: expected, Simulated: to, Until: s.Measure.Until.Time})
		}
		if dry || stop || to == end {
			m.end(to)
			fm.slice(to)
			return stop && !dry
		}
		if to == warm && warm > fm.from.at {
			fm.from = fm.state(to)
		}
		if to == nextFabric {
			fm.slice(to)
		}
		if to == next {
			m.slice(to)
			if s.Measure.Until.Steady && m.steady() {
				fm.slice(to)
				return false
			}
		}
	}
}

// finish fills in the result.
func (y *remote) finish(s *Scenario, m *meter, fm *fabricMeter, r *result.Result, interrupted bool, left uint64) {
	r.Summary = s.systemSummary(fm)
	r.Limits = s.systemLimits(fm)
	m.finish(s, r, interrupted)
	if len(fm.from.ports) == 0 {
		fm.from.ports = make([]portState, len(fm.before.ports))
		if !s.Measure.WarmUp.none() && r.WarmUp.UntilS > 0 {
			r.Warn("figures of the network include the warm-up; give measure.warm_up as a time to leave it out there too")
		}
	}
	fm.fill(r, &fm.before, interrupted)
	r.Set("sim.events", float64(m.events))
	y.figures(s, m, r)
	err := y.sys.Check()
	k := &y.sys.Counters
	detail := fmt.Sprintf("%d commands submitted, %d ended; at each place, the commands present over time = the time that each spent there", k.Submitted, k.Ended)
	if err != nil {
		detail = err.Error()
	}
	r.Check("commands conserved, Little's law at each stage", err == nil, detail)
	if left > 0 && !interrupted && s.Measure.Until.Time == 0 && !s.Measure.Until.Steady {
		r.Warn("%d requests never ended: what they sent was lost for good", left)
	}
}

// figures are the system's own.
func (y *remote) figures(s *Scenario, m *meter, r *result.Result) {
	last := &m.marks[len(m.marks)-1]
	skip, _, _ := m.cut(s.Measure.WarmUp)
	var from mark
	if skip > 0 {
		from = m.marks[skip-1]
	}
	span := (last.at - from.at).Seconds()
	if span > 0 {
		reads, writes := float64(last.bytes[block.Read]-from.bytes[block.Read])/span, float64(last.bytes[block.Write]-from.bytes[block.Write])/span
		r.Set("initiator.read.bandwidth", reads)
		r.Set("target.write.bandwidth", writes)
		r.Set("aggregate.bandwidth", reads+writes)
	}
	for op := block.Read; op <= block.Write; op++ {
		var a cosim.Anatomy
		if m.keep {
			for _, b := range m.bins[skip:] {
				a.Merge(&b[op].way)
			}
		} else {
			a.Merge(&m.ways[op])
		}
		anatomy(r, op.String(), &a)
	}
	k := &y.sys.Counters
	r.Set("nvmf.commands", float64(k.Ended))
	r.Set("nvmf.held.initiator", float64(k.HeldAtInitiator))
	r.Set("nvmf.held.target", float64(k.HeldAtTarget))
	r.Set("nvmf.held.txq", float64(k.HeldAtTXQ))
	r.Set("nvmf.txq.max", float64(k.MostTXQ))
	for i, x := range last.each {
		name := func(n string) string { return fmt.Sprintf("ssd[%d].%s", i, n) }
		if skip > 0 {
			y := &from.each[i]
			for op := range x.finished {
				x.finished[op] -= y.finished[op]
			}
			x.busy, x.host, x.programs = x.busy-y.busy, x.host-y.host, x.programs-y.programs
		}
		r.Set(name("read.count"), float64(x.finished[block.Read]))
		r.Set(name("write.count"), float64(x.finished[block.Write]))
		if span > 0 {
			r.Set(name("utilisation.die"), x.busy.Seconds()/span)
		}
		if x.host > 0 {
			r.Set(name("waf"), float64(x.programs)/float64(x.host))
		}
	}
	if len(y.drives) > len(last.each) {
		r.Warn("figures by drive are of the first %d of %d drives", len(last.each), len(y.drives))
	}
}

// mostDriveRows is of how many drives a result has figures each.
const mostDriveRows = 1024

// anatomy fills in where the time of an operation's requests went.
func anatomy(r *result.Result, op string, a *cosim.Anatomy) {
	if a.Count() == 0 {
		return
	}
	var cols []string
	for k := range nvmf.Stages {
		cols = append(cols, k.String())
	}
	microseconds := func(x [nvmf.Stages]float64) []float64 {
		out := make([]float64, len(x))
		for k, v := range x {
			out[k] = v / float64(units.Microsecond)
		}
		return out
	}
	all := microseconds(a.Mean())
	for k, v := range all {
		r.Set(op+".stage."+cols[k]+".mean", v)
	}
	rows, v := []string{"mean"}, [][]float64{all}
	// Around a quantile q: half of the way from it to the end, on both sides, and at most 5 %.
	for _, q := range []struct {
		name  string
		share float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}} {
		beyond := 1 - q.share
		if float64(a.Count())*beyond < 5 {
			continue
		}
		w := min(beyond/2, 0.05)
		if x, ok := a.Around(q.share-w, q.share+w); ok {
			rows, v = append(rows, q.name), append(v, microseconds(x))
		}
	}
	if x, ok := a.Around(1-1e-15, 1); ok {
		rows, v = append(rows, "max"), append(v, microseconds(x))
	}
	r.SetMatrix(op+".anatomy", rows, cols, v)
}

// systemSummary is the system in one line.
func (s *Scenario) systemSummary(fm *fabricMeter) string {
	return fmt.Sprintf("%s, %s, %v; %s", plural(s.Initiators, "initiator"), s.describeTargets(), s.Protocol, fm.summary())
}

// systemLimits are what the models of the system leave out.
func (s *Scenario) systemLimits(fm *fabricMeter) []string {
	out := fm.limits()[1:]
	if s.Protocol == nvmf.NVMeoF {
		out = append(out, "Initiators' and targets' software is a constant time of a core for each command (nvmf.initiator, nvmf.target); PCIe to the NIC takes no time.")
	} else {
		out = append(out, "protocol: flows has no capsules, no responses and no software: a read is one message back, a write one message out.")
	}
	return append(out, "A request that is split into commands is shown with the stages of the one that ended last.")
}

// Package system is the experiment with hosts that access drives across a network: coupled in one event loop (Coupled),
// or with drives and network in turns, as in SNIS (Turns).
//
// It leaves out the models, which are in packages cosim, nvmf, fabric and ssd.
package system

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"farflash/block"
	"farflash/experiment"
	"farflash/experiment/internal/drivemeter"
	"farflash/experiment/internal/networks"
	"farflash/experiment/requests"
	"farflash/experiment/timeline"
	"farflash/internal/spelling"
	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/model/ssd"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/sim"
)

// remote holds the models of one run of a system: hosts, network, targets and drives in one event loop.
type remote struct {
	s       *scenario.Scenario
	eng     *sim.Engine
	host    *cosim.Host
	drives  []*ssd.Drive
	flows   *requests.Flows
	net     *networks.Network
	tap     *tap // between network and system
	sys     *nvmf.System
	array   *cosim.Array
	traffic *cosim.Traffic // background traffic; nil: none
	steered bool           // targets have rate controllers
	copies  int            // of the workload: the number of initiators if each runs all of it, or 1
}

// prepareDrives builds the images from which drives start, one for each group of targets; groups with equal drives
// share one.
func prepareDrives(s *scenario.Scenario, seed uint64, watch ssd.Watch) ([]*ssd.Image, error) {
	images := make([]*ssd.Image, len(s.Targets))
	for i := range s.Targets {
		for j := range i {
			if s.DriveOf(i) == s.DriveOf(j) || reflect.DeepEqual(s.DriveOf(i).Config, s.DriveOf(j).Config) {
				images[i] = images[j]
				break
			}
		}
		if images[i] != nil {
			continue
		}
		m, err := ssd.Prepare(drivemeter.Preconditioned(s, i), seed, fmt.Sprintf("targets[%d].ssd", i), watch)
		if err != nil {
			return nil, units.Within(fmt.Sprintf("targets[%d].ssd", i), err)
		}
		images[i] = m
	}
	return images, nil
}

// groupOf returns the group and the target of each drive.
func groupOf(s *scenario.Scenario) (group, target []int) {
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

// build builds the models.
func build(s *scenario.Scenario, o *experiment.Options, protocol nvmf.Protocol, images []*ssd.Image,
	controller NewController) (*remote, error) {
	seed := o.Seed
	y := &remote{s: s, eng: sim.New(), copies: 1}
	y.host = cosim.NewHost(y.eng)
	own := ownPairs(s, protocol)
	var err error
	cfg := s.NVMf
	cfg.Seed = seed
	if !protocol.Capsules() { // the flows that mode both compares a protocol with
		cfg.Receives.Shared, cfg.Buffers.Count = 0, 0
	}
	if y.sys, err = nvmf.New(cfg, protocol, own, y.eng); err != nil {
		return nil, units.Within("nvmf", err)
	}
	y.net = networks.New(s, y.eng)
	y.net.Others = func(m int32) bool { return y.sys.Carries(m) || !y.net.Net.Known(m) }
	y.net.Pairs = func(f func(src, dst int32)) {
		for i := range y.sys.Initiators() {
			for t := range y.sys.Targets() {
				for p := range y.sys.Paths() {
					f(y.sys.PathNodes(int32(i), int32(t), p))
				}
			}
		}
	}
	y.tap = &tap{System: y.sys, net: func() *fabric.Network { return y.net.Net }, now: y.eng.Now,
		capsules: protocol.Capsules()}
	y.sys.OnDropped, y.sys.OnRefused = y.tap.dropped, y.tap.refused
	if err := y.net.Make(seed, y.tap); err != nil {
		return nil, err
	}
	initiators, targets, err := s.Places(y.net.Hosts)
	if err != nil {
		return nil, err
	}
	for _, nics := range y.machines(initiators, s.Place.InitiatorNICs) {
		y.sys.AddInitiator(nics[0], nics[1:]...)
	}
	for _, nics := range y.machines(targets, s.Place.TargetNICs) {
		y.sys.AddTarget(nics[0], nics[1:]...)
	}
	if o.Notified != nil {
		own := make([]bool, len(y.net.Graph.Nodes))
		for _, n := range targets {
			own[y.net.Hosts[n]] = true
		}
		y.net.Net.OnCNP = func(node int32) {
			if own[node] {
				o.Notified(y.eng.Now())
			}
		}
	}
	group, target := groupOf(s)
	for i := range group {
		d, err := drivemeter.New(images[group[i]], y.eng, y.tap, seed, i)
		if err != nil {
			return nil, fmt.Errorf("ssd[%d]: %w", i, err)
		}
		if _, err := y.sys.AddDrive(int32(target[i]), door{d, y.tap, y.eng}); err != nil {
			return nil, fmt.Errorf("ssd[%d]: %w", i, err)
		}
		y.drives = append(y.drives, d)
	}
	if s.Route.Initiator == scenario.InitiatorEach {
		y.copies = s.Initiators
	}
	classes := uint8(1) << s.NVMf.Class
	if len(s.Flows) > 0 {
		offer, err := s.OpenFlows(y.net.Graph, seed)
		if err != nil {
			return nil, err
		}
		classes |= offer.Classes
		y.traffic = cosim.NewTraffic(y.eng, y.net.Net, offer.Source, y.net.Hosts)
		y.net.Watch(y.traffic)
	}
	if err := y.net.Use(classes); err != nil {
		return nil, err
	}
	route := routing(s)
	if protocol == nvmf.Flows {
		route.MaxTransfer = 1 << 40
	}
	if y.array, err = cosim.NewArray(y.eng, y.sys, route, y.host.Complete); err != nil {
		return nil, err
	}
	if s.HostRAID != nil {
		each := y.drives[0].Capacity(0)
		for _, d := range y.drives {
			each = min(each, d.Capacity(0))
		}
		if err := y.array.Stripe(s.RAID(), each); err != nil {
			return nil, units.Within("host_raid", err)
		}
	}
	if protocol == s.Protocol && (s.Controlled() || controller != nil) {
		if err := y.steer(o, group, controller); err != nil {
			return nil, units.Within("rate_control", err)
		}
	}
	y.sys.Connect(y.net.Net, y.array)
	if y.flows, err = requests.Open(s, seed, drivemeter.Capacities(s, y.array.Capacity), y.copies); err != nil {
		return nil, err
	}
	if err := y.array.SetOwners(y.flows.Owners); err != nil {
		return nil, err
	}
	return y, nil
}

// machines groups hosts, by number, into the nodes of machines with n network cards each.
func (y *remote) machines(hosts []int32, n int) (out [][]int32) {
	for nics := range slices.Chunk(hosts, n) {
		var nodes []int32
		for _, h := range nics {
			nodes = append(nodes, y.net.Hosts[h])
		}
		out = append(out, nodes)
	}
	return out
}

// Coupled is a system in one event loop.
type Coupled struct {
	// Controller, if not nil, replaces the rate controllers named in the scenario.
	Controller NewController
}

func (Coupled) Is(s *scenario.Scenario) bool {
	return s.ObjectCluster == nil && len(s.Targets) > 0 && s.Coupling.Mode == scenario.Coupled
}

func (k Coupled) Build(s *scenario.Scenario, o *experiment.Options) (experiment.Experiment, error) {
	images, err := prepareDrives(s, o.Seed, o.Preparing)
	if err != nil {
		return nil, err
	}
	return couple(s, o, s.Protocol, images, k.Controller)
}

// coupled is a system in one event loop with its observers.
type coupled struct {
	*remote
	o        *experiment.Options
	meter    *drivemeter.Meter
	rate     *rateMeter // nil without controllers
	network  *networks.Meter
	timeline *timeline.Timeline
	ctx      context.Context // of the present Advance
	failed   error           // error of the receiver of samples
	vain     drivemeter.Livelock
	stall    experiment.Watch
	idle     bool
	expected uint64
}

// couple builds the models of a system, with a protocol, and their observers.
func couple(s *scenario.Scenario, o *experiment.Options, protocol nvmf.Protocol, images []*ssd.Image,
	controller NewController) (*coupled, error) {
	y, err := build(s, o, protocol, images, controller)
	if err != nil {
		return nil, err
	}
	x := &coupled{remote: y, o: o, expected: requests.Expected(s) * uint64(y.copies)}
	x.meter, x.network = drivemeter.NewMeter(s, y.host, y.flows, y.drives, s.SameDrive()), networks.NewMeter(y.net)
	x.meter.Inside = func() uint64 { return y.array.Inside() + y.host.Waiting() }
	x.watchOver()
	x.meter.Others = x.seldom
	if y.steered {
		x.rate = newRateMeter(s, y)
	}
	if o.Pause != nil {
		y.net.KeepPauses()
	}
	x.timeline = timeline.New(o.Timeline, o.TimelineSlices, y.eng)
	x.timeline.ShowSystem(y.shown())
	y.host.OnSample = x.sample
	y.host.OnProgress = func(n uint64) {
		if n%drivemeter.InterruptEvery == 0 && x.ctx.Err() != nil {
			y.eng.Stop()
		}
	}
	y.host.OnIdle = func(sim.Time) {
		x.idle = true
		y.eng.Stop()
	}
	if err := x.start(); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// seldom counts the network's rare events: link failures, each of which happens once, and retransmissions.
func (x *coupled) seldom() (list []stats.Occurrence) {
	if n := len(x.s.Fabric.Failures); n > 0 {
		list = append(list, stats.Occurrence{What: "failures of links", Times: int64(n), Last: true})
	}
	if n := x.net.Net.Counters.Retransmits; n > 0 || x.s.Fabric.Loss > 0 {
		list = append(list, stats.Occurrence{What: "packets sent again", Times: int64(n)})
	}
	return list
}

// start starts the requests and the background traffic.
func (x *coupled) start() error {
	if err := x.host.Attach(x.array, x.flows.List); err != nil {
		return err
	}
	if x.traffic != nil {
		x.traffic.Enough = func() bool { return x.ctx.Err() != nil }
		if err := x.traffic.Start(); err != nil {
			return err
		}
	}
	if err := x.host.Start(); err != nil {
		return x.flows.Located(err)
	}
	return nil
}

// shown returns the models for a timeline.
func (y *remote) shown() *timeline.System {
	t := &timeline.System{Flows: y.flows.List, Host: y.host, Array: y.array, Net: y.net.Net, Graph: y.net.Graph,
		Remote: y.sys, Drives: y.drives}
	if y.traffic != nil {
		t.Ended, t.Forgot = &y.tap.ended, &y.tap.forgot
	}
	return t
}

// sample records a completed request.
func (x *coupled) sample(r *cosim.Sample) {
	t := x.array.Trip()
	t.Since(r.Arrival) // its zone's write plug may have delayed it
	x.meter.Sample(r, t.Initiator)
	if !r.Failed {
		x.meter.Trip(r.Op, r.Finished-r.Arrival, t.Stage[:])
	}
	x.timeline.Remote(r, t)
	if x.o.Sample != nil && x.failed == nil {
		r.Trip = t
		x.meter.Book.Sign(r)
		if x.failed = x.o.Sample(*r); x.failed != nil {
			x.eng.Stop()
		}
	}
}

// Meters implements experiment.Experiment.
func (x *coupled) Meters() []experiment.Meter {
	if x.rate != nil {
		return []experiment.Meter{x.meter, x.network, x.rate}
	}
	return []experiment.Meter{x.meter, x.network}
}

// Close implements experiment.Experiment.
func (x *coupled) Close() error { return x.flows.Close() }

// Advance implements experiment.Experiment.
func (x *coupled) Advance(ctx context.Context, to sim.Time) (experiment.RunState, error) {
	x.ctx = ctx
	x.stall.Attend(ctx, x.eng)
	x.eng.Run(to)
	now := experiment.RunState{At: to, Over: x.idle || x.net.Dead || x.eng.Pending() == 0, Done: x.host.Ended(),
		Expected: x.expected, Begun: x.host.Issued(), Stalled: x.stall.Stalled()}
	switch {
	case x.failed != nil:
		return now, x.failed
	case x.host.Err() != nil:
		return now, x.flows.Located(x.host.Err())
	case x.sys.Err() != nil:
		err := x.sys.Err()
		for _, f := range units.FieldErrors(err) {
			path := "nvmf." + f.Path
			err = &shape.Error{At: x.s.Where(path), Msg: path + ": " + f.Msg}
		}
		return now, err
	case x.traffic != nil && x.traffic.Err() != nil:
		return now, x.traffic.Err()
	}
	if now.Over || ctx.Err() != nil {
		now.At = x.eng.Now()
	}
	x.net.Net.Look(now.At)
	// Requests that the network may have lost, or blocks permanently, need not complete.
	if k := &x.net.Net.Counters; !x.net.Dead && k.DropCount() == 0 {
		now.Stuck = now.Begun - now.Done
	}
	if now.Over {
		return now, drivemeter.Full(x.s, x.drives, &now)
	}
	return now, x.vain.Look(x.s, x.drives, &now)
}

// Fill implements experiment.Experiment.
func (x *coupled) Fill(_ context.Context, out *experiment.Outcome) (err error) {
	if out.Remarks, err = x.timeline.Close(); err != nil {
		return err
	}
	if err := x.net.TellPauses(x.o.Pause); err != nil {
		return err
	}
	s, r := x.s, out.Result
	out.Events = x.eng.Events()
	r.Summary = summary(s, x.network)
	if s.HostRAID != nil {
		r.Summary += fmt.Sprintf("; %v", s.HostRAID)
	}
	r.Limits = limits(s, x.network)
	drops := &x.net.Net.Counters.Drops
	x.meter.Outage = x.sys.Counters.Losses > 0 || drops[fabric.DropLinkDown] > 0 || drops[fabric.DropNoRoute] > 0
	x.meter.Fill(out)
	x.network.FillPart(r, out.Interrupted)
	r.Set("sim.events", float64(out.Events))
	x.figures(r)
	if x.rate != nil {
		x.rate.fill(r)
	}
	x.losses(r)
	x.tap.check(r, x.drives)
	drivemeter.FillRAID(r, x.array.Volume())
	x.endless(r, out.Interrupted)
	return nil
}

// figures fills in the system's own metrics.
func (x *coupled) figures(r *result.Result) {
	reads, ok := x.meter.Bandwidth(block.Read)
	if writes, _ := x.meter.Bandwidth(block.Write); ok {
		r.Set("initiator.read.bandwidth", reads)
		r.Set("target.write.bandwidth", writes)
		r.Set("aggregate.bandwidth", reads+writes)
	}
	for op := block.Read; op <= block.Write; op++ {
		anatomy(r, op.String(), x.meter.Anatomy(op))
	}
	k := &x.sys.Counters
	r.Set("nvmf.commands", float64(k.Ended))
	r.Set("nvmf.held.initiator", float64(k.HeldAtInitiator))
	r.Set("nvmf.held.target", float64(k.HeldAtTarget))
	r.Set("nvmf.held.txq", float64(k.HeldAtTXQ))
	r.Set("nvmf.held.buffers", float64(k.HeldForBuffers))
	r.Set("nvmf.held.reads", float64(k.HeldForReads))
	if x.s.NVMf.Limits.Any() {
		r.Set("nvmf.held.limits", float64(k.HeldByLimits))
	}
	if x.s.NVMf.Receives.Shared > 0 {
		refused := x.net.Net.Counters.RNRs
		r.Set("nvmf.receives.refused", float64(refused))
		r.Set("nvmf.receives.max", float64(k.MostReceives))
		if refused > 0 {
			r.Warn("%d capsules found no receive and waited for %v (nvmf.receives.rnr_timer); raise nvmf.receives.shared",
				refused, x.s.NVMf.Receives.RNRTimer)
		}
	}
	x.paths(r)
	r.Set("nvmf.txq.max", float64(k.MostTXQ))
	r.Set("nvmf.buffers.max", float64(k.MostBuffers))
	r.Set("nvmf.reads.max", float64(k.MostReads))
	x.meter.FillEach(r)
}

// pathColumns are those of the matrix of paths.
var pathColumns = []string{"commands", "failovers", "refused", "losses"}

// paths fills in the figures of each path, if there are several, or if their states change.
func (x *coupled) paths(r *result.Result) {
	var rows []string
	var v [][]float64
	for p := range x.sys.Paths() {
		t, ok := x.sys.PathTotals(p)
		if !ok {
			return
		}
		rows = append(rows, fmt.Sprintf("path %d", p))
		v = append(v, []float64{float64(t.Commands), float64(t.Failovers), float64(t.Refused), float64(t.Losses)})
	}
	r.SetMatrix("nvmf.paths", rows, pathColumns, v)
	r.Set("nvmf.held.path", float64(x.sys.Counters.HeldForPath))
}

// anatomy fills in the latency breakdown of an operation.
func anatomy(r *result.Result, op string, a *cosim.Anatomy) {
	var cols []string
	for k := range nvmf.Stages {
		cols = append(cols, k.String())
	}
	drivemeter.FillAnatomy(r, op, a, cols)
	if a.Count() == 0 {
		return
	}
	all := a.Mean()
	for k, name := range cols {
		r.Set(op+".stage."+name+".mean", all[k]/float64(units.Microsecond))
	}
}

// summary describes the system in one line.
func summary(s *scenario.Scenario, m *networks.Meter) string {
	return fmt.Sprintf("%s, %s, %v; %s", spelling.Plural(s.Initiators, "initiator"), describeTargets(s), s.Protocol,
		m.Summary())
}

// limits returns the omissions of the system's models.
func limits(s *scenario.Scenario, m *networks.Meter) []string {
	out := m.Limits()[1:]
	if s.Protocol.Capsules() {
		out = append(out, "Software of initiators and targets takes the times of their stacks (nvmf.initiator, "+
			"nvmf.target), a share of them for each command and byte; PCIe to the NIC takes no time.")
		if s.Protocol == nvmf.NVMeTCP {
			out = append(out, "TCP: each message starts a new segment, and ACKs are never delayed by 40 ms.")
		}
	} else {
		out = append(out, "protocol: flows has no capsules, responses or software: a read is one message back, a "+
			"write one message out.")
	}
	return append(out, "A request that is split into commands has the stages of the command that completed last.")
}

package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"farflash/block"
	"farflash/experiment"
	"farflash/experiment/accounts"
	"farflash/experiment/internal/drivemeter"
	"farflash/experiment/internal/networks"
	"farflash/experiment/requests"
	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/model/ssd"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario"
	"farflash/sim"
	"farflash/workload/flows"
)

// Turns simulates drives and network in turns, as in SNIS, and on request also in one loop.
type Turns struct{}

func (Turns) Is(s *scenario.Scenario) bool {
	return s.ObjectCluster == nil && len(s.Targets) > 0 && s.Coupling.Mode != scenario.Coupled
}

func (Turns) Build(s *scenario.Scenario, o *experiment.Options) (experiment.Experiment, error) {
	images, err := prepareDrives(s, o.Seed, o.Preparing)
	if err != nil {
		return nil, err
	}
	t := &turns{s: s, o: o, seed: o.Seed, images: images}
	t.group, t.target = groupOf(s)
	return t, t.prepare()
}

// turns runs a system's drives and its network in turns.
type turns struct {
	s      *scenario.Scenario
	o      *experiment.Options
	seed   uint64
	images []*ssd.Image
	group  []int
	target []int
	// Host numbers.
	initiators, targets []int32

	rec    *cosim.Recorder
	it     *cosim.Iterative
	drives []*ssd.Drive // after the last iteration
	net    *part        // after the last iteration
	events atomic.Uint64
}

// Meters implements experiment.Experiment: iterations have no common time to observe.
func (*turns) Meters() []experiment.Meter { return nil }

// Close implements experiment.Experiment.
func (*turns) Close() error { return nil }

// Advance implements experiment.Experiment: it runs one iteration.
func (t *turns) Advance(ctx context.Context, _ sim.Time) (experiment.RunState, error) {
	n := uint64(len(t.rec.Requests))
	now := experiment.RunState{Done: n * uint64(len(t.it.Turns)),
		Expected: n * uint64(t.s.Coupling.Iterative.Iterations)}
	if err := t.iterate(ctx); ctx.Err() != nil {
		t.it.Undo()     // iterations are atomic
		return now, nil //nolint:nilerr // whatever it is, the end of the context is why
	} else if err != nil {
		return now, err
	}
	now.Over = !t.it.Finish()
	now.Done, now.At = n*uint64(len(t.it.Turns)), t.net.Now()
	return now, nil
}

// iterate simulates the drives and then the network.
func (t *turns) iterate(ctx context.Context) error {
	t.it.Begin()
	drives, err := t.storage(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	var net *part
	if err := t.it.Network(t.ends, t.s.NVMf.Class, t.network(ctx, &net)); err != nil {
		return err
	}
	t.drives, t.net = drives, net
	return nil
}

// Fill implements experiment.Experiment.
func (t *turns) Fill(ctx context.Context, out *experiment.Outcome) error {
	out.Events = t.events.Load()
	if t.s.Coupling.Mode == scenario.IterativeOnly || out.Interrupted {
		if out.Interrupted && len(t.it.Turns) == 0 {
			return context.Cause(ctx)
		}
		t.fill(out.Result, out.Interrupted)
		return t.samples()
	}
	// The same flows in one loop, to isolate the error of the iteration; then the requested protocol.
	var delays []sim.Time
	exact, err := t.coupled(ctx, &experiment.Options{Seed: t.seed, Sample: func(x cosim.Sample) error {
		for uint64(len(delays)) <= x.ID {
			delays = append(delays, 0)
		}
		delays[x.ID] = x.Finished - x.Arrival
		return nil
	}}, nvmf.Flows, nil)
	if err != nil {
		return err
	}
	own := &experiment.Outcome{Result: out.Result}
	whole, err := t.coupled(ctx, t.o, t.s.Protocol, own)
	if err != nil {
		return err
	}
	out.Remarks, out.Interrupted = own.Remarks, exact.interrupted || whole.interrupted
	out.Events += exact.events + whole.events
	if !out.Interrupted {
		t.compare(out.Result, delays)
	}
	t.figures(out.Result)
	return nil
}

// ran is the outcome of a run in one loop.
type ran struct {
	events      uint64
	interrupted bool
}

// coupled runs the system in one loop, and fills in the outcome unless that is nil.
func (t *turns) coupled(ctx context.Context, o *experiment.Options, protocol nvmf.Protocol,
	out *experiment.Outcome) (r ran, err error) {
	x, err := couple(t.s, o, protocol, t.images, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	l := experiment.Loop{Until: t.s.Measure.Until.Time, Progress: t.o.Progress}
	if r.interrupted, err = l.Run(ctx, x); err != nil {
		return r, err
	}
	r.events = x.eng.Events()
	if out == nil {
		return r, nil
	}
	out.Interrupted = r.interrupted
	return r, x.Fill(ctx, out)
}

// prepare records the requests and their routes.
func (t *turns) prepare() (err error) {
	s := t.s
	graph, err := s.Graph()
	if err != nil {
		return err
	}
	if t.initiators, t.targets, err = s.Places(scenario.HostsOf(graph)); err != nil {
		return err
	}
	eng, copies := sim.New(), 1
	if s.Route.Initiator == scenario.InitiatorEach {
		copies = s.Initiators
	}
	host := cosim.NewHost(eng)
	byTarget := make([][]int32, len(t.targets))
	capacity := int64(1) << 62
	for i, k := range t.target {
		byTarget[k] = append(byTarget[k], int32(i))
		if i == 0 || t.group[i] != t.group[i-1] { // the drives of a group are equal
			capacity = min(capacity, t.images[t.group[i]].Capacity(0))
		}
	}
	route := routing(s)
	route.MaxTransfer = 1 << 40
	router, err := cosim.NewRouter(route, s.Initiators, byTarget, capacity)
	if err != nil {
		return err
	}
	if t.rec, err = cosim.NewRecorder(eng, router); err != nil {
		return err
	}
	list, err := requests.Open(s, t.seed, drivemeter.Capacities(s, t.rec.Capacity), copies)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	if err := t.rec.SetOwners(list.Owners); err != nil {
		return err
	}
	if err := host.Attach(t.rec, list.List); err != nil {
		return err
	}
	if err := host.Start(); err != nil {
		return list.Located(err)
	}
	var ended error // error of the context during a long recording
	eng.OnPulse(func() {
		if ended = t.o.Preparing(1); ended != nil {
			eng.Stop()
		}
	})
	eng.Run(sim.Forever)
	if err := host.Err(); ended != nil || err != nil {
		return cmp.Or(ended, list.Located(err))
	}
	if err := t.rec.Err(); err != nil {
		return err
	}
	if len(t.rec.Jobs) == 0 {
		return fmt.Errorf("the workload has no request")
	}
	x := &s.Coupling.Iterative
	cfg := cosim.IterativeConfig{Threshold: float64(x.Threshold), StableRange: float64(x.StableRange),
		StableFor: x.StableFor, Most: x.Iterations, Full: x.Full,
		Acceleration: x.Acceleration, Relaxation: float64(x.Relaxation), DriveDepth: s.NVMf.DriveDepth,
		FirstWithoutWrites: x.FirstWriteArrival == scenario.FirstAbsent,
		WritesToDeparture:  x.WriteDelay == scenario.DelayToDeparture}
	for i, w := range x.Weights {
		cfg.Weights[i] = float64(w)
	}
	var first func(int) sim.Time
	if x.FirstWriteArrival == scenario.FirstUnloaded {
		if first, err = t.unloaded(); err != nil {
			return err
		}
	}
	t.it, err = cosim.NewIterative(cfg, t.rec.Jobs, len(t.group), first)
	return err
}

// unloaded returns the arrival time of a write at its drive in an otherwise idle network.
func (t *turns) unloaded() (func(int) sim.Time, error) {
	n := networks.New(t.s, sim.New())
	if err := n.Make(t.seed, &n.Tally); err != nil {
		return nil, err
	}
	type transfer struct {
		src, dst int32
		size     int64
	}
	known := map[transfer]sim.Time{}
	return func(i int) sim.Time {
		j := &t.rec.Jobs[i]
		src, dst := t.ends(j)
		w := transfer{src, dst, j.Command.Length}
		if _, ok := known[w]; !ok {
			known[w] = n.Lone(src, dst, t.s.NVMf.Class, units.Bytes(w.size))
		}
		return j.Arrival + known[w]
	}, nil
}

// ends returns the source and destination hosts of a job's data.
func (t *turns) ends(j *cosim.Job) (src, dst int32) {
	initiator, target := t.initiators[t.rec.Initiators[j.Request]], t.targets[t.target[j.Drive]]
	if j.Command.Op == block.Read {
		return target, initiator
	}
	return initiator, target
}

// sinkOf passes a drive's completions to a function.
type sinkOf func(block.Completion)

// Complete implements ssd.Sink.
func (f sinkOf) Complete(c block.Completion) { f(c) }

// draw returns the seed of an iteration's random numbers.
func (t *turns) draw() uint64 {
	if t.s.Coupling.Iterative.Redraw {
		return t.seed + uint64(len(t.it.Turns))<<32
	}
	return t.seed
}

// storage simulates all drives, in parallel on all processors.
func (t *turns) storage(ctx context.Context) ([]*ssd.Drive, error) {
	drives := make([]*ssd.Drive, len(t.group))
	errs := make([]error, len(drives))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(drives)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(drives) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				var eng *sim.Engine
				errs[i] = t.it.Storage(i, func(e *sim.Engine, done func(block.Completion)) (block.Device, error) {
					eng = e
					new(experiment.Watch).Attend(ctx, e)
					var err error
					if drives[i], err = drivemeter.New(t.images[t.group[i]], e, sinkOf(done), t.draw(), i); err != nil {
						return nil, err
					}
					return drives[i], nil
				})
				t.events.Add(eng.Events())
			}
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("ssd[%d]: %w", i, err)
		}
	}
	return drives, nil
}

// part is the network's part of an iteration, an experiment of its own.
type part struct {
	*networks.Network
	meter *networks.Meter
	timed bool     // lost packets are retransmitted after a timeout
	begun sim.Time // start of the last flow
	// The counters at the last change, and the time of it.
	seen  movement
	moved sim.Time
}

// movement are counters that change while a network still carries traffic.
type movement struct{ sent, received, acks, nacks uint64 }

// quiet is the time without changes after which a network counts as idle: far longer than any pause, turn or rate
// delays a packet.
const quiet = units.Second

// Advance implements experiment.Experiment. Without retransmission timeouts, both ends of a flow wait for its lost last
// packets, while timers of congestion control continue forever. So the run also ends when the counters have not changed
// for a while.
func (p *part) Advance(ctx context.Context, to sim.Time) (experiment.RunState, error) {
	now, err := p.Network.Advance(ctx, to)
	c := &p.Net.Counters
	if seen := (movement{c.Sent, c.Received, c.Acks, c.Nacks}); seen != p.seen {
		p.seen, p.moved = seen, now.At
	}
	now.Over = now.Over || !p.timed && now.At-max(p.moved, p.begun) > quiet
	return now, err
}

// Meters implements experiment.Experiment.
func (p *part) Meters() []experiment.Meter { return []experiment.Meter{p.meter} }

// Close implements experiment.Experiment.
func (*part) Close() error { return nil }

// Fill implements experiment.Experiment: the iterations' result has the last network's figures.
func (*part) Fill(context.Context, *experiment.Outcome) error { return nil }

// network simulates the network with flows at given times, and stores it in left.
func (t *turns) network(ctx context.Context, left **part) func([]flows.Flow) (func(int) (sim.Time, sim.Time), uint64,
	error) {
	return func(list []flows.Flow) (func(int) (sim.Time, sim.Time), uint64, error) {
		n, err := networks.WithFlows(t.s, t.draw(), list, 1<<t.s.NVMf.Class)
		if err != nil {
			return nil, 0, err
		}
		p := &part{Network: n, meter: networks.NewMeter(n), timed: t.s.Fabric.Recovery.Timeout != fabric.Timeout{},
			begun: list[len(list)-1].Start}
		switch interrupted, err := (&experiment.Loop{}).Run(ctx, p); {
		case err != nil:
			return nil, 0, err
		case interrupted:
			return nil, 0, context.Cause(ctx)
		}
		*left = p
		t.events.Add(n.Events())
		messages := n.Net.Messages()
		return func(flow int) (sim.Time, sim.Time) { return messages[flow].Begun, messages[flow].Delivered },
			n.Net.Counters.Pauses, nil
	}
}

// fill fills in the figures of a system that was simulated only in turns.
func (t *turns) fill(r *result.Result, interrupted bool) {
	s := t.s
	r.Summary = fmt.Sprintf("%s, in turns", summary(s, t.net.meter))
	r.Limits = append(limits(s, t.net.meter),
		"Drives and network were simulated in turns (coupling.mode: iterative), which is approximate; coupled is exact.")
	t.net.Others = func(int32) bool { return true }
	t.net.meter.FillWhole(r, interrupted)
	var h [block.Ops]stats.Histogram
	var parts [block.Ops]cosim.Anatomy
	var bytes [block.Ops]int64
	end := t.end()
	for i, d := range t.it.Delays() {
		q := &t.rec.Requests[i]
		h[q.Op].Record(d)
		bytes[q.Op] += q.Length
		stages := t.it.Stages(i)
		parts[q.Op].Add(d, stages[:])
	}
	r.SimulatedS = end.Seconds()
	var all stats.Histogram
	for op := block.Read; op <= block.Write; op++ {
		if h[op].Count() == 0 {
			continue
		}
		accounts.Rates(r, op.String(), h[op].Count(), bytes[op], end.Seconds())
		r.SetLatencies(op.String(), &h[op])
		anatomy(r, op.String(), &parts[op])
		all.Merge(&h[op])
	}
	accounts.Rates(r, "all", all.Count(), bytes[block.Read]+bytes[block.Write], end.Seconds())
	r.SetLatencies("all", &all)
	sum := t.drives[0].Stats()
	last := sum.Span
	for _, d := range t.drives[1:] {
		x := d.Stats()
		last = max(last, x.Span)
		sum.Add(&x)
	}
	// A drive continues for a while after completing the last request; shares cover all of its work.
	drivemeter.FillDrives(r, s.SameDrive(), t.drives, sum, max(end, last))
	drivemeter.CheckDrives(r, t.drives)
	r.Set("sim.events", float64(t.events.Load()))
	t.figures(r)
	if interrupted {
		r.Warn("incomplete: the run was interrupted after %d iterations", len(t.it.Turns))
	}
}

// end is the completion time of the last request in the last iteration.
func (t *turns) end() sim.Time {
	end := sim.Time(0)
	for i := range t.rec.Jobs {
		_, sd, _, nd := t.it.Times(i)
		end = max(end, sd, nd)
	}
	return end
}

// figures fills in the results of the iterations.
func (t *turns) figures(r *result.Result) {
	it := t.it
	n := len(it.Turns)
	converged := 0.0
	count := n - 1
	if it.Converged >= 0 {
		converged, count = 1, it.Converged
	} else {
		r.Warn("drives and network in turns did not converge in %d iterations: the last change was %.1f %%", n,
			100*it.Turns[n-1].ConvC)
	}
	from := t.s.Coupling.Iterative.CountFrom
	r.Set("snis.iterations", float64(count+from))
	r.Set("snis.converged", converged)
	if it.Fixed >= 0 {
		r.Set("snis.fixed_at", float64(it.Fixed+from))
	}
	var x, conv, rdMean, rdMedian, rd90 []float64
	for i := 1; i < n; i++ {
		k := &it.Turns[i]
		x, conv = append(x, float64(i+from)), append(conv, k.ConvC)
		rdMean, rdMedian, rd90 = append(rdMean, k.Mean), append(rdMedian, k.Median), append(rd90, k.P90)
	}
	for _, c := range []struct {
		name string
		v    []float64
	}{{"snis.conv_c", conv}, {"snis.rd_mean", rdMean}, {"snis.rd_median", rdMedian}, {"snis.rd_p90", rd90}} {
		if len(x) > 0 {
			r.PutSeries(result.Series{Name: c.name, Unit: "fraction", TimeUnit: "iteration", T: x, V: c.v})
		}
	}
	var rows, cols []string
	v := make([][]float64, len(cosim.ThroughputShares))
	for i, share := range cosim.ThroughputShares {
		rows = append(rows, fmt.Sprintf("p%g", 100*share))
		for k := range it.Turns {
			v[i] = append(v[i], it.Turns[k].Throughput[i])
		}
	}
	turns := make([][]float64, n)
	for k := range it.Turns {
		cols = append(cols, fmt.Sprint(k+from))
		turns[k] = []float64{float64(it.Turns[k].Pauses), float64(it.Turns[k].Changed),
			min(it.Turns[k].Settled, t.end()).Seconds()}
	}
	r.SetMatrix("snis.throughput", rows, cols, v)
	r.SetMatrix("snis.turns", cols, []string{"pauses", "writes_moved", "settled_until_s"}, turns)
}

// compare fills in the deviation of the iterations' result from that of one loop with the same flows, and the deviation
// of that from the real protocol's.
func (t *turns) compare(r *result.Result, exact []sim.Time) {
	mine := t.it.Delays()
	if len(mine) != len(exact) {
		r.Warn("the runs in turns and in one loop cannot be compared: they have %d and %d requests", len(mine),
			len(exact))
		return
	}
	var a, b, off []float64
	for i := range mine {
		a, b = append(a, mine[i].Microseconds()), append(b, exact[i].Microseconds())
		d := (mine[i] - exact[i]).Microseconds()
		off = append(off, max(d, -d))
	}
	slices.Sort(a)
	slices.Sort(b)
	slices.Sort(off)
	mean := func(x []float64) float64 {
		sum := 0.0
		for _, v := range x {
			sum += v
		}
		return sum / float64(len(x))
	}
	var v [][]float64
	for _, f := range []func([]float64) float64{mean, quantile(0.5), quantile(0.9), quantile(0.99)} {
		x, y := f(a), f(b)
		v = append(v, []float64{x, y, stats.Ratio(x-y, y)})
	}
	r.SetMatrix("snis.error", []string{"mean", "p50", "p90", "p99"}, []string{"iterative", "coupled", "relative"}, v)
	r.Set("snis.error.request.mean", mean(off))
	r.Set("snis.error.request.max", off[len(off)-1])
	if t.s.Protocol.Capsules() {
		var rows [][]float64
		for i, q := range []string{"mean", "p50", "p90", "p99"} {
			if m, ok := r.Metric("all.latency." + q); ok {
				rows = append(rows, []float64{v[i][1], m.Value, stats.Ratio(m.Value-v[i][1], v[i][1])})
			}
		}
		r.SetMatrix("snis.protocol", []string{"mean", "p50", "p90", "p99"}[:len(rows)],
			[]string{"flows", "nvmeof", "relative"}, rows)
	}
}

// quantile returns a function for a quantile of sorted values.
func quantile(share float64) func([]float64) float64 {
	return func(x []float64) float64 { return stats.QuantileOf(x, share) }
}

// samples reports the requests of the last iteration to the receiver of samples.
func (t *turns) samples() error {
	if t.o.Sample == nil {
		return nil
	}
	delays := t.it.Delays()
	for i := range t.rec.Requests {
		part := t.it.Part(i)
		j, q := &t.rec.Jobs[part], &t.rec.Requests[i]
		sa, sd, na, nd := t.it.Times(part)
		trip := cosim.Trip{Arrival: j.Arrival,
			Done: nvmf.Done{Op: q.Op, Length: q.Length, Initiator: t.rec.Initiators[i],
				Target: int32(t.target[j.Drive]), Drive: j.Drive, Stage: t.it.Stages(i),
				DriveIn: sa, DriveOut: sd, NetIn: na, NetOut: nd, Submitted: j.Arrival, Ended: j.Arrival + delays[i]}}
		x := cosim.Sample{ID: uint64(i), Op: q.Op, Offset: q.Offset, Size: q.Length, Arrival: j.Arrival,
			Submitted: sa, Fetched: sa, Finished: trip.Ended, Trip: &trip}
		if err := t.o.Sample(x); err != nil {
			return err
		}
	}
	return nil
}

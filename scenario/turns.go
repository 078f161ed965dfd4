package scenario

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"farflash/block"
	"farflash/cosim"
	"farflash/nvmf"
	"farflash/result"
	"farflash/sim"
	"farflash/ssd"
	"farflash/stats"
	"farflash/units"
	"farflash/workload/flows"
)

// turns runs a system's drives and its network in turns, as SNIS does.
type turns struct {
	s      *Scenario
	seed   uint64
	images []*ssd.Image
	group  []int
	target []int
	// Numbers of hosts.
	initiators, targets []int32

	rec    *cosim.Recorder
	it     *cosim.Iterative
	drives []*ssd.Drive // as the last iteration left them
	net    *network     // likewise
	meter  *fabricMeter
	events atomic.Uint64
}

// runInTurns simulates a system in turns, and if it is asked for in one loop as well, to compare.
func (s *Scenario) runInTurns(ctx context.Context, o Options, r *result.Result) (*Outcome, error) {
	images, err := s.prepareDrives(o.Seed)
	if err != nil {
		return nil, err
	}
	t := &turns{s: s, seed: o.Seed, images: images}
	t.group, t.target = s.groupOf()
	if err := t.prepare(); err != nil {
		return nil, err
	}
	interrupted, err := t.run(ctx, o)
	if err != nil {
		return nil, err
	}
	if s.Coupling.Mode == IterativeOnly || interrupted {
		if interrupted && len(t.it.Turns) == 0 {
			return nil, context.Cause(ctx)
		}
		t.fill(r, interrupted)
		if err := t.samples(o); err != nil {
			return nil, err
		}
		return &Outcome{Result: r, Events: t.events.Load(), Interrupted: interrupted}, nil
	}
	// The same flows in one loop, for the error of the iteration alone; then what was asked for.
	exact, err := s.runCoupled(ctx, Options{Seed: o.Seed, Progress: o.Progress}, nvmf.Flows, images, nil)
	if err != nil {
		return nil, err
	}
	run, err := s.runCoupled(ctx, o, s.Protocol, images, r)
	if err != nil {
		return nil, err
	}
	if !run.interrupted && !exact.interrupted {
		t.compare(r, exact.delays)
	}
	t.figures(r)
	return &Outcome{Result: r, Events: t.events.Load() + exact.events + run.events, Interrupted: run.interrupted || exact.interrupted, Remarks: run.remarks}, nil
}

// prepare records the requests and the route of each.
func (t *turns) prepare() error {
	s := t.s
	graph, err := s.Fabric.graph(s)
	if err != nil {
		return err
	}
	if t.initiators, t.targets, err = s.places(hostsOf(graph)); err != nil {
		return err
	}
	y := &system{eng: sim.New(), initiators: 1}
	if s.Route.Initiator == InitiatorEach {
		y.initiators = s.Initiators
	}
	y.host = cosim.NewHost(y.eng)
	byTarget := make([][]int32, len(t.targets))
	capacity := int64(1) << 62
	for i, k := range t.target {
		byTarget[k] = append(byTarget[k], int32(i))
		capacity = min(capacity, newDrive(t.images[t.group[i]], sim.New(), nil, t.seed, i).Capacity(0))
	}
	route := s.routing(nil)
	route.MaxTransfer = 1 << 40
	router, err := cosim.NewRouter(route, s.Initiators, byTarget, capacity)
	if err != nil {
		return err
	}
	t.rec = cosim.NewRecorder(y.eng, router)
	y.dev = t.rec
	if err := s.addFlows(y, t.seed); err != nil {
		return err
	}
	defer y.close()
	t.rec.SetOwners(y.owners)
	if err := y.host.Attach(y.dev, y.flows); err != nil {
		return err
	}
	if err := y.host.Start(); err != nil {
		return s.located(err)
	}
	y.eng.Run(sim.Forever)
	if err := y.host.Err(); err != nil {
		return s.located(err)
	}
	if len(t.rec.Jobs) == 0 {
		return fmt.Errorf("the workload has no request")
	}
	x := &s.Coupling.Iterative
	cfg := cosim.IterativeConfig{Threshold: float64(x.Threshold), StableRange: float64(x.StableRange), StableFor: x.StableFor, Most: x.Iterations, Full: x.Full,
		Acceleration: x.Acceleration, Relaxation: float64(x.Relaxation), DriveDepth: s.NVMf.DriveDepth}
	for i, w := range x.Weights {
		cfg.Weights[i] = float64(w)
	}
	var first func(int) sim.Time
	if x.FirstWriteArrival == FirstUnloaded {
		if first, err = t.unloaded(); err != nil {
			return err
		}
	}
	t.it, err = cosim.NewIterative(cfg, t.rec.Jobs, len(t.group), first)
	t.drives = make([]*ssd.Drive, len(t.group))
	return err
}

// unloaded is when a write would come to its drive if it were alone in the network.
func (t *turns) unloaded() (func(int) sim.Time, error) {
	n := &network{s: t.s, eng: sim.New()}
	if err := n.make(t.seed, &n.tally); err != nil {
		return nil, err
	}
	type way struct {
		src, dst int32
		size     int64
	}
	known := map[way]sim.Time{}
	return func(i int) sim.Time {
		j := &t.rec.Jobs[i]
		src, dst := t.ends(j)
		w := way{src, dst, j.Command.Length}
		if _, ok := known[w]; !ok {
			known[w] = n.lone(src, dst, t.s.NVMf.Class, units.Bytes(w.size))
		}
		return j.Arrival + known[w]
	}, nil
}

// lone is how long a message takes until it is delivered when nothing else is in the network.
func (y *network) lone(src, dst int32, class uint8, size units.Bytes) sim.Time {
	from := y.eng.Now()
	m, err := y.net.Send(y.hosts[src], y.hosts[dst], class, size)
	if err != nil {
		return 0 // the network itself will say why
	}
	y.eng.Run(sim.Forever)
	if at := y.net.Messages()[m].Delivered; at != sim.Forever {
		return at - from
	}
	return 0
}

// ends are the hosts that a job's data goes from and to.
func (t *turns) ends(j *cosim.Job) (src, dst int32) {
	initiator, target := t.initiators[t.rec.Initiators[j.Request]], t.targets[t.target[j.Drive]]
	if j.Command.Op == block.Read {
		return target, initiator
	}
	return initiator, target
}

// sinkOf tells a function of a drive's completions.
type sinkOf func(block.Completion)

// Complete implements ssd.Sink.
func (f sinkOf) Complete(c block.Completion) { f(c) }

// run iterates. It reports whether the context ended it.
func (t *turns) run(ctx context.Context, o Options) (interrupted bool, err error) {
	for {
		if err := t.storage(ctx); err != nil {
			return false, err
		}
		if ended(ctx) {
			return true, nil
		}
		if err := t.it.Network(t.ends, t.s.NVMf.Class, t.network); err != nil {
			return false, err
		}
		more := t.it.Finish()
		if o.Progress != nil {
			n := uint64(len(t.rec.Requests))
			o.Progress(Progress{Requests: n * uint64(len(t.it.Turns)), Expected: n * uint64(t.s.Coupling.Iterative.Iterations), Simulated: t.net.eng.Now()})
		}
		if !more {
			return false, nil
		}
	}
}

// ended tells an interruption, which is an outcome here and no error.
func ended(ctx context.Context) bool { return ctx.Err() != nil }

// draw is the seed of an iteration's random numbers.
func (t *turns) draw() uint64 {
	if t.s.Coupling.Iterative.Redraw {
		return t.seed + uint64(len(t.it.Turns))<<32
	}
	return t.seed
}

// storage simulates all drives, as many at a time as there are processors.
func (t *turns) storage(ctx context.Context) error {
	errs := make([]error, len(t.drives))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(t.drives)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(t.drives) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				var eng *sim.Engine
				errs[i] = t.it.Storage(i, func(e *sim.Engine, done func(block.Completion)) (block.Device, error) {
					eng = e
					t.drives[i] = newDrive(t.images[t.group[i]], e, sinkOf(done), t.draw(), i)
					return t.drives[i], nil
				})
				t.events.Add(eng.Events())
			}
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("ssd[%d]: %w", i, err)
		}
	}
	return nil
}

// network simulates the network with flows at given times.
func (t *turns) network(list []flows.Flow) (func(int) (sim.Time, sim.Time), uint64, error) {
	n, err := t.s.flowNetwork(t.draw(), list)
	if err != nil {
		return nil, 0, err
	}
	m := newFabricMeter(n)
	if _, err := m.run(context.Background(), Options{}); err != nil {
		return nil, 0, err
	}
	t.net, t.meter = n, m
	t.events.Add(n.driver.events())
	messages := n.net.Messages()
	return func(flow int) (sim.Time, sim.Time) { return messages[flow].Begun, messages[flow].Delivered }, n.net.Counters.Pauses, nil
}

// flowNetwork makes a network with the flows of an iteration.
func (s *Scenario) flowNetwork(seed uint64, list []flows.Flow) (*network, error) {
	n := &network{s: s, eng: sim.New(), known: len(list)}
	if err := n.make(seed, &n.tally); err != nil {
		return nil, err
	}
	if err := n.use(1 << s.NVMf.Class); err != nil {
		return nil, err
	}
	if s.Fabric.Parts > 1 {
		var err error
		n.driver, err = n.inParts(flows.Slice(list), s.Fabric.Parts, false)
		return n, err
	}
	traffic := cosim.NewTraffic(n.eng, n.net, flows.Slice(list), n.hosts)
	n.driver = &whole{n, traffic}
	return n, traffic.Start()
}

// fill fills in the figures of a system that was simulated in turns alone.
func (t *turns) fill(r *result.Result, interrupted bool) {
	s := t.s
	r.Summary = fmt.Sprintf("%s, in turns", s.systemSummary(t.meter))
	r.Limits = append(s.systemLimits(t.meter), "Drives and network were simulated in turns (coupling.mode: iterative); coupled is exact.")
	t.net.others = func(int32) bool { return true }
	t.meter.from.ports = make([]portState, len(t.meter.before.ports))
	t.meter.fill(r, &t.meter.before, interrupted)
	var h [block.Ops]stats.Histogram
	var ways [block.Ops]cosim.Anatomy
	var bytes [block.Ops]int64
	end := t.end()
	for i, d := range t.it.Delays() {
		q := &t.rec.Requests[i]
		h[q.Op].Record(d)
		bytes[q.Op] += q.Length
		way := t.it.Stages(i)
		ways[q.Op].Add(d, &way)
	}
	r.SimulatedS = end.Seconds()
	var all stats.Histogram
	for op := block.Read; op <= block.Write; op++ {
		if h[op].Count() == 0 {
			continue
		}
		put(r, op.String(), h[op].Count(), bytes[op], end.Seconds())
		r.SetLatencies(op.String(), &h[op])
		anatomy(r, op.String(), &ways[op])
		all.Merge(&h[op])
	}
	put(r, "all", all.Count(), bytes[block.Read]+bytes[block.Write], end.Seconds())
	r.SetLatencies("all", &all)
	sum := t.drives[0].Stats()
	last := sum.Span
	for _, d := range t.drives[1:] {
		x := d.Stats()
		last = max(last, x.Span)
		sum.Add(&x)
	}
	// A drive goes on for a while after it has ended the last request; shares are of all that it did.
	f := figures{r: r, cfg: s.sameDrive(), drives: t.drives, now: sum, span: max(end, last)}
	f.fill()
	driveChecks(r, t.drives)
	r.Set("sim.events", float64(t.events.Load()))
	t.figures(r)
	if interrupted {
		r.Warn("incomplete: the run was interrupted after %d iterations", len(t.it.Turns))
	}
}

// end is when the last request of the last iteration ended.
func (t *turns) end() sim.Time {
	end := sim.Time(0)
	for i := range t.rec.Jobs {
		_, sd, _, nd := t.it.Times(i)
		end = max(end, sd, nd)
	}
	return end
}

// figures fills in what the iterations came to.
func (t *turns) figures(r *result.Result) {
	it := t.it
	n := len(it.Turns)
	converged := 0.0
	count := n - 1
	if it.Converged >= 0 {
		converged, count = 1, it.Converged
	} else {
		r.Warn("drives and network in turns did not converge within %d iterations: the last change was %.1f %%", n, 100*it.Turns[n-1].ConvC)
	}
	r.Set("snis.iterations", float64(count))
	r.Set("snis.converged", converged)
	if it.Fixed >= 0 {
		r.Set("snis.fixed_at", float64(it.Fixed))
	}
	var x, conv, rdMean, rdMedian, rd90 []float64
	for i := 1; i < n; i++ {
		k := &it.Turns[i]
		x, conv = append(x, float64(i)), append(conv, k.ConvC)
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
		cols = append(cols, fmt.Sprint(k))
		turns[k] = []float64{float64(it.Turns[k].Pauses), float64(it.Turns[k].Changed), min(it.Turns[k].Settled, t.end()).Seconds()}
	}
	r.SetMatrix("snis.throughput", rows, cols, v)
	r.SetMatrix("snis.turns", cols, []string{"pauses", "writes_moved", "settled_until_s"}, turns)
}

// compare fills in how far the iterations' answer is from that of one loop with the same flows, and how
// far that is from the real protocol's.
func (t *turns) compare(r *result.Result, exact []sim.Time) {
	mine := t.it.Delays()
	if len(mine) != len(exact) {
		r.Warn("the runs in turns and in one loop have %d and %d requests, and cannot be compared", len(mine), len(exact))
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
		v = append(v, []float64{x, y, ratio(x-y, y)})
	}
	r.SetMatrix("snis.error", []string{"mean", "p50", "p90", "p99"}, []string{"iterative", "coupled", "relative"}, v)
	r.Set("snis.error.request.mean", mean(off))
	r.Set("snis.error.request.max", off[len(off)-1])
	if t.s.Protocol == nvmf.NVMeoF {
		var rows [][]float64
		for i, q := range []string{"mean", "p50", "p90", "p99"} {
			if m, ok := r.Metric("all.latency." + q); ok {
				rows = append(rows, []float64{v[i][1], m.Value, ratio(m.Value-v[i][1], v[i][1])})
			}
		}
		r.SetMatrix("snis.protocol", []string{"mean", "p50", "p90", "p99"}[:len(rows)], []string{"flows", "nvmeof", "relative"}, rows)
	}
}

// quantile is a quantile of sorted values.
func quantile(share float64) func([]float64) float64 {
	return func(x []float64) float64 { return at(x, share) }
}

// samples tells who asked for them of the requests of the last iteration.
func (t *turns) samples(o Options) error {
	if o.Sample == nil {
		return nil
	}
	delays := t.it.Delays()
	for i := range t.rec.Requests {
		part := t.it.Part(i)
		j, q := &t.rec.Jobs[part], &t.rec.Requests[i]
		sa, sd, na, nd := t.it.Times(part)
		trip := cosim.Trip{Arrival: j.Arrival, Done: nvmf.Done{Op: q.Op, Length: q.Length, Initiator: t.rec.Initiators[i], Target: int32(t.target[j.Drive]), Drive: j.Drive, Stage: t.it.Stages(i),
			DriveIn: sa, DriveOut: sd, NetIn: na, NetOut: nd, Submitted: j.Arrival, Ended: j.Arrival + delays[i]}}
		x := cosim.Sample{ID: uint64(i), Op: q.Op, Offset: q.Offset, Size: q.Length, Arrival: j.Arrival, Submitted: sa, Fetched: sa, Finished: trip.Ended, Trip: &trip}
		if err := o.Sample(x); err != nil {
			return err
		}
	}
	return nil
}

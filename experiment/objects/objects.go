// Package objects is the experiment with an object cluster: gateways put and get chunks on targets.
//
// It leaves out the protocols and the engine (package cluster), and clusters without chunks (packages tiers and
// traffic).
package objects

import (
	"context"
	"errors"
	"fmt"
	"math"

	"farflash/experiment"
	"farflash/experiment/internal/networks"
	"farflash/experiment/requests"
	"farflash/experiment/timeline"
	"farflash/internal/spelling"
	"farflash/model/cluster"
	"farflash/model/cluster/uses"
	"farflash/model/ssd"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario"
	"farflash/sim"
)

// slice is the state at the end of a slice, and the latencies of the chunks completed in it.
type slice struct {
	at       sim.Time
	counters cluster.Counters
	disks    []sim.Time   // busy time of each
	sent     []sim.Time   // busy time of each gateway's link
	got      []sim.Time   // and each target's
	spent    []uses.Spent // breakdown of each disk's time
	links    []uses.Spent // and of each link's, if links are the bottleneck
	// of puts, gets and partial updates
	latency [3]stats.Histogram
	rebuild [2]stats.Histogram // of puts and gets during a rebuild
	size    [3]units.Bytes     // of completed ones
	nodeSums
	drives ssd.Stats // sums
}

// Kind is an object cluster.
type Kind struct{}

func (Kind) Is(s *scenario.Scenario) bool {
	return s.ObjectCluster != nil && s.ObjectCluster.Puts()
}

// running holds the models of an object cluster and their observers.
type running struct {
	s        *scenario.Scenario
	o        *experiment.Options
	eng      *sim.Engine
	watch    experiment.Watch
	c        *cluster.Cluster
	drives   []*ssd.Drive
	net      *networks.Meter // nil: the ideal core
	trace    *chunked        // nil: closed loop of the gateways
	replay   *requests.Replay
	seen     *clusterWatch
	rows     experiment.ChunkRows
	timeline *timeline.Timeline
	means    *stats.Series
	now      *slice
	slices   []*slice
}

func (Kind) Build(s *scenario.Scenario, o *experiment.Options) (experiment.Experiment, error) {
	x := &running{s: s, o: o, eng: sim.New(), now: &slice{}, rows: experiment.ChunkRows{Emit: o.Chunk}}
	if err := x.build(); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

func (x *running) build() (err error) {
	s, seed := x.s, x.o.Seed
	cfg := s.ObjectCluster.Config
	if len(s.Workload) > 0 {
		if cfg.Reads, err = readShare(s, seed); err != nil {
			return err
		}
	}
	if x.c, err = cluster.New(cfg, x.eng, seed); err != nil {
		return units.Within("object_cluster", err)
	}
	k := &x.c.Counters
	done := func() uint64 { return k.Done + k.Gets.Done + k.Updates.Done + k.Dropped }
	begun := func() uint64 { return k.Begun + k.Gets.Begun + k.Updates.Begun }
	x.watch = experiment.Watch{Until: s.Measure.Until.Time, Moves: func() uint64 { return begun() + done() },
		Waits: func() string { return fmt.Sprintf("%s did not end", spelling.Plural(int(begun()-done()), "chunk")) }}
	x.means = stats.NewSeries(stats.SeriesConfig{Width: max(s.Measure.Until.Time/256, 1), Bins: 256})
	x.seen = &clusterWatch{c: x.c, gateways: s.ObjectCluster.Gateways}
	x.timeline = timeline.New(x.o.Timeline, x.o.TimelineSlices, x.eng)
	x.seen.timeline = x.timeline.ShowCluster(&cfg, func() {
		x.seen.timeline = nil
		x.seen.set()
	})
	x.c.OnDone = x.done
	if x.drives, err = attach(s, x.c, x.eng, seed, x.o.Preparing); err != nil {
		return err
	}
	net, err := carry(s, x.c, x.eng, seed)
	if err != nil {
		return err
	}
	if net != nil {
		x.net = networks.NewMeter(net.Network)
	}
	if len(s.Workload) > 0 {
		if x.replay, x.trace, err = chunks(s, seed); err != nil {
			return err
		}
		x.c.Replay(x.trace)
	}
	x.c.Start()
	x.seen.slice(0, x.eng.Now())
	return nil
}

// done records a completed chunk.
func (x *running) done(d *cluster.Done) {
	x.seen.done(d)
	op, name := 0, "put"
	switch {
	case d.Read:
		op, name = 1, "get"
	case d.Update:
		op, name = 2, "update"
	}
	x.now.latency[op].Record(d.Done - d.Begun)
	x.now.size[op] += d.Size
	if op < len(x.now.rebuild) && (x.c.Rebuilding() || x.c.RepairedAt > d.Begun) {
		x.now.rebuild[op].Record(d.Done - d.Begun)
	}
	x.means.Add(d.Done, int64(d.Done-d.Begun))
	x.rows.Add(experiment.Chunk{Op: name, Gateway: d.Gateway, Target: -1, Size: d.Size, Begun: d.Begun, Done: d.Done})
}

// take ends a slice.
func (x *running) take(at sim.Time) {
	c, now := x.c, x.now
	now.at, now.counters = at, c.Counters
	now.disks, now.sent, now.got = c.Busy(at)
	now.spent, now.links = c.Spent(at)
	now.look(c, now.at)
	now.drives = driveStats(x.drives, at)
	x.slices, x.now = append(x.slices, now), &slice{}
	if at < x.s.Measure.Until.Time {
		x.seen.slice(len(x.slices), x.eng.Now())
	}
}

// Meters implements experiment.Experiment.
func (x *running) Meters() []experiment.Meter {
	list := []experiment.Meter{&experiment.Even{Until: x.s.Measure.Until.Time, N: experiment.Slices, Take: x.take}}
	if x.net != nil {
		list = append(list, x.net)
	}
	return list
}

// Close implements experiment.Experiment.
func (x *running) Close() error {
	if x.replay == nil {
		return nil
	}
	return x.replay.Close()
}

// Advance implements experiment.Experiment.
func (x *running) Advance(ctx context.Context, to sim.Time) (experiment.RunState, error) {
	x.watch.Attend(ctx, x.eng)
	x.eng.Run(to)
	if ctx.Err() != nil {
		to = x.eng.Now()
	}
	if x.net != nil {
		x.net.Look(to)
	}
	now := experiment.RunState{At: to, Stalled: x.watch.Stalled(),
		Done: x.c.Counters.Done + x.c.Counters.Gets.Done + x.c.Counters.Updates.Done}
	if err := x.c.Err(); err != nil {
		return now, x.s.Located(units.Within("object_cluster", err))
	}
	return now, x.rows.Err
}

// Fill implements experiment.Experiment.
func (x *running) Fill(_ context.Context, out *experiment.Outcome) (err error) {
	r := out.Result
	if x.trace != nil {
		if err := x.trace.failed(); err != nil {
			return x.s.LoadError(0, err)
		}
	}
	x.fill(r, out.Interrupted)
	fillLadder(r, x.seen.ladders, x.seen.starts, units.Duration(math.Round(r.WarmUp.UntilS*1e12)))
	if x.net != nil {
		x.net.FillPart(r, out.Interrupted)
	}
	out.Events = x.eng.Events()
	r.Set("sim.events", float64(x.c.Events()))
	out.Remarks, err = x.timeline.Close()
	return err
}

// fill fills in the result.
func (x *running) fill(r *result.Result, interrupted bool) {
	s, c, slices := x.s, x.c, x.slices
	cfg := c.Config()
	last := slices[len(slices)-1]
	ends := make([]sim.Time, len(slices))
	for i := range slices {
		ends[i] = slices[i].at
	}
	skip, _ := experiment.CutWarmUp(s.Measure.WarmUp, ends, x.means, r)
	from := &slice{disks: make([]sim.Time, cfg.Targets), sent: make([]sim.Time, cfg.Gateways),
		got: make([]sim.Time, cfg.Targets)}
	from.nodes = make([]cluster.NodeBytes, len(last.nodes))
	if skip > 0 {
		from = slices[skip-1]
	}
	r.SimulatedS = last.at.Seconds()
	r.Summary = clusterSummary(cfg)
	r.Limits = []string{"The network's core never blocks."}
	if cfg.Core == cluster.CorePacket {
		r.Limits[0] = "A multicast is one message for each receiver, because transports of the packet network " +
			"connect two hosts."
	}
	if cfg.Processor == (cluster.Processor{}) {
		r.Limits = append(r.Limits, "Processors take no time (object_cluster.processor).")
	}
	if cfg.Link.Loss == 0 && len(cfg.Failures) == 0 {
		r.Limits = append(r.Limits, "No target fails and no frame is lost.")
	}
	if cfg.Load == (cluster.Load{}) && len(s.Workload) == 0 {
		r.Limits = append(r.Limits,
			"Gateways are a closed loop, so rate and mean latency are one measurement, not two.")
	}
	if cfg.Compat != cluster.CompatNone {
		r.Limits = append(r.Limits,
			fmt.Sprintf("compat: %v reproduces deviations of a simulator that real clusters do not have.", cfg.Compat))
	}
	var all stats.Histogram
	span := (last.at - from.at).Seconds()
	total := 0.0
	for op, name := range []string{"cluster.put", "cluster.get", "cluster.update"} {
		done := float64(last.counters.Done - from.counters.Done)
		switch op {
		case 1:
			done = float64(last.counters.Gets.Done - from.counters.Gets.Done)
		case 2:
			done = float64(last.counters.Updates.Done - from.counters.Updates.Done)
		}
		if op == 0 && (cfg.Reads == 1 || cfg.Update.Share == 1) || op == 1 && cfg.Reads == 0 ||
			op == 2 && cfg.Update.Share == 0 {
			continue
		}
		h, size := new(stats.Histogram), units.Bytes(0) // retained by the result
		for _, y := range slices[skip:] {
			h.Merge(&y.latency[op])
			size += y.size[op]
		}
		all.Merge(h)
		total += done
		r.Set(name+".count", done)
		r.SetLatencies(name, h)
		if span > 0 {
			r.Set(name+".iops", done/span)
			r.Set(name+".rate", done/span*float64(cfg.Chunk))
			if len(cfg.Sizes) > 0 || op == 2 {
				r.Set(name+".rate", float64(size)/span)
			}
		}
	}
	r.Set("cluster.put.aborted", float64(last.counters.Aborted-from.counters.Aborted))
	fillNodes(r, c, slices[skip:], from, last, span)
	if cfg.Read == cluster.ReadHedged && cfg.Reads > 0 {
		r.Set("cluster.get.hedged", float64(last.counters.Hedged-from.counters.Hedged))
	}
	clusterLosses(r, c, slices[skip:], &from.counters)
	fillDrives(s, r, x.drives, last, from)
	fillLasting(r, s.ObjectCluster, x.o.Seed)
	fillMulticast(r, cfg)
	bound := c.Bound()
	r.Set("cluster.bound.rate", bound.Chunks*cfg.MeanChunk())
	if span > 0 {
		r.Set("cluster.bound.reached", total/span/bound.Chunks)
		r.Set("cluster.disk.utilisation", experiment.BusyShare(last.disks, from.disks, last.at-from.at))
		r.Set("cluster.link.utilisation",
			experiment.BusyShare(append(append([]sim.Time(nil), last.sent...), last.got...),
				append(append([]sim.Time(nil), from.sent...), from.got...), last.at-from.at))
		targets := make([]string, cfg.Targets)
		use := make([][]float64, cfg.Targets)
		for t := range targets {
			targets[t] = fmt.Sprint(t)
			use[t] = []float64{stats.Micro((last.disks[t] - from.disks[t]).Seconds() / span),
				stats.Micro((last.got[t] - from.got[t]).Seconds() / span)}
		}
		fillLoss(r, c, last, from)
		fillBids(r, &last.counters.Bids, &from.counters.Bids, cfg.Targets, last.at-from.at)
		r.SetMatrix("cluster.target.busy", targets, []string{"disk", "link"}, use)
	}
	var names []string
	var bounds [][]float64
	for _, y := range c.Bounds() {
		names = append(names, y.Resource)
		bounds = append(bounds, []float64{y.Chunks * cfg.MeanChunk()})
	}
	r.SetMatrix("cluster.bounds", names, []string{"rate"}, bounds)
	err := c.Check()
	k := &last.counters
	detail := fmt.Sprintf("%d chunks begun, %d done, %d given up, %d failed, the rest under way",
		k.Begun+k.Gets.Begun+k.Updates.Begun, k.Done+k.Gets.Done+k.Updates.Done, k.Dropped, k.Failed)
	if err != nil {
		detail = err.Error()
	}
	r.Check("chunks conserved", err == nil, detail)
	if interrupted {
		r.Warn("incomplete: the run was interrupted at %v of simulated time, after %d chunks", last.at,
			k.Done+k.Gets.Done+k.Updates.Done)
	}
	if c.Offered() > 0 {
		clusterTrend(r, slices[skip:], from)
	}
	if rate := c.Offered(); rate > 0 && span > 0 && total/span < 0.95*rate {
		r.Warn("overload: %.4g chunks arrive per second and %.4g are completed; latencies depend on the length of "+
			"the run", rate, total/span)
	}
	if limit := 20 * all.Mean() / 1e12; skip == 0 && s.Measure.WarmUp.None() && all.Count() > 0 &&
		last.at.Seconds() < limit {
		r.Warn("the run is only %.3g mean latencies long and includes the start, before the first chunk "+
			"completed; rates are lower than in steady state (measure.warm_up: auto excludes it)",
			last.at.Seconds()/(all.Mean()/1e12))
	}
}

// clusterTrend reports whether an open loop keeps up: the share of the arrived chunks that were not completed, and the
// increase of completion times from the first half of the measured time to the second.
func clusterTrend(r *result.Result, slices []*slice, from *slice) {
	last := slices[len(slices)-1]
	done := func(x *slice) uint64 { return x.counters.Done + x.counters.Gets.Done + x.counters.Updates.Done }
	if came := last.counters.Arrived - from.counters.Arrived; came > 0 {
		// Chunks completed in the measured time may have arrived before it.
		r.Set("cluster.backlog.growth", 1-float64(done(last)-done(from))/float64(came))
	}
	var halves [2]stats.Histogram
	for i, x := range slices {
		for op := range x.latency {
			halves[2*i/len(slices)].Merge(&x.latency[op])
		}
	}
	if halves[0].Count() > 0 && halves[1].Count() > 0 {
		r.Set("cluster.drift", halves[1].Mean()/halves[0].Mean()-1)
	}
}

// clusterSummary describes the simulated cluster.
func clusterSummary(cfg *cluster.Config) string {
	kept := fmt.Sprintf("x %d", cfg.Replicas)
	if cfg.Code.Data > 0 {
		kept = fmt.Sprintf("as %d+%d pieces", cfg.Code.Data, cfg.Code.Parity)
	}
	size := fmt.Sprint(cfg.Chunk)
	if len(cfg.Sizes) > 0 {
		size = fmt.Sprintf("up to %v", cfg.Chunk)
	}
	text := fmt.Sprintf("%s, %s, %s chunks %s, %v", spelling.Plural(cfg.Gateways, "gateway"),
		spelling.Plural(cfg.Targets, "target"), size, kept, cfg.Protocol)
	if cfg.Reads > 0 {
		read, _ := cfg.Read.MarshalText()
		text += fmt.Sprintf(", %v of them read (%s)", cfg.Reads, read)
	}
	if cfg.Update.Share > 0 {
		text += fmt.Sprintf(", %v of %v of those put written over", cfg.Update.Size, cfg.Update.Share)
	}
	disks := fmt.Sprintf("disks of %v", cfg.Disk.Rate)
	if cfg.Disk.Model == cluster.ModelSSD {
		disks = "drives"
	}
	if cfg.Disk.Count > 1 {
		disks = fmt.Sprintf("%d %s each", cfg.Disk.Count, disks)
	}
	return text + fmt.Sprintf("; %s, links of %v", disks, cfg.Link.Rate)
}

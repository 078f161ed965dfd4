// Package traffic is the experiment with nodes that exchange events: SURGE's models without chunks.
//
// It leaves out the patterns themselves (package model/cluster/traffic).
package traffic

import (
	"context"
	"fmt"

	"farflash/experiment"
	"farflash/internal/spelling"
	"farflash/model/cluster/traffic"
	"farflash/numeric/stats"
	"farflash/scenario"
	"farflash/sim"
)

// slice is the state at its end.
type slice struct {
	counters traffic.Counters
	pending  float64         // events times seconds
	crowded  float64         // seconds
	latency  stats.Histogram // of the exchanges completed in it
}

// Kind is nodes that exchange events.
type Kind struct{}

func (Kind) Is(s *scenario.Scenario) bool {
	if s.ObjectCluster == nil {
		return false
	}
	_, ok := s.ObjectCluster.Protocol.Traffic()
	return ok
}

// running holds the nodes and their observers.
type running struct {
	s       *scenario.Scenario
	eng     *sim.Engine
	watch   experiment.Watch
	cfg     traffic.Config
	m       *traffic.Machine
	rows    experiment.ChunkRows
	means   *stats.Series
	latency stats.Histogram // of the present slice
	ends    []sim.Time
	slices  []slice
}

func (Kind) Build(s *scenario.Scenario, o *experiment.Options) (experiment.Experiment, error) {
	x := &running{s: s, eng: sim.New(), cfg: s.ObjectCluster.TrafficConfig(), rows: experiment.ChunkRows{Emit: o.Chunk}}
	var err error
	if x.m, err = traffic.New(x.cfg, x.eng, o.Seed); err != nil {
		return nil, fmt.Errorf("object_cluster: %w", err)
	}
	k := &x.m.Counters
	x.watch = experiment.Watch{Until: s.Measure.Until.Time,
		Moves: func() uint64 { return k.Begun + k.Done + k.Handled },
		Waits: func() string { return fmt.Sprintf("%s did not end", spelling.Plural(int(k.Begun-k.Done), "exchange")) }}
	x.means = stats.NewSeries(stats.SeriesConfig{Width: max(s.Measure.Until.Time/256, 1), Bins: 256})
	x.m.OnDone = func(d *traffic.Done) {
		x.latency.Record(d.Done - d.Begun)
		x.means.Add(d.Done, int64(d.Done-d.Begun))
		x.rows.Add(experiment.Chunk{Op: "exchange", Gateway: d.From, Target: d.To, Size: x.cfg.Size, Begun: d.Begun,
			Done: d.Done})
	}
	x.m.Start()
	return x, nil
}

// Meters implements experiment.Experiment.
func (x *running) Meters() []experiment.Meter {
	return []experiment.Meter{&experiment.Even{Until: x.s.Measure.Until.Time, N: experiment.Slices,
		Take: func(at sim.Time) {
			x.ends = append(x.ends, at)
			x.slices = append(x.slices, slice{x.m.Counters, x.m.Pending(at), x.m.Contended(at), x.latency})
			x.latency = stats.Histogram{}
		}}}
}

// Close implements experiment.Experiment.
func (*running) Close() error { return nil }

// Advance implements experiment.Experiment.
func (x *running) Advance(ctx context.Context, to sim.Time) (experiment.RunState, error) {
	x.watch.Attend(ctx, x.eng)
	x.eng.Run(to)
	if ctx.Err() != nil {
		to = x.eng.Now()
	}
	return experiment.RunState{At: to, Done: x.m.Counters.Done, Stalled: x.watch.Stalled()}, x.rows.Err
}

// Fill implements experiment.Experiment.
func (x *running) Fill(_ context.Context, out *experiment.Outcome) error {
	s, r, cfg := x.s, out.Result, &x.cfg
	r.Summary = fmt.Sprintf("%s, %s, %v; events of %v take %v to %v", spelling.Plural(cfg.Gateways, "gateway"),
		spelling.Plural(cfg.Targets, "target"), s.ObjectCluster.Protocol, cfg.Size, cfg.Trip, cfg.Trip+cfg.Jitter)
	r.Limits = []string{"Events take no time on links; no event is lost, and no chunks are put."}
	skip, at := experiment.CutWarmUp(s.Measure.WarmUp, x.ends, x.means, r)
	var from slice
	if skip > 0 {
		from = x.slices[skip-1]
	}
	last := &x.slices[len(x.slices)-1]
	var h stats.Histogram
	for i := range x.slices[skip:] {
		h.Merge(&x.slices[skip+i].latency)
	}
	end := x.ends[len(x.ends)-1]
	r.SimulatedS = end.Seconds()
	r.Set("cluster.exchange.count", float64(last.counters.Done-from.counters.Done))
	r.SetLatencies("cluster.exchange", &h)
	r.Set("cluster.event.held", float64(last.counters.Held-from.counters.Held))
	r.Set("cluster.event.shaped", float64(last.counters.Waited-from.counters.Waited))
	r.Set("cluster.event.pending.max", float64(last.counters.MostPending))
	r.Set("cluster.tx.bytes", float64(last.counters.Bytes-from.counters.Bytes))
	r.Set("cluster.event.count", float64(last.counters.Handled-from.counters.Handled))
	if span := (end - at).Seconds(); span > 0 {
		rate := float64(last.counters.Handled-from.counters.Handled) / span
		r.Set("cluster.event.iops", rate)
		r.Set("cluster.exchange.iops", float64(last.counters.Done-from.counters.Done)/span)
		r.Set("cluster.event.pending.mean", (last.pending-from.pending)/span/float64(x.m.Receivers()))
		r.Set("cluster.event.crowded", (last.crowded-from.crowded)/span/float64(x.m.Receivers()))
		r.Set("cluster.bound.reached", rate/x.m.Bound())
	}
	out.Events = x.eng.Events()
	experiment.Close(out, "conserved", x.m.Check(),
		fmt.Sprintf("%d exchanges begun, %d done, the rest under way", x.m.Counters.Begun, x.m.Counters.Done))
	return nil
}

// Package tiers is the experiment with an SSD in front of HDDs, SURGE's model of tiering.
//
// It leaves out the model itself (package model/cluster/tier).
package tiers

import (
	"context"
	"fmt"
	"slices"

	"farflash/experiment"
	"farflash/internal/spelling"
	"farflash/model/cluster/tier"
	"farflash/numeric/stats"
	"farflash/result"
	"farflash/scenario"
	"farflash/sim"
)

// slice is the state at its end.
type slice struct {
	counters tier.Counters
	used     float64 // share of the SSD
	waiting  int
	busy     []sim.Time      // of devices
	writes   []uint64        // completed, by device
	latency  stats.Histogram // of the writes completed in it
}

// Kind is an SSD in front of HDDs.
type Kind struct{}

func (Kind) Is(s *scenario.Scenario) bool {
	return s.ObjectCluster != nil && s.ObjectCluster.Protocol == scenario.Tiering
}

// running holds the tiers and their observers.
type running struct {
	s       *scenario.Scenario
	eng     *sim.Engine
	watch   experiment.Watch
	cfg     tier.Config
	m       *tier.Server
	rows    experiment.ChunkRows
	means   *stats.Series
	writes  []uint64
	latency stats.Histogram // of the present slice
	ends    []sim.Time
	slices  []slice
}

func (Kind) Build(s *scenario.Scenario, o *experiment.Options) (experiment.Experiment, error) {
	x := &running{s: s, eng: sim.New(), cfg: s.ObjectCluster.TierConfig(), rows: experiment.ChunkRows{Emit: o.Chunk}}
	var err error
	if x.m, err = tier.New(x.cfg, x.eng); err != nil {
		return nil, fmt.Errorf("object_cluster: %w", err)
	}
	k := &x.m.Counters
	x.watch = experiment.Watch{Until: s.Measure.Until.Time,
		Moves: func() uint64 { return k.Begun + k.FastDone + k.SlowDone + k.Taken + k.Moved + k.Arrived },
		Waits: func() string {
			return fmt.Sprintf("%s did not end", spelling.Plural(int(k.Begun-k.FastDone-k.SlowDone), "write"))
		}}
	x.writes = make([]uint64, 1+x.cfg.HDDs)
	x.means = stats.NewSeries(stats.SeriesConfig{Width: max(s.Measure.Until.Time/256, 1), Bins: 256})
	x.m.OnDone = func(d *tier.Done) {
		x.latency.Record(d.Done - d.Begun)
		x.means.Add(d.Done, int64(d.Done-d.Begun))
		x.writes[d.Device]++
		x.rows.Add(experiment.Chunk{Op: "write", Target: d.Device, Size: x.cfg.Chunk, Begun: d.Begun, Done: d.Done})
	}
	x.m.Start()
	return x, nil
}

// Meters implements experiment.Experiment.
func (x *running) Meters() []experiment.Meter {
	return []experiment.Meter{&experiment.Even{Until: x.s.Measure.Until.Time, N: experiment.Slices,
		Take: func(at sim.Time) {
			x.ends = append(x.ends, at)
			x.slices = append(x.slices,
				slice{x.m.Counters, float64(x.m.Used()) / float64(x.cfg.SSD.Capacity), x.m.Waiting(), x.m.Busy(at),
					slices.Clone(x.writes), x.latency})
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
	return experiment.RunState{At: to, Done: x.m.Counters.FastDone + x.m.Counters.SlowDone,
		Stalled: x.watch.Stalled()}, x.rows.Err
}

// Fill implements experiment.Experiment.
func (x *running) Fill(_ context.Context, out *experiment.Outcome) error {
	r, cfg, k := out.Result, &x.cfg, &x.m.Counters
	r.Summary = fmt.Sprintf("an SSD of %v and %v, %s of %v, chunks of %v", cfg.SSD.Capacity, cfg.SSD.Rate,
		spelling.Plural(cfg.HDDs, "HDD"), cfg.HDD.Rate, cfg.Chunk)
	r.Limits = []string{"Reads of moved chunks take no SSD time; there are no other reads and no failures."}
	skip, at := experiment.CutWarmUp(x.s.Measure.WarmUp, x.ends, x.means, r)
	from := &slice{busy: make([]sim.Time, 1+cfg.HDDs), writes: make([]uint64, 1+cfg.HDDs)}
	if skip > 0 {
		from = &x.slices[skip-1]
	}
	r.Set("cluster.bound.rate", x.m.Bound())
	x.fill(r, skip, from, at)
	out.Events = x.eng.Events()
	experiment.Close(out, "conserved", x.m.Check(),
		fmt.Sprintf("%d writes begun, %d done; %d chunks taken by the SSD, %d moved", k.Begun, k.FastDone+k.SlowDone,
			k.Taken, k.Moved))
	return nil
}

// fill fills in the measurements from a time on.
func (x *running) fill(r *result.Result, skip int, from *slice, at sim.Time) {
	cfg := &x.cfg
	last, end := &x.slices[len(x.slices)-1], x.ends[len(x.ends)-1]
	r.SimulatedS = end.Seconds()
	var h stats.Histogram
	for i := range x.slices[skip:] {
		h.Merge(&x.slices[skip+i].latency)
	}
	k, f := &last.counters, &from.counters
	done := float64(k.FastDone + k.SlowDone - f.FastDone - f.SlowDone)
	r.Set("cluster.put.count", done)
	r.SetLatencies("cluster.put", &h)
	r.Set("cluster.tier.moved", float64(k.Moved-f.Moved))
	r.Set("cluster.tier.held", float64(k.Held-f.Held))
	r.Set("cluster.tier.waiting.max", float64(k.MostWaiting))
	r.Set("cluster.tier.drains", float64(k.HighReached-f.HighReached))
	used, waiting := 0.0, 0.0
	for i := range x.slices[skip:] {
		used += x.slices[skip+i].used
		waiting += float64(x.slices[skip+i].waiting)
	}
	r.Set("cluster.tier.used", used/float64(len(x.slices)-skip))
	r.Set("cluster.tier.waiting.mean", waiting/float64(len(x.slices)-skip))
	r.Set("cluster.tx.bytes", float64(k.TransferBytes+k.ControlBytes-f.TransferBytes-f.ControlBytes))
	span := (end - at).Seconds()
	if span <= 0 {
		return
	}
	r.Set("cluster.put.iops", done/span)
	r.Set("cluster.put.rate", done/span*float64(cfg.Chunk))
	bound, _ := r.Metric("cluster.bound.rate")
	r.Set("cluster.bound.reached", done/span*float64(cfg.Chunk)/bound.Value)
	r.Set("cluster.disk.utilisation", experiment.BusyShare(last.busy, from.busy, end-at))
	names := make([]string, 1+cfg.HDDs)
	busy, rate := make([][]float64, len(names)), make([][]float64, len(names))
	for i := range names {
		names[i] = fmt.Sprintf("hdd %d", i)
		busy[i] = []float64{stats.Micro((last.busy[i] - from.busy[i]).Seconds() / span)}
		rate[i] = []float64{stats.Micro(float64(last.writes[i]-from.writes[i]) * float64(cfg.Chunk) / span)}
	}
	names[0] = "ssd"
	r.SetMatrix("cluster.target.busy", names, []string{"disk"}, busy)
	r.SetMatrix("cluster.tier.rate", names, []string{"writes"}, rate)
}

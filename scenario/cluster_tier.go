package scenario

import (
	"context"
	"fmt"

	"farflash/cluster/tier"
	"farflash/result"
	"farflash/sim"
	"farflash/stats"
)

// tierSlice is what was done up to the end of a slice, beside what a clusterSlice has.
type tierSlice struct {
	counters tier.Counters
	used     float64 // share of the SSD
	waiting  int
	busy     []sim.Time // of devices
	writes   []uint64   // done, of devices
}

// runTier simulates an SSD and the HDDs behind it.
func (s *Scenario) runTier(ctx context.Context, o Options, digest string) (*Outcome, error) {
	eng, cfg := sim.New(), s.ObjectCluster.TierConfig()
	m, err := tier.New(cfg, eng)
	if err != nil {
		return nil, fmt.Errorf("object_cluster: %w", err)
	}
	rows := chunkRows{tell: o.Chunk}
	until := s.Measure.Until.Time
	now := &clusterSlice{}
	var slices []*clusterSlice
	var sums []tierSlice
	writes := make([]uint64, 1+cfg.HDDs)
	means := stats.NewSeries(stats.SeriesConfig{Width: max(until/256, 1), Bins: 256})
	m.OnDone = func(d *tier.Done) {
		now.latency[0].Record(d.Done - d.Begun)
		means.Add(d.Done, int64(d.Done-d.Begun))
		writes[d.Device]++
		rows.add(Chunk{Op: "write", Target: d.Device, Size: cfg.Chunk, Begun: d.Begun, Done: d.Done})
	}
	m.Start()
	interrupted := s.slicedRun(ctx, &o, eng, func() uint64 { return m.Counters.FastDone + m.Counters.SlowDone }, func(end sim.Time) {
		now.at = end
		slices, now = append(slices, now), &clusterSlice{}
		sums = append(sums, tierSlice{m.Counters, float64(m.Used()) / float64(cfg.SSD.Capacity), m.Waiting(), m.Busy(end), append([]uint64(nil), writes...)})
	})
	if rows.err != nil {
		return nil, rows.err
	}
	r := result.New(digest, o.Seed, o.Version)
	r.Name = s.Name
	r.Summary = fmt.Sprintf("an SSD of %v and %v, %s of %v, chunks of %v", cfg.SSD.Capacity, cfg.SSD.Rate, plural(cfg.HDDs, "HDD"), cfg.HDD.Rate, cfg.Chunk)
	r.Limits = []string{"Reading what moves takes the SSD no time; nothing is read, and nothing fails."}
	skip, at := s.cutWarmUp(r, slices, means)
	from := tierSlice{busy: make([]sim.Time, 1+cfg.HDDs), writes: make([]uint64, 1+cfg.HDDs)}
	if skip > 0 {
		from = sums[skip-1]
	}
	r.Set("cluster.bound.rate", m.Bound())
	s.fillTier(r, &cfg, slices[skip:], sums[skip:], &from, at)
	s.closeCluster(r, m.Check(), fmt.Sprintf("%d writes begun, %d done; %d chunks taken by the SSD, %d moved", m.Counters.Begun, m.Counters.FastDone+m.Counters.SlowDone, m.Counters.Taken, m.Counters.Moved), eng, interrupted)
	return &Outcome{Result: r, Events: eng.Events(), Interrupted: interrupted}, nil
}

// fillTier fills in what was measured from a time on.
func (s *Scenario) fillTier(r *result.Result, cfg *tier.Config, slices []*clusterSlice, sums []tierSlice, from *tierSlice, at sim.Time) {
	last, end := &sums[len(sums)-1], slices[len(slices)-1].at
	r.SimulatedS = end.Seconds()
	var h stats.Histogram
	for _, x := range slices {
		h.Merge(&x.latency[0])
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
	for i := range sums {
		used += sums[i].used
		waiting += float64(sums[i].waiting)
	}
	r.Set("cluster.tier.used", used/float64(len(sums)))
	r.Set("cluster.tier.waiting.mean", waiting/float64(len(sums)))
	r.Set("cluster.tx.bytes", float64(k.TransferBytes+k.ControlBytes-f.TransferBytes-f.ControlBytes))
	span := (end - at).Seconds()
	if span <= 0 {
		return
	}
	r.Set("cluster.put.iops", done/span)
	r.Set("cluster.put.rate", done/span*float64(cfg.Chunk))
	bound, _ := r.Metric("cluster.bound.rate")
	r.Set("cluster.bound.reached", done/span*float64(cfg.Chunk)/bound.Value)
	r.Set("cluster.disk.utilisation", shareOf(last.busy, from.busy, end-at))
	names := make([]string, 1+cfg.HDDs)
	busy, rate := make([][]float64, len(names)), make([][]float64, len(names))
	for i := range names {
		names[i] = fmt.Sprintf("hdd %d", i)
		busy[i] = []float64{round((last.busy[i] - from.busy[i]).Seconds() / span)}
		rate[i] = []float64{round(float64(last.writes[i]-from.writes[i]) * float64(cfg.Chunk) / span)}
	}
	names[0] = "ssd"
	r.SetMatrix("cluster.target.busy", names, []string{"disk"}, busy)
	r.SetMatrix("cluster.tier.rate", names, []string{"writes"}, rate)
}

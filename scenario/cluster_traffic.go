package scenario

import (
	"context"
	"fmt"

	"farflash/cluster"
	"farflash/cluster/tier"
	"farflash/cluster/traffic"
	"farflash/result"
	"farflash/shape"
	"farflash/sim"
	"farflash/stats"
	"farflash/units"
)

// trafficDefaults are what SURGE's model of a pattern does, where nothing is said.
func (s *Scenario) trafficDefaults(k traffic.Kind, unsaid func(string) bool) {
	c := s.ObjectCluster
	if unsaid("link.trip") {
		c.Link.Trip = k.Trip()
	}
	p, t := traffic.PatternOf(k, c.Targets), &c.Traffic
	p.Jitter = c.Link.Trip
	for _, x := range []struct {
		key string
		set func()
	}{
		{"both", func() { t.Both = p.Both }}, {"interval", func() { t.Interval = p.Interval }}, {"choices", func() { t.Choices = p.Choices }}, {"load", func() { t.Load = p.Load }},
		{"burst", func() { t.Burst = p.Burst }}, {"refill", func() { t.Refill = p.Refill }}, {"hops", func() { t.Hops = p.Hops }},
		{"outstanding", func() { t.Outstanding = p.Outstanding }}, {"apart", func() { t.Apart = p.Apart }}, {"jitter", func() { t.Jitter = p.Jitter }},
	} {
		if unsaid("traffic." + x.key) {
			x.set()
		}
	}
}

// absentOfCluster are the sections of an object cluster that its protocol has no use for.
func (s *Scenario) absentOfCluster() []string {
	if s.ObjectCluster == nil {
		return nil
	}
	var out []string
	if _, ok := s.ObjectCluster.Protocol.Traffic(); !ok {
		out = append(out, "object_cluster.traffic")
	}
	if s.ObjectCluster.Protocol != cluster.Tiering {
		out = append(out, "object_cluster.tier")
	}
	return out
}

// checkClusterSections refuses sections that the protocol has no use for.
func (s *Scenario) checkClusterSections(d *shape.Decoder) {
	use := map[string]string{"object_cluster.traffic": "exchange events; leave it out, or use a protocol such as storm", "object_cluster.tier": "fill tiers; leave it out, or use protocol: tiering"}
	for _, section := range s.absentOfCluster() {
		if _, said := d.Set[section]; said {
			d.Fail(s.where(section), "%s: gateways with %v do not %s", section, s.ObjectCluster.Protocol, use[section])
		}
	}
	if len(s.absentOfCluster()) < 2 && len(s.Workload) > 0 {
		d.Fail(s.where("workload"), "workload: %v has a load of its own and replays no trace; leave it out, or use a protocol such as replicast-m", s.ObjectCluster.Protocol)
	}
}

// tierDefaults are SURGE's constants for its tiers, where nothing is said: one initiator, an SSD and nine HDDs.
func (s *Scenario) tierDefaults(unsaid func(string) bool) {
	c, d := s.ObjectCluster, tier.DefaultConfig()
	for _, x := range []struct {
		key string
		set func()
	}{
		{"gateways", func() { c.Gateways = 1 }}, {"targets", func() { c.Targets = 1 + d.HDDs }}, {"replicas", func() { c.Replicas = 1 }}, {"chunk", func() { c.Chunk = d.Chunk }},
		{"link.rate", func() { c.Link.Rate = d.Link }}, {"link.overhead", func() { c.Link.Overhead = 0 }}, {"link.trip", func() { c.Link.Trip = d.Trip }},
	} {
		if unsaid(x.key) {
			x.set()
		}
	}
}

// slicedRun runs an engine slice by slice, tells take of the end of each, and reports whether it was interrupted.
func (s *Scenario) slicedRun(ctx context.Context, o *Options, eng *sim.Engine, done func() uint64, take func(end sim.Time)) bool {
	until := s.Measure.Until.Time
	for k := range clusterSlices {
		end := until / clusterSlices * sim.Time(k+1)
		if k == clusterSlices-1 {
			end = until
		}
		eng.Run(end)
		take(end)
		if o.Progress != nil {
			o.Progress(Progress{Requests: done(), Simulated: end, Until: until})
		}
		if ctx.Err() != nil {
			return true
		}
	}
	return false
}

// trafficSlice is what was done up to the end of a slice, beside what a clusterSlice has.
type trafficSlice struct {
	counters traffic.Counters
	pending  float64 // events times seconds
	crowded  float64 // seconds
}

// runTraffic simulates nodes that exchange events.
func (s *Scenario) runTraffic(ctx context.Context, o Options, digest string) (*Outcome, error) {
	eng, cfg := sim.New(), s.ObjectCluster.TrafficConfig()
	m, err := traffic.New(cfg, eng, o.Seed)
	if err != nil {
		return nil, fmt.Errorf("object_cluster: %w", err)
	}
	rows := chunkRows{tell: o.Chunk}
	until := s.Measure.Until.Time
	now := &clusterSlice{}
	var slices []*clusterSlice
	var sums []trafficSlice
	means := stats.NewSeries(stats.SeriesConfig{Width: max(until/256, 1), Bins: 256})
	m.OnDone = func(d *traffic.Done) {
		now.latency[0].Record(d.Done - d.Begun)
		means.Add(d.Done, int64(d.Done-d.Begun))
		rows.add(Chunk{Op: "exchange", Gateway: d.From, Target: d.To, Size: cfg.Size, Begun: d.Begun, Done: d.Done})
	}
	m.Start()
	interrupted := s.slicedRun(ctx, &o, eng, func() uint64 { return m.Counters.Done }, func(end sim.Time) {
		now.at = end
		slices, now = append(slices, now), &clusterSlice{}
		sums = append(sums, trafficSlice{m.Counters, m.Pending(end), m.Crowded(end)})
	})
	if rows.err != nil {
		return nil, rows.err
	}
	r := result.New(digest, o.Seed, o.Version)
	r.Name = s.Name
	r.Summary = fmt.Sprintf("%s, %s, %v; events of %v take %v to %v", plural(cfg.Gateways, "gateway"), plural(cfg.Targets, "target"), s.ObjectCluster.Protocol, cfg.Size, cfg.Trip, cfg.Trip+cfg.Jitter)
	r.Limits = []string{"Events take no link's time; nothing is lost, and nothing is put."}
	skip, at := s.cutWarmUp(r, slices, means)
	var from trafficSlice
	if skip > 0 {
		from = sums[skip-1]
	}
	last := sums[len(sums)-1]
	var h stats.Histogram
	for _, x := range slices[skip:] {
		h.Merge(&x.latency[0])
	}
	end := slices[len(slices)-1].at
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
		r.Set("cluster.event.pending.mean", (last.pending-from.pending)/span/float64(m.Receivers()))
		r.Set("cluster.event.crowded", (last.crowded-from.crowded)/span/float64(m.Receivers()))
		r.Set("cluster.bound.reached", rate/m.Bound())
	}
	s.closeCluster(r, m.Check(), fmt.Sprintf("%d exchanges begun, %d done, the rest under way", m.Counters.Begun, m.Counters.Done), eng, interrupted)
	return &Outcome{Result: r, Events: eng.Events(), Interrupted: interrupted}, nil
}

// cutWarmUp leaves the warm-up out: it returns how many slices that is, and until when.
func (s *Scenario) cutWarmUp(r *result.Result, slices []*clusterSlice, means *stats.Series) (skip int, at sim.Time) {
	skip, explain := s.Measure.WarmUp.slices(slices, means, r)
	if skip > 0 {
		at = slices[skip-1].at
		r.WarmUp = result.WarmUp{UntilS: at.Seconds(), Explain: explain}
	}
	return skip, at
}

// closeCluster ends a result: the laws of conservation, and whether the run came to its end.
func (s *Scenario) closeCluster(r *result.Result, err error, detail string, eng *sim.Engine, interrupted bool) {
	if err != nil {
		detail = err.Error()
	}
	r.Check("conserved", err == nil, detail)
	r.Set("sim.events", float64(eng.Events()))
	if interrupted {
		r.Warn("incomplete: the run was interrupted at %v of simulated time", units.Duration(r.SimulatedS*1e12))
	}
}

// Chunk is a chunk that was put, a write or an exchange of events, for chunks.parquet.
type Chunk struct {
	ID          uint64 // counted from 1 in the order in which they are done
	Op          string // put, get, write or exchange
	Gateway     int32
	Target      int32 // -1: several
	Size        units.Bytes
	Begun, Done sim.Time
}

// chunkRows tells of chunks until there is an error.
type chunkRows struct {
	tell func(Chunk) error
	n    uint64
	err  error
}

func (c *chunkRows) add(x Chunk) {
	c.n++
	if c.tell != nil && c.err == nil {
		x.ID = c.n
		c.err = c.tell(x)
	}
}

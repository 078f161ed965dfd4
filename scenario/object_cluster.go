package scenario

import (
	"context"
	"fmt"
	"math"
	"strings"

	"farflash/cluster"
	"farflash/result"
	"farflash/shape"
	"farflash/sim"
	"farflash/ssd"
	"farflash/stats"
	"farflash/units"
)

// clusterSlices is how many slices of equal length a cluster's run has.
const clusterSlices = 200

// ForCluster is the scenario of an object cluster whose parameters are known: as if they had been written to a file, with the part
// of the time that is not measured.
func ForCluster(name string, cfg cluster.Config, until units.Duration, warmUp units.Fraction) (*Scenario, error) {
	s := &Scenario{}
	setDefault(s)
	s.Name, s.ObjectCluster = name, &cfg
	d := language.Decoder()
	s.clusterDefaults(d) // nothing has been said that a protocol has rules of its own for
	s.given = true
	s.Measure.Until.Time, s.Measure.WarmUp.Share = until, warmUp
	if s.check(d); len(d.Errs) > 0 {
		return nil, d.Errs
	}
	return s, nil
}

// checkCluster checks an object cluster, which has a scenario to itself.
func (s *Scenario) checkCluster(d *shape.Decoder) {
	s.checkChunks(d)
	s.checkClusterNetwork(d)
	for _, x := range []struct {
		key   string
		there bool
	}{{"targets", len(s.Targets) > 0}, {"flows", len(s.Flows) > 0}} {
		if x.there {
			d.Fail(s.where(x.key), "%s: an object cluster has none; leave it out, or leave out object_cluster", x.key)
		}
	}
	s.clusterDefaults(d)
	s.checkClusterSections(d)
	for _, e := range split(s.ObjectCluster.Validate()) {
		if e != nil {
			key, rest, _ := strings.Cut(e.Error(), ": ")
			d.Fail(s.where("object_cluster."+key), "object_cluster.%s: %s", key, rest)
		}
	}
	if s.Measure.Until.Time == 0 {
		d.Fail(s.where("measure.until"), "measure.until: gateways put chunks for ever; give a time such as 10ms")
	}
	s.Measure.check(d, s.where("measure"))
	for _, x := range []struct {
		key string
		set bool
	}{{"flows", s.Measure.Flows}, {"pauses", s.Measure.Pauses}} {
		if x.set {
			d.Fail(s.where("measure."+x.key), "measure.%s: an object cluster has none", x.key)
		}
	}
}

// clusterDefaults are what follows from other keys where nothing is said.
func (s *Scenario) clusterDefaults(d *shape.Decoder) {
	c := s.ObjectCluster
	unsaid := func(key string) bool {
		_, said := d.Set["object_cluster."+key]
		return !said && !s.given
	}
	if k, ok := c.Protocol.Traffic(); ok {
		s.trafficDefaults(k, unsaid)
	}
	if c.Protocol == cluster.Tiering {
		s.tierDefaults(unsaid)
	}
	head := c.Compat == cluster.CompatSURGEHead
	if unsaid("control.queued") && c.Compat != cluster.CompatNone {
		c.Control.Queued = false
	}
	if c.Protocol == cluster.CommandWindow {
		if unsaid("replicas") {
			c.Replicas = 1
		}
		if unsaid("outstanding") {
			c.Outstanding = 2
		}
		if unsaid("disk.latency") {
			c.Disk.Latency = cluster.LatencyGrows
		}
		head = false // its acknowledgements always wait for the disk
	}
	if unsaid("acknowledge") && head {
		c.Acknowledge = cluster.WriteBack
	}
	if unsaid("choosy") && (c.Protocol == cluster.ReplicastHDouble || c.Protocol == cluster.ReplicastH && head) {
		c.Choosy = true
	}
}

// clusterSlice is what was done up to the end of a slice, and the latencies of the chunks that were done in it.
type clusterSlice struct {
	at       sim.Time
	counters cluster.Counters
	disks    []sim.Time         // how long each was busy
	sent     []sim.Time         // how long each gateway's link was
	got      []sim.Time         // and each target's
	spent    []cluster.Spent    // what each disk's time went to
	links    []cluster.Spent    // and each link's, if links are what bounds the cluster
	latency  [2]stats.Histogram // of chunks that were put, and of those that were got
	nodeSums
	drives ssd.Stats // sums
}

// runCluster simulates an object cluster.
func (s *Scenario) runCluster(ctx context.Context, o Options, digest string) (*Outcome, error) {
	if _, ok := s.ObjectCluster.Protocol.Traffic(); ok {
		return s.runTraffic(ctx, o, digest)
	}
	if s.ObjectCluster.Protocol == cluster.Tiering {
		return s.runTier(ctx, o, digest)
	}
	eng := sim.New()
	cfg := *s.ObjectCluster
	if len(s.Workload) > 0 {
		share, err := s.readShare(o.Seed)
		if err != nil {
			return nil, err
		}
		cfg.Reads = share
	}
	c, err := cluster.New(cfg, eng, o.Seed)
	if err != nil {
		return nil, fmt.Errorf("object_cluster: %w", err)
	}
	until := s.Measure.Until.Time
	var slices []*clusterSlice
	now := &clusterSlice{}
	means := stats.NewSeries(stats.SeriesConfig{Width: max(until/256, 1), Bins: 256})
	seen := &clusterWatch{c: c, gateways: s.ObjectCluster.Gateways}
	timeline := newTimeline(o, eng)
	timeline.showCluster(s.ObjectCluster, seen)
	rows := chunkRows{tell: o.Chunk}
	c.OnDone = func(d *cluster.Done) {
		seen.done(d)
		op, name := 0, "put"
		if d.Read {
			op, name = 1, "get"
		}
		now.latency[op].Record(d.Done - d.Begun)
		means.Add(d.Done, int64(d.Done-d.Begun))
		rows.add(Chunk{Op: name, Gateway: d.Gateway, Target: -1, Size: d.Size, Begun: d.Begun, Done: d.Done})
	}
	drives, err := s.clusterDrives(c, eng, o.Seed)
	if err != nil {
		return nil, err
	}
	net, err := s.clusterNetwork(c, eng, o.Seed)
	if err != nil {
		return nil, err
	}
	links := s.measureNetwork(net)
	var trace *chunked
	if len(s.Workload) > 0 {
		p, t, err := s.chunks(o.Seed)
		if err != nil {
			return nil, err
		}
		defer func() { _ = p.Close() }() // it was only read
		trace = t
		c.Replay(trace)
	}
	c.Start()
	interrupted := false
	for k := range clusterSlices {
		end := until / clusterSlices * sim.Time(k+1)
		if k == clusterSlices-1 {
			end = until
		}
		seen.slice(k, eng.Now())
		links.run(eng, end)
		now.at, now.counters = end, c.Counters
		now.disks, now.sent, now.got = c.Busy(end)
		now.spent, now.links = c.Spent(end)
		now.look(c)
		now.drives = driveStats(drives)
		if err := c.Err(); err != nil {
			return nil, fmt.Errorf("object_cluster: %w", err)
		}
		slices = append(slices, now)
		now = &clusterSlice{}
		if o.Progress != nil {
			o.Progress(Progress{Requests: c.Counters.Done + c.Counters.Gets.Done, Simulated: end, Until: until})
		}
		if ctx.Err() != nil {
			interrupted = true
			break
		}
	}
	if rows.err != nil {
		return nil, rows.err
	}
	r := result.New(digest, o.Seed, o.Version)
	r.Name = s.Name
	if trace != nil {
		if err := trace.failed(); err != nil {
			return nil, s.at(0, err)
		}
	}
	s.fillCluster(r, c, slices, drives, means, interrupted)
	fillLadder(r, seen.ladders, seen.starts, units.Duration(math.Round(r.WarmUp.UntilS*1e12)))
	links.finish(r, slices[len(slices)-1].at, interrupted)
	r.Set("sim.events", float64(c.Events()))
	remarks, err := timeline.close()
	if err != nil {
		return nil, err
	}
	return &Outcome{Result: r, Events: eng.Events(), Interrupted: interrupted, Remarks: remarks}, nil
}

// fillCluster fills in the result.
func (s *Scenario) fillCluster(r *result.Result, c *cluster.Cluster, slices []*clusterSlice, drives []*ssd.Drive, means *stats.Series, interrupted bool) {
	cfg := c.Config()
	last := slices[len(slices)-1]
	skip, explain := s.Measure.WarmUp.slices(slices, means, r)
	from := &clusterSlice{disks: make([]sim.Time, cfg.Targets), sent: make([]sim.Time, cfg.Gateways), got: make([]sim.Time, cfg.Targets)}
	from.nodes = make([]cluster.NodeBytes, len(last.nodes))
	if skip > 0 {
		from = slices[skip-1]
		r.WarmUp = result.WarmUp{UntilS: from.at.Seconds(), Explain: explain}
	}
	r.SimulatedS = last.at.Seconds()
	r.Summary = clusterSummary(cfg)
	r.Limits = []string{"The network's core never blocks, and processors take no time."}
	if cfg.Core == cluster.CorePacket {
		r.Limits[0] = "Processors take no time. What is multicast is one message for each receiver: transports of the packet network are between two."
	}
	if cfg.Link.Loss == 0 && len(cfg.Failures) == 0 {
		r.Limits = append(r.Limits, "No target fails and no frame is lost.")
	}
	if cfg.Load == (cluster.Load{}) && len(s.Workload) == 0 {
		r.Limits = append(r.Limits, "Gateways work as fast as they can (a closed loop): rate and mean latency are one measurement, not two.")
	}
	if cfg.Compat != cluster.CompatNone {
		r.Limits = append(r.Limits, fmt.Sprintf("compat: %v reproduces deviations of a simulator, which no cluster has.", cfg.Compat))
	}
	var all stats.Histogram
	span := (last.at - from.at).Seconds()
	total := 0.0
	for op, name := range []string{"cluster.put", "cluster.get"} {
		done := float64(last.counters.Done - from.counters.Done)
		if op == 1 {
			done = float64(last.counters.Gets.Done - from.counters.Gets.Done)
		}
		if op == 0 && cfg.Reads == 1 || op == 1 && cfg.Reads == 0 {
			continue
		}
		h := new(stats.Histogram) // the result keeps it
		for _, x := range slices[skip:] {
			h.Merge(&x.latency[op])
		}
		all.Merge(h)
		total += done
		r.Set(name+".count", done)
		r.SetLatencies(name, h)
		if span > 0 {
			r.Set(name+".iops", done/span)
			r.Set(name+".rate", done/span*float64(cfg.Chunk))
		}
	}
	r.Set("cluster.put.aborted", float64(last.counters.Aborted-from.counters.Aborted))
	fillNodes(r, c, slices[skip:], from, last, span)
	if cfg.Read == cluster.ReadHedged && cfg.Reads > 0 {
		r.Set("cluster.get.hedged", float64(last.counters.Hedged-from.counters.Hedged))
	}
	clusterLosses(r, c, &from.counters)
	s.fillDrives(r, drives, last, from)
	fillLasting(r, c)
	fillMulticast(r, cfg)
	bound := c.Bound()
	r.Set("cluster.bound.rate", bound.Chunks*float64(cfg.Chunk))
	if span > 0 {
		r.Set("cluster.bound.reached", total/span/bound.Chunks)
		r.Set("cluster.disk.utilisation", shareOf(last.disks, from.disks, last.at-from.at))
		r.Set("cluster.link.utilisation", shareOf(append(append([]sim.Time(nil), last.sent...), last.got...), append(append([]sim.Time(nil), from.sent...), from.got...), last.at-from.at))
		targets := make([]string, cfg.Targets)
		use := make([][]float64, cfg.Targets)
		for t := range targets {
			targets[t] = fmt.Sprint(t)
			use[t] = []float64{round((last.disks[t] - from.disks[t]).Seconds() / span), round((last.got[t] - from.got[t]).Seconds() / span)}
		}
		fillLoss(r, c, last, from)
		fillBids(r, &last.counters.Bids, &from.counters.Bids, cfg.Targets, last.at-from.at)
		r.SetMatrix("cluster.target.busy", targets, []string{"disk", "link"}, use)
	}
	var names []string
	var bounds [][]float64
	for _, x := range c.Bounds() {
		names = append(names, x.Resource)
		bounds = append(bounds, []float64{x.Chunks * float64(cfg.Chunk)})
	}
	r.SetMatrix("cluster.bounds", names, []string{"rate"}, bounds)
	err := c.Check()
	k := &last.counters
	detail := fmt.Sprintf("%d chunks begun, %d done, %d given up, the rest under way", k.Begun+k.Gets.Begun, k.Done+k.Gets.Done, k.Aborted)
	if err != nil {
		detail = err.Error()
	}
	r.Check("chunks conserved", err == nil, detail)
	if interrupted {
		r.Warn("incomplete: the run was interrupted at %v of simulated time, after %d chunks", last.at, k.Done+k.Gets.Done)
	}
	if c.Offered() > 0 {
		clusterTrend(r, slices[skip:], from)
	}
	if rate := c.Offered(); rate > 0 && span > 0 && total/span < 0.95*rate {
		r.Warn("chunks come at %.4g a second and %.4g a second are done: the cluster does not keep up, and latencies grow with the length of the run", rate, total/span)
	}
	if limit := 20 * all.Mean() / 1e12; skip == 0 && s.Measure.WarmUp.none() && all.Count() > 0 && last.at.Seconds() < limit {
		r.Warn("the run is %.3g mean latencies long and includes its beginning, when no chunk was done yet; figures are lower than in steady state (measure.warm_up: auto leaves it out)", last.at.Seconds()/(all.Mean()/1e12))
	}
}

// clusterLosses fills in what was lost and made good again, where anything could be.
func clusterLosses(r *result.Result, c *cluster.Cluster, from *cluster.Counters) {
	cfg, k := c.Config(), &c.Counters
	if cfg.Link.Loss == 0 && len(cfg.Failures) == 0 {
		return
	}
	r.Set("cluster.lost", float64(k.Lost-from.Lost))
	r.Set("cluster.retried", float64(k.Retried-from.Retried))
	r.Set("cluster.failed", float64(k.Failed-from.Failed))
	if cfg.Reads > 0 {
		r.Set("cluster.get.degraded", float64(k.Degraded-from.Degraded))
		r.Set("cluster.get.unavailable", float64(k.Unavailable-from.Unavailable))
	}
	if len(cfg.Failures) == 0 || cfg.Reads == 0 {
		return
	}
	r.Set("cluster.repair.lost", float64(k.PiecesLost))
	r.Set("cluster.repair.done", float64(k.Repaired))
	if c.RepairedAt > 0 {
		r.Set("cluster.repair.until", c.RepairedAt.Seconds())
	}
	if n := c.Missing(); n > 0 {
		r.Warn("%s of chunks: not made again when the run ends", plural(n, "piece"))
	}
}

// clusterTrend says of an open loop whether it keeps up: what of the chunks that came was not done, and how much later they were done in the
// second half of the measured time than in the first.
func clusterTrend(r *result.Result, slices []*clusterSlice, from *clusterSlice) {
	last := slices[len(slices)-1]
	done := func(x *clusterSlice) uint64 { return x.counters.Done + x.counters.Gets.Done }
	if came := last.counters.Arrived - from.counters.Arrived; came > 0 {
		// Chunks may have come before the measured time that are done in it.
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

// clusterSummary says what was simulated.
func clusterSummary(cfg *cluster.Config) string {
	kept := fmt.Sprintf("x %d", cfg.Replicas)
	if cfg.Code.Data > 0 {
		kept = fmt.Sprintf("as %d+%d pieces", cfg.Code.Data, cfg.Code.Parity)
	}
	text := fmt.Sprintf("%s, %s, %v chunks %s, %v", plural(cfg.Gateways, "gateway"), plural(cfg.Targets, "target"), cfg.Chunk, kept, cfg.Protocol)
	if cfg.Reads > 0 {
		read, _ := cfg.Read.MarshalText()
		text += fmt.Sprintf(", %v of them read (%s)", cfg.Reads, read)
	}
	disks := fmt.Sprintf("disks of %v", cfg.Disk.Rate)
	if cfg.Disk.Model == cluster.ModelSSD {
		disks = "drives"
	}
	return text + fmt.Sprintf("; %s, links of %v", disks, cfg.Link.Rate)
}

// shareOf is the mean share of a time that each was busy.
func shareOf(last, from []sim.Time, span sim.Time) float64 {
	sum := 0.0
	for i := range last {
		sum += float64(last[i] - from[i])
	}
	return sum / float64(len(last)) / float64(span)
}

// slices is how many slices of a cluster's run the warm-up is, and why.
func (w WarmUp) slices(list []*clusterSlice, means *stats.Series, r *result.Result) (skip int, explain string) {
	var at units.Duration
	end := list[len(list)-1].at
	switch {
	case w.none():
		return 0, ""
	case w.Auto:
		x := stats.WarmUp(means.Means())
		if !x.Found {
			r.Warn("no warm-up was cut: %s", x.Explain)
			return 0, ""
		}
		at, explain = units.Duration(x.Index)*means.Width(), x.Explain
	case w.Time > 0:
		at, explain = w.Time, "as the scenario says"
	default:
		at, explain = units.Duration(float64(end)*float64(w.Share)), "the share of the run that the scenario says"
	}
	for skip < len(list)-1 && list[skip].at <= at && at > 0 {
		skip++
	}
	return skip, explain
}

package study

import (
	"slices"
	"strings"

	"farflash/numeric/stats"
	"farflash/result"
)

// Curves is the response of metrics to the axes of a sweep.
type Curves struct {
	Name   string
	Axes   []Axis
	Level  float64 // of the intervals
	Seed   uint64
	Reps   int
	Shard  Shard
	Points []PointSummary // in grid order
}

// PointSummary is a point of the grid with the results of its replicates.
type PointSummary struct {
	Label   string
	Values  []string // one for each axis
	Digest  string
	Done    int // replicates behind the metrics
	Pending int
	Failed  []Failure
	Metrics []Estimate // those present in all replicates
	// Transient describes the first transient among the replicates; "" if there is none.
	Transient string
}

// Estimate is a metric over replicates. A single replicate has no interval: Half is 0 and N is 1.
type Estimate struct {
	Name, Unit, Help string
	stats.Interval
}

// Metric returns the estimate with the given name.
func (p *PointSummary) Metric(name string) (Estimate, bool) {
	for _, e := range p.Metrics {
		if e.Name == name {
			return e, true
		}
	}
	return Estimate{}, false
}

// Respond summarises the outcomes of a sweep.
func Respond(p *Plan, outcomes []Outcome, level float64) (*Curves, error) {
	c := &Curves{Name: p.Name, Axes: p.Axes, Level: level, Seed: p.Seed, Reps: p.Reps, Shard: p.Shard}
	of := make([][]*result.Result, len(p.Points))
	for _, x := range p.Points {
		c.Points = append(c.Points, PointSummary{Label: x.Label, Values: x.Values, Digest: x.Digest})
	}
	for k, s := range p.slots() {
		x := &c.Points[s.point]
		switch o := &outcomes[k]; o.State {
		case Done:
			x.Done++
			of[s.point] = append(of[s.point], o.Result)
			if x.Transient == "" {
				x.Transient = o.Result.Transient
			}
		case Failed:
			x.Failed = append(x.Failed, Failure{o.Seed, o.Err.Error()})
		default:
			x.Pending++
		}
	}
	for i := range c.Points {
		var err error
		if c.Points[i].Metrics, err = estimates(of[i], level); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// estimates summarises the metrics that all results have.
func estimates(results []*result.Result, level float64) ([]Estimate, error) {
	if len(results) == 0 {
		return nil, nil
	}
	var out []Estimate
	for _, m := range results[0].Metrics {
		v, ok := values(results, m.Name)
		if !ok {
			continue
		}
		e := Estimate{Name: m.Name, Unit: m.Unit, Help: m.Help,
			Interval: stats.Interval{Mean: v[0], Level: level, N: 1, Batch: 1}}
		if len(v) > 1 {
			var err error
			if e.Interval, err = stats.Replicates(v, level); err != nil {
				return nil, err
			}
		}
		out = append(out, e)
	}
	return out, nil
}

// first lists the metrics of the most general interest, in descending order.
var first = []string{"read.latency.mean", "read.latency.p99", "write.latency.p99", "aggregate.bandwidth",
	"read.bandwidth", "write.latency.mean", "write.bandwidth", "ssd.waf",
	"flow.fct.p99", "flow.fct.mean", "flow.slowdown.p99", "fabric.goodput", "fabric.pause.time", "fabric.queue.max",
	"cluster.put.iops", "cluster.put.latency.mean", "cluster.put.latency.p99", "cluster.get.iops",
	"cluster.get.latency.mean", "cluster.get.latency.p99", "cluster.bound.reached",
	"cluster.event.iops"}

// Main selects the metrics to show where space is limited: those that match the patterns, or else the usual ones, if
// some point has them and they are not 0 everywhere.
func (c *Curves) Main(patterns []string) []string {
	var names []string
	seen := map[string]bool{}
	for i := range c.Points {
		for _, e := range c.Points[i].Metrics {
			if !seen[e.Name] && (e.Mean != 0 || len(patterns) > 0) {
				seen[e.Name] = true
				names = append(names, e.Name)
			}
		}
	}
	if len(patterns) == 0 {
		var out []string
		for _, n := range first {
			if seen[n] {
				out = append(out, n)
			}
		}
		return out
	}
	var out []string
	for _, p := range patterns {
		for _, n := range names {
			if Matches([]string{p}, n) && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// Describe describes the sweep in words: "ssd.over_provisioning over 7%, 14%, 28%".
func (c *Curves) Describe() string {
	var out []string
	for _, a := range c.Axes {
		out = append(out, a.Path+" over "+few(a.Values))
	}
	return strings.Join(out, "; ")
}

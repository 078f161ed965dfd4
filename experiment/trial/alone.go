package trial

import (
	"context"
	"fmt"

	"farflash/experiment"
	"farflash/experiment/accounts"
	"farflash/result"
	"farflash/scenario"
)

// alone runs each tenant of a scenario alone, with the same seed, and fills the cost of sharing for each into the
// result.
func alone(ctx context.Context, k experiment.Kind, s *scenario.Scenario, o experiment.Options,
	out *experiment.Outcome) error {
	names, _, named := s.Tenants()
	scope := "workload"
	if named {
		scope = "tenant"
	}
	r := out.Result
	progress := o.Progress
	o.Sample, o.Flow, o.Pause, o.Timeline = nil, nil, nil, nil
	var rates, slow []float64
	for i := range names {
		if progress != nil {
			o.Progress = func(p experiment.Progress) {
				p.Pass, p.Passes = i+1, len(names)+1
				progress(p)
			}
		}
		by, err := experiment.Run(ctx, k, Vocabulary(), s.Lone(i), o)
		if err != nil && !ended(ctx, err) {
			return err
		}
		if by != nil {
			out.Events += by.Events
		}
		if out.Interrupted = by == nil || by.Interrupted; out.Interrupted {
			r.Interrupted = true
			r.Warn("incomplete: the run of %s alone was interrupted, so it and later tenants have no slowdown",
				names[i])
			return nil
		}
		for _, c := range by.Result.Checks {
			if !c.OK {
				r.Check(names[i]+" alone: "+c.Name, false, c.Detail)
			}
		}
		part := fmt.Sprintf("%s[%d].", scope, i)
		compare := func(metric, to, ratio string) (float64, bool) {
			a, ok := by.Result.Metric("all." + metric)
			if !ok {
				return 0, false
			}
			r.Set(part+to, a.Value)
			b, ok := r.Metric(part + "all." + metric)
			if !ok || a.Value == 0 {
				return 0, false
			}
			r.Set(part+ratio, b.Value/a.Value)
			return b.Value / a.Value, true
		}
		if v, ok := compare("latency.mean", "alone.latency.mean", "slowdown.mean"); ok {
			slow = append(slow, v)
		}
		compare("latency.p99", "alone.latency.p99", "slowdown.p99")
		if a, ok := by.Result.Metric("all.iops"); ok {
			r.Set(part+"alone.iops", a.Value)
		}
		if v, ok := progressOf(i, part, out, by); ok {
			r.Set(part+"progress", v)
			rates = append(rates, v)
		}
	}
	fairness(r, len(names), rates, slow)
	return nil
}

// progressOf is the rate of a tenant among others over that alone, each over the tenant's own active time, because it
// may start late, and end before others do.
func progressOf(i int, part string, among, by *experiment.Outcome) (float64, bool) {
	a, ok := by.Result.Metric("all.count")
	b, there := among.Result.Metric(part + "all.count")
	if !ok || !there || a.Value == 0 || i >= len(among.Own) || i >= len(by.Own) || among.Own[i] == 0 || by.Own[i] == 0 {
		return 0, false
	}
	return b.Value / among.Own[i] / (a.Value / by.Own[i]), true
}

// fairness fills in the fairness of the cost of sharing, if it is known for all.
func fairness(r *result.Result, n int, rates, slow []float64) {
	if len(rates) == n {
		if v, ok := accounts.Jain(rates); ok {
			r.Set("fairness.progress", v)
		}
	}
	if len(slow) != n || n == 0 { // a cluster without workloads has none
		return
	}
	least, most := slow[0], slow[0]
	for _, v := range slow {
		least, most = min(least, v), max(most, v)
	}
	r.Set("fairness.slowdown", least/most)
}

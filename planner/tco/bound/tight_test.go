package bound

import (
	"fmt"
	"math"
	"testing"

	"farflash/planner/tco"
	"farflash/planner/tco/certify"
)

// alike is a problem of n workloads that are all the same and come on day 0, of which four fill a drive, by its space
// or by its I/O. Nothing is left to chance in its best plan: as few drives as hold them.
func alike(n int, byIO bool, horizon float64) (p *tco.Problem, host []int, best float64) {
	const buy, run, budget, factor, rate = 900.0, 0.5, 30000.0, 3.0, 5.0
	d := tco.Drive{Name: "d", Buy: buy, Run: run, Budget: budget, Capacity: 400, IOPS: 4000, WAF: tco.Constant(factor)}
	w := tco.Workload{WriteRate: rate, Sequential: 0.5, PeakIOPS: 10, WriteShare: 0.5, WorkingSet: 100}
	if byIO {
		w.PeakIOPS, w.WorkingSet = 1000, 1
	}
	p = &tco.Problem{Config: tco.Config{FillSpace: 1, FillIOPS: 1, Horizon: horizon},
		Classes: []tco.Class{{Drive: d, Count: n, Optional: true}}}
	for j := range n {
		w.Name = fmt.Sprint("w", j)
		p.Jobs = append(p.Jobs, w)
		host = append(host, j/4)
	}
	// A full drive takes 4 * rate * factor of its budget a day.
	life := budget / (4 * rate * factor)
	if horizon > 0 {
		life = math.Min(life, horizon)
	}
	return p, host, (buy + run*life) / (4 * rate * life)
}

// TestTight: where workloads fill drives without a rest the relaxation has no gap. Its bound is never above the best
// plan's cost, worked out by hand, and short of it by no more than the days of death and the steps that are looked at
// leave open: by little for few workloads, by more for so many that a coarser proof is made.
func TestTight(t *testing.T) {
	for _, c := range []struct {
		n             int
		byIO          bool
		horizon, most float64 // how much of the best is not proven at most
	}{
		{8, false, 0, 3e-5}, {8, true, 0, 3e-5}, {8, false, 200, 1e-5}, {8, true, 200, 1e-5}, {8, false, 3000, 0.012},
		{8, true, 3000, 0.012},
		{72, false, 0, 0.0025}, {72, true, 0, 0.0025}, {72, false, 200, 0.065}, {72, false, 3000, 0.03},
		{72, true, 3000, 0.0025},
		{504, false, 0, 0.047}, {504, true, 200, 0.063},
	} {
		p, host, best := alike(c.n, c.byIO, c.horizon)
		cost, data, err := p.Value(host)
		if err != nil || math.Abs(cost/data-best) > 1e-9*best {
			t.Fatalf("%+v: %v: the plan costs %v, by hand %v", c, err, cost/data, best)
		}
		proof := Priced(tco.OptimiseConfig{Climb: 60, Days: 20, Spans: 4}, p, host)
		if err := certify.Check(p, proof); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if proof.Rate > best*(1+1e-9) || proof.Rate < best*(1-c.most) {
			t.Errorf("%+v: %v of the best is proven", c, proof.Rate/best)
		}
	}
}

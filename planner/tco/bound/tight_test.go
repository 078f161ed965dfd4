package bound

import (
	"fmt"
	"math"
	"testing"

	"farflash/planner/tco"
	"farflash/planner/tco/certify"
)

// alike returns a problem of n identical workloads that arrive on day 0, four of which fill a drive by its space or by
// its I/O. Its best plan is known: the minimum number of drives.
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
	// A full drive uses 4 * rate * factor of its budget per day.
	life := budget / (4 * rate * factor)
	if horizon > 0 {
		life = math.Min(life, horizon)
	}
	return p, host, (buy + run*life) / (4 * rate * life)
}

// TestTight verifies that there is no gap where workloads fill drives completely. The bound never exceeds the best
// plan's cost, computed by hand, and falls short of it only by the resolution of days of death and by the number of
// steps: by little for few workloads, by more for many, which get a coarser proof.
func TestTight(t *testing.T) {
	for _, c := range []struct {
		n             int
		byIO          bool
		horizon, most float64 // largest share of the best cost left unproven
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

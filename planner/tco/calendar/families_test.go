package calendar_test

import (
	"fmt"
	"testing"

	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/planner/tco/calendar"
	"farflash/policy/ftl/waf"
)

// TestFleets draws fleets whose rents depend on every feature, and verifies that by seed the plans found cost at most 3
// % more than the best and 1 % on average, and that no bound exceeds the best.
func TestFleets(t *testing.T) {
	const jobs = 13 // that many are searched, unless an exhaustive plan is requested
	sum, solved := 0.0, 0.0
	for seed := range uint64(5) {
		cfg, p := fleet(seed, jobs)
		c, err := calendar.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p.Pricer = c
		how := tco.DefaultOptimiseConfig()
		how.Steps /= 8
		found, err := tco.Optimise(how, p, nil)
		how.Exact = jobs
		best, errBest := tco.Optimise(how, p, nil)
		if (err == nil) != (errBest == nil) {
			t.Errorf("seed %d: %v; of every plan: %v", seed, err, errBest)
		}
		if err != nil || errBest != nil {
			continue
		}
		if !best.Exact || found.Exact {
			t.Fatalf("seed %d: every plan was looked at: %v and %v", seed, best.Exact, found.Exact)
		}
		above := found.Cost/best.Cost - 1
		if above < -1e-9 || above > 0.03 {
			t.Errorf("seed %d: a plan costs %v, the best %v", seed, found.Cost, best.Cost)
		}
		if least := c.Floor(p).Least; least > best.Cost*(1+1e-9) {
			t.Errorf("seed %d: a bound of %v, and a plan costs %v", seed, least, best.Cost)
		}
		sum, solved = sum+above, solved+1
	}
	if solved < 3 || sum/solved > 0.01 {
		t.Errorf("%v above the best on average, of %v", sum/solved, solved)
	}
}

// TestScarce verifies that if owned drives are few, their workloads are worth the alternative purchase, although at any
// price close to that either all workloads demand them or none. Workloads wear out forty drives, so the money is for
// endurance.
func TestScarce(t *testing.T) {
	r := rng.NewStream(1, "scarce")
	p := &tco.Problem{Config: tco.Config{Horizon: tco.DefaultHorizon, FillSpace: 1, FillIOPS: 1}}
	for _, there := range []int{2, 1, 0} {
		d := drive()
		d.Name, d.Budget, d.WAF = fmt.Sprint("d", there), 1e6*(1+0.3*r.Float64()), waf.DefaultSequentialMix(3)
		class := tco.Class{Drive: d, Count: 100, Optional: true}
		if there > 0 {
			class.Count, class.Optional, class.Drive.Capacity, class.Drive.Budget = there, false,
				400*(3-float64(there)), d.Budget/2
		}
		p.Classes = append(p.Classes, class)
	}
	for j := range 100 {
		w := job(fmt.Sprint("w", j))
		w.WriteRate, w.WorkingSet, w.Sequential = 600*r.Float64(), 50+50*r.Float64(), 0.4*r.Float64()
		p.Jobs = append(p.Jobs, w)
	}
	c, err := calendar.New(calendar.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	p.Pricer = c
	how := tco.DefaultOptimiseConfig()
	how.Steps /= 10
	o, err := tco.Optimise(how, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := c.Floor(p); f.Least > o.Cost || f.Least < 0.92*o.Cost {
		t.Errorf("a bound of %v, and a plan of %v", f.Least, o.Cost)
	}
}

// TestBelowBest verifies that no bound exceeds the best plan, which is known for few workloads, whichever method gives
// the highest bound.
func TestBelowBest(t *testing.T) {
	sum, solved := 0.0, 0.0
	for seed := range uint64(60) {
		cfg, p := fleet(seed, 6+int(seed%4))
		if seed%3 > 0 { // whole drives are counted if no workload arrives later
			for j := range p.Jobs {
				p.Jobs[j].Arrival = 0
			}
		}
		if seed%2 == 0 {
			for i := range p.Classes {
				p.Classes[i].Drive.Tail = nil
			}
		}
		c, err := calendar.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p.Pricer = c
		best, err := tco.Optimise(tco.DefaultOptimiseConfig(), p, nil)
		if err != nil {
			continue
		}
		least := c.Floor(p).Least
		if least > best.Cost*(1+1e-9) {
			t.Errorf("seed %d: a bound of %v, and a plan costs %v", seed, least, best.Cost)
		}
		sum, solved = sum+least/best.Cost, solved+1
	}
	if sum/solved < 0.8 {
		t.Errorf("bounds are %v of the best on average, of %v", sum/solved, solved)
	}
}

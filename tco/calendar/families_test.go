package calendar_test

import (
	"testing"

	"farflash/tco"
	"farflash/tco/calendar"
)

// TestFleets: of fleets whose rents rest on all that they may, the search finds plans that cost at most 3 % more than the best of all there are and 1 % on
// average, by seed, and no bound is above the best.
func TestFleets(t *testing.T) {
	const jobs = 13 // so many are searched for, unless every plan is asked for
	sum, solved := 0.0, 0.0
	for seed := range uint64(5) {
		cfg, p := fleet(seed, jobs)
		c, err := calendar.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p.Pricer = c
		how := tco.DefaultOptimiseConfig()
		how.Steps /= 4
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

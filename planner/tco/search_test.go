package tco

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// TestFamilies verifies for every family of problems that the plans found cost at most 1 % more than the best on
// average, that none costs 3 % more, and that no problem with a plan is refused. (Optimise would enumerate such small
// problems; the test calls the search directly.)
func TestFamilies(t *testing.T) {
	cases := uint64(4)
	if patience.Long(t) {
		cases = 60
	}
	how := DefaultOptimiseConfig()
	how.Steps /= 4
	for _, name := range familyNames {
		sum, worst, solved := 0.0, 0.0, 0
		for seed := range cases {
			r := rng.NewStream(seed, "family "+name)
			p := family(name, &r, 6+int(seed%7))
			a, err := arrange(p)
			if err != nil {
				t.Fatal(err)
			}
			best, possible := a.exactly()
			host := a.search(how, nil)
			if !possible || host == nil {
				if possible || host != nil {
					t.Errorf("%s %d: a plan is possible: %v; found: %v", name, seed, possible, host != nil)
				}
				continue
			}
			least := valueOf(t, p, a.placement(best))
			above := valueOf(t, p, host)/least - 1
			if above < -1e-9 {
				t.Errorf("%s %d: the search found a plan that costs %v less than the best", name, seed, -above)
			}
			sum, worst, solved = sum+above, max(worst, above), solved+1
		}
		if mean := sum / float64(solved); mean > 0.01 || worst > 0.03 || solved == 0 {
			t.Errorf("%s: %.2f %% above the best on average, %.2f %% at most, of %d", name, 100*mean, 100*worst, solved)
		}
	}
}

func valueOf(t *testing.T, p *Problem, host []int) float64 {
	t.Helper()
	cost, data, err := p.Value(host)
	if err != nil {
		t.Fatal(err)
	}
	return worth(cost, data)
}

// TestExact verifies that the division of sets finds the same plan as enumeration, with scarce kinds, owned drives, and
// racks that keep groups apart.
func TestExact(t *testing.T) {
	for seed := range uint64(60) {
		r := rng.NewStream(seed, "exact")
		p := family(familyNames[seed%uint64(len(familyNames))], &r, 3+int(r.IntN(3)))
		for i := range p.Classes {
			p.Classes[i].Count = 1 + int(r.IntN(2))
			p.Classes[i].Optional = r.IntN(3) > 0
		}
		for j := range p.Jobs {
			if r.IntN(3) == 0 {
				p.Jobs[j].Apart = "g"
			}
		}
		if seed%2 == 0 {
			p.Classes[0].Drive.Domain, p.Classes[1].Drive.Domain = "left", "left"
		}
		drives, _ := p.Drives()
		host, least, found := make([]int, len(p.Jobs)), math.Inf(1), false
		var next func(j int)
		next = func(j int) {
			if j == len(host) {
				if cost, data, err := p.Value(host); err == nil {
					least, found = min(least, worth(cost, data)), true
				}
				return
			}
			for host[j] = range drives {
				next(j + 1)
			}
		}
		next(0)
		a, err := arrange(p)
		if err != nil {
			t.Fatal(err)
		}
		slots, ok := a.exactly()
		if ok != found {
			t.Errorf("seed %d: a plan is found: %v, possible: %v", seed, ok, found)
		} else if ok {
			if got := valueOf(t, p, a.placement(slots)); math.Abs(got/least-1) > 1e-9 {
				t.Errorf("seed %d: %v, the best of all costs %v", seed, got, least)
			}
		}
	}
}

// TestOrder verifies that the cost of a plan does not depend on the order of classes and workloads, on names, or on the
// number of further drives that may be bought. Small cases are enumerated, larger ones searched.
func TestOrder(t *testing.T) {
	how := OptimiseConfig{Steps: 8000, Seed: 1}
	for seed, name := range familyNames {
		for _, n := range []int{7, 22} {
			r := rng.NewStream(uint64(seed), "order")
			p := family(name, &r, n)
			if name == "racks" && n > 12 {
				continue // groups are identified by the names of racks
			}
			for i := range p.Classes {
				if p.Classes[i].Optional {
					p.Classes[i].Count = n
				}
			}
			o, err := Optimise(how, p, nil)
			if err != nil {
				t.Fatal(name, n, err)
			}
			if o.Exact != (n == 7) {
				t.Errorf("%s, %d workloads: exact is %v", name, n, o.Exact)
			}
			q := Problem{Config: p.Config, Classes: slices.Clone(p.Classes), Jobs: slices.Clone(p.Jobs)}
			for i := len(q.Jobs) - 1; i > 0; i-- {
				j := r.IntN(int64(i) + 1)
				q.Jobs[i], q.Jobs[j] = q.Jobs[j], q.Jobs[i]
			}
			for j := range q.Jobs {
				q.Jobs[j].Name = fmt.Sprint("z", j)
				if q.Jobs[j].Apart != "" {
					q.Jobs[j].Apart = "of " + q.Jobs[j].Apart
				}
			}
			slices.Reverse(q.Classes)
			for i := range q.Classes {
				c := &q.Classes[i]
				c.Drive.Name, c.Drive.Model = fmt.Sprint("y", i), fmt.Sprint("x", i)
				if c.Optional {
					c.Count += 50 * i
				}
			}
			// A model in two classes is the same as in one.
			if c := q.Classes[0]; c.Optional {
				c.Count = 3
				q.Classes = append(q.Classes, c)
			}
			other, err := Optimise(how, &q, nil)
			if err != nil {
				t.Fatal(name, n, err)
			}
			if a, b := o.CostPerGB(), other.CostPerGB(); math.Abs(a/b-1) > 1e-9 {
				t.Errorf("%s, %d workloads: a GB costs %v, in another order %v", name, n, a, b)
			}
		}
	}
}

// TestPacked verifies that workloads cut from drives that were 97 % full are packed again.
func TestPacked(t *testing.T) {
	for seed := range uint64(4) {
		r := rng.NewStream(seed, "packed")
		p := &Problem{Config: Config{Horizon: DefaultHorizon, FillSpace: 1, FillIOPS: 1}}
		for b := range 7 {
			d := Drive{Name: fmt.Sprint("b", b), Buy: 100 + 1000*r.Float64(), Run: 0.01, Budget: 1e7,
				Capacity: 1000 * float64(1+r.IntN(3)), IOPS: 1e5, WAF: Constant(2)}
			p.Classes = append(p.Classes, Class{Drive: d, Count: 1, Optional: seed%2 == 0})
			left := 0.97 * d.Capacity
			for i := range 4 {
				size := left
				if i < 3 {
					size = left * (0.2 + 0.6*r.Float64())
				}
				left -= size
				p.Jobs = append(p.Jobs, Workload{Name: fmt.Sprint("w", b, i), WriteRate: 10, WorkingSet: size})
			}
		}
		if _, err := Optimise(OptimiseConfig{Steps: 40_000, Seed: 1}, p, nil); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestOwned verifies that an owned drive is used before another is bought, in either order.
func TestOwned(t *testing.T) {
	drive := Drive{Name: "d", Buy: 1000, Run: 0.1, Budget: 1e7, Capacity: 1000, IOPS: 1e5, WAF: Constant(2)}
	cheap := drive
	cheap.Name, cheap.Buy = "cheap", 900
	p := &Problem{Config: DefaultConfig(),
		Classes: []Class{{Drive: cheap, Count: 40, Optional: true}, {Drive: drive, Count: 2}}}
	for j := range 30 {
		p.Jobs = append(p.Jobs, Workload{Name: fmt.Sprint("w", j), WriteRate: 10, WorkingSet: 60, PeakIOPS: 10})
	}
	o, err := Optimise(OptimiseConfig{Steps: 20_000, Seed: 1}, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for j, k := range o.Host {
		if o.Class[k] != 1 {
			t.Fatalf("workload %d is on a drive that is bought for it", j)
		}
	}
}

// TestSearchSums verifies that the search's cost, data, excess and drives equal those of its plan after any number of
// steps.
func TestSearchSums(t *testing.T) {
	for seed, name := range familyNames {
		r := rng.NewStream(uint64(seed), "sums")
		p := family(name, &r, 18)
		a, err := arrange(p)
		if err != nil {
			t.Fatal(err)
		}
		f := a.filling()
		s := a.begin(f.plan(f.orders()[0], -1))
		s.run(annealing{steps: 3000, hot: 500, penalty: 1000}, &r)
		cost, data, over, clash := s.cost, s.data, s.over, s.clash
		used := slices.Clone(s.used)
		again := a.begin(s.slots)
		if math.Abs(cost-again.cost) > 1e-6*again.cost || math.Abs(data-again.data) > 1e-6*(1+again.data) ||
			math.Abs(over-again.over) > 1e-9 || clash != again.clash || !slices.Equal(used, again.used) {
			t.Errorf("%s: %v, %v, %v, %v of %v; the plan has %v, %v, %v, %v of %v", name, cost, data, over, clash,
				used, again.cost, again.data, again.over, again.clash, again.used)
		}
		for i := range s.slots {
			if !slices.IsSorted(s.slots[i].list) || len(s.slots[i].list) == 0 {
				t.Errorf("%s: drive %d has %v", name, i, s.slots[i].list)
			}
			for _, j := range s.slots[i].list {
				if s.host[j] != int32(i) {
					t.Errorf("%s: workload %d is on %d, not on %d", name, j, s.host[j], i)
				}
			}
		}
		if got := valueOf(t, p, a.placement(s.best)); math.Abs(got/s.least-1) > 1e-9 {
			t.Errorf("%s: the best costs %v, not %v", name, got, s.least)
		}
	}
}

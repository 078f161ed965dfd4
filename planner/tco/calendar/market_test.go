package calendar_test

import (
	"fmt"
	"testing"

	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/planner/tco/calendar"
	"farflash/policy/ftl/waf"
)

// fleet draws a problem whose rents depend on every feature: convex write amplification, a p99, groups kept apart,
// items that fill a third or a half of a drive, worn drives, owned drives.
func fleet(seed uint64, jobs int) (calendar.Config, *tco.Problem) {
	r := rng.NewStream(seed, "fleet")
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }
	cfg := calendar.DefaultConfig()
	cfg.FillSpace, cfg.FillIOPS, cfg.Replacing = 0.9, 0.8, 50*r.Float64()
	if r.IntN(2) == 0 {
		cfg.Discount, cfg.Trend = 0.1*r.Float64(), 0.3*r.Float64()-0.2
	}
	p := &tco.Problem{Config: tco.Config{Horizon: cfg.Horizon, FillSpace: cfg.FillSpace, FillIOPS: cfg.FillIOPS}}
	for i := range 3 {
		d := drive()
		d.Name, d.Buy, d.Capacity = fmt.Sprintf("m%d", i), between(500, 3000), 900+600*float64(i)
		d.Upkeep.Next, d.Upkeep.ByLoad, d.Upkeep.AFR = d.Buy*between(0.6, 1.3), r.IntN(2) == 0, 0.02*r.Float64()
		d.Budget, d.IOPS = between(2e5, 3e6), between(20_000, 60_000)
		table, err := tco.NewTable([]waf.MixPoint{{S: 0, WAF: between(6, 9)}, {S: 0.5, WAF: between(4, 6)},
			{S: 0.7, WAF: 1.6}, {S: 1, WAF: 1}})
		if err != nil {
			panic(err)
		}
		if d.WAF = tco.WAF(table); i == 1 {
			d.WAF = waf.DefaultSequentialMix(between(2, 6))
		}
		if r.IntN(2) == 0 {
			tail, err := tco.NewTailTable([]tco.TailPoint{{Utilisation: 0.1, P99: between(80, 200)},
				{Utilisation: 0.5, P99: between(200, 600)}, {Utilisation: 0.8, P99: between(800, 3000)}})
			if err != nil {
				panic(err)
			}
			d.Tail = tail
		}
		if r.IntN(3) == 0 {
			d.Worn = d.Budget * r.Float64()
		}
		p.Classes = append(p.Classes, tco.Class{Drive: d, Count: jobs, Optional: true})
		if r.IntN(4) == 0 {
			p.Classes[i].Optional, p.Classes[i].Count = false, 2
		}
	}
	for j := range jobs {
		w := job(fmt.Sprint("w", j))
		w.WriteRate, w.Sequential, w.WorkingSet, w.PeakIOPS = 1500*r.Float64()*r.Float64(), r.Float64(),
			[]float64{270, 405, between(50, 700)}[r.IntN(3)], between(100, 9000)
		if r.IntN(2) == 0 {
			w.P99 = between(300, 3000)
		}
		w.Apart = []string{"", "", "a", "b"}[r.IntN(4)]
		if r.IntN(3) == 0 {
			w.Arrival = 300 * r.Float64()
		}
		p.Jobs = append(p.Jobs, w)
	}
	return cfg, p
}

// TestRents verifies for thousands of sets of workloads that no drive costs less than the rents of a set that it can
// take.
func TestRents(t *testing.T) {
	held, tight := 0, 0
	for seed := range uint64(24) {
		cfg, p := fleet(seed, 20)
		c, err := calendar.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p.Pricer = c
		floor := c.Floor(p)
		r := rng.NewStream(seed, "sets")
		for range 400 {
			k := int(r.IntN(3))
			class := &p.Classes[k]
			var list []int32
			rents, over := -floor.Scarce[k], 0.0
			groups := map[string]bool{}
			start := int(r.IntN(20))
			for n := range 20 { // as many as fit
				j := int32((start + 7*n) % 20)
				w := &p.Jobs[j]
				if w.Apart != "" && groups[w.Apart] {
					continue
				}
				var next []int32
				for _, i := range tco.ByArrival(p.Jobs) {
					if int32(i) == j || contains(list, int32(i)) {
						next = append(next, int32(i))
					}
				}
				if _, over = c.Price(&class.Drive, !class.Optional, p.Jobs, next); over > 0 {
					continue
				}
				list, groups[w.Apart] = next, true
				if rents += floor.Value[j]; r.IntN(6) == 0 {
					break
				}
			}
			if len(list) == 0 {
				continue
			}
			cost, _ := c.Price(&class.Drive, !class.Optional, p.Jobs, list)
			if !class.Optional {
				unused, _ := c.Price(&class.Drive, true, nil, nil)
				cost -= unused
			}
			held++
			if rents > cost*(1+1e-9)+1e-9 {
				t.Errorf("seed %d: drive %d with %v costs %v, less than the rents, %v", seed, k, list, cost, rents)
			}
			if rents > 0.8*cost {
				tight++
			}
		}
	}
	if held < 6000 || tight < 100 {
		t.Errorf("%d sets, of which %d pay four fifths of what the drive costs", held, tight)
	}
}

func contains(list []int32, j int32) bool {
	for _, i := range list {
		if i == j {
			return true
		}
	}
	return false
}

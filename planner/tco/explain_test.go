package tco

import (
	"math"
	"testing"

	"farflash/numeric/rng"
)

// TestExplainCosts verifies that the cost of a pool with a workload on a drive depends on the drives and not on the
// policy that chooses among them.
func TestExplainCosts(t *testing.T) {
	r := rng.NewStream(3, "explain")
	drives, jobs := someDrives(&r, 5), someJobs(&r, 12, 100)
	list := func(p Policy, drives []Drive, w *Workload, before []Workload) []Candidate {
		t.Helper()
		cfg := AllocatorConfig{Config: DefaultConfig(), Policy: p, Weights: DefaultWeights()}
		a, err := NewAllocator(cfg, drives)
		if err != nil {
			t.Fatal(err)
		}
		for i := range before {
			if k, _, err := a.Place(&before[i]); err != nil || k != 0 {
				t.Fatalf("%v: on drive %d, %v", p, k, err)
			}
		}
		found, err := a.Explain(w)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	var sorted []Workload
	for _, j := range ByArrival(jobs) {
		sorted = append(sorted, jobs[j])
	}
	for p := range policies {
		for n := range 4 { // with one drive all policies choose alike; an empty pool offers several
			some := drives[:1]
			if n == 0 {
				some = drives
			}
			want := list(MinTCOv3, some, &sorted[n], sorted[:n])
			for k, got := range list(p, some, &sorted[n], sorted[:n]) {
				if got.Cost != want[k].Cost || got.CostPer != want[k].CostPer || got.Obstacle != want[k].Obstacle {
					t.Errorf("%v, workload %d, drive %d: the pool costs %v, %v a GB, and %v, %v", p, n, k, got.Cost,
						got.CostPer, want[k].Cost, want[k].CostPer)
				}
			}
		}
	}
}

// TestExplainAgainstAssess verifies that the pool's cost as explained for each drive equals an assessment from scratch
// of a placement there, for each drive of a pool that already holds some workloads.
func TestExplainAgainstAssess(t *testing.T) {
	compared := 0
	for seed := range uint64(10) {
		r := rng.NewStream(seed, "explain and assess")
		drives, drawn := someDrives(&r, 4), someJobs(&r, 9, 100)
		var jobs []Workload
		for _, j := range ByArrival(drawn) {
			jobs = append(jobs, drawn[j])
		}
		cfg := AllocatorConfig{Config: DefaultConfig(), Policy: RoundRobin}
		a, err := NewAllocator(cfg, drives)
		if err != nil {
			t.Fatal(err)
		}
		var host []int
		for n := range jobs {
			list, err := a.Explain(&jobs[n])
			if err != nil {
				t.Fatal(err)
			}
			for k, c := range list {
				if c.Obstacle != Fits {
					continue
				}
				whole, err := Assess(cfg.Config, drives, jobs[:n+1], append(append([]int(nil), host...), k))
				if err != nil {
					t.Fatalf("seed %d, workload %d on drive %d: %v", seed, n, k, err)
				}
				s := &whole.Drives[k]
				for what, v := range map[string][2]float64{"cost": {c.Cost, whole.Cost},
					"cost a GB": {c.CostPer, whole.CostPerGB()}, "lifetime": {c.Lifetime, s.Lifetime},
					"write amplification": {c.WAF, s.WAF}} {
					if math.Abs(v[0]-v[1]) > 1e-9*math.Abs(v[1]) {
						t.Errorf("seed %d, workload %d on drive %d: a %s of %v, not %v", seed, n, k, what, v[0], v[1])
					}
				}
				compared++
			}
			k, _, err := a.Place(&jobs[n])
			if err != nil {
				t.Fatal(err)
			}
			host = append(host, k)
		}
	}
	if compared < 200 {
		t.Errorf("%d compared: no test", compared)
	}
}

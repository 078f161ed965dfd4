package tco

import (
	"testing"

	"farflash/rng"
)

// TestExplainCosts: what a pool costs with a workload on a drive rests on the drives and not on the policy that chooses among them.
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
		for n := range 4 { // on one drive all policies choose alike; on an empty pool there are several to choose from
			some := drives[:1]
			if n == 0 {
				some = drives
			}
			want := list(MinTCOv3, some, &sorted[n], sorted[:n])
			for k, got := range list(p, some, &sorted[n], sorted[:n]) {
				if got.Cost != want[k].Cost || got.CostPer != want[k].CostPer || got.Obstacle != want[k].Obstacle {
					t.Errorf("%v, workload %d, drive %d: the pool costs %v, %v a GB, and %v, %v", p, n, k, got.Cost, got.CostPer, want[k].Cost, want[k].CostPer)
				}
			}
		}
	}
}

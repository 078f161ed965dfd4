package drives

import (
	"fmt"
	"testing"

	"farflash/planner/tco"
)

// TestEndsBy verifies what ends a drive's service, also where rounding makes its life a little shorter than the
// horizon.
func TestEndsBy(t *testing.T) {
	for want, states := range map[string][]tco.DriveState{
		"unused": {{Lifetime: 1000}, {Limited: true}},
		"endurance": {{Workloads: 1, Limited: true, Lifetime: 1000},
			{Workloads: 2, Limited: true, Lifetime: 10}},
		"horizon":                  {{Workloads: 1, Lifetime: 1000}, {Workloads: 1, Lifetime: 1000 * (1 - 1e-12)}},
		"end of its last workload": {{Workloads: 1, Lifetime: 1000 * (1 - 1e-11)}, {Workloads: 1, Lifetime: 1}},
	} {
		for _, s := range states {
			if got := endsBy(&s, 1000); got != want {
				t.Errorf("%+v: %s, not %s", s, got, want)
			}
		}
	}
	if got := endsBy(&tco.DriveState{Workloads: 1, Lifetime: 1000}, 0); got != "end of its last workload" {
		t.Errorf("without a horizon: %s", got)
	}
}

// TestOnlyWrites verifies that a mix without reads has a latency of writes: that it has none of reads is no error.
func TestOnlyWrites(t *testing.T) {
	p := loaded(t, oneOfTLC)
	f, err := p.fleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := f.drives[0].Tail.(*simulatedTail)
	for _, writes := range []float64{0, 1} {
		v, err := p.simulatedLatency(t.Context(), x.src, mixed{0.3 * x.rate(writes), writes, 8, 0})
		if err != nil || (v.read > 0) != (writes == 0) || (v.write > 0) != (writes == 1) {
			t.Errorf("with a share of %v writes: %+v, %v", writes, v, err)
		}
	}
}

// TestFrontierMore verifies the number of drives that an algorithm needs that takes workloads as they come: two of
// 900 GB share a drive of 2 TB, after which those of 1,100 GB need one each, while the plan pairs them.
func TestFrontierMore(t *testing.T) {
	p := loaded(t, "drives: [{model: Intel DC P3700 2TB, count: 2, price: $1}, {model: Intel DC P3700 2TB, name: new, "+
		"up_to: 3, price: $5000}]\nworkloads: {list: [{name: a, write_gb_per_day: 1, working_set_gb: 900}, {name: b, "+
		"write_gb_per_day: 1, working_set_gb: 900}, {name: c, write_gb_per_day: 1, working_set_gb: 1100}, {name: d, "+
		"write_gb_per_day: 1, working_set_gb: 1100}]}\n")
	o, err := p.Solve(t.Context(), Options{Sensitivity: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Drives) != 2 || o.FrontierMore != 1 {
		t.Errorf("%d drives, and %d more for algorithms that take workloads as they come", len(o.Drives),
			o.FrontierMore)
	}
}

// TestReviewedMix verifies that a plan with reviews, whose drives are simulated with their own workloads, has a drive
// for each workload between two reviews.
func TestReviewedMix(t *testing.T) {
	o, err := loaded(t, "review: 600d\ndrives: [{model: Intel DC P3700 2TB, count: 2, price: $1000, waf: {simulate: "+
		"100}}]"+
		"\nworkloads: {list: [{name: a, working_set_gb: 300, write_gb_per_day: 500}, {name: b, working_set_gb: 100, "+
		"write_gb_per_day: 900, sequential: 0.5}]}\n").Solve(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(o.stays.jobs); n <= len(o.Plan.jobs) || len(o.stays.host) != n || len(o.stays.of) != n {
		t.Errorf("%d workloads have %d stays, on %d drives", len(o.Plan.jobs), n, len(o.stays.host))
	}
}

// TestExplainedDrive verifies that the drive that a workload has is explained with that drive's own figures, also if it
// is never written.
func TestExplainedDrive(t *testing.T) {
	for _, rates := range [][2]int{{5000, 9000}, {0, 0}} {
		explainedDrive(t, rates)
	}
}

func explainedDrive(t *testing.T, rates [2]int) {
	o, err := loaded(t, fmt.Sprintf("horizon: 1000d\ndrives: [{model: Intel DC P3700 2TB, name: x, count: 1, price: "+
		"$1000, "+
		"waf: 1.5}, {model: Intel DC P3700 2TB, name: y, count: 1, price: $1000, waf: 3}]\nworkloads: {list: [{name: a, "+
		"working_set_gb: 1500, write_gb_per_day: %d}, {name: b, working_set_gb: 1400, write_gb_per_day: %d}]}\n",
		rates[0],
		rates[1])).Solve(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range o.Drives {
		d := &o.Drives[i]
		if len(d.Workloads) != 1 {
			t.Fatalf("%s has %v", d.Name, d.Workloads)
		}
		x, err := o.Explain(d.Workloads[0])
		if err != nil {
			t.Fatal(err)
		}
		if c := x.Choices[0]; !x.Whole || c.Drive != d.Name || c.WAF != d.State.WAF || c.Lifetime != d.State.Lifetime {
			t.Errorf("%+v; the drive has %+v", c, d.State)
		}
	}
	if o.Drives[0].State.WAF == o.Drives[1].State.WAF {
		t.Error("the drives cannot be told apart")
	}
}

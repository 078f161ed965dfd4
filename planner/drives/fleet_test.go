package drives_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"farflash/planner/drives"
	"farflash/report"
)

// TestReadOnly plans drives for workloads that do not write: the objective is total money, and there is no cost per
// gigabyte.
func TestReadOnly(t *testing.T) {
	for _, algorithm := range []string{"optimal", "mintco-v3", "mintco-perf", "mintco-offline"} {
		count := "count"
		if algorithm == "optimal" {
			count = "up_to"
		}
		o := solve(t, "objective: paper\nalgorithm: "+algorithm+`
drives: [{model: Intel DC P3700 2TB, `+count+`: 4, price: $3000}]
workloads: {list: [{name: a, peak_iops: 200000, working_set_gb: 900}, {name: b, peak_iops: 100000, working_set_gb: 900}, {name: c, peak_iops: 1000, working_set_gb: 900}]}
`, drives.Options{Bound: true, Sensitivity: true})
		if o.Assessment.Placed != 3 || !(o.Cost > 6000) || !math.IsNaN(o.CostPerGB()) || o.Bound != 0 ||
			algorithm == "optimal" && len(o.Drives) != 2 {
			t.Errorf("%s: %d placed on %d drives for %v, %v a GB", algorithm, o.Assessment.Placed, len(o.Drives),
				o.Cost, o.CostPerGB())
		}
		why, err := o.Explain("a")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(drives.Describe(o, why))
		if err != nil || !strings.Contains(string(text), `"tco_per_gb":null`) {
			t.Errorf("%s: %s, %v", algorithm, text, err)
		}
		var b bytes.Buffer
		if err := report.WritePlan(&b, o, "", ""); err != nil || strings.Contains(b.String(), "NaN") {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
}

// TestOwned verifies that owned drives are not paid for again, but operated and replaced, and that a price of 0 is
// accepted.
func TestOwned(t *testing.T) {
	const jobs = "objective: paper\nworkloads: {list: [{name: w, write_gb_per_day: 100, working_set_gb: 100, " +
		"peak_iops: 1000, write_share: 50%}]}\n"
	money := func(o *drives.Outcome) map[string]float64 {
		m := map[string]float64{}
		for _, s := range o.Slices {
			m[s.Name] = s.Money
		}
		return m
	}
	costs := "costs: {setup: $70}\n"
	paid := solve(t, costs+"drives: [{model: Intel DC P3700 2TB, count: 1, price: $3000}]\n"+jobs, drives.Options{})
	owned := solve(t, costs+"drives: [{model: Intel DC P3700 2TB, count: 1, price: $3000, owned: true}]\n"+jobs,
		drives.Options{Sensitivity: true})
	if math.Abs(paid.Cost-owned.Cost-3070) > 1e-9 {
		t.Errorf("%v when it is bought, %v when it is there", paid.Cost, owned.Cost)
	}
	a, b := money(paid), money(owned)
	if a["Drives"] != 3000 || a["Setup"] != 70 || b["Drives"] != 0 || b["Setup"] != 0 ||
		a["Failures, expected"] != b["Failures, expected"] || !(b["Failures, expected"] > 0) {
		t.Errorf("%v and %v", a, b)
	}
	for _, e := range owned.Effects {
		if e.Name == "Price of drives" && e.Span() != 0 {
			t.Errorf("prices move what is owned: %+v", e)
		}
	}
	// An existing drive is used before one is bought.
	both := solve(t, "drives: [{model: Intel DC P3600 2TB, up_to: 2, price: $100}, {model: Intel DC P3700 2TB, "+
		"count: 1, price: $3000, owned: true}]\n"+jobs, drives.Options{})
	if len(both.Drives) != 1 || both.Drives[0].Model != "Intel DC P3700 2TB" {
		t.Errorf("%+v", both.Drives)
	}
	free := solve(t, "drives: [{model: Intel DC P3700 2TB, count: 1, price: $0}]\n"+jobs, drives.Options{})
	if math.Abs(free.Cost-owned.Cost) > 1e-9 || money(free)["Failures, expected"] != 0 {
		t.Errorf("%v for what is free, %v for what is owned", free.Cost, owned.Cost)
	}
	// Over a calendar, failed and worn-out drives are paid for, owned or not.
	over := strings.ReplaceAll(jobs, "objective: paper\n", "")
	paid = solve(t, costs+"drives: [{model: Intel DC P3700 2TB, count: 1, price: $3000}]\n"+over, drives.Options{})
	owned = solve(t, costs+"drives: [{model: Intel DC P3700 2TB, count: 1, price: $3000, owned: true}]\n"+over,
		drives.Options{})
	if a, b = money(paid), money(owned); math.Abs(paid.Cost-owned.Cost-3070) > 1e-9 ||
		a["Failures, expected"] != b["Failures, expected"] || !(b["Failures, expected"] > 0) {
		t.Errorf("%v and %v", a, b)
	}
}

// TestUnknownLatency verifies that a p99 is not promised without latency data.
func TestUnknownLatency(t *testing.T) {
	const slow = "workloads: {list: [{name: quick, write_gb_per_day: 1, working_set_gb: 1, peak_iops: 1, p99: 1ms}]}\n"
	for text, want := range map[string]string{
		"drives: [{model: Intel DC P3700 2TB, count: 1, price: 1}]\n" +
			slow: "plan.yaml:1:10: drives[0]: workload quick has a p99",
		"drives: [{model: Intel DC P3700 2TB, count: 1, price: 1, latency: {points: [{load: 50%, p99: 90us}]}}]\n" +
			slow: "",
		"drives: [{model: Intel DC P3700 2TB, up_to: 1, price: 1, owned: true}]\n" +
			strings.ReplaceAll(slow, ", p99: 1ms", ""): "owned drives already exist; write count",
		"drives: [{model: Intel DC P3700 2TB, count: 1, price: 1}]\n" +
			strings.ReplaceAll(slow, ", p99: 1ms", ""): "",
	} {
		p, err := drives.Load(source(text), nil)
		if err == nil {
			_, err = p.Solve(context.Background(), drives.Options{})
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; %q is right", text, err, want)
		}
	}
}

package drives_test

import (
	"reflect"
	"strings"
	"testing"

	"farflash/planner/drives"
)

// TestDifferences verifies every list of a comparison: inputs, sums, money by purpose, drives and workloads, of plans
// that have what the other has not.
func TestDifferences(t *testing.T) {
	const text = "objective: paper\nhorizon: 1000d\ncosts: {electricity: 0, labour: $L, setup: $S}\n" +
		"drives: [{model: M, name: N, count: C, price: $P, afr: 0%}]\nworkloads: {list: [W]}\n"
	const a, b, reads = "{name: a, write_gb_per_day: 1, working_set_gb: 900}",
		"{name: b, write_gb_per_day: 3, working_set_gb: 900}", "{name: a, working_set_gb: 900, peak_iops: 1}"
	const small, large = "Intel DC P3600 2TB", "Intel DC P3700 2TB"
	of := func(changes ...string) *drives.Outcome {
		defaults := []string{"$L", "$0", "$S", "$0", "M,", small + ",", "N,", "x,", "C,", "1,", "$P", "$1000", "W", a}
		return solve(t, strings.NewReplacer(append(changes, defaults...)...).Replace(text), drives.Options{})
	}
	type (
		sums   = map[string][2]float64
		places = []drives.PlaceDifference
	)
	for name, c := range map[string]struct {
		before, after []string
		sums, costs   sums
		drives        []drives.CountDifference
		places        places
	}{
		"added": {nil, []string{"W", a + "," + b}, sums{"TCO": {1000, 1000}, "GB written": {1000, 4000},
			"cost per GB written": {1, 0.25}, "drives in use": {1, 1}, "workloads without a drive": {0, 0},
			"worn-out drives replaced": {0, 0}, "expected failures": {0, 0}}, sums{"Drives": {1000, 1000}},
			[]drives.CountDifference{{Model: small, Before: 1, After: 1}}, places{{Workload: "b", After: "x"}}},
		"left out": {[]string{"W", a + "," + b}, nil, sums{"GB written": {4000, 1000}},
			sums{"Drives": {1000, 1000}}, []drives.CountDifference{{Model: small, Before: 1, After: 1}},
			places{{Workload: "b", Before: "x"}}},
		"paid for once": {[]string{"$S", "$20"}, []string{"$L", "$1"}, sums{"TCO": {1020, 2000}},
			sums{"Drives": {1000, 1000}, "Setup": {20, 0}, "Labour": {0, 1000}},
			[]drives.CountDifference{{Model: small, Before: 1, After: 1}}, places{}},
		"free": {[]string{"$P", "$0"}, []string{"$P", "$0"}, sums{"TCO": {0, 0}, "cost per GB written": {0, 0}},
			sums{}, []drives.CountDifference{{Model: small, Before: 1, After: 1}}, places{}},
		"another model of the same name": {nil, []string{"M,", large + ",", "C,", "2,", "N,", "x,"}, nil,
			sums{"Drives": {1000, 2000}}, []drives.CountDifference{{Model: small, Before: 1}, {Model: large, After: 2}},
			places{{Workload: "a", Before: "x", After: "x #1"}}},
		"another model, one drive": {nil, []string{"M,", large + ","}, nil, sums{"Drives": {1000, 1000}},
			[]drives.CountDifference{{Model: small, Before: 1}, {Model: large, After: 1}},
			places{{Workload: "a", Before: "x", After: "x (another)"}}},
		"only reads after":  {nil, []string{"W", reads}, sums{"GB written": {1000, 0}}, nil, nil, places{}},
		"only reads before": {[]string{"W", reads}, nil, sums{"GB written": {0, 1000}}, nil, nil, places{}},
	} {
		d, err := drives.Differ(of(c.before...), of(c.after...))
		if err != nil {
			t.Fatal(err)
		}
		if d.Objective != "paper" {
			t.Errorf("%s: plans judged by %s", name, d.Objective)
		}
		got := sums{}
		for _, s := range d.Sums {
			got[s.Name] = [2]float64{s.Before, s.After}
			if money := s.Name == "TCO" || s.Name == "cost per GB written"; s.Money != money {
				t.Errorf("%s: %s is money: %v", name, s.Name, s.Money)
			}
		}
		for key, want := range c.sums {
			if v, ok := got[key]; !ok || v != want {
				t.Errorf("%s: %s: %v; %v is right", name, key, v, want)
			}
		}
		if _, ok := got["cost per GB written"]; ok == strings.HasPrefix(name, "only reads") {
			t.Errorf("%s: a cost per GB is compared: %v", name, ok)
		}
		costs := sums{}
		for _, s := range d.Costs {
			costs[s.Name] = [2]float64{s.Before, s.After}
			if !s.Money {
				t.Errorf("%s: %s is no money", name, s.Name)
			}
		}
		if c.costs != nil && !reflect.DeepEqual(costs, c.costs) {
			t.Errorf("%s: money goes to %v; %v is right", name, costs, c.costs)
		}
		if c.drives != nil && !reflect.DeepEqual(d.Drives, c.drives) {
			t.Errorf("%s: drives %+v; %+v is right", name, d.Drives, c.drives)
		}
		if !reflect.DeepEqual(d.Workloads, c.places) {
			t.Errorf("%s: workloads %+v; %+v is right", name, d.Workloads, c.places)
		}
	}
	// An assumption of one plan only has nothing on the other side.
	d, err := drives.Differ(of("N,", "old,"), of("N,", "new,"))
	if err != nil {
		t.Fatal(err)
	}
	prices := 0
	for _, x := range d.Inputs {
		if x.Name == "price" && (x == drives.InputDifference{Of: "old", Name: "price", Before: "$1,000"} ||
			x == drives.InputDifference{Of: "new", Name: "price", After: "$1,000"}) {
			prices++
		}
	}
	if prices != 2 {
		t.Errorf("%+v", d.Inputs)
	}
}

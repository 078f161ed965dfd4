package drives_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"farflash/internal/term"
	"farflash/planner/drives"
	"farflash/report"
)

// TestRisk compares probabilities and percentiles with closed forms: a workload of 1,000 GB that grows for four years
// fits on 2,000 GB if it grows by at most 2^(1/4) - 1 per year; prices drawn log-uniformly between half and double have
// their 5th percentile at 2^-0.9.
func TestRisk(t *testing.T) {
	const text = `
horizon: 4y
costs: {electricity: 0}
uncertainty: {draws: 4000, growth: [0%, 50%], prices: [50%, 200%]}
drives: [{model: Intel DC P3700 2TB, count: 1, price: $1000, afr: 0%}]
workloads: {list: [{name: a, write_gb_per_day: 1, working_set_gb: 1000, peak_iops: 1}]}
`
	o := solve(t, text, drives.Options{})
	r := o.Risk
	if want := (math.Pow(2, 0.25) - 1) / 0.5; math.Abs(r.Holds-want) > r.Within*1.5 || r.Draws != 4000 {
		t.Errorf("holds in %v of %d draws; %v is right", r.Holds, r.Draws, want)
	}
	for name, x := range map[string][2]float64{"p5": {r.Low, 1000 * math.Pow(2, -0.9)}, "p50": {r.Median, 1000},
		"p95": {r.High, 1000 * math.Pow(2, 0.9)}} {
		if math.Abs(x[0]/x[1]-1) > 0.08 {
			t.Errorf("%s is %v; %v is right", name, x[0], x[1])
		}
	}
	if r.Again == 0 || math.Abs(r.Regret) > 1e-12 {
		t.Errorf("a regret of %v in %d draws where there is no choice", r.Regret, r.Again)
	}
	if again := solve(t, text, drives.Options{}).Risk; !reflect.DeepEqual(again, r) {
		t.Errorf("%+v, and then %+v", r, again)
	}
	if other := solve(t, "search: {seed: 2}\n"+text, drives.Options{}).Risk; reflect.DeepEqual(other, r) {
		t.Error("another seed draws the same")
	}
	// A certain input always holds.
	if r := solve(t, strings.ReplaceAll(text, "[0%, 50%]", "[10%, 10%]"), drives.Options{}).Risk; r.Holds != 1 {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	if err := report.WritePlanText(&b, o, term.Style{}); err != nil ||
		!strings.Contains(strings.Join(strings.Fields(b.String()), " "),
			"share of 4000 draws that this placement serves: prices 50% to 200%, growth per year 0% to 50% more") {
		t.Errorf("%v: %s", err, b.String())
	}
	for bad, want := range map[string]string{
		"{draws: 0, prices: [1, 1]}":    "plan.yaml:1:22: uncertainty.draws: 0 is not possible",
		"{prices: [150%, 70%]}":         "uncertainty.prices: write the minimum and maximum",
		"{waf: [150%]}":                 "uncertainty.waf: write the minimum and maximum",
		"{growth: [20%, 5%]}":           "uncertainty.growth: write the minimum and maximum added to growth",
		"{prices: [0, 1]}":              "uncertainty.prices: write the minimum and maximum factor, both above 0",
		"{price: [50%, 100%]}":          "did you mean \"prices\"",
		"{draws: 9000000, prices: [1]}": "uncertainty.draws: 9000000 is not possible; write 1 to 100000",
	} {
		if _, err := drives.Load(source("uncertainty: "+bad+"\ndrives: [{model: x, count: 1}]\nworkloads: w.csv\n"),
			nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; %q is right", bad, err, want)
		}
	}
}

// TestRegret verifies that a plan made for other prices costs more than one that knew them, never less.
func TestRegret(t *testing.T) {
	o := solve(t, `
uncertainty: {draws: 60, waf: [50%, 800%]}
costs: {replacing: $10}
drives: [{model: Intel DC P3520 2TB, up_to: 3, price: $1000, active_w: 12, idle_w: 4, read_iops: 100000, write_iops: 20000}, {model: Intel DC P3700 2TB, up_to: 3, price: $3000}]
workloads: {list: [{name: a, write_gb_per_day: 1500, working_set_gb: 900, peak_iops: 1}, {name: b, write_gb_per_day: 300, working_set_gb: 900, peak_iops: 1}]}
`, drives.Options{})
	if r := o.Risk; r.Again != 40 || !(r.Regret > 0.005) || r.Holds != 1 {
		t.Errorf("%+v", r)
	}
}

// TestAssumptions verifies that every figure is listed with its source, and that stated figures are marked.
func TestAssumptions(t *testing.T) {
	o := solve(t, `
costs: {pue: 1.2, discount: 8%}
drives: [{model: Intel DC P3700 2TB, name: quick, count: 1, price: $1000, waf: 3, rated_waf: 2, afr: 1%, latency: {points: [{load: 50%, p99: 1ms}]}}, {model: Intel DC P3600 2TB, up_to: 1, price: $900, duty: 40%, spare: 10%}]
workloads: {list: [{name: a, write_gb_per_day: 1, working_set_gb: 1000, peak_iops: 1}]}
`, drives.Options{})
	got := map[string]string{}
	for _, a := range o.Plan.Assumptions() {
		if a.Value == "" || a.Source == "" {
			t.Errorf("%+v", a)
		}
		got[a.Of+"/"+a.Name] = a.Value + " | " + a.Source
	}
	for key, want := range map[string]string{
		"/PUE": "1.200 | stated in the plan", "/discount": "8% per year | stated in the plan",
		"/electricity": "$0.1000 per kWh | assumed", "/residual value": "0% | default, without a source",
		"/fill": "100% of the space, 100% of the IOPS | default: all", "quick/price": "$1,000 | stated in the plan",
		"quick/power":                       "25.0 W active, 4.00 W idle | the catalogue",
		"quick/active":                      "30% of the share of IOPS in use | assumed",
		"Intel DC P3600 2TB/active":         "40% of the time | stated in the plan",
		"quick/failures":                    "1.00 % a year | stated in the plan",
		"quick/endurance":                   "36500 TB, rated at a WAF of 2.00 | the catalogue; stated in the plan",
		"quick/write amplification":         "3.000 | stated in the plan",
		"quick/p99 under load":              "1 points | stated in the plan",
		"Intel DC P3600 2TB/p99 under load": "not needed | no workload has a p99",
	} {
		if got[key] != want {
			t.Errorf("%s: %s; %s is right", key, got[key], want)
		}
	}
	if w := got["Intel DC P3600 2TB/write amplification"]; !strings.Contains(w,
		"at 22.2 % spare space | minTCO's equation 7") {
		t.Error(w)
	}
	text, err := json.Marshal(drives.Describe(o, nil))
	if err != nil || !strings.Contains(string(text),
		`"assumptions":[{"of":"","name":"horizon","value":"5y","source":"default: the usual warranty"}`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestDiffer verifies that a plan does not differ from itself under other drive names, and that changes are named.
func TestDiffer(t *testing.T) {
	const text = `
drives: [{model: Intel DC P3700 2TB, name: N, up_to: 3, price: $P}]
workloads: {list: [{name: a, write_gb_per_day: 1, working_set_gb: 1500}, {name: b, write_gb_per_day: 1, working_set_gb: 1400}, {name: c, write_gb_per_day: 1, working_set_gb: CC}]}
`
	of := func(name, price, size string) *drives.Outcome {
		return solve(t, strings.NewReplacer("N", name, "$P", price, "CC", size).Replace(text), drives.Options{})
	}
	a := of("x", "$1000", "400")
	d, err := drives.Differ(a, of("x", "$1000", "400"))
	if err != nil || len(d.Workloads) != 0 || len(d.Inputs) != 0 || d.Sums[0].Before != d.Sums[0].After {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err = drives.Differ(a, of("y", "$1000", "400")); err != nil || len(d.Workloads) != 0 {
		t.Errorf("%+v, %v", d.Workloads, err)
	}
	if d, err = drives.Differ(a, of("x", "$1500", "700")); err != nil {
		t.Fatal(err)
	}
	if len(d.Workloads) != 1 || d.Workloads[0].After != "x #3" ||
		d.Drives[0] != (drives.CountDifference{Model: "Intel DC P3700 2TB", Before: 2, After: 3}) {
		t.Errorf("%+v", d)
	}
	if len(d.Inputs) != 1 ||
		d.Inputs[0] != (drives.InputDifference{Of: "x", Name: "price", Before: "$1,000", After: "$1,500"}) {
		t.Errorf("%+v", d.Inputs)
	}
	var b bytes.Buffer
	if err := report.WritePlanDifference(&b, d, term.Style{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"x: price  $1,000  $1,500", "workloads that move: 1", "Intel DC P3700 2TB",
		"+50.0 %"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in %s", want, b.String())
		}
	}
	if _, err := drives.Differ(a,
		solve(t, "objective: paper\n"+strings.NewReplacer("N", "x", "$P", "$1", "CC", "9").Replace(text),
			drives.Options{})); err == nil {
		t.Error("plans of two objectives were compared")
	}
}

// TestPoints verifies that a write amplification of points is interpolated, and that points out of order are rejected
// with their line.
func TestPoints(t *testing.T) {
	const text = "drives: [{model: Intel DC P3700 2TB, count: 1, price: $1, waf: {points: [{sequential: 0, waf: 5}, " +
		"{sequential: 50%, waf: 3}, {sequential: 1, waf: 1}]}}]\nworkloads: {list: [{name: a, write_gb_per_day: 1, " +
		"working_set_gb: 1, sequential: 25%}]}\n"
	if a := solve(t, text, drives.Options{}).Drives[0].State.WAF; math.Abs(a-4) > 1e-12 {
		t.Errorf("an amplification of %v; 4 is right", a)
	}
	for was, is := range map[string]string{"50%": "0%", "waf: 3": "waf: 0.3",
		"{sequential: 50%, waf: 3}, {sequential: 1, waf: 1}": ""} {
		if _, err := drives.Load(source(strings.Replace(text, was, is, 1)), nil); err == nil ||
			!strings.HasPrefix(err.Error(), "plan.yaml:1:") ||
			!strings.Contains(err.Error(), "drives[0].waf.points: ") {
			t.Errorf("%s: %v", is, err)
		}
	}
}

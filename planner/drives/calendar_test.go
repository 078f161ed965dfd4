package drives_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/internal/term"
	"farflash/planner/drives"
	"farflash/planner/tco/calendar"
	"farflash/policy/ftl/waf"
	"farflash/report"
)

// TestCalendarTemplate verifies that the example's money adds up by items, drives, workloads and years, and that it is
// minimal.
func TestCalendarTemplate(t *testing.T) {
	o := solve(t, drives.Template, drives.Options{Bound: true, Sensitivity: true})
	slices, byDrive, byJob, years := 0.0, 0.0, 0.0, 0.0
	for _, s := range o.Slices {
		slices += s.Money
	}
	for i := range o.Drives {
		byDrive += o.Drives[i].State.Cost
	}
	for _, x := range o.Placements {
		byJob += x.Cost
	}
	for _, y := range o.Calendar.Years {
		for _, v := range y {
			years += v
		}
	}
	for name, v := range map[string]float64{"slices": slices, "drives": byDrive, "workloads": byJob, "years": years} {
		if math.Abs(v/o.Cost-1) > 1e-12 {
			t.Errorf("%s add up to %v, the plan to %v", name, v, o.Cost)
		}
	}
	if !o.Exact || o.LeastCost != o.Cost || o.Gap() != 0 || len(o.Effects) != 7 || len(o.Frontier) < 8 {
		t.Errorf("exact: %v, bound %v of %v, %d effects, %d points", o.Exact, o.LeastCost, o.Cost, len(o.Effects),
			len(o.Frontier))
	}
	for _, e := range o.Effects {
		for _, x := range [][2]float64{{e.HeldLow, e.AtLow}, {e.HeldHigh, e.AtHigh}} {
			if x[0] > 0 && x[1] > x[0]*(1+1e-9) {
				t.Errorf("%s: planned again it costs %v, as it is %v", e.Name, x[1], x[0])
			}
		}
	}
	for _, p := range o.Frontier {
		if p.Refused == 0 && p.Cost < o.Cost*(1-1e-9) {
			t.Errorf("%s costs %v, the plan %v", p.Name, p.Cost, o.Cost)
		}
	}
}

// TestServed verifies that the workloads of a plan are served until its end, by as many drives as necessary.
func TestServed(t *testing.T) {
	o := solve(t, `
horizon: 3y
costs: {replacing: $50, electricity: 0}
drives: [{model: Intel DC P3520 2TB, up_to: 3, price: $1000, active_w: 12, idle_w: 4, read_iops: 100000, write_iops: 20000, waf: 2, rated_waf: 2, afr: 0%}]
workloads: {list: [{name: a, write_gb_per_day: 6000, working_set_gb: 500, peak_iops: 10}, {name: b, write_gb_per_day: 1, working_set_gb: 1600, peak_iops: 10, arrival_day: 700}]}
`, drives.Options{})
	if err := o.Unserved(); err != nil || len(o.Moves) != 0 {
		t.Error(err, o.Moves)
	}
	days := []float64{2490.0 / 6, 2490.0/6 + (2490.0-0.5)/6}
	if r := o.Drives[0].Replaced; len(r) != 2 || math.Abs(r[0]-days[0]) > 1e-6 || math.Abs(r[1]-days[1]) > 1e-6 {
		t.Errorf("replaced on %v; %v is right", r, days)
	}
	if math.Abs(o.Cost-(2*1000+2*1050)) > 1e-6 || math.Abs(o.Data-(6000*1095+395)) > 1e-6 {
		t.Errorf("%v for %v GB", o.Cost, o.Data)
	}
	var b bytes.Buffer
	if err := report.WritePlanText(&b, o, term.Style{}); err != nil ||
		!strings.Contains(b.String(), "horizon, replaced 2 times") ||
		!strings.Contains(b.String(), "day 415: 1 x Intel DC P3520 2TB to replace worn-out drives") ||
		!strings.Contains(b.String(), "day 700: 1 x Intel DC P3520 2TB\n") {
		t.Errorf("%v: %s", err, b.String())
	}
	text, err := json.Marshal(drives.Describe(o, nil))
	if err != nil || !strings.Contains(string(text), `"objective":"calendar"`) ||
		!strings.Contains(string(text), `{"day":700,"drive":"Intel DC P3520 2TB #2","for":"drives","money":1000}`) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestReview verifies that a growing workload moves to a larger drive when it must, and not before, if drives get
// cheaper.
func TestReview(t *testing.T) {
	const text = `
horizon: 4y
costs: {price_trend: -30%, moving: $1}
drives: [{model: Intel DC P3700 1.6TB, up_to: 2, price: $1600}, {model: Micron 9200 PRO 7.68TB, up_to: 1, price: $8000}]
workloads: {list: [{name: a, write_gb_per_day: 10, working_set_gb: 900, peak_iops: 10, growth: 60%}]}
`
	still, moves := solve(t, text, drives.Options{}), solve(t, "review: 1y\n"+text, drives.Options{})
	if len(still.Drives) != 1 || len(moves.Drives) != 2 || len(moves.Moves) != 1 || moves.Moves[0].Day != 365 ||
		!moves.Moves[0].NeedsNewDrive || !(moves.Cost < still.Cost) {
		t.Errorf("%v without, %v with moves: %+v", still.Cost, moves.Cost, moves.Moves)
	}
	if v := moves.Calendar.Money[calendar.Moves]; math.Abs(v-0.9*1.6) > 1e-9 {
		t.Errorf("%v for the copy", v)
	}
	why, err := moves.Explain("a")
	if err != nil || !why.Choices[0].Chosen || !(why.Choices[1].CostPerGB >= why.Choices[0].CostPerGB) {
		t.Errorf("%+v, %v", why, err)
	}
	var b bytes.Buffer
	if err := report.WritePlanText(&b, moves, term.Style{}); err != nil ||
		!strings.Contains(b.String(), "1 moves at reviews") {
		t.Errorf("%v: %s", err, b.String())
	}
	// It would outgrow the largest drive.
	p, err := drives.Load(source(strings.ReplaceAll(text, "60%", "200%")), nil)
	if err == nil {
		_, err = p.Solve(context.Background(), drives.Options{})
	}
	if err == nil || !strings.Contains(err.Error(), "that it grows to need a drive of more than") {
		t.Error(err)
	}
}

// TestObjective covers the choice of objective, and the keys that each objective does not use.
func TestObjective(t *testing.T) {
	const fleet, job = "drives: [{model: Intel DC P3700 2TB, count: 2, price: $3400}]\n",
		"workloads: {list: [{name: w, write_gb_per_day: 1, working_set_gb: 1, peak_iops: 1%s}]}\n"
	for head, is := range map[string]bool{"": true, "horizon: 0\n": false, "mode: paper\n": false,
		"algorithm: mintco-v3\n": false, "algorithm: mintco-v3\nobjective: calendar\n": true,
		"objective: paper\n": false} {
		o := solve(t, head+fleet+strings.ReplaceAll(job, "%s", ""), drives.Options{})
		if (o.Calendar != nil) != is || o.Plan.Calendar() != is {
			t.Errorf("%q: over a calendar: %v", head, o.Calendar != nil)
		}
	}
	for _, c := range []struct{ head, workload, want string }{
		{"objective: calendar\nmode: paper\n", "", "plan.yaml:1:12: objective: mode: paper needs objective: paper"},
		{"objective: calendar\nhorizon: 0\n", "", "plan.yaml:2:10: horizon: cost over a calendar needs an end"},
		{"objective: paper\ncosts: {discount: 5%}\n", "",
			"plan.yaml:2:19: costs.discount: objective: paper does not use it"},
		{"algorithm: mintco-v3\ncosts: {residual: 5%}\n", "",
			"plan.yaml:2:19: costs.residual: objective: paper does not use it"},
		{"algorithm: mintco-v3\nreview: 1y\n", "",
			"plan.yaml:2:9: review: mintco-v3 does not use it; leave it out, or choose optimal with objective: calendar"},
		{"review: 1d\n", "", "plan.yaml:1:9: review: 1d is too short"},
		{"costs: {discount: 120%}\n", "", "plan.yaml:1:19: costs.discount: 120% a year is not possible"},
		{"costs: {price_trend: -100%}\n", "", "plan.yaml:1:22: costs.price_trend: -100% a year is not possible"},
		{"costs: {residual: 101%}\n", "", "plan.yaml:1:19: costs.residual: 101% is not possible"},
		{"costs: {residual: 10%, residual_over: 0}\n", "",
			"plan.yaml:1:39: costs.residual_over: 0 days are not possible"},
		{"", ", arrival_day: 1825",
			"plan.yaml:2:20: workloads.list[0]: workload w arrives on day 1825, but the plan ends on day 1825"},
		{"algorithm: mintco-v3\n", ", growth: 5%",
			"workloads.list[0]: workload w grows, but mintco-v3 with objective: paper does not use growth"},
		{"", ", growth: -100%", "workloads.list[0].growth: -100% a year is not possible"},
	} {
		if _, err := drives.Load(source(c.head+fleet+strings.ReplaceAll(job, "%s", c.workload)), nil); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v; one with %q is right", c.head, err, c.want)
		}
	}
}

// TestFloor verifies that with too many workloads for enumeration the money has a bound, below the plan and close to
// it.
func TestFloor(t *testing.T) {
	var list []string
	for i := range 40 {
		list = append(list, fmt.Sprintf("{name: w%d, write_gb_per_day: %d, working_set_gb: %d, peak_iops: %d, "+
			"write_share: 50%%, arrival_day: %d, growth: %d%%}", i, 10+i, 100+7*i, 100*i, 9*i, i%3*10))
	}
	const fleet = "drives: [{model: Intel DC P3700 2TB, up_to: 40, price: $3000}, {model: Micron 9200 PRO 7.68TB, " +
		"up_to: 40, price: $9000}]\n"
	o := solve(t, "search: {steps: 20000}\n"+fleet+"workloads: {list: ["+strings.Join(list, ", ")+"]}\n",
		drives.Options{Bound: true})
	if !(o.LeastCost > 0 && o.LeastCost <= o.Cost) || o.Gap() > 0.08 || o.Exact {
		t.Errorf("a plan of %v with a bound of %v", o.Cost, o.LeastCost)
	}
	text, err := json.Marshal(drives.Describe(o, nil).Bound)
	if err != nil || !strings.Contains(string(text), `"tco":`) || strings.Contains(string(text), "null") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestSpare verifies that a drive with unused space is smaller and wears less, with the same write budget.
func TestSpare(t *testing.T) {
	of := func(drive string) *drives.Outcome {
		return solve(t, "drives: [{model: Micron 9200 ECO 11TB, count: 1, price: $3000"+drive+
			"}]\nworkloads: {list: [{name: w, write_gb_per_day: 9000, working_set_gb: 1000, peak_iops: 10}]}\n",
			drives.Options{})
	}
	whole, half := of(""), of(", spare: 50%")
	a, b := &whole.Drives[0].State, &half.Drives[0].State
	alpha := 13194.1 / 11000
	if want := waf.GreedyExact(alpha, 256) /
		waf.GreedyExact(2*alpha, 256); math.Abs(a.WearAtDeath/b.WearAtDeath-want) > 1e-9 ||
		math.Abs(a.WAF/b.WAF-want) > 1e-9 {
		t.Errorf("wear %v and %v; %v times is right", a.WearAtDeath, b.WearAtDeath, want)
	}
	if math.Abs(b.SpaceShare/a.SpaceShare-2) > 1e-9 {
		t.Errorf("%v of the space and %v", a.SpaceShare, b.SpaceShare)
	}
	if a, b := of(", waf: 3"),
		of(", waf: 3, spare: 50%"); a.Drives[0].State.WearAtDeath != b.Drives[0].State.WearAtDeath {
		t.Error("spare space changes what was stated")
	}
	for text, want := range map[string]string{", spare: 95%": "drives[0].spare: 95% is not possible"} {
		if _, err := drives.Load(source("drives: [{model: Micron 9200 ECO 11TB, count: 1, price: $3000"+text+
			"}]\nworkloads: w.csv\n"), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}

// TestApart verifies that replicas are in different racks, or in different zones, at any cost, and that too few of them
// make the plan infeasible.
func TestApart(t *testing.T) {
	const text = `
drives:
  - {model: Intel DC P3700 2TB, name: near, count: 4, price: $1, domains: [east/r1, east/r1, east/r2, east/r2]}
  - {model: Intel DC P3700 2TB, name: far, up_to: 2, price: $5000, domains: [west/r1, north/r1]}
workloads: {list: [{name: a, write_gb_per_day: 1, working_set_gb: 10, apart: g}, {name: b, write_gb_per_day: 1, working_set_gb: 10, apart: g}, {name: c, write_gb_per_day: 1, working_set_gb: 10}]}
`
	domains := func(o *drives.Outcome) (a, b string) {
		on := map[string]string{}
		for i := range o.Drives {
			for _, w := range o.Drives[i].Workloads {
				on[w] = o.Drives[i].Domain
			}
		}
		return on["a"], on["b"]
	}
	for _, objective := range []string{"", "objective: paper\n"} {
		a, b := domains(solve(t, objective+text, drives.Options{}))
		if a == b || !strings.HasPrefix(a, "east/") || !strings.HasPrefix(b, "east/") {
			t.Errorf("in %s and %s", a, b)
		}
		o := solve(t, objective+"apart_by: zone\n"+text, drives.Options{})
		a, b = domains(o)
		zone, _, _ := strings.Cut(a, "/")
		if strings.HasPrefix(b, zone+"/") || o.Cost < 5000 {
			t.Errorf("in %s and %s for %v", a, b, o.Cost)
		}
	}
	p, err := drives.Load(source("apart_by: zone\n"+
		strings.ReplaceAll(strings.ReplaceAll(text, "west/", "east/"), "north/", "east/")), nil)
	if err == nil {
		_, err = p.Solve(context.Background(), drives.Options{})
	}
	if err == nil || !strings.Contains(err.Error(),
		"workload b has no drive, for failure domain; group g has 2 workloads to keep apart, in 1 failure domain;") {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"apart_by: zone\ndrives: [{model: x, count: 1}]\nworkloads: w.csv\n": "drives[0].domains: apart_by: zone " +
			"needs the zone of these drives",
		"apart_by: rack\n": "\"rack\"",
		"drives: [{model: x, count: 1, domains: [east/]}]\nworkloads: w.csv\n": "drives[0].domains[0]: \"east/\" is " +
			"not the name of a domain",
	} {
		if _, err := drives.Load(source(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; %s is right", text, err, want)
		}
	}
}

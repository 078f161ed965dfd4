package drives_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/rng"
	"farflash/planner/drives"
	"farflash/planner/tco"
	"farflash/planner/tco/certify"
	"farflash/planner/tco/sheet"
	"farflash/scenario/shape"
)

func source(text string) shape.Source {
	return shape.Source{File: "plan.yaml", Text: []byte(text)}
}

func solve(t *testing.T, text string, o drives.Options) *drives.Outcome {
	t.Helper()
	p, err := drives.Load(source(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Solve(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTemplate solves the example, and verifies that the money adds up and that its bound is proven.
func TestTemplate(t *testing.T) {
	o := solve(t, strings.ReplaceAll(drives.Template, "objective: calendar", "objective: paper"),
		drives.Options{Bound: true, Sensitivity: true})
	if o.Assessment.Placed != 8 || len(o.Drives) != 3 {
		t.Errorf("%d workloads on %d drives", o.Assessment.Placed, len(o.Drives))
	}
	sum := 0.0
	for _, s := range o.Slices[:len(o.Slices)-1] {
		sum += s.Money
	}
	if math.Abs(sum/o.Cost-1) > 1e-12 {
		t.Errorf("the slices add up to %v, the TCO is %v", sum, o.Cost)
	}
	if !(o.Bound > 0 && o.Bound <= o.CostPerGB()) {
		t.Errorf("bound %v, plan %v", o.Bound, o.CostPerGB())
	}
	months := 0.0
	for i := range o.Drives {
		months += o.Drives[i].State.Space / 1000 * o.Drives[i].State.Lifetime / tco.Month
	}
	if want := (o.Cost + o.Failures.Cost()) / months; math.Abs(o.PerMonth/want-1) > 1e-12 {
		t.Errorf("%v a TBe and month; %v is right", o.PerMonth, want)
	}
	if len(o.Effects) != 6 || len(o.Frontier) < 8 {
		t.Errorf("%d effects, %d points of the frontier", len(o.Effects), len(o.Frontier))
	}
	for _, e := range o.Effects {
		if e.Name == "Price of drives" && !(e.AtLow < o.CostPerGB() && e.AtHigh > o.CostPerGB()) {
			t.Errorf("%+v about %v", e, o.CostPerGB())
		}
	}
	replicas := map[string]bool{}
	for _, x := range o.Placements {
		if strings.HasPrefix(x.Workload, "replica-") {
			if replicas[x.Drive] {
				t.Errorf("both replicas are on %s", x.Drive)
			}
			replicas[x.Drive] = true
		}
	}
	var problem tco.Problem
	problem.Config = tco.DefaultConfig()
	if err := certify.Check(&problem, o.Proof); err == nil {
		t.Error("the proof holds for another problem")
	}
}

// TestNoBound verifies that an unproven bound is null in the document, not 0, with the reason.
func TestNoBound(t *testing.T) {
	o := solve(t, `
algorithm: min-rate
drives: [{model: Intel DC P3700 2TB, count: 1, price: $3000}]
workloads: {list: [{name: a, write_gb_per_day: 1, working_set_gb: 1500}, {name: b, write_gb_per_day: 1, working_set_gb: 1500}]}
`, drives.Options{Bound: true})
	text, err := json.Marshal(drives.Describe(o, nil).Bound)
	if want := `{"tco_per_gb":null,"gap":null,"note":"no bound: the plan does not place every workload"}`; err !=
		nil || string(text) != want {
		t.Errorf("%s, %v; %s is right", text, err, want)
	}
	// With few workloads every plan is examined.
	if o = solve(t, drives.Template, drives.Options{Bound: true}); o.Gap() > 1e-6 || !o.Exact {
		t.Errorf("the example is within %v, and every plan was looked at: %v", o.Gap(), o.Exact)
	}
}

// TestOneArray compares a plan of one workload on one array with sums by hand.
func TestOneArray(t *testing.T) {
	o := solve(t, `
costs: {electricity: $0.2, pue: 1.5, labour: $0.01, warranty: 0}
horizon: 1000d
objective: paper
drives: [{model: Intel DC P3700 2TB, count: 1, price: $3000, array: {kind: raid1, drives: 4}, waf: 2, rated_waf: 2, afr: 1%}]
workloads: {list: [{name: w, write_gb_per_day: 100, working_set_gb: 1000, peak_iops: 10}]}
`, drives.Options{})
	power := (0.3*25 + 0.7*4) / 1000 * 24 * 1.5 * 0.2
	cost := 4 * (3000 + (power+0.01)*1000)
	failures := 4 * 0.01 * 1000 / 365
	d := o.Drives[0]
	for name, x := range map[string][2]float64{
		"cost": {o.Cost, cost}, "data": {o.Data, 100 * 1000},
		"wear":     {d.State.WearAtDeath, 100 * 1000 * 2 * 2 / (4 * 36500e3 * 2)},
		"space":    {d.State.SpaceShare, 1000.0 / 4000},
		"failures": {o.Failures.Expected, failures}, "spares": {o.Failures.Spares, failures * 3000},
		"rebuilt": {o.Failures.Rebuilt, failures * 500}, "TBe": {o.TBe, 1},
	} {
		if math.Abs(x[0]/x[1]-1) > 1e-12 {
			t.Errorf("%s is %v; %v is right", name, x[0], x[1])
		}
	}
}

// TestImpossible verifies that invalid plans are rejected before placement, with line and remedy.
func TestImpossible(t *testing.T) {
	const fleet, job = "drives: [{model: Intel DC P3700 2TB, count: 2, price: $3400%s}]\n",
		"workloads: {list: [{name: w, working_set_gb: 1, peak_iops: 1%s}]}\n"
	for _, c := range []struct{ head, drive, workload, want string }{
		{"fill: {space: 120%}\n", "", "", "plan.yaml:1:15: fill.space: 120% is not possible; the share"},
		{"fill: {iops: 0}\n", "", "", "plan.yaml:1:14: fill.iops: 0% is not possible; the share"},
		{"costs: {pue: 0.5}\n", "", "", "plan.yaml:1:14: costs.pue: 0.5 is not possible; PUE is at least 1"},
		{"costs: {embodied: -1}\n", "", "", "plan.yaml:1:19: costs.embodied: -1 is not possible; write 0 or more"},
		{"costs: {rebuild: 0}\n", "", "", "plan.yaml:1:18: costs.rebuild: 0B/s is not possible; the rate at which"},
		{"effective: {replication: -1}\n", "", "",
			"plan.yaml:1:26: effective.replication: -1 copies are not possible; write 1 or more"},
		{"effective: {reduction: 0}\n", "", "", "plan.yaml:1:24: effective.reduction: 0 is not possible"},
		{"search: {steps: -1}\n", "", "", "plan.yaml:1:17: search.steps: -1 is not possible; write 0 or more"},
		{"search: {climb: -1}\n", "", "", "plan.yaml:1:17: search.climb: -1 is not possible; write 0 or more"},
		{"algorithm: mintco-offline\nzones: {thresholds: [60%, 40%]}\n", "", "",
			"plan.yaml:2:27: zones.thresholds[1]: 40% follows 60%; thresholds rise"},
		{"algorithm: mintco-perf\nweights: {space: -1}\n", "", "",
			"plan.yaml:2:18: weights.space: -1 is not possible; write 0 or more"},
		{"weights: {space: 2}\n", "", "",
			"plan.yaml:1:10: weights: optimal does not use it; leave it out, or choose mintco-perf"},
		{"zones: {switch: 9%}\n", "", "",
			"plan.yaml:1:8: zones: optimal does not use it; leave it out, or choose mintco-offline"},
		{"warm_up: true\n", "", "", "plan.yaml:1:10: warm_up: optimal does not use it; leave it out"},
		{"name: caf\xe9\n", "", "", "plan.yaml:1:10: invalid UTF-8; save the file as UTF-8"},
		{"", ", afr: 300%", "", "plan.yaml:1:67: drives[0].afr: it is above 100%; write the share of drives that fail"},
		{"", ", write_share: 130%", "",
			"drives[0].write_share: 130% is above 100%; write the share of I/Os that write"},
		{"", ", tbw: -3", "", "drives[0].tbw: the value is not possible; write 0 or more"},
		{"", ", waf: {random: 2, sequential: 5}", "",
			"drives[0].waf.sequential: sequential writes are amplified by 5, more than random ones, by 2; write"},
		{"", ", waf: {random: 2, turn: 100%}", "", "drives[0].waf.turn: 100% is not possible; write less than 100%"},
		{"", ", array: {kind: raid5, drives: 4, data: 9}", "",
			"drives[0].array.data: only ec takes data shards, and the array is raid5; leave it out, or choose ec"},
		{"", ", array: {kind: raid0, drives: 4, parity: 1}", "",
			"drives[0].array.parity: the parity of raid0 is fixed; leave it out"},
		{"costs: {setup: 27 EUR}\n", "", "", `plan.yaml:1:16: costs.setup: "27 EUR" is in EUR, but amounts are in dollars`},
		{"", "", ", sequential: 130%",
			"workloads.list[0].sequential: 130% is not possible; a share of the written bytes is 0% to 100%"},
		{"", "", ", write_share: 130%", "workloads.list[0].write_share: 130% is not possible"},
		{"", "", ", write_gb_per_day: -1",
			"workloads.list[0].write_gb_per_day: -1 is not possible; write 0 GB a day or more"},
		{"", "", ", arrival_day: 5, end_day: 3",
			"workloads.list[0].end_day: 3 is not possible; it is after the arrival on day 5"},
	} {
		text := c.head + fmt.Sprintf(fleet, c.drive) + fmt.Sprintf(job, c.workload)
		if _, err := drives.Load(source(text), nil); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "plan.yaml:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v; one with %q is right", text, err, c.want)
		}
	}
	file := filepath.Join(t.TempDir(), "w.csv")
	if err := os.WriteFile(file,
		[]byte("name,write_gb_per_day,sequential,peak_iops,write_share,working_set_gb\ncaf\xe9,1,.5,1,.2,15\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	want := `w.csv: row 2, column name: "caf\xe9" is not UTF-8; save the table as UTF-8`
	if _, err := drives.Load(source(fmt.Sprintf(fleet, "")+"workloads: "+file+"\n"), nil); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v; one with %q is right", err, want)
	}
}

// TestInterrupted verifies that an interrupted search returns its best plan, without a bound.
func TestInterrupted(t *testing.T) {
	var list []string
	for i := range 40 {
		list = append(list, fmt.Sprintf("{name: w%d, write_gb_per_day: %d, working_set_gb: %d, peak_iops: 10}", i,
			10+i, 100+7*i))
	}
	p, err := drives.Load(
		source("drives: [{model: Intel DC P3700 2TB, up_to: 40, price: $3000}]\nworkloads: {list: ["+
			strings.Join(list, ", ")+"]}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o, err := p.Solve(ctx, drives.Options{Bound: true})
	if err != nil {
		t.Fatal(err)
	}
	if !o.Interrupted || o.Assessment.Placed != 40 || o.Bound != 0 ||
		o.BoundNote != "no bound: the search was interrupted" {
		t.Errorf("interrupted: %v, %d placed, bound %v, %q", o.Interrupted, o.Assessment.Placed, o.Bound, o.BoundNote)
	}
}

// TestRating verifies that the rating alone determines the write budget, and that higher write amplification wears the
// flash faster.
func TestRating(t *testing.T) {
	wear := func(drive string) float64 {
		o := solve(t, "drives: [{model: Intel DC P3700 2TB, count: 1, price: $3000"+drive+
			"}]\nworkloads: {list: [{name: w, write_gb_per_day: 100, working_set_gb: 1000, peak_iops: 10}]}\n",
			drives.Options{})
		return o.Drives[0].State.WearAtDeath
	}
	if one, five := wear(", waf: 1"), wear(", waf: 5"); math.Abs(five/one-5) > 1e-9 {
		t.Errorf("writes that are amplified by 5 wear %v, others %v", five, one)
	}
	if two, four := wear(", waf: 3, rated_waf: 2"), wear(", waf: 3, rated_waf: 4"); math.Abs(two/four-2) > 1e-9 {
		t.Errorf("a drive that is rated under an amplification of 2 is worn by %v, of 4 by %v", two, four)
	}
	_, err := drives.Load(source("drives: [{model: x, count: 1, rated_waf: 0.5}]\nworkloads: w.csv\n"), nil)
	if err == nil || !strings.Contains(err.Error(),
		"plan.yaml:1:42: drives[0].rated_waf: a write amplification of 0.5 is not possible; write 1 or more") {
		t.Errorf("%v", err)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"drives: []\n":                                    "no drives; list",
		"name: x\ndrvies: []\n":                           `plan.yaml:2:1: unknown key "drvies" in the plan; did you mean "drives"?`,
		"horizon: 5\n":                                    `"5" is not a span of time; try 5y`,
		"costs: {setup: cheap}\n":                         `"cheap" is not an amount of money`,
		"algorithm: mintco-v4\n":                          "did you mean mintco-v3",
		"drives: [{model: x, count: 1, up_to: 2}]\n":      "write either count",
		"drives: [{model: x, count: 1}]\nworkloads: {}\n": "workloads are either a CSV file",
		"drives: [{model: x, count: 1, waf: {table: a, random: 3}}]\nworkloads: w.csv\n": "exactly one of",
		"drives: [{model: x, count: 1, worn: 100%}]\nworkloads: w.csv\n": "drives[0].worn: a worn-out drive " +
			"takes no workload",
		"drives: [{model: x, count: 1}]\nworkloads: nowhere.csv\n": "nowhere.csv",
	} {
		if _, err := drives.Load(source(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v; one with %q is right", text, err, want)
		}
	}
	const jobs = "workloads: {list: [{name: w, write_gb_per_day: 1, working_set_gb: 1, peak_iops: 1}]}\n"
	for text, want := range map[string]string{
		"drives: [{model: Intel DC P3700 3TB, count: 1}]\n":                                                      "plan.yaml:1:18: drives[0].model: no drive",
		"drives: [{model: Intel DC P3700 2TB, count: 1}]\n":                                                      "plan.yaml:1:18: drives[0].model: the catalogue has no price of Intel DC P3700 2TB; state",
		"drives: [{model: Intel DC P3520 2TB, count: 1, price: 1}]\n":                                            "the catalogue has no read_iops, write_iops, active_w and idle_w of Intel DC P3520 2TB; state it next to model (read_iops: ...), or take the median of the catalogue's other drives (estimate: [read_iops, write_iops, active_w, idle_w])",
		"drives: [{model: Intel DC P3700 2TB, count: 1, price: 1, array: {kind: raid5, drives: 2}}]\n":           "it needs at least 3",
		"drives: [{model: Intel DC P3700 2TB, count: 1, price: 1, waf: 0.5}]\n":                                  "write 1 or more",
		"algorithm: min-rate\ndrives: [{model: Intel DC P3700 2TB, up_to: 4, price: 1}]\n":                       "choose the algorithm optimal",
		"drives: [{model: Intel DC P3700 2TB, count: 1, price: 1, latency: {points: [{load: 50%, p99: 0s}]}}]\n": "both must be positive",
		"algorithm: mintco-offline\ndrives: [{model: a, count: 1, price: 1}, {model: b, count: 1}]\n":            "no drive \"a\"",
		"horizon: 0\ndrives: [{model: Intel DC P3700 2TB, count: 1, price: 1, waf: {table: nowhere.csv}}]\n":     "nowhere.csv",
		"drives: [{model: Intel DC P3700 2TB, count: 1, price: 1, latency: incast}]\n":                           "is not a scenario of a single drive",
	} {
		p, err := drives.Load(source(text+jobs), nil)
		if err == nil {
			_, err = p.Solve(context.Background(), drives.Options{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v; one with %q is right", text, err, want)
		}
	}
}

// TestSimulated uses the FTL simulator for write amplification and a simulated drive for latency.
func TestSimulated(t *testing.T) {
	o := solve(t, `
drives: [{model: Intel DC P3700 2TB, count: 2, price: $3000, read_iops: 40000, write_iops: 20000, waf: {simulate: 100}, latency: mqsim-default}]
workloads: {list: [
  {name: quick, write_gb_per_day: 100, sequential: 20%, working_set_gb: 100, peak_iops: 3000, p99: 1s},
  {name: slow, write_gb_per_day: 100, sequential: 90%, working_set_gb: 100, peak_iops: 12000}]}
`, drives.Options{})
	if o.Assessment.Placed != 2 {
		t.Errorf("%+v", o.Placements)
	}
	for i := range o.Drives {
		if a := o.Drives[i].State.WAF; a < 1 || a > 8 {
			t.Errorf("a simulated write amplification of %v", a)
		}
	}
}

// TestOnlineAndExplain verifies that explanations of both kinds agree with the placement.
func TestOnlineAndExplain(t *testing.T) {
	for _, algorithm := range []string{"optimal", "mintco-v3", "min-rate", "mintco-offline"} {
		count := "count: 3"
		if algorithm == "mintco-offline" {
			count = "up_to: 3"
		}
		o := solve(t, "algorithm: "+algorithm+`
drives: [{model: Intel DC P3700 2TB, `+count+`, price: $3000}]
workloads: {list: [
  {name: a, write_gb_per_day: 100, sequential: 20%, working_set_gb: 900, peak_iops: 3000},
  {name: b, write_gb_per_day: 200, sequential: 90%, working_set_gb: 900, peak_iops: 2000},
  {name: c, write_gb_per_day: 300, sequential: 50%, working_set_gb: 1500, peak_iops: 2000, arrival_day: 30}]}
`, drives.Options{Bound: true})
		for _, x := range o.Placements {
			why, err := o.Explain(x.Workload)
			if err != nil {
				t.Fatal(err)
			}
			if why.Chosen != x.Drive {
				t.Errorf("%s: %s is on %s, and explained on %q", algorithm, x.Workload, x.Drive, why.Chosen)
			}
			if algorithm != "min-rate" && why.Worse < -1e-9 {
				t.Errorf("%s: %s would be better on %s by %v", algorithm, x.Workload, why.Next, why.Worse)
			}
		}
		if _, err := o.Explain("d"); err == nil {
			t.Error("a workload that there is not was explained")
		}
	}
}

// TestAmplificationOfTrace verifies the write amplification simulated with a trace's writes: for single pages at random
// it is that of uniform writes.
func TestAmplificationOfTrace(t *testing.T) {
	dir := t.TempDir()
	random := rng.NewStream(1, "trace")
	var b strings.Builder
	for i := range 120000 {
		fmt.Fprintf(&b, "%d,hm,0,Write,%d,4096,413\n", 128166372003061629+i*10000, random.IntN(2048)*4096)
	}
	if err := os.WriteFile(filepath.Join(dir, "w.csv"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(waf string) (*drives.Outcome, error) {
		p, err := drives.Load(source(`
horizon: 4y
drives: [{model: Intel DC P3700 2TB, count: 1, price: $1000, waf: `+waf+`}]
workloads: {list: [{name: a, write_gb_per_day: 1, sequential: 0%, working_set_gb: 1000, peak_iops: 1}]}
`), nil)
		if err != nil {
			return nil, err
		}
		return p.Solve(t.Context(), drives.Options{})
	}
	file := filepath.Join(dir, "w.csv")
	got, err := load("{trace: " + file + "}")
	want, err2 := load("{simulate: 500}")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if a, b := got.Drives[0].State.WAF, want.Drives[0].State.WAF; a < 0.75*b || a > 1.02*b {
		// blocks are smaller, and pages are written 59 times on average, but not equally often
		t.Errorf("%v of single pages at random, %v of uniform writes", a, b)
	}
	for waf, says := range map[string]string{
		"{trace: nosuch.csv}": "no such file", "{trace: " + file + ", simulate: 500}": "exactly one of",
		"{trace: " + dir + "}": "is a directory",
	} {
		if _, err := load(waf); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", waf, err)
		}
	}
}

func TestFromTraces(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 100 { // MSR: time in 100 ns, host, disk, type, offset, size, latency
		b.WriteString(strings.Join([]string{digits(128166372003061629 + int64(i)*6e9), "hm", "0", "Write",
			digits(int64(i) * 65536), "65536", "1"}, ",") + "\n")
	}
	for name, text := range map[string]string{"hm.csv": b.String(), "notes.txt": "nothing", ".hidden": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := drives.FromTraces(dir, false, nil); err == nil ||
		!strings.Contains(err.Error(), "hm.csv: the trace spans only 16") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a trace of 16.5 hours: %v", err)
	}
	list, skipped, err := drives.FromTraces(dir, true, nil)
	jobs := drives.JobsOf(list)
	if err != nil || len(jobs) != 1 || len(skipped) != 1 {
		t.Fatal(jobs, skipped, err)
	}
	w := jobs[0]
	days := 99 * 600.0 / 86400
	if math.Abs(float64(list[0].Span)-days) > 1e-9 || !(list[0].Within >= 0 && list[0].Within < 1) {
		t.Errorf("%+v; a span of %v days is right", list[0], days)
	}
	if want := 100 * 65536 / 1e9 / days; math.Abs(w.WriteRate/want-1) > 1e-9 || w.Sequential != 1 ||
		w.WriteShare != 1 || math.Abs(w.WorkingSet*1e9-100*65536) > 1 {
		t.Errorf("%+v; %v GB a day are right", w, want)
	}
	p, err := drives.Load(source("drives: [{model: Intel DC P3700 2TB, count: 1, price: 1}]\n"), jobs)
	if err != nil || len(p.Jobs()) != 1 {
		t.Error(p, err)
	}
}

// TestFromLongTraces verifies that a trace of a day or more is accepted without the short option.
func TestFromLongTraces(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 145 {
		b.WriteString(strings.Join([]string{digits(128166372003061629 + int64(i)*6e9), "hm", "0", "Write",
			digits(int64(i) * 65536), "65536", "1"}, ",") + "\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "hm.csv"), []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	if list, _, err := drives.FromTraces(dir, false, nil); err != nil || len(list) != 1 || list[0].Span != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

func digits(v int64) string { return sheet.Plain(float64(v)) }

// FuzzLoad reads plans from arbitrary bytes. A plan must be solved or rejected without a panic.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(drives.Template))
	f.Add([]byte("drives: [{model: Intel DC P3700 2TB, count: 1, price: 1}]\nworkloads: {list: [{name: w, " +
		"write_gb_per_day: 1e300, working_set_gb: 1}]}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer patience.Limit()()
		p, err := drives.Load(shape.Source{File: "plan.yaml", Text: text}, nil)
		if err != nil || p.Catalogue != "" || p.Workloads.File != "" {
			return
		}
		count := 0
		for _, g := range p.Drives {
			count += g.Count + g.UpTo
			if g.WAF != nil && (g.WAF.Simulate != 0 || g.WAF.Table != "") ||
				g.Latency != nil && g.Latency.Simulate != "" {
				return
			}
		}
		if count > 50 || len(p.Jobs()) > 20 {
			return
		}
		p.Search.Steps, p.Search.Climb = min(max(p.Search.Steps, 0), 100), min(max(p.Search.Climb, 0), 5)
		o, err := p.Solve(t.Context(), drives.Options{Bound: true, Sensitivity: true})
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := o.WriteDrives(&b); err != nil {
			t.Error(err)
		}
	})
}

func Example() {
	p, err := drives.Load(shape.Source{File: "rack.yaml", Text: []byte(`
drives: [{model: Intel DC P3700 2TB, up_to: 3, price: $3000}]
workloads: {list: [{name: mail, write_gb_per_day: 350, sequential: 31%, peak_iops: 2070, working_set_gb: 640}]}
`)}, nil)
	if err != nil {
		panic(err)
	}
	o, err := p.Solve(context.Background(), drives.Options{})
	if err != nil {
		panic(err)
	}
	if err := o.WritePlacements(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// workload,drive,refused_for
	// mail,Intel DC P3700 2TB #1,
}

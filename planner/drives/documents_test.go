package drives

import (
	"bytes"
	"encoding/json"
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"farflash/internal/golden"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// TestDocuments compares complete small plans with recorded ones: the document, the reasons for each workload's
// placement, the effects, the tables for a spreadsheet, and what the figures rest on. It shows any change to plans;
// read intended changes line by line before recording them.
func TestDocuments(t *testing.T) {
	const jobs = `
workloads: {list: [
  {name: a, write_gb_per_day: 100, sequential: 20%, working_set_gb: 900, peak_iops: 3000, write_share: 50%},
  {name: b, write_gb_per_day: 200, sequential: 90%, working_set_gb: 900, peak_iops: 2000, write_share: 80%, arrival_day: 10},
  {name: c, write_gb_per_day: 300, sequential: 50%, working_set_gb: 1500, peak_iops: 2000, arrival_day: 30, end_day: 700}]}
`
	const fleet = "drives: [{model: Intel DC P3700 1.6TB, name: old, count: 2, price: $1500, worn: 30%, domains: " +
		"[east, west]}, {model: Intel DC P3600 2TB, up_to: 3, price: $2200}]\n"
	const costs = "horizon: 4y\ncosts: {setup: $20, labour: $0.01, electricity: $0.2, pue: 1.5, replacing: $50, " +
		"warranty: 2y, grid: 0.4, embodied: 0.16}\n"
	for name, c := range map[string]struct {
		text    string
		options Options
		explain string
	}{
		"paper": {"objective: paper\n" + costs + fleet + jobs, Options{Bound: true, Sensitivity: true}, "b"},
		"calendar": {strings.Replace(costs, "{setup",
			"{discount: 8%, price_trend: -15%, space: $4, residual: 60%, setup", 1) + fleet + jobs,
			Options{Bound: true, Sensitivity: true}, "c"},
		"first-fit": {"algorithm: mintco-v3\nobjective: paper\n" + costs +
			strings.Replace(fleet, "up_to", "count", 1) + jobs, Options{}, "a"},
		"zones": {"algorithm: mintco-offline\nobjective: paper\nzones: {thresholds: [60%]}\ndrives: [{model: " +
			"Intel DC P3700 2TB, up_to: 4, price: $3000}]\n" + jobs, Options{}, "a"},
		"arrays": {costs +
			"drives: [{model: Intel DC P3700 1.6TB, count: 1, price: $1500, array: {kind: raid5, drives: 4}, afr: " +
			"2%, duty: 40%}, {model: Intel DC P3600 2TB, up_to: 2, price: $2000, array: {kind: ec, drives: 6, data: " +
			"4, parity: 2}, spare: 10%}]\n" + jobs, Options{Sensitivity: true}, ""},
		"moves": {"review: 1y\nhorizon: 4y\ncosts: {price_trend: -30%, moving: $1}\ndrives: [{model: Intel DC " +
			"P3700 1.6TB, up_to: 2, price: $1600}, {model: Micron 9200 PRO 7.68TB, up_to: 1, price: " +
			"$8000}]\nworkloads: {list: [{name: a, write_gb_per_day: 10, working_set_gb: 900, peak_iops: 10, growth: " +
			"60%}]}\n", Options{}, "a"},
		"worn": {"horizon: 5y\ncosts: {electricity: $0.1}\ndrives: [{model: Intel DC P3600 2TB, up_to: 2, " +
			"price: $2000, waf: {points: [{sequential: 0%, waf: 5}, {sequential: 100%, waf: 1.5}]}}]\nworkloads: " +
			"{list: [{name: a, write_gb_per_day: 20000, sequential: 40%, working_set_gb: 900, peak_iops: 10}, {name: " +
			"b, write_gb_per_day: 1, working_set_gb: 400}]}\n", Options{}, "a"},
		"uncertain": {"horizon: 4y\nuncertainty: {draws: 60, growth: [0%, 50%], prices: [50%, 200%], waf: [80%, " +
			"150%]}\n" + fleet + jobs, Options{}, ""},
		"too few": {"algorithm: min-rate\nobjective: paper\ndrives: [{model: Intel DC P3700 2TB, count: 1, price: " +
			"$3000, waf: {random: 4, sequential: 1.2, turn: 40%, slope: -1}, rated_waf: 3}]\n" + jobs,
			Options{Bound: true}, "b"},
	} {
		o, err := loaded(t, c.text).Solve(t.Context(), c.options)
		if err != nil {
			t.Fatal(err)
		}
		var why *Explanation
		if c.explain != "" {
			if why, err = o.Explain(c.explain); err != nil {
				t.Fatal(err)
			}
		}
		document, err := json.MarshalIndent(struct {
			Plan     *Document
			Effects  []Effect
			Frontier any
		}{Describe(o, why), o.Effects, o.Frontier}, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		b := bytes.NewBuffer(document)
		b.WriteString("\n\n")
		if err := o.WriteDrives(b); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n")
		if err := o.WritePlacements(b); err != nil {
			t.Fatal(err)
		}
		if err := o.Unserved(); err != nil {
			b.WriteString("\n" + err.Error() + "\n")
		}
		golden.File(t, filepath.Join("testdata", "documents", strings.ReplaceAll(name, " ", "-")+".txt"), b.Bytes(),
			*rewrite, "go test ./planner/drives -run TestDocuments -rewrite, and read what changes")
	}
}

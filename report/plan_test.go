package report_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"farflash/internal/term"
	"farflash/planner/drives"
	"farflash/planner/tco"
	"farflash/report"
	"farflash/scenario/shape"
)

func planned(t *testing.T, text string, jobs []tco.Workload) *drives.Outcome {
	t.Helper()
	p, err := drives.Load(shape.Source{File: "rack.yaml", Text: []byte(text)}, jobs)
	if err != nil {
		t.Fatal(err)
	}
	o, err := p.Solve(context.Background(), drives.Options{Bound: true, Sensitivity: true})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestPlan checks a plan's page, for a small plan and for one with too many drives for a bar each.
func TestPlan(t *testing.T) {
	many := make([]tco.Workload, 60)
	for j := range many {
		many[j] = tco.Workload{Name: "w" + strings.Repeat("x", j), WriteRate: 300 * float64(1+j%7),
			Sequential: float64(j%10) / 10, PeakIOPS: 100, WriteShare: 0.5, WorkingSet: 900, Arrival: float64(j)}
	}
	const racks = "algorithm: mintco-v3\ndescription: two & <three>\nhorizon: 12y\ndrives: [{model: Intel DC P3520 " +
		"2TB, count: 28, price: $1132, active_w: 12, idle_w: 4, read_iops: 100000, write_iops: 20000}]\n"
	for name, o := range map[string]*drives.Outcome{"small": planned(t, drives.Template, nil),
		"many": planned(t, racks, many)} {
		var b bytes.Buffer
		if err := report.WritePlan(&b, o, "v1", "farflash plan rack.yaml"); err != nil {
			t.Fatal(err)
		}
		page := b.String()
		wants := []string{"Cost by item", "Power and cooling",
			map[string]string{"small": "TCO relative to this plan",
				"many": "Cost per GB written against imbalance"}[name], "Price of drives", "farflash plan rack.yaml",
			"Wear"}
		if name == "many" {
			wants = append(wants, "4 workloads without a drive", "two &amp; &lt;three&gt;",
				"Drives sorted by each"[1:], "When a drive wears out before its horizon")
		}
		if name == "small" {
			wants = append(wants, "Growth a year at &#43;10 points: no plan is possible")
		}
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page lacks %q", name, want)
			}
		}
		if figures, labelled := strings.Count(page, "<svg"), strings.Count(page, `role="img"`); figures < 4 ||
			labelled < 4 {
			t.Errorf("%s: %d figures, %d of them with a label", name, figures, labelled)
		}
		if strings.Contains(page, "NaN") || strings.Contains(page, "http://") {
			t.Errorf("%s: the page has numbers that are none, or asks for something", name)
		}
		var text bytes.Buffer
		if err := report.WritePlanText(&text, o, term.Style{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "per GB written") {
			t.Errorf("%s: %s", name, text.String())
		}
	}
}

// TestPlanOfNothing verifies that a plan that costs 0 has no percentages for its alternatives, and no input that
// changes its cost by a factor.
func TestPlanOfNothing(t *testing.T) {
	o := planned(t, "algorithm: optimal\nobjective: calendar\nhorizon: 5y\ncosts: {electricity: $0, replacing: "+
		"$0}\ndrives: [{model: Intel DC P3700 1.6TB, count: 3, owned: true, price: $100, afr: 0%}]\n"+
		"workloads: {list: [{name: a, write_gb_per_day: 100, peak_iops: 2070, write_share: 88%, working_set_gb: 64}, "+
		"{name: b, write_gb_per_day: 100, peak_iops: 2070, write_share: 88%, working_set_gb: 64}]}\n", nil)
	x, err := o.Explain("a")
	if err != nil {
		t.Fatal(err)
	}
	var page, text bytes.Buffer
	if err := report.WritePlan(&page, o, "v1", "farflash plan rack.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteExplanationText(&text, x, term.Style{}); err != nil {
		t.Fatal(err)
	}
	if o.Objective() != 0 || !strings.Contains(text.String(), "would cost the same") ||
		strings.Contains(page.String(), "NaN") || strings.Contains(page.String(), "no plan is possible") {
		t.Errorf("it costs %g: %s", o.Objective(), text.String())
	}
}

package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"farflash/internal/golden"
	"farflash/internal/term"
	"farflash/planner/drives"
	"farflash/planner/tco"
	"farflash/planner/tco/calendar"
	"farflash/report/chart"
	"farflash/scenario/shape"
)

// planOf loads a plan without solving it.
func planOf(t *testing.T, text string) *drives.Plan {
	t.Helper()
	p, err := drives.Load(shape.Source{File: "rack.yaml", Text: []byte(text)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	bookedPlan = `
name: booked
description: what <this> room needs
horizon: 3y
review: 1y
costs: {discount: 8%, residual: 60%, replacing: $50}
uncertainty: {draws: 200, prices: [50%, 200%]}
drives: [{model: Intel DC P3700 1.6TB, count: 2, price: $2700}, {model: Intel DC P3600 2TB, up_to: 6, price: $2200}]
workloads:
  list:
    - {name: mail, write_gb_per_day: 350, sequential: 31%, peak_iops: 2070, write_share: 88%, working_set_gb: 640}
    - {name: web, write_gb_per_day: 330.5, sequential: 35%, peak_iops: 12500, write_share: 70%, working_set_gb: 910, arrival_day: 30}
    - {name: large, write_gb_per_day: 75, sequential: 72%, peak_iops: 3450, write_share: 5%, working_set_gb: 14300, arrival_day: 120}
`
	paperPlan = `
algorithm: mintco-v3
drives: [{model: Intel DC P3700 1.6TB, count: 45, price: $2700}]
workloads: {list: [{name: mail, write_gb_per_day: 350, sequential: 31%, peak_iops: 2070, write_share: 88%, working_set_gb: 640}]}
`
)

// bookedOutcome returns a possible outcome of a calendar plan, written by hand with all figures different, so that a
// swapped figure is noticed.
func bookedOutcome(t *testing.T) *drives.Outcome {
	t.Helper()
	b := &calendar.Book{Drives: make([]calendar.Account, 3), Total: 7321}
	for i, v := range map[calendar.Item]float64{calendar.Purchases: 9800, calendar.Replacements: 4500,
		calendar.Power: 310, calendar.Residual: -1900} {
		b.Money[i], b.Present[i] = v, 0.9*v
	}
	b.Years = append(b.Years, b.Money, b.Money, b.Money)
	for y, share := range []float64{0.5, 0.3, 0.2} {
		for i := range b.Years[y] {
			b.Years[y][i] *= share
		}
	}
	b.Drives[0].Entries = []calendar.Entry{{Day: 0, Drive: 0, What: calendar.Purchases},
		{Day: 414.6, Drive: 0, What: calendar.Replacements}}
	b.Drives[1].Entries = []calendar.Entry{{Day: 0, Drive: 1, What: calendar.Purchases},
		{Day: 3, Drive: 1, What: calendar.Setup}}
	b.Drives[2].Entries = []calendar.Entry{{Day: 0, Drive: 2, What: calendar.Purchases},
		{Day: 414.9, Drive: 2, What: calendar.Replacements}, {Day: 500, Drive: 2, What: calendar.Purchases}}
	o := &drives.Outcome{
		Plan: planOf(t, bookedPlan), Calendar: b, Cost: 7321, Data: 123_400, LeastCost: 7000, TBe: 3.21,
		PerMonth: 12.34,
		Drives: []drives.DriveRow{
			{Name: "P3700 #1", Model: "Intel DC P3700 1.6TB",
				Workloads: []string{"mail", "web", "w3", "w4", "w5", "w6", "w7"}, EndsBy: "horizon",
				Replaced: []float64{414.6, 800},
				State: tco.DriveState{Workloads: 7, WriteRate: 680.5, Sequential: 0.33, WAF: 2.345, SpaceShare: 0.71,
					IOPSShare: 0.12, Lifetime: 1095, WearAtDeath: 0.83, Cost: 6100, Data: 50_000}},
			{Name: "P3700 #2", Model: "Intel DC P3700 1.6TB", EndsBy: "unused", State: tco.DriveState{Cost: 900}},
			{Name: "P3600 #1", Model: "Intel DC P3600 2TB", Workloads: []string{"read only"},
				EndsBy: "its last workload's end", Replaced: []float64{414.9},
				State: tco.DriveState{Workloads: 1, WAF: 1, SpaceShare: 0.44, IOPSShare: 0.05, Lifetime: 365,
					WearAtDeath: 0.21, Cost: 321, Data: 0.5}},
		},
		Placements: []drives.PlacementRow{{Workload: "mail", Drive: "P3700 #1"}, {Workload: "web", Drive: "P3700 #1"},
			{Workload: "large", Refused: "no space, on 8 of 8 drives"}},
		Assessment: &tco.Assessment{Used: 2, Placed: 2, Refused: 1, SpaceShare: 0.575, SpaceCV: 0.123,
			IOPSShare: 0.085, IOPSCV: 0.456, EnduranceLimited: 0.667},
		Failures: tco.Failures{Expected: 0.0765, Spares: 10, Labour: 4.5, Rebuilt: 4321},
		Carbon:   tco.Carbon{Embodied: 750, Operational: 250},
		Risk: &drives.Risk{Draws: 200, Holds: 0.91, Within: 0.04, Low: 6000, Median: 7300, High: 9100,
			Again: 40, Regret: 0.021},
		Effects: []drives.Effect{
			{Name: "Price of drives", Low: "half", High: "double", HeldLow: 4100, HeldHigh: 14_100, AtLow: 4000,
				AtHigh: 14_000},
			{Name: "Horizon", Low: "1.8y", High: "4.8y", HeldLow: 5000, AtLow: 4900},
			{Name: "PUE", Low: "1.1", High: "2", AtHigh: 7400},
			{Name: "Growth a year", Low: "-5 points", High: "+10 points"},
		},
		Frontier: []drives.Point{
			{Name: "this plan", Cost: 7321, SpaceCV: 0.3, IOPSCV: 0.111},
			{Name: "mintco-perf, balance x0", Cost: 7900, SpaceCV: 0.25, IOPSCV: 0.222, Weighted: true},
			{Name: "mintco-perf, balance x1", Cost: 8200, SpaceCV: 0.15, IOPSCV: 0.333, Weighted: true},
			{Name: "mintco-perf, balance x3", Cost: 8800, SpaceCV: 0.35, IOPSCV: 0.444, Weighted: true},
			{Name: "mintco-perf, balance x5", Cost: 8300, SpaceCV: 0.15, Weighted: true},
			{Name: "mintco-perf, balance x10", Cost: 9999, SpaceCV: 0.05, Weighted: true, Refused: 2},
			{Name: "mintco-v3", Cost: 7321, SpaceCV: 0.3},
			{Name: "min-rate", Cost: 8200, SpaceCV: 0.15},
			{Name: "min-waf", Cost: 8400, SpaceCV: 0.45},
			{Name: "max-rem-cycle", Cost: 8600, SpaceCV: 0.5, Refused: 1},
			{Name: "round-robin", Cost: 8500, SpaceCV: 0.6},
		},
		FrontierMore: 1,
		Moves: []drives.Move{
			{Day: 365, Workload: "web", From: "P3700 #1", To: "P3600 #1", Copied: 910, NeedsNewDrive: true},
			{Day: 730.4, Workload: "web", From: "P3600 #1", To: "P3700 #2", Copied: 1020},
			{Day: 800, Workload: "mail", From: "P3700 #1", Copied: 640, Refused: "no space"},
		},
	}
	for _, item := range calendar.Items() {
		o.Slices = append(o.Slices, drives.Slice{Name: item.String(), Money: b.Present[item]})
	}
	return o
}

// paperOutcome returns the outcome of a plan with count drives that minimises the cost per GB written.
func paperOutcome(t *testing.T, count int) *drives.Outcome {
	t.Helper()
	o := &drives.Outcome{
		Plan: planOf(t, paperPlan), Cost: 30_000, Data: 60_000, Bound: 0.4, TBe: 40, PerMonth: 3.5,
		Placements: []drives.PlacementRow{{Workload: "mail", Drive: "d1"}},
		Assessment: &tco.Assessment{Used: count, Placed: 1, SpaceShare: 0.4, IOPSShare: 0.3, EnduranceLimited: 0.25},
		Slices: []drives.Slice{{Name: "Drives", Money: 28_000}, {Name: "Setup", Money: 0.5}, {Name: "Labour"},
			{Name: "Power and cooling", Money: 2000}, {Name: "Failures, expected", Money: 123}},
		Failures: tco.Failures{Expected: 1.5, Spares: 100, Labour: 23, Rebuilt: 900},
		Carbon:   tco.Carbon{Embodied: 300, Operational: 100},
		Effects: []drives.Effect{{Name: "PUE", Low: "1.1", High: "2", HeldLow: 0.48, HeldHigh: 0.53, AtLow: 0.47,
			AtHigh: 0.52}},
		Frontier: []drives.Point{{Name: "this plan", Cost: 0.5, SpaceCV: 0.2},
			{Name: "min-waf", Cost: 0.6, SpaceCV: 0.1}},
	}
	for i := range count {
		share := float64((i*7)%count+1) / float64(count)
		o.Drives = append(o.Drives,
			drives.DriveRow{Name: fmt.Sprint("d", i+1), Model: "Intel DC P3700 1.6TB", Workloads: []string{"mail"},
				EndsBy: "endurance",
				State: tco.DriveState{Workloads: 1, WriteRate: 350, WAF: 1.5, SpaceShare: share / 2,
					IOPSShare: share / 4,
					Lifetime:  700, WearAtDeath: share, Cost: 600, Data: 1200, Limited: true}})
	}
	return o
}

// marks returns the titles of the marks of a page's charts, one chart after the other.
func marks(page string) string {
	var b strings.Builder
	for _, svg := range picture.FindAllString(wordless.ReplaceAllString(page, ""), -1) {
		for _, m := range marked.FindAllString(svg, -1) {
			fmt.Fprintln(&b, "*", strings.ReplaceAll(tag.ReplaceAllString(m, ""), "\n", "; "))
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// TestPlanWords checks the text of a plan on a terminal and on its page, and every mark of its charts.
func TestPlanWords(t *testing.T) {
	for name, o := range map[string]*drives.Outcome{"plan": bookedOutcome(t), "plan by paper": paperOutcome(t, 3),
		"plan of many drives": paperOutcome(t, 42)} {
		holdWords(t, name, func(text, page io.Writer) error {
			if err := WritePlanText(text, o, term.Style{}); err != nil {
				return err
			}
			return WritePlan(page, o, "test", "farflash plan rack.yaml")
		})
	}
}

// holdWords compares a text, the text of a page and all marks of its charts with testdata/words.
func holdWords(t *testing.T, name string, write func(text, page io.Writer) error) {
	t.Helper()
	var text, page bytes.Buffer
	if err := write(&text, &page); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	sound(t, page.String())
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n--- page\n%s\n--- marks\n%s", text.String(), words(page.String()), marks(page.String()))
	golden.File(t, filepath.Join("testdata", "words", strings.ReplaceAll(name, " ", "-")+".txt"), b.Bytes(), *rewords,
		"go test ./report -run Words -words, and read what changes")
}

// rowOf returns the entry of a name in planSums, "" if it is missing.
func rowOf(o *drives.Outcome, name string) string {
	for _, x := range planSums(o) {
		if x[0] == name {
			return x[1] + " | " + x[2]
		}
	}
	return ""
}

// TestPlanSums checks the plan's figures in unusual cases, and which of them are left out.
func TestPlanSums(t *testing.T) {
	const none = ""
	for _, c := range []struct {
		what   string
		booked bool
		change func(o *drives.Outcome)
		row    string
		want   string
	}{
		{"over a calendar", true, nil, "TCO",
			"$7,321 | to serve all workloads until the plan's end, discounted to day 0"},
		{"money keeps its worth", true, func(o *drives.Outcome) { o.Plan.Costs.Discount = 0 }, "TCO",
			"$7,321 | to serve all workloads until the plan's end"},
		{"by paper", false, nil, "TCO", "$30,000 | purchase and operation over the drives' service"},
		{"over a calendar", true, nil, "written", "123 TB | by the workloads until then"},
		{"by paper", false, nil, "written", "60.0 TB | by the workloads in that time"},
		{"by paper", false, nil, "per GB written", "$0.5000 | "},
		{"nothing is written", false, func(o *drives.Outcome) { o.Data = 0 }, "per GB written", "- | "},
		{"over a calendar", true, nil, "proven bound",
			"$7,000 | no plan costs less; this one is at most 4.59 % above it"},
		{"by paper", false, nil, "proven bound",
			"$0.4000 | no plan costs less per GB; this one is at most 25.00 % above it"},
		{"exact over a calendar", true, func(o *drives.Outcome) { o.Exact = true }, "proven bound",
			"$7,321 | no plan is cheaper: all possible plans were examined"},
		{"exact by paper", false, func(o *drives.Outcome) { o.Exact = true }, "proven bound",
			"$0.5000 | no plan is cheaper: all possible plans were examined"},
		{"exact where nothing is written", false, func(o *drives.Outcome) { o.Exact, o.Data = true, 0 },
			"proven bound", "$30,000 | no plan is cheaper: all possible plans were examined"},
		{"of little money", true, func(o *drives.Outcome) { o.Cost, o.LeastCost = 0.6, 0.5 }, "proven bound",
			"$0.5000 | no plan costs less; this one is at most 20.00 % above it"},
		{"no bound", false, func(o *drives.Outcome) {
			o.Bound, o.BoundNote = 0,
				"no bound: the search was interrupted"
		}, "proven bound", "- | no bound: the search was interrupted"},
		{"none was asked for", false, func(o *drives.Outcome) { o.Bound = 0 }, "proven bound", none},
		{"over a calendar", true, nil, "replaced",
			"3 | worn-out drives; 66.7 % of the used drives wear out at least once"},
		{"over a calendar", true, nil, "endurance-limited", none},
		{"by paper", false, nil, "replaced", none},
		{"by paper", false, nil, "endurance-limited", "25.0 % | of the used drives wear out"},
		{"over a calendar", true, nil, "holds",
			"91.0 % +- 4.0 % | share of 200 draws that this placement serves: prices 50% to 200%"},
		{"over a calendar", true, nil, "TCO in these",
			"$6,000 to $9,100 | 90 % of the draws that it serves; median $7,300"},
		{"over a calendar", true, nil, "regret", "2.1 % | mean of 40 draws: extra cost over a plan computed for that draw"},
		{"nothing is uncertain", false, nil, "holds", none},
		{"uncertain by paper", false,
			func(o *drives.Outcome) {
				o.Risk = &drives.Risk{Draws: 9, Holds: 1, Median: 0.2, Low: 0.1,
					High: 0.3}
			}, "per GB in these", "$0.1000 to $0.3000 | 90 % of the draws that it serves; median $0.2000"},
		{"uncertain where little is written", false, func(o *drives.Outcome) {
			o.Data, o.Risk = 0.5, &drives.Risk{Draws: 9, Holds: 1, Median: 2, Low: 1, High: 3}
		}, "per GB in these", "$1.000 to $3.000 | 90 % of the draws that it serves; median $2.000"},
		{"uncertain where nothing is written", false, func(o *drives.Outcome) {
			o.Data, o.Risk = 0, &drives.Risk{Draws: 9, Holds: 1, Median: 2, Low: 1, High: 3}
		}, "TCO in these", "$1.000 to $3.000 | 90 % of the draws that it serves; median $2.000"},
		{"it never holds", true, func(o *drives.Outcome) { o.Risk = &drives.Risk{Draws: 9} }, "TCO in these", none},
		{"one was planned again", true, func(o *drives.Outcome) { o.Risk.Again = 1 }, "regret",
			"2.1 % | mean of 1 draws: extra cost over a plan computed for that draw"},
		{"nothing was planned again", true, func(o *drives.Outcome) { o.Risk.Again = 0 }, "regret", none},
		{"over a calendar", true, nil, "per effective TB-month", "$12.34 | SNIA's $/TBe/month, for 3.21 TBe"},
		{"by paper", false, nil, "per effective TB-month",
			"$3.500 | SNIA's $/TBe/month, failures included, for 40.0 TBe"},
		{"little is written", false, func(o *drives.Outcome) { o.Data = 0.5 }, "per GB written", "$60,000 | "},
		{"little is kept", false, func(o *drives.Outcome) { o.TBe = 0.5 }, "per effective TB-month",
			"$3.500 | SNIA's $/TBe/month, failures included, for 0.500 TBe"},
		{"nothing is kept", false, func(o *drives.Outcome) { o.TBe, o.PerMonth = 0, 0 }, "per effective TB-month",
			"- | SNIA's $/TBe/month, failures included, for 0 TBe"},
		{"over a calendar", true, nil, "space used", "57.5 % | mean over the drives; CV 0.123"},
		{"over a calendar", true, nil, "IOPS used", "8.5 % | mean over the drives; CV 0.456"},
		{"over a calendar", true, nil, "failures", "0.0765 | expected, part of the TCO: $14.50, 4.32 TB rewritten"},
		{"by paper", false, nil, "failures", "1.50 | expected, drives x AFR x years: $123.0, 900 GB rewritten"},
		{"over a calendar", true, nil, "carbon", "1.00 t CO2e | 75.0 % embodied"},
		{"little carbon", true, func(o *drives.Outcome) { o.Carbon = tco.Carbon{Embodied: 0.3, Operational: 0.1} },
			"carbon", "0.000400 t CO2e | 75.0 % embodied"},
		{"carbon of nothing", true, func(o *drives.Outcome) { o.Carbon = tco.Carbon{} }, "carbon", "0 t CO2e | "},
	} {
		o := paperOutcome(t, 2)
		if c.booked {
			o = bookedOutcome(t)
		}
		if c.change != nil {
			c.change(o)
		}
		if got := rowOf(o, c.row); got != c.want {
			t.Errorf("%s: %s: %q; %q is right", c.what, c.row, got, c.want)
		}
	}
}

// TestPlanOfNoWrites verifies that a plan without writes is judged by its total cost, and that the text says so.
func TestPlanOfNoWrites(t *testing.T) {
	o := paperOutcome(t, 2)
	o.Data, o.Bound = 0, 0
	o.Effects, o.Frontier = []drives.Effect{{Name: "PUE", Low: "1.1", High: "2", HeldLow: 29_000, HeldHigh: 33_000,
		AtLow: 28_500, AtHigh: 31_500}}, []drives.Point{{Name: "this plan", Cost: 30_000}}
	var text, page bytes.Buffer
	if err := WritePlanText(&text, o, term.Style{}); err != nil {
		t.Fatal(err)
	}
	if err := WritePlan(&page, o, "test", ""); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text.String(), "rack: 1 of 1 workloads on 2 drives, by mintco-v3, for the lowest TCO\n") {
		t.Error(text.String())
	}
	for _, want := range []string{"TCO against imbalance", "TCO, relative to this plan", "<th scope=\"col\">TCO",
		"for the lowest TCO."} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page.String(), "ost per GB written") {
		t.Error("the page speaks of gigabytes that nobody writes")
	}
}

// TestPlanRows verifies that a terminal shows only the first rows of a long list and the number of the others, and that
// a list that exceeds the limit by one is shown in full.
func TestPlanRows(t *testing.T) {
	text := func(o *drives.Outcome) string {
		var b bytes.Buffer
		if err := WritePlanText(&b, o, term.Style{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for count, want := range map[int]string{40: "", 41: "", 42: "and 2 more (see drives.csv with -o DIR)"} {
		got := text(paperOutcome(t, count))
		if strings.Contains(got, "more (see drives.csv") != (want != "") || !strings.Contains(got, want) ||
			strings.Contains(got, "\nd41 ") != (count == 41) || !strings.Contains(got, "\nd40 ") {
			t.Errorf("%d drives:\n%s", count, got)
		}
	}
	one := paperOutcome(t, 1)
	one.Moves = []drives.Move{{Day: 1000, Workload: "mail", From: "d1", To: "d1", Copied: 5}}
	if got := text(one); !strings.Contains(got, "\n1000  mail      d1    d1  5.00 GB\n") {
		t.Errorf("one move:\n%s", got)
	}
	var page bytes.Buffer
	if err := WritePlan(&page, one, "test", ""); err != nil || !strings.Contains(page.String(), `id="moves"`) {
		t.Errorf("no section of one move: %v", err)
	}
	for count, want := range map[int]string{12: "", 13: "", 14: "\nand 2 more (see --json)\n"} {
		o := paperOutcome(t, 1)
		for i := range count {
			o.Moves = append(o.Moves,
				drives.Move{Day: float64(1000 + i), Workload: "mail", From: "d1", To: "d1", Copied: 5})
		}
		got := text(o)
		if strings.Contains(got, "more (see --json)") != (want != "") || !strings.Contains(got, want) ||
			strings.Contains(got, "\n1012 ") != (count == 13) || !strings.Contains(got, "\n1011 ") ||
			!strings.Contains(got,
				fmt.Sprintf("\n%d moves off drives that are worn out before the horizon:\n", count)) {
			t.Errorf("%d moves:\n%s", count, got)
		}
	}
	for count, want := range map[int]string{1: "1 drive,", 2: "2 drives,"} {
		if got := text(paperOutcome(t, count)); !strings.Contains(got, "1 of 1 workloads on "+want) {
			t.Errorf("%s:\n%s", want, got)
		}
	}
	many := make([]drives.PlacementRow, 501)
	var list strings.Builder
	for i := range many {
		many[i] = drives.PlacementRow{Workload: fmt.Sprint("w", i), Drive: "d1"}
		fmt.Fprintf(&list, "{name: w%d, write_gb_per_day: 1},", i)
	}
	o := paperOutcome(t, 1)
	o.Plan = planOf(t, "drives: [{model: Intel DC P3700 1.6TB, count: 1, price: $1}]\nworkloads: {list: ["+
		list.String()+"]}\n")
	for _, count := range []int{500, 501} {
		o.Placements = many[:count]
		caption := ""
		if count > 500 {
			caption = "The first 500 of 501; placements.csv lists all"
		}
		if got := placementRows(o); len(got.Rows) != 500 || got.Caption != caption {
			t.Errorf("%d placements: %d rows, %q", count, len(got.Rows), got.Caption)
		}
	}
}

// TestPlanPurchases verifies that each day has one line with the number of drives by model, and that only the first
// twelve days are listed.
func TestPlanPurchases(t *testing.T) {
	of := func(days ...float64) *drives.Outcome {
		o := &drives.Outcome{Calendar: &calendar.Book{Drives: make([]calendar.Account, 1)},
			Drives: []drives.DriveRow{{Model: "m"}}}
		for _, day := range days {
			o.Calendar.Drives[0].Entries = append(o.Calendar.Drives[0].Entries,
				calendar.Entry{Day: day, What: calendar.Purchases})
		}
		return o
	}
	var days []float64
	for i := range 14 {
		days = append(days, float64(i))
	}
	for _, c := range []struct {
		count, lines, more int
	}{{0, 0, 0}, {12, 12, 0}, {13, 13, 0}, {14, 12, 2}} {
		if got, more := purchases(of(days[:c.count]...)); len(got) != c.lines || more != c.more {
			t.Errorf("%d days: %q and %d more", c.count, got, more)
		}
	}
	if got, _ := purchases(of(0.2, 0.4, 2.6, 3.2)); !slices.Equal(got, []string{"day 0: 2 x m", "day 3: 2 x m"}) {
		t.Errorf("%q", got)
	}
	// The terminal and the page note that there are more.
	o := bookedOutcome(t)
	o.Calendar.Drives[0].Entries = of(days...).Calendar.Drives[0].Entries
	o.Calendar.Drives[1].Entries, o.Calendar.Drives[2].Entries = nil, nil
	var b bytes.Buffer
	if err := writeCalendar(&b, o, term.Style{}); err != nil ||
		!strings.HasSuffix(b.String(), "  day 11: 1 x Intel DC P3700 1.6TB\n  and 2 more days (see --json)\n") {
		t.Errorf("%v: %s", err, b.String())
	}
	if note := calendarSection(o).Figures[0].Note; !strings.HasPrefix(note,
		"Purchases: day 0: 1 x Intel DC P3700 1.6TB; day 1: ") || !strings.HasSuffix(note, "; and 2 more days.") {
		t.Error(note)
	}
	o.Calendar.Drives[0].Entries = of(5).Calendar.Drives[0].Entries
	b.Reset()
	if err := writeCalendar(&b, o, term.Style{}); err != nil ||
		!strings.HasSuffix(b.String(), "\npurchases:\n  day 5: 1 x Intel DC P3700 1.6TB\n") ||
		calendarSection(o).Figures[0].Note != "Purchases: day 5: 1 x Intel DC P3700 1.6TB." {
		t.Errorf("%v: %s", err, b.String())
	}
	o.Calendar.Drives[0].Entries = nil
	b.Reset()
	if err := writeCalendar(&b, o, term.Style{}); err != nil || strings.Contains(b.String(), "purchases:") ||
		calendarSection(o).Figures[0].Note != "" {
		t.Errorf("%v: %s", err, b.String())
	}
	// Without a discount there is no row of present values.
	o.Plan.Costs.Discount = 0
	if rows := calendarRows(o); rows[len(rows)-1][0] != "all" || len(rows) != 4 {
		t.Errorf("%q", rows)
	}
}

// TestPlanWordsOfFigures checks the text of days, names, moves, and reasons for the end of a drive's service.
func TestPlanWordsOfFigures(t *testing.T) {
	for _, c := range [][2]string{
		{daysText(math.Inf(1)), "forever"}, {daysText(730), "2.00 y"}, {daysText(729), "729 d"},
		{daysText(1825), "5.00 y"}, {daysText(0.5), "0.500 d"},
		{names(nil, 2), ""}, {names([]string{"a", "b"}, 2), "a, b"},
		{names([]string{"a", "b", "c", "d"}, 2), "a, b and 2 more"},
		{until(&drives.DriveRow{EndsBy: "horizon"}), "horizon"},
		{until(&drives.DriveRow{EndsBy: "horizon", Replaced: []float64{1}}), "horizon, replaced once"},
		{until(&drives.DriveRow{EndsBy: "horizon", Replaced: []float64{1, 2}}), "horizon, replaced 2 times"},
		{moveTo(&drives.Move{Refused: "no space"}), "nowhere: no space"}, {moveTo(&drives.Move{To: "d"}), "d"},
		{moveTo(&drives.Move{To: "d", NeedsNewDrive: true}), "d (bought that day)"},
		{gigabytes(1), "1.00 GB"}, {heldAt(0), "would not fit"}, {heldAt(12), "$12.00"}, {dash(""), "-"},
		{dash("a"), "a"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q; %q is right", c[0], c[1])
		}
	}
}

// TestPlanOfNoEffects verifies that there is no chart of effects if no changed input allows a plan, and no chart of
// costs if no algorithm can place all workloads.
func TestPlanOfNoEffects(t *testing.T) {
	o := paperOutcome(t, 2)
	o.Effects = []drives.Effect{{Name: "PUE", Low: "1.1", High: "2"}}
	o.Frontier = []drives.Point{{Name: "this plan", Cost: 0.5, Refused: 1},
		{Name: "mintco-perf, balance x1", Cost: 0.5, Refused: 2, Weighted: true}}
	var page bytes.Buffer
	if err := WritePlan(&page, o, "test", ""); err != nil {
		t.Fatal(err)
	}
	sound(t, page.String())
	if !strings.Contains(page.String(), "PUE at 1.1 or 2: no plan is possible. ") {
		t.Error("the page does not say that no plan is possible")
	}
	o.Effects, o.Frontier = nil, nil
	page.Reset()
	if err := WritePlan(&page, o, "test", ""); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"frontier", "sensitivity", "moves", "calendar"} {
		if strings.Contains(page.String(), `id="`+id+`"`) {
			t.Errorf("a section %s of nothing", id)
		}
	}
	for _, id := range []string{"cost", "drives", "assumptions", "placements"} {
		if !strings.Contains(page.String(), `id="`+id+`"`) {
			t.Errorf("no section %s", id)
		}
	}
}

// TestPlanEffects verifies that a bar spans the lower and the higher of the two costs, and ends at the plan itself if
// one of the two is impossible.
func TestPlanEffects(t *testing.T) {
	o := paperOutcome(t, 1) // half a dollar per GB
	for _, c := range []struct {
		low, high   float64
		least, most float64
		text        string
	}{
		{0.25, 0.75, 0.5, 1.5, "a: x0.500; b: x1.500"}, {0.75, 0.25, 0.5, 1.5, "a: x1.500; b: x0.500"},
		{0.6, 0.7, 1.2, 1.4, "a: x1.200; b: x1.400"},
		{0, 0.75, 1, 1.5, "a: none; b: x1.500"}, {0.25, 0, 0.5, 1, "a: x0.500; b: none"},
	} {
		o.Effects = []drives.Effect{{Name: "x", Low: "a", High: "b", AtLow: c.low, AtHigh: c.high},
			{Name: "y", Low: "a", High: "b"}}
		rows, _ := effectRows(o)
		if len(rows) != 1 || math.Abs(rows[0].Low-c.least) > 1e-12 || math.Abs(rows[0].High-c.most) > 1e-12 ||
			rows[0].Mean != 1 || rows[0].Text != c.text {
			t.Errorf("%+v: %+v", c, rows)
		}
	}
}

// TestPlanPoints verifies that indistinguishable points share one name while a line keeps its own, and that the
// algorithm's point differs from the others in style.
func TestPlanPoints(t *testing.T) {
	at := func(name string, xy ...float64) chart.Series {
		s := chart.Series{Name: name}
		for i := 0; i < len(xy); i += 2 {
			s.X, s.Y = append(s.X, xy[i]), append(s.Y, xy[i+1])
		}
		return s
	}
	for _, c := range []struct {
		list []chart.Series
		want []string
	}{
		{[]chart.Series{at("a", 1, 10), at("b", 1, 10), at("c", 1.003, 10.03)}, []string{"a and b and c"}},
		{[]chart.Series{at("a", 1, 10), at("b", 1, 11), at("c", 1.1, 10)}, []string{"a", "b", "c"}},
		{[]chart.Series{at("line", 1, 10, 2, 20), at("b", 2, 20), at("c", 3, 30)}, []string{"line (and b)", "c"}},
		{[]chart.Series{at("a", 1, 10), at("line", 1, 10, 2, 20)}, []string{"a", "line"}},
		{[]chart.Series{at("z", 0, 0), at("a", 1, 10), at("b", 1, 10)}, []string{"z", "a and b"}},
	} {
		var got []string
		for _, s := range merged(c.list) {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q; %q is right", got, c.want)
		}
	}
	for _, c := range []struct {
		a, b float64
		want bool
	}{{1000, 1004, true}, {1004, 1000, true}, {1000, 1005, false}, {0, 0, true}, {0, 1e-9, false},
		{-1000, -1004, true}, {-1000, 1000, false}, {0.5, 0.501, true}, {0.5, 0.503, false}} {
		if near(c.a, c.b) != c.want {
			t.Errorf("%v is near %v: %v", c.a, c.b, !c.want)
		}
	}
	o := bookedOutcome(t)
	for i := range o.Frontier {
		o.Frontier[i].Refused, o.Frontier[i].SpaceCV = 0, float64(i+1)
	}
	if got, want := styles(frontierFigure(o)[0]), []string{"0", "1", "2", "3", "4", "5"}; !slices.Equal(got, want) {
		t.Errorf("styles %v; %v is right", got, want)
	}
	o.Frontier = o.Frontier[:2]
	if got := marks(string(frontierFigure(o)[0].SVG)); !strings.Contains(got, "; mintco-perf: $7.90k") {
		t.Errorf("one weight is not drawn: %s", got)
	}
}

var styled = regexp.MustCompile(`class="[a-z ]*\b[sf]([0-9-]+)\b`)

// styles lists the styles of a figure's marks, in order.
func styles(f figure) []string {
	var list []string
	for _, m := range styled.FindAllStringSubmatch(string(f.SVG), -1) {
		list = append(list, m[1])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestPlanWear verifies that up to 24 drives have bars of their own, and that more become lines of sorted shares.
func TestPlanWear(t *testing.T) {
	for count, want := range map[int]string{24: "Wear at the end of service, and load",
		25: "Wear at the end of service, and load: drives sorted by each value"} {
		if f := wearFigures(paperOutcome(t, count)); len(f) != 1 || f[0].Caption != want {
			t.Errorf("%d drives: %s", count, f[0].Caption)
		}
	}
	if got, want := styles(wearFigures(paperOutcome(t, 25))[0]), []string{"0", "1", "2"}; !slices.Equal(got, want) {
		t.Errorf("styles %v; %v is right", got, want)
	}
}

// full is a writer that fails after its value's number of writes.
type full int

func (f *full) Write(text []byte) (int, error) {
	if *f--; *f < 0 {
		return 0, errors.New("no room")
	}
	return len(text), nil
}

// TestPlanOfNoRoom verifies that a write error at any point of a text is returned to the caller.
func TestPlanOfNoRoom(t *testing.T) {
	d := &drives.Difference{Inputs: []drives.InputDifference{{Name: "horizon"}},
		Workloads: []drives.PlaceDifference{{Workload: "w"}}}
	x := &drives.Explanation{Workload: "w", Choices: []drives.Choice{{Drive: "d"}}}
	for name, write := range map[string]func(w io.Writer) error{
		"plan":          func(w io.Writer) error { return WritePlanText(w, bookedOutcome(t), term.Style{}) },
		"plan by paper": func(w io.Writer) error { return WritePlanText(w, paperOutcome(t, 1), term.Style{}) },
		"page":          func(w io.Writer) error { return WritePlan(w, paperOutcome(t, 1), "test", "") },
		"difference":    func(w io.Writer) error { return WritePlanDifference(w, d, term.Style{}) },
		"none":          func(w io.Writer) error { return WritePlanDifference(w, &drives.Difference{}, term.Style{}) },
		"explanation":   func(w io.Writer) error { return WriteExplanationText(w, x, term.Style{}) },
		"sizing":        func(w io.Writer) error { return WriteSizingText(w, sized(), term.Style{}) },
		"sizing's page": func(w io.Writer) error { return WriteSizing(w, sized(), Study{}, runAt) },
	} {
		room := full(math.MaxInt)
		if err := write(&room); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all := math.MaxInt - int(room)
		for k := 0; k < all; k += max(1, all/20) {
			room := full(k)
			if err := write(&room); err == nil {
				t.Errorf("%s: cut off after %d of %d writes, and nothing is said", name, k, all)
			}
		}
	}
}

package report

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/internal/term"
	"farflash/planner/drives"
)

// TestPlanChanges verifies the relative changes of figures, including negative ones, such as the proceeds of used
// drives.
func TestPlanChanges(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want string
	}{
		{5, 5, ""}, {0, 0, ""}, {0, 5, "new"}, {100, 150, "+50.0 %"}, {100, 25, "-75.0 %"}, {100, 0, "-100.0 %"},
		{100, 300, "+200.0 %"},
		{-100, -150, "-50.0 %"}, {-100, -25, "+75.0 %"}, {-100, 0, "+100.0 %"}, {100, -100, "-200.0 %"},
		{-100, 100, "+200.0 %"}, {1, 1.0005, "+0.050 %"},
	} {
		if got := changeText(c.a, c.b); got != c.want {
			t.Errorf("from %v to %v: %q; %q is right", c.a, c.b, got, c.want)
		}
	}
}

// TestPlanDifference verifies the text of the differences between two plans.
func TestPlanDifference(t *testing.T) {
	d := &drives.Difference{Before: "a", After: "b", Objective: "calendar",
		Inputs: []drives.InputDifference{{Name: "horizon", Before: "5y", After: "3y"},
			{Of: "Intel", Name: "price", After: "$5"}},
		Sums: []drives.SumDifference{{Name: "TCO", Before: 7000, After: 14_000, Money: true},
			{Name: "GB written", Before: 12_345, After: 12_345.678}, {Name: "drives in use", Before: 0, After: 3}},
		Costs:  []drives.SumDifference{{Name: "Residual value", Before: -1000, After: -1500, Money: true}},
		Drives: []drives.CountDifference{{Model: "Intel", Before: 4, After: 3}},
	}
	text := func() string {
		var b strings.Builder
		if err := WritePlanDifference(&b, d, term.Style{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const head = `a compared with b, objective calendar

input         before  after
horizon       5y      3y
Intel: price  -       $5
`
	const sums = `
                  before    after    change
TCO               $7,000  $14,000  +100.0 %
GB written        12,345    12346  +0.0055 %
drives in use          0        3       new
  Residual value -$1,000  -$1,500   -50.0 %
  Intel                4        3   -25.0 %
`
	flat := func(s string) string {
		var lines []string
		for line := range strings.Lines(s) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		return strings.Join(lines, "\n")
	}
	if got, want := text(), head+sums+"\nno workload moves\n"; flat(got) != flat(want) {
		t.Errorf("%s\nis not\n%s", got, want)
	}
	d.Inputs, d.Workloads = d.Inputs[:1], []drives.PlaceDifference{{Workload: "w", Before: "y"}}
	if got := flat(text()); !strings.Contains(got, "\ninput before after\nhorizon 5y 3y\n") ||
		!strings.HasSuffix(got, "\nworkloads that move: 1\nworkload before after\nw y -") {
		t.Error(got)
	}
	d.Inputs, d.Workloads = nil, nil
	for i := range 42 {
		d.Workloads = append(d.Workloads, drives.PlaceDifference{Workload: fmt.Sprint("w", i), After: "x"})
	}
	if got := text(); strings.Contains(got, "input") ||
		!strings.HasPrefix(got, "a compared with b, objective calendar\n\n  ") ||
		!strings.Contains(flat(got), "\nworkloads that move: 42\nworkload before after\nw0 - x\n") ||
		!strings.HasSuffix(flat(got), "\nw39 - x\nand 2 more (see --json)") {
		t.Error(got)
	}
	d.Workloads = d.Workloads[:41]
	if got := text(); !strings.HasSuffix(flat(got), "\nw39 - x\nw40 - x") {
		t.Error(got)
	}
}

// TestPlanExplanation verifies the explanation of a workload's place: the head, the money's unit, and each drive's row.
func TestPlanExplanation(t *testing.T) {
	at := func(drive string, cost float64) drives.Choice {
		return drives.Choice{Drive: drive, CostPerGB: cost, WAF: 1.234, Lifetime: 365}
	}
	chosen, full := at("d1", 0.5), drives.Choice{Drive: "d9", Obstacle: "no space"}
	chosen.Chosen = true
	free := chosen
	free.CostPerGB = 0
	for _, c := range []struct {
		head string
		x    drives.Explanation
		rows string
	}{
		{"w: no drive can take it", drives.Explanation{Worse: math.NaN(), Choices: []drives.Choice{full}},
			"drive $/GB of the pool WAF there serves\nd9 no space"},
		{"w is on d1: no other drive can take it",
			drives.Explanation{Chosen: "d1", Worse: math.NaN(), Choices: []drives.Choice{chosen, full}},
			"drive $/GB of the pool WAF there serves\nd1 $0.5000 1.23 365 d chosen\nd9 no space"},
		{"w is on d1: d2 would cost the same",
			drives.Explanation{Chosen: "d1", Next: "d2", Worse: -4e-7,
				Choices: []drives.Choice{chosen, at("d2", 0.5)}},
			"drive $/GB of the pool WAF there serves\nd1 $0.5000 1.23 365 d chosen\nd2 $0.5000 1.23 365 d"},
		{"w is on d1, where it costs nothing; the next best is d2",
			drives.Explanation{Chosen: "d1", Next: "d2", Worse: math.Inf(1), Whole: true,
				Choices: []drives.Choice{free, at("d2", 0.5)}},
			"drive $ for the pool WAF there serves\nd1 $0 1.23 365 d chosen\nd2 $0.5000 1.23 365 d"},
		{"w is on d1: on the next best, d2, a GB written would cost 20.0 % more",
			drives.Explanation{Chosen: "d1", Next: "d2", Worse: 0.2, Choices: []drives.Choice{chosen, at("d2", 0.6)}},
			"drive $/GB of the pool WAF there serves\nd1 $0.5000 1.23 365 d chosen\nd2 $0.6000 1.23 365 d +20.0 %"},
		{"w is on d1: on the next best, d2, the pool would cost 10.0 % less",
			drives.Explanation{Chosen: "d1", Next: "d2", Worse: -0.1, Whole: true,
				Choices: []drives.Choice{chosen, at("d2", 0.45)}},
			"drive $ for the pool WAF there serves\nd1 $0.5000 1.23 365 d chosen\nd2 $0.4500 1.23 365 d -10.0 %"},
		{"w: no drive can take it",
			drives.Explanation{Worse: math.NaN(), Choices: []drives.Choice{at("d1", 0.5), at("d2", 0.6)}},
			"drive $/GB of the pool WAF there serves\nd1 $0.5000 1.23 365 d\nd2 $0.6000 1.23 365 d"},
	} {
		c.x.Workload = "w"
		var b strings.Builder
		if err := WriteExplanationText(&b, &c.x, term.Style{}); err != nil {
			t.Fatal(err)
		}
		head, rest, _ := strings.Cut(b.String(), "\n\n")
		var rows []string
		for line := range strings.Lines(rest) {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		}
		if head != c.head || strings.Join(rows, "\n") != c.rows {
			t.Errorf("%s\n%s\nis not\n%s\n%s", head, strings.Join(rows, "\n"), c.head, c.rows)
		}
	}
	for count, last := range map[int]string{15: "d14", 16: "d15", 17: "and 2 more"} {
		x := drives.Explanation{Workload: "w"}
		for i := range count {
			x.Choices = append(x.Choices, at(fmt.Sprint("d", i), 1))
		}
		var b strings.Builder
		if err := WriteExplanationText(&b, &x, term.Style{}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if got := lines[len(lines)-1]; !strings.HasPrefix(got, last) || len(lines) != 3+min(count, 16) {
			t.Errorf("%d drives: %d lines, the last %q", count, len(lines), got)
		}
	}
}

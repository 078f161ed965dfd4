package drives_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/planner/drives"
)

// TestWornOut verifies where the workloads of a worn-out drive go when money is counted per GB: to a drive that is
// there, to one bought for it, or nowhere, with the reason.
func TestWornOut(t *testing.T) {
	const heavy = "{name: heavy, write_gb_per_day: 5000, working_set_gb: 900, peak_iops: 10}"
	plan := func(groups, jobs string) *drives.Outcome {
		return solve(t, "objective: paper\nhorizon: 5y\ncosts: {electricity: 0}\ndrives: ["+strings.ReplaceAll(groups,
			"DRIVE", "model: Intel DC P3600 2TB, tbw: 4000, waf: 2, rated_waf: 2, afr: 0%, price: $1000")+
			"]\nworkloads: {list: ["+jobs+"]}\n", drives.Options{})
	}
	for name, c := range map[string]struct {
		groups, jobs string
		want         drives.Move
		unserved     bool
	}{
		"there": {"{DRIVE, name: x, count: 1}, {DRIVE, name: y, count: 1}", heavy,
			drives.Move{Day: 800, From: "x", To: "y", Copied: 900}, true},
		"bought": {"{DRIVE, name: x, up_to: 2}", heavy,
			drives.Move{Day: 800, From: "x #1", To: "x #2", Copied: 900, NeedsNewDrive: true}, true},
		"bought, listed first": {"{DRIVE, name: y, up_to: 1}, {DRIVE, name: x, count: 1}", heavy,
			drives.Move{Day: 800, From: "x", To: "y", Copied: 900, NeedsNewDrive: true}, true},
		"nowhere": {"{DRIVE, name: x, count: 1}", heavy, drives.Move{Day: 800, From: "x", Refused: "endurance"},
			true},
	} {
		o := plan(c.groups, c.jobs)
		if len(o.Moves) == 0 {
			t.Fatalf("%s: no moves", name)
		}
		got := o.Moves[0]
		c.want.Workload = "heavy"
		if math.Abs(got.Day-c.want.Day) > 1e-6 {
			t.Errorf("%s: on day %v; %v is right", name, got.Day, c.want.Day)
		}
		got.Day = c.want.Day
		if got != c.want {
			t.Errorf("%s: %+v; %+v is right", name, got, c.want)
		}
		if err := o.Unserved(); (err != nil) != c.unserved {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReviewMoves verifies that a move at a review is said to need a new drive only where one is bought for it.
func TestReviewMoves(t *testing.T) {
	const text = `
review: 1y
horizon: 4y
costs: {electricity: 0, moving: $1}
drives: [{model: Intel DC P3700 1.6TB, count: 1, price: $1000, afr: 1%}, {model: Micron 9200 PRO 7.68TB, name: big, BIG, price: $8000, afr: 30%}]
workloads: {list: [{name: a, write_gb_per_day: 10, working_set_gb: 900, peak_iops: 10, growth: 60%}MORE]}
`
	const early = ", {name: b, write_gb_per_day: 1, working_set_gb: 7000, peak_iops: 1, end_day: 365}"
	for name, c := range map[string]struct {
		big, more string
		need      bool
	}{
		"bought for it":          {"up_to: 1", "", true},
		"there, unused":          {"count: 1", "", false},
		"bought before, in use":  {"up_to: 1", early, false},
		"there before, in use":   {"count: 1", early, false},
		"two may be, one bought": {"up_to: 2", early, false},
	} {
		o := solve(t, strings.NewReplacer("BIG", c.big, "MORE", c.more).Replace(text), drives.Options{})
		if len(o.Moves) != 1 || o.Moves[0].Day != 365 || o.Moves[0].Workload != "a" ||
			!strings.HasPrefix(o.Moves[0].To, "big") || o.Moves[0].From != "Intel DC P3700 1.6TB" ||
			o.Moves[0].NeedsNewDrive != c.need {
			t.Errorf("%s: %+v", name, o.Moves)
		}
	}
}

// TestEveryPlan verifies that plans of somewhat more workloads than are always examined in every way still are, so that
// nothing is left open, and that those of more are not said to be.
func TestEveryPlan(t *testing.T) {
	for n, exact := range map[int]bool{13: true, 14: true, 19: false} {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("{name: w%d, write_gb_per_day: %d, working_set_gb: 9}", i, 1+i%2))
		}
		o := solve(t, "search: {steps: 100}\ndrives: [{model: Intel DC P3700 2TB, count: 1, price: $1000}]\n"+
			"workloads: {list: ["+strings.Join(list, ", ")+"]}\n", drives.Options{})
		if o.Exact != exact {
			t.Errorf("%d workloads: every plan was examined: %v", n, o.Exact)
		}
	}
}

// TestRemedy verifies that a plan with too few drives says how many more would be enough.
func TestRemedy(t *testing.T) {
	for n, want := range map[int]string{2: "(1 more Intel DC P3700 2TB would be enough)",
		3: "(2 more Intel DC P3700 2TB would be enough)", 5: "(4 more Intel DC P3700 2TB would be enough)",
		6: "(5 more Intel DC P3700 2TB would be enough)", 8: "(7 more Intel DC P3700 2TB would be enough)"} {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("{name: w%d, write_gb_per_day: 1, working_set_gb: 1500}", i))
		}
		p, err := drives.Load(source("drives: [{model: Intel DC P3700 2TB, count: 1, price: $1}]\nworkloads: {list: ["+
			strings.Join(list, ", ")+"]}\n"), nil)
		if err == nil {
			_, err = p.Solve(context.Background(), drives.Options{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d workloads: %v; %s is right", n, err, want)
		}
	}
}

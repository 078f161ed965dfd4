package waf

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/internal/golden"
	"farflash/internal/patience"
	"farflash/policy/ftl"
)

var update = flag.Bool("update", false, "write the table of docs/validation/waf.md, with FARFLASH_LONG")

// row is one comparison of the simulation with a closed form.
type row struct {
	name  string
	e     Experiment
	form  float64
	quick bool // run also without FARFLASH_LONG
}

// rows returns the acceptance table: every victim policy under uniform writes, and hot and cold data mixed and apart.
func rows(t *testing.T) []row {
	var all []row
	add := func(quick bool, p Policy, alpha float64, pages int, change func(*Experiment)) {
		e := DefaultExperiment()
		e.Policy, e.Alpha, e.Pages, e.Seed = p, alpha, pages, 7
		if p.Victim == ftl.Random || p.Choices == 2 {
			e.Measure = 12 // the victims' valid pages vary most
		}
		name := p.String()
		if change != nil {
			change(&e)
		}
		if e.Classes != nil {
			e.WarmUp = 10 // cold pages are slow to reach their blocks
		}
		var form float64
		var err error
		switch {
		case e.Classes == nil:
			form, err = p.WAF(alpha, pages)
			if p.Victim == ftl.FIFO {
				form = FIFO(alpha)
			}
		case e.Layout == Partitions:
			name = fmt.Sprintf("apart %g/%g", e.Classes[0].Writes, e.Classes[0].Space)
			form, _, err = SeparatedFIFO(alpha, e.Classes)
		default:
			name = fmt.Sprintf("mixed %g/%g", e.Classes[0].Writes, e.Classes[0].Space)
			form, err = MixedFIFO(alpha, e.Classes)
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Layout == SurvivorsApart {
			name += ", survivors apart"
		}
		all = append(all, row{name, e, form, quick})
	}
	for _, op := range []OverProvision{0.07, 0.12, 0.28} {
		alpha := op.Alpha()
		quick := op == 0.28
		add(quick, Policy{Victim: ftl.FIFO}, alpha, 64, nil)
		add(quick, Policy{Victim: ftl.Greedy}, alpha, 64, nil)
		add(false, Policy{Victim: ftl.Greedy}, alpha, 128, nil)
		add(false, Policy{Victim: ftl.Greedy}, alpha, 256, nil)
		add(quick, Policy{Victim: ftl.Random}, alpha, 64, nil)
		for _, d := range []int{2, 5, 10} {
			add(quick && d != 5, Policy{Victim: ftl.DChoices, Choices: d}, alpha, 64, nil)
		}
		add(quick, Policy{Victim: ftl.WindowedGreedy, Window: 0.25}, alpha, 64, nil)
		add(quick, Policy{Victim: ftl.CostBenefit}, alpha, 64, nil)
		add(quick, Policy{Victim: ftl.Greedy}, alpha, 64, func(e *Experiment) { e.Layout = SurvivorsApart })
		for _, hot := range [][2]float64{{.8, .2}, {.95, .05}} {
			classes := HotCold(hot[0], hot[1])
			quick := quick && hot[0] == .8
			add(quick, Policy{Victim: ftl.FIFO}, alpha, 64, func(e *Experiment) { e.Classes = classes })
			add(quick, Policy{Victim: ftl.FIFO}, alpha, 64,
				func(e *Experiment) { e.Classes, e.Layout = classes, Partitions })
		}
	}
	return all
}

// TestAcceptance simulates every row of the table and verifies that it is within 1 % of its closed form. Unless
// FARFLASH_LONG is set, it runs only most of the rows at 28 %.
func TestAcceptance(t *testing.T) {
	const page, table = "../../../docs/validation/waf.md", "waf-acceptance"
	held := golden.Lines(t, page, table)
	var order []string
	cells := map[string][]string{}
	long := patience.Long(t)
	for _, r := range rows(t) {
		if !long && !r.quick {
			continue
		}
		got, err := Simulate(r.e)
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		off := got.WAF/r.form - 1
		name := golden.Row(r.name, fmt.Sprint(r.e.Pages))
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
		cell := fmt.Sprintf(" %.4f | %.4f | %+.2f %% |", got.WAF, r.form, 100*off)
		cells[name] = append(cells[name], cell)
		if !long && !slices.ContainsFunc(held,
			func(l string) bool { return strings.HasPrefix(l, name) && strings.HasSuffix(l, cell) }) {
			t.Errorf("%s has no row %s with%s at its end", page, name, cell)
		}
		if !(math.Abs(off) < 0.01) {
			t.Errorf("%s at alpha %v, %d pages: simulated %v, closed form %v", r.name, r.e.Alpha, r.e.Pages, got.WAF,
				r.form)
		}
	}
	if !long {
		return
	}
	lines := golden.Head("policy", ">pages", ">7 %: simulated", ">form", ">off by", ">12 %: simulated", ">form",
		">off by", ">28 %: simulated", ">form", ">off by")
	for _, name := range order {
		lines = append(lines, name+strings.Join(cells[name], ""))
	}
	golden.Table(t, page, table, "seed 7", lines, *update)
}

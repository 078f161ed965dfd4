package report

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"farflash/internal/term"
	"farflash/planner/drives"
)

// WritePlanDifference prints the differences of a second plan.
func WritePlanDifference(w io.Writer, d *drives.Difference, style term.Style) error {
	fmt.Fprintf(w, "%s compared with %s, objective %s\n", style.Bold(d.Before), style.Bold(d.After), d.Objective)
	if len(d.Inputs) > 0 {
		fmt.Fprintln(w)
		t := term.NewTable(term.Left("input"), term.Left("before"), term.Left("after"))
		for _, x := range d.Inputs {
			name := x.Name
			if x.Of != "" {
				name = x.Of + ": " + name
			}
			t.Row(name, dash(x.Before), dash(x.After))
		}
		if err := t.Write(w, style); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	t := term.NewTable(term.Left(""), term.Right("before"), term.Right("after"), term.Right("change"))
	for i, list := range [][]drives.SumDifference{d.Sums, d.Costs} {
		for _, x := range list {
			text := func(v float64) string {
				if v == math.Trunc(v) {
					return term.Count(v)
				}
				return term.Significant(v, 5)
			}
			if x.Money {
				text = term.Money
			}
			name := x.Name
			if i == 1 {
				name = "  " + name
			}
			t.Row(name, text(x.Before), text(x.After), changeText(x.Before, x.After))
		}
	}
	for _, x := range d.Drives {
		t.Row("  "+x.Model, strconv.Itoa(x.Before), strconv.Itoa(x.After),
			changeText(float64(x.Before), float64(x.After)))
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	if len(d.Workloads) == 0 {
		_, err := fmt.Fprintln(w, "\nno workload moves")
		return err
	}
	fmt.Fprintf(w, "\nworkloads that move: %d\n", len(d.Workloads))
	t = term.NewTable(term.Left("workload"), term.Left("before"), term.Left("after"))
	const most = 40
	for i, x := range d.Workloads {
		if i == most && len(d.Workloads) > most+1 {
			t.Row(fmt.Sprintf("and %d more (see --json)", len(d.Workloads)-i))
			break
		}
		t.Row(x.Workload, dash(x.Before), dash(x.After))
	}
	return t.Write(w, style)
}

// dash replaces an empty text.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// changeText returns the relative change of a figure, up or down; the figure may be negative, such as the proceeds of
// used drives.
func changeText(a, b float64) string {
	switch {
	case a == b:
		return ""
	case a == 0:
		return "new"
	case b > a:
		return "+" + term.Percent((b-a)/math.Abs(a))
	}
	return "-" + term.Percent((a-b)/math.Abs(a))
}

package report

import (
	"cmp"
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"farflash/internal/term"
	"farflash/planner/drives"
	"farflash/report/chart"
)

//go:embed page/plan.tmpl
var planTemplate string

// WritePlan writes a self-contained page about a plan: its cost by item, the contents and wear of each drive, cost
// against balance, and the sensitivity to prices. command is the command line that made it; it may be empty.
func WritePlan(w io.Writer, o *drives.Outcome, version, command string) error {
	p := newStudyPage(Study{Version: version, Command: command})
	a := o.Assessment
	p.Title = o.Plan.Name
	p.Summary = fmt.Sprintf("%s, by %s.", placed(a), judgedBy(o))
	if o.Plan.Description != "" {
		p.Summary = sentence(o.Plan.Description) + " " + p.Summary
	}
	p.Facts = []fact{{"TCO", term.Money(o.Cost)}, {"Per GB written", perGB(o)}, {"Per TBe-month", perTBe(o)}}
	if o.Proved() {
		p.Facts = append(p.Facts, fact{"Above the proven bound", fmt.Sprintf("%.2f %%", 100*o.Gap())})
	}
	for _, x := range o.Placements {
		if x.Refused != "" {
			p.Failed = append(p.Failed, remark{x.Workload, "no drive", x.Refused})
		}
	}
	sums := &table{Head: []heading{{"", true}, {Title: ""}, {"", true}}}
	for _, x := range planSums(o) {
		sums.Rows = append(sums.Rows,
			[]cell{{Text: capital(x[0]), Class: "text name"}, {Text: x[1]}, {Text: x[2], Class: "text"}})
	}
	p.Sections = append(p.Sections,
		section{ID: "cost", Title: "Cost", Table: sums,
			Figures: []figure{{Caption: "Cost by item", SVG: waterfall(o), Note: costNote(o)}}},
		section{ID: "drives", Title: "Drives", Figures: wearFigures(o), Table: driveRows(o)})
	if o.Calendar != nil {
		p.Sections = append(p.Sections, calendarSection(o))
	}
	if len(o.Moves) > 0 {
		intro := "When a drive wears out before its horizon, its workloads move to where a gigabyte then costs least."
		if o.Calendar != nil {
			intro = "Workloads that move at reviews, because that lowers the plan's cost."
		}
		p.Sections = append(p.Sections, section{ID: "moves", Title: "Moves", Intro: intro, Table: moveRows(o)})
	}
	if f := frontierFigure(o); f != nil {
		intro := "Each algorithm places the same workloads on the same drives as they arrive."
		if o.FrontierMore > 0 {
			intro = fmt.Sprintf(
				"Each algorithm places the same workloads as they arrive. Without hindsight they need more drives "+
					"than the plan has: %d in all.", len(o.Drives)+o.FrontierMore)
		}
		p.Sections = append(p.Sections,
			section{ID: "frontier", Title: "Cost against balance", Intro: intro, Figures: f, Table: frontierRows(o)})
	}
	if f := tornado(o); f != nil {
		p.Sections = append(p.Sections,
			section{ID: "sensitivity", Title: "Sensitivity",
				Intro: "Each bar shows a new plan with one input changed; point at it for the cost of the present " +
					"placement. Flash prices can move by half within a quarter: check the first bars before " +
					"trusting the total.", Figures: f})
	}
	p.Sections = append(p.Sections, section{ID: "assumptions", Title: "Assumptions", Table: assumptionRows(o)})
	p.Sections = append(p.Sections, section{ID: "placements", Title: "Placements", Table: placementRows(o)})
	t, err := template.New("page").Parse(pageTemplate)
	if err == nil {
		t, err = t.New("plan").Parse(planTemplate)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return t.Execute(w, p)
}

// costNote explains how failures are counted.
func costNote(o *drives.Outcome) string {
	if o.Calendar != nil {
		return "Failures are expected values: drives x AFR x years. After the warranty a replacement costs its " +
			"price. The residual value of used drives is subtracted."
	}
	return "Failures are expected values: drives x AFR x years x price after the warranty. They are not part of the " +
		"TCO."
}

// calendarSection shows the cost by year and the dates of purchases.
func calendarSection(o *drives.Outcome) section {
	s := section{ID: "calendar", Title: "Calendar", Intro: "Payments in each year of the plan."}
	var years []string
	for y := range o.Calendar.Years {
		years = append(years, strconv.Itoa(y+1))
	}
	var parts []chart.Part
	for i, item := range calendarItems(o.Calendar) {
		part := chart.Part{Name: item.String(), Style: i}
		for y := range o.Calendar.Years {
			part.V = append(part.V, o.Calendar.Years[y][item])
		}
		parts = append(parts, part)
	}
	s.Figures = []figure{{Wide: true, Caption: "Cost per year", SVG: broad(func(width float64) string {
		return chart.Groups(chart.GroupChart{Frame: chart.Frame{Title: "Cost per year", Width: width, Height: 330},
			XLabel: "Year", Labels: years,
			Y: chart.Axis{Label: "Cost", Unit: chart.Dollars, FromZero: true}, Parts: parts})
	})}}
	if days, more := purchases(o); len(days) > 0 {
		s.Figures[0].Note = "Purchases: " + strings.Join(days, "; ")
		if more > 0 {
			s.Figures[0].Note += fmt.Sprintf("; and %d more days", more)
		}
		s.Figures[0].Note += "."
	}
	s.Table = &table{Head: []heading{{"Year", true}}}
	for _, item := range calendarItems(o.Calendar) {
		s.Table.Head = append(s.Table.Head, heading{Title: item.String()})
	}
	s.Table.Head = append(s.Table.Head, heading{Title: "All"})
	for _, row := range calendarRows(o) {
		cells := []cell{{Text: row[0], Class: "text name"}}
		for _, v := range row[1:] {
			cells = append(cells, cell{Text: v})
		}
		s.Table.Rows = append(s.Table.Rows, cells)
	}
	return s
}

// waterfall draws the items of the cost, each starting at the end of the one above.
func waterfall(o *drives.Outcome) template.HTML {
	c := chart.BarChart{Frame: chart.Frame{Title: "Cost by item"},
		X: chart.Axis{Label: "Cost", Unit: chart.Dollars, FromZero: true}, Total: true}
	sum, part := 0.0, chart.Part{}
	add := func(name string, from, v float64) {
		c.Rows, c.From, part.V = append(c.Rows, name), append(c.From, from), append(part.V, v)
	}
	for i, s := range o.Slices {
		if i == len(o.Slices)-1 && o.Calendar == nil {
			add("TCO", 0, o.Cost)
		}
		if s.Money > 0 {
			add(s.Name, sum, s.Money)
		} else if s.Money < 0 { // a credit
			add(s.Name, sum+s.Money, -s.Money)
		}
		sum += s.Money
	}
	if o.Calendar != nil {
		add("TCO", 0, sum)
	} else {
		add("With failures", 0, sum)
	}
	c.Parts = []chart.Part{part}
	return bothBars(c)
}

// mostPlanBars limits the drives that have a bar each.
const mostPlanBars = 24

func wearFigures(o *drives.Outcome) []figure {
	var wear, space, iops []float64
	var labels []string
	for i := range o.Drives {
		s := &o.Drives[i].State
		wear, space, iops, labels = append(wear, s.WearAtDeath), append(space, s.SpaceShare),
			append(iops, s.IOPSShare), append(labels, strconv.Itoa(i+1))
	}
	y := chart.Axis{Label: "Share", Unit: chart.Fractions}
	if len(labels) <= mostPlanBars {
		return []figure{{Wide: true, Caption: "Wear at the end of service, and load",
			Note: "Drives are numbered as in the table.",
			SVG: broad(func(width float64) string {
				return chart.Groups(
					chart.GroupChart{Frame: chart.Frame{Title: "Wear and load of each drive", Width: width,
						Height: 330}, XLabel: "Drive", Labels: labels, Y: y,
						Parts: []chart.Part{{Name: "Wear", V: wear}, {Name: "Space", Style: 1, V: space},
							{Name: "IOPS", Style: 2, V: iops}}})
			})}}
	}
	// Too many drives for bars: draw each value sorted.
	var out []chart.Series
	for i, x := range []struct {
		name string
		v    []float64
	}{{"Wear", wear}, {"Space", space}, {"IOPS", iops}} {
		v := slices.Clone(x.v)
		slices.Sort(v)
		share := make([]float64, len(v))
		for k := range share {
			share[k] = (float64(k) + 0.5) / float64(len(v))
		}
		out = append(out, chart.Series{Name: x.name, Style: i, X: share, Y: v})
	}
	return []figure{{Wide: true, Caption: "Wear at the end of service, and load: drives sorted by each value",
		SVG: broad(func(width float64) string {
			return chart.Lines(chart.LineChart{Frame: chart.Frame{Title: "Wear and load of drives", Width: width,
				Height: 330}, X: chart.Axis{Label: "Share of the drives", Unit: chart.Fractions}, Y: y, Series: out})
		})}}
}

func driveRows(o *drives.Outcome) *table {
	t := &table{Full: true,
		Head: []heading{{Title: "#"}, {"Drive", true}, {Title: "Workloads"}, {Title: "GB/day"}, {Title: "Sequential"},
			{Title: "WAF"}, {Title: "Space"}, {Title: "IOPS"}, {Title: "Serves"},
			{"Until", true}, {Title: "Wear"}, {Title: "Cost"}, {Title: "Per GB"}, {"Holds", true}}}
	for i := range o.Drives {
		d := &o.Drives[i]
		s := &d.State
		per := "\u2013"
		if s.Data > 0 {
			per = term.Money(s.Cost / s.Data)
		}
		t.Rows = append(t.Rows,
			[]cell{{Text: strconv.Itoa(i + 1)}, {Text: d.Name, Class: "text name"}, {Text: strconv.Itoa(s.Workloads)},
				{Text: term.Significant(s.WriteRate, 4)}, {Text: term.Percent(s.Sequential)},
				{Text: fmt.Sprintf("%.2f", s.WAF)}, {Text: term.Percent(s.SpaceShare)},
				{Text: term.Percent(s.IOPSShare)},
				{Text: daysText(s.Lifetime)}, {Text: until(d), Class: "text"}, {Text: term.Percent(s.WearAtDeath)},
				{Text: term.Money(s.Cost)}, {Text: per}, {Text: names(d.Workloads, 6), Class: "text"}})
	}
	return t
}

func moveRows(o *drives.Outcome) *table {
	t := &table{Head: []heading{{Title: "Day"}, {"Workload", true}, {"From", true}, {"To", true}, {Title: "Copied"}}}
	for i := range o.Moves {
		m := &o.Moves[i]
		t.Rows = append(t.Rows,
			[]cell{{Text: fmt.Sprintf("%.0f", m.Day)}, {Text: m.Workload, Class: "text name"},
				{Text: m.From, Class: "text"}, {Text: moveTo(m), Class: "text"}, {Text: gigabytes(m.Copied)}})
	}
	return t
}

// assumptionRows lists every figure that the answer rests on.
func assumptionRows(o *drives.Outcome) *table {
	t := &table{Head: []heading{{"Of", true}, {"What", true}, {"Value", true}, {"Source", true}}}
	for _, x := range o.Plan.Assumptions() {
		of := x.Of
		if of == "" {
			of = "plan"
		}
		t.Rows = append(t.Rows,
			[]cell{{Text: of, Class: "text name"}, {Text: x.Name, Class: "text"}, {Text: x.Value, Class: "text"},
				{Text: x.Source, Class: "text"}})
	}
	return t
}

// frontierFigure draws cost against the imbalance of space.
func frontierFigure(o *drives.Outcome) []figure {
	if len(o.Frontier) == 0 {
		return nil
	}
	var series []chart.Series
	var x, y []float64
	for _, p := range o.Frontier {
		if p.Weighted && p.Refused == 0 {
			x, y = append(x, p.SpaceCV), append(y, p.Cost)
		}
	}
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	perf := chart.Series{Name: "mintco-perf", Style: 1}
	for _, i := range order {
		perf.X, perf.Y = append(perf.X, x[i]), append(perf.Y, y[i])
	}
	if len(perf.X) > 0 {
		series = append(series, perf)
	}
	style := 2
	for _, p := range o.Frontier {
		switch {
		case p.Weighted || p.Refused > 0:
		case p.Name == "this plan":
			series = append(series, chart.Series{Name: p.Name, Style: 0, X: []float64{p.SpaceCV}, Y: []float64{p.Cost}})
		case p.Name == "mintco-v3" || p.Name == "min-rate" || p.Name == "min-waf" || p.Name == "max-rem-cycle":
			series = append(series,
				chart.Series{Name: p.Name, Style: style, X: []float64{p.SpaceCV}, Y: []float64{p.Cost}})
			style++
		}
	}
	unit := moneyUnit(o)
	return []figure{{Wide: true, Caption: unit + " against imbalance",
		Note: "Lower left is better. The line of mintco-perf runs over weights of balance from 0 to 10 times the " +
			"paper's.",
		SVG: broad(func(width float64) string {
			return chart.Lines(chart.LineChart{Frame: chart.Frame{Title: unit + " against the imbalance of space",
				Width: width, Height: 330}, X: chart.Axis{Label: "Coefficient of variation of used space"},
				Y: chart.Axis{Label: unit, Unit: chart.Dollars}, Series: merged(series)})
		})}}
}

// moneyUnit names the objective of a plan: see drives.Outcome.Objective.
func moneyUnit(o *drives.Outcome) string {
	if o.Calendar != nil || !(o.Data > 0) {
		return "TCO"
	}
	return "Cost per GB written"
}

// merged combines points that coincide under one name, because one would hide the other.
func merged(series []chart.Series) []chart.Series {
	var out []chart.Series
	for _, s := range series {
		same := -1
		for i := range out {
			for k := range out[i].X {
				if len(s.X) == 1 && near(s.X[0], out[i].X[k]) && near(s.Y[0], out[i].Y[k]) {
					same = i
				}
			}
		}
		switch {
		case same >= 0 && len(out[same].X) > 1:
			out[same].Name += " (and " + s.Name + ")"
			continue
		case same >= 0:
			out[same].Name += " and " + s.Name
			continue
		}
		out = append(out, s)
	}
	return out
}

// near reports whether two numbers are indistinguishable in a chart.
func near(a, b float64) bool { return math.Abs(a-b) <= 0.004*math.Max(math.Abs(a), math.Abs(b)) }

func frontierRows(o *drives.Outcome) *table {
	t := &table{Head: []heading{{"Algorithm", true}, {Title: moneyUnit(o)}, {Title: "CV of space"},
		{Title: "CV of IOPS"}, {Title: "Refused"}}}
	for _, p := range o.Frontier {
		t.Rows = append(t.Rows,
			[]cell{{Text: p.Name, Class: "text name"}, {Text: term.Money(p.Cost)},
				{Text: fmt.Sprintf("%.3f", p.SpaceCV)}, {Text: fmt.Sprintf("%.3f", p.IOPSCV)},
				{Text: strconv.Itoa(p.Refused)}})
	}
	return t
}

// tornado draws the effect of each input on a new plan, largest first.
func tornado(o *drives.Outcome) []figure {
	if len(o.Effects) == 0 || o.Objective() == 0 { // shares of 0 are undefined
		return nil
	}
	rows, note := effectRows(o)
	c := chart.ForestChart{Frame: chart.Frame{Title: "Cost when one input changes"},
		X: chart.Axis{Label: moneyUnit(o) + " relative to this plan"}, Zero: 1, Rows: rows}
	return []figure{{Wide: true, Caption: moneyUnit(o) + ", relative to this plan", Note: note, SVG: forest(c)}}
}

// effectRows returns the effect of each input as a ratio to the plan's objective, and a note on inputs for which no
// plan is possible.
func effectRows(o *drives.Outcome) (rows []chart.ForestRow, note string) {
	base := o.Objective()
	for _, e := range o.Effects {
		switch {
		case e.AtLow == 0 && e.AtHigh == 0:
			note += fmt.Sprintf("%s at %s or %s: no plan is possible. ", e.Name, e.Low, e.High)
			continue
		case e.AtLow == 0:
			note += fmt.Sprintf("%s at %s: no plan is possible. ", e.Name, e.Low)
		case e.AtHigh == 0:
			note += fmt.Sprintf("%s at %s: no plan is possible. ", e.Name, e.High)
		}
		low, high := e.AtLow/base, e.AtHigh/base
		// A side without a plan has no bar.
		least, most := min(low, high), max(low, high)
		if least == 0 {
			least, most = min(1, most), max(1, most)
		}
		side := func(at string, ratio, cost, held float64) (short, long string) {
			if ratio == 0 {
				return at + ": none", at + ": no plan is possible"
			}
			return fmt.Sprintf("%s: x%.3f", at, ratio),
				fmt.Sprintf("%s: %s; the present placement %s", at, term.Money(cost), heldAt(held))
		}
		lowShort, lowLong := side(e.Low, low, e.AtLow, e.HeldLow)
		highShort, highLong := side(e.High, high, e.AtHigh, e.HeldHigh)
		rows = append(rows, chart.ForestRow{Name: e.Name, Mean: 1, Low: least, High: most,
			Text: lowShort + "; " + highShort, Title: e.Name + "\n" + lowLong + "\n" + highLong})
	}
	return rows, note
}

// heldAt formats the cost of the present placement.
func heldAt(cost float64) string {
	if cost == 0 {
		return "would not fit"
	}
	return term.Money(cost)
}

func placementRows(o *drives.Outcome) *table {
	t := &table{Head: []heading{{"Workload", true}, {"Drive", true}, {Title: "GB/day"}, {Title: "Sequential"},
		{Title: "Space"}, {Title: "IOPS"}, {Title: "Arrives"}}}
	const most = 500
	jobs := o.Plan.Jobs()
	for i, x := range o.Placements {
		if i == most {
			t.Caption = fmt.Sprintf("The first %d of %d; placements.csv lists all", most, len(o.Placements))
			break
		}
		w := &jobs[i]
		where := x.Drive
		if where == "" {
			where = "none: " + x.Refused
		}
		t.Rows = append(t.Rows,
			[]cell{{Text: x.Workload, Class: "text name"}, {Text: where, Class: "text"},
				{Text: term.Significant(w.WriteRate, 4)}, {Text: term.Percent(w.Sequential)},
				{Text: gigabytes(w.WorkingSet)},
				{Text: term.Count(w.PeakIOPS)}, {Text: fmt.Sprintf("%.0f", w.Arrival)}})
	}
	return t
}

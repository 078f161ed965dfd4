package report

import (
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"

	"farflash/internal/term"
	"farflash/planner/drives"
	"farflash/report/chart"
)

//go:embed page/plan.tmpl
var planTemplate string

// WritePlan writes a self-contained page about a plan: what it costs and of what, which drive holds and wears what, cost against
// balance, and what prices do to it. Command is what made it; it may be empty.
func WritePlan(w io.Writer, o *drives.Outcome, version, command string) error {
	p := newStudyPage(Study{Version: version, Command: command})
	a := o.Assessment
	p.Title = o.Plan.Name
	p.Summary = fmt.Sprintf("%s, by %s.", placed(a), o.Plan.Algorithm)
	if o.Plan.Description != "" {
		p.Summary = sentence(o.Plan.Description) + " " + p.Summary
	}
	p.Facts = []fact{{"TCO", term.Money(o.Cost)}, {"A GB written", "$" + term.Significant(o.CostPerGB(), 4)}, {"TBe and month", term.Money(o.PerMonth)}}
	if o.Bound > 0 {
		p.Facts = append(p.Facts, fact{"Above the proven bound", fmt.Sprintf("%.2f %%", 100*o.Gap())})
	}
	for _, x := range o.Placements {
		if x.Refused != "" {
			p.Failed = append(p.Failed, remark{x.Workload, "refused", "for " + x.Refused})
		}
	}
	sums := &table{Head: []heading{{"", true}, {Title: ""}, {"", true}}}
	for _, x := range planSums(o) {
		sums.Rows = append(sums.Rows, []cell{{Text: capital(x[0]), Class: "text name"}, {Text: x[1]}, {Text: x[2], Class: "text"}})
	}
	p.Sections = append(p.Sections,
		section{ID: "cost", Title: "Cost", Table: sums, Figures: []figure{{Caption: "What the money is for", SVG: svg(waterfall(o)), Note: "Failures are expected values, members x AFR x years x price after the warranty, and are not part of the TCO above them."}}},
		section{ID: "drives", Title: "Drives", Figures: wearFigures(o), Table: driveRows(o)})
	if len(o.Moves) > 0 {
		p.Sections = append(p.Sections, section{ID: "moves", Title: "Moves", Intro: "When a drive is worn out before its horizon, its workloads go where a gigabyte then costs least.", Table: moveRows(o)})
	}
	if f := frontierFigure(o); f != nil {
		intro := "The same workloads placed on the same drives by each algorithm as they arrive."
		if o.FrontierMore > 0 {
			intro = fmt.Sprintf("The same workloads placed by each algorithm as they arrive, on more drives than the plan has, %d in all: without hindsight they need them.", len(o.Drives)+o.FrontierMore)
		}
		p.Sections = append(p.Sections, section{ID: "frontier", Title: "Cost against balance", Intro: intro, Figures: f, Table: frontierRows(o)})
	}
	if f := tornado(o); f != nil {
		p.Sections = append(p.Sections, section{ID: "sensitivity", Title: "Sensitivity", Intro: "One input changed at a time, every workload left where it is. Prices of flash move by half within a quarter: look at the first bars before you trust the sum.", Figures: f})
	}
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

// waterfall draws the cost's addends, each from where the one above ends.
func waterfall(o *drives.Outcome) string {
	c := chart.BarChart{Frame: chart.Frame{Title: "What the money is for"}, X: chart.Axis{Label: "Money", FromZero: true}, Total: true}
	sum, part := 0.0, chart.Part{}
	add := func(name string, from, v float64) {
		c.Rows, c.From, part.V = append(c.Rows, name), append(c.From, from), append(part.V, v)
	}
	for i, s := range o.Slices {
		if i == len(o.Slices)-1 {
			add("TCO", 0, o.Cost)
		}
		if s.Money > 0 {
			add(s.Name, sum, s.Money)
		}
		sum += s.Money
	}
	add("With failures", 0, sum)
	c.Parts = []chart.Part{part}
	return chart.Bars(c)
}

// mostPlanBars is how many drives have a bar of their own.
const mostPlanBars = 24

func wearFigures(o *drives.Outcome) []figure {
	var wear, space, iops []float64
	var labels []string
	for i := range o.Drives {
		s := &o.Drives[i].State
		wear, space, iops, labels = append(wear, s.WearAtDeath), append(space, s.SpaceShare), append(iops, s.IOPSShare), append(labels, strconv.Itoa(i+1))
	}
	y := chart.Axis{Label: "Share", Unit: chart.Fractions}
	if len(labels) <= mostPlanBars {
		frame := chart.Frame{Title: "Wear and load of each drive", Width: 1310, Height: 330}
		return []figure{{Wide: true, Caption: "Wear at the end of service, and load", Note: "Drives are numbered as in the table.",
			SVG: svg(chart.Groups(chart.GroupChart{Frame: frame, XLabel: "Drive", Labels: labels, Y: y, Parts: []chart.Part{{Name: "Wear", V: wear}, {Name: "Space", Style: 1, V: space}, {Name: "IOPS", Style: 2, V: iops}}}))}}
	}
	// Sorted, because nobody reads a thousand bars.
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
	return []figure{{Wide: true, Caption: "Wear at the end of service, and load, drives sorted by each",
		SVG: svg(chart.Lines(chart.LineChart{Frame: chart.Frame{Title: "Wear and load of drives", Width: 1310, Height: 330}, X: chart.Axis{Label: "Share of the drives", Unit: chart.Fractions}, Y: y, Series: out}))}}
}

func driveRows(o *drives.Outcome) *table {
	t := &table{Full: true, Head: []heading{{Title: "#"}, {"Drive", true}, {Title: "Workloads"}, {Title: "GB a day"}, {Title: "Sequential"}, {Title: "WAF"}, {Title: "Space"}, {Title: "IOPS"}, {Title: "Serves"},
		{"Until", true}, {Title: "Wear"}, {Title: "Cost"}, {Title: "$/GB"}, {"Holds", true}}}
	for i := range o.Drives {
		d := &o.Drives[i]
		s := &d.State
		per := "\u2013"
		if s.Data > 0 {
			per = term.Significant(s.Cost/s.Data, 3)
		}
		t.Rows = append(t.Rows, []cell{{Text: strconv.Itoa(i + 1)}, {Text: d.Name, Class: "text name"}, {Text: strconv.Itoa(s.Workloads)}, {Text: term.Significant(s.WriteRate, 4)}, {Text: term.Percent(s.Sequential)},
			{Text: fmt.Sprintf("%.2f", s.WAF)}, {Text: term.Percent(s.SpaceShare)}, {Text: term.Percent(s.IOPSShare)}, {Text: daysText(s.Lifetime)}, {Text: d.EndsBy, Class: "text"}, {Text: term.Percent(s.WearAtDeath)},
			{Text: term.Money(s.Cost)}, {Text: per}, {Text: names(d.Workloads, 6), Class: "text"}})
	}
	return t
}

func moveRows(o *drives.Outcome) *table {
	t := &table{Head: []heading{{Title: "Day"}, {"Workload", true}, {"From", true}, {"To", true}, {Title: "Copied"}}}
	for i := range o.Moves {
		m := &o.Moves[i]
		t.Rows = append(t.Rows, []cell{{Text: fmt.Sprintf("%.0f", m.Day)}, {Text: m.Workload, Class: "text name"}, {Text: m.From, Class: "text"}, {Text: moveTo(m), Class: "text"}, {Text: gigabytes(m.Copied)}})
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
			x, y = append(x, p.SpaceCV), append(y, p.CostPerGB)
		}
	}
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if x[a] < x[b] {
			return -1
		}
		if x[a] > x[b] {
			return 1
		}
		return 0
	})
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
			series = append(series, chart.Series{Name: p.Name, Style: 0, X: []float64{p.SpaceCV}, Y: []float64{p.CostPerGB}})
		case p.Name == "mintco-v3" || p.Name == "min-rate" || p.Name == "min-waf" || p.Name == "max-rem-cycle":
			series = append(series, chart.Series{Name: p.Name, Style: style, X: []float64{p.SpaceCV}, Y: []float64{p.CostPerGB}})
			style++
		}
	}
	return []figure{{Wide: true, Caption: "Money a GB against imbalance", Note: "Lower left is better. mintco-perf is drawn with balance weighed 0 to 10 times as heavily as the paper does.",
		SVG: svg(chart.Lines(chart.LineChart{Frame: chart.Frame{Title: "Money a GB against the imbalance of space", Width: 1310, Height: 330}, X: chart.Axis{Label: "Coefficient of variation of used space"},
			Y: chart.Axis{Label: "Money a GB written"}, Series: series}))}}
}

func frontierRows(o *drives.Outcome) *table {
	t := &table{Head: []heading{{"Algorithm", true}, {Title: "$/GB"}, {Title: "CV of space"}, {Title: "CV of IOPS"}, {Title: "Refused"}}}
	for _, p := range o.Frontier {
		t.Rows = append(t.Rows, []cell{{Text: p.Name, Class: "text name"}, {Text: term.Significant(p.CostPerGB, 4)}, {Text: fmt.Sprintf("%.3f", p.SpaceCV)}, {Text: fmt.Sprintf("%.3f", p.IOPSCV)}, {Text: strconv.Itoa(p.Refused)}})
	}
	return t
}

// tornado draws what each input does, the most first.
func tornado(o *drives.Outcome) []figure {
	if len(o.Effects) == 0 {
		return nil
	}
	base := o.CostPerGB()
	c := chart.ForestChart{Frame: chart.Frame{Title: "What inputs do to the cost a gigabyte", Width: 1310, Height: chart.ForestHeight(len(o.Effects))}, X: chart.Axis{Label: "Money a GB over this plan's"}, Zero: 1}
	note := ""
	for _, e := range o.Effects {
		if e.AtLow == 0 || e.AtHigh == 0 {
			note += fmt.Sprintf("%s, %s or %s: the placement would not hold. ", e.Name, e.Low, e.High)
			continue
		}
		low, high := e.AtLow/base, e.AtHigh/base
		c.Rows = append(c.Rows, chart.ForestRow{Name: e.Name, Mean: 1, Low: min(low, high), High: max(low, high), Text: fmt.Sprintf("%s: x%.3f, %s: x%.3f", e.Low, low, e.High, high),
			Title: fmt.Sprintf("%s\n%s: %s $/GB\n%s: %s $/GB", e.Name, e.Low, term.Significant(e.AtLow, 4), e.High, term.Significant(e.AtHigh, 4))})
	}
	return []figure{{Wide: true, Caption: "Money a GB, relative to this plan", Note: note, SVG: svg(chart.Forest(c))}}
}

func placementRows(o *drives.Outcome) *table {
	t := &table{Head: []heading{{"Workload", true}, {"Drive", true}, {Title: "GB a day"}, {Title: "Sequential"}, {Title: "Space"}, {Title: "IOPS"}, {Title: "Arrives"}}}
	const most = 500
	jobs := o.Plan.Jobs()
	for i, x := range o.Placements {
		if i == most {
			t.Caption = fmt.Sprintf("The first %d of %d; placements.csv has all", most, len(o.Placements))
			break
		}
		w := &jobs[i]
		where := x.Drive
		if where == "" {
			where = "refused for " + x.Refused
		}
		t.Rows = append(t.Rows, []cell{{Text: x.Workload, Class: "text name"}, {Text: where, Class: "text"}, {Text: term.Significant(w.WriteRate, 4)}, {Text: term.Percent(w.Sequential)}, {Text: gigabytes(w.WorkingSet)},
			{Text: term.Count(w.PeakIOPS)}, {Text: fmt.Sprintf("%.0f", w.Arrival)}})
	}
	return t
}

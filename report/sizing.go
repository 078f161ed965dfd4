package report

import (
	"fmt"
	"io"
	"slices"

	"farflash/internal/term"
	"farflash/planner/objects"
	"farflash/report/chart"
)

// WriteSizing writes a page about the search for a cluster: the chosen design, cost and percentile against the number
// of nodes, all options, and the runs. place returns the path of a run.
func WriteSizing(w io.Writer, x *objects.Plan, s Study, place func(digest string, seed uint64) string) error {
	p := newStudyPage(s)
	p.Title, p.Summary = "Cluster for "+x.Need.Name, needText(x.Need)
	p.Facts = []fact{{"Options", fmt.Sprint(len(x.Candidates))}, {"Designs simulated", fmt.Sprint(len(x.Points))},
		{"Seeds", fmt.Sprint(len(x.Seeds))}}
	best := section{ID: "choice", Title: "The choice", Intro: bestText(x) + "."}
	if x.Best != nil {
		best.Table = &table{Head: []heading{{"", true}, {"", true}}}
		for _, f := range bestFacts(x) {
			best.Table.Rows = append(best.Table.Rows,
				[]cell{{Text: f.Name, Class: "text name"}, {Text: f.Value, Class: "text"}})
		}
	} else {
		for _, a := range x.Advice() {
			p.Warnings = append(p.Warnings, remark{Detail: "Possible with " + a.Text + "."})
		}
	}
	p.Sections = append(p.Sections, best)
	if f := sizingFigures(x); len(f) > 0 {
		p.Sections = append(p.Sections, section{ID: "nodes", Title: "Cost and latency by number of nodes", Figures: f})
	}
	if list := byProtocol(x); len(list) > 0 {
		t := &table{Full: true,
			Head: []heading{{"protocol", true}, {Title: "cost"}, {Title: "extra cost"}, {Title: "nodes"},
				{"drive", true}, {"nic", true}, {Title: "group"}, {Title: "p99"}, {Title: "of the bound"},
				{"bound by", true}}}
		for _, c := range list {
			t.Rows = append(t.Rows, textCells(t.Head, protocolCells(x, c)))
		}
		p.Sections = append(p.Sections, section{ID: "protocols", Title: "The cheapest with each protocol", Table: t})
	}
	t := &table{Full: true,
		Head: []heading{{Title: "cost"}, {Title: "nodes"}, {"drive", true}, {"nic", true}, {"protocol", true},
			{Title: "group"}, {"why", true}}}
	for _, c := range inOrder(x) {
		t.Rows = append(t.Rows, textCells(t.Head, optionCells(x, c)))
	}
	p.Sections = append(p.Sections, section{ID: "options", Title: "Options", Table: t},
		section{ID: "runs", Title: "Runs",
			Intro: "Every simulated design, in the order of the search. Each run has a directory below the " +
				"plan's.", Table: runTable(x, place)})
	if s.Scenario != "" {
		p.Scenarios = []pageRun{{Label: "The need, with every default", Scenario: parseScenario(s.Scenario)}}
	}
	return p.write(w)
}

// textCells makes a row of cells, with the text columns of the head.
func textCells(head []heading, texts []string) []cell {
	row := make([]cell, len(texts))
	for i, text := range texts {
		row[i].Text = text
		if head[i].Text {
			row[i].Class = "text"
		}
	}
	return row
}

// runTable lists the runs in the order in which the search requested them.
func runTable(x *objects.Plan, place func(digest string, seed uint64) string) *table {
	t := &table{Full: true,
		Head: []heading{{"design", true}, {Title: "cost"}, {Title: "down"}, {Title: "p99 of puts"},
			{Title: "p99 of gets"}, {"verdict", true}, {"runs", true}}}
	for _, q := range x.Points {
		for _, m := range []*objects.Measured{q.Down, q.Intact} {
			if m == nil {
				continue
			}
			verdict := q.Why
			if q.Meets {
				verdict = "meets the need"
			}
			first, last := m.Samples[0], m.Samples[len(m.Samples)-1]
			runs := place(first.Digest, first.Seed)
			if len(m.Samples) > 1 {
				runs += fmt.Sprintf(" to -%d", last.Seed)
			}
			puts, gets := "", ""
			if x.Need.Reads < 1 {
				puts = intervalText(m.Put)
			}
			if x.Need.Reads > 0 {
				gets = intervalText(m.Get)
			}
			t.Rows = append(t.Rows,
				textCells(t.Head, []string{x.Need.Label(q.Design), term.Money(float64(x.Need.Cost(q.Design))),
					fmt.Sprint(m.Down), puts, gets, verdict, runs}))
		}
	}
	return t
}

// sizingFigures draws the cost of each protocol, and its percentile against the number of nodes.
func sizingFigures(x *objects.Plan) []figure {
	var cost, p99 []chart.Series
	wide := false
	style := 0
	for _, scheme := range x.Schemes() {
		c := x.Cheapest(scheme)
		if c == nil {
			continue
		}
		s := chart.Series{Name: scheme.String(), Style: style}
		for _, d := range x.Candidates {
			if d.Protocol == scheme && d.State == objects.Meets {
				s.X, s.Y = append(s.X, float64(d.Nodes)), append(s.Y, float64(d.Cost))
			}
		}
		sortSeries(&s)
		cost = append(cost, s)
		l := chart.Series{Name: s.Name, Style: style}
		if c.Group > 0 {
			l.Name += fmt.Sprintf(", groups of %d", c.Group)
		}
		style++
		for _, q := range x.Near(c.Option) {
			m := q.Worst()
			value := m.P99()
			if len(m.Samples) < len(x.Seeds) {
				// The design was given up after some of its runs, for example because a queue grows without bound, so
				// it has no percentile.
				continue
			}
			l.X, l.Y, l.Half = append(l.X, float64(q.Nodes)), append(l.Y, value.Mean), append(l.Half, value.Half)
		}
		p99 = append(p99, l)
	}
	if len(cost) == 0 {
		return nil
	}
	limit, what := x.Need.PutP99, "puts"
	if x.Need.Reads >= 1 {
		limit, what = x.Need.GetP99, "gets"
	}
	line := chart.Series{Name: "limit", Style: 7}
	lo, hi := p99[0].X[0], p99[0].X[0]
	for _, l := range p99 {
		lo, hi = min(lo, slices.Min(l.X)), max(hi, slices.Max(l.X))
		for _, v := range l.Y {
			wide = wide || v > 10*limit.Microseconds()
		}
	}
	line.X, line.Y = []float64{lo, hi}, []float64{limit.Microseconds(), limit.Microseconds()}
	y := chart.Axis{Label: "p99 of " + what, Unit: chart.UnitOf("us"), FromZero: true}
	if wide {
		y.Scale = chart.Log
	}
	count := chart.Axis{Label: "nodes", Unit: chart.Counts}
	if hi > 4*lo { // a linear axis would crowd the points near the limit at its left end
		count.Scale = chart.Log
	}
	percentiles := chart.LineChart{Frame: chart.Frame{Title: "99th percentile by number of nodes and protocol",
		Height: 330}, X: count, Y: y, Series: append(p99, line)}
	drawn, manyLines := bothLines(percentiles), len(p99) > mostLines
	if manyLines {
		count.Min, count.Max = lo, hi
		percentiles.Frame.Width, percentiles.Frame.Height, percentiles.X, percentiles.Series = 320, 200, count, p99
		drawn = multiples(percentiles, line)
	}
	costs := figure{Caption: "Cost by number of nodes",
		Note: "The cheapest design with each protocol, and designs that were the cheapest when they were found.",
		SVG: bothLines(chart.LineChart{Frame: chart.Frame{Title: "Cost by number of nodes and protocol", Height: 330},
			X: chart.Axis{Label: "nodes", Unit: chart.Counts},
			Y: chart.Axis{Label: "cost", Unit: chart.Dollars, FromZero: true}, Series: cost, Apart: true})}
	if manyLines {
		costs = costBars(x)
	}
	return []figure{
		costs,
		{Caption: "99th percentile by number of nodes",
			Note: "Designs near the cheapest one with each protocol. Whiskers are 95 % intervals. If nodes may be " +
				"down, the worse of the two states is shown.",
			Wide: manyLines, SVG: drawn},
	}
}

// costBars draws the cost of the cheapest design with each protocol.
func costBars(x *objects.Plan) figure {
	var rows []string
	part := chart.Part{Style: 0}
	for _, scheme := range x.Schemes() {
		if c := x.Cheapest(scheme); c != nil {
			rows, part.V = append(rows, fmt.Sprintf("%v, %d nodes", scheme, c.Nodes)), append(part.V, float64(c.Cost))
		}
	}
	return figure{Caption: "Cost of the cheapest design with each protocol",
		SVG: bothBars(chart.BarChart{Frame: chart.Frame{Title: "cost by protocol", Height: chart.BarsHeight(len(rows))},
			X: chart.Axis{Label: "Cost", Unit: chart.Dollars, FromZero: true}, Rows: rows, Parts: []chart.Part{part},
			Total: true})}
}

// sortSeries sorts a series by X.
func sortSeries(s *chart.Series) {
	order := make([]int, len(s.X))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case s.X[a] < s.X[b]:
			return -1
		case s.X[a] > s.X[b]:
			return 1
		}
		return 0
	})
	x, y := make([]float64, len(order)), make([]float64, len(order))
	for i, k := range order {
		x[i], y[i] = s.X[k], s.Y[k]
	}
	s.X, s.Y = x, y
}

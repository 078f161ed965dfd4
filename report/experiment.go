package report

import (
	_ "embed" // the page's template
	"fmt"
	"io"
	"math"
	"slices"

	"farflash/internal/term"
	"farflash/report/chart"
	"farflash/study/reproduce"
)

//go:embed page/experiment.tmpl
var experimentTemplate string

// WriteExperiment writes a page about a table or figure of a paper: a chart of the curves of each panel, and our
// figures next to the printed ones. command is the command line that made it; it may be empty.
func WriteExperiment(w io.Writer, r *reproduce.Report, version, command string) error {
	p := newStudyPage(Study{Version: version, Command: command})
	p.Title, p.Summary = r.ID+": "+r.Title, r.Paper
	for _, x := range r.Fell() {
		p.Failed = append(p.Failed, remark{x.Label, x.Metric, x.What})
	}
	p.Facts = []fact{{"Rows", fmt.Sprint(r.Count)}, {"Scenarios", fmt.Sprint(len(r.Scenarios))}}
	if r.Note != "" {
		p.Facts = append(p.Facts, fact{"Scope", r.Note})
	}
	if f := experimentFigures(r.Curves); f != nil {
		p.Sections = append(p.Sections, section{ID: "figure", Title: "Figure", Figures: f})
	}
	p.Sections = append(p.Sections,
		section{ID: "rows", Title: "Our figures and the paper's",
			Intro: "Dash: the paper prints no number. ok: our figure agrees with the printed one. not stated: no " +
				"number is printed, and the paper's sentence holds.", Table: experimentTable(r.Rows)})
	return p.fill(w, experimentTemplate)
}

// experimentFigures draws a chart for each panel, in order of appearance.
func experimentFigures(curves []reproduce.Curve) []figure {
	var panels []string
	for i := range curves {
		if !slices.Contains(panels, curves[i].Panel) {
			panels = append(panels, curves[i].Panel)
		}
	}
	var out []figure
	for _, name := range panels {
		var of []reproduce.Curve
		for i := range curves {
			if curves[i].Panel == name {
				of = append(of, curves[i])
			}
		}
		out = append(out, figure{Caption: capital(name),
			SVG: half(func(width float64) string { return panel(name, of, width) })})
	}
	return out
}

// panel draws the curves of one panel: bars if x is categorical, otherwise dots or lines.
func panel(name string, curves []reproduce.Curve, width float64) string {
	c := &curves[0]
	frame := chart.Frame{Title: name, Width: width, Height: 330}
	y := chart.Axis{Label: capital(c.YLabel), Unit: chart.UnitOf(c.YUnit)}
	if c.Names != nil {
		g := chart.GroupChart{Frame: frame, XLabel: c.XLabel, Labels: c.Names, Y: y}
		for k := range curves {
			g.Parts = append(g.Parts, chart.Part{Name: curves[k].Name, Style: k, V: curves[k].Y})
		}
		return chart.Groups(g)
	}
	var series []chart.Series
	x := chart.Axis{Label: capital(c.XLabel), Tight: true}
	if c.Shares {
		x.Scale = chart.Nines
	}
	least := math.Inf(1)
	for k := range curves {
		if len(curves) == 1 {
			curves[k].Name = "" // the caption has the name
		}
		series = append(series, chart.Series{Name: curves[k].Name, Style: k, X: curves[k].X, Y: curves[k].Y})
		least = min(least, slices.Min(curves[k].Y))
	}
	y.FromZero = least >= 0
	if c.Dots {
		return chart.Dots(chart.LineChart{Frame: frame, X: x, Y: y, Series: series})
	}
	return chart.Lines(chart.LineChart{Frame: frame, X: x, Y: y, Series: series})
}

// experimentTable lists the rows.
func experimentTable(rows []reproduce.Row) *table {
	t := &table{Full: true,
		Head: []heading{{"Row", true}, {"", true}, {Title: "Paper"}, {Title: "Ours"}, {"Unit", true}, {"", true},
			{"Expected", true}}}
	for i := range rows {
		x := &rows[i]
		paper, verdict := "\u2013", cell{Text: "ok", Class: "text ok"}
		if x.Paper != nil {
			paper = term.Significant(*x.Paper, 4)
		}
		ours := term.Significant(x.Ours, 4)
		if math.IsNaN(x.Ours) || math.IsInf(x.Ours, 0) {
			ours = "\u2013"
		}
		switch x.Verdict() {
		case reproduce.NotReproduced:
			verdict = cell{Text: "not reproduced", Class: "text failed"}
		case reproduce.NotStated:
			verdict = cell{Text: "not stated", Class: "text"}
		}
		t.Rows = append(t.Rows,
			[]cell{{Text: x.Label, Class: "text row"}, {Text: x.Metric, Class: "text"}, {Text: paper}, {Text: ours},
				{Text: x.Unit, Class: "text"}, verdict, {Text: x.Words(), Class: "text long"}})
	}
	return t
}

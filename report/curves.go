package report

import (
	"fmt"
	"io"
	"math"

	"farflash/report/chart"
	"farflash/study"
)

// mostFigures bounds the metrics that are drawn if nobody chose; mostLines is how many values of a second axis are told apart
// as lines, more are a heat map.
const (
	mostFigures = 12
	mostLines   = 6
)

// WriteCurves writes a page about a sweep: how its metrics respond, and a table of all points.
func WriteCurves(w io.Writer, c *study.Curves, s Study) error {
	p := newStudyPage(s)
	p.Title, p.Summary = "Sweep: "+c.Name, c.Describe()
	p.Facts = []fact{{"Points", fmt.Sprint(len(c.Points))}, {"Replicates", fmt.Sprint(c.Reps)}, {"First seed", fmt.Sprint(c.Seed)}}
	if part := c.Shard.String(); part != "" {
		p.Facts = append(p.Facts, fact{"Shard", part})
	}
	pending := 0
	for i := range c.Points {
		p.failures(c.Points[i].Label, c.Points[i].Failed)
		pending += c.Points[i].Pending
	}
	if pending > 0 {
		p.Warnings = append(p.Warnings, remark{Detail: fmt.Sprintf("%d trials have not been run: the sweep was interrupted, or shards are missing.", pending)})
	}
	names := c.Main(s.Metrics)
	if len(s.Metrics) == 0 {
		names = names[:min(len(names), mostFigures)]
	}
	intro := ""
	if c.Reps > 1 {
		intro = fmt.Sprintf("Means over replicates; whiskers are %g %% confidence intervals.", 100*c.Level)
	}
	if f := curveFigures(c, names); len(f) > 0 {
		p.Sections = append(p.Sections, section{ID: "curves", Title: "Response", Intro: intro, Figures: f})
	}
	p.Sections = append(p.Sections, section{ID: "points", Title: "Points", Table: pointTable(c, names)})
	if s.Scenario != "" {
		p.Scenarios = []pageRun{{Label: "Resolved scenario of the first point", Scenario: ParseScenario(s.Scenario)}}
	}
	return p.write(w)
}

// horizontal is the first axis as a chart has it: its places, a chart's axis with a mark at each, and whether it is one of
// numbers.
func horizontal(a study.Axis) ([]float64, chart.Axis, bool) {
	x := chart.Axis{Label: a.Path}
	at, _, numbers := a.Numbers()
	for i := 1; i < len(at); i++ {
		numbers = numbers && at[i] > at[i-1] // a curve needs rising numbers
	}
	if !numbers {
		at = make([]float64, len(a.Values))
		for i := range at {
			at[i] = float64(i)
		}
	} else if at[0] > 0 && (a.Geometric || isGeometric(at)) {
		x.Scale = chart.Log
	}
	for i, v := range at {
		x.Marks = append(x.Marks, chart.Mark{At: v, Label: a.Values[i]})
	}
	return at, x, numbers
}

// isGeometric tells values that grow rather by factors than by steps.
func isGeometric(at []float64) bool {
	n := len(at)
	return n > 2 && at[n-1]/at[0] >= 8 && at[n-1]-at[n-2] > 1.5*(at[1]-at[0])
}

// curveFigures draws a chart for each metric: against the first axis, with a line for each value of the second, or for each
// combination of the others' values. Too many lines are a heat map for two axes, and left to the table for more.
func curveFigures(c *study.Curves, names []string) []figure {
	at, x, numbers := horizontal(c.Axes[0])
	lines := len(c.Points) / len(at)
	if lines > mostLines && len(c.Axes) > 2 {
		return nil
	}
	var out []figure
	for _, name := range names {
		unit, help := "", ""
		var series []chart.Series
		for k := range lines {
			s := chart.Series{Style: k}
			for j, a := range c.Axes[1:] {
				if j > 0 {
					s.Name += ", "
				}
				s.Name += a.Path + " " + c.Points[k].Values[j+1] // the first point of each line
			}
			for i := range at {
				e, ok := c.Points[i*lines+k].Metric(name)
				if !ok {
					e.Mean = math.NaN()
				} else {
					unit, help = e.Unit, e.Help
				}
				s.X, s.Y, s.Half = append(s.X, at[i]), append(s.Y, e.Mean), append(s.Half, e.Half)
			}
			series = append(series, s)
		}
		f := figure{Caption: name, Note: capital(help) + "."}
		switch {
		case help == "":
			continue
		case lines > mostLines:
			f.SVG = svg(chart.HeatMap(heatOf(c, name, unit, series)))
		default:
			y := chart.Axis{Label: name, Unit: chart.UnitOf(unit), FromZero: true}
			if unit == "us" {
				y.Scale = logIfWide(series)
			}
			if y.Unit == chart.Counts {
				y.Unit = chart.Plain // means need not be whole
			}
			f.SVG = svg(chart.Lines(chart.LineChart{Frame: chart.Frame{Title: name + " over " + c.Axes[0].Path, Height: 330}, X: x, Y: y, Series: series, Apart: !numbers}))
		}
		out = append(out, f)
	}
	return out
}

// heatOf shows the means where there are too many lines.
func heatOf(c *study.Curves, name, unit string, series []chart.Series) chart.HeatMapChart {
	h := chart.HeatMapChart{Frame: chart.Frame{Title: name}, RowLabel: c.Axes[1].Path, ColLabel: c.Axes[0].Path, Rows: c.Axes[1].Values, Cols: c.Axes[0].Values,
		Unit: chart.UnitOf(unit), Legend: name}
	for _, s := range series {
		h.V = append(h.V, s.Y)
	}
	return h
}

// pointTable lists all points.
func pointTable(c *study.Curves, names []string) *table {
	t := &table{Full: true}
	for _, a := range c.Axes {
		t.Head = append(t.Head, heading{a.Path, true})
	}
	for _, n := range names {
		t.Head = append(t.Head, heading{Title: n})
	}
	for i := range c.Points {
		x := &c.Points[i]
		var row []cell
		for _, v := range x.Values {
			row = append(row, cell{Text: v, Class: "text name"})
		}
		for _, n := range names {
			row = append(row, cell{Text: pointCell(x, n)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"farflash/report/chart"
	"farflash/study"
)

// mostFigures limits the metrics that are drawn by default. mostLines limits the values of a second axis drawn as
// lines; more become a heat map.
const (
	mostFigures = 12
	mostLines   = 6
)

// Marks of points whose figures rest on a transient.
const (
	transientKey   = "rests on a transient"
	transientStyle = 5
)

// WriteCurves writes a page about a sweep: the response of its metrics, and a table of all points.
func WriteCurves(w io.Writer, c *study.Curves, s Study) error {
	p := newStudyPage(s)
	p.Title, p.Summary = "Sweep: "+c.Name, c.Describe()
	p.Facts = []fact{{"Points", fmt.Sprint(len(c.Points))}, {"Replicates", fmt.Sprint(c.Reps)},
		{"First seed", fmt.Sprint(c.Seed)}}
	if part := c.Shard.String(); part != "" {
		p.Facts = append(p.Facts, fact{"Shard", part})
	}
	pending := 0
	for i := range c.Points {
		p.failures(c.Points[i].Label, c.Points[i].Failed)
		pending += c.Points[i].Pending
	}
	if pending > 0 {
		p.Warnings = append(p.Warnings,
			remark{Detail: fmt.Sprintf("%d trials have not run: the sweep was interrupted, or shards are missing.", pending)})
	}
	for _, text := range transients(c) {
		p.Warnings = append(p.Warnings, remark{Detail: text})
	}
	names := c.Main(s.Metrics)
	if len(s.Metrics) == 0 {
		names = names[:min(len(names), mostFigures)]
	}
	intro := ""
	if c.Reps > 1 {
		intro = fmt.Sprintf("Means over replicates; whiskers are %g %% confidence intervals.", 100*c.Level)
	}
	if f := curveFigures(c, names, nil); len(f) > 0 {
		p.Sections = append(p.Sections, section{ID: "curves", Title: "Response", Intro: intro, Figures: f})
	}
	p.Sections = append(p.Sections, section{ID: "points", Title: "Points", Table: pointTable(c, names)})
	if s.Scenario != "" {
		p.Scenarios = []pageRun{{Label: "Resolved scenario of the first point", Scenario: parseScenario(s.Scenario)}}
	}
	return p.write(w)
}

// horizontal converts a study's axis into a chart's: the positions of its values, a chart axis with a mark at each, and
// whether the axis is numeric.
func horizontal(a study.Axis) ([]float64, chart.Axis, bool) {
	x := chart.Axis{Label: a.Path}
	at, _, numbers := a.Numbers()
	for i := 1; i < len(at); i++ {
		numbers = numbers && at[i] > at[i-1] // a curve needs increasing numbers
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

// isGeometric reports whether values grow by factors rather than by steps.
func isGeometric(at []float64) bool {
	n := len(at)
	return n > 2 && at[n-1]/at[0] >= 8 && at[n-1]-at[n-2] > 1.5*(at[1]-at[0])
}

// curveFigures draws a chart of each metric against the first axis, with a line for each value of the second axis, or
// for each combination of the other axes' values. If there are too many lines, two axes become a heat map, and more
// than two are left to the table. Limits are drawn across the charts of their metrics.
func curveFigures(c *study.Curves, names []string, limits map[string]float64) []figure {
	lines := len(c.Points) / len(c.Axes[0].Values)
	if lines > mostLines && len(c.Axes) > 2 {
		return nil
	}
	var out []figure
	most := map[string]float64{} // by quantity, so that its heat maps share a colour scale
	for _, name := range names {
		for i := range c.Points {
			if e, ok := c.Points[i].Metric(name); ok {
				most[quantity(e)] = math.Max(most[quantity(e)], e.Mean)
			}
		}
	}
	for _, name := range names {
		x, unit, help := curveChart(c, name, limits)
		if help == "" {
			continue
		}
		f := figure{Caption: name, Note: capital(help) + "."}
		if len(knees(c, name, limits)) > 0 {
			f.Note += " The knee is the point farthest from the line between the ends (Kneedle)."
		}
		if lines > mostLines {
			h := heatOf(c, name, unit, x.Series)
			h.Max = most[quantity(study.Estimate{Name: name, Unit: unit})]
			f.SVG = bothHeatMap(h)
		} else {
			f.SVG = bothLines(x)
		}
		out = append(out, f)
	}
	return out
}

// quantity identifies metrics that share a scale: the p99 of reads and that of writes are the same quantity.
func quantity(e study.Estimate) string {
	return e.Name[strings.LastIndexByte(e.Name, '.')+1:] + " " + e.Unit
}

// knees returns the knees of a metric. A search has none: its loads cluster around a limit, which would put a false
// knee there.
func knees(c *study.Curves, name string, limits map[string]float64) []study.Knee {
	if limits != nil {
		return nil
	}
	return c.Knees([]string{name})
}

// curveChart returns the chart of a metric, its unit and its help text, which is "" if no point has the metric.
func curveChart(c *study.Curves, name string, limits map[string]float64) (x chart.LineChart, unit, help string) {
	at, horizontal, numbers := horizontal(c.Axes[0])
	lines := len(c.Points) / len(at)
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
	key := transientKey
	for k := range lines {
		marks, any := chart.Series{Name: key, Style: transientStyle, X: at, Half: make([]float64, len(at))}, false
		for i := range at {
			y := math.NaN()
			if c.Points[i*lines+k].Transient != "" {
				y = series[k].Y[i]
			}
			any = any || !math.IsNaN(y)
			marks.Y = append(marks.Y, y)
		}
		if any {
			series = append(series, marks)
			key = "" // one key entry is enough
		}
	}
	for _, k := range knees(c, name, limits) {
		series = append(series,
			chart.Series{Name: "knee: " + k.At, Style: 1, X: []float64{at[k.Point]},
				Y: []float64{series[0].Y[k.Point]}})
	}
	if limit, ok := limits[name]; ok {
		series = append(series, limitLine(at, limit, "limit"))
	}
	if limits != nil {
		horizontal.Marks = nil // the marks would overlap near the limit
	}
	y := chart.Axis{Label: name, Unit: chart.UnitOf(unit), FromZero: true}
	if unit == "us" {
		y.Scale = logIfWide(series)
	}
	if y.Unit == chart.Counts {
		y.Unit = chart.Plain // means need not be whole
	}
	return chart.LineChart{Frame: chart.Frame{Title: name + " over " + c.Axes[0].Path, Height: 330}, X: horizontal,
		Y: y, Series: series, Apart: !numbers}, unit, help
}

// heatOf draws the means of a metric when there are too many lines.
func heatOf(c *study.Curves, name, unit string, series []chart.Series) chart.HeatMapChart {
	h := chart.HeatMapChart{Frame: chart.Frame{Title: name}, RowLabel: c.Axes[1].Path, ColLabel: c.Axes[0].Path,
		Rows: c.Axes[1].Values, Cols: c.Axes[0].Values,
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
		if n := len(row); x.Transient != "" && n > 0 {
			row[n-1].Text += transientMark
		}
		for _, n := range names {
			row = append(row, cell{Text: pointCell(x, n)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Package paper writes the charts of reports for papers: as standalone SVG files, as TikZ by pgfplots that compiles
// unchanged, and as CSV for drawing them with other tools.
//
// A [Plot] is one of the chart package's own charts ([chart.LineChart], [chart.CDFChart], [chart.ForestChart]), so the
// files show the report's charts. [Write] writes one. The options are those of the pgfplots manual (version 1.18,
// sections 4.5 to 4.20).
//
// It leaves out heat maps, networks and animated charts, which are for the page.
package paper

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"farflash/report/chart"
)

// Plot is a chart with the name of its file.
type Plot struct {
	Name  string
	Chart any // chart.LineChart, chart.CDFChart or chart.ForestChart
}

// Format is a file format of plots.
type Format string

// The formats.
const (
	SVG Format = "svg"
	PGF Format = "pgf"
	CSV Format = "plot-csv"
)

// Formats lists the formats.
func Formats() []string { return []string{string(SVG), string(PGF), string(CSV)} }

// File returns the name of a plot's file.
func (f Format) File(p Plot) string {
	return p.Name + map[Format]string{SVG: ".svg", PGF: ".tex", CSV: ".csv"}[f]
}

// Write writes a plot.
func Write(w io.Writer, p Plot, f Format) error {
	switch f {
	case SVG:
		_, err := io.WriteString(w, chart.Standalone(draw(p)))
		return err
	case PGF:
		_, err := io.WriteString(w, tikz(p))
		return err
	}
	return table(w, p)
}

func draw(p Plot) string {
	switch c := p.Chart.(type) {
	case chart.LineChart:
		return chart.Lines(c)
	case chart.CDFChart:
		return chart.CDF(c)
	case chart.ForestChart:
		return chart.Forest(c)
	}
	panic(fmt.Sprintf("paper: a %T is not a plot", p.Chart))
}

func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case v == 0:
		return "0" // never "-0"
	}
	return strconv.FormatFloat(v, 'g', 9, 64)
}

// table writes the numbers of a plot, below a line that describes the columns.
func table(w io.Writer, p Plot) error {
	var rows [][]string
	how := ""
	switch c := p.Chart.(type) {
	case chart.LineChart:
		rows = append(rows, []string{"series", "x", "y", "half"})
		for _, s := range c.Series {
			for i := range s.X {
				half := ""
				if s.Half != nil {
					half = number(s.Half[i])
				}
				rows = append(rows, []string{s.Name, number(s.X[i]), number(s.Y[i]), half})
			}
		}
		how = "for name, s in d.groupby('series', dropna=False): plt.errorbar(s.x, s.y, s.half, label=name)"
		if c.X.Scale == chart.Log {
			how += "; plt.xscale('log')"
		}
	case chart.CDFChart:
		rows = append(rows, []string{"series", "value", "share"})
		for _, s := range c.Distributions {
			for i := range s.Value {
				rows = append(rows, []string{s.Name, number(s.Value[i]), number(s.Share[i])})
			}
		}
		how = "for name, s in d.groupby('series', dropna=False): plt.loglog(s.value, 1 - s.share, label=name)"
	case chart.ForestChart:
		rows = append(rows, []string{"metric", "mean", "low", "high", "text"})
		for _, r := range c.Rows {
			rows = append(rows, []string{r.Name, number(r.Mean), number(r.Low), number(r.High), r.Text})
		}
		how = "plt.errorbar(d['mean'], d.metric, xerr=[d['mean'] - d.low, d.high - d['mean']], fmt='o'); plt.axvline(" + number(c.Zero) + ")"
	}
	x, y := labels(p)
	if _, err := fmt.Fprintf(w, "# %s against %s. d = pandas.read_csv('%s', comment='#'); %s\n", y, x, CSV.File(p),
		how); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	if err := out.WriteAll(rows); err != nil {
		return err
	}
	return out.Error()
}

// labels returns the labels of a plot's axes, with the units of its numbers.
func labels(p Plot) (x, y string) {
	with := func(a chart.Axis) string {
		if u := a.Unit.Name(); u != "" && len(a.Marks) == 0 {
			return a.Label + " (" + u + ")"
		}
		return a.Label
	}
	switch c := p.Chart.(type) {
	case chart.LineChart:
		return with(c.X), with(c.Y)
	case chart.CDFChart:
		return with(c.X), c.YLabel
	case chart.ForestChart:
		return with(c.X), "Metric"
	}
	return "", ""
}

// escaped escapes text for TeX.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\textbackslash{}`, "{", `\{`, "}", `\}`, "$", `\$`, "&", `\&`, "#", `\#`, "%",
		`\%`, "_", `\_`, "^", `\textasciicircum{}`, "~", `\textasciitilde{}`,
		"<", `\textless{}`, ">", `\textgreater{}`, "\n", " ", "\r", " ").Replace(text)
}

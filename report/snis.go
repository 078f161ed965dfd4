package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"farflash/internal/term"
	"farflash/report/chart"
)

// distances are the series from which SNIS computes Conv_C, with the styles of their bars.
var distances = []struct {
	series, label string
	style         int
}{{"snis.rd_mean", "mean", 5}, {"snis.rd_median", "median", 2}, {"snis.rd_p90", "90th percentile", 4}}

// snisFigures draws the convergence of a simulation of storage and network in turns, and its difference from the same
// simulation in one event loop.
func snisFigures(runs []Run) []figure {
	var out, tables []figure
	for i := range runs {
		r := &runs[i]
		before := ""
		if len(runs) > 1 {
			before = r.Label + ": "
		}
		if f, ok := r.convergence(before); ok {
			out = append(out, f)
		}
		if f, ok := r.throughputs(before); ok {
			out = append(out, f)
		}
		if t := r.errors(before); t != nil {
			tables = append(tables, figure{Table: t})
		}
	}
	return append(out, tables...)
}

// iterationName formats an iteration's number.
func iterationName(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// convergence draws the change from each iteration to the next.
func (r *Run) convergence(before string) (figure, bool) {
	var at []float64 // iterations with any value
	for _, name := range append([]string{"snis.conv_c"}, distanceNames()...) {
		s, _ := r.Result.SeriesOf(name)
		at = append(at, s.T...)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	values := func(name string) []float64 {
		s, _ := r.Result.SeriesOf(name)
		v := make([]float64, len(at))
		for i, t := range at {
			v[i] = math.NaN()
			if k, ok := slices.BinarySearch(s.T, t); ok {
				v[i] = s.V[k]
			}
		}
		return v
	}
	if len(at) == 0 {
		return figure{}, false
	}
	c := chart.GroupChart{Frame: chart.Frame{Title: before + "change from each iteration to the next"},
		XLabel: "Iteration", Y: chart.Axis{Label: "Distance", Unit: chart.Fractions}}
	for _, t := range at {
		c.Labels = append(c.Labels, iterationName(t))
	}
	for _, d := range distances {
		if hasSeries(r, d.series) {
			c.Parts = append(c.Parts, chart.Part{Name: d.label, Style: d.style, V: values(d.series)})
		}
	}
	if hasSeries(r, "snis.conv_c") {
		c.Lines = []chart.Part{{Name: "Conv_C", Style: 0, V: values("snis.conv_c")}}
	}
	note := "Relative change of the throughput of requests from one iteration to the next: mean, median, 90th " +
		"percentile, and their weighted sum (Conv_C)."
	if v, ok := r.value("snis.converged"); ok && v == 0 {
		note += " The iterations did not converge."
	} else if ok {
		note += " The iterations converged."
	}
	return figure{Caption: capital(before + "convergence"), Note: note, SVG: bothGroups(c)}, true
}

func distanceNames() []string {
	var names []string
	for _, d := range distances {
		names = append(names, d.series)
	}
	return names
}

// throughputs draws quantiles of the requests' throughput over the iterations.
func (r *Run) throughputs(before string) (figure, bool) {
	m, ok := r.matrix("snis.throughput", 1)
	if !ok {
		return figure{}, false
	}
	c := chart.GroupChart{Frame: chart.Frame{Title: before + "throughput of requests by iteration"},
		XLabel: "Iteration", Labels: m.Cols,
		Y: chart.Axis{Label: "Throughput of a request", Unit: chart.ByteRates}}
	var series []chart.Series
	for n, k := range evenly(len(m.Rows), chart.Styles) {
		c.Lines = append(c.Lines, chart.Part{Name: m.Rows[k], Style: n, V: m.V[k]})
		series = append(series, chart.Series{Y: m.V[k]})
	}
	slices.Reverse(c.Lines) // highest first, in the order on the chart
	c.Y.Scale = logIfWide(series)
	return figure{Caption: capital(before + "throughput of requests"),
		Note: "Size over latency of a request: quantiles over requests, by iteration. A flat line has converged.",
		SVG:  bothGroups(c)}, true
}

// evenly returns at most most of the numbers from 0 to n-1, evenly spaced, including both ends.
func evenly(n, most int) []int {
	var out []int
	for i := range min(n, most) {
		k := i
		if n > most {
			k = i * (n - 1) / (most - 1)
		}
		out = append(out, k)
	}
	return out
}

// differenceRow is a row of snis.error. Unknown values are NaN.
type differenceRow struct {
	name                         string
	iterative, coupled, relative float64
}

func (r *Run) differencesOfModes() (list []differenceRow, unit string) {
	m, ok := r.matrix("snis.error", 1)
	if !ok {
		return nil, ""
	}
	for i, name := range m.Rows {
		d := differenceRow{name: name}
		for _, c := range []struct {
			column string
			to     *float64
		}{{"iterative", &d.iterative}, {"coupled", &d.coupled}, {"relative", &d.relative}} {
			*c.to = math.NaN()
			if k := slices.Index(m.Cols, c.column); k >= 0 {
				*c.to = m.V[i][k]
			}
		}
		list = append(list, d)
	}
	return list, m.Unit
}

// signed formats a relative difference.
func signed(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "\u2013"
	}
	text := term.Percent(v)
	if v > 0 {
		text = "+" + text
	}
	return strings.Replace(text, "-", "\u2212", 1)
}

// errors returns the table of the iterative results against those of one event loop.
func (r *Run) errors(before string) *table {
	list, unit := r.differencesOfModes()
	if len(list) == 0 {
		return nil
	}
	t := &table{Caption: capital(before + "in turns against one event loop"), Full: true,
		Head: []heading{{"Latency", true}, {Title: "In turns"}, {Title: "One event loop"}, {Title: "Difference"}}}
	for _, d := range list {
		row := []cell{{Text: d.name, Class: "text"}}
		for _, v := range []float64{d.iterative, d.coupled} {
			row = append(row, cell{Text: term.Quantity(v, unit)})
		}
		t.Rows = append(t.Rows, append(row, cell{Text: signed(d.relative)}))
	}
	return t
}

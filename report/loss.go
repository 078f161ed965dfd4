package report

import (
	"fmt"
	"slices"
	"strings"

	"farflash/internal/term"
	"farflash/numeric/stats"
	"farflash/report/chart"
)

// losses are the uses of the time of disks and links, by column of cluster.spent. Data and disks have the styles of the
// protocol's picture.
var losses = []struct {
	use, label string
	style      int
}{
	{"work", "work for chunks", 4}, {"repair", "repair", 6}, {"control", "control messages", 3},
	{"receiving", "waiting for data", 0}, {"reserved", "reserved, unused", 2},
	{"tentative", "bid unanswered", 1}, {"waiting", "waiting", 5}, {"idle", "idle", 7}, {"down", "target down", 5},
}

// lossRows prints how the bottleneck resource spent the rest of its time, and how unevenly the disks are used.
func (r *Run) lossRows(t *term.Table, style term.Style) {
	if m, ok := r.matrix("cluster.spent", 1); ok {
		k := len(m.V) - 1 // the disks come first, the bottleneck last
		var parts []string
		lost := 0.0
		for _, l := range losses[1:] {
			if v := column(m.Cols, m.V[k], l.use); v > 0 {
				lost += v
				parts = append(parts, l.label+" "+term.Percent(v))
			}
		}
		t.Row(m.Rows[k]+" lost", term.Bar(min(lost, 1), barWidth)+" "+term.Percent(lost),
			style.Dim(strings.Join(parts, ", ")))
	}
	if text := r.imbalance(); text != "" {
		most, _ := r.value("cluster.imbalance.target.max")
		t.Row("busiest disk", "x"+term.Significant(most, 3), style.Dim("of the mean; "+text))
	}
}

// column returns the value of a named column, 0 if there is none.
func column(cols []string, v []float64, name string) float64 {
	if k := slices.Index(cols, name); k >= 0 {
		return v[k]
	}
	return 0
}

// imbalance describes the spread of the disks' utilisation around its mean.
func (r *Run) imbalance() string {
	cv, ok := r.value("cluster.imbalance.target.cv")
	if !ok {
		return ""
	}
	text := "standard deviation " + term.Percent(cv) + " of the mean"
	if cv, ok = r.value("cluster.imbalance.group.cv"); ok {
		most, _ := r.value("cluster.imbalance.group.max")
		text += "; the busiest group x" + term.Significant(most, 3) + ", standard deviation " + term.Percent(cv)
	}
	return text
}

// lossFigures draws how disks, and links if they are the bottleneck, spent their time, in total and, for a single run,
// target by target and group by group.
func lossFigures(runs []Run) []figure {
	var rows []string
	parts := make([]chart.Part, len(losses))
	for i := range runs {
		m, ok := runs[i].matrix("cluster.spent", 1)
		if !ok {
			continue
		}
		for n, name := range m.Rows {
			if len(runs) > 1 {
				name += ", " + runs[i].Label
			}
			rows = append(rows, name)
			for k, l := range losses {
				parts[k].V = append(parts[k].V, column(m.Cols, m.V[n], l.use))
			}
		}
	}
	if rows == nil {
		return nil
	}
	parts = someParts(parts)
	out := []figure{{Caption: "Where the time went", Wide: true,
		Note: "Mean over disks, and over links if they are the bottleneck. Only the time spent on chunks counts " +
			"towards the bound. The rest is lost to waiting for data, to unused reservations, to unanswered offers, " +
			"and to idleness.",
		SVG: broad(func(width float64) string {
			return chart.Bars(chart.BarChart{Frame: chart.Frame{Title: "where the time went", Width: width,
				Height: chart.BarsHeight(len(rows)) + 10},
				X: chart.Axis{Label: "Share of the time", Unit: chart.Fractions, Max: 1}, Rows: rows, Parts: parts})
		})}}
	if len(runs) > 1 {
		return out
	}
	if f, ok := runs[0].targetTimes(); ok {
		out = append(out, f)
	}
	if f, ok := runs[0].groupUse(); ok {
		out = append(out, f)
	}
	return out
}

// someParts returns the parts that are not zero everywhere, with their names and styles.
func someParts(parts []chart.Part) []chart.Part {
	var out []chart.Part
	for k, p := range parts {
		if p.Name, p.Style = losses[k].label, losses[k].style; slices.Max(p.V) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// targetTimes draws each target's time, the busiest disks last.
func (r *Run) targetTimes() (figure, bool) {
	m, ok := r.matrix("cluster.target.time", 1)
	if !ok {
		return figure{}, false
	}
	order := make([]int, len(m.V))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case m.V[a][0] < m.V[b][0]:
			return -1
		case m.V[a][0] > m.V[b][0]:
			return 1
		}
		return 0
	})
	most, _ := r.value("cluster.imbalance.target.max")
	c := chart.ColumnChart{Frame: chart.Frame{Title: "where each target's time went", Height: 360},
		X: chart.Axis{Label: "Targets, by disk utilisation", Unit: chart.Counts},
		Y: chart.Axis{Label: "Share of time", Unit: chart.Fractions, FromZero: true, Max: 1}, Edges: []float64{0}}
	parts := make([]chart.Part, len(losses))
	for k, l := range losses {
		for _, i := range order {
			parts[k].V = append(parts[k].V, column(m.Cols, m.V[i], l.use))
		}
	}
	c.Parts = someParts(parts)
	for i := range order {
		c.Edges = append(c.Edges, float64(i+1))
	}
	return figure{Caption: "Where the time went, by target",
		Note: "Least used disk first. The busiest disk has " + term.Significant(most, 3) +
			" times the mean; " + r.imbalance() + ".", SVG: bothAreas(c)}, true
}

// mostGroups limits the negotiating groups that have a bar each.
const mostGroups = 40

// groupUse draws how busy the disks of each negotiating group were.
func (r *Run) groupUse() (figure, bool) {
	m, ok := r.matrix("cluster.group.busy", 1)
	if !ok || len(m.V) < 2 || len(m.V) > mostGroups {
		return figure{}, false
	}
	p := chart.Part{Name: "disks of the group", Style: 4}
	mean := chart.Part{Name: "mean of all", Style: 7}
	sum := 0.0
	for i := range m.V {
		p.V = append(p.V, m.V[i][0])
		sum += m.V[i][0]
	}
	for range m.V {
		mean.V = append(mean.V, sum/float64(len(m.V)))
	}
	most, _ := r.value("cluster.imbalance.group.max")
	return figure{Caption: "Negotiating groups",
		Note: fmt.Sprintf("Busy share of each group's disks. The busiest group has %s times the mean: load is "+
			"balanced within groups, not between them.", term.Significant(most, 3)),
		SVG: bothGroups(chart.GroupChart{Frame: chart.Frame{Title: "negotiating groups", Height: 330},
			XLabel: "Group", Labels: m.Rows, Y: chart.Axis{Label: "Disks busy", Unit: chart.Fractions, Max: 1},
			Parts: []chart.Part{p}, Lines: []chart.Part{mean}})}, true
}

// sortedPoints is the number of points on a curve of sorted latencies.
const sortedPoints = 400

// sortedLatencies draws the latencies in ascending order.
func sortedLatencies(g group, things string) figure {
	c := chart.LineChart{Frame: chart.Frame{Title: "sorted latencies", Height: 360},
		X: chart.Axis{Label: "Share of " + things + ", fastest first", Unit: chart.Fractions, Max: 1},
		Y: chart.Axis{Label: "Latency", Unit: chart.Micros, FromZero: true}}
	for _, x := range g.curves {
		c.Series = append(c.Series, sortedSeries(x.run.Result.Histogram(x.what), x.name, x.style))
	}
	return figure{Caption: "Latencies, sorted",
		Note: "Latency of " + things +
			" in ascending order, up to 99.9 %. A flat line is an equal latency for all. The rise on the right is " +
			"the tail.", SVG: bothLines(c)}
}

func sortedSeries(h *stats.Histogram, name string, style int) chart.Series {
	s := chart.Series{Name: name, Style: style}
	for k := range sortedPoints {
		q := 0.999 * float64(k) / (sortedPoints - 1)
		s.X, s.Y = append(s.X, q), append(s.Y, h.Quantile(q).Microseconds())
	}
	return s
}

package report

import (
	"fmt"
	"slices"
	"strings"

	"farflash/internal/term"
	"farflash/report/chart"
)

// losses are what a target's time goes to while its disk does not write, with the looks that they have in the protocol's picture.
var losses = []struct {
	metric, label string
	style         int
}{
	{"cluster.disk.utilisation", "disk writes", 4}, {"cluster.loss.receiving", "receives, disk idle", 0}, {"cluster.loss.reserved", "reserved, nothing sent", 2},
	{"cluster.loss.tentative", "bids undecided", 1}, {"cluster.loss.idle", "nothing wanted", 7},
}

// lossRows say where the rest of the disks' time went, and how unevenly they are used.
func (r *Run) lossRows(t *term.Table, style term.Style) {
	var parts []string
	lost := 0.0
	for _, l := range losses[1:] {
		if v, ok := r.value(l.metric); ok {
			lost += v
			parts = append(parts, l.label+" "+term.Percent(v))
		}
	}
	if parts != nil {
		t.Row("disks idle", term.Bar(min(lost, 1), barWidth)+" "+term.Percent(lost), style.Dim(strings.Join(parts, ", ")))
	}
	if text := r.imbalance(); text != "" {
		most, _ := r.value("cluster.imbalance.target.max")
		t.Row("busiest disk", "x"+term.Significant(most, 3), style.Dim("of the mean; "+text))
	}
}

// imbalance says how far the use of disks is from the mean.
func (r *Run) imbalance() string {
	cv, ok := r.value("cluster.imbalance.target.cv")
	if !ok {
		return ""
	}
	text := "coefficient of variation " + term.Percent(cv) + " by target"
	if cv, ok = r.value("cluster.imbalance.group.cv"); ok {
		most, _ := r.value("cluster.imbalance.group.max")
		text += ", " + term.Percent(cv) + " by group, of which the busiest has " + term.Significant(most, 3) + " times the mean"
	}
	return text
}

// lossFigures draw where targets' time went: all together, and, of one run, target by target and group by group.
func lossFigures(runs []Run) []figure {
	var rows []string
	parts := make([]chart.Part, len(losses))
	for k, l := range losses {
		parts[k] = chart.Part{Name: l.label, Style: l.style}
	}
	for i := range runs {
		if _, ok := runs[i].value("cluster.loss.idle"); !ok {
			continue
		}
		name := runs[i].Label
		if len(runs) == 1 {
			name = "targets"
		}
		rows = append(rows, name)
		for k, l := range losses {
			v, _ := runs[i].value(l.metric)
			parts[k].V = append(parts[k].V, v)
		}
	}
	if rows == nil {
		return nil
	}
	out := []figure{{Caption: "Where targets' time went", Note: "Mean over targets. Only while its disk writes a target comes nearer to what the disks allow; the rest is lost to data that the disk waits for, reservations that wait for their window, bids that nobody has answered, and targets that nobody wants.",
		SVG: svg(chart.Bars(chart.BarChart{Frame: chart.Frame{Title: "where targets' time went", Height: chart.BarsHeight(len(rows)) + 30}, X: chart.Axis{Label: "Share of targets' time", Unit: chart.Fractions, Max: 1}, Rows: rows, Parts: parts}))}}
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

// targetTimes draw each target's time, the busiest disks last.
func (r *Run) targetTimes() (figure, bool) {
	m, ok := r.Result.Matrix("cluster.target.time")
	if !ok || len(m.V) == 0 || len(m.Cols) != len(losses) {
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
	c := chart.ColumnChart{Frame: chart.Frame{Title: "where each target's time went", Height: 330}, X: chart.Axis{Label: "Targets, by use of their disk", Unit: chart.Counts},
		Y: chart.Axis{Label: "Share of its time", Unit: chart.Fractions, FromZero: true, Max: 1}, Edges: []float64{0}}
	for k, l := range losses {
		p := chart.Part{Name: l.label, Style: l.style}
		for _, i := range order {
			p.V = append(p.V, m.V[i][k])
		}
		c.Parts = append(c.Parts, p)
	}
	for i := range order {
		c.Edges = append(c.Edges, float64(i+1))
	}
	return figure{Caption: "The same, target by target", Note: "Disks of targets: " + r.imbalance() + ".", SVG: svg(chart.Areas(c))}, true
}

// mostGroups is how many negotiating groups have bars of their own.
const mostGroups = 40

// groupUse draws how busy the disks of each negotiating group were.
func (r *Run) groupUse() (figure, bool) {
	m, ok := r.Result.Matrix("cluster.group.busy")
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
	return figure{Caption: "Negotiating groups", Note: fmt.Sprintf("Share of the measured time that each group's disks were busy. The busiest group has %s times the mean: load is balanced within groups, not between them.", term.Significant(most, 3)),
		SVG: svg(chart.Groups(chart.GroupChart{Frame: chart.Frame{Title: "negotiating groups", Height: 330}, XLabel: "Group", Labels: m.Rows, Y: chart.Axis{Label: "Disks busy", Unit: chart.Fractions, Max: 1}, Parts: []chart.Part{p}, Lines: []chart.Part{mean}}))}, true
}

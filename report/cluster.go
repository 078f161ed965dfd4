package report

import (
	"fmt"
	"slices"
	"strings"

	"farflash/internal/term"
	"farflash/report/chart"
)

// clusterOperations are the operations on chunks, and the exchanges of clusters that put no chunks.
var clusterOperations = []string{"put", "get", "exchange"}

// cluster prints an object cluster's operations, their rate relative to the bounds of its resources, and how evenly the
// targets were used.
func (r *Run) cluster(b *strings.Builder, style term.Style) error {
	if _, ok := r.value("cluster.exchange.count"); ok {
		return r.exchanges(b, style)
	}
	if _, ok := r.value("cluster.bound.rate"); !ok {
		return nil
	}
	t := term.NewTable(term.Left(""), term.Right("chunks"), term.Right("per second"), term.Right("rate"),
		term.Right("mean"), term.Right("p50"),
		term.Right("p90"), term.Right("p99"), term.Right("p99.9"), term.Right("max"))
	for _, op := range clusterOperations {
		if _, ok := r.value("cluster." + op + ".count"); !ok {
			continue
		}
		row := []string{op}
		for _, m := range []string{"count", "iops", "rate", "latency.mean", "latency.p50", "latency.p90",
			"latency.p99", "latency.p99_9", "latency.max"} {
			row = append(row, r.written("cluster."+op+"."+m))
		}
		t.Row(row...)
	}
	b.WriteByte('\n')
	if err := t.Write(b, style); err != nil {
		return err
	}
	t = term.NewTable(term.Left(""), term.Left(""), term.Left("")).Indent("  ")
	if bounds, ok := r.matrix("cluster.bounds", 1); ok {
		least := 0
		for i := range bounds.V {
			if bounds.V[i][0] < bounds.V[least][0] {
				least = i
			}
		}
		var others []string
		for i, name := range bounds.Rows {
			if i != least {
				others = append(others, name+" "+term.Quantity(bounds.V[i][0], bounds.Unit))
			}
		}
		if v, ok := r.value("cluster.bound.reached"); ok {
			t.Row("bound reached", term.Bar(min(v, 1), barWidth)+" "+term.Percent(v),
				style.Dim("of the "+term.Quantity(bounds.V[least][0], bounds.Unit)+" that the "+bounds.Rows[least]+
					" allow"))
		}
		t.Row("other bounds", "", style.Dim(strings.Join(others, ", ")))
	}
	spread := func(column int) string {
		m, ok := r.matrix("cluster.target.busy", 2)
		if !ok {
			return ""
		}
		var v []float64
		for i := range m.V {
			v = append(v, m.V[i][column])
		}
		return fmt.Sprintf("%s to %s by target", term.Percent(slices.Min(v)), term.Percent(slices.Max(v)))
	}
	for _, x := range []struct {
		label, metric string
		column        int
	}{{"disks busy", "cluster.disk.utilisation", 0}, {"links busy", "cluster.link.utilisation", 1}} {
		if v, ok := r.value(x.metric); ok {
			t.Row(x.label, term.Bar(min(v, 1), barWidth)+" "+term.Percent(v), style.Dim(spread(x.column)))
		}
	}
	r.lossRows(t, style)
	if v, ok := r.value("cluster.put.aborted"); ok && v > 0 {
		t.Row("retried", r.written("cluster.put.aborted"), style.Dim("attempts whose bids had no common window"))
	}
	r.mishapRows(t, style)
	if v, ok := r.value("cluster.durability.nines"); ok {
		t.Row("durability", term.Significant(v, 3)+" nines per year",
			style.Dim(fmt.Sprintf("mean time to a loss %s; a failed drive is rebuilt in %s",
				r.written("cluster.durability.mttdl"), r.written("cluster.durability.rebuild"))))
	}
	if v, ok := r.value("cluster.multicast.rules"); ok && v > 0 {
		or := ""
		if _, ok := r.value("cluster.multicast.bier"); ok {
			or = ", or a header of " + r.written("cluster.multicast.bier") + " in each packet (BIER)"
		}
		t.Row("multicast", r.written("cluster.multicast.rules")+" rules", style.Dim("in each switch"+or))
	}
	r.tierRows(t, style)
	b.WriteString("\n" + style.Bold("cluster") + "\n")
	return t.Write(b, style)
}

// clusterDraws reports whether the cluster section shows a series or matrix.
func clusterDraws(name string) bool { return strings.HasPrefix(name, "cluster.") }

// clusterTable lists the metrics of a cluster's operations.
func clusterTable(r *Run) *table {
	t := &table{Full: true, Head: []heading{{"", true}}}
	columns := []struct{ metric, title string }{{"count", "Count"}, {"iops", "Per second"}, {"rate", "Rate"},
		{"latency.mean", "Mean"}, {"latency.p50", "p50"},
		{"latency.p90", "p90"}, {"latency.p99", "p99"}, {"latency.p99_9", "p99.9"}, {"latency.max", "Max"},
		{"aborted", "Retried"}}
	done := slices.DeleteFunc(slices.Clone(clusterOperations),
		func(op string) bool { _, ok := r.value("cluster." + op + ".count"); return !ok })
	columns = slices.DeleteFunc(columns, func(c struct{ metric, title string }) bool { // columns without a value
		return !slices.ContainsFunc(done, func(op string) bool { return r.shown("cluster."+op+"."+c.metric) != "" })
	})
	for _, c := range columns {
		t.Head = append(t.Head, heading{Title: c.title})
	}
	for _, op := range done {
		row := []cell{{Text: op, Class: "text"}}
		for _, c := range columns {
			row = append(row, cell{Text: r.shown("cluster." + op + "." + c.metric)})
		}
		t.Rows = append(t.Rows, row)
	}
	if t.Rows == nil {
		return nil
	}
	return t
}

// clusterFigures draws a cluster's latencies, its rate relative to each bound, and how evenly its targets were used.
func clusterFigures(runs []Run) []figure {
	var g group
	for i := range runs {
		for k, op := range clusterOperations {
			if what := "cluster." + op + ".latency"; hasHistogram(&runs[i], what) {
				name := runs[i].Label + ", " + op
				if len(runs) == 1 {
					name = op
				}
				g.curves = append(g.curves, curve{&runs[i], name, len(clusterOperations)*i + k, what})
			}
		}
	}
	if g.curves == nil {
		return nil
	}
	out := append(distributionFigures([]group{g}, "latency", clusterThings(runs)),
		sortedLatencies(g, clusterThings(runs)))
	var rows []string
	var share []float64
	for i := range runs {
		m, ok := runs[i].matrix("cluster.bounds", 1)
		if !ok {
			continue
		}
		rate := 0.0
		for _, op := range clusterOperations {
			v, _ := runs[i].value("cluster." + op + ".rate")
			rate += v
		}
		for k, name := range m.Rows {
			label := name
			if len(runs) > 1 {
				label += ", " + runs[i].Label
			}
			rows, share = append(rows, label), append(share, rate/m.V[k][0])
		}
	}
	if rows != nil {
		out = append(out, figure{Caption: "Measured rate over each bound",
			Note: "Measured rate of puts and gets over the bound of each resource. The longest bar is the " +
				"bottleneck; its gap to 100 % is lost to waiting and imbalance.",
			SVG: bothBars(chart.BarChart{Frame: chart.Frame{Title: "share of each bound",
				Height: chart.BarsHeight(len(rows))},
				X: chart.Axis{Label: "Share of the bound", Unit: chart.Fractions, Max: 1}, Rows: rows,
				Parts: []chart.Part{{Style: 0, V: share}}, Total: true})})
	}
	out = append(out, lossFigures(runs)...)
	var lines []chart.Series
	for i := range runs {
		m, ok := runs[i].matrix("cluster.target.busy", 2)
		if !ok {
			continue
		}
		for column, what := range m.Cols {
			s := chart.Series{Name: what, Style: 2*i + column}
			if len(runs) > 1 {
				s.Name = runs[i].Label + ", " + what
			}
			for k := range m.V {
				s.X, s.Y = append(s.X, float64(k+1)), append(s.Y, m.V[k][column])
			}
			slices.Sort(s.Y)
			lines = append(lines, s)
		}
	}
	if lines != nil {
		out = append(out, figure{Caption: "Load balance over targets",
			Note: "Busy share of each target's disk and receiving link, lowest first. A flat line is an even load.",
			SVG: bothLines(chart.LineChart{Frame: chart.Frame{Title: "targets by utilisation", Height: 360},
				X: chart.Axis{Label: "Targets, by utilisation", Unit: chart.Counts},
				Y: chart.Axis{Label: "Busy", Unit: chart.Fractions, FromZero: true, Max: 1}, Series: lines})})
	}
	return out
}

package report

import (
	"strings"

	"farflash/internal/term"
)

// exchanges prints a cluster whose nodes only exchange events.
func (r *Run) exchanges(b *strings.Builder, style term.Style) error {
	t := term.NewTable(term.Left(""), term.Right("count"), term.Right("per second"), term.Right("mean"),
		term.Right("p50"), term.Right("p90"), term.Right("p99"), term.Right("p99.9"), term.Right("max"))
	row := []string{"exchange"}
	for _, m := range []string{"count", "iops", "latency.mean", "latency.p50", "latency.p90", "latency.p99",
		"latency.p99_9", "latency.max"} {
		row = append(row, r.written("cluster.exchange."+m))
	}
	t.Row(row...)
	t.Row("event", r.written("cluster.event.count"), r.written("cluster.event.iops"))
	b.WriteByte('\n')
	if err := t.Write(b, style); err != nil {
		return err
	}
	t = term.NewTable(term.Left(""), term.Left(""), term.Left("")).Indent("  ")
	if v, ok := r.value("cluster.bound.reached"); ok {
		t.Row("events sent", term.Bar(min(v, 1), barWidth)+" "+term.Percent(v),
			style.Dim("of the pattern's long-run rate"))
	}
	t.Row("pending at a node", r.written("cluster.event.pending.mean"),
		style.Dim("at most "+r.written("cluster.event.pending.max")+"; more than one "+
			r.written("cluster.event.crowded")+" of the time"))
	for _, x := range []struct{ label, metric, what string }{
		{"held back", "cluster.event.held", "exchanges not started: no drawn peer had capacity"},
		{"shaped", "cluster.event.shaped", "exchanges delayed by their node's leaky bucket"},
	} {
		if v, ok := r.value(x.metric); ok && v > 0 {
			t.Row(x.label, r.written(x.metric), style.Dim(x.what))
		}
	}
	b.WriteString("\n" + style.Bold("cluster") + "\n")
	return t.Write(b, style)
}

// tierRows prints the figures of an SSD tier in front of HDDs.
func (r *Run) tierRows(t *term.Table, style term.Style) {
	v, ok := r.value("cluster.tier.used")
	if !ok {
		return
	}
	if reached, ok := r.value("cluster.bound.reached"); ok {
		t.Row("bound reached", term.Bar(min(reached, 1), barWidth)+" "+term.Percent(reached),
			style.Dim("of "+r.written("cluster.bound.rate")+", the long-run rate of all devices"))
	}
	t.Row("SSD in use", term.Bar(min(v, 1), barWidth)+" "+term.Percent(v),
		style.Dim(r.written("cluster.tier.drains")+" times at its high watermark"))
	t.Row("moved", r.written("cluster.tier.moved"), style.Dim("chunks to HDDs"))
	t.Row("held back", r.written("cluster.tier.held"),
		style.Dim("writes that waited for the SSD, at most "+r.written("cluster.tier.waiting.max")+" at once"))
}

// clusterThings names the objects of a cluster's latencies: exchanges if there are any, otherwise chunks.
func clusterThings(runs []Run) string {
	for i := range runs {
		if hasHistogram(&runs[i], "cluster.exchange.latency") {
			return "exchanges"
		}
	}
	return "chunks"
}

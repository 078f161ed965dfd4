package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"farflash/internal/term"
)

// network prints the figures of flows and their network.
func (r *Run) network(b *strings.Builder, style term.Style) error {
	if err := r.flowText(b, style); err != nil {
		return err
	}
	t := term.NewTable(term.Left(""), term.Left(""), term.Left("")).Indent("  ")
	// A metric that is 0 gets no line.
	row := func(label, metric, value, detail string) {
		if v, ok := r.value(metric); ok && v != 0 {
			t.Row(label, value, style.Dim(detail))
		}
	}
	ports := r.ports()
	written := func(label, metric, detail string) { row(label, metric, r.written(metric), detail) }
	unless0 := func(metric, format string) string {
		if v, _ := r.value(metric); v == 0 {
			return ""
		}
		return some(r.written(metric), format)
	}
	if v, ok := r.value("flow.unfinished"); ok && v > 0 {
		t.Row("unfinished flows", style.Warning(term.Count(v)),
			style.Dim(some(r.written("flow.count"), "%s completed")))
	}
	written("collectives", "collective.time.mean",
		some(r.written("collective.bus_bandwidth"), "mean time; %s on the bus"))
	written("goodput", "fabric.goodput", some(r.written("flow.bytes"), "%s of completed flows"))
	if v, ok := r.value("fabric.utilisation.max"); ok {
		name := ""
		if list := foremost(ports, 1, port.byUse); len(list) > 0 {
			name = list[0].name
		}
		row("busiest link", "fabric.utilisation.max", term.Bar(v, barWidth)+" "+term.Percent(v), name)
	}
	written("largest queue", "fabric.queue.max", r.deepest(ports))
	written("pauses", "fabric.pause.count",
		joined(some(r.written("fabric.pause.time"), "%s over all ports"), r.longestPause()))
	written("ECN marks", "fabric.ecn.marks", unless0("fabric.cnp.count", "%s CNPs"))
	if v, _ := r.value("fabric.drops"); v > 0 {
		t.Row("drops", style.Warning(r.written("fabric.drops")), style.Dim(r.lost()))
	}
	written("retransmits", "fabric.retransmits",
		joined(unless0("fabric.timeouts", "%s timeouts"), unless0("fabric.nacks", "%s NACKs")))
	if v, _ := r.value("fabric.retransmits"); v == 0 {
		written("timeouts", "fabric.timeouts", "")
	}
	if v, _ := r.value("fabric.deadlocks"); v > 0 {
		t.Row("deadlocks", style.Bad(r.written("fabric.deadlocks")), "")
	}
	if t.Rows() > 0 {
		b.WriteString("\n" + style.Bold("network") + "\n")
		if err := t.Write(b, style); err != nil {
			return err
		}
	}
	if err := r.bucketText(b, style); err != nil {
		return err
	}
	return r.portText(b, style, ports)
}

// joined joins the non-empty parts with commas.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

func (r *Run) longestPause() string {
	of := func(p port) float64 { return p.longestUS }
	if list := foremost(r.ports(), 1, of); len(list) > 0 {
		return "the longest " + term.Latency(of(list[0])) + " at " + list[0].name
	}
	return ""
}

func (r *Run) flowText(b *strings.Builder, style term.Style) error {
	count, ok := r.value("flow.count")
	if !ok || count == 0 {
		return nil
	}
	t := term.NewTable(term.Left(""), term.Right("count"), term.Right("mean"), term.Right("p50"), term.Right("p90"),
		term.Right("p99"), term.Right("p99.9"), term.Right("max"))
	for _, f := range []struct{ label, count, metric string }{{"flow completion", term.Count(count), "flow.fct"},
		{"slowdown", "", "flow.slowdown"}} {
		row := []string{f.label, f.count}
		for _, q := range []string{".mean", ".p50", ".p90", ".p99", ".p99_9", ".max"} {
			text := r.written(f.metric + q)
			if v, ok := r.value(f.metric + q); ok && f.metric == "flow.slowdown" {
				text = slowdown(v)
			}
			row = append(row, text)
		}
		t.Row(row...)
	}
	groups, left := r.flowGroups(mostPartRows)
	for _, g := range groups {
		for k, metric := range []string{"fct", "slowdown"} {
			row := []string{short(g.name, partName), r.written(g.prefix + "count")}
			if k > 0 {
				row[0], row[1] = "  slowdown", ""
			}
			for _, q := range []string{".mean", ".p50", ".p90", ".p99", ".p99_9", ".max"} {
				text := r.written(g.prefix + metric + q)
				if v, ok := r.value(g.prefix + metric + q); ok && k > 0 {
					text = slowdown(v)
				}
				row = append(row, text)
			}
			t.Row(row...)
		}
	}
	b.WriteByte('\n')
	if err := t.Write(b, style); err != nil || left == 0 {
		return err
	}
	b.WriteString(style.Dim(fmt.Sprintf("and %d other groups of flows (result.json has all)", left)) + "\n")
	return nil
}

// mostBuckets limits the flow sizes in the text.
const mostBuckets = 10

// bucketText prints the slowdowns by flow size, for the sizes with the most flows if there are many.
func (r *Run) bucketText(b *strings.Builder, style term.Style) error {
	list := r.buckets()
	if len(list) < 2 {
		return nil // the overall slowdown says the same
	}
	shown := make([]int, len(list))
	for i := range shown {
		shown[i] = i
	}
	slices.SortStableFunc(shown, func(a, b int) int { return cmp.Compare(list[b].flows, list[a].flows) })
	left := 0.0
	for _, i := range shown[min(mostBuckets, len(shown)):] {
		left += list[i].flows
	}
	shown = shown[:min(mostBuckets, len(shown))]
	slices.Sort(shown)
	t := term.NewTable(term.Left("slowdown by size"), term.Right("flows"), term.Right("mean"), term.Right("p50"),
		term.Right("p95"), term.Right("p99"), term.Right("max")).Indent("  ")
	for _, i := range shown {
		x := list[i]
		t.Row(x.label, term.Quantity(x.flows, "count"), slowdown(x.mean), slowdown(x.p50), slowdown(x.p95),
			slowdown(x.p99), slowdown(x.worst))
	}
	b.WriteByte('\n')
	if err := t.Write(b, style); err != nil {
		return err
	}
	if left > 0 {
		b.WriteString(style.Dim("  and "+term.Count(left)+" flows of other sizes") + "\n")
	}
	return nil
}

// mostPorts limits the busiest and the most paused ports in the text.
const mostPorts = 4

func (r *Run) portText(b *strings.Builder, style term.Style, ports []port) error {
	busy, paused := foremost(ports, mostPorts, port.byUse), foremost(ports, mostPorts, port.byPause)
	if len(busy)+len(paused) == 0 {
		return nil
	}
	columns := columnsOf(slices.Concat(busy, paused))
	titles := []term.Column{term.Left(""), term.Left("port")}
	for _, k := range columns {
		titles = append(titles, term.Right(portColumns[k].title))
	}
	t := term.NewTable(titles...).Indent("  ")
	for _, g := range []struct {
		label string
		list  []port
	}{{"busiest", busy}, {"most paused", paused}} {
		for i, p := range g.list {
			row := []string{"", p.name}
			if i == 0 {
				row[0] = g.label
			}
			for _, k := range columns {
				row = append(row, p.written(k))
			}
			t.Row(row...)
		}
	}
	b.WriteByte('\n')
	return t.Write(b, style)
}

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"farflash/internal/term"
	"farflash/numeric/units"
	"farflash/report/chart"
	"farflash/result"
)

// networkNames are the network metrics that comparisons show.
var networkNames = []string{"fabric.goodput", "fabric.utilisation.max", "fabric.queue.max", "fabric.pause.count",
	"fabric.pause.time", "fabric.ecn.marks",
	"fabric.cnp.count", "fabric.drops", "fabric.retransmits", "fabric.timeouts", "fabric.nacks", "fabric.deadlocks",
	"fabric.packet_hops"}

// happened returns the networkNames that are not 0 in all runs, and those for which 0 is informative.
func happened(runs []Run) []string {
	return slices.DeleteFunc(slices.Clone(networkNames), func(name string) bool {
		return name != "fabric.pause.count" && name != "fabric.drops" &&
			!slices.ContainsFunc(runs, func(r Run) bool { v, _ := r.value(name); return v != 0 })
	})
}

// networkDraws reports whether the network sections show a series or matrix.
func networkDraws(name string) bool {
	if group, rest, _ := strings.Cut(name, "."); strings.HasPrefix(group, "flow[") && rest == "rate" {
		return true
	}
	return slices.Contains([]string{"fabric.goodput", "fabric.queue", "fabric.ecn.marks", "fabric.pause.time",
		"fabric.link.utilisation", "fabric.link.queue",
		"fabric.link.paused", "fabric.link.totals", "fabric.queue.histogram", "fabric.host.goodput", "fabric.layout",
		"flow.slowdown"}, name)
}

// port holds the figures of one direction of a link after the warm-up, a row of fabric.link.totals. Unknown values are
// NaN.
type port struct {
	name                                                             string
	utilisation, pauses, pausedUS, longestUS, marks, drops, maxQueue float64
}

// ports returns the run's ports in the result's order.
func (r *Run) ports() []port {
	m, ok := r.matrix("fabric.link.totals", 1)
	if !ok {
		return nil
	}
	out := make([]port, len(m.Rows))
	for i, name := range m.Rows {
		p := &out[i]
		p.name = name
		for _, f := range []struct {
			column string
			to     *float64
		}{{"utilisation", &p.utilisation}, {"pauses", &p.pauses}, {"paused_us", &p.pausedUS},
			{"longest_pause_us", &p.longestUS}, {"ecn_marks", &p.marks},
			{"drops", &p.drops}, {"queue_max_bytes", &p.maxQueue}} {
			*f.to = math.NaN()
			if k := slices.Index(m.Cols, f.column); k >= 0 {
				*f.to = m.V[i][k]
			}
		}
	}
	return out
}

// foremost returns up to n ports with the largest value of a figure, without those whose value is not positive.
func foremost(ports []port, n int, of func(port) float64) []port {
	list := slices.DeleteFunc(slices.Clone(ports), func(p port) bool { return !(of(p) > 0) })
	slices.SortStableFunc(list, func(a, b port) int { return cmp.Compare(of(b), of(a)) })
	return list[:min(n, len(list))]
}

func (p port) byUse() float64   { return p.utilisation }
func (p port) byPause() float64 { return p.pausedUS }
func (p port) byQueue() float64 { return p.maxQueue }

// deepest returns the switch port with the largest queue: the metric, which counts switches only, identifies it.
func (r *Run) deepest(ports []port) string {
	v, _ := r.value("fabric.queue.max")
	for _, p := range ports {
		if v > 0 && p.maxQueue == v {
			return p.name
		}
	}
	return ""
}

// measured returns the duration that metrics cover, in seconds.
func (r *Run) measured() float64 { return r.Result.SimulatedS - r.Result.WarmUp.UntilS }

// portColumns are the columns of tables of ports.
var portColumns = []struct {
	title, unit string
	of          func(port) float64
}{
	{"busy", "fraction", port.byUse},
	{"paused", "us", port.byPause},
	{"pauses", "count", func(p port) float64 { return p.pauses }},
	{"longest pause", "us", func(p port) float64 { return p.longestUS }},
	{"ECN marks", "count", func(p port) float64 { return p.marks }},
	{"drops", "count", func(p port) float64 { return p.drops }},
	{"largest queue", "B", port.byQueue},
}

// written formats a figure of a port, a zero without its unit.
func (p port) written(column int) string {
	c := portColumns[column]
	if v := c.of(p); v != 0 {
		return term.Quantity(v, c.unit)
	}
	return "0"
}

// columnsOf returns the indexes of the portColumns in which any port has a positive value.
func columnsOf(ports []port) []int {
	var out []int
	for i, c := range portColumns {
		if slices.ContainsFunc(ports, func(p port) bool { return c.of(p) > 0 }) {
			out = append(out, i)
		}
	}
	return out
}

// bucket is a row of flow.slowdown.
type bucket struct {
	label                             string  // "up to 1MiB"
	size                              float64 // of the largest flows, 0 if the label has none
	flows, mean, p50, p95, p99, worst float64
}

// buckets returns the slowdowns by flow size.
func (r *Run) buckets() []bucket {
	m, ok := r.matrix("flow.slowdown", 1)
	if !ok {
		return nil
	}
	out := make([]bucket, len(m.Rows))
	for i, label := range m.Rows {
		b := &out[i]
		b.label = label
		if size, err := units.ParseBytes(strings.TrimPrefix(label, "up to ")); err == nil {
			b.size = float64(size)
			b.label = "up to " + spaced(strings.TrimPrefix(label, "up to "))
		}
		for _, f := range []struct {
			column string
			to     *float64
		}{{"flows", &b.flows}, {"mean", &b.mean}, {"p50", &b.p50}, {"p95", &b.p95}, {"p99", &b.p99},
			{"max", &b.worst}} {
			*f.to = math.NaN()
			if k := slices.Index(m.Cols, f.column); k >= 0 {
				*f.to = m.V[i][k]
			}
		}
	}
	return out
}

// spaced inserts a space between a number and its unit.
func spaced(s string) string {
	if i := strings.IndexFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' }); i > 0 && s[i-1] != ' ' {
		return s[:i] + " " + s[i:]
	}
	return s
}

// lost returns the reasons for dropped packets, from the run's warnings.
func (r *Run) lost() string {
	var why []string
	for _, w := range r.Result.Warnings {
		if count, reason, ok := strings.Cut(w, " packets lost: "); ok {
			if n, err := strconv.ParseFloat(count, 64); err == nil {
				why = append(why, term.Count(n)+" "+reason)
			}
		}
	}
	if len(why) == 1 {
		_, reason, _ := strings.Cut(why[0], " ")
		return reason
	}
	return strings.Join(why, ", ")
}

// networkTiles returns the headline figures of a network.
func (r *Run) networkTiles() []tile {
	var list []tile
	add := func(name, metric, detail string) {
		if v := r.shown(metric); v != "" {
			list = append(list, tile{name, v, detail})
		}
	}
	add("Flow completion p99", "flow.fct.p99", some(r.shown("flow.fct.p50"), "half within %s"))
	add("Slowdown p99", "flow.slowdown.p99", some(r.shown("flow.slowdown.p50"), "median %s"))
	if _, ok := r.value("flow.fct.p99"); !ok {
		add("Completed flows", "flow.count", some(r.shown("flow.unfinished"), "%s unfinished"))
	}
	add("Goodput", "fabric.goodput", some(r.shown("fabric.utilisation.max"), "busiest link %s"))
	pauses := some(r.shown("fabric.pause.time"), "%s over all ports")
	if v, _ := r.value("fabric.pause.time"); v == 0 {
		pauses = "no port was paused"
	}
	add("PFC pauses", "fabric.pause.count", pauses)
	add("Largest queue", "fabric.queue.max", some(r.deepest(r.ports()), "at %s"))
	detail := r.lost()
	if v, _ := r.value("fabric.drops"); v == 0 {
		detail = "no packet was lost"
	}
	add("Drops", "fabric.drops", detail)
	return list
}

// flowTable returns the table of one run's flows.
func flowTable(r *Run) *table {
	if _, ok := r.value("flow.count"); !ok {
		return nil
	}
	t := &table{Full: true,
		Head: []heading{{"", true}, {Title: "Flows"}, {Title: "Unfinished"}, {Title: "Mean"}, {Title: "p50"},
			{Title: "p90"}, {Title: "p95"}, {Title: "p99"},
			{Title: "p99.9"}, {Title: "Max"}}}
	for i, f := range []struct{ label, metric string }{{"completion time", "flow.fct"}, {"slowdown", "flow.slowdown"}} {
		row := []cell{{Text: f.label, Class: "text"}, {}, {}}
		if i == 0 {
			row[1].Text, row[2].Text = r.shown("flow.count"), r.shown("flow.unfinished")
			if v, _ := r.value("flow.unfinished"); v > 0 {
				row[2].Class = "failed"
			}
		}
		for _, q := range []string{".mean", ".p50", ".p90", ".p95", ".p99", ".p99_9", ".max"} {
			row = append(row, cell{Text: r.shown(f.metric + q)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// bucketTable lists the slowdowns by flow size.
func bucketTable(r *Run) *table {
	list := r.buckets()
	if len(list) == 0 {
		return nil
	}
	t := &table{Full: true, Caption: "Slowdown by size of flow",
		Head: []heading{{"Size", true}, {Title: "Flows"}, {Title: "Mean"}, {Title: "p50"}, {Title: "p95"},
			{Title: "p99"}, {Title: "Max"}}}
	for _, b := range list {
		row := []cell{{Text: b.label, Class: "text name"}, {Text: term.Quantity(b.flows, "count")}}
		for _, v := range []float64{b.mean, b.p50, b.p95, b.p99, b.worst} {
			row = append(row, cell{Text: slowdown(v)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// slowdown formats a slowdown to three digits, which is all its precision.
func slowdown(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return term.Significant(v, 3)
}

const flowTime = "flow completion time"

// flowTimes returns the completion times of the runs' flows.
func flowTimes(runs []Run) group {
	var g group
	for i := range runs {
		if hasHistogram(&runs[i], "flow.fct") {
			name := runs[i].Label
			if len(runs) == 1 {
				name = "flows"
			}
			g.curves = append(g.curves, curve{&runs[i], name, i, "flow.fct"})
		}
	}
	return g
}

// flowFigures draws completion times and slowdowns.
func flowFigures(runs []Run) []figure {
	var out []figure
	if g := flowTimes(runs); g.curves != nil {
		out = distributionFigures([]group{g}, flowTime, "flows")
	}
	out = append(out, slowdownFigures(runs)...)
	if len(runs) == 1 {
		if t := bucketTable(&runs[0]); t != nil {
			out = append(out, figure{Table: t})
		}
	}
	return out
}

// slowdownFigures draws slowdown against flow size: all quantiles of a single run in one chart, or one chart per
// quantile for several runs.
func slowdownFigures(runs []Run) []figure {
	quantiles := []struct {
		name string
		of   func(bucket) float64
	}{{"p50", func(b bucket) float64 { return b.p50 }}, {"p95", func(b bucket) float64 { return b.p95 }},
		{"p99", func(b bucket) float64 { return b.p99 }}}
	line := func(r *Run, name string, style int, of func(bucket) float64) chart.Series {
		s := chart.Series{Name: name, Style: style}
		for _, b := range r.buckets() {
			if b.size > 0 && (len(s.X) == 0 || b.size > s.X[len(s.X)-1]) {
				s.X, s.Y = append(s.X, b.size), append(s.Y, of(b))
			}
		}
		return s
	}
	draw := func(caption string, s []chart.Series) []figure {
		if !slices.ContainsFunc(s, func(s chart.Series) bool { return len(s.X) > 1 }) {
			return nil
		}
		return []figure{{Caption: caption,
			Note: "Completion time relative to the flow alone in the network, by size. Each point covers flows " +
				"between half its size and its size.",
			SVG: bothLines(chart.LineChart{Frame: chart.Frame{Title: caption, Height: 360},
				X: chart.Axis{Label: "Flow size", Unit: chart.Bytes, Scale: chart.Log},
				Y: chart.Axis{Label: "Slowdown", Unit: chart.Plain, Scale: logIfWide(s)}, Series: s})}}
	}
	if len(runs) == 1 {
		var s []chart.Series
		for i, q := range quantiles {
			if l := line(&runs[0], q.name, []int{5, 0, 1}[i], q.of); len(l.X) > 0 {
				s = append(s, l)
			}
		}
		return draw("Slowdown by size", s)
	}
	var out []figure
	for _, q := range []int{0, 2} {
		var s []chart.Series
		for i := range runs {
			if l := line(&runs[i], runs[i].Label, i, quantiles[q].of); len(l.X) > 0 {
				s = append(s, l)
			}
		}
		out = append(out, draw("Slowdown by size, "+quantiles[q].name, s)...)
	}
	return out
}

// networkOverTime draws the network's totals and, for a single run, the rates of the first queue pairs.
func networkOverTime(runs []Run) []figure {
	var out []figure
	shade := warmUp(runs)
	for _, f := range []struct {
		series, caption, label string
		unit                   chart.Unit
	}{
		{"fabric.goodput", "Goodput", "Goodput", chart.BitRates},
		{"fabric.queue", "Largest queue of any port", "Queue", chart.Bytes},
		{"fabric.ecn.marks", "Packets marked per second", "ECN marks", chart.PerSecond},
		{"fabric.pause.time", "Share of time paused, mean over ports", "Paused", chart.Fractions},
	} {
		var s []chart.Series
		found := false
		for i := range runs {
			if !hasSeries(&runs[i], f.series) {
				continue
			}
			name := runs[i].Label
			if len(runs) == 1 {
				name = ""
			}
			c := middles(curve{&runs[i], name, i, f.series})
			found = found || slices.ContainsFunc(c.Y, func(v float64) bool { return v > 0 })
			s = append(s, c)
		}
		if !found {
			continue // a flat line at 0
		}
		out = append(out, figure{Caption: f.caption,
			SVG: bothLines(chart.LineChart{Frame: chart.Frame{Title: f.caption + " over time"},
				X: timeAxis, Y: chart.Axis{Label: f.label, Unit: f.unit, FromZero: true}, Series: s, Shade: shade})})
	}
	if len(runs) > 1 {
		return out
	}
	var rates []chart.Series // not drawn if they are constant
	for i := range chart.Styles {
		if name := fmt.Sprintf("flow[%d].rate", i); hasSeries(&runs[0], name) {
			rates = append(rates, middles(curve{&runs[0], "queue pair " + strconv.Itoa(i), i, name}))
		}
	}
	if lo, hi := span(rates); hi > lo {
		out = append(out, figure{Caption: "Rates of the first queue pairs",
			Note: "Rates set by congestion control. All charts share their axes.", Wide: true,
			SVG: multiples(chart.LineChart{Frame: chart.Frame{Title: "rates of the first queue pairs over time",
				Width: 320, Height: 190}, X: timeAxis,
				Y:      chart.Axis{Label: "Rate", Unit: chart.BitRates, FromZero: true, Scale: logIfWide(rates)},
				Series: rates, Shade: shade})})
	}
	return out
}

// span returns the smallest and largest value of curves.
func span(series []chart.Series) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, s := range series {
		for _, v := range s.Y {
			if !math.IsNaN(v) {
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
		}
	}
	return lo, hi
}

// networkFigures draws the links, queues, pauses and hosts.
func networkFigures(runs []Run) []figure {
	out := topologies(runs)
	if len(runs) > 1 {
		return out
	}
	r := &runs[0]
	out = append(out, portTables(r)...)
	out = append(out, depthFigure(r)...)
	return append(out, hostFigure(r)...)
}

// mostMoving limits the values over time in a page; each takes two bytes.
const mostMoving = 1_200_000

// linkMeasures are the measures that colour the links, in the order of NetworkWay.Whole.
var linkMeasures = []struct {
	matrix string
	of     chart.NetworkMeasure
}{
	{"fabric.link.utilisation",
		chart.NetworkMeasure{Name: "utilisation", Whole: "utilisation", Unit: chart.Fractions, Max: 1, WholeMax: 1}},
	{"fabric.link.queue", chart.NetworkMeasure{Name: "queue", Whole: "largest queue", Unit: chart.Bytes}},
	{"fabric.link.paused", chart.NetworkMeasure{Name: "time paused", Whole: "time paused", Unit: chart.Fractions}},
}

// topologies draws each run's network, all on the same scales.
func topologies(runs []Run) []figure {
	var charts []chart.NetworkChart
	var of []*Run
	room := mostMoving
	for i := range runs {
		if c, ok := runs[i].topology(&room); ok {
			charts, of = append(charts, c), append(of, &runs[i])
		}
	}
	chart.SharedScales(charts)
	var out []figure
	for i, c := range charts {
		f := figure{Caption: "Links", Wide: true, Player: true, SVG: svg(chart.Network(c)),
			Note: "Lines are links. Colour and width show the busier direction. Over time, utilisation and paused " +
				"time are shares of a slice; a queue is its depth at the slice's end."}
		if len(runs) > 1 {
			f.Caption = of[i].Label + ": links"
		}
		if of[i].Result.WarmUp.UntilS > 0 {
			f.Note += " The whole run excludes the warm-up."
		}
		if c.Times == nil {
			f.Note += " Only the whole run is shown."
		}
		out = append(out, f)
	}
	return out
}

// topology draws the network. Its values over time are deducted from room, and left out if room is not enough for them.
func (r *Run) topology(room *int) (chart.NetworkChart, bool) {
	c := chart.NetworkChart{Frame: chart.Frame{Title: "the network, its links coloured by utilisation", Width: 1310}}
	layout, ok := r.matrix("fabric.layout", 3)
	ports := r.ports()
	if !ok || len(ports) == 0 || len(layout.Cols) < 3 {
		return c, false
	}
	index := make(map[string]int, len(layout.Rows))
	for i, name := range layout.Rows {
		x, y := layout.V[i][0], layout.V[i][1]
		if math.IsNaN(x) || math.IsNaN(y) {
			return c, false
		}
		index[name] = i
		c.Nodes = append(c.Nodes,
			chart.NetworkNode{Name: name, X: min(max(x, 0), 1), Y: min(max(y, 0), 1), End: layout.V[i][2] == 0})
	}
	for _, m := range linkMeasures {
		c.Measures = append(c.Measures, m.of)
	}
	var used int
	c.Times, used = r.slices(len(ports), *room)
	*room -= used
	c.Links = r.links(ports, index, c.Times != nil)
	return c, len(c.Links) > 0
}

// slices returns the ends of the time slices for which the links have values, and the number of values, or none if they
// exceed room.
func (r *Run) slices(ports, room int) (times []float64, used int) {
	m, ok := r.matrix(linkMeasures[0].matrix, 1)
	if !ok || ports*len(m.Cols)*len(linkMeasures) > room {
		return nil, 0
	}
	for _, c := range m.Cols {
		t, err := strconv.ParseFloat(c, 64)
		if err != nil || math.IsNaN(t) || math.IsInf(t, 0) {
			return nil, 0
		}
		times = append(times, t)
	}
	return times, ports * len(m.Cols) * len(linkMeasures)
}

// links pairs the two ports of each link. If several links connect the same two nodes, ports are paired in order: the
// first port of one node with the first of the other.
func (r *Run) links(ports []port, index map[string]int, moving bool) []chart.NetworkLink {
	var over [3]map[string][]int // rows of the matrices by port
	var m [3]result.Matrix
	for i, x := range linkMeasures {
		var ok bool
		if m[i], ok = r.matrix(x.matrix, 1); ok && moving && slices.Equal(m[i].Cols, m[0].Cols) {
			over[i] = make(map[string][]int, len(m[i].Rows))
			for k, name := range m[i].Rows {
				over[i][name] = append(over[i][name], k)
			}
		}
	}
	type ends struct{ a, b int }
	var out []chart.NetworkLink
	open := map[ends][]int{} // links whose second direction is missing
	seen := map[string]int{}
	measured := r.measured() * 1e6
	for _, p := range ports {
		a, b, ok := endsOf(p.name, index)
		if !ok {
			continue
		}
		nth := seen[p.name]
		seen[p.name]++
		w := chart.NetworkDirection{Name: p.name, Whole: []float64{p.utilisation, p.maxQueue, p.pausedUS / measured}}
		if !(measured > 0) {
			w.Whole[2] = math.NaN()
		}
		for i := range over {
			var v []float64
			if rows := over[i][p.name]; nth < len(rows) {
				v = m[i].V[rows[nth]]
			}
			w.Over = append(w.Over, v)
		}
		if list := open[ends{a, b}]; len(list) > 0 {
			out[list[0]].Ways = append(out[list[0]].Ways, w)
			open[ends{a, b}] = list[1:]
			continue
		}
		open[ends{b, a}] = append(open[ends{b, a}], len(out))
		out = append(out, chart.NetworkLink{A: a, B: b, Ways: []chart.NetworkDirection{w}})
	}
	return out
}

// endsOf splits the name of a port, such as "tor0->leaf1", at an arrow between two known nodes.
func endsOf(name string, index map[string]int) (a, b int, ok bool) {
	const arrow = "->"
	for at := 0; ; at += len(arrow) {
		i := strings.Index(name[at:], arrow)
		if i < 0 {
			return 0, 0, false
		}
		at += i
		a, okA := index[name[:at]]
		b, okB := index[name[at+len(arrow):]]
		if okA && okB {
			return a, b, true
		}
	}
}

// portTables lists the busiest and the most paused ports.
func portTables(r *Run) []figure {
	var out []figure
	all := r.ports()
	for _, t := range []struct {
		caption string
		of      func(port) float64
		leave   []string // columns left out to save space
	}{{"Busiest ports", port.byUse, []string{"pauses", "longest pause"}},
		{"Most paused ports", port.byPause, []string{"ECN marks", "drops"}}} {
		list := foremost(all, 10, t.of)
		if len(list) == 0 {
			continue
		}
		x := &table{Caption: t.caption, Full: true, Head: []heading{{"Port", true}}}
		columns := slices.DeleteFunc(columnsOf(list),
			func(k int) bool { return slices.Contains(t.leave, portColumns[k].title) })
		for _, k := range columns {
			x.Head = append(x.Head, heading{Title: capital(portColumns[k].title)})
		}
		for _, p := range list {
			row := []cell{{Text: p.name, Class: "text name"}}
			for _, k := range columns {
				row = append(row, cell{Text: p.written(k)})
			}
			x.Rows = append(x.Rows, row)
		}
		out = append(out, figure{Table: x})
	}
	return out
}

// depthFigure draws the queue depths of the ports with the deepest queues.
func depthFigure(r *Run) []figure {
	m, ok := r.matrix("fabric.queue.histogram", 1)
	if !ok || len(m.Cols) == 0 {
		return nil
	}
	row := make(map[string]int, len(m.Rows))
	for i, name := range m.Rows {
		row[name] = i
	}
	deepest := foremost(slices.DeleteFunc(r.ports(), func(p port) bool { _, ok := row[p.name]; return !ok }), 8,
		port.byQueue)
	var rows []string
	var v [][]float64
	last := 0
	for _, p := range deepest {
		counts := m.V[row[p.name]]
		sum := total(counts)
		if !(total(counts[1:]) > 0) {
			continue // every sample was empty
		}
		share := make([]float64, len(counts))
		for k, n := range counts {
			share[k] = n / sum
			if n > 0 {
				last = max(last, k)
			}
			if n == 0 {
				share[k] = math.NaN()
			}
		}
		rows, v = append(rows, p.name), append(v, share)
	}
	if len(rows) == 0 {
		return nil
	}
	var cols []string
	for _, c := range m.Cols[:last+1] {
		size := strings.TrimPrefix(c, "up to ")
		if b, err := units.ParseBytes(size); err == nil {
			size = strings.ReplaceAll(chart.Bytes.Format(float64(b)), " ", "")
		}
		cols = append(cols, size)
	}
	for i := range v {
		v[i] = v[i][:last+1]
	}
	return []figure{{Caption: "Queues of the deepest ports", Wide: true,
		Note: "Percentage of samples in which a port's queue had each depth. An empty cell means never.",
		SVG: broad(func(width float64) string {
			return chart.HeatMap(
				chart.HeatMapChart{Frame: chart.Frame{Title: "queue depths of the deepest ports", Width: width},
					RowLabel: "port", ColLabel: "depth, at most",
					Rows: rows, Cols: cols, V: v, Unit: chart.Fractions, Legend: "share of samples, %", Max: 1})
		})}}
}

// Up to mostBars hosts that received data get a bar each; more get a cell each, perLine to a row.
const (
	mostBars = 20
	perLine  = 64
)

// hostFigure draws the goodput of each host.
func hostFigure(r *Run) []figure {
	m, ok := r.matrix("fabric.host.goodput", 1)
	if !ok {
		return nil
	}
	v := make([]float64, len(m.Rows))
	var names []string // hosts that received data
	var some []float64
	for i := range v {
		v[i] = m.V[i][0]
		if v[i] > 0 {
			names, some = append(names, m.Rows[i]), append(some, v[i])
		}
	}
	if len(some) == 0 {
		return nil
	}
	f := figure{Caption: "Goodput of each host", Note: "Payload delivered to each host per second of measured time.",
		Wide: true}
	if len(some) <= mostBars {
		if n := len(v) - len(some); n > 0 {
			f.Note += " No data reached " + strconv.Itoa(n) + " of " + strconv.Itoa(len(v)) + " hosts."
		}
		f.SVG = broad(func(width float64) string {
			return chart.Bars(chart.BarChart{Frame: chart.Frame{Title: "goodput of each host", Width: width,
				Height: 60 + 24*float64(len(some))},
				X: chart.Axis{Label: "Received", Unit: chart.BitRates}, Rows: names, Parts: []chart.Part{{V: some}},
				Total: true})
		})
		return []figure{f}
	}
	f.SVG = strip(chart.HeatMapChart{Frame: chart.Frame{Title: "goodput of each host"}, RowLabel: "first",
		ColLabel: "hosts, row by row",
		Unit:     chart.BitRates, Legend: "received"}, "", m.Rows, v)
	return []figure{f}
}

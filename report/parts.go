package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"farflash/internal/term"
	"farflash/report/chart"
)

// partsOf is a division of the measurements: by tenant, workload and so on.
type partsOf struct {
	scope, title string
	parts        []partOf
	left         int // parts that are not shown
}

// partOf is one part of a division.
type partOf struct {
	prefix, name string // "tenant[2].", "web"
	ops          []string
}

// divisions lists the scopes that are shown, and their titles.
var divisions = []struct{ scope, title string }{{"tenant", "tenant"}, {"workload", "workload"}, {"job", "job"},
	{"initiator", "initiator"}, {"volume", "volume"}, {"namespace", "namespace"}}

// divided returns the measurements of each part, for at most most parts of a division: those with most requests. It
// omits workloads that equal the tenants, and divisions in which each kind of request belongs to a single part, because
// its figures are the run's.
func (r *Run) divided(most int) (out []partsOf) {
	number := map[string][]int{}
	for _, m := range r.Result.Metrics {
		scope, rest, ok := strings.Cut(m.Name, "[")
		index, of, closed := strings.Cut(rest, "].")
		if i, err := strconv.Atoi(index); ok && closed && err == nil && of == "all.count" {
			number[scope] = append(number[scope], i)
		}
	}
	for _, d := range divisions {
		list := number[d.scope]
		if len(list) < 2 || d.scope == "workload" && len(number["tenant"]) == len(list) {
			continue
		}
		x := partsOf{scope: d.scope, title: d.title}
		prefix := func(i int) string { return fmt.Sprintf("%s[%d].", d.scope, i) }
		if len(list) > most {
			slices.SortStableFunc(list, func(a, b int) int {
				of := func(i int) float64 { v, _ := r.value(prefix(i) + "all.count"); return v }
				return cmp.Compare(of(b), of(a))
			})
			x.left = len(list) - most
			list = list[:most]
			slices.Sort(list)
		}
		for _, i := range list {
			p := partOf{prefix: prefix(i), name: r.Result.PartName(d.scope, i)}
			for _, op := range []string{"read", "write"} {
				if _, ok := r.value(p.prefix + op + ".count"); ok {
					p.ops = append(p.ops, op)
				}
			}
			x.parts = append(x.parts, p)
		}
		_, alone := r.value(x.parts[0].prefix + "slowdown.mean")
		if shared(x.parts) || x.left > 0 || alone {
			out = append(out, x)
		}
	}
	return out
}

// shared reports whether several parts have requests of one kind.
func shared(parts []partOf) bool {
	seen := map[string]bool{}
	for _, p := range parts {
		for _, op := range p.ops {
			if seen[op] {
				return true
			}
			seen[op] = true
		}
	}
	return false
}

// Limits of a terminal's table of parts.
const (
	mostPartRows = 8
	partName     = 22 // characters
)

// partText prints the measurements of each tenant, workload and so on. Initiators appear only on the page, because they
// are many and alike.
func (r *Run) partText(b *strings.Builder, style term.Style) error {
	for _, x := range r.divided(mostPartRows) {
		if x.scope == "initiator" {
			continue
		}
		slow := slices.ContainsFunc(x.parts,
			func(p partOf) bool { _, ok := r.value(p.prefix + "slowdown.mean"); return ok })
		columns := []term.Column{term.Left(x.title), term.Left(""), term.Right("IOPS"), term.Right("bandwidth"),
			term.Right("mean"), term.Right("p99"), term.Right("max")}
		if slow {
			columns = append(columns, term.Right("slowdown"))
		}
		t := term.NewTable(columns...)
		for _, p := range x.parts {
			for k, op := range p.ops {
				row := []string{"", op}
				if k == 0 {
					row[0] = short(p.name, partName)
				}
				for _, m := range []string{"iops", "bandwidth", "latency.mean", "latency.p99", "latency.max"} {
					row = append(row, r.written(p.prefix+op+"."+m))
				}
				if slow && k == 0 {
					row = append(row, r.written(p.prefix+"slowdown.mean"))
				}
				t.Row(row...)
			}
		}
		b.WriteByte('\n')
		if err := t.Write(b, style); err != nil {
			return err
		}
		if x.left > 0 {
			b.WriteString(style.Dim(fmt.Sprintf("and %d other %ss with fewer requests (result.json has all)", x.left,
				x.title)) + "\n")
		}
	}
	if text := r.fairness(); text != "" {
		b.WriteString(style.Dim(term.Wrap("fairness: "+text, "  ")) + "\n")
	}
	return nil
}

// fairness describes the fairness among tenants; "" for workload items that are not tenants and did not run alone.
func (r *Run) fairness() string {
	_, named := r.value("tenant[0].all.count")
	if _, alone := r.value("fairness.slowdown"); !named && !alone {
		return ""
	}
	return joined(some(r.bare("fairness.bandwidth"), "%s of bandwidth (Jain)"),
		some(r.bare("fairness.progress"), "%s of progress (Jain)"),
		some(r.bare("fairness.slowdown"), "%s of slowdown (least over greatest)"))
}

// bare formats a share as a number from 0 to 1.
func (r *Run) bare(name string) string {
	v, ok := r.value(name)
	if !ok {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// short truncates a name to most characters.
func short(name string, most int) string {
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	list := []rune(name)
	return string(list[:most/2]) + "…" + string(list[len(list)-(most-most/2-1):])
}

// mostPagedParts bounds the parts of a division on a page.
const mostPagedParts = 32

// partFigures shows the measurements of each tenant, workload and so on.
func partFigures(runs []Run) (out []figure) {
	if len(runs) > 1 {
		return partsSideBySide(runs)
	}
	r := &runs[0]
	for _, x := range r.divided(mostPagedParts) {
		t := &table{Caption: capital(x.title) + "s", Full: true, Head: []heading{{"", true}, {"", true}}}
		columns := []struct{ metric, title string }{{"count", "Count"}, {"iops", "IOPS"}, {"bandwidth", "Bandwidth"},
			{"latency.mean", "Mean"}, {"latency.p50", "p50"}, {"latency.p99", "p99"},
			{"latency.p99_9", "p99.9"}, {"latency.max", "Max"}}
		for _, c := range columns {
			t.Head = append(t.Head, heading{Title: c.title})
		}
		slow := slices.ContainsFunc(x.parts,
			func(p partOf) bool { _, ok := r.value(p.prefix + "slowdown.mean"); return ok })
		if slow {
			t.Head = append(t.Head, heading{Title: "Slowdown"})
		}
		type bars struct {
			labels     []string
			mean, tail []float64
		}
		of := map[string]*bars{}
		var ops []string
		for _, p := range x.parts {
			for k, op := range p.ops {
				row := []cell{{Class: "text name"}, {Text: op, Class: "text"}}
				if k == 0 {
					row[0].Text = p.name
				}
				for _, c := range columns {
					row = append(row, cell{Text: r.shown(p.prefix + op + "." + c.metric)})
				}
				if slow && k == 0 {
					row = append(row, cell{Text: r.shown(p.prefix + "slowdown.mean")})
				} else if slow {
					row = append(row, cell{})
				}
				t.Rows = append(t.Rows, row)
				if of[op] == nil {
					ops, of[op] = append(ops, op), new(bars)
				}
				b := of[op]
				b.labels = append(b.labels, short(p.name, 18))
				number := func(metric string) float64 {
					if v, ok := r.value(p.prefix + op + "." + metric); ok {
						return v
					}
					return math.NaN()
				}
				b.mean, b.tail = append(b.mean, number("latency.mean")), append(b.tail, number("latency.p99"))
			}
		}
		out = append(out, figure{Wide: true, Table: t})
		note := ""
		if x.left > 0 {
			note = fmt.Sprintf("The %d with most requests; result.json has %d more.", len(x.parts), x.left)
		}
		if text := r.fairness(); text != "" && len(out) == 1 && (x.scope == "tenant" || x.scope == "workload") {
			note = joinedSentences(note, "Fairness: "+text+".")
		}
		for k, op := range ops {
			caption := "Latency by " + x.title
			if len(ops) > 1 {
				caption = capital(op) + " latency by " + x.title
			}
			f := figure{Caption: caption, Wide: len(ops) == 1 || len(x.parts) > 8}
			if k == 0 {
				f.Note = note
			}
			draw := func(width float64) string {
				return chart.Groups(chart.GroupChart{Frame: chart.Frame{Title: caption, Width: width, Height: 300},
					Y: chart.Axis{Label: "Latency", Unit: chart.Micros}, Labels: of[op].labels,
					Parts: []chart.Part{{Name: "mean", Style: 0, V: of[op].mean},
						{Name: "p99", Style: 3, V: of[op].tail}}})
			}
			if f.SVG = half(draw); f.Wide {
				f.SVG = broad(draw)
			}
			out = append(out, f)
		}
	}
	return out
}

func joinedSentences(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}

// partsSideBySide shows the parts of several runs that share a name in columns.
func partsSideBySide(runs []Run) (out []figure) {
	for _, x := range runs[0].divided(mostPartRows) {
		var names []string
		labels := map[string]string{}
		for _, p := range x.parts {
			for _, m := range []string{"read.latency.mean", "read.latency.p99", "write.latency.mean",
				"write.latency.p99", "all.bandwidth", "slowdown.mean"} {
				names = append(names, p.prefix+m)
				labels[p.prefix+m] = p.name + ": " + m
			}
		}
		if t := comparison(runs, names); t != nil {
			for i := range t.Rows {
				t.Rows[i][0].Text = labels[t.Rows[i][0].Text]
			}
			t.Caption = capital(x.title) + "s"
			out = append(out, figure{Wide: true, Table: t})
		}
	}
	return out
}

// flowGroups returns up to most of the groups of a network's completed flows, and the number of the remaining ones.
func (r *Run) flowGroups(most int) (list []partOf, left int) {
	for i := 0; ; i++ {
		p := partOf{prefix: fmt.Sprintf("flows[%d].", i), name: r.Result.PartName("flows", i)}
		switch v, ok := r.value(p.prefix + "count"); {
		case !ok:
			return list, left
		case v == 0:
		case len(list) == most:
			left++
		default:
			list = append(list, p)
		}
	}
}

// flowGroupTable returns the completion times of each group of flows.
func flowGroupTable(r *Run) *table {
	list, _ := r.flowGroups(mostPagedParts)
	if len(list) == 0 {
		return nil
	}
	t := &table{Caption: "By group", Full: true,
		Head: []heading{{"", true}, {Title: "Flows"}, {Title: "Mean"}, {Title: "p50"}, {Title: "p99"}, {Title: "Max"},
			{Title: "Slowdown, mean"}, {Title: "p99"}, {Title: "max"}}}
	for _, g := range list {
		row := []cell{{Text: g.name, Class: "text name"}}
		for _, m := range []string{"count", "fct.mean", "fct.p50", "fct.p99", "fct.max", "slowdown.mean",
			"slowdown.p99", "slowdown.max"} {
			row = append(row, cell{Text: r.shown(g.prefix + m)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

package report

import (
	"fmt"
	"slices"
	"strings"

	"farflash/internal/term"
)

// cluster prints what an object cluster did: its operations, how near they came to what the resources allow, and how evenly the
// targets were used.
func (r *Run) cluster(b *strings.Builder, style term.Style) error {
	if _, ok := r.value("cluster.put.count"); !ok {
		return nil
	}
	t := term.NewTable(term.Left(""), term.Right("chunks"), term.Right("a second"), term.Right("rate"), term.Right("mean"), term.Right("p50"),
		term.Right("p90"), term.Right("p99"), term.Right("p99.9"), term.Right("max"))
	for _, op := range []string{"put", "get"} {
		if _, ok := r.value("cluster." + op + ".count"); !ok {
			continue
		}
		row := []string{op}
		for _, m := range []string{"count", "iops", "rate", "latency.mean", "latency.p50", "latency.p90", "latency.p99", "latency.p99_9", "latency.max"} {
			row = append(row, r.written("cluster."+op+"."+m))
		}
		t.Row(row...)
	}
	b.WriteByte('\n')
	if err := t.Write(b, style); err != nil {
		return err
	}
	t = term.NewTable(term.Left(""), term.Left(""), term.Left("")).Indent("  ")
	if bounds, ok := r.Result.Matrix("cluster.bounds"); ok && len(bounds.Rows) > 0 {
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
			t.Row("bound reached", term.Bar(min(v, 1), barWidth)+" "+term.Percent(v), style.Dim("of "+term.Quantity(bounds.V[least][0], bounds.Unit)+", which the "+bounds.Rows[least]+" allow"))
		}
		t.Row("other bounds", "", style.Dim(strings.Join(others, ", ")))
	}
	spread := func(column int) string {
		m, ok := r.Result.Matrix("cluster.target.busy")
		if !ok || len(m.V) == 0 {
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
	if v, ok := r.value("cluster.put.aborted"); ok && v > 0 {
		t.Row("begun again", r.written("cluster.put.aborted"), style.Dim("chunks whose negotiation found no common time"))
	}
	b.WriteString("\n" + style.Bold("cluster") + "\n")
	return t.Write(b, style)
}

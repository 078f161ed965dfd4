package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/internal/term"
)

// system prints the breakdown of the latency of requests over a network, the differences between drives, and the
// convergence of storage and network in turns.
func (r *Run) system(b *strings.Builder, style term.Style) error {
	t := term.NewTable(term.Left(""), term.Left(""), term.Left("")).Indent("  ")
	for _, op := range []string{"read", "write"} {
		list, stages := r.anatomy(op)
		for _, s := range list {
			if s.row != "mean" && s.row != "p99" {
				continue
			}
			value := r.written(op + ".latency." + s.row)
			if value == "" {
				value = term.Latency(s.total)
			}
			names := make([]string, len(stages))
			for k, c := range stages {
				names[k] = brief(stageName(c))
			}
			t.Row(s.row+" "+op, value, style.Dim(largestFirst(names, s.parts)))
		}
	}
	if d := r.eachDrive(); len(d.number) > 1 {
		var parts []string
		for _, m := range []struct{ metric, format string }{{"ssd.utilisation.die", "busy %s to %s"},
			{"ssd.waf", "write amplification %s to %s"}} {
			if s, ok := d.spread(m.metric); ok {
				unit := "fraction"
				if m.metric == "ssd.waf" {
					unit = "ratio"
				}
				parts = append(parts,
					fmt.Sprintf(m.format, term.Quantity(s.least, unit), term.Quantity(s.greatest, unit)))
			}
		}
		t.Row("drives", term.Count(float64(len(d.number))), style.Dim(strings.Join(parts, ", ")))
	}
	if demanded := r.written("rate.demanded"); demanded != "" {
		parts := []string{"rate that the network grants the targets",
			"weight of writes over reads " + r.written("rate.weight_ratio")}
		if n, ok := r.value("rate.predictions"); ok && n > 0 {
			parts = append(parts, term.Count(n)+" predictions")
		}
		t.Row("rate control", demanded, style.Dim(strings.Join(parts, ", ")))
	}
	if t.Rows() > 0 {
		title := "system"
		if !r.overNetwork() {
			title = "where the time goes"
		}
		b.WriteString("\n" + style.Bold(title) + "\n")
		if err := t.Write(b, style); err != nil {
			return err
		}
	}
	return r.turns(b, style)
}

// turns prints the iterations between storage and network.
func (r *Run) turns(b *strings.Builder, style term.Style) error {
	t := term.NewTable(term.Left(""), term.Left(""), term.Left("")).Indent("  ")
	if v, ok := r.value("snis.iterations"); ok {
		verdict := ""
		if c, known := r.value("snis.converged"); known && c == 0 {
			verdict = style.Warning("did not converge")
		} else if known {
			verdict = "converged"
		}
		t.Row("iterations", term.Count(v), verdict)
	}
	if s, ok := r.Result.SeriesOf("snis.conv_c"); ok && len(s.V) > 0 {
		var parts []string
		for _, d := range distances {
			if x, ok := r.Result.SeriesOf(d.series); ok && len(x.V) > 0 && !math.IsNaN(x.V[len(x.V)-1]) {
				parts = append(parts, d.label+" "+term.Percent(x.V[len(x.V)-1]))
			}
		}
		if last := s.V[len(s.V)-1]; !math.IsNaN(last) {
			t.Row("last change", term.Percent(last), style.Dim(strings.Join(parts, ", ")))
		}
	}
	if m, ok := r.matrix("snis.throughput", 1); ok {
		var parts []string
		middle := "-"
		for i, name := range m.Rows {
			v := m.V[i][len(m.Cols)-1]
			if math.IsNaN(v) {
				continue
			}
			if name == "p50" {
				middle = term.Quantity(v, m.Unit)
			} else if slices.Contains([]string{"p1", "p10", "p90", "p99"}, name) {
				parts = append(parts, name+" "+term.Quantity(v, m.Unit))
			}
		}
		t.Row("request throughput", middle, style.Dim(strings.Join(parts, ", ")))
	}
	if list, _ := r.differencesOfModes(); len(list) > 0 {
		var parts []string
		for _, d := range list[1:] {
			parts = append(parts, d.name+" "+signed(d.relative))
		}
		if most, ok := r.Result.Metric("snis.error.request.max"); ok {
			parts = append(parts, "largest for a request "+term.Quantity(most.Value, most.Unit))
		}
		t.Row("error against one event loop", list[0].name+" "+signed(list[0].relative), style.Dim(strings.Join(parts, ", ")))
	}
	if t.Rows() == 0 {
		return nil
	}
	b.WriteString("\n" + style.Bold("storage and network in turns") + "\n")
	return t.Write(b, style)
}

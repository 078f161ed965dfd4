package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"farflash/internal/term"
	"farflash/report/chart"
	"farflash/study"
	"farflash/study/headroom"
)

// headroomMetrics are shown by default in addition to the limits' metrics, if the runs have them.
var headroomMetrics = []string{"all.iops", "aggregate.bandwidth", "fabric.goodput", "cluster.put.iops",
	"cluster.get.iops"}

// shownOf lists the metrics of a search: those of the limits, then the requested or default ones.
func shownOf(h *headroom.Headroom, c *study.Curves, patterns []string) []string {
	var names []string
	for _, x := range h.Limits {
		names = append(names, x.Metric)
	}
	if len(patterns) == 0 {
		patterns = headroomMetrics
	}
	have := c.Main(patterns)
	for _, n := range have {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// untilText states the question of the search.
func untilText(h *headroom.Headroom) string {
	var out []string
	for _, x := range h.Limits {
		out = append(out, x.Text)
	}
	return "headroom until " + strings.Join(out, " or ")
}

// loadText lists the keys that scale with the load.
func loadText(h *headroom.Headroom) string {
	var out []string
	for _, k := range h.Keys {
		out = append(out, fmt.Sprintf("%s, %s, %s", k.Path, k.Base, k.Times()))
	}
	return strings.Join(out, "; ")
}

// times formats a multiple of the load.
func times(load float64) string { return "x" + term.Significant(load, 4) }

// headroomText returns the answer, one line per element.
func headroomText(h *headroom.Headroom) []string {
	figure := func(i int) string {
		p := &h.Points[i]
		if p.Why != "" {
			return p.Why
		}
		limit := h.Limits[p.Limit]
		if !p.Over && h.Over >= 0 {
			limit = h.Limits[h.Points[h.Over].Limit]
		}
		sum := 0.0
		for _, o := range p.Outcomes {
			v, err := limit.Value(o.Result)
			if err != nil {
				return err.Error()
			}
			sum += v
		}
		return limit.Metric + " is " + term.Quantity(sum/float64(len(p.Outcomes)), limit.Unit)
	}
	var out []string
	if h.Interrupted {
		out = append(out, fmt.Sprintf("interrupted after %d loads; results so far", len(h.Points)))
	}
	switch {
	case len(h.Points) == 0:
		return append(out, "headroom: unknown")
	case h.Under < 0:
		out = append(out, fmt.Sprintf("headroom: none, already at %s of the load %s", times(h.Points[0].Load),
			figure(0)))
	case h.Over < 0 && h.Refused != nil:
		out = append(out, fmt.Sprintf("headroom: more than %s, where %s", times(h.Points[h.Under].Load),
			figure(h.Under)), fmt.Sprintf("a larger load is not possible: %v", h.Refused))
	case h.Over < 0:
		out = append(out, fmt.Sprintf("headroom: more than %s, where %s", times(h.Points[h.Under].Load),
			figure(h.Under)))
	default:
		out = append(out, fmt.Sprintf("headroom: %s, where %s; at %s %s", times(h.Points[h.Under].Load),
			figure(h.Under), times(h.Points[h.Over].Load), figure(h.Over)))
		if h.Finest {
			out = append(out, "the load is an integer, with no value between the two")
		}
		switch x := h.Crossing; {
		case x.N > 1:
			out = append(out, fmt.Sprintf("individual seeds exceed the limit at x%s +- %.1f %% on average (%g %% interval "+
				"of %d seeds)", term.Significant(x.Mean, 4), 100*x.Half/x.Mean, 100*x.Level, x.N))
		case x.N == 0 && h.Points[h.Over].Why == "":
			out = append(out, "some seeds do not cross the limit between these loads, because seeds differ more than "+
				"the loads; use more --reps or longer runs")
		}
	}
	return out
}

// WriteHeadroomText prints a search as a table with a row for each load, and its answer. Patterns select metrics in
// addition to those of the limits.
func WriteHeadroomText(w io.Writer, h *headroom.Headroom, patterns []string, style term.Style) error {
	c, err := h.Curves()
	if err != nil {
		return err
	}
	var b strings.Builder
	facts := fmt.Sprintf("%d loads, %s", len(c.Points), seedsText(firstSeeds(c.Seed, c.Reps)))
	if c.Reps > 1 {
		facts += fmt.Sprintf(", means with %g %% intervals", 100*c.Level)
	}
	fmt.Fprintf(&b, "%s: %s\nload: %s\n%s\n\n", style.Bold(h.Name), untilText(h),
		strings.ReplaceAll(loadText(h), "; ", "\n      "), style.Dim(facts))
	names := shownOf(h, c, patterns)
	columns := []term.Column{term.Left("load")}
	for _, k := range h.Keys[:min(1, len(h.Keys))] {
		columns = append(columns,
			term.Right(k.Path[strings.LastIndexByte(k.Path[:max(0, strings.LastIndexByte(k.Path, '.'))], '.')+1:]))
	}
	for _, n := range names {
		columns = append(columns, term.Right(n))
	}
	t := term.NewTable(append(columns, term.Left(""))...)
	for i := range h.Points {
		p := &h.Points[i]
		row := []string{times(p.Load), p.Values[0]}
		for _, n := range names {
			row = append(row, pointCell(&c.Points[i], n))
		}
		switch {
		case p.Over:
			row = append(row, style.Bad("over"))
		default:
			row = append(row, "")
		}
		t.Row(row...)
	}
	if err := t.Write(&b, style); err != nil {
		return err
	}
	b.WriteByte('\n')
	for _, line := range headroomText(h) {
		b.WriteString(term.Wrap(line, "  ") + "\n")
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// WriteHeadroom writes a page about a search: the answer, the curves with their limits, and a table of all loads.
func WriteHeadroom(w io.Writer, h *headroom.Headroom, s Study) error {
	c, err := h.Curves()
	if err != nil {
		return err
	}
	p := newStudyPage(s)
	text := headroomText(h)
	p.Title, p.Summary = "Headroom: "+h.Name, capital(untilText(h))+"."
	for _, line := range text {
		p.Summary += " " + capital(line) + "."
	}
	p.Facts = []fact{{"Loads", fmt.Sprint(len(c.Points))}, {"Replicates", fmt.Sprint(c.Reps)},
		{"First seed", fmt.Sprint(c.Seed)}}
	if h.Interrupted {
		p.Warnings = append(p.Warnings, remark{Detail: capital(text[0]) + "."})
	}
	for i := range c.Points {
		p.failures(c.Points[i].Label, c.Points[i].Failed)
	}
	names := shownOf(h, c, s.Metrics)
	limits := map[string]float64{}
	for _, x := range h.Limits {
		if _, twice := limits[x.Metric]; !twice {
			limits[x.Metric] = x.Threshold
		}
	}
	if len(c.Points) > 0 {
		f := curveFigures(c, names, limits)
		if len(f) > 0 {
			p.Sections = append(p.Sections,
				section{ID: "curves", Title: "Response", Intro: "Load is " + loadText(h) + ".", Figures: f})
		}
		p.Sections = append(p.Sections, section{ID: "points", Title: "Loads", Table: pointTable(c, names)})
	}
	if len(h.Points) > 0 {
		first := h.Points[0]
		for _, q := range h.Points {
			if q.Load == 1 {
				first = q
			}
		}
		p.Scenarios = []pageRun{{Label: "Resolved scenario at load x1",
			Scenario: parseScenario(first.Scenario.Resolved())}}
	}
	return p.write(w)
}

// limitLine returns a horizontal line at a limit.
func limitLine(at []float64, limit float64, name string) chart.Series {
	s := chart.Series{Name: name, Style: 3}
	for _, x := range []float64{at[0], at[len(at)-1]} {
		s.X, s.Y = append(s.X, x), append(s.Y, limit)
	}
	return s
}

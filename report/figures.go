package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"farflash/experiment/trial"
	"farflash/numeric/stats"
	"farflash/report/chart"
	"farflash/result"
)

// figure is a chart or a table with its caption.
type figure struct {
	Caption string
	Note    string // small print under the chart; may be empty
	SVG     template.HTML
	Wide    bool   // spans the whole width
	Table   *table // shown in place of a chart
	Player  bool   // the chart is animated and needs controls above it
}

func svg(text string) template.HTML {
	return template.HTML(text) // #nosec G203 -- chart escapes all text that it is given
}

// Chart widths: full and half page on a screen, and the slim version for paper and phones, where the text of a wider
// chart would be too small to read.
const (
	broadWidth = 1310
	halfWidth  = 640
	slimWidth  = 480
)

// pair draws a chart in a screen width and in the slim one; the page shows the version that fits.
func pair(width float64, draw func(width float64) string) template.HTML {
	return svg(`<div class="broad">` + draw(width) + `</div><div class="slim">` + draw(slimWidth) + `</div>`)
}

// broad draws a chart of the full page width.
func broad(draw func(width float64) string) template.HTML { return pair(broadWidth, draw) }

// half draws a chart of half the page width.
func half(draw func(width float64) string) template.HTML { return pair(halfWidth, draw) }

// both draws a chart with its frame's width, or half the page width, and in the slim version.
func both(frame *chart.Frame, draw func() string) template.HTML {
	width := frame.Width
	if width == 0 {
		width = halfWidth
	}
	return pair(width, func(width float64) string { frame.Width = width; return draw() })
}

func bothLines(c chart.LineChart) template.HTML {
	return both(&c.Frame, func() string { return chart.Lines(c) })
}

func bothCDF(c chart.CDFChart) template.HTML {
	return both(&c.Frame, func() string { return chart.CDF(c) })
}

func bothColumns(c chart.ColumnChart) template.HTML {
	return both(&c.Frame, func() string { return chart.Columns(c) })
}

func bothAreas(c chart.ColumnChart) template.HTML {
	return both(&c.Frame, func() string { return chart.Areas(c) })
}

func bothBars(c chart.BarChart) template.HTML {
	return both(&c.Frame, func() string { return chart.Bars(c) })
}

func bothGroups(c chart.GroupChart) template.HTML {
	return both(&c.Frame, func() string { return chart.Groups(c) })
}

func bothHeatMap(c chart.HeatMapChart) template.HTML {
	return both(&c.Frame, func() string { return chart.HeatMap(c) })
}

// multiples draws each series in a chart of its own, all with the same axes. The series in each are added to every
// chart.
func multiples(c chart.LineChart, each ...chart.Series) template.HTML {
	lo, hi := span(slices.Concat(c.Series, each))
	for _, s := range c.Series {
		for k, half := range s.Half {
			hi = math.Max(hi, s.Y[k]+half)
		}
	}
	if c.Y.Scale != chart.Log {
		lo = 0
	}
	c.Y.Min, c.Y.Max = lo, hi
	var b strings.Builder
	b.WriteString(`<div class="multiples">`)
	for _, s := range c.Series {
		one := c
		s.Style = 0
		one.Frame.Title += ": " + s.Name
		one.Series = append([]chart.Series{s}, each...)
		b.WriteString(`<div>` + chart.Lines(one) + `</div>`)
	}
	b.WriteString(`</div>`)
	return svg(b.String())
}

// curve is a histogram or series that is drawn together with others.
type curve struct {
	run   *Run
	name  string // in the legend
	style int
	what  string // name of the result's histogram or series
}

// groups returns the curves that are drawn together. For a single run that is one group with reads and writes; for
// several runs, one group per operation and suffix with a curve for each run. have reports whether a run has a
// histogram or series.
func groups(runs []Run, suffixes []string, have func(*Run, string) bool) []group {
	var out []group
	if len(runs) == 1 {
		g := group{}
		for i, op := range []string{"read", "write"} {
			for k, s := range suffixes {
				if what := op + s; have(&runs[0], what) {
					g.curves = append(g.curves,
						curve{&runs[0], curveName(op, s, len(suffixes)), readWriteStyles[k][i], what})
				}
			}
		}
		if len(g.curves) > 0 {
			out = append(out, g)
		}
		return out
	}
	for _, op := range []string{"read", "write"} {
		for _, s := range suffixes {
			g := group{op: op}
			if len(suffixes) > 1 {
				g.figure = s[strings.LastIndexByte(s, '.')+1:]
			}
			for i := range runs {
				if what := op + s; have(&runs[i], what) {
					g.curves = append(g.curves, curve{&runs[i], runs[i].Label, i, what})
				}
			}
			if len(g.curves) > 0 {
				out = append(out, g)
			}
		}
	}
	return out
}

// readWriteStyles holds the styles of reads and writes, for the first suffix, such as the mean, and for the second,
// in a related colour.
var readWriteStyles = [2][2]int{{0, 1}, {5, 4}}

// group holds the curves of one figure.
type group struct {
	op     string // the operation of all curves; "" if they differ
	figure string // likewise the statistic, such as p99
	curves []curve
}

// caption adds to what the operation and the statistic that the curves share.
func (g group) caption(what string) string {
	if g.op != "" {
		what = g.op + " " + what
	}
	if g.figure != "" {
		what += ", " + g.figure
	}
	return capital(what)
}

// capital capitalises the first letter of a text.
func capital(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	if n == 0 || first == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(first)) + s[n:]
}

// curveName returns "read" or, if an operation has several curves, "read p99".
func curveName(op, suffix string, of int) string {
	if of < 2 {
		return op
	}
	return op + " " + suffix[strings.LastIndexByte(suffix, '.')+1:]
}

func hasHistogram(r *Run, name string) bool {
	h := r.Result.Histogram(name)
	return h != nil && h.Count() > 0
}

func hasSeries(r *Run, name string) bool {
	s, ok := r.Result.SeriesOf(name)
	return ok && len(s.V) > 0
}

// latencyFigures draws the distributions of latencies.
func latencyFigures(runs []Run) []figure {
	return distributionFigures(groups(runs, []string{".latency"}, hasHistogram), "latency", "requests")
}

// distributionFigures draws distributions of a duration, cumulative and as histograms.
func distributionFigures(found []group, what, things string) []figure {
	var out []figure
	label, many := capital(what), capital(things)
	for _, g := range found {
		out = append(out, figure{
			Caption: g.caption(what + " distribution"),
			Note: "Share of " + things + " that complete within a " + what +
				". From 90 % to 99 % to 99.9 %, each step is ten times rarer. Markers are at 50, 90, 99 ... per " +
				"cent.",
			SVG: bothCDF(g.cumulative(what, things)),
		})
	}
	for _, g := range found {
		if g.scale() != chart.Log {
			continue // too narrow for columns
		}
		edges, parts := latencyColumns(g)
		out = append(out, figure{
			Caption: g.caption(what + " histogram"),
			Note:    "Share of " + things + " per sixth of an octave of " + what + ".",
			SVG: bothColumns(chart.ColumnChart{Frame: chart.Frame{Title: g.caption(what + " histogram"), Height: 360},
				X:     chart.Axis{Label: label, Unit: chart.Micros, Scale: chart.Log},
				Y:     chart.Axis{Label: many, Unit: chart.Fractions, FromZero: true},
				Edges: edges, Parts: parts}),
		})
	}
	return out
}

// cumulative returns the chart of the group's cumulative distributions.
func (g group) cumulative(what, things string) chart.CDFChart {
	var d []chart.Distribution
	for _, c := range g.curves {
		d = append(d, distribution(c.run.Result.Histogram(c.what), c.name, c.style))
	}
	return chart.CDFChart{Frame: chart.Frame{Title: g.caption(what + ", cumulative distribution"), Height: 360},
		X:      chart.Axis{Label: capital(what), Unit: chart.Micros, Scale: g.scale()},
		YLabel: capital(things) + " within", Distributions: d}
}

// scale is logarithmic unless the group's histograms span less than an octave.
func (g group) scale() chart.Scale {
	lo, hi := math.Inf(1), 0.0
	for _, c := range g.curves {
		h := c.run.Result.Histogram(c.what)
		lo, hi = math.Min(lo, h.Min().Microseconds()), math.Max(hi, h.Max().Microseconds())
	}
	if lo > 0 && hi < 2*lo {
		return chart.Linear
	}
	return chart.Log
}

// distribution converts a histogram to the points of a cumulative curve, in microseconds.
func distribution(h *stats.Histogram, name string, style int) chart.Distribution {
	d := chart.Distribution{Name: name, Style: style, Count: h.Count()}
	d.Value = append(d.Value, h.Min().Microseconds())
	d.Share = append(d.Share, 0)
	var sum int64
	for _, b := range h.Bins() {
		// There are no values between buckets, so the curve is flat there.
		if low := b.Low.Microseconds(); low > d.Value[len(d.Value)-1] {
			d.Value, d.Share = append(d.Value, low), append(d.Share, float64(sum)/float64(h.Count()))
		}
		sum += b.Count
		// End the last bucket at the maximum; a bucket beyond the histogram's geometry would otherwise overstate it.
		end := b.High
		if sum == h.Count() {
			end = h.Max()
		}
		v := end.Microseconds()
		if v <= d.Value[len(d.Value)-1] {
			d.Share[len(d.Share)-1] = float64(sum) / float64(h.Count())
			continue
		}
		d.Value = append(d.Value, v)
		d.Share = append(d.Share, float64(sum)/float64(h.Count()))
	}
	return d
}

// perOctave is the number of columns per octave of the latency histogram.
const perOctave = 6

// latencyColumns returns logarithmic columns over the range of a group's histograms, and the shares in each.
func latencyColumns(g group) (edges []float64, parts []chart.Part) {
	lo, hi := math.Inf(1), 0.0
	for _, c := range g.curves {
		h := c.run.Result.Histogram(c.what)
		lo, hi = math.Min(lo, math.Max(h.Min().Microseconds(), 1e-3)), math.Max(hi, h.Max().Microseconds())
	}
	first := math.Floor(math.Log2(lo) * perOctave)
	last := math.Ceil(math.Log2(math.Max(hi, lo))*perOctave) + 1
	for e := first; e <= last; e++ {
		edges = append(edges, math.Exp2(e/perOctave))
	}
	for _, c := range g.curves {
		d := distribution(c.run.Result.Histogram(c.what), c.name, c.style)
		v := make([]float64, len(edges)-1)
		below := 0.0
		for i := range v {
			share := shareWithin(d, edges[i+1])
			v[i] = share - below
			below = share
		}
		parts = append(parts, chart.Part{Name: c.name, Style: c.style, V: v})
	}
	return edges, parts
}

// shareWithin returns the share of a distribution up to v, interpolated between its points.
func shareWithin(d chart.Distribution, v float64) float64 {
	i, found := slices.BinarySearch(d.Value, v)
	switch {
	case i >= len(d.Value):
		return 1
	case found:
		return d.Share[i]
	case i == 0:
		return 0
	}
	t := (v - d.Value[i-1]) / (d.Value[i] - d.Value[i-1])
	return d.Share[i-1] + t*(d.Share[i]-d.Share[i-1])
}

// timeFigures draws throughput and latency over time.
func timeFigures(runs []Run) []figure {
	var out []figure
	shade := warmUp(runs)
	for _, f := range []struct {
		caption, label string
		suffixes       []string
		unit           chart.Unit
	}{
		{"throughput", "Throughput", []string{".bandwidth"}, chart.ByteRates},
		{"requests per second", "Requests", []string{".iops"}, chart.PerSecond},
		{"latency over time", "Latency", []string{".latency.mean", ".latency.p99"}, chart.Micros},
	} {
		if f.unit == chart.PerSecond && len(runs) > 1 {
			continue // nearly the same as the throughput, and space is short
		}
		for _, g := range groups(runs, f.suffixes, hasSeries) {
			var s []chart.Series
			for _, c := range g.curves {
				s = append(s, middles(c))
			}
			y := chart.Axis{Label: f.label, Unit: f.unit, FromZero: true}
			if f.unit == chart.Micros {
				y.Scale = logIfWide(s)
			}
			c := chart.LineChart{Frame: chart.Frame{Title: g.caption(f.caption)}, X: timeAxis, Y: y, Series: s,
				Shade: shade}
			x := figure{Caption: g.caption(f.caption), Wide: len(runs) == 1 && f.unit == chart.Micros}
			if x.Wide {
				x.SVG = broad(func(width float64) string { c.Width, c.Height = width, 330; return chart.Lines(c) })
			} else {
				x.SVG = bothLines(c)
			}
			out = append(out, x)
		}
	}
	return append(out, networkOverTime(runs)...)
}

// warmUp returns the shading of the warm-up in a figure over time. Several runs have none, because each has its own
// warm-up.
func warmUp(runs []Run) []chart.Span {
	if len(runs) != 1 || !(runs[0].Result.WarmUp.UntilS > 0) {
		return nil
	}
	return []chart.Span{{From: 0, To: runs[0].Result.WarmUp.UntilS, Label: "warm-up"}}
}

var timeAxis = chart.Axis{Label: "Simulated time", Unit: chart.Secs, FromZero: true, Tight: true}

// middles returns a series with each value at the middle of its bin. A run rarely ends at a bin boundary, and the
// rate of the last bin covers only the simulated part of it: the point is placed in the middle of that part, and
// dropped if the part is less than half a bin, because it would show mostly noise.
func middles(c curve) chart.Series {
	s, _ := c.run.Result.SeriesOf(c.what)
	x, y := make([]float64, len(s.T)), s.V
	for i, t := range s.T {
		x[i] = t + s.Width/2
	}
	if last := len(s.T) - 1; last > 0 && s.TimeUnit == "s" && strings.HasSuffix(s.Unit, "/s") {
		switch part := c.run.Result.SimulatedS - s.T[last]; {
		case part > 0 && part < s.Width/2:
			x, y = x[:last], y[:last]
		case part > 0 && part < s.Width:
			x[last] = s.T[last] + part/2
		}
	}
	return chart.Series{Name: c.name, Style: c.style, X: x, Y: y}
}

// logIfWide returns a logarithmic scale if the values span more than a factor of 20.
func logIfWide(series []chart.Series) chart.Scale {
	lo, hi := math.Inf(1), 0.0
	for _, s := range series {
		for _, v := range s.Y {
			if v > 0 {
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
		}
	}
	if hi > 20*lo {
		return chart.Log
	}
	return chart.Linear
}

// phaseStyles gives each part of a latency a style that contrasts with its neighbours.
var phaseStyles = []struct {
	column string
	style  int
}{{"host", 4}, {"queue", 6}, {"host_link", 5}, {"dram", 2}, {"cache", 7}, {"mapping", 4}, {"wait", 1}, {"array", 0},
	{"transfer", 3}, {"other", 7}}

func phaseStyle(column string, i int) int {
	for _, p := range phaseStyles {
		if p.column == column {
			return p.style
		}
	}
	return i % chart.Styles
}

// phaseFigure draws the breakdown of the requests' latency.
func phaseFigure(runs []Run) []figure {
	var rows, cols []string
	var v []map[string]float64 // by part, because runs have only the parts of their drives
	for i := range runs {
		m, ok := runs[i].matrix("ssd.latency.breakdown", 1)
		if !ok {
			continue
		}
		for k, c := range m.Cols {
			if slices.Contains(cols, c) {
				continue
			}
			at := len(cols)
			if k == 0 {
				at = 0
			}
			cols = slices.Insert(cols, at, c)
		}
		for k, row := range m.Rows {
			label := row
			if total(m.V[k]) == 0 {
				continue // no such requests
			}
			if len(runs) > 1 {
				label = runs[i].Label + " " + row
			}
			parts := map[string]float64{}
			for j, c := range m.Cols {
				parts[c] = m.V[k][j]
			}
			rows, v = append(rows, label), append(v, parts)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	var parts []chart.Part
	for k, c := range cols {
		p := chart.Part{Name: phaseName(c), Style: phaseStyle(c, k), V: make([]float64, len(rows))}
		found := false
		for i := range rows {
			p.V[i] = v[i][c]
			found = found || v[i][c] > 0
		}
		if found {
			parts = append(parts, p)
		}
	}
	caption, note := "Where the time of a request goes",
		"Mean latency by the resource that a request uses or waits for."
	if slices.ContainsFunc(runs, func(r Run) bool { return r.manyCommands() }) {
		caption, note = "Where the time in a drive goes",
			"Mean time of a command in its drive, by the resource that it uses or waits for. Network time is not "+
				"included."
	}
	return []figure{{Caption: caption, Wide: true, Note: note,
		SVG: broad(func(width float64) string {
			return chart.Bars(chart.BarChart{Frame: chart.Frame{Title: "parts of the mean latency", Width: width,
				Height: chart.BarsHeight(len(rows))},
				X: chart.Axis{Label: "Mean latency", Unit: chart.Micros}, Rows: rows, Parts: parts, Total: true})
		})}}
}

// busyFigures draws the utilisation of dies and channels.
func busyFigures(runs []Run) []figure {
	var out []figure
	for i := range runs {
		r := &runs[i]
		before, die, channel := "", "Die occupancy", "Channel occupancy"
		if len(runs) > 1 {
			before = r.Label + ": "
			die, channel = before+"die occupancy", before+"channel occupancy"
		}
		if m, ok := r.matrix("ssd.die.busy", 1); ok {
			out = append(out, figure{Caption: die,
				Note: "Share of the measured time in which each die was reading, programming or erasing.",
				SVG: bothHeatMap(chart.HeatMapChart{Frame: chart.Frame{Title: before + "busy fraction of each die"},
					RowLabel: "channel", ColLabel: "chip.die",
					Rows: m.Rows, Cols: m.Cols, V: m.V, Unit: chart.Fractions, Legend: "busy, %", Max: 1})})
		}
		if m, ok := r.matrix("ssd.channel.busy", 1); ok {
			out = append(out, figure{Caption: channel,
				Note: "Share of the measured time in which each channel moved commands or data.",
				SVG: bothBars(chart.BarChart{Frame: chart.Frame{Title: before + "busy fraction of each channel",
					Height: chart.HeatMapHeight(len(m.Cols))},
					X: chart.Axis{Label: "Busy", Unit: chart.Fractions, Max: 1}, Rows: prefixed("channel ", m.Cols),
					Parts: []chart.Part{{V: m.V[0]}}, Total: true})})
		}
	}
	return out
}

func prefixed(prefix string, list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = prefix + s
	}
	return out
}

// writeParts lists the reasons for programming pages.
var writeParts = []struct {
	name, label string
	style       int
}{{"host", "host data", 0}, {"gc", "garbage collection", 1}, {"mapping", "mapping table", 4},
	{"wear", "wear levelling", 2}, {"refresh", "refresh", 3}, {"fold", "folding of the SLC cache", 5}}

// writeFigures draws the programmed pages by reason, and the wear of blocks.
func writeFigures(runs []Run) []figure {
	var out []figure
	if len(runs) == 1 {
		out = append(out, writesOverTime(&runs[0])...)
	} else {
		out = append(out, writesSideBySide(runs)...)
	}
	var s []chart.Series
	for i := range runs {
		if hasSeries(&runs[i], "ssd.free_blocks") {
			name := runs[i].Label
			if len(runs) == 1 {
				name = ""
			}
			s = append(s, middles(curve{&runs[i], name, i, "ssd.free_blocks"}))
		}
	}
	// A drive that neither programs nor erases has a constant count, which the table shows.
	if slices.ContainsFunc(s, func(s chart.Series) bool { return len(s.Y) > 0 && slices.Min(s.Y) < slices.Max(s.Y) }) {
		out = append(out, figure{Caption: "Free blocks",
			SVG: bothLines(chart.LineChart{Frame: chart.Frame{Title: "free blocks over time"},
				X: timeAxis, Y: chart.Axis{Label: "Blocks", Unit: chart.Counts, FromZero: true}, Series: s})})
	}
	for i := range runs {
		if f, ok := wearFigure(&runs[i], len(runs) > 1); ok {
			out = append(out, f)
		}
	}
	return out
}

func writesOverTime(r *Run) []figure {
	var parts []chart.Part
	var first result.Series
	for _, w := range writeParts {
		s, ok := r.Result.SeriesOf("ssd.writes." + w.name)
		if !ok || len(s.V) == 0 || parts != nil && len(s.V) != len(first.V) {
			continue
		}
		if sum := total(s.V); sum == 0 && w.name != "host" {
			continue
		}
		if parts == nil {
			first = s
		}
		rate := make([]float64, len(s.V))
		for i, v := range s.V {
			rate[i] = v / s.Width
		}
		parts = append(parts, chart.Part{Name: w.label, Style: w.style, V: rate})
	}
	if !(first.Width > 0) || !slices.ContainsFunc(parts, func(p chart.Part) bool { return total(p.V) > 0 }) {
		return nil
	}
	edges := append(slices.Clone(first.T), first.T[len(first.T)-1]+first.Width)
	// A run rarely ends at a bin boundary: scale the last bin's rate to its simulated part, or it would look low.
	if end := r.Result.SimulatedS; end > first.T[len(first.T)-1] && end < edges[len(edges)-1] {
		for _, p := range parts {
			p.V[len(p.V)-1] *= first.Width / (end - first.T[len(first.T)-1])
		}
		edges[len(edges)-1] = end
	}
	return []figure{{Caption: "Pages programmed",
		Note: "Pages programmed, by reason. Write amplification is the total over the host's part.", Wide: true,
		SVG: broad(func(width float64) string {
			return chart.Areas(chart.ColumnChart{Frame: chart.Frame{Title: "pages programmed per second over time, " +
				"by reason", Width: width, Height: 330},
				X: timeAxis, Y: chart.Axis{Label: "Pages", Unit: chart.PerSecond}, Edges: edges, Parts: parts,
				Shade: warmUp([]Run{*r})})
		})}}
}

func total(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		if !math.IsNaN(x) {
			sum += x
		}
	}
	return sum
}

// writesSideBySide compares the runs' programmed pages per page written by the host.
func writesSideBySide(runs []Run) []figure {
	var rows []string
	var of []*Run
	for i := range runs {
		if v, ok := runs[i].value("ssd.writes.host"); ok && v > 0 {
			rows, of = append(rows, runs[i].Label), append(of, &runs[i])
		}
	}
	if len(rows) == 0 {
		return nil
	}
	var parts []chart.Part
	for _, w := range writeParts {
		p := chart.Part{Name: w.label, Style: w.style, V: make([]float64, len(rows))}
		for i, r := range of {
			host, _ := r.value("ssd.writes.host")
			v, _ := r.value("ssd.writes." + w.name)
			p.V[i] = v / host
		}
		if total(p.V) > 0 {
			parts = append(parts, p)
		}
	}
	return []figure{{Caption: "Write amplification",
		Note: "Pages programmed per page written by the host, by reason.", Wide: true,
		SVG: broad(func(width float64) string {
			return chart.Bars(chart.BarChart{Frame: chart.Frame{Title: "write amplification by reason", Width: width,
				Height: chart.BarsHeight(len(rows))},
				X: chart.Axis{Label: "Pages programmed per page written by the host"}, Rows: rows, Parts: parts,
				Total: true})
		})}}
}

// wearFigure draws the histogram of the blocks' erase counts.
func wearFigure(r *Run, several bool) (figure, bool) {
	m, ok := r.matrix("ssd.wear", 1)
	if !ok || len(m.V) != 1 || len(m.Cols) < 2 {
		// a single column, all blocks erased equally often, is not worth a chart
		return figure{}, false
	}
	// The labels are numbers or ranges such as "8-15", which become the edges of columns.
	edges := make([]float64, len(m.Cols)+1)
	for i, c := range m.Cols {
		first, last, ranged := strings.Cut(c, "-")
		a, err := strconv.ParseFloat(first, 64)
		if err != nil {
			return figure{}, false
		}
		b := a
		if ranged {
			if b, err = strconv.ParseFloat(last, 64); err != nil {
				return figure{}, false
			}
		}
		if i > 0 && a-0.5 < edges[i] {
			return figure{}, false
		}
		edges[i], edges[i+1] = a-0.5, b+0.5
	}
	before, caption := "", "Wear"
	if several {
		before = r.Label + ": "
		caption = before + "wear"
	}
	return figure{Caption: caption, Note: "Number of blocks by erase count.",
		SVG: bothColumns(chart.ColumnChart{Frame: chart.Frame{Title: before + "blocks by erase count"},
			X:     chart.Axis{Label: "Erases", Unit: chart.Counts, Min: edges[0], Max: edges[len(edges)-1]},
			Y:     chart.Axis{Label: "Blocks", Unit: chart.Counts, FromZero: true},
			Edges: edges, Parts: []chart.Part{{Style: 0, V: m.V[0]}}})}, true
}

// others draws the series and matrices that no other section shows, under their own names.
func others(runs []Run) []figure {
	if len(runs) != 1 {
		return nil
	}
	r := &runs[0]
	var out []figure
	words := trial.Vocabulary().Series
	for _, s := range r.Result.Series {
		group, _, _ := strings.Cut(s.Name, ".")
		if len(s.V) == 0 || slices.Contains([]string{"read", "write", "ssd"}, group) || networkDraws(s.Name) ||
			systemDraws(s.Name) || clusterDraws(s.Name) {
			continue
		}
		help := ""
		if d, ok := words.Lookup(s.Name); ok {
			help = d.Help
		}
		xUnit, xLabel := chart.Secs, "Simulated time"
		if s.TimeUnit != "s" {
			xUnit, xLabel = chart.Plain, s.TimeUnit
		}
		out = append(out, figure{Caption: s.Name, Note: help,
			SVG: bothLines(chart.LineChart{Frame: chart.Frame{Title: s.Name + " over time"},
				X:      chart.Axis{Label: xLabel, Unit: xUnit},
				Y:      chart.Axis{Label: s.Name, Unit: chart.UnitOf(s.Unit), FromZero: true},
				Series: []chart.Series{middles(curve{r, s.Name, 0, s.Name})}})})
	}
	for _, m := range r.Result.Matrices {
		if slices.Contains([]string{"ssd.die.busy", "ssd.channel.busy", "ssd.latency.breakdown", "ssd.wear"},
			m.Name) || networkDraws(m.Name) || systemDraws(m.Name) || clusterDraws(m.Name) {
			continue
		}
		out = append(out, figure{Caption: m.Name, SVG: bothHeatMap(chart.HeatMapChart{Frame: chart.Frame{Title: m.Name},
			Rows: m.Rows, Cols: m.Cols, V: m.V, Unit: chart.UnitOf(m.Unit),
			Legend: fmt.Sprintf("%s (%s)", m.Name, m.Unit)})})
	}
	return out
}

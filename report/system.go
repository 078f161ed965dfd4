package report

import (
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"farflash/experiment/system"
	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/model/ssd/blame"
	"farflash/report/chart"
)

// systemDraws reports whether the sections on systems over a network show a series or matrix.
func systemDraws(name string) bool {
	return slices.Contains([]string{"read.anatomy", "write.anatomy", "snis.conv_c", "snis.rd_mean", "snis.rd_median",
		"snis.rd_p90", "snis.error", "snis.throughput"}, name)
}

// slicesOfTime is the breakdown of the latency of requests: of all, or of those near a quantile.
type slicesOfTime struct {
	row   string    // mean, p50, ...
	parts []float64 // us, by column; never NaN or negative
	total float64   // sum of parts, positive
}

// anatomy returns the breakdowns of the latency of reads or writes, and the stages of their parts. Without the
// matrix, it falls back to the metrics of the stages' means.
func (r *Run) anatomy(op string) (list []slicesOfTime, stages []string) {
	m, ok := r.matrix(op+".anatomy", 1)
	if !ok {
		m.Rows, m.V = []string{"mean"}, make([][]float64, 1)
		for _, s := range system.Stages {
			v, ok := r.value(op + ".stage." + s.Name + ".mean")
			if !ok {
				continue
			}
			m.Cols, m.V[0] = append(m.Cols, s.Name), append(m.V[0], v)
		}
	}
	for i, name := range m.Rows {
		s := slicesOfTime{row: name, parts: make([]float64, len(m.Cols))}
		for k, v := range m.V[i] {
			if v > 0 && !math.IsInf(v, 0) {
				s.parts[k] = v
				s.total += v
			}
		}
		if s.total > 0 {
			list = append(list, s)
		}
	}
	return list, m.Cols
}

// overNetwork reports whether a request involves more than one drive: a network, or the other drives of a volume.
func (r *Run) overNetwork() bool {
	if _, volume := r.value("raid.read.commands"); volume {
		return true
	}
	for _, op := range []string{"read", "write"} {
		if list, stages := r.anatomy(op); len(list) > 0 && slices.Contains(stages, "network_out") {
			return true
		}
	}
	return false
}

// stageName returns a column of an anatomy in words.
func stageName(column string) string {
	for _, s := range system.Stages {
		if s.Name == column {
			return s.Words
		}
	}
	if i := slices.Index(blame.Names[:], column); i >= 0 {
		return blame.Words[i]
	}
	return strings.ReplaceAll(column, "_", " ")
}

// stageStyles contrasts each stage with its neighbours, in colour and in hatching: waiting is warm, work is cold.
var stageStyles = map[string]int{"initiator": 7, "network_out": 5, "target": 4, "drive_wait": 1, "flash": 0, "txq": 3,
	"network_back": 2}

func stageStyle(column string, i int) int {
	if s, ok := stageStyles[column]; ok {
		return s
	}
	return i
}

// dwarfed is the ratio of the longest bar to the shortest from which shares are drawn as well.
const dwarfed = 4

// anatomyFigures draws and lists the breakdown of the latency of reads and of writes.
func anatomyFigures(runs []Run) []figure {
	var groups []anatomyGroup
	shares := false
	for _, op := range []string{"read", "write"} {
		if g := anatomyOf(runs, op); len(g.rows) > 0 {
			groups = append(groups, g)
			shares = shares || g.dwarfs()
		}
	}
	var out, tables []figure
	for _, g := range groups {
		out = append(out, g.figures(shares)...)
		for _, t := range g.tables(len(runs) > 1) {
			tables = append(tables, figure{Wide: true, Table: t})
		}
	}
	return append(out, tables...)
}

// anatomyGroup holds the data of one figure: rows of the same name next to each other, one for each run.
type anatomyGroup struct {
	op     string
	stages []string
	rows   []slicesOfTime
	labels []string
	runs   []string
}

func anatomyOf(runs []Run, op string) anatomyGroup {
	g := anatomyGroup{op: op}
	lists := make([][]slicesOfTime, len(runs))
	var order []string
	for i := range runs {
		list, stages := runs[i].anatomy(op)
		if len(list) == 0 {
			continue
		}
		if g.stages == nil || len(stages) > len(g.stages) && slices.Equal(g.stages, stages[:len(g.stages)]) {
			g.stages = stages
		}
		lists[i] = list
		for _, s := range list {
			if !slices.Contains(order, s.row) {
				order = append(order, s.row)
			}
		}
	}
	for i := range runs {
		switch _, stages := runs[i].anatomy(op); {
		case len(stages) > len(g.stages) || !slices.Equal(g.stages[:len(stages)], stages):
			lists[i] = nil // another version's stages cannot share a legend
		case len(stages) < len(g.stages): // this drive lacks the last stages of the others
			for k := range lists[i] {
				lists[i][k].parts = append(slices.Clone(lists[i][k].parts),
					make([]float64, len(g.stages)-len(stages))...)
			}
		}
	}
	for _, name := range order {
		for i, list := range lists {
			for _, s := range list {
				if s.row != name {
					continue
				}
				label := s.row
				if len(runs) > 1 {
					label += ", " + runs[i].Label
				}
				g.rows, g.labels, g.runs = append(g.rows, s), append(g.labels, label), append(g.runs, runs[i].Label)
			}
		}
	}
	return g
}

// dwarfs reports whether the parts of the shortest bar are too small to see next to the longest.
func (g anatomyGroup) dwarfs() bool {
	shortest, longest := math.Inf(1), 0.0
	for _, s := range g.rows {
		shortest, longest = math.Min(shortest, s.total), math.Max(longest, s.total)
	}
	return longest >= dwarfed*shortest
}

// figures draws the times and, if requested, the shares.
func (g anatomyGroup) figures(withShares bool) []figure {
	var absolute, shares []chart.Part
	for k, name := range g.stages {
		a := chart.Part{Name: stageName(name), Style: stageStyle(name, k), V: make([]float64, len(g.rows))}
		b := a
		b.V = make([]float64, len(g.rows))
		for i, s := range g.rows {
			a.V[i], b.V[i] = s.parts[k], s.parts[k]/s.total
		}
		if total(a.V) > 0 {
			absolute, shares = append(absolute, a), append(shares, b)
		}
	}
	ops := capital(g.op) + "s"
	size := chart.Frame{Title: g.op + "s: parts of the latency", Height: 150 + 34*float64(len(g.rows))}
	// Names of runs can be long and would leave little space for the bars.
	wide := slices.ContainsFunc(g.labels, func(s string) bool { return len(s) > 32 })
	if wide {
		size.Width = 1310
	}
	note := "Mean time in each stage: over all " + g.op + "s, and over the " + g.op +
		"s whose latency is near a quantile. A bar shows the mean of those, so it differs slightly from the table's " +
		"quantile."
	out := []figure{{Caption: ops + ": where the time goes", Note: note, Wide: wide,
		SVG: bothBars(chart.BarChart{Frame: size, X: chart.Axis{Label: "Latency", Unit: chart.Micros}, Rows: g.labels,
			Parts: absolute, Total: true})}}
	if !withShares {
		return out
	}
	labels := make([]string, len(g.rows))
	for i, s := range g.rows {
		labels[i] = g.labels[i] + ", " + chart.Micros.Format(s.total)
	}
	size.Title = g.op + "s: shares of the latency"
	return append(out, figure{Caption: ops + ": shares of the time", Note: "The same bars, scaled to 100 %.",
		Wide: wide,
		SVG: bothBars(chart.BarChart{Frame: size,
			X: chart.Axis{Label: "Share of the latency", Unit: chart.Fractions, Max: 1}, Rows: labels, Parts: shares})})
}

// mostAcross is the largest number of stages that a table shows as columns; more stages become rows.
const mostAcross = 8

// tables returns one table for all runs, or one per run if there are many stages.
func (g anatomyGroup) tables(several bool) []*table {
	if len(g.stages) <= mostAcross {
		return []*table{g.table(several)}
	}
	if !several {
		return []*table{g.upright(capital(g.op) + "s")}
	}
	var out []*table
	var done []string
	for _, run := range g.runs {
		if slices.Contains(done, run) {
			continue
		}
		done = append(done, run)
		one := anatomyGroup{op: g.op, stages: g.stages}
		for i, s := range g.rows {
			if g.runs[i] == run {
				one.rows = append(one.rows, s)
			}
		}
		out = append(out, one.upright(capital(g.op)+"s, "+run))
	}
	return out
}

// upright returns the table of one run with a row per stage, without stages that took no time.
func (g anatomyGroup) upright(caption string) *table {
	t := &table{Caption: caption, Full: true, Head: []heading{{"", true}}}
	for _, s := range g.rows {
		t.Head = append(t.Head, heading{Title: s.row})
	}
	for k, name := range g.stages {
		row := []cell{{Text: capital(brief(stageName(name))), Class: "text name"}}
		spent := 0.0
		for _, s := range g.rows {
			v := s.parts[k]
			c := cell{Text: chart.Micros.Format(v)}
			if v > 0 {
				c.Delta = percent(v / s.total)
			}
			row = append(row, c)
			spent += v
		}
		if spent > 0 {
			t.Rows = append(t.Rows, row)
		}
	}
	sum := []cell{{Text: "Sum", Class: "text name"}}
	for _, s := range g.rows {
		sum = append(sum, cell{Text: chart.Micros.Format(s.total)})
	}
	t.Rows = append(t.Rows, sum)
	return t
}

func (g anatomyGroup) table(several bool) *table {
	t := &table{Caption: capital(g.op) + "s", Full: true, Head: []heading{{"", true}}}
	if several {
		t.Head = append(t.Head, heading{"Run", true})
	}
	for _, name := range g.stages {
		t.Head = append(t.Head, heading{Title: capital(brief(stageName(name)))})
	}
	t.Head = append(t.Head, heading{Title: "Sum"})
	for i, s := range g.rows {
		row := []cell{{Text: s.row, Class: "text name"}}
		if several {
			row = append(row, cell{Text: g.runs[i], Class: "text"})
		}
		for _, v := range s.parts {
			c := cell{Text: chart.Micros.Format(v)}
			if v > 0 {
				c.Delta = percent(v / s.total)
			}
			row = append(row, c)
		}
		t.Rows = append(t.Rows, append(row, cell{Text: chart.Micros.Format(s.total)}))
	}
	return t
}

// brief removes the part in brackets.
func brief(words string) string {
	words, _, _ = strings.Cut(words, " (")
	return words
}

// percent formats a share without decimals.
func percent(v float64) string {
	if v > 0 && v < 0.005 {
		return "<1 %"
	}
	return strconv.FormatFloat(100*v, 'f', 0, 64) + " %"
}

// perDrive holds the figures of each drive of a system, by metric, in the order of number.
type perDrive struct {
	number []int
	of     map[string][]float64 // NaN for a drive without the metric
}

// eachDrive collects the metrics "ssd[i]...".
func (r *Run) eachDrive() perDrive {
	d := perDrive{of: map[string][]float64{}}
	each := func(take func(n int, name string, v float64)) {
		for _, m := range r.Result.Metrics {
			rest, ok := strings.CutPrefix(m.Name, "ssd[")
			number, rest, closed := strings.Cut(rest, "].")
			if n, err := strconv.Atoi(number); ok && closed && err == nil {
				take(n, "ssd."+rest, m.Value)
			}
		}
	}
	each(func(n int, _ string, _ float64) { d.number = append(d.number, n) })
	slices.Sort(d.number)
	d.number = slices.Compact(d.number)
	each(func(n int, name string, v float64) {
		list := d.of[name]
		if list == nil {
			list = make([]float64, len(d.number))
			for i := range list {
				list[i] = math.NaN()
			}
			d.of[name] = list
		}
		i, _ := slices.BinarySearch(d.number, n)
		list[i] = v
	})
	return d
}

// spread is the range of a figure over drives.
type spread struct {
	least, mean, greatest float64
	first, last           int // numbers of the drives with the least and the greatest value
}

func (d perDrive) spread(metric string) (s spread, ok bool) {
	n := 0.0
	for i, v := range d.of[metric] {
		if math.IsNaN(v) {
			continue
		}
		if n == 0 || v < s.least {
			s.least, s.first = v, d.number[i]
		}
		if n == 0 || v > s.greatest {
			s.greatest, s.last = v, d.number[i]
		}
		s.mean += v
		n++
	}
	s.mean /= n
	return s, n > 0
}

// spreadMetrics lists the metrics whose range over drives is shown.
var spreadMetrics = []struct{ metric, label string }{
	{"ssd.utilisation.die", "Dies busy"}, {"ssd.utilisation.channel", "Channels busy"}, {"ssd.read.count", "Reads"},
	{"ssd.write.count", "Writes"},
	{"ssd.waf", "Write amplification"}, {"ssd.gc.count", "Blocks collected"},
	{"ssd.wear.mean", "Erases per block, mean"}, {"ssd.wear.life_used", "Rated life used"},
	{"ssd.free_blocks.min", "Fewest free blocks of a plane"}, {"ssd.cache.hit_ratio", "Data cache hits"},
	{"ssd.energy", "Energy"},
}

// drivesFigures shows the differences between drives: a table of ranges, and the utilisation of each drive.
func drivesFigures(runs []Run) []figure {
	var out, tables []figure
	for i := range runs {
		r := &runs[i]
		d := r.eachDrive()
		if len(d.number) < 2 {
			continue
		}
		before := ""
		if len(runs) > 1 {
			before = r.Label + ": "
		}
		t := &table{Caption: before + term.Count(float64(len(d.number))) + " drives", Full: true,
			Head: []heading{{"", true}, {Title: "Least"}, {Title: "Mean"}, {Title: "Greatest"}, {Title: "of drive"}}}
		words := trial.Vocabulary().Metrics
		for _, m := range spreadMetrics {
			s, ok := d.spread(m.metric)
			if !ok || s.least == 0 && s.greatest == 0 {
				continue
			}
			def, _ := words.Lookup(m.metric)
			row := []cell{{Text: m.label, Class: "text"}}
			if def.Unit == "count" && s.mean >= 1000 {
				s.mean = math.Round(s.mean)
			}
			for _, v := range []float64{s.least, s.mean, s.greatest} {
				row = append(row, cell{Text: term.Quantity(v, def.Unit)})
			}
			which := cell{Text: strconv.Itoa(s.last)}
			if s.least == s.greatest {
				which.Text = "all"
			}
			t.Rows = append(t.Rows, append(row, which))
		}
		if t.Rows != nil {
			tables = append(tables, figure{Table: t, Wide: true})
		}
		busy, ok := d.of["ssd.utilisation.die"]
		if s, some := d.spread("ssd.utilisation.die"); !ok || !some || s.greatest == 0 {
			continue
		}
		names := make([]string, len(d.number))
		for k, n := range d.number {
			names[k] = strconv.Itoa(n)
		}
		caption := before + "how busy each drive was"
		out = append(out, figure{Caption: capital(caption), Wide: true,
			Note: "Busy share of the dies of each drive, mean over its dies. Bright drives carry more than their " +
				"share of the load.",
			SVG: strip(chart.HeatMapChart{Frame: chart.Frame{Title: caption}, RowLabel: "first",
				ColLabel: "drives, row by row", Unit: chart.Fractions,
				Legend: "dies busy, %", Max: 1}, "drive ", names, busy)})
	}
	return append(tables, out...)
}

// strip draws one value per component as cells, perLine to a row.
func strip(c chart.HeatMapChart, what string, names []string, v []float64) template.HTML {
	wide := min(perLine, len(v))
	for from := 0; from < len(v); from += wide {
		line, cells := make([]float64, wide), make([]string, wide)
		for k := range line {
			line[k] = math.NaN()
			if from+k < len(v) {
				line[k], cells[k] = v[from+k], what+names[from+k]
			}
		}
		c.Rows, c.V, c.Cells = append(c.Rows, names[from]), append(c.V, line), append(c.Cells, cells)
	}
	for k := range wide {
		label := ""
		if k%8 == 0 {
			label = strconv.Itoa(k)
		}
		c.Cols = append(c.Cols, label)
	}
	c.Height = 92 + 18*float64(len(c.Rows))
	return broad(func(width float64) string { c.Width = width; return chart.HeatMap(c) })
}

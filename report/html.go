package report

import (
	_ "embed" // the page's template, style and script
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"farflash/internal/term"
	"farflash/report/chart"
	"farflash/result"
)

//go:embed page/page.tmpl
var pageTemplate string

//go:embed page/page.css
var pageStyle string

//go:embed page/page.js
var pageScript string

//go:embed page/network.js
var networkScript string

// page holds the data of the template.
type page struct {
	Title       string
	Summary     string
	Version     string
	Facts       []fact
	Failed      []remark
	Warnings    []remark
	Tiles       []tile
	Sections    []section
	HasScenario bool
	Several     bool
	Differences *table
	Runs        []pageRun
	Checks      *table
	Limits      []string
	Citations   string
	Metrics     *table
	Unlisted    string // note on the metrics that the table omits
	Style       template.CSS
	Script      template.JS
	Patterns    template.HTML
}

type fact struct{ Name, Value string }

type remark struct{ Run, Name, Detail string }

type tile struct{ Name, Value, Detail string }

type section struct {
	ID, Title string
	Intro     string // small print under the title; may be empty
	Table     *table
	Figures   []figure
}

type table struct {
	Caption string
	Full    bool
	Head    []heading
	Rows    [][]cell
}

type heading struct {
	Title string
	Text  bool
}

// Parts splits a heading where it may be broken: after each dot of a metric's or key's name.
func (h heading) Parts() []string { return strings.SplitAfter(h.Title, ".") }

type cell struct{ Text, Class, Delta string }

type pageRun struct {
	Label    string
	Scenario []Line
	AnySet   bool
	Command  string
	Repeat   string
	Version  string
	Seed     uint64
	Digest   string
}

// WriteHTML writes a self-contained page for one run, or for several side by side, with the first as the baseline.
func WriteHTML(w io.Writer, runs ...Run) error {
	if len(runs) == 0 {
		return errors.New("report: no runs")
	}
	runs = labelled(runs)
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	p := page{
		// #nosec G203 -- constants
		Style: template.CSS(pageStyle + chart.CSS), Script: template.JS(pageScript),
		Patterns: template.HTML(chart.Patterns),
		Several:  len(runs) > 1, Version: runs[0].Result.Version,
	}
	if p.Several {
		p.Title = "Comparison: " + joinLabels(runs)
		p.Summary = "Differences are against " + runs[0].Label + "."
	} else {
		p.Title, p.Summary, p.Facts, p.Tiles = runs[0].name(), runs[0].Result.Summary, facts(&runs[0]), tiles(&runs[0])
	}
	p.remarks(runs)
	p.Sections = sections(runs)
	if slices.ContainsFunc(p.Sections,
		func(s section) bool { return slices.ContainsFunc(s.Figures, func(f figure) bool { return f.Player }) }) {
		p.Script += template.JS(networkScript) // #nosec G203 -- a constant
	}
	p.scenario(runs)
	p.Checks = checks(runs)
	p.Metrics = metrics(runs)
	if slices.ContainsFunc(runs, func(r Run) bool { return slices.ContainsFunc(r.Result.Metrics, unlisted) }) {
		p.Unlisted = fmt.Sprintf("The first %d components of each kind are listed; result.json has all.", mostListed)
	}
	return t.Execute(w, &p)
}

// labelled gives every run a unique label.
func labelled(runs []Run) []Run {
	runs = slices.Clone(runs)
	seen := map[string]int{}
	for i, name := range runNames(runs) {
		seen[name]++
		if n := seen[name]; n > 1 {
			name += " (" + strconv.Itoa(n) + ")"
		}
		runs[i].Label = name
	}
	return runs
}

func joinLabels(runs []Run) string {
	var names []string
	for _, r := range runs {
		names = append(names, r.Label)
	}
	return strings.Join(names, ", ")
}

func facts(r *Run) []fact {
	list := []fact{{"Seed", strconv.FormatUint(r.Result.Seed, 10)}, {"Digest", shortDigest(r.Result.Digest)},
		{"Version", r.Result.Version},
		{"Simulated", term.Seconds(r.Result.SimulatedS)}}
	if r.Result.WarmUp.UntilS > 0 {
		list = append(list, fact{"Warm-up", term.Seconds(r.Result.WarmUp.UntilS)})
	}
	if s := r.Result.Steady; s != nil && s.Reached {
		list = append(list, fact{"Steady", s.Explain})
	}
	if r.Timing != nil {
		list = append(list, fact{"Took", term.Seconds(r.Timing.WallS)},
			fact{"Events", term.Rate(r.Timing.EventsPerS) + "/s"})
	}
	return list
}

// tiles returns the headline figures of one run.
func tiles(r *Run) []tile {
	var list []tile
	add := func(name, metric, detail string) {
		if v := r.shown(metric); v != "" {
			list = append(list, tile{name, v, detail})
		}
	}
	for _, op := range []struct{ name, title string }{{"read", "Read"}, {"write", "Write"}} {
		add(op.title+" latency p99", op.name+".latency.p99", some(r.shown(op.name+".latency.p50"), "half within %s"))
	}
	for _, op := range []struct{ name, title string }{{"read", "Reads"}, {"write", "Writes"}} {
		add(op.title+" per second", op.name+".iops", r.shown(op.name+".bandwidth"))
	}
	add("Write amplification", "ssd.waf", r.inTransient(", ")+some(r.shown("ssd.gc.count"), "%s blocks collected"))
	add("Dies busy", "ssd.utilisation.die", some(r.shown("ssd.utilisation.channel"), "channels %s"))
	add("Bandwidth, all", "aggregate.bandwidth", "")
	add("Chunks per second", "cluster.put.iops", r.shown("cluster.put.rate"))
	add("Put latency p99", "cluster.put.latency.p99", some(r.shown("cluster.put.latency.p50"), "half within %s"))
	add("Chunks read per second", "cluster.get.iops", r.shown("cluster.get.rate"))
	add("Get latency p99", "cluster.get.latency.p99", some(r.shown("cluster.get.latency.p50"), "half within %s"))
	add("Exchanges per second", "cluster.exchange.iops", "")
	add("Exchange latency p99", "cluster.exchange.latency.p99",
		some(r.shown("cluster.exchange.latency.p50"), "half within %s"))
	add("Bound reached", "cluster.bound.reached", "of the bottleneck's limit")
	add("Disks busy", "cluster.disk.utilisation", some(r.shown("cluster.link.utilisation"), "links %s"))
	return append(list, r.networkTiles()...)
}

func (p *page) remarks(runs []Run) {
	for _, r := range runs {
		label := ""
		if p.Several {
			label = r.Label
		}
		for _, c := range r.Result.Checks {
			if !c.OK {
				p.Failed = append(p.Failed, remark{label, c.Name, c.Detail})
			}
		}
		for _, text := range r.Result.Warnings {
			p.Warnings = append(p.Warnings, remark{Run: label, Detail: text})
		}
		for _, l := range r.Result.Limits {
			if !slices.Contains(p.Limits, l) {
				p.Limits = append(p.Limits, l)
			}
		}
		if r.Citations != "" && !strings.Contains(p.Citations, r.Citations) {
			p.Citations += r.Citations
		}
	}
}

func sections(runs []Run) []section {
	var list []section
	add := func(id, title string, t *table, f []figure) {
		// Omit charts without values.
		f = slices.DeleteFunc(f, func(x figure) bool { return strings.Contains(string(x.SVG), chart.Empty) })
		if t != nil || len(f) > 0 {
			list = append(list, section{ID: id, Title: title, Table: t, Figures: f})
		}
	}
	if len(runs) > 1 {
		add("headline", "Side by side", comparison(runs, headline), nil)
		add("latency", "Latency", nil, latencyFigures(runs))
		add("parts", "By component", nil, partFigures(runs))
		add("anatomy", "Where the time goes", nil, anatomyFigures(runs))
		add("flows", "Flows", nil, flowFigures(runs))
		add("cluster", "Object cluster", nil, clusterFigures(runs))
	} else {
		add("latency", "Latency", latencies(&runs[0]), latencyFigures(runs))
		add("parts", "By component", nil, partFigures(runs))
		add("anatomy", "Where the time goes", nil, anatomyFigures(runs))
		add("flows", "Flows", flowTable(&runs[0]), withTable(flowFigures(runs), flowGroupTable(&runs[0])))
		add("cluster", "Object cluster", clusterTable(&runs[0]), withTable(clusterFigures(runs), faultTable(&runs[0])))
		add("protocol", "The protocol, message by message", nil, protocolFigures(&runs[0]))
	}
	add("time", "Over time", nil, timeFigures(runs))
	if w := runs[0].Result.WarmUp; len(list) > 0 && list[len(list)-1].ID == "time" && w.UntilS > 0 && len(runs) == 1 {
		list[len(list)-1].Intro = warmUpNote(w.Explain)
	}
	add("drives", "Drives", nil, drivesFigures(runs))
	add("inside", "Inside the drive", nil, append(phaseFigure(runs), busyFigures(runs)...))
	if len(runs) == 1 {
		add("writes", "Flash writes and garbage collection", nil, withTable(writeFigures(runs), driveTable(&runs[0])))
	} else {
		add("writes", "Flash writes and garbage collection", comparison(runs, driveNames()), writeFigures(runs))
	}
	if len(runs) == 1 {
		add("network", "Network", nil, networkFigures(runs))
	} else {
		add("network", "Network", comparison(runs, happened(runs)), networkFigures(runs))
	}
	add("snis", "Storage and network in turns", nil, snisFigures(runs))
	add("more", "More", nil, others(runs))
	return list
}

// latencies returns the table of one run's requests.
func latencies(r *Run) *table {
	ops := r.present()
	if len(ops) == 0 {
		return nil
	}
	t := &table{Full: true, Head: []heading{{"", true}}}
	columns := []struct{ metric, title string }{{"count", "Count"}, {"iops", "IOPS"}, {"bandwidth", "Bandwidth"},
		{"latency.mean", "Mean"}, {"latency.p50", "p50"},
		{"latency.p90", "p90"}, {"latency.p99", "p99"}, {"latency.p99_9", "p99.9"}, {"latency.p99_99", "p99.99"},
		{"latency.max", "Max"}}
	for _, c := range columns {
		t.Head = append(t.Head, heading{Title: c.title})
	}
	for _, op := range ops {
		row := []cell{{Text: op, Class: "text"}}
		for _, c := range columns {
			row = append(row, cell{Text: r.shown(op + "." + c.metric)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// driveMetrics lists the metrics in tables of drives.
var driveMetrics = []struct{ metric, label string }{
	{"ssd.waf", "Write amplification"}, {"ssd.waf.bytes", "the same in bytes"},
	{"ssd.writes.host", "Pages programmed for the host"}, {"ssd.writes.gc", "for garbage collection"},
	{"ssd.writes.mapping", "for the mapping table"}, {"ssd.writes.wear", "for wear levelling"},
	{"ssd.writes.refresh", "for refresh of old data"}, {"ssd.writes.fold", "for folding of the SLC cache"},
	{"ssd.slc.share", "Host pages through the SLC cache"},
	{"ssd.slc.folds", "SLC cache blocks folded"}, {"ssd.gc.count", "Blocks collected"},
	{"ssd.flash.reads", "Flash page reads"}, {"ssd.flash.programs", "Flash page programs"},
	{"ssd.flash.erases", "Flash block erases"},
	{"ssd.flash.suspensions", "Suspensions for reads"}, {"ssd.cmt.hit_ratio", "Mapping cache hits"},
	{"ssd.cache.hit_ratio", "Data cache hits"},
	{"ssd.utilisation.link", "Host link busy"}, {"ssd.utilisation.controller", "Controller's processors busy"},
	{"ssd.power_states.rested", "At rest"}, {"ssd.power_states.wakes", "Woken"},
	{"ssd.wear.mean", "Erases per block, mean"}, {"ssd.wear.max", "Erases per block, maximum"},
	{"ssd.wear.life_used", "Rated life used"}, {"ssd.free_blocks.min", "Fewest free blocks of a plane"},
	{"ssd.energy", "Energy"}, {"ssd.power", "Mean power"}, {"ssd.power_limit.held", "Operations that waited for power"},
}

func driveNames() []string {
	var names []string
	for _, d := range driveMetrics {
		names = append(names, d.metric)
	}
	return names
}

// headline lists the first metrics of comparisons.
var headline = []string{"read.count", "read.iops", "read.bandwidth", "read.latency.mean", "read.latency.p50",
	"read.latency.p99", "read.latency.p99_9",
	"read.latency.max", "write.count", "write.iops", "write.bandwidth", "write.latency.mean", "write.latency.p50",
	"write.latency.p99",
	"write.latency.p99_9", "write.latency.max", "aggregate.bandwidth", "ssd.waf", "ssd.utilisation.die",
	"ssd.utilisation.channel",
	"flow.count", "flow.unfinished", "flow.fct.mean", "flow.fct.p50", "flow.fct.p99", "flow.fct.p99_9",
	"flow.fct.max", "flow.slowdown.mean",
	"fairness.bandwidth", "fairness.progress", "fairness.slowdown", "flow.slowdown.p50", "flow.slowdown.p99",
	"flow.slowdown.max", "fabric.goodput",
	"cluster.put.iops", "cluster.put.rate", "cluster.put.latency.mean", "cluster.put.latency.p50",
	"cluster.put.latency.p99", "cluster.put.latency.max", "cluster.bound.reached", "cluster.disk.utilisation",
	"cluster.get.iops", "cluster.get.rate", "cluster.get.latency.mean", "cluster.get.latency.p50",
	"cluster.get.latency.p99", "cluster.get.latency.max",
	"cluster.bound.used", "cluster.loss.repair", "cluster.loss.control", "cluster.loss.receiving",
	"cluster.loss.reserved", "cluster.loss.tentative", "cluster.loss.waiting", "cluster.loss.idle", "cluster.loss.down",
	"cluster.lost", "cluster.retried", "cluster.failed", "cluster.imbalance.target.max", "cluster.imbalance.group.max"}

// driveTable lists the drive's counters. Zeros are omitted, except those of garbage collection.
func driveTable(r *Run) *table {
	t := &table{Full: true, Head: []heading{{"", true}, {}}}
	for _, d := range driveMetrics {
		v, ok := r.value(d.metric)
		if !ok || v == 0 && d.metric != "ssd.writes.gc" && d.metric != "ssd.gc.count" {
			continue
		}
		t.Rows = append(t.Rows, []cell{{Text: d.label, Class: "text"}, {Text: r.shown(d.metric)}})
	}
	if t.Rows == nil {
		return nil
	}
	return t
}

// withTable inserts a table after the wide figures.
func withTable(f []figure, t *table) []figure {
	if t == nil {
		return f
	}
	at := 0
	for at < len(f) && f[at].Wide {
		at++
	}
	return slices.Insert(f, at, figure{Table: t})
}

// warmUpNote explains the shaded part of charts and how the warm-up was determined.
func warmUpNote(explain string) string {
	note := "Shaded: the warm-up, which only charts over time include."
	if explain != "" && !strings.Contains(explain, "the scenario says") {
		note += " Its length: " + sentence(explain)
	}
	return note
}

// sentence ends s with a full stop.
func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// comparison returns a table of metrics with a column per run.
func comparison(runs []Run, names []string) *table {
	t := &table{Full: true, Head: []heading{{"", true}}}
	for _, r := range runs {
		t.Head = append(t.Head, heading{Title: r.Label})
	}
	for _, name := range names {
		row := []cell{{Text: name, Class: "text"}}
		found := false
		first, haveFirst := runs[0].value(name)
		for i := range runs {
			v, ok := runs[i].value(name)
			c := cell{Text: runs[i].shown(name)}
			if i > 0 && ok && haveFirst {
				c.Delta = change(first, v)
			}
			found = found || ok
			row = append(row, c)
		}
		if found {
			t.Rows = append(t.Rows, row)
		}
	}
	if t.Rows == nil {
		return nil
	}
	return t
}

// change formats the difference of v from the first run's value.
func change(first, v float64) string {
	if first == v {
		return "="
	}
	if first == 0 || math.Signbit(first) != math.Signbit(v) {
		return ""
	}
	if ratio := v / first; ratio >= 3 || ratio <= 1.0/3 {
		return "×" + term.Significant(ratio, 3)
	}
	percent := 100 * (v - first) / math.Abs(first)
	sign := "+"
	if percent < 0 {
		sign = "\u2212"
	}
	return sign + term.Significant(math.Abs(percent), 2) + " %"
}

func (p *page) scenario(runs []Run) {
	for i := range runs {
		r := &runs[i]
		p.HasScenario = p.HasScenario || len(r.Scenario) > 0
		p.Runs = append(p.Runs,
			pageRun{Label: r.Label, Scenario: r.Scenario, Command: r.Command, Repeat: r.repeat(),
				Version: r.Result.Version, Seed: r.Result.Seed,
				Digest: r.Result.Digest, AnySet: slices.ContainsFunc(r.Scenario, func(l Line) bool { return l.Set })})
	}
	if !p.Several || !p.HasScenario {
		return
	}
	p.Differences = differenceTable(runs)
}

func checks(runs []Run) *table {
	t := &table{Head: []heading{{"Law", true}, {"", true}, {"", true}}}
	for _, r := range runs {
		for _, c := range r.Result.Checks {
			name, verdict := c.Name, cell{Text: "holds", Class: "text ok"}
			if len(runs) > 1 {
				name = r.Label + ": " + name
			}
			if !c.OK {
				verdict = cell{Text: "failed", Class: "text failed"}
			}
			t.Rows = append(t.Rows, []cell{{Text: name, Class: "text"}, verdict, {Text: c.Detail, Class: "text"}})
		}
	}
	if t.Rows == nil {
		return nil
	}
	return t
}

// mostListed limits the components of a kind whose metrics are listed; result.json has all.
const mostListed = 64

// unlisted reports whether a metric belongs to a component whose number is beyond mostListed.
func unlisted(m result.Metric) bool {
	_, index, _ := strings.Cut(m.Name, "[")
	index, _, _ = strings.Cut(index, "]")
	n, err := strconv.Atoi(index)
	return err == nil && n >= mostListed
}

// metrics lists the metrics of every run with their exact values.
func metrics(runs []Run) *table {
	t := &table{Full: true, Head: []heading{{"Name", true}}}
	var names []result.Metric
	values := map[string][]string{}
	for i, r := range runs {
		t.Head = append(t.Head, heading{Title: r.Label})
		for _, m := range r.Result.Metrics {
			if unlisted(m) {
				continue
			}
			list := values[m.Name]
			if list == nil {
				names = append(names, m)
				list = make([]string, len(runs))
				values[m.Name] = list
			}
			list[i] = strconv.FormatFloat(m.Value, 'f', -1, 64)
		}
	}
	t.Head = append(t.Head, heading{"Unit", true}, heading{"Meaning", true})
	if len(runs) == 1 {
		t.Head[1].Title = "Value"
	}
	for _, m := range names {
		row := []cell{{Text: m.Name, Class: "text"}}
		for _, text := range values[m.Name] {
			if text == "" {
				text = "\u2013"
			}
			row = append(row, cell{Text: text})
		}
		t.Rows = append(t.Rows, append(row, cell{Text: m.Unit, Class: "text"}, cell{Text: m.Help, Class: "text"}))
	}
	return t
}

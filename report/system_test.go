package report

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/model/ssd/blame"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
)

// toySystem generates the result of initiators and targets behind a network, with figures from formulas, on top of a
// network's result. It exists to test drawing.
type toySystem struct {
	name   string
	drives int
	slow   float64 // factor on the network's time
	turns  bool
	even   bool // the tail is hardly longer than the median
}

var stageColumns = []string{"initiator", "network_out", "target", "drive_wait", "flash", "txq", "network_back"}

func (c toySystem) run() Run {
	run := netA.run()
	r := run.Result
	run.Path = "runs/" + c.name
	r.Name, r.Summary = c.name,
		fmt.Sprintf("16 initiators, 4 targets with %d drives behind a leaf-spine network", c.drives)
	rows := []string{"mean", "p50", "p90", "p99", "p99.9", "max"}
	for k, op := range []string{"read", "write"} {
		var h stats.Histogram
		var v [][]float64
		for i, times := range []float64{1.2, 1, 2, 6, 11, 17} {
			if c.even {
				times = 1 + float64(i)/8
			}
			row := []float64{2, 4 * c.slow, 1 + times, 14 * (times - 0.7) * (times - 0.7), 78, 3 * times,
				11 * c.slow * times * times}
			if k == 1 {
				row = []float64{2, 9 * c.slow * times * times, 3 * times, 4 * times, 12 * times, 0, 3 * c.slow}
			}
			v = append(v, row)
			if i == 0 {
				for s, name := range stageColumns {
					r.Set(op+".stage."+name+".mean", row[s])
				}
			}
		}
		for i := range 5000 {
			share := float64(i) / 5000
			h.Record(units.Microseconds(100 + 120*math.Pow(share, 6)/(1.03-share)))
		}
		r.SetMatrix(op+".anatomy", rows, stageColumns, v)
		r.SetLatencies(op, &h)
		r.Set(op+".count", float64(h.Count()))
		r.Set(op+".iops", 41000)
		r.Set(op+".bandwidth", 41000*16384)
	}
	r.Set("aggregate.bandwidth", 1.3e9)
	r.Set("ssd.waf", 1.41)
	r.Set("ssd.gc.count", 1234)
	r.Set("ssd.utilisation.die", 0.374)
	r.SetMatrix("ssd.latency.breakdown", []string{"read", "write"},
		[]string{"host_link", "dram", "mapping", "wait", "array", "transfer", "other"},
		[][]float64{{3, 0, 2, 22, 62, 11, 0}, {3, 9, 0, 4, 0, 0, 0}})
	for i := range c.drives {
		set := func(name string, v float64) { r.Set(fmt.Sprintf("ssd[%d].%s", i, name), v) }
		set("utilisation.die", 0.31+0.13*math.Abs(math.Sin(float64(i)*1.7)))
		set("waf", 1.3+0.02*float64(i%11))
		set("read.count", float64(5000+37*(i%7)))
		set("write.count", 0)
	}
	if c.turns {
		c.takeTurns(r)
	}
	return run
}

func (c toySystem) takeTurns(r *result.Result) {
	const n = 7
	r.Set("snis.iterations", n)
	r.Set("snis.converged", 1)
	for k, name := range []string{"snis.conv_c", "snis.rd_mean", "snis.rd_median", "snis.rd_p90"} {
		s := result.Series{Name: name}
		for i := 1; i < n; i++ {
			s.T = append(s.T, float64(i))
			s.V = append(s.V, []float64{0.5, 0.62, 0.33, 0.55}[k]*math.Exp(-float64(i-1)*0.8)+0.003*float64(k))
		}
		r.PutSeries(s)
	}
	var rows, cols []string
	var v [][]float64
	for i := range n {
		cols = append(cols, fmt.Sprint(i))
	}
	for k, q := range []string{"p1", "p10", "p25", "p50", "p75", "p90", "p99"} {
		rows = append(rows, q)
		line := make([]float64, n)
		for i := range line {
			line[i] = 2e6 * math.Pow(2.6, float64(k)) * (1 - 0.5*(1-math.Exp(-float64(i))))
		}
		v = append(v, line)
	}
	r.SetMatrix("snis.throughput", rows, cols, v)
	r.SetMatrix("snis.error", []string{"mean", "p50", "p90", "p99"}, []string{"iterative", "coupled", "relative"},
		[][]float64{{402, 431, -0.0673}, {180, 182, -0.011}, {820, 800, 0.025}, {4020, 4500, -0.107}})
}

var (
	systemA = toySystem{name: "vdi-behind-a-clos", drives: 512, slow: 1, turns: true}
	systemB = toySystem{name: "congested", drives: 16, slow: 4}
	systemC = toySystem{name: "even", drives: 1, slow: 1, even: true}
)

func systemText(t *testing.T, r Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteText(&b, r, term.Style{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSystemText(t *testing.T) {
	got := systemText(t, systemA.run())
	file := filepath.Join("testdata", "system.golden")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if text := systemText(t, systemC.run()); strings.Contains(text, "\n  drives") ||
		strings.Contains(text, "in turns") || !strings.Contains(text, "\ndrive\n") {
		t.Errorf("one drive without turns is told as\n%s", text)
	}
	if text := systemText(t, toyA.run(1)); strings.Contains(text, "\nsystem\n") {
		t.Errorf("a drive alone has a system:\n%s", text)
	}
}

func TestSystemHTML(t *testing.T) {
	html := page1(t, systemA.run())
	sound(t, html)
	for _, want := range []string{`<h2 id="anatomy">Where the time goes</h2>`, "Reads: where the time goes",
		"Reads: shares of the time", "Writes: shares of the time",
		"initiator (queue and software)", "network back", "TXQ wait", "p99.9, ", "p99, drive wait: ",
		"Where the time in a drive goes", "512 drives", "Write amplification",
		"How busy each drive was", "drive 511: ", "first 64 components of each kind", `<h2 id="snis">`, "Conv_C",
		"90th percentile: ", "Iteration 6", "The iterations converged.",
		"Throughput of requests", "In turns against one event loop", "\u221210.7 %", "read.stage.txq.mean",
		"ssd[63].waf"} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, not := range []string{`<h2 id="more">`, "ssd[64].waf", "The parts add up to the mean latency",
		"snis.rd_p90 over time"} {
		if strings.Contains(html, not) {
			t.Errorf("%q is there", not)
		}
	}
	if html != page1(t, systemA.run()) {
		t.Error("the page differs from one time to the next")
	}
	// Writes of the toy never wait in a TXQ, so their legend does not have it. Two charts of reads do, each in two
	// widths, and so does each bar's title.
	if n := strings.Count(html, ">TXQ wait</text>"); n != 4 {
		t.Errorf("the legend names the TXQ %d times", n)
	}
	html = page1(t, systemC.run())
	if strings.Contains(html, "shares of the time") || strings.Contains(html, `id="drives"`) ||
		strings.Contains(html, `id="snis"`) || strings.Contains(html, "are listed") {
		t.Error("what does not apply is drawn")
	}
	if strings.Contains(page1(t, toyA.run(1)), `id="anatomy"`) {
		t.Error("a drive alone has an anatomy")
	}
}

func TestSystemHTMLSeveral(t *testing.T) {
	html := page1(t, systemA.run(), systemB.run(), systemC.run())
	sound(t, html)
	for _, want := range []string{"p99, vdi-behind-a-clos", "p99, congested", "vdi-behind-a-clos: 512 drives",
		"congested: 16 drives", "Vdi-behind-a-clos: convergence"} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
	a, b, c := strings.Index(html, ">p90, vdi-behind-a-clos<"), strings.Index(html, ">p90, congested<"),
		strings.Index(html, ">p99, vdi-behind-a-clos<")
	if a < 0 || b < a || c < b {
		t.Errorf("bars of one quantile are not next to each other: %d %d %d", a, b, c)
	}
	sound(t, page1(t, toyA.run(1), systemB.run()))
}

// TestSystemParts draws results with missing or non-finite values.
func TestSystemParts(t *testing.T) {
	if testing.Short() {
		t.Skip("makes some hundred pages")
	}
	// The network's picture is not tested here and takes most of the time.
	alone := func(c toySystem) Run {
		r := c.run()
		r.Result.Matrices = slices.DeleteFunc(r.Result.Matrices,
			func(m result.Matrix) bool { return networkDraws(m.Name) })
		return r
	}
	other := alone(systemB)
	show := func(name string, r Run) string {
		t.Helper()
		html := page1(t, r)
		sound(t, html)
		sound(t, page1(t, r, other))
		text := systemText(t, r)
		if strings.Contains(text, "NaN") || strings.Contains(text, "%!") {
			t.Errorf("%s: a value was not written as it should be:\n%s", name, text)
		}
		return html + text
	}
	c := systemA
	c.drives = 3
	small := func() Run { return alone(c) }
	whole := small().Result
	for i, m := range whole.Matrices {
		if !systemDraws(m.Name) {
			continue
		}
		r := small()
		r.Result.Matrices = append(r.Result.Matrices[:i], r.Result.Matrices[i+1:]...)
		got := show("without "+m.Name, r)
		if m.Name == "read.anatomy" &&
			(!strings.Contains(got, "Reads: where the time goes") || !strings.Contains(got, "mean read") ||
				strings.Contains(got, "p99 read")) {
			t.Error("without the matrix the means of the metrics are not shown")
		}
		for _, bad := range []float64{math.NaN(), 0, -1, math.Inf(1)} {
			r = small()
			for _, row := range r.Result.Matrices[i].V {
				for k := range row {
					row[k] = bad
				}
			}
			if math.IsInf(bad, 0) && strings.HasPrefix(m.Name, "snis.") {
				continue // such a result cannot be written
			}
			show(fmt.Sprintf("%v in %s", bad, m.Name), r)
		}
		r = small()
		r.Result.SetMatrix(m.Name, nil, nil, nil)
		show("nothing in "+m.Name, r)
		r = small()
		one := r.Result.Matrices[i]
		r.Result.SetMatrix(m.Name, one.Rows[:1], one.Cols[:1], [][]float64{one.V[0][:1]})
		show("one number in "+m.Name, r)
	}
	for i, s := range whole.Series {
		if !systemDraws(s.Name) {
			continue
		}
		r := small()
		for k := range r.Result.Series[i].V {
			r.Result.Series[i].V[k] = math.NaN()
		}
		show("NaN in "+s.Name, r)
		r = small()
		r.Result.Series = append(r.Result.Series[:i], r.Result.Series[i+1:]...)
		show("without "+s.Name, r)
	}
	r := small()
	r.Result.Set("snis.converged", 0)
	if got := show("no end", r); !strings.Contains(got, "did not converge") {
		t.Error("iterations that did not converge are not told")
	}
	r = small()
	r.Result.Metrics = nil
	show("no metrics", r)
	r = small()
	r.Result.Set("ssd[7].gc.count", 5) // only one drive has it
	show("a drive with other figures", r)
}

func TestEachDrive(t *testing.T) {
	r := Run{Result: result.New(trial.Vocabulary(), "d", 1, "v")}
	r.Result.Set("ssd.waf", 9)
	r.Result.Set("ssd[10].waf", 2)
	r.Result.Set("ssd[2].waf", 1)
	r.Result.Set("ssd[2].gc.count", 4)
	r.Result.Set("ssd[5].gc.count", 6)
	d := r.eachDrive()
	if fmt.Sprint(d.number) != "[2 5 10]" || fmt.Sprint(d.of["ssd.waf"]) != "[1 NaN 2]" ||
		fmt.Sprint(d.of["ssd.gc.count"]) != "[4 6 NaN]" {
		t.Errorf("%+v", d)
	}
	if s, ok := d.spread("ssd.waf"); !ok || s != (spread{1, 1.5, 2, 2, 10}) {
		t.Errorf("%+v", s)
	}
	if _, ok := d.spread("ssd.power"); ok {
		t.Error("there is a spread of nothing")
	}
}

// TestRateControlInText verifies that the table shows the inputs and actions of a rate controller, if the run has one.
func TestRateControlInText(t *testing.T) {
	run := toySystem{name: "steered", drives: 2, slow: 1}.run()
	text := func() string {
		var b strings.Builder
		if err := run.system(&b, term.Style{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := text(); strings.Contains(got, "rate control") {
		t.Errorf("without a controller:\n%s", got)
	}
	run.Result.Set("rate.demanded", 22.8e9)
	run.Result.Set("rate.weight_ratio", 4)
	run.Result.Set("rate.predictions", 1234)
	want := "rate control  22.8 Gbit/s  rate that the network grants the targets, weight of writes over reads 4.000, " +
		"1,234 predictions"
	if got := text(); !strings.Contains(strings.Join(strings.Fields(got), " "),
		strings.Join(strings.Fields(want), " ")) {
		t.Errorf("with one:\n%s", got)
	}
}

// TestUpright verifies that stages that do not fit as columns become rows, without stages that took no time, in one
// table per run, with the sums below.
func TestUpright(t *testing.T) {
	g := anatomyGroup{op: "read", stages: blame.Names[:], labels: []string{"mean", "p99"}, runs: []string{"a", "a"}}
	for _, f := range []float64{1, 10} {
		s := slicesOfTime{row: "mean", parts: make([]float64, len(g.stages)), total: 4 * f}
		if f > 1 {
			s.row = "p99"
		}
		s.parts[blame.Array], s.parts[blame.Controller] = f, 3*f
		g.rows = append(g.rows, s)
	}
	text := func(x *table) (lines []string) {
		for _, h := range x.Head {
			lines = append(lines, h.Title)
		}
		for _, r := range x.Rows {
			for _, c := range r {
				lines = append(lines, strings.TrimSpace(c.Text+" "+c.Delta))
			}
		}
		return lines
	}
	want := []string{"", "mean", "p99", "Flash array", "1 us 25 %", "10 us 25 %", "Controller's processors",
		"3 us 75 %", "30 us 75 %", "Sum", "4 us", "40 us"}
	one := g.tables(false)
	if len(one) != 1 || one[0].Caption != "Reads" || !slices.Equal(text(one[0]), want) {
		t.Errorf("%q", text(one[0]))
	}
	g.rows, g.labels, g.runs = append(g.rows, g.rows...), append(g.labels, g.labels...), append(g.runs, "b", "b")
	two := g.tables(true)
	if len(two) != 2 || two[0].Caption != "Reads, a" || two[1].Caption != "Reads, b" ||
		!slices.Equal(text(two[1]), want) {
		t.Errorf("%d tables, the second %q", len(two), text(two[len(two)-1]))
	}
	g.stages = g.stages[:mostAcross]
	if n := len(g.tables(true)); n != 1 {
		t.Errorf("%d tables of few stages", n)
	}
}

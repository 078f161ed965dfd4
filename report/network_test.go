package report

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
)

// toyNet generates the result of a leaf-and-rack network, with figures from formulas, to test drawing.
type toyNet struct {
	name                 string
	racks, leaves, hosts int // hosts per rack
	slices               int
	pauses               bool
}

func (c toyNet) run() Run {
	r := result.New(trial.Vocabulary(), "sha256:0123456789abcdef0123456789abcdef", 1, "0.1.0")
	r.Name, r.Summary = c.name, fmt.Sprintf("%d hosts, %d switches", c.racks*c.hosts, c.racks+c.leaves)
	r.SimulatedS = 0.005
	r.WarmUp = result.WarmUp{UntilS: 0.001, Explain: "the time that the scenario says"}
	var nodes []string
	var at [][]float64
	add := func(name string, x, of, y float64, tier int) {
		nodes, at = append(nodes, name), append(at, []float64{(x + 0.5) / of, y, float64(tier)})
	}
	var ports []string
	var hosts []string
	both := func(a, b string) { ports = append(ports, a+"->"+b, b+"->"+a) }
	for k := range c.racks {
		for h := range c.hosts {
			n := k*c.hosts + h
			add(fmt.Sprintf("h%d", n), float64(n), float64(c.racks*c.hosts), 5.0/6, 0)
			hosts = append(hosts, fmt.Sprintf("h%d", n))
			both(hosts[n], fmt.Sprintf("tor%d", k))
		}
		add(fmt.Sprintf("tor%d", k), float64(k), float64(c.racks), 0.5, 1)
		for l := range c.leaves {
			both(fmt.Sprintf("tor%d", k), fmt.Sprintf("leaf%d", l))
		}
	}
	for l := range c.leaves {
		add(fmt.Sprintf("leaf%d", l), float64(l), float64(c.leaves), 1.0/6, 2)
	}
	r.SetMatrix("fabric.layout", nodes, []string{"x", "y", "tier"}, at)
	var cols []string
	for i := range c.slices {
		cols = append(cols, fmt.Sprintf("%.9g", 0.005*float64(i+1)/float64(c.slices)))
	}
	table := func(of func(port, slice int) float64) [][]float64 {
		v := make([][]float64, len(ports))
		for i := range v {
			for k := range c.slices {
				v[i] = append(v[i], of(i, k))
			}
		}
		return v
	}
	paused := 0.0
	if c.pauses {
		paused = 1
	}
	r.SetMatrix("fabric.link.utilisation", ports, cols,
		table(func(p, k int) float64 { return float64((p*7+k*3)%100) / 100 }))
	r.SetMatrix("fabric.link.queue", ports, cols,
		table(func(p, k int) float64 { return float64((p*p + k) % 9 * 30000) }))
	r.SetMatrix("fabric.link.paused", ports, cols,
		table(func(p, k int) float64 { return paused * float64((p+k)%5) / 10 }))
	var totals, depths [][]float64
	most := 0.0
	for i := range ports {
		q := float64(i * i % 9 * 31000)
		most = max(most, q)
		totals = append(totals,
			[]float64{float64((i*7)%97) / 100, paused * float64(i%5), paused * float64(i%5*120),
				paused * float64(i%5*40), float64(i % 11 * 100), 0, q})
		depths = append(depths, []float64{40, float64(i % 3), float64(i * i % 9), 0})
	}
	r.SetMatrix("fabric.link.totals", ports,
		[]string{"utilisation", "pauses", "paused_us", "longest_pause_us", "ecn_marks", "drops", "queue_max_bytes"},
		totals)
	r.SetMatrix("fabric.queue.histogram", ports, []string{"empty", "up to 128KB", "up to 256KB", "up to 512KB"}, depths)
	var good [][]float64
	for i := range hosts {
		good = append(good, []float64{float64(i%10) * 1e9})
	}
	r.SetMatrix("fabric.host.goodput", hosts, []string{"received"}, good)
	var h stats.Histogram
	for i := range 2000 {
		h.Record(units.Duration(math.Exp(float64(i)/300)*10) * units.Microsecond)
	}
	r.SetHistogram("flow.fct", &h)
	r.Set("flow.count", 2000)
	r.Set("flow.unfinished", 3)
	r.Set("flow.bytes", 3.2e9)
	for i, q := range []string{"mean", "p50", "p90", "p95", "p99", "p99_9", "max"} {
		r.Set("flow.fct."+q, 100*math.Pow(3, float64(i)))
		r.Set("flow.slowdown."+q, 1.5*float64(i+1))
	}
	r.SetMatrix("flow.slowdown", []string{"up to 1KiB", "up to 32KiB", "up to 1MiB"},
		[]string{"flows", "mean", "p50", "p95", "p99", "max"},
		[][]float64{{1200, 2, 1.5, 4, 9, 12}, {600, 3, 2.5, 8, 20, 40}, {200, 4, 3, 6, 7, 8}})
	r.Set("fabric.goodput", 123.4e9)
	r.Set("fabric.utilisation.max", 0.96)
	r.Set("fabric.queue.max", most)
	r.Set("fabric.pause.count", paused*321)
	r.Set("fabric.pause.time", paused*0.0123)
	r.Set("fabric.ecn.marks", 4567)
	r.Set("fabric.cnp.count", 89)
	r.Set("fabric.drops", 12)
	r.Set("fabric.retransmits", 34)
	r.Set("fabric.timeouts", 5)
	r.Warn("12 packets lost: no room in the buffer")
	line := make([]float64, 100)
	for i := range line {
		line[i] = 1 + math.Sin(float64(i)/9)
	}
	for _, s := range []string{"fabric.goodput", "fabric.queue", "fabric.ecn.marks", "flow[0].rate", "flow[1].rate"} {
		r.SetSeries(s, 50*units.Microsecond, scale(append([]float64(nil), line...), 1e9))
	}
	r.SetSeries("fabric.pause.time", 50*units.Microsecond, scale(append([]float64(nil), line...), 0.1*paused))
	r.Check("flows conserved", true, "posted 2003 = completed 2000 + in flight 3")
	return Run{Path: "runs/" + c.name, Result: r,
		Scenario: parseScenario("name: " + c.name + "\nfabric:\n  pfc: true # default\n")}
}

var (
	netA = toyNet{"leaf-spine", 4, 2, 8, 20, true}
	netB = toyNet{"unhindered", 4, 2, 8, 20, false}
)

func TestNetworkText(t *testing.T) {
	var b bytes.Buffer
	if err := WriteText(&b, netA.run(), term.Style{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "network.golden")
	if *rewrite {
		if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := WriteText(&b, netB.run(), term.Style{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "pause") {
		t.Errorf("pauses that did not happen take a line:\n%s", b.String())
	}
}

func TestNetworkHTML(t *testing.T) {
	html := page1(t, netA.run())
	sound(t, html)
	for _, want := range []string{"Flow completion p99", "Slowdown p99", "PFC pauses", "Largest queue",
		"no room in the buffer", "Flow completion time distribution",
		"Slowdown by size", "up to 32 KiB", "Goodput", "warm-up", "Packets marked per second", "Share of time paused",
		"Rates of the first queue pairs",
		"queue pair 1", `class="player" hidden`, `type="range"`, "tor3-&gt;leaf1: utilisation ", "data-over=",
		"Busiest ports", "Most paused ports",
		"Queues of the deepest ports", "depth, at most", "256KB", "Goodput of each host", "flows conserved",
		"farflash run runs/leaf-spine/scenario.yaml --seed 1", "fabric.ecn.marks"} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, not := range []string{"<h2 id=\"more\">", "Inside the drive", "Latency distribution"} {
		if strings.Contains(html, not) {
			t.Errorf("%q is there", not)
		}
	}
	if html != page1(t, netA.run()) {
		t.Error("the page differs from one time to the next")
	}
	if links := strings.Count(html, `class="link"`); links != 4*(8+2) {
		t.Errorf("%d links are drawn, not 40", links)
	}
	if html := page1(t, netB.run()); strings.Contains(html, "Most paused ports") ||
		strings.Contains(html, "Share of time paused") || !strings.Contains(html, "no port was paused") {
		t.Error("pauses that did not happen are drawn")
	}
	if strings.Contains(page1(t, toyA.run(1)), "svg.network") {
		t.Error("a drive's page has the script of networks")
	}
}

func TestNetworkHTMLSeveral(t *testing.T) {
	html := page1(t, netA.run(), netB.run())
	sound(t, html)
	for _, want := range []string{"Flow completion time distribution", "Slowdown by size, p50",
		"Slowdown by size, p99", "leaf-spine: links", "unhindered: links",
		"flow.fct.p99", "fabric.pause.count", "Goodput", "Differences"} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(html, "<td class=\"text\">fabric.nacks</td><td>0") {
		t.Error("what happened in no run is compared")
	}
	// A drive next to a network: each shows its own metrics.
	sound(t, page1(t, toyA.run(1), netA.run()))
}

// TestNetworkSize verifies that the page of a network with a thousand hosts stays small enough.
func TestNetworkSize(t *testing.T) {
	big := toyNet{"big", 32, 8, 32, 64, true}.run()
	html := page1(t, big)
	sound(t, html)
	if len(html) > 5_000_000 {
		t.Errorf("the page of 1,024 hosts is %d bytes", len(html))
	}
	if !strings.Contains(html, "data-over=") {
		t.Error("it does not move")
	}
	if html := page1(t, big, big, big, big); len(html) > 10_000_000 ||
		!strings.Contains(html, "Only the whole run is shown.") {
		t.Errorf("the page of four runs of 1,024 hosts is %d bytes", len(html))
	}
}

// TestNetworkParts draws results with missing or non-finite values.
func TestNetworkParts(t *testing.T) {
	show := func(name string, r Run) string {
		t.Helper()
		html := page1(t, r)
		sound(t, html)
		sound(t, page1(t, r, netA.run()))
		var b bytes.Buffer
		if err := WriteText(&b, r, term.Style{}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "%!") {
			t.Errorf("%s: a value was not written as it should be:\n%s", name, b.String())
		}
		return html + b.String()
	}
	whole := netA.run().Result
	for i := range whole.Matrices {
		r := netA.run()
		r.Result.Matrices = append(r.Result.Matrices[:i], r.Result.Matrices[i+1:]...)
		html := show("without "+whole.Matrices[i].Name, r)
		if whole.Matrices[i].Name == "fabric.layout" && strings.Contains(html, `class="link"`) {
			t.Error("links are drawn without a layout")
		}
		r = netA.run()
		for _, row := range r.Result.Matrices[i].V {
			for k := range row {
				row[k] = math.NaN()
			}
		}
		show("NaN in "+whole.Matrices[i].Name, r)
		r = netA.run()
		r.Result.SetMatrix(whole.Matrices[i].Name, nil, nil, nil)
		show("nothing in "+whole.Matrices[i].Name, r)
	}
	none := result.New(trial.Vocabulary(), "d", 1, "v")
	none.Set("flow.count", 0)
	none.Set("flow.unfinished", 16)
	none.Set("fabric.goodput", 0)
	none.Set("fabric.pause.count", 0)
	none.Set("fabric.drops", 0)
	if text := show("no flow ended", Run{Result: none}); !strings.Contains(text, "unfinished flows") ||
		!strings.Contains(text, "16 unfinished") {
		t.Errorf("flows that did not end are not told:\n%s", text)
	}
	for i := range whole.Series {
		r := netA.run()
		for k := range r.Result.Series[i].V {
			r.Result.Series[i].V[k] = math.NaN()
		}
		show("NaN in "+whole.Series[i].Name, r)
	}
	instant := netA.run()
	instant.Result.SimulatedS, instant.Result.WarmUp.UntilS = 0, 0
	show("no time", instant)
}

func TestNetworkEscapes(t *testing.T) {
	evil := `</title><script>alert(1)</script>"'&|;`
	r := netA.run()
	for i := range r.Result.Matrices {
		m := &r.Result.Matrices[i]
		rows := append([]string(nil), m.Rows...)
		for k, name := range rows {
			name = strings.ReplaceAll(name, "tor0", evil)
			rows[k] = strings.ReplaceAll(name, "h3", "x->"+evil)
		}
		m.Rows = rows
	}
	html := page1(t, r)
	sound(t, html)
	if strings.Contains(html, "<script>alert") || strings.Contains(html, `"'&|`) {
		t.Error("text got into the page as markup")
	}
	if !strings.Contains(html, "x-&gt;&lt;/title") {
		t.Error("the link of a node with an arrow in its name is not drawn")
	}
}

// TestLinks verifies which ports are paired into links.
func TestLinks(t *testing.T) {
	r := Run{Result: result.New(trial.Vocabulary(), "d", 1, "v")}
	index := map[string]int{"a": 0, "b": 1, "a->b": 2}
	ports := []port{{name: "a->b"}, {name: "a->b"}, {name: "b->a"}, {name: "a->b->a"}, {name: "a->elsewhere"},
		{name: "b->a"}, {name: "no arrow"}}
	var got []string
	for _, l := range r.links(ports, index, false) {
		text := fmt.Sprintf("%d-%d", l.A, l.B)
		for _, w := range l.Ways {
			text += " " + w.Name
		}
		got = append(got, text)
	}
	want := "0-1 a->b b->a, 0-1 a->b b->a, 2-0 a->b->a"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

// TestDepthsOfOthers verifies that a port whose queue was empty in every sample is left out, however deep it once was,
// and that the ports after it are still shown.
func TestDepthsOfOthers(t *testing.T) {
	run := netA.run()
	var m *result.Matrix
	for i := range run.Result.Matrices {
		if run.Result.Matrices[i].Name == "fabric.queue.histogram" {
			m = &run.Result.Matrices[i]
		}
	}
	var deep []port
	for _, p := range foremost(run.ports(), 8, port.byQueue) {
		if slices.Contains(m.Rows, p.name) {
			deep = append(deep, p)
		}
	}
	shows := func(name string) bool {
		f := depthFigure(&run)
		return len(f) > 0 && strings.Contains(string(f[0].SVG), html.EscapeString(name))
	}
	first, second := deep[0].name, deep[1].name
	if !shows(first) || !shows(second) {
		t.Fatalf("%s and %s are not shown", first, second)
	}
	row := m.V[slices.Index(m.Rows, first)]
	clear(row[1:])
	if shows(first) || !shows(second) {
		t.Errorf("with %s always empty it is shown: %v, and %s: %v", first, shows(first), second, shows(second))
	}
}

// TestSlices verifies that the links have values over time only where each slice has a finite end and the values fit in
// the room.
func TestSlices(t *testing.T) {
	for _, x := range []struct {
		cols  []string
		ports int
		room  int
		want  []float64
		used  int
	}{
		{[]string{"0.5", "1"}, 2, 12, []float64{0.5, 1}, 12}, // two ports, two slices, three measures
		{[]string{"0.5", "1"}, 2, 11, nil, 0},
		{[]string{"0.5"}, 1, 3, []float64{0.5}, 3},
		{[]string{"0.5", "NaN"}, 2, 99, nil, 0}, {[]string{"+Inf", "1"}, 2, 99, nil, 0},
		{[]string{"-Inf"}, 1, 99, nil, 0}, {[]string{"half"}, 1, 99, nil, 0},
	} {
		r := Run{Result: result.New(trial.Vocabulary(), "d", 1, "v")}
		r.Result.SetMatrix(linkMeasures[0].matrix, []string{"a->b"}, x.cols, [][]float64{make([]float64, len(x.cols))})
		if got, used := r.slices(x.ports, x.room); !slices.Equal(got, x.want) || used != x.used {
			t.Errorf("%+v: %v, %d values", x, got, used)
		}
	}
}

// TestSmallestNetwork verifies the picture of two nodes: a link with both directions, or with one.
func TestSmallestNetwork(t *testing.T) {
	r := Run{Result: result.New(trial.Vocabulary(), "d", 1, "v")}
	r.Result.SimulatedS, r.Result.WarmUp.UntilS = 3, 1
	r.Result.SetMatrix("fabric.layout", []string{"h0", "s0"}, []string{"x", "y", "tier"},
		[][]float64{{-1, 2, 0}, {0.5, 0.5, 1}})
	for _, ports := range [][]string{{"h0->s0", "s0->h0"}, {"h0->s0"}} {
		r.Result.SetMatrix("fabric.link.totals", ports, []string{"utilisation", "paused_us", "queue_max_bytes"},
			[][]float64{{0.25, 500_000, 1}, {0.75, 0, 2}}[:len(ports)])
		room := 99
		c, ok := r.topology(&room)
		if !ok || len(c.Links) != 1 || len(c.Nodes) != 2 || room != 99 {
			t.Fatalf("%d ports: %v, %+v, %+v, room for %d values", len(ports), ok, c.Nodes, c.Links, room)
		}
		if n := c.Nodes[0]; n.X != 0 || n.Y != 1 || !n.End || c.Nodes[1].End {
			t.Errorf("the nodes are %+v", c.Nodes)
		}
		// Half a second of the two seconds measured.
		if d := c.Links[0].Ways; len(d) < 1 || !slices.Equal(d[0].Whole, []float64{0.25, 1, 0.25}) {
			t.Errorf("the link has %+v", d)
		}
	}
}

package report

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/numeric/units"
	"farflash/result"
)

var (
	caption = regexp.MustCompile(`(?s)<figcaption>(.*?)</figcaption>|<caption>(.*?)</caption>|<h2[^>]*>(.*?)</h2>`)
	labels  = regexp.MustCompile(`(?s)<td class="text[^"]*">(.*?)</td>|<th[^>]*>(.*?)</th>|class="legend"[^>]*>(.*?)<`)
	number  = regexp.MustCompile(`\b[0-9][0-9.,]*( [mun]?s\b)?`)
	word    = regexp.MustCompile(`[A-Za-z]{4,}`)
)

// shown lists what a run's page and text show, without the figures: captions, headings, names of rows and columns, and
// legends of the page, in order, and then the words of the text, whose lines depend on the width of figures.
func shown(t *testing.T, r Run) []string {
	t.Helper()
	page := page1(t, r)
	var out []string
	for _, re := range []*regexp.Regexp{caption, labels} {
		for _, m := range re.FindAllStringSubmatch(page, -1) {
			out = append(out, number.ReplaceAllString(tag.ReplaceAllString(strings.Join(m[1:], ""), ""), "N"))
		}
	}
	var b bytes.Buffer
	if err := WriteText(&b, r, term.Style{}); err != nil {
		t.Fatal(err)
	}
	words := word.FindAllString(strings.ReplaceAll(b.String(), "bit/s", ""), -1)
	slices.Sort(words)
	return append(out, slices.Compact(words)...)
}

// scaled multiplies all figures of a run that are not times.
func scaled(r Run, by float64) Run {
	for i := range r.Result.Metrics {
		r.Result.Metrics[i].Value *= by
	}
	for i := range r.Result.Series {
		scale(r.Result.Series[i].V, by)
	}
	for i := range r.Result.Matrices {
		for _, row := range r.Result.Matrices[i].V {
			scale(row, by)
		}
	}
	return r
}

// TestMagnitude verifies that a run of small figures has the tables, rows and charts of one with large figures, and
// which of them are left of a run that counted nothing.
func TestMagnitude(t *testing.T) {
	const network = "Flows; Flow completion time distribution; Flow completion time histogram; Slowdown by size; " +
		"Slowdown by size of flow; "
	for name, x := range map[string]struct {
		run      func() Run
		captions string // of a run of zeros, up to those that each run has
		rows     string // those of the drive or of the requests
	}{
		"drive": {func() Run { return toyA.run(1) }, "Latency; Latency distribution; Latency histogram; Over time; " +
			"Throughput; Requests per second; Latency over time; Inside the drive; Die occupancy; Channel occupancy; " +
			"Flash writes and garbage collection; Wear; Scenario", "; ; for garbage collection; Blocks collected"},
		"system": {systemA.run, "Latency; Latency distribution; Latency histogram; " + network +
			"Flash writes and garbage collection; Network; Links; Storage and network in turns; Convergence; " +
			"Throughput of requests; In turns against one event loop; Scenario",
			"; Flows; Unfinished; Mean; p50; p90; p95; p99; p99.N; Max; completion time; slowdown; Size; Flows; Mean; " +
				"p50; p95; p99; Max; up to N KiB; up to N KiB; up to N MiB; ; ; Blocks collected; Latency; In turns; " +
				"One event loop; Difference; mean; p50; p90; p99"},
		"network": {netA.run, network + "Network; Links; Scenario",
			"; Flows; Unfinished; Mean; p50; p90; p95; p99; p99.N; Max; completion time; slowdown; Size; Flows; Mean; " +
				"p50; p95; p99; Max; up to N KiB; up to N KiB; up to N MiB"},
		"cluster": {func() Run { return Run{Result: clusterResult()} }, "Object cluster; Latency distribution; " +
			"Latency histogram; Latencies, sorted; Measured rate over each bound",
			"; Count; Rate; Mean; p50; p90; p99; p99.N; Max; put; get"},
		"tenants": {func() Run { return tenants("web", "log") }, "By component; Tenants; Read latency by tenant; Write " +
			"latency by tenant", "; ; Count; IOPS; Bandwidth; Mean; p50; p99; p99.N; Max; Slowdown; web; read; ; write; " +
			"log; read"},
	} {
		whole, got := shown(t, x.run()), shown(t, scaled(x.run(), 1./(1<<40)))
		if !slices.Equal(got, whole) {
			t.Errorf("%s: small figures show\n%q, others\n%q", name, got, whole)
		}
		zero := shown(t, scaled(x.run(), 0))
		checks, all := slices.Index(zero, "Checks"), slices.Index(zero, "All metrics")
		end := slices.IndexFunc(zero, func(s string) bool { return s == "Law" || s == "Name" })
		if checks < 0 || end < all {
			t.Fatalf("%s: the page shows %q", name, zero)
		}
		if got := strings.Join(zero[:checks], "; "); got != x.captions {
			t.Errorf("%s: zeros have the captions\n%s, want\n%s", name, got, x.captions)
		}
		if got := strings.Join(zero[all+1:end], "; "); got != x.rows {
			t.Errorf("%s: zeros have the rows\n%s, want\n%s", name, got, x.rows)
		}
	}
}

// TestNoWarmUp verifies that a page says nothing of a warm-up that there was not, and explains one where it shows only
// values over time.
func TestNoWarmUp(t *testing.T) {
	said := func(r Run) bool {
		before, _, _ := strings.Cut(page1(t, r), ">All metrics<")
		var b bytes.Buffer
		if err := WriteText(&b, r, term.Style{}); err != nil {
			t.Fatal(err)
		}
		page, text := strings.Contains(strings.ToLower(before), "warm-up"), strings.Contains(b.String(), "warm")
		if page != text {
			t.Errorf("it is said on the page: %v, in the text: %v", page, text)
		}
		return page
	}
	for name, run := range map[string]func() Run{"drive": func() Run { return toyA.run(1) }, "system": systemA.run,
		"network": netA.run, "over time": func() Run {
			r := Run{Result: result.New(trial.Vocabulary(), "d", 1, "v")}
			r.Result.SimulatedS, r.Result.WarmUp.UntilS = 2, 0.5
			r.Result.SetSeries("read.iops", units.Second, []float64{5, 7})
			if !strings.Contains(page1(t, r), "Shaded: the warm-up") {
				t.Error("it is not said what is shaded")
			}
			return r
		}} {
		r := run()
		if !said(r) {
			t.Errorf("%s: nothing is said of the warm-up", name)
		}
		if r.Result.WarmUp = (result.WarmUp{}); said(r) {
			t.Errorf("%s: a warm-up is said that was not", name)
		}
	}
}

// TestSigned verifies relative differences with their signs.
func TestSigned(t *testing.T) {
	for want, v := range map[string]float64{"+25.0 %": 0.25, "\u221225.0 %": -0.25, "0 %": 0, "\u2013": math.NaN()} {
		if got := signed(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for _, v := range []float64{math.Inf(1), math.Inf(-1)} {
		if got := signed(v); got != "\u2013" {
			t.Errorf("%v: %q", v, got)
		}
	}
}

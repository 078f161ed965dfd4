package report

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/patience"
	"farflash/internal/term"
	"farflash/result"
)

var (
	out     = flag.String("out", "", "write the sample reports to this directory, to be looked at")
	rewrite = flag.Bool("rewrite", false, "write the golden files anew")
)

func page1(t *testing.T, runs ...Run) string {
	t.Helper()
	var w bytes.Buffer
	if err := WriteHTML(&w, runs...); err != nil {
		t.Fatal(err)
	}
	return w.String()
}

// TestSamples writes sample reports to look at when the drawing changes.
func TestSamples(t *testing.T) {
	if *out == "" {
		t.Skip("no -out")
	}
	for name, runs := range map[string][]Run{"one.html": {toyA.run(1)},
		"three.html":  {toyA.run(1), toyB.run(1), toyC.run(1)},
		"system.html": {systemA.run()}, "systems.html": {systemA.run(), systemB.run()}, "even.html": {systemC.run()}} {
		if err := os.WriteFile(filepath.Join(*out, name), []byte(page1(t, runs...)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := WriteText(&b, toyA.run(1), term.Style{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "text.golden")
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
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
}

func TestTextVerdicts(t *testing.T) {
	r := result.New(trial.Vocabulary(), "d", 1, "v")
	r.Check("requests conserved", false, "issued 10, completed 9")
	r.Check("bytes conserved", true, "")
	r.Warn("the trace is short")
	var b bytes.Buffer
	if err := WriteText(&b, Run{Result: r, Path: "runs/x"}, term.Style{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"checks: 1 of 2 hold", "failed requests conserved: issued 10, completed 9",
		"warning: the trace is short", "run directory: runs/x"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

var (
	void    = map[string]bool{"meta": true, "wbr": true}
	remote  = []string{"http:", "https:", "src=", "@import", "<link", "<iframe", "<img"}
	fetched = regexp.MustCompile(`url\([^#]`)
)

// without removes the elements of a name together with their contents, which are not HTML.
func without(html, element string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(html, "<"+element+">")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, html, _ = strings.Cut(rest, "</"+element+">")
	}
}

// unbalanced returns the first unbalanced tag of a page, "" if there is none. It parses by hand for speed, because some
// tests check hundreds of pages.
func unbalanced(body string) string {
	var open []string
	for {
		at := strings.IndexByte(body, '<')
		if at < 0 {
			break
		}
		body = body[at+1:]
		end := strings.IndexAny(body, "<>")
		if end < 0 || body[end] == '<' {
			continue
		}
		tag := body[:end]
		name, closes := strings.CutPrefix(tag, "/")
		if n := strings.IndexAny(name, " \t\n/"); n >= 0 {
			name = name[:n]
		}
		switch last := len(open) - 1; {
		case name == "" || name[0] == '!' || strings.HasSuffix(tag, "/") || void[name]:
		case !closes:
			open = append(open, name)
		case last < 0 || open[last] != name:
			return fmt.Sprintf("</%s> does not close %v", name, open)
		default:
			open = open[:last]
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("not closed: %v", open)
	}
	return ""
}

// TestUnbalanced tests unbalanced itself.
func TestUnbalanced(t *testing.T) {
	for text, want := range map[string]string{
		`<!doctype html><p>a<br/><b class="x">1 < 2</b></p><meta a="b">`: "",
		`<p><b></p></b>`: "</p> does not close [p b]", `</p>`: "</p> does not close []", `<p><i>`: "not closed: [p i]",
	} {
		if got := unbalanced(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got := without("a<style>p { }</style>b<style>", "style"); got != "ab" {
		t.Errorf("%q is left", got)
	}
}

// sound reports the defects of a page: unbalanced elements, dangling links, anything loaded from elsewhere.
func sound(t *testing.T, html string) {
	t.Helper()
	lower := strings.ToLower(html)
	for _, what := range remote {
		if strings.Contains(lower, what) {
			t.Errorf("the page loads something: %s", what)
		}
	}
	if m := fetched.FindString(lower); m != "" {
		t.Errorf("the page loads something: %s", m)
	}
	body := without(without(html, "style"), "script")
	if wrong := unbalanced(body); wrong != "" {
		t.Fatal(wrong)
	}
	for _, m := range regexp.MustCompile(`href="#([a-z]+)"`).FindAllStringSubmatch(body, -1) {
		if !strings.Contains(body, `id="`+m[1]+`"`) {
			t.Errorf("the link to #%s leads nowhere", m[1])
		}
	}
	if strings.Contains(body, "NaN") || strings.Contains(body, "ZgotmplZ") || strings.Contains(body, "%!") {
		t.Error("a value was not written as it should be")
	}
}

func TestHTML(t *testing.T) {
	html := page1(t, toyA.run(1))
	sound(t, html)
	for _, want := range []string{"tlc-7pc-op", "Latency distribution", "Latency histogram", "Throughput", "warm-up",
		"Die occupancy", "Channel occupancy",
		"Where the time of a request goes", "Pages programmed", "Wear", `<span class="line default">`,
		`<span class="line set">`, "requests conserved",
		"farflash run tlc-7pc-op.yaml --set ssd.over_provisioning=7% --until steady",
		"farflash run runs/tlc-7pc-op/scenario.yaml --seed 1",
		toyA.run(1).Result.Digest, "Program and erase failures are not modelled.", "@inproceedings{snis", "MSER-5"} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if len(html) > 400_000 {
		t.Errorf("the page is %d bytes", len(html))
	}
	if html != page1(t, toyA.run(1)) {
		t.Error("the page differs from one time to the next")
	}
}

func TestHTMLSeveral(t *testing.T) {
	html := page1(t, toyA.run(1), toyB.run(1), toyA.run(2))
	sound(t, html)
	for _, want := range []string{"tlc-7pc-op, seed 2", "Read latency distribution", "Write latency over time, p99",
		"Differences", "ssd.over_provisioning", "Write amplification", "tlc-28pc-op: die occupancy"} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestHTMLOfNothing(t *testing.T) {
	if err := WriteHTML(&bytes.Buffer{}); err == nil {
		t.Error("a report of no run")
	}
	sound(t, page1(t, Run{Result: result.New(trial.Vocabulary(), "d", 1, "v")}))
	sound(t, page1(t, Run{Result: result.New(trial.Vocabulary(), "d", 1, "v")},
		Run{Result: result.New(trial.Vocabulary(), "e", 2, "v")}))
}

func TestHTMLEscapes(t *testing.T) {
	evil := `</title><script>alert(1)</script>"'&`
	r := toyA.run(1)
	r.Result.Name, r.Result.Summary, r.Command, r.Citations = evil, evil, evil, evil
	r.Result.Warn("%s", evil)
	r.Result.Check(evil, false, evil)
	r.Result.Limits = []string{evil}
	r.Scenario = append(r.Scenario, Line{Text: evil})
	m := r.Result.Matrices[0]
	m.Rows[0], m.Cols[0] = evil, evil
	html := page1(t, r, r)
	if strings.Contains(html, "<script>alert") || strings.Contains(html, `"'&<`) {
		t.Error("text got into the page as markup")
	}
	sound(t, html)
}

func TestParseScenario(t *testing.T) {
	lines := parseScenario("a: 1\nb:  # default\n  c: 2s   # default\nd: x # set\n")
	want := []Line{{"a: 1", false, false}, {"b:", true, false}, {"  c: 2s", true, false}, {"d: x", false, true}}
	if len(lines) != len(want) {
		t.Fatalf("%v", lines)
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("line %d is %+v, want %+v", i, lines[i], want[i])
		}
	}
	if l := want[2]; l.Indent() != "  " || l.Body() != "c: 2s" {
		t.Errorf("%q %q", l.Indent(), l.Body())
	}
}

func TestSettings(t *testing.T) {
	text := `name: x
workload:
  - trace: {file: a.csv, format: msr}
  - synthetic:
      requests: 5
      sizes:
      - 4KiB
      - 8KiB
ssd:
  # a comment
  timing:
    read: 62us
  note: "a: b"
list:
- one
- - two
  - three
last: 1
`
	var got []string
	for _, s := range settings(parseScenario(text)) {
		got = append(got, s.Path+"="+s.Text)
	}
	want := []string{"name=x", "workload[0].trace.file=a.csv", "workload[0].trace.format=msr",
		"workload[1].synthetic.requests=5", "workload[1].synthetic.sizes=[4KiB, 8KiB]",
		"ssd.timing.read=62us", "ssd.note=a: b", "list[0]=one", "list[1]=[two, three]", "last=1"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestDifferences(t *testing.T) {
	runs := []Run{{Scenario: parseScenario("a: 1\nb:\n  c: 2\n  d: 3\n")},
		{Scenario: parseScenario("a: 1\nb:\n  c: 5\ne: 6\n")}}
	got := differences(runs)
	want := []differing{{"b.c", []string{"2", "5"}}, {"b.d", []string{"3", ""}}, {"e", []string{"", "6"}}}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i].Path != want[i].Path || got[i].Values[0] != want[i].Values[0] ||
			got[i].Values[1] != want[i].Values[1] {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
}

func TestChange(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want string
	}{{1, 1, "="}, {100, 150, "+50 %"}, {100, 98.5, "\u22121.5 %"}, {-2, -1, "+50 %"}, {-2, -3, "\u221250 %"},
		{-1, 1, ""}, {10, 50, "×5.00"}, {50, 10, "×0.200"}, {0, 5, ""}} {
		if got := change(c.a, c.b); got != c.want {
			t.Errorf("change(%v, %v) = %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func TestQuoteArgument(t *testing.T) {
	for in, want := range map[string]string{"runs/a-1/x.yaml": "runs/a-1/x.yaml", "my run": "'my run'",
		"it's": `'it'\''s'`, "": "''"} {
		if got := quoteArgument(in); got != want {
			t.Errorf("quoteArgument(%q) = %s, want %s", in, got, want)
		}
	}
}

// TestDistributionMatchesHistogram verifies that the curve passes through the histogram's own quantiles.
func TestDistributionMatchesHistogram(t *testing.T) {
	h := toyA.run(1).Result.Histogram("read.latency")
	d := distribution(h, "read", 0)
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		v := h.Quantile(q).Microseconds()
		if got := shareWithin(d, v); got < q-0.002 || got > q+0.002 {
			t.Errorf("the curve has %v at the %v quantile", got, q)
		}
	}
	if d.Value[len(d.Value)-1] != h.Max().Microseconds() || d.Share[len(d.Share)-1] != 1 {
		t.Error("the curve does not end at the maximum")
	}
}

// FuzzScenario shows arbitrary text as a scenario.
func FuzzScenario(f *testing.F) {
	f.Add("a: 1\nb:\n  - c: 2 # default\n")
	f.Add("- - - x\n -\n:\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer patience.Limit()()
		lines := parseScenario(text)
		differences([]Run{{Scenario: lines}, {Scenario: parseScenario("a: 2\n")}})
	})
}

func BenchmarkWriteHTML(b *testing.B) {
	r := toyA.run(1)
	for range b.N {
		var w bytes.Buffer
		if err := WriteHTML(&w, r); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLabels verifies that runs of the same name are distinguished by their differing settings and by the seed.
func TestLabels(t *testing.T) {
	run := func(name, op string, seed uint64) Run {
		return Run{Result: &result.Result{Name: name, Seed: seed},
			Scenario: parseScenario("name: " + name + "\nssd:\n  over_provisioning: " + op + "\n")}
	}
	for _, c := range []struct {
		runs []Run
		want []string
	}{
		{[]Run{run("a", "7%", 1), run("a", "12%", 1)},
			[]string{"ssd.over_provisioning=7%", "ssd.over_provisioning=12%"}},
		{[]Run{run("a", "7%", 1), run("a", "7%", 2)}, []string{"seed 1", "seed 2"}},
		{[]Run{run("a", "7%", 1), run("b", "12%", 1)}, []string{"a", "b"}},
		{[]Run{run("a", "7%", 1), run("a", "12%", 2)},
			[]string{"ssd.over_provisioning=7%, seed 1", "ssd.over_provisioning=12%, seed 2"}},
		{[]Run{run("a", "7%", 1), run("a", "7%", 1)}, []string{"a", "a (2)"}},
	} {
		for i, r := range labelled(c.runs) {
			if r.Label != c.want[i] {
				t.Errorf("run %d is called %q, want %q", i, r.Label, c.want[i])
			}
		}
	}
}

package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/golden"
	"farflash/internal/inputs"
	"farflash/result"
	"farflash/scenario"
	"farflash/workload/trace"
)

// statistics are the beginnings of the help of metrics that are statistics of one quantity.
var statistics = regexp.MustCompile(`^(mean|standard deviation|minimum|maximum|[0-9.]+th percentile) of (.*)$`)

// statistic returns, for a metric such as read.latency.p99, the name's part read.latency and the quantity.
func statistic(d result.Definition) (of, subject string, ok bool) {
	m := statistics.FindStringSubmatch(d.Help)
	if m == nil {
		return "", "", false
	}
	return d.Name[:strings.LastIndex(d.Name, ".")], m[2], true
}

// TestMetricsReference compares docs/reference/metrics.md with the program's vocabulary; -update writes it.
func TestMetricsReference(t *testing.T) {
	words := trial.Vocabulary()
	var b strings.Builder
	b.WriteString("# Metrics, series, histograms and matrices\n\n" +
		"Generated from the words of the kinds of experiment by `go test ./docs -update`; `farflash list metrics` " +
		"prints the first table.\n\n" +
		"A run has what applies to it: one without reads has no `read.latency.p99`.\n" +
		"A name may carry an index where a system has several of a thing, `ssd[2].waf`; without it the figure is " +
		"over all of them. Statistics of one quantity share a row, in which only the first name is whole.\n" +
		"Latencies are in microseconds, bandwidths in bytes per second, shares are fractions of 1. What was before " +
		"the end of the warm-up is left out.\n")
	for _, list := range []struct {
		title string
		table *result.Table
	}{{"Metrics", words.Metrics}, {"Series", words.Series}, {"Histograms", words.Histograms},
		{"Matrices", words.Matrices}} {
		fmt.Fprintf(&b, "\n## %s\n\n| name | unit | meaning |\n|---|---|---|\n", list.title)
		all := list.table.All()
		for i := 0; i < len(all); i++ {
			d := all[i]
			names, help := "`"+d.Name+"`", d.Help
			// Statistics of one quantity share a row.
			if of, subject, ok := statistic(d); ok {
				for i+1 < len(all) {
					next, same, ok := statistic(all[i+1])
					if !ok || next != of || same != subject || all[i+1].Unit != d.Unit {
						break
					}
					i++
					names += ", `" + strings.TrimPrefix(all[i].Name, of) + "`"
					help = subject
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", names, d.Unit, help)
		}
	}
	b.WriteString("\n## Parts\n\nWhat is divided has the same figures of each part, under the part's number: " +
		"`tenant[0].read.latency.p99`. " +
		"In result.json `parts` has their names, and a condition may use those: `--fail-if " +
		"'tenant[web].read.latency.p99>1ms'`. A division into one part has none.\n\n| prefix | parts | figures " +
		"|\n|---|---|---|\n")
	for _, s := range words.Scopes {
		var names []string
		for _, d := range s.Metrics {
			rest, _, found := strings.Cut(d.Name, ".")
			if found {
				rest += ".*"
			}
			if !slices.Contains(names, "`"+rest+"`") {
				names = append(names, "`"+rest+"`")
			}
		}
		fmt.Fprintf(&b, "| `%s[i].` | each %s | %s |\n", s.Name, s.Noun, strings.Join(names, ", "))
	}
	golden.File(t, filepath.Join("reference", "metrics.md"), []byte(b.String()), *update,
		"go test ./docs -run TestMetricsReference -update")
}

// TestTraceFormats verifies that the reference of trace formats is complete.
func TestTraceFormats(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("reference", "trace-formats.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range trace.Formats() {
		if !strings.Contains(string(text), "\n| `"+f.String()+"` |") {
			t.Errorf("docs/reference/trace-formats.md has no row for %s", f)
		}
	}
}

var (
	span   = regexp.MustCompile("`([^`]+)`")
	dotted = regexp.MustCompile(
		`^(read|write|trim|flush|all|ssd|workload|measure|sim)(\[[0-9*]*\])?(\.[a-z0-9_]+(\[[0-9*]*\])?)+$`)
	verb       = regexp.MustCompile(`^farflash ([a-z]+)`)
	argument   = regexp.MustCompile(`^farflash (?:run|waf|reproduce) ([a-z0-9-]+)(?: |$)`)
	flagged    = regexp.MustCompile(`(?:^| )--([a-z][a-z-]+)`)
	starred    = regexp.MustCompile(`\[[0-9*]*\]`)
	otherFlags = []string{"output-format"} // of other programs
)

// TestNames verifies that the verbs, presets, flags, keys and metrics that prose mentions in code spans exist.
func TestNames(t *testing.T) {
	var presets []string
	for _, p := range scenario.Presets() {
		presets = append(presets, p.Name)
	}
	help := func(args ...string) string {
		out, err := exec.Command(filepath.Join(binary(t), "farflash"), append(args, "--help")...).CombinedOutput()
		if err != nil {
			t.Fatalf("farflash %s --help: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	var verbs []string
	flags := map[string]bool{}
	note := func(text string) {
		for _, m := range flagged.FindAllStringSubmatch(text, -1) {
			flags[m[1]] = true
		}
	}
	commands := func(text string) (names []string) {
		_, list, _ := strings.Cut(text, "Available Commands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for line := range strings.Lines(list) {
			if f := strings.Fields(line); len(f) > 0 {
				names = append(names, f[0])
			}
		}
		return names
	}
	verbs = commands(help())
	var walk func(path []string)
	walk = func(path []string) {
		text := help(path...)
		note(text)
		for _, inner := range commands(text) {
			walk(append(slices.Clone(path), inner))
		}
	}
	for _, v := range verbs {
		walk([]string{v})
	}
	for _, p := range pages(t) {
		p.prose(func(n int, line string) {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				code := m[1]
				if m := verb.FindStringSubmatch(code); m != nil && !slices.Contains(verbs, m[1]) {
					t.Errorf("%s:%d: there is no verb %s", p.path, n, m[1])
				}
				if m := argument.FindStringSubmatch(code); m != nil && !slices.Contains(presets, m[1]) &&
					!strings.HasPrefix(code, "farflash reproduce") {
					t.Errorf("%s:%d: there is no preset %s", p.path, n, m[1])
				}
				if strings.HasPrefix(code, "farflash ") || strings.HasPrefix(code, "--") {
					for _, m := range flagged.FindAllStringSubmatch(code, -1) {
						if !flags[m[1]] && !slices.Contains(otherFlags, m[1]) {
							t.Errorf("%s:%d: there is no flag --%s", p.path, n, m[1])
						}
					}
				}
				if dotted.MatchString(code) && filepath.Ext(code) != ".xml" && !known(code) {
					t.Errorf("%s:%d: %s is not a metric, series, histogram, matrix or key of a scenario", p.path, n,
						code)
				}
			}
		})
	}
}

// known reports whether a dotted name is defined.
func known(name string) bool {
	words := trial.Vocabulary()
	for _, table := range []*result.Table{words.Metrics, words.Series, words.Histograms, words.Matrices} {
		if _, ok := table.Lookup(name); ok {
			return true
		}
	}
	_, err := scenario.Describe(starred.ReplaceAllString(name, ""))
	if err != nil {
		_, err = scenario.Describe(starred.ReplaceAllString(name, "[0]"))
	}
	return err == nil
}

// TestCodeOfOwnAlgorithm compares the code in the how-to with the tested example.
func TestCodeOfOwnAlgorithm(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("how-to", "congestion-control.md"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join(root, "model", "fabric", "cc", "example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(page), "```go\n")
	code, _, _ = strings.Cut(code, "\n```")
	if code == "" || !strings.Contains(string(example), code) {
		t.Error("the code in docs/how-to/congestion-control.md is not that of model/fabric/cc/example_test.go")
	}
}

// TestNotice verifies that NOTICE names every peer whose results are in the repository or the shared cases, and every
// collection of the shared traces.
func TestNotice(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"MQSim", "HPCC's ns-3", "ns3-rdma", "csg-htsim", "SURGE", "fio"} {
		if !strings.Contains(string(text), name) {
			t.Errorf("NOTICE does not name %s", name)
		}
	}
	collections := map[string]string{
		"alibaba": "Alibaba", "blkparse": "WiscSee", "blktrace-bin": "blkparseanalyzer",
		"cloudphysics": "CloudPhysics", "disksim": "DiskSim's validation", "fio-iolog": "fio's own log",
		"fiu": "FIU", "mqsim": "MQSim's excerpts", "msr": "MSR Cambridge", "spc": "SPC trace format",
		"systor17": "Fujitsu VDI", "tencent-cbs": "Tencent CBS", "ycsb-rocksdb-blkparse": "YCSB on RocksDB",
		"mlperf": "MLPerf Storage", "mooncake": "Mooncake",
		"catalogue": "", "reality": "", // our own tables, with a source in each row
	}
	folders, err := os.ReadDir(inputs.Path(t, "data"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		if name, ok := collections[f.Name()]; !ok || !strings.Contains(string(text), name) {
			t.Errorf("NOTICE does not name what is in ../shared/data/%s: %q", f.Name(), name)
		}
	}
}

// Command benchratio compares the program's hot paths with a committed baseline, on any machine. A benchmark's time is
// expressed in multiples of that of a fixed piece of work (BenchmarkReference), which is measured repeatedly between
// the benchmarks: the fastest run of each divided by the fastest of the reference. Allocations are compared as they
// are.
//
//	go run ./internal/benchratio            compare with baseline.txt; exit 1 if one is slower by more than -limit
//	go run ./internal/benchratio -update    rewrite baseline.txt
//
// Both files are in Go's benchmark format with the unit ref/op, so that benchstat shows them side by side (-o writes
// the current one). It leaves out why a benchmark is slow; a profile shows that.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// baseline is the file of committed figures, relative to the root of the repository.
const baseline = "internal/benchratio/baseline.txt"

// hot lists the benchmarks that are compared, by package.
var hot = []struct{ pkg, pattern string }{
	{"sim", `^BenchmarkEngine$/./^(100|10000)$`},
	{"numeric/rng", "^Benchmark(Log|Exp|Stream)$"},
	{"numeric/stats", "^BenchmarkRecord$"},
	{"policy/ftl", "^BenchmarkRandomWrite$"},
	{"model/ssd", "^BenchmarkIO$"},
	{"model/fabric", `^Benchmark(Incast|Clos)$/^64$`},
	{"model/fabric/cc", "^BenchmarkDCQCN$"},
	{"model/nvmf", "^BenchmarkSystem$"},
	{"model/cosim", "^BenchmarkHost$"},
	{"model/cluster", `^BenchmarkCluster$/^(pull|replicast-m|chain)$/^90$`},
	{"workload/synth", "^BenchmarkNext$"},
}

// sample is one measurement.
type sample struct{ ratio, allocs float64 }

func main() {
	update := flag.Bool("update", false, "rewrite the baseline")
	limit := flag.Float64("limit", 2, "the largest permitted ratio of a benchmark's time to the baseline")
	rounds := flag.Int("rounds", 5, "measurements of each benchmark; the fastest counts")
	out := flag.String("o", "", "write the measurements to a `file`, for benchstat")
	flag.Parse()
	code, err := run(*update, *limit, *rounds, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchratio:", err)
		os.Exit(2)
	}
	os.Exit(code)
}

func run(update bool, limit float64, rounds int, out string) (int, error) {
	dir, err := os.MkdirTemp("", "benchratio")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	reference, err := compile(dir, "internal/benchratio")
	if err != nil {
		return 0, err
	}
	found := map[string][]sample{} // in nanoseconds until divided by unit
	// the reference's fastest time: interference only ever slows a run down
	unit := math.Inf(1)
	for _, h := range hot {
		binary, err := compile(dir, h.pkg)
		if err != nil {
			return 0, err
		}
		for range rounds {
			ref, err := measure(reference, "internal/benchratio", "^BenchmarkReference$")
			if err != nil {
				return 0, err
			}
			for _, x := range ref {
				unit = min(unit, x.ratio)
			}
			list, err := measure(binary, h.pkg, h.pattern)
			if err != nil {
				return 0, err
			}
			if len(list) == 0 {
				return 0, fmt.Errorf("%s has no benchmark %s", h.pkg, h.pattern)
			}
			for name, x := range list {
				found[name] = append(found[name], x)
			}
		}
	}
	if math.IsInf(unit, 1) {
		return 0, fmt.Errorf("no measurement of the reference")
	}
	for _, list := range found {
		for i := range list {
			list[i].ratio /= unit
		}
	}
	if out != "" {
		if err := write(out, found); err != nil {
			return 0, err
		}
	}
	if update {
		return 0, write(baseline, found)
	}
	want, err := read(baseline)
	if err != nil {
		return 0, err
	}
	return compare(found, want, limit), nil
}

// compare prints each benchmark next to its baseline and returns 1 if any is worse.
func compare(found, want map[string][]sample, limit float64) int {
	code := 0
	for _, name := range slices.Sorted(maps.Keys(found)) {
		now := best(found[name])
		if len(want[name]) == 0 {
			fmt.Printf("new    %-44s %10.4g ref  %6.0f allocs; add it with go run ./internal/benchratio -update\n",
				name, now.ratio, now.allocs)
			code = 1
			continue
		}
		was := best(want[name])
		word := "ok"
		if now.ratio > limit*was.ratio {
			word, code = "SLOWER", 1
		}
		// A benchmark of a fraction of a second may start with an allocation that a longer one amortises over more
		// operations.
		if now.allocs > was.allocs+1 && now.allocs > 1.05*was.allocs {
			word, code = "ALLOCS", 1
		}
		fmt.Printf("%-6s %-44s %10.4g ref, %5.2f of the baseline  %6.0f allocs\n", word, name, now.ratio,
			now.ratio/was.ratio, now.allocs)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if len(found[name]) == 0 {
			fmt.Printf("GONE   %s\n", name)
			code = 1
		}
	}
	return code
}

// best returns the fastest measurement, which other work on the machine has disturbed least.
func best(list []sample) sample {
	return slices.MinFunc(list, func(a, b sample) int {
		switch {
		case a.ratio < b.ratio:
			return -1
		case a.ratio > b.ratio:
			return 1
		}
		return 0
	})
}

// compile builds a package's test binary.
func compile(dir, pkg string) (string, error) {
	binary := filepath.Join(dir, strings.ReplaceAll(pkg, "/", "_")+".test")
	text, err := exec.Command("go", "test", "-c", "-o", binary, "./"+pkg).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s does not build: %w\n%s", pkg, err, text)
	}
	return binary, nil
}

var (
	line   = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)
	figure = regexp.MustCompile(`([0-9.e+]+) (ns/op|allocs/op|ref/op)`)
)

// parse parses the lines of benchmarks: nanoseconds, or multiples of the reference, and allocations.
func parse(text, prefix string) map[string]sample {
	out := map[string]sample{}
	for l := range strings.Lines(text) {
		m := line.FindStringSubmatch(strings.TrimSpace(l))
		if m == nil {
			continue
		}
		var s sample
		for _, f := range figure.FindAllStringSubmatch(m[2], -1) {
			v, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				continue
			}
			if f[2] == "allocs/op" {
				s.allocs = v
			} else {
				s.ratio = v
			}
		}
		out[prefix+m[1]] = s
	}
	return out
}

// measure runs a package's benchmarks once.
func measure(binary, pkg, pattern string) (map[string]sample, error) {
	cmd := exec.Command(binary, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", "100ms",
		"-test.benchmem", "-test.cpu", "1")
	cmd.Dir = filepath.FromSlash(pkg)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", pkg, err, text)
	}
	return parse(string(text), pkg+"."), nil
}

// write writes measurements in the format that benchstat reads.
func write(name string, found map[string][]sample) error {
	var b strings.Builder
	b.WriteString("# Written by go run ./internal/benchratio -update: times in multiples of BenchmarkReference.\n")
	for _, n := range slices.Sorted(maps.Keys(found)) {
		for _, s := range found[n] {
			fmt.Fprintf(&b, "Benchmark%s 1 %.5g ref/op %.0f allocs/op\n", n, s.ratio, s.allocs)
		}
	}
	return os.WriteFile(name, []byte(b.String()), 0o666)
}

// read reads a file that write has written.
func read(name string) (map[string][]sample, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string][]sample{}
	s := bufio.NewScanner(f)
	for s.Scan() {
		for n, x := range parse(s.Text(), "") {
			out[n] = append(out[n], x)
		}
	}
	return out, s.Err()
}

package main

import (
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"farflash/internal/golden"
)

var updatePage = flag.Bool("update", false, "write the table of docs/validation/speed.md")

// TestPage checks the table of hot paths in docs/validation/speed.md against the baseline.
func TestPage(t *testing.T) {
	list, err := read("baseline.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := golden.Head("benchmark", ">of the loop, least of its measurements", ">allocations")
	for _, name := range slices.Sorted(maps.Keys(list)) {
		x := best(list[name])
		lines = append(lines, golden.Row("`"+name+"`", fmt.Sprintf("%.4g", x.ratio), fmt.Sprint(x.allocs)))
	}
	golden.Table(t, "../../docs/validation/speed.md", "hot-paths", "internal/benchratio/baseline.txt", lines,
		*updatePage)
}

// BenchmarkReference is the fixed piece of work: integer and floating-point arithmetic, unpredictable branches, and a
// working set larger than the first-level cache.
func BenchmarkReference(b *testing.B) {
	const size = 1 << 16
	table := make([]uint32, size)
	for i := range table {
		table[i] = uint32(i*2654435761) >> 7
	}
	sum, x := 0.0, uint32(1)
	for b.Loop() {
		for range 1000 {
			x = table[x%size] ^ x*1664525 + 1013904223
			if x&4 != 0 {
				sum += float64(x&1023) * 0.5
			}
		}
	}
	if sum == 1 {
		b.Log(sum) // keep the compiler from removing the loop
	}
}

// TestCompare: slower, more allocating, new and missing benchmarks are reported, and noise is not.
func TestCompare(t *testing.T) {
	want := map[string][]sample{"a": {{10, 0}, {12, 0}}}
	for _, c := range []struct {
		found map[string][]sample
		code  int
	}{
		{map[string][]sample{"a": {{13, 0}, {30, 0}}}, 0},
		{map[string][]sample{"a": {{15, 0}}}, 1},
		{map[string][]sample{"a": {{9, 3}}}, 1},
		{map[string][]sample{"a": {{9, 0}}, "b": {{1, 0}}}, 1},
		{map[string][]sample{}, 1},
	} {
		if got := compare(c.found, want, 1.4); got != c.code {
			t.Errorf("%v: %d", c.found, got)
		}
	}
}

// TestFiles: a written file reads back the same.
func TestFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.txt")
	if err := write(name, map[string][]sample{"sim.Engine/10": {{1.5, 2}, {2.25, 0}}}); err != nil {
		t.Fatal(err)
	}
	got, err := read(name)
	if err != nil || len(got["sim.Engine/10"]) != 2 || got["sim.Engine/10"][1] != (sample{2.25, 0}) {
		t.Errorf("%v, %v", got, err)
	}
	if x := parse("BenchmarkHold/100-2   \t 5000 \t 12.5 ns/op\t 3 B/op\t 1 allocs/op\n",
		"sim."); x["sim.Hold/100"] != (sample{12.5, 1}) {
		t.Error(x)
	}
}

package runs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"farflash/block"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/workload"
	"farflash/workload/runs"

	"pgregory.net/rapid"
)

const page = int64(runs.Page)

func gather(t interface{ Fatal(...any) }, records ...workload.Record) *runs.Runs {
	g := runs.New()
	for i := range records {
		if err := g.Add(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	r, err := g.Gathered()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(volume uint32, first, pages int64) workload.Record {
	return workload.Record{Op: block.Write, Volume: volume, Offset: first * page, Size: pages * page}
}

// TestRuns verifies that writes that continue another form one run, even with others in between, that pages never
// written have no number, and that volumes follow one another.
func TestRuns(t *testing.T) {
	r := gather(t,
		write(7, 100, 4), write(7, 500, 1), write(7, 104, 2), // 100 to 105, in two requests
		workload.Record{Op: block.Read, Offset: 9000 * page, Size: page},
		write(3, 100, 1), // another volume
		workload.Record{Op: block.Write, Volume: 7, Offset: 102*page + 512, Size: 1}, // part of a page
		write(7, 104, 4), // overlaps
	)
	want := &runs.Runs{Runs: [][2]int32{{0, 6}, {8, 1}, {9, 1}, {2, 1}, {4, 4}}, Pages: 10, Page: runs.Page,
		Mean: 13.0 / 5, Turns: 1.3}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("%+v, want %+v", r, want)
	}
}

// TestRunsHold verifies that the runs cover exactly the written pages, numbered in order of their addresses.
func TestRunsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []workload.Record
		written := map[int64]int{}
		sum := 0
		for range rapid.IntRange(1, 80).Draw(t, "writes") {
			first, n := rapid.Int64Range(0, 200).Draw(t, "first"), rapid.Int64Range(1, 12).Draw(t, "pages")
			records = append(records, write(0, first, n))
			for p := first; p < first+n; p++ {
				written[p]++
				sum++
			}
		}
		r := gather(t, records...)
		number := map[int64]int32{}
		for p := range int64(300) {
			if written[p] > 0 {
				number[p] = int32(len(number))
			}
		}
		times := make([]int, r.Pages)
		for _, x := range r.Runs {
			for p := x[0]; p < x[0]+x[1]; p++ {
				times[p]++
			}
		}
		for p, n := range written {
			if times[number[p]] != n {
				t.Fatalf("page %d was written %d times, and is in %d runs", p, n, times[number[p]])
			}
		}
		if int(r.Pages) != len(written) || r.Mean*float64(len(r.Runs)) < float64(sum)-1e-6 ||
			r.Turns*float64(r.Pages) > float64(sum)+1e-6 {
			t.Fatalf("%+v of %d pages, %d writes", r, len(written), sum)
		}
	})
}

// TestLargePages verifies that a trace that writes more pages than the limit gets larger pages.
func TestLargePages(t *testing.T) {
	const each = 1 << 18 // 1 GiB
	var records []workload.Record
	for i := range int64(40) {
		records = append(records, write(uint32(i%3), i*3*each, each))
	}
	r := gather(t, records...)
	if r.Page != 4*runs.Page || r.Pages != 40*each/4 || r.Runs[0] != [2]int32{0, each / 4} {
		t.Errorf("%v, %d pages, %v", r.Page, r.Pages, r.Runs[0])
	}
}

// TestLayout verifies that a short trace gets small blocks, and that one too short for a drive is refused.
func TestLayout(t *testing.T) {
	for pages, want := range map[int32][2]int{1 << 20: {8192, 128}, 6400: {64, 100}, 300: {10, 32}} {
		if b, p, err := (&runs.Runs{Pages: pages}).Layout(128); err != nil || b != want[0] || p != want[1] {
			t.Errorf("%d pages: %d blocks of %d, %v", pages, b, p, err)
		}
	}
	if _, _, err := (&runs.Runs{Pages: 224, Page: runs.Page}).Layout(128); err == nil ||
		!strings.Contains(err.Error(), "writes 224 pages of 4KiB") {
		t.Error(err)
	}
}

// TestRefused verifies the errors for no writes, too many volumes, and an invalid trace.
func TestRefused(t *testing.T) {
	if _, err := runs.New().Gathered(); err == nil || err.Error() != "the trace has no writes" {
		t.Error(err)
	}
	g := runs.New()
	var err error
	for v := uint32(0); err == nil && v < 1<<13; v++ {
		x := write(v, 1, 1)
		err = g.Add(&x)
	}
	if err == nil || !strings.Contains(err.Error(), "more than 4096 volumes") {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(file, []byte("128166372003061629,hm,0,Read,383496192,32768,413\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := runs.Open(file); err == nil || !strings.Contains(err.Error(), "t.csv: the trace has no writes") {
		t.Error(err)
	}
}

func BenchmarkAdd(b *testing.B) {
	random := rng.NewStream(1, "runs")
	g := runs.New()
	for i := range b.N {
		if i%(1<<20) == 0 {
			g = runs.New()
		}
		x := workload.Record{Op: block.Write, Offset: random.IntN(1<<30/page) * page, Size: int64(units.KiB) * 8}
		if err := g.Add(&x); err != nil {
			b.Fatal(err)
		}
	}
}

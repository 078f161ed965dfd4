package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/internal/patience"
	"farflash/scenario"
	"farflash/scenario/shape"
)

const docs = "../../docs/validation"

// TestPage: the page and the picture are those that the table yields.
func TestPage(t *testing.T) {
	kept, err := read(docs)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{pageFile: kept.text(), pictureFile: kept.picture()} {
		if got, err := os.ReadFile(filepath.Join(docs, name)); err != nil || string(got) != want {
			t.Errorf("%s is not what the table says (%v); run: go run ./internal/rivals -write", name, err)
		}
	}
	dir := t.TempDir()
	if err := kept.write(dir); err != nil {
		t.Fatal(err)
	}
	again, _ := os.ReadFile(filepath.Join(dir, tableFile))
	if was, _ := os.ReadFile(filepath.Join(docs, tableFile)); string(again) != string(was) {
		t.Error("the table that is read is written as another one")
	}
}

// TestRows reruns rows of the table: a few cells that are cheap, in the forms that the table has, or more with
// FARFLASH_LONG.
func TestRows(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	kept, err := read(docs)
	if err != nil {
		t.Fatal(err)
	}
	most, n := 2, 0
	if patience.Long(t) {
		most = 40
	}
	for _, r := range kept.compared() {
		if r.chunk != "16KiB" || r.load.outstanding > 4 || n == most || r.code.data > 0 {
			continue
		}
		n++
		ahead, err := r.ahead()
		if err != nil {
			t.Fatal(err)
		}
		forms := append(r.rivals(), r.pulls(ahead)...)
		for _, x := range []struct {
			name string
			want found
		}{{r.rival, r.theirs}, {asItIs, r.usual}} {
			k := slices.IndexFunc(forms, func(f rival) bool {
				return f.String() == x.name || x.name == asItIs && f.protocol == usual.protocol && f.says == ""
			})
			if k < 0 {
				t.Fatalf("%v: there is no form %q", r.cell, x.name)
			}
			got, err := r.run(context.Background(), forms[k], gridSeed, r.window(finally, finallyDeep))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.cells(), x.want.cells()) {
				t.Errorf("%v: %s does %v, and the table says %v", r.cell, x.name, got.cells(), x.want.cells())
			}
		}
	}
}

// TestScenarios: every form of every cell is a valid scenario, no two cells have the same name, and pull's default is
// among its forms.
func TestScenarios(t *testing.T) {
	names := map[string]bool{}
	tried := 0
	for k, x := range cells() {
		if names[x.String()] {
			t.Errorf("%v is there twice", x)
		}
		names[x.String()] = true
		if k%7 > 0 {
			continue
		}
		forms := append(x.rivals(), x.pulls(12.5)...)
		if !slices.ContainsFunc(forms, func(r rival) bool { return r.protocol == "pull" && len(r.set) == 0 }) {
			t.Errorf("%v: pull with nothing said is not tried", x)
		}
		for _, r := range forms {
			tried++
			text := x.scenario(r, 0.01)
			if _, err := scenario.Parse(shape.Source{File: "a.yaml", Text: []byte(text)}, nil); err != nil {
				t.Errorf("%v, %v: %v\n%s", x, r, err, text)
			}
		}
	}
	if len(names) != 3*3*3*3*10+20 || tried < 1000 {
		t.Errorf("%d cells, %d scenarios", len(names), tried)
	}
}

// TestProse verifies the statements of the page about cells in which pull is behind.
func TestProse(t *testing.T) {
	tab, err := read(filepath.Join("..", "..", "docs", "validation"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, r := range tab.compared() {
		v := r.verdict(r.best)
		counts[v]++
		if v != behind {
			continue
		}
		counts[r.condition]++
		rate, tail := r.counted(r.best)/r.counted(r.theirs)-1, r.best.p99/r.theirs.p99-1
		inRate := r.load.share == 0 && rate < -ofRate
		switch {
		case r.condition == equal && r.code.data == 0:
			if r.rival != "replicast-proxy, groups of 45" || r.chunk == "128KiB" {
				t.Errorf("three replicas, equal disks: behind in %v, %s", r.cell, r.rival)
			}
		case r.condition == slow:
			if !inRate || tail > -0.4 || tail < -0.6 {
				t.Errorf("a tenth slow: %v: %+.3f, %+.3f", r.cell, rate, tail)
			}
		case r.condition == loss && inRate:
			counts["lost, rate"]++
			if tail < 0 {
				counts["lost, shorter"]++
			}
			if r.code.data > 0 && r.load.outstanding >= 8 {
				counts["lost, deep"]++
			}
		case r.condition == ssds && tail > 1.15:
			t.Errorf("SSDs: %v: a tail of %+.3f", r.cell, tail)
		}
	}
	for what, want := range map[string]int{fails: 0, slow: 2, loss: 26, "lost, rate": 17, "lost, shorter": 16,
		ssds: 9} {
		if counts[what] != want {
			t.Errorf("%s: %d, and the page says %d", what, counts[what], want)
		}
	}
	if 2*counts["lost, deep"] < counts["lost, rate"] {
		t.Errorf("most of the cells with losses are others: %v", counts)
	}
	if 3*counts[ahead] < 2*len(tab.rows) {
		t.Errorf("ahead in %d of %d", counts[ahead], len(tab.rows))
	}
}

// TestVerdict: verdicts follow the rate in closed loops and the tail in open ones, unless the load is not sustained.
func TestVerdict(t *testing.T) {
	closed, open := load{outstanding: 4}, load{share: 90}
	for _, x := range []struct {
		load         load
		ours, theirs found
		want         string
	}{
		{closed, found{100, 1, 10}, found{100, 1, 10}, even},
		{closed, found{101, 1, 10}, found{100, 1, 10}, ahead},
		{closed, found{100, 1, 9}, found{100, 1, 10}, ahead},
		{closed, found{101, 1, 11}, found{100, 1, 10}, behind},
		{closed, found{99, 1, 9}, found{100, 1, 10}, behind},
		{closed, found{96_000, 1, 10}, found{97_000, 1, 10}, even}, // a rate above that of the disks does not count
		{open, found{99, 1, 10}, found{100, 1, 10}, even},
		{open, found{99, 1, 9}, found{100, 1, 10}, ahead},
		{open, found{84_000, 1, 9}, found{86_000, 1, 10}, fails},  // of 86,400 arriving
		{open, found{80_000, 1, 9}, found{83_000, 1, 10}, behind}, // the rival does not sustain the load either
		{open, found{103, 1, 11}, found{100, 1, 10}, ahead},       // the rival does not sustain the load
	} {
		r := row{cell: cell{chunk: "128KiB", hardware: hardware{400, 10}, condition: equal, load: x.load},
			theirs: x.theirs}
		got := r.verdict(x.ours)
		if x.want == ahead && x.load == open && x.ours.rate > x.theirs.rate {
			x.want = behind // because its tail is longer
		}
		if got != x.want {
			t.Errorf("%v, %+v against %+v: %s, not %s", x.load, x.ours, x.theirs, got, x.want)
		}
	}
	if !strings.Contains(cells()[0].String(), "16KiB") {
		t.Error(cells()[0])
	}
}

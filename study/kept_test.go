package study

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"farflash/experiment/trial"
	"farflash/result"
)

// TestNotKept verifies that a cached trial that cannot be stored in the study's directory counts as failed, because the
// study resumes from the directory; and that the message says so.
func TestNotKept(t *testing.T) {
	place := t.TempDir()
	p := sweepOf(t, 2, "ssd.timing.read_latency=40us,80us")
	c, err := OpenCache(filepath.Join(place, "cache"), "p")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{}
	run := func(folder *Folder) (out []Outcome, warnings []string) {
		r := Runner{Version: "v", Cache: c, Folder: folder, Execute: f.execute,
			Warn: func(err error) { warnings = append(warnings, err.Error()) }}
		return r.Run(t.Context(), p.Trials()), warnings
	}
	if out, w := run(nil); count(out, Done) != 4 || len(w) > 0 {
		t.Fatalf("%v, %v", out, w)
	}
	folder, err := OpenFolder(filepath.Join(place, "sweep"), p, self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder.Path(), trials), nil, 0o666); err != nil {
		// a file in place of the trials' directory
		t.Fatal(err)
	}
	out, w := run(folder)
	if count(out, Failed) != 4 || f.runs.Load() != 4 ||
		!strings.HasPrefix(out[0].Err.Error(), "cannot store the result: ") {
		t.Errorf("%d failed after %d runs: %v", count(out, Failed), f.runs.Load(), out[0].Err)
	}
	for _, text := range w {
		if strings.Contains(text, "cannot keep") || strings.Contains(text, "computed again") {
			t.Errorf("it is said that %s", text)
		}
	}
	// A cache that cannot be written does no harm, and no recomputation is announced.
	if err := os.Remove(filepath.Join(folder.Path(), trials)); err != nil {
		t.Fatal(err)
	}
	full := filepath.Join(place, "full")
	if c, err = OpenCache(full, "p"); err != nil {
		t.Fatal(err)
	}
	for i := range 256 {
		if err := os.WriteFile(filepath.Join(full, "p", fmt.Sprintf("%02x", i)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	out, w = run(folder)
	if count(out, Done) != 4 || len(w) == 0 ||
		!strings.HasSuffix(w[len(w)-1], "; the result is not cached for other studies") {
		t.Errorf("%d done, %v", count(out, Done), w)
	}
}

// TestInTheWay verifies that an unreadable entry in a trial's place is not taken for a result written by another
// process.
func TestInTheWay(t *testing.T) {
	p := sweepOf(t, 1, "ssd.timing.read_latency=40us,80us")
	for what, put := range map[string]func(place string) error{
		"a file": func(place string) error { return os.WriteFile(place, nil, 0o666) },
		"a folder as a result": func(place string) error {
			return os.MkdirAll(filepath.Join(place, result.ResultFile),
				0o777)
		},
	} {
		dir := filepath.Join(t.TempDir(), "sweep")
		folder, err := OpenFolder(dir, p, self)
		if err != nil {
			t.Fatal(err)
		}
		place := folder.trial(p.Trials()[0])
		if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := put(place); err != nil {
			t.Fatal(err)
		}
		f := &fake{}
		out := (&Runner{Version: "v", Folder: folder, Execute: f.execute}).Run(t.Context(), p.Trials())
		if out[0].State != Failed || out[1].State != Done || !errors.Is(out[0].Err, result.ErrExists) {
			t.Errorf("%s: %v, %v", what, out[0].State, out[0].Err)
		}
	}
}

// TestDesignsOfAKilledStudy verifies that completed trials are read from a study whose manifest has not been updated
// since its start.
func TestDesignsOfAKilledStudy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sweep")
	p := sweepOf(t, 3, "ssd.timing.read_latency=40us,80us")
	folder, err := OpenFolder(dir, p, self)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{fails: func(x trial.Trial) bool { return x.Digest == p.Points[1].Digest && x.Seed == 2 }}
	(&Runner{Version: "v", Folder: folder, Execute: f.execute}).Run(t.Context(), p.Trials())
	designs, err := ReadDesigns(dir)
	if err != nil || len(designs) != 2 || len(designs[0].Results) != 3 || len(designs[1].Results) != 2 {
		t.Fatalf("%+v, %v", designs, err)
	}
	for i, want := range []uint64{1, 3} {
		if r := designs[1].Results[i]; r.Seed != want || r.Digest != p.Points[1].Digest {
			t.Errorf("result %d is of seed %d", i, r.Seed)
		}
	}
	// A trial that is recorded as done but missing is reported.
	if err := folder.Record((&Runner{Version: "v", Folder: folder, Execute: f.execute}).Run(t.Context(),
		p.Trials())); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(folder.trial(p.Trials()[0])); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDesigns(dir); err == nil ||
		!strings.Contains(err.Error(), "is done but its directory is missing; repeat the study's command") {
		t.Errorf("%v", err)
	}
}

// TestDamagedManifests verifies that a manifest that is not JSON, or not a manifest, is reported with its line.
func TestDamagedManifests(t *testing.T) {
	dir := t.TempDir()
	p := sweepOf(t, 1, "ssd.timing.read_latency=40us")
	s := Search{Name: "n", Digest: "d", Seed: 1, Reps: 1}
	for file, open := range map[string]func(string) error{
		sweepFile:  func(path string) error { _, err := OpenFolder(path, p, self); return err },
		searchFile: func(path string) error { _, err := OpenSearch(path, s, self); return err },
		CurvesFile: func(path string) error { _, err := ReadCurves(path); return err },
	} {
		for text, want := range map[string]string{
			"{\n\"schema\": \"far":          ":2:14: the file ends in the middle",
			"{\n \"schema\": 3}":            ":2:12: schema cannot be a number",
			"{}{":                           ":1:",
			`{"schema": "farflash/else/1"}`: "farflash/else/1",
		} {
			place := filepath.Join(dir, file+".d")
			if err := os.MkdirAll(place, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(place, file), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := open(place); err == nil ||
				!strings.Contains(err.Error(), filepath.Join(place, file)) &&
					!strings.Contains(err.Error(), place+" holds") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %s", text, err, want)
			}
		}
	}
}

// TestSearchesBegunAtOnce verifies that two programs can start the same search at once.
func TestSearchesBegunAtOnce(t *testing.T) {
	s := Search{Name: "n", Digest: "d", Seed: 1, Reps: 1}
	for range 4 {
		dir := filepath.Join(t.TempDir(), "search")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := OpenSearch(dir, s, self); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for what, other := range map[string]Search{"its --reps is 1, not 2": {Digest: "d", Seed: 1, Reps: 2},
			"its --seed is 1, not 3":    {Digest: "d", Seed: 3, Reps: 1},
			"digest d there and e here": {Digest: "e", Seed: 1, Reps: 1}} {
			if _, err := OpenSearch(dir, other, self); !errors.Is(err, ErrOther) ||
				!strings.Contains(err.Error(), what) {
				t.Errorf("%v; want %s", err, what)
			}
		}
	}
}

// TestManifestsDiffer verifies that the message that a folder's study cannot be resumed names the setting that differs,
// for each setting that determines a study.
func TestManifestsDiffer(t *testing.T) {
	sweep := func(change func(*manifest)) *manifest {
		m := &manifest{Schema: "farflash/sweep/1", Seed: 1, Reps: 3, Program: "a",
			Axes: []Axis{{Path: "x", Values: []string{"1", "2"}}, {Path: "y", Values: []string{"3"}}},
			Points: []manifestPoint{{Label: "one", Digest: "0123456789abcdef"},
				{Label: "two", Digest: "fedcba9876543210"}}}
		if change != nil {
			change(m)
		}
		return m
	}
	for want, change := range map[string]func(*manifest){
		"": nil,
		"its schema is farflash/sweep/2, not farflash/sweep/1": func(m *manifest) { m.Schema = "farflash/sweep/2" },
		"its --seed is 2, not 1":                               func(m *manifest) { m.Seed = 2 },
		"its seeds are apart, not common":                      func(m *manifest) { m.Apart = true },
		"it was computed by another build of the program, b, not a, and their results may differ": func(m *manifest) { m.Program = "b" },
		"its --reps is 4, not 3":   func(m *manifest) { m.Reps = 4 },
		"it varies x, not x, y":    func(m *manifest) { m.Axes = m.Axes[:1] },
		"it varies x, z, not x, y": func(m *manifest) { m.Axes[1].Path = "z" },
		"its values of x are 1, 2, 3, 4, 5, 6, not 1, 2": func(m *manifest) {
			m.Axes[0].Values = strings.Split("123456", "")
		},
		"its values of x are 1, 2, 3, ..., 7 (7), not 1, 2": func(m *manifest) {
			m.Axes[0].Values = strings.Split("1234567", "")
		},
		"it has 1 arms, not 2": func(m *manifest) { m.Points = m.Points[:1] },
		"the scenario of two has digest 0123456789ab there and fedcba987654 here": func(m *manifest) { m.Points[1].Digest = "0123456789ab" },
		"the scenario of one has digest 0123456789ab there and 0123456789ab here": func(m *manifest) { m.Points[0].Label = "three" },
	} {
		if got := sweep(nil).differs(sweep(change)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	search := func(change func(*searchManifest)) *searchManifest {
		m := &searchManifest{Schema: "a", Seed: 1, Reps: 3, Program: "p", Digest: "0123456789abcdef"}
		if change != nil {
			change(m)
		}
		return m
	}
	for want, change := range map[string]func(*searchManifest){
		"":                       nil,
		"its schema is b, not a": func(m *searchManifest) { m.Schema = "b" },
		"its --seed is 2, not 1": func(m *searchManifest) { m.Seed = 2 },
		"its --reps is 4, not 3": func(m *searchManifest) { m.Reps = 4 },
		"it was computed by another build of the program, q, not p, and their results may differ": func(m *searchManifest) { m.Program = "q" },
		"its inputs have digest f there and 0123456789ab here":                                    func(m *searchManifest) { m.Digest = "f" },
	} {
		if got := search(nil).differs(search(change)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestSweepInWords verifies that an axis is described by its values, a long list by the first ones and the last, and
// that a metric has knees only along a single axis of increasing numbers.
func TestSweepInWords(t *testing.T) {
	c := &Curves{Axes: []Axis{{Path: "a", Values: []string{"1", "2"}},
		{Path: "b", Values: []string{"1", "2", "3", "4", "5", "6", "7"}}}}
	if got := c.Describe(); got != "a over 1, 2; b over 1, 2, 3, ..., 7 (7)" {
		t.Error(got)
	}
	bend := func(x float64) float64 { return max(0, x-5) }
	for name, c := range map[string]*Curves{
		"falling":  curve(false, 0, []float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, bend),
		"twice":    curve(false, 0, []float64{1, 2, 3, 4, 5, 5, 6, 7, 8}, bend),
		"two axes": {Axes: make([]Axis, 2), Points: make([]PointSummary, 20)},
		"words": {Axes: []Axis{{Values: []string{"a", "b", "c", "d", "e", "f", "g"}}},
			Points: make([]PointSummary, 7)},
		"a point too": {Axes: []Axis{{Values: []string{"1", "2", "3", "4", "5", "6"}}},
			Points: make([]PointSummary, 7)},
	} {
		if k := c.Knees([]string{"m"}); k != nil {
			t.Errorf("%s: %v", name, k)
		}
	}
	if k := curve(false, 0, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, bend).Knees([]string{"m"}); len(k) != 1 ||
		k[0].At != "5" {
		t.Errorf("rising: %v", k)
	}
}

package study

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/result"
)

// shardsOf runs a sweep in n shards, each in its own directory.
func shardsOf(t *testing.T, n int, plan func() *Plan, fails func(trial.Trial) bool) []string {
	t.Helper()
	dir := t.TempDir()
	var out []string
	for i := range n {
		p := plan()
		p.Shard = Shard{i + 1, n}
		out = append(out, filepath.Join(dir, fmt.Sprint(i+1)))
		runIn(t, out[i], p, fails)
	}
	return out
}

// runIn runs a plan in a directory.
func runIn(t *testing.T, dir string, p *Plan, fails func(trial.Trial) bool) (out []Outcome, runs int64) {
	t.Helper()
	folder, err := OpenFolder(dir, p, self)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{fails: fails}
	out = (&Runner{Version: "v", Folder: folder, Execute: f.execute}).Run(t.Context(), p.Trials())
	if err := folder.Record(out); err != nil {
		t.Fatal(err)
	}
	return out, f.runs.Load()
}

// contents reads all files in a directory tree.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMerge verifies that merged shards are identical to the whole sweep, byte for byte, for any number and order of
// shards, including failures and points with equal digests.
func TestMerge(t *testing.T) {
	plan := func() *Plan {
		return sweepOf(t, 3, "ssd.timing.read_latency=40us,80us,80000ns", "ssd.over_provisioning=7%,9%")
	}
	fails := func(x trial.Trial) bool { return x.Seed == 3 && x.Digest == plan().Points[1].Digest }
	whole := filepath.Join(t.TempDir(), "whole")
	out, runs := runIn(t, whole, plan(), fails)
	if runs != 12 { // 80us and 80000ns are equal
		t.Errorf("%d trials are run", runs)
	}
	curves, err := Respond(plan(), out, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	want := contents(t, whole)
	for _, n := range []int{1, 2, 5, 30} {
		shards := shardsOf(t, n, plan, fails)
		slices.Reverse(shards)
		into := filepath.Join(t.TempDir(), "new", "all")
		given := into
		switch n {
		case 1: // an empty directory, with a trailing slash
			if err := os.MkdirAll(into, 0o777); err != nil {
				t.Fatal(err)
			}
			given += string(filepath.Separator)
		case 2: // a link to an empty directory
			given = filepath.Join(t.TempDir(), "link")
			if err := errors.Join(os.MkdirAll(into, 0o777), os.Symlink(into, given)); err != nil {
				t.Skip("no symbolic links: ", err)
			}
		}
		folder, p, merged, err := Merge(given, shards)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(folder.Path(), sweepFile)); err != nil {
			t.Error(err)
		}
		if s, err := os.Stat(into); err != nil || s.Mode().Perm() != 0o755 {
			t.Errorf("%v, %v", s, err)
		}
		if got := contents(t, into); !maps.Equal(got, want) {
			t.Errorf("%d shards merged have %d files, the whole has %d, or their bytes differ", n, len(got), len(want))
		}
		if got, err := Respond(p, merged, 0.95); err != nil || !reflect.DeepEqual(got.Document(), curves.Document()) {
			t.Errorf("%d shards merged have other curves, %v", n, err)
		}
		// The merged directory can be resumed; only the failed trial runs again.
		if again, runs := runIn(t, into, plan(), nil); count(again, Done) != 18 || runs != 1 {
			t.Errorf("taken up: %d done, %d run", count(again, Done), runs)
		}
	}
}

func TestMergeRefusals(t *testing.T) {
	plan := func() *Plan { return sweepOf(t, 3, "ssd.timing.read_latency=40us,80us,90us") }
	shards := shardsOf(t, 4, plan, nil)
	halves := shardsOf(t, 2, plan, nil)
	others := shardsOf(t, 4, func() *Plan { return sweepOf(t, 4, "ssd.timing.read_latency=40us,80us,90us") }, nil)
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	runIn(t, whole, plan(), nil)
	arms := filepath.Join(dir, "arms")
	comparison, err := NewComparison([]Arm{{Source: source()}, {Source: source()}}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(arms, comparison, self); err != nil {
		t.Fatal(err)
	}
	second := plan()
	second.Shard = Shard{2, 4}
	elsewhere, begun, edited := filepath.Join(dir, "elsewhere"), filepath.Join(dir, "begun"),
		filepath.Join(dir, "edited")
	if _, err := OpenFolder(elsewhere, second, Program{"v", "another"}); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(begun, second, self); err != nil {
		t.Fatal(err)
	}
	runIn(t, edited, second, nil)
	text, err := os.ReadFile(filepath.Join(edited, sweepFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(edited, sweepFile),
			[]byte(strings.ReplaceAll(string(text), "=40us", "=41us")), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(dir, "all")
	// Manifests forged with a correct plan digest.
	for want, change := range map[string]func(*manifest){
		`point read_latency=40us has the invalid digest "../../elsewhere"`: func(m *manifest) { m.Points[0].Digest = "../../elsewhere" },
		"9 points with 0 replicates are not a study": func(m *manifest) {
			m.Reps, m.Points = 0, slices.Repeat(m.Points, 3)
		},
		"3 points with -1 replicates are not a study":     func(m *manifest) { m.Reps = -1 },
		"0 points with 3 replicates are not a study":      func(m *manifest) { m.Points = nil },
		"3 points with 400000 replicates are not a study": func(m *manifest) { m.Reps = 400_000 },
		"point read_latency=80us has 2 values for 1 axes": func(m *manifest) {
			m.Points[1].Values = []string{"80us", "7%"}
		},
		"does not match its digest": func(m *manifest) {
			m.Points[0].Label, m.Digest = "other", "x"
		},
		`invalid shard "1/2000000"`: func(m *manifest) { m.Shard = "1/2000000" },
		`invalid shard "2/1"`:       func(m *manifest) { m.Shard = "2/1" },
	} {
		m, err := readManifest(shards[0])
		if err != nil {
			t.Fatal(err)
		}
		m.Shard = "1/1"
		if change(m); m.Digest != "x" {
			p := &Plan{Kind: Sweep, Seed: m.Seed, Reps: m.Reps}
			for _, x := range m.Points {
				p.Points = append(p.Points, Point{Label: x.Label, Values: x.Values, Digest: x.Digest})
			}
			m.Digest = p.Digest()
		}
		odd := &Folder{path: filepath.Join(t.TempDir(), "odd")}
		if err := odd.WriteJSON(sweepFile, m); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := Merge(into, []string{odd.path}); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), odd.path) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	for _, c := range []struct {
		name   string
		shards []string
		want   string
	}{
		{"missing", []string{shards[0], shards[1], shards[3]}, "shard 3/4 is missing; name its folder as well"},
		{"missing many", shards[1:2], "shards 1/4, 3/4, 4/4 are missing"},
		{"overlapping", append(slices.Clone(shards), shards[1]), "are both shard 2/4; leave one of them out"},
		{"cut otherwise", []string{shards[0], halves[1]}, "is shard 2/2, but " + shards[0] + " is shard 1/4"},
		{"foreign", []string{shards[0], others[1], shards[2], shards[3]},
			others[1] + " is of a different sweep than " + shards[0] + ": its --reps is 4, not 3"},
		{"another program's", []string{shards[0], elsewhere, shards[2], shards[3]},
			"computed by another build of the program, another, not self"},
		{"unfinished", []string{shards[0], begun, shards[2], shards[3]},
			begun + ", shard 2/4, is incomplete: 2 of its trials have not run"},
		{"changed", []string{shards[0], edited, shards[2], shards[3]}, edited + " is of a different sweep"},
		{"whole", []string{whole}, "is a whole sweep"},
		{"comparison", []string{arms}, "is a comparison"},
		{"nothing", []string{dir}, "is not the folder of a sweep: it has no sweep.json"},
	} {
		if _, _, _, err := Merge(into, c.shards); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.name, err, c.want)
		}
		if _, err := os.Stat(into); err == nil {
			t.Fatalf("%s: something was written", c.name)
		}
	}
	// A failed copy leaves no files behind.
	odd := filepath.Join(halves[1], trials)
	entries, err := os.ReadDir(odd)
	if err != nil {
		t.Fatal(err)
	}
	cited := filepath.Join(odd, entries[len(entries)-1].Name(), result.CitationsFile)
	sums := filepath.Join(filepath.Dir(cited), sumsFile)
	lines, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(lines)) {
		if !strings.HasSuffix(line, result.CitationsFile+"\n") {
			kept = append(kept, line)
		}
	}
	if err := errors.Join(os.RemoveAll(cited), os.Mkdir(cited, 0o777),
		os.WriteFile(sums, []byte(strings.Join(kept, "")), 0o666)); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	if _, _, _, err := Merge(into, halves); err == nil {
		t.Error("a folder is copied as a file")
	}
	if after := contents(t, dir); !maps.Equal(before, after) {
		t.Errorf("%d files are there that were not", len(after)-len(before))
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".farflash-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if _, _, _, err := Merge(whole, shards); !errors.Is(err, ErrOther) {
		t.Errorf("merged into a full folder: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(shards[2], trials, "*", result.ResultFile))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	untouched, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	// An invalid result, and a result with an altered number.
	for _, damage := range []string{"{", strings.Replace(string(untouched), `"value": 2`, `"value": 3`, 1)} {
		if damage == string(untouched) {
			t.Fatalf("nothing to change in %s", untouched)
		}
		if err := os.WriteFile(files[0], []byte(damage), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := Merge(into, shards); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("merged a damaged trial: %v", err)
		}
	}
}

package study

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/patience"
	"farflash/result"
)

// TestAlteredTrial verifies that a trial is not reused if a number in any of its files was altered, or if its checksums
// are missing.
func TestAlteredTrial(t *testing.T) {
	plan := func() *Plan { return sweepOf(t, 1, "ssd.timing.read_latency=40us,80us") }
	dir := filepath.Join(t.TempDir(), "sweep")
	runIn(t, dir, plan(), nil)
	trials, err := filepath.Glob(filepath.Join(dir, trials, "*"))
	if err != nil || len(trials) != 2 {
		t.Fatalf("%v, %v", trials, err)
	}
	for _, alter := range []func(place string) error{
		func(place string) error {
			return replaceIn(filepath.Join(place, result.ResultFile), `"value": 2`, `"value": 3`)
		},
		func(place string) error { return replaceIn(filepath.Join(place, result.ScenarioFile), "us", "ns") },
		func(place string) error { return os.Remove(filepath.Join(place, sumsFile)) },
		func(place string) error { return os.WriteFile(filepath.Join(place, sumsFile), nil, 0o666) },
		func(place string) error {
			return os.WriteFile(filepath.Join(place, sumsFile), []byte("x  ../../sweep.json\n"), 0o666)
		},
		func(place string) error { return os.Remove(filepath.Join(place, result.ResultFile)) },
	} {
		if err := alter(trials[0]); err != nil {
			t.Fatal(err)
		}
		if out, runs := runIn(t, dir, plan(), nil); runs != 1 || count(out, Done) != 2 {
			t.Errorf("%d trials are run again, %d are done", runs, count(out, Done))
		}
		if _, runs := runIn(t, dir, plan(), nil); runs != 0 {
			t.Errorf("%d trials are run a third time", runs)
		}
	}
}

func replaceIn(file, old, now string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.Replace(string(text), old, now, 1)), 0o666)
}

// TestSharedCache verifies that concurrent studies can share a cache, and even a directory.
func TestSharedCache(t *testing.T) {
	place := t.TempDir()
	dir := filepath.Join(place, "one")
	var all sync.WaitGroup
	for i := range 4 {
		c, err := OpenCache(filepath.Join(place, "cache"), "p")
		if err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(place, "own"+string(rune('a'+i)))
		if i < 2 {
			own = dir
		}
		plan := sweepOf(t, 8, "ssd.timing.read_latency=40us,80us,90us")
		all.Go(func() {
			folder, err := OpenFolder(own, plan, self)
			if err != nil {
				t.Error(err)
				return
			}
			f := &fake{}
			out := (&Runner{Version: "v", Cache: c, Folder: folder, Execute: f.execute,
				Warn: func(err error) { t.Error(err) }}).Run(t.Context(), plan.Trials())
			if count(out, Done) != 24 {
				t.Errorf("%d of 24 are done: %v", count(out, Done), out)
			}
			if err := folder.Record(out); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, pattern := range []string{"*", "*/*", "*/*/*", "*/*/*/*"} {
		if left, err := filepath.Glob(filepath.Join(place, filepath.Dir(pattern), ".farflash-*")); err != nil ||
			len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	}
}

// TestTrialThatComes verifies that a trial that another process writes concurrently is either absent or complete, and
// is never taken for a damaged one, which would be removed.
func TestTrialThatComes(t *testing.T) {
	plan := sweepOf(t, 40, "ssd.timing.read_latency=40us,80us")
	folder, err := OpenFolder(filepath.Join(t.TempDir(), "sweep"), plan, self)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{}
	for _, x := range plan.Trials() {
		r, err := f.execute(t.Context(), x, "v", nil)
		if err != nil {
			t.Fatal(err)
		}
		var written atomic.Bool
		var both sync.WaitGroup
		both.Go(func() {
			defer written.Store(true)
			if err := folder.keep(x, r); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			for {
				last := written.Load()
				r, err := folder.load(x)
				if err != nil || last && r == nil {
					t.Errorf("%v, %v", r, err)
				}
				if r != nil || last {
					return
				}
			}
		})
		both.Wait()
	}
}

// FuzzEntry reads cache entries and trials from arbitrary bytes: an accepted entry is a result of the trial.
func FuzzEntry(f *testing.F) {
	f.Add([]byte(entryHead + "\n{}"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer patience.Limit()()
		x := trial.Trial{Digest: "00", Seed: 1}
		if body, err := checked(text); err == nil {
			if r, err := decode(body, x); err == nil && (r.Digest != x.Digest || r.Seed != x.Seed) {
				t.Errorf("%q is taken for another trial", text)
			}
		}
		if r, err := decode(text, x); err == nil && (r.Digest != x.Digest || r.Seed != x.Seed) {
			t.Errorf("%q is taken for another trial", text)
		}
	})
}

// FuzzManifest reads manifests of studies and searches from arbitrary bytes: merging them is rejected or yields a plan.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"schema": "farflash/sweep/1", "shard": "1/1", "reps": 1, "points": [{"label": "a", "digest": "00"}]}`))
	f.Add([]byte(`{"schema": "farflash/sweep/1", "shard": "1/99999999999", "reps": -1}`))
	f.Add([]byte(`{"schema": "farflash/search/1"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer patience.Limit()()
		dir := t.TempDir()
		for _, name := range []string{sweepFile, searchFile} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, p, out, err := Merge(filepath.Join(t.TempDir(), "all"), []string{dir}); err == nil &&
			len(out) != len(p.Points)*p.Reps {
			t.Errorf("%q gives %d outcomes", text, len(out))
		}
		if _, err := OpenSearch(dir, Search{Name: "a", Digest: "00", Seed: 1, Reps: 1}, self); err == nil {
			t.Logf("%q is the search", text)
		}
	})
}

package result

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func write(t *testing.T, d *Directory) {
	t.Helper()
	timing := StartTiming().Timing(1000)
	if err := d.WriteRun(Run{Result: sample(), Scenario: "name: sample\n", Timing: &timing, Report: "<!doctype html>",
		Citations: "@article{}"}); err != nil {
		t.Fatal(err)
	}
}

func TestDirectory(t *testing.T) {
	at := filepath.Join(t.TempDir(), "runs", "one")
	d, err := Create(at)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	write(t, d)
	f, err := d.Open(RequestsFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(at); err == nil {
		t.Error("the directory is there before Commit")
	}
	path, err := d.Commit()
	if err != nil || path != at {
		t.Fatal(path, err)
	}
	for _, name := range []string{ScenarioFile, ResultFile, timingFile, ReportFile, CitationsFile, RequestsFile} {
		if _, err := os.Stat(filepath.Join(at, name)); err != nil {
			t.Error(err)
		}
	}
	for _, from := range []string{at, filepath.Join(at, ResultFile)} {
		run, err := Load(from)
		if err != nil {
			t.Fatal(err)
		}
		if run.Path != at || run.Result.Digest != "sha256:0123" || run.Scenario != "name: sample\n" ||
			run.Timing == nil || run.Timing.Machine.CPUs == 0 {
			t.Errorf("%+v", run)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(at), ".farflash-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	// An existing run is never overwritten.
	before, err := os.ReadFile(filepath.Join(at, ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(at); !errors.Is(err, ErrExists) {
		t.Errorf("error is %v", err)
	}
	for _, want := range []string{at + "-2", at + "-3"} {
		d, err := CreateNumbered(at)
		if err != nil {
			t.Fatal(err)
		}
		write(t, d)
		if path, err := d.Commit(); err != nil || path != want {
			t.Errorf("committed to %s (%v), want %s", path, err, want)
		}
		if err := d.Discard(); err != nil {
			t.Error(err)
		}
	}
	after, err := os.ReadFile(filepath.Join(at, ResultFile))
	if err != nil || string(before) != string(after) {
		t.Errorf("the first run changed (%v)", err)
	}
}

func TestDirectoryAppearsMeanwhile(t *testing.T) {
	at := filepath.Join(t.TempDir(), "run")
	d, err := Create(at)
	if err != nil {
		t.Fatal(err)
	}
	write(t, d)
	if err := os.Mkdir(at, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "mine"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Commit(); !errors.Is(err, ErrExists) {
		t.Errorf("error is %v", err)
	}
	if err := d.Discard(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(at))
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v %v", entries, err)
	}
}

func TestEmptyDirectoryIsTaken(t *testing.T) {
	at := t.TempDir()
	d, err := Create(filepath.Join(at, "empty"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(at, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, d)
	if _, err := d.Commit(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(at, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(filepath.Join(at, "file")); !errors.Is(err, ErrExists) {
		t.Errorf("a file in the way: %v", err)
	}
}

func TestDirectoriesInParallel(t *testing.T) {
	at := filepath.Join(t.TempDir(), "run")
	var wg sync.WaitGroup
	paths := make([]string, 8)
	for i := range paths {
		wg.Go(func() {
			d, err := CreateNumbered(at)
			if err != nil {
				t.Error(err)
				return
			}
			write(t, d)
			if paths[i], err = d.Commit(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, p := range paths {
		if seen[p] {
			t.Errorf("%s was committed twice", p)
		}
		seen[p] = true
	}
}

// TestVanished: committing a directory that was removed in the meantime fails and reports it.
func TestVanished(t *testing.T) {
	place := filepath.Join(t.TempDir(), "run")
	d, err := Create(place)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(d.Path("")); err != nil {
		t.Fatal(err)
	}
	if at, err := d.Commit(); err == nil || at != "" || !strings.HasPrefix(err.Error(), "run directory: ") {
		t.Errorf("committed at %q, %v", at, err)
	}
	if _, err := os.Stat(place); err == nil {
		t.Error("something is there")
	}
}

// TestWriteFile: a file is replaced as a whole or not at all, folders are created, and failures leave no files behind.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a", "b", "file")
	for _, text := range []string{"one", "another", ""} {
		if err := WriteFile(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if s, err := os.Stat(file); err != nil || s.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", s, err)
	}
	for what, place := range map[string]string{"below a file": filepath.Join(file, "c", "d"),
		"beside nothing": filepath.Join(file, "c"), "no name": filepath.Join(dir, "x\x00y"),
		"a folder": filepath.Join(dir, "a")} {
		if err := WriteFile(place, []byte("text")); err == nil {
			t.Errorf("%s: it is written", what)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".farflash-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "nothing")); err == nil {
		t.Error("a missing directory was loaded")
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "it has no result.json") {
		t.Errorf("error is %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ResultFile), []byte("{\n  \"schema\": 3\n}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil ||
		!strings.Contains(err.Error(), "result.json:2:13: schema cannot be a number") {
		t.Errorf("error is %v", err)
	}
	if _, err := Load(filepath.Join(dir, ResultFile, "x")); err == nil {
		t.Error("a path through a file was loaded")
	}
	whole, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{ResultFile: string(whole), timingFile: "{\n\"wall_s\": true}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "timing.json:2:14: wall_s cannot be a bool") {
		t.Errorf("error is %v", err)
	}
}

// TestLoadByName: a run is loaded by the path of its directory, whatever its name, or by that of a file in it.
func TestLoadByName(t *testing.T) {
	place := filepath.Join(t.TempDir(), "out.json")
	d, err := Create(place)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	if err := d.WriteRun(Run{Result: sample()}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{place, filepath.Join(place, ResultFile)} {
		if r, err := Load(name); err != nil || r.Path != place {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

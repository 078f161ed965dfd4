// Command mutate checks whether a package's tests detect faults in it. It changes one operator, constant, condition,
// statement or result at a time, compiles the package with the change (go test -overlay; no file of the tree is
// modified), runs the package's own tests, and lists the changes that the tests do not detect.
//
//	go run ./internal/mutate -sample 40 ./model/fabric/cc ./numeric/stats
//	go run ./internal/mutate -sample 200 -seed 2 -state sim.jsonl ./sim
//
// The sample is drawn with the seed. With -state every outcome is appended to a file, and a later run takes the
// outcomes it finds there and continues after them. With -json the outcomes are written as JSON. -least is the
// percentage of mutants that each package's tests must kill, or the command fails. -part K/N takes every Nth package,
// starting with the Kth, to spread a full run over several nights. -short runs the tests in short mode, -tags with
// build tags.
//
// A mutant is killed if a test fails, or does not end within -grace plus four times the processor time, or ten times
// the elapsed time, that the tests take on the unchanged package. A mutant that does not compile does not count. Not
// every survivor is a gap: x <= y in place of x < y, where the two are never equal, is the same program. explained.txt
// lists the survivors that have been reviewed, with the reason; they are excluded from the sample.
//
// It leaves out combinations of changes, and, on purpose, the tests of other packages.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"farflash/numeric/rng"
)

//go:embed explained.txt
var explained string

// settings are the command's flags.
type settings struct {
	sample int
	least  int // in per cent; 0 is no minimum
	part   string
	seed   uint64
	state  string
	json   bool
	short  bool
	tags   string
	grace  time.Duration
}

func main() {
	var s settings
	flag.IntVar(&s.sample, "sample", 40, "number of `mutants` of each package to try; 0 is all")
	flag.IntVar(&s.least, "least", 0, "percentage of `mutants` that a package's tests must kill")
	flag.StringVar(&s.part, "part", "", "subset of the named packages: `K/N` is every Nth, starting with the Kth")
	flag.Uint64Var(&s.seed, "seed", 1, "random seed `number` of the sample")
	flag.StringVar(&s.state, "state", "", "a `file` that results are appended to and reused from")
	flag.BoolVar(&s.json, "json", false, "print the results as JSON")
	flag.BoolVar(&s.short, "short", false, "run the tests in short mode")
	flag.StringVar(&s.tags, "tags", "", "build `tags`, such as invariants")
	flag.DurationVar(&s.grace, "grace", 5*time.Second,
		"`time` that a mutant's tests may take beyond a multiple of the unchanged tests' time")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "mutate: name a package, such as ./model/fabric/cc")
		os.Exit(2)
	}
	if err := run(os.Stdout, s, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// source is a package of the module.
type source struct {
	ImportPath, Dir           string
	GoFiles                   []string
	TestGoFiles, XTestGoFiles []string
	Module                    struct{ Dir string }
}

// tested reports whether a package has tests of its own.
func (p *source) tested() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// answer is the outcome of a mutant.
type answer struct {
	mutant
	Package string
	ID      string
	Fate    fate
}

// fate is killed, survived or uncompiled.
type fate string

const (
	killed     fate = "killed"
	survived   fate = "survived"
	uncompiled fate = "does not compile"
)

// summary is a package's score.
type summary struct {
	Package  string
	Mutants  int // all of the package's, including those not tried
	Killed   int
	Survived []answer
}

func run(w io.Writer, s settings, patterns []string) error {
	packages, err := list(patterns)
	if err != nil {
		return err
	}
	if packages, err = part(packages, s.part); err != nil {
		return err
	}
	known, err := load(s.state)
	if err != nil {
		return err
	}
	reasons, err := parse(explained)
	if err != nil {
		return err
	}
	var all []summary
	for _, p := range packages {
		if !p.tested() {
			if !s.json {
				fmt.Fprintf(w, "%s: no tests\n", p.ImportPath)
			}
			continue
		}
		t := &trial{settings: s, source: p, known: known, reasons: reasons, out: w}
		got, err := t.run()
		if err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		all = append(all, got)
	}
	if s.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(all); err != nil {
			return err
		}
		return below(all, s.least)
	}
	for _, x := range all {
		n := x.Killed + len(x.Survived)
		fmt.Fprintf(w, "%s: %d of %d killed (%.0f %%), of %d mutants\n", x.Package, x.Killed, n,
			100*float64(x.Killed)/float64(max(1, n)), x.Mutants)
	}
	return below(all, s.least)
}

// below returns an error that lists the packages whose tests kill less than the required percentage, if any.
func below(all []summary, least int) error {
	var few []string
	for _, x := range all {
		if n := x.Killed + len(x.Survived); 100*x.Killed < least*n {
			few = append(few, fmt.Sprintf("%s (%d of %d)", x.Package, x.Killed, n))
		}
	}
	if len(few) == 0 {
		return nil
	}
	return fmt.Errorf("fewer than %d %% of the mutants were killed in %s", least, strings.Join(few, ", "))
}

// part selects every Nth package, starting with the Kth, for "K/N"; "" selects all.
func part(all []source, of string) ([]source, error) {
	if of == "" {
		return all, nil
	}
	var k, n int
	if _, err := fmt.Sscanf(of, "%d/%d", &k, &n); err != nil || k < 1 || n < k {
		return nil, fmt.Errorf("-part %s is not K/N with K from 1 to N", of)
	}
	var out []source
	for i := k - 1; i < len(all); i += n {
		out = append(out, all[i])
	}
	return out, nil
}

// list returns the packages that match the patterns.
func list(patterns []string) ([]source, error) {
	c := exec.Command("go",
		append([]string{"list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Module"}, patterns...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []source
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p source
		switch err := d.Decode(&p); err {
		case nil:
			all = append(all, p)
		case io.EOF:
			return all, nil
		default:
			return nil, err
		}
	}
}

// load reads the outcomes of earlier runs.
func load(state string) (map[string]fate, error) {
	known := map[string]fate{}
	if state == "" {
		return known, nil
	}
	text, err := os.ReadFile(state)
	if errors.Is(err, os.ErrNotExist) {
		return known, nil
	}
	for line := range strings.Lines(string(text)) {
		var a answer
		if json.Unmarshal([]byte(line), &a) == nil { // the last line may be truncated
			known[a.ID] = a.Fate
		}
	}
	return known, err
}

// trial is the run of one package.
type trial struct {
	settings
	source
	known   map[string]fate
	reasons reasons
	out     io.Writer
	folder  string        // of the compiled files
	patient time.Duration // limit on the tests' elapsed time
	seconds int           // limit on the tests' processor time
	clean   string        // removed after each test, because a failing test may create it; "" if it exists
}

// run tries the mutants of the package's sample.
func (t *trial) run() (summary, error) {
	sum := summary{Package: t.ImportPath}
	var all []mutant
	for _, f := range t.GoFiles {
		path := filepath.Join(t.Dir, f)
		name, err := filepath.Rel(t.Module.Dir, path)
		if err != nil {
			return sum, err
		}
		list, err := find(name, path)
		if err != nil {
			return sum, err
		}
		all = append(all, list...)
	}
	sum.Mutants = len(all)
	shuffle(all, t.seed, t.ImportPath)
	folder, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return sum, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	t.folder = folder
	t.clean = leavings(t.Dir)
	if err := t.unchanged(); err != nil {
		return sum, err
	}
	for _, m := range all {
		if t.sample > 0 && sum.Killed+len(sum.Survived) == t.sample {
			break
		}
		if t.reasons.covers(m) {
			continue
		}
		a := answer{mutant: m, Package: t.ImportPath, ID: m.id()}
		var ok bool
		if a.Fate, ok = t.known[a.ID]; !ok {
			if a.Fate, err = t.try(m); err != nil {
				return sum, err
			}
			if err := t.keep(a); err != nil {
				return sum, err
			}
		}
		switch a.Fate {
		case killed:
			sum.Killed++
		case survived:
			sum.Survived = append(sum.Survived, a)
			if !t.json {
				fmt.Fprintf(t.out, "survived: %s:%d: %s -> %s\n\t%s\n", m.File, m.Line, m.Was, m.Is, m.Within)
			}
		}
	}
	return sum, nil
}

// shuffle permutes mutants by a seed.
func shuffle(all []mutant, seed uint64, name string) {
	s := rng.NewStream(seed, "mutate/"+name)
	for i := len(all) - 1; i > 0; i-- {
		j := int(s.IntN(int64(i + 1)))
		all[i], all[j] = all[j], all[i]
	}
}

// keep appends an outcome to the state.
func (t *trial) keep(a answer) error {
	if t.state == "" {
		return nil
	}
	f, err := os.OpenFile(t.state, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	line, err := json.Marshal(a)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// unchanged runs the tests of the unchanged package, which must pass, and derives the time limits from their duration.
func (t *trial) unchanged() error {
	if out, err := t.compile(nil); err != nil {
		return fmt.Errorf("the tests do not compile: %w\n%s", err, out)
	}
	t.patient, t.seconds = 10*time.Minute, 600
	began := time.Now()
	out, took, passed := t.test()
	if !passed {
		return fmt.Errorf("the tests fail without a mutation:\n%s", out)
	}
	t.patient = 10*time.Since(began) + t.grace
	t.seconds = int((4*took + t.grace + time.Second - 1) / time.Second)
	return nil
}

// leavings returns the folder in which rapid stores failing inputs, or the part of its path that does not exist yet, or
// "" if it exists.
func leavings(dir string) string {
	for _, name := range []string{"testdata", "testdata/rapid"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return path
		}
	}
	return ""
}

// try compiles and tests one mutant.
func (t *trial) try(m mutant) (fate, error) {
	src, err := os.ReadFile(m.path)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(t.folder, "changed.go")
	text := append(append(append([]byte(nil), src[:m.from]...), m.Is...), src[m.to:]...)
	if err := os.WriteFile(changed, text, 0o644); err != nil {
		return "", err
	}
	if _, err := t.compile(map[string]string{m.path: changed}); err != nil {
		return uncompiled, nil //nolint:nilerr // that it does not compile is what was asked
	}
	if _, _, passed := t.test(); passed {
		return survived, nil
	}
	return killed, nil
}

// compile builds the package's test binary, with some source files replaced.
func (t *trial) compile(replaced map[string]string) ([]byte, error) {
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(t.folder, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		return nil, err
	}
	return exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-w", "-tags", t.tags, "-overlay", file, "-o",
		filepath.Join(t.folder, "test"), t.ImportPath).CombinedOutput()
}

// test runs the binary in its package's folder and returns the processor time it used. A mutant may allocate memory or
// run without end, so the shell limits both. The limit is on processor time, so that other load on the machine fails no
// test.
func (t *trial) test() (out []byte, took time.Duration, passed bool) {
	ctx, cancel := context.WithTimeout(context.Background(), t.patient)
	defer cancel()
	args := "-test.failfast"
	if t.short {
		args += " -test.short"
	}
	bounds := fmt.Sprintf("ulimit -v 8000000; ulimit -t %d; exec \"$0\" ", t.seconds)
	c := exec.CommandContext(ctx, "sh", "-c", bounds+args, filepath.Join(t.folder, "test"))
	c.Dir = t.Dir
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if t.clean != "" {
		err = errors.Join(err, os.RemoveAll(t.clean))
	}
	if c.ProcessState != nil {
		took = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	return out, took, err == nil
}

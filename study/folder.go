package study

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"farflash/experiment/trial"
	"farflash/result"
)

// The files of a study's directory next to its trials.
const (
	sweepFile   = "sweep.json"   // the manifest of a sweep
	compareFile = "compare.json" // the manifest of a comparison
	CurvesFile  = "curves.json"  // results of a sweep
	EffectsFile = "effects.json" // results of a comparison
	trials      = "trials"
)

// Folder is a study on disk: the manifest, and in trials a run directory for each trial that is done. A run directory
// appears atomically, so after an interruption or a crash the study resumes from the directories that exist.
type Folder struct {
	path    string
	plan    *Plan
	program Program
}

// Program identifies the program that computes trials.
type Program struct {
	Version string // as in result.json
	Name    string // differs between programs whose results might differ, such as builds with the same version
}

// ErrOther is wrapped by OpenFolder's error if the directory has other contents.
var ErrOther = errors.New("choose another folder or remove it")

// manifest is sweep.json or compare.json.
type manifest struct {
	Schema   string          `json:"schema"` // farflash/sweep/1 or farflash/compare/1
	Name     string          `json:"name"`
	Digest   string          `json:"digest"` // of the plan
	Version  string          `json:"version"`
	Program  string          `json:"program"`
	Seed     uint64          `json:"seed"`
	Reps     int             `json:"reps"`
	Apart    bool            `json:"seeds_apart,omitempty"`
	Shard    string          `json:"shard,omitempty"`
	Axes     []Axis          `json:"axes,omitempty"`
	Scenario string          `json:"scenario"` // resolved, of the first point
	Points   []manifestPoint `json:"points"`
}

type manifestPoint struct {
	Label  string          `json:"label"`
	Values []string        `json:"values,omitempty"`
	Digest string          `json:"digest"`
	Trials []manifestTrial `json:"trials"`
}

type manifestTrial struct {
	Seed  uint64 `json:"seed"`
	State State  `json:"state"`
	Error string `json:"error,omitempty"`
}

// manifestFile is the file name of a kind's manifest.
func manifestFile(k Kind) string {
	if k == Comparison {
		return compareFile
	}
	return sweepFile
}

func schemaOf(k Kind) string { return "farflash/" + string(k) + "/1" }

// OpenFolder creates the directory of a plan, or resumes an existing one. A directory with other contents is rejected
// with the difference, and so is one started by another program, because a study must not mix the results of two.
func OpenFolder(path string, p *Plan, program Program) (*Folder, error) {
	f := &Folder{path, p, program}
	m, err := readManifest(path)
	if errors.Is(err, fs.ErrNotExist) {
		failed := begin(path, "study")
		if failed == nil {
			return f, f.Record(nil)
		}
		// Another process may have started the same study concurrently.
		if m, err = readManifest(path); errors.Is(err, fs.ErrNotExist) {
			return nil, failed
		}
	}
	if err != nil {
		return nil, err
	}
	if why := f.differs(m); why != "" {
		return nil, fmt.Errorf("%s holds another study: %s; %w", path, why, ErrOther)
	}
	return f, nil
}

// begin creates the directory of a new study or search, and rejects one that holds other files.
func begin(path, noun string) error {
	entries, err := os.ReadDir(path)
	// Ignore temporary files: two programs may start the same study at once.
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".farflash-") })
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty and holds no %s; %w", path, noun, ErrOther)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.MkdirAll(path, 0o777)
}

// Path returns the path of the directory.
func (f *Folder) Path() string { return f.path }

// readManifest reads the manifest of either kind. Its error is fs.ErrNotExist if there is none.
func readManifest(path string) (*manifest, error) {
	for _, k := range []Kind{Sweep, Comparison} {
		file := filepath.Join(path, manifestFile(k))
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m := &manifest{}
		if err := result.DecodeFile(file, text, m); err != nil {
			return nil, err
		}
		if m.Schema != schemaOf(k) {
			return nil, fmt.Errorf("%s: schema %q is not %q, which this program reads", file, m.Schema, schemaOf(k))
		}
		for _, x := range m.Points {
			if !isDigest(x.Digest) {
				return nil, fmt.Errorf(
					"%s: point %s has the invalid digest %q; the file was changed after the study "+
						"wrote it", file, x.Label, x.Digest)
			}
		}
		return m, nil
	}
	return nil, fmt.Errorf("%s has no %s: %w", path, sweepFile, fs.ErrNotExist)
}

// isDigest reports whether a text is a valid digest. It becomes part of the name of a trial's directory, which must
// stay inside the study's directory whatever a manifest contains.
func isDigest(text string) bool {
	return text != "" && strings.Trim(text, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// differs describes how a manifest differs from the directory's plan, or returns "".
func (f *Folder) differs(m *manifest) string {
	mine := f.manifest(nil)
	if mine.Shard != m.Shard {
		return fmt.Sprintf("it is %s, not %s", orAll(m.Shard), orAll(mine.Shard))
	}
	return mine.differs(m)
}

// seedsNamed returns the value of --seeds for the arms' seeds.
func seedsNamed(apart bool) string {
	if apart {
		return SeedsApart
	}
	return SeedsCommon
}

func orAll(shard string) string {
	if shard == "" {
		return "no shard"
	}
	return "shard " + shard
}

// differs describes how two manifests' studies differ, apart from their shards, or returns "".
func (m *manifest) differs(there *manifest) string {
	switch {
	case m.Schema != there.Schema:
		return fmt.Sprintf("its schema is %s, not %s", there.Schema, m.Schema)
	case m.Seed != there.Seed:
		return fmt.Sprintf("its --seed is %d, not %d", there.Seed, m.Seed)
	case m.Apart != there.Apart:
		return fmt.Sprintf("its seeds are %s, not %s", seedsNamed(there.Apart), seedsNamed(m.Apart))
	case m.Program != there.Program:
		return fmt.Sprintf("it was computed by another build of the program, %s, not %s, and their results may differ", there.Program, m.Program)
	case m.Reps != there.Reps:
		return fmt.Sprintf("its --reps is %d, not %d", there.Reps, m.Reps)
	case len(m.Axes) != len(there.Axes):
		return fmt.Sprintf("it varies %s, not %s", paths(there.Axes), paths(m.Axes))
	}
	for i, a := range m.Axes {
		b := there.Axes[i]
		switch {
		case a.Path != b.Path:
			return fmt.Sprintf("it varies %s, not %s", paths(there.Axes), paths(m.Axes))
		case !slices.Equal(a.Values, b.Values):
			return fmt.Sprintf("its values of %s are %s, not %s", a.Path, few(b.Values), few(a.Values))
		}
	}
	if len(m.Points) != len(there.Points) {
		return fmt.Sprintf("it has %d arms, not %d", len(there.Points), len(m.Points))
	}
	for i, x := range m.Points {
		if y := there.Points[i]; x.Digest != y.Digest || x.Label != y.Label {
			return fmt.Sprintf("the scenario of %s has digest %s there and %s here", x.Label, short(y.Digest),
				short(x.Digest))
		}
	}
	return ""
}

func paths(axes []Axis) string {
	var out []string
	for _, a := range axes {
		out = append(out, a.Path)
	}
	return strings.Join(out, ", ")
}

// few formats a list without its middle.
func few(values []string) string {
	if len(values) > 6 {
		return fmt.Sprintf("%s, ..., %s (%d)", strings.Join(values[:3], ", "), values[len(values)-1], len(values))
	}
	return strings.Join(values, ", ")
}

func short(digest string) string { return digest[:min(12, len(digest))] }

// manifest describes the plan with the state of its trials; without outcomes all are pending.
func (f *Folder) manifest(outcomes []Outcome) *manifest {
	p := f.plan
	m := &manifest{Schema: schemaOf(p.Kind), Name: p.Name, Digest: p.Digest(), Version: f.program.Version,
		Program: f.program.Name, Seed: p.Seed, Reps: p.Reps, Apart: p.Apart,
		Shard: p.Shard.String(), Axes: p.Axes}
	if s := p.Points[0].Scenario; s != nil { // a merged plan has none
		m.Scenario = s.Resolved()
	}
	for _, x := range p.Points {
		m.Points = append(m.Points, manifestPoint{Label: x.Label, Values: x.Values, Digest: x.Digest})
	}
	for k, s := range p.slots() {
		t := manifestTrial{Seed: p.seedOf(s.point, s.rep), State: Pending}
		if outcomes != nil {
			t.State = outcomes[k].State
			if err := outcomes[k].Err; err != nil {
				t.Error = err.Error()
			}
		}
		m.Points[s.point].Trials = append(m.Points[s.point].Trials, t)
	}
	return m
}

// Record writes the manifest with the state of the trials. Completed trials are found by their own directories, so the
// manifest may be stale after a crash.
func (f *Folder) Record(outcomes []Outcome) error {
	return f.WriteJSON(manifestFile(f.plan.Kind), f.manifest(outcomes))
}

// WriteJSON writes or replaces a JSON file in the directory.
func (f *Folder) WriteJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return f.Write(name, append(text, '\n'))
}

// Write writes or replaces a file in the directory.
func (f *Folder) Write(name string, text []byte) error {
	return result.WriteFile(filepath.Join(f.path, name), text)
}

// Unfinished returns patterns of the temporary files and directories that this process writes there.
func (f *Folder) Unfinished() []string {
	return []string{result.Unfinished(f.path), result.Unfinished(filepath.Join(f.path, trials))}
}

// trial returns the run directory of a trial.
func (f *Folder) trial(t trial.Trial) string { return filepath.Join(f.path, trials, t.Name()) }

// load reads a trial's result, or returns nil if there is none. A damaged one is removed and reported.
func (f *Folder) load(t trial.Trial) (*result.Result, error) {
	r, err := readTrial(f.trial(t), t)
	var damaged *damagedError
	if errors.As(err, &damaged) {
		return nil, errors.Join(err, os.RemoveAll(f.trial(t)))
	}
	return r, err
}

// keep writes a trial's run directory. One that another process wrote in the meantime is equivalent.
func (f *Folder) keep(t trial.Trial, r *result.Result) error {
	d, err := result.Create(f.trial(t))
	if err == nil {
		defer d.Discard()
		if err = d.WriteRun(result.Run{Result: r, Scenario: t.Scenario.Resolved(),
			Citations: t.Scenario.Citations()}); err == nil {
			err = seal(d)
		}
		if err == nil {
			_, err = d.Commit()
		}
	}
	if errors.Is(err, result.ErrExists) {
		there, why := readTrial(f.trial(t), t)
		if there != nil {
			return nil
		}
		return errors.Join(err, why)
	}
	return err
}

// Scenario returns the resolved scenario of the study's first point.
func (f *Folder) Scenario() (string, error) {
	m, err := readManifest(f.path)
	if err != nil {
		return "", err
	}
	return m.Scenario, nil
}

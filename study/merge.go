package study

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"farflash/result"
)

// Merge puts the shards of one study into a new folder and returns its plan and what became of every trial. A folder of another
// study is refused. Trials that no shard has are pending; the merged folder can be taken up to run them.
func Merge(into string, shards []string, version string) (*Folder, *Plan, []Outcome, error) {
	var first *manifest
	var from []*manifest
	for _, dir := range shards {
		m, err := readManifest(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil, fmt.Errorf("%s is no folder of a sweep: it has no %s", dir, SweepFile)
		}
		if err != nil {
			return nil, nil, nil, err
		}
		if m.Schema != schemaOf(Sweep) {
			return nil, nil, nil, fmt.Errorf("%s is a comparison; only sweeps have shards", dir)
		}
		if first == nil {
			first = m
		} else if why := first.differs(m); why != "" {
			return nil, nil, nil, fmt.Errorf("%s is of another study than %s: %s", dir, shards[0], why)
		}
		from = append(from, m)
	}
	p, err := first.plan()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", shards[0], err)
	}
	f := &Folder{into, p}
	if entries, err := os.ReadDir(into); err == nil && len(entries) > 0 {
		return nil, nil, nil, fmt.Errorf("%s %w", into, result.ErrExists)
	}
	if err := os.MkdirAll(into, 0o777); err != nil {
		return nil, nil, nil, err
	}
	outcomes := make([]Outcome, 0, len(p.Points)*p.Reps)
	for _, s := range p.slots() {
		o := Outcome{Trial: Trial{Digest: p.Points[s.point].Digest, Seed: p.Seed + uint64(s.rep)}, State: Pending}
		for i, dir := range shards {
			if err := f.take(&o, dir, from[i], s.point); err != nil {
				return nil, nil, nil, err
			}
		}
		outcomes = append(outcomes, o)
	}
	m := *first
	m.Shard, m.Version = "", version
	for i := range m.Points {
		m.Points[i].Trials = nil
	}
	for k, s := range p.slots() {
		t := manifestTrial{Seed: outcomes[k].Seed, State: outcomes[k].State}
		if err := outcomes[k].Err; err != nil {
			t.Error = err.Error()
		}
		m.Points[s.point].Trials = append(m.Points[s.point].Trials, t)
	}
	return f, p, outcomes, f.WriteJSON(manifestFile(p.Kind), &m)
}

// plan makes a plan of a manifest that can be summarised, but not run: its points have no scenarios.
func (m *manifest) plan() (*Plan, error) {
	p := &Plan{Kind: Sweep, Name: m.Name, Axes: m.Axes, Seed: m.Seed, Reps: m.Reps}
	if m.Reps < 1 || len(m.Points) == 0 || len(m.Points) > mostTrials/m.Reps {
		return nil, fmt.Errorf("%d points with %d replicates are no study", len(m.Points), m.Reps)
	}
	for _, x := range m.Points {
		if len(x.Values) != len(m.Axes) {
			return nil, fmt.Errorf("point %s has %d values for %d axes", x.Label, len(x.Values), len(m.Axes))
		}
		p.Points = append(p.Points, Point{Label: x.Label, Values: x.Values, Digest: x.Digest})
	}
	return p, nil
}

// take copies a trial from a shard, if it has it and no other had.
func (f *Folder) take(o *Outcome, dir string, m *manifest, point int) error {
	if o.State == Done {
		return nil
	}
	place := filepath.Join(dir, trials, o.Name())
	text, err := os.ReadFile(filepath.Join(place, result.ResultFile))
	if errors.Is(err, fs.ErrNotExist) {
		for _, t := range m.Points[point].Trials {
			if t.Seed == o.Seed && t.State == Failed {
				o.State, o.Err = Failed, errors.New(t.Error)
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	r, err := decode(text, o.Trial)
	if err != nil {
		return fmt.Errorf("%s is damaged: %w; remove it and run the shard again", place, err)
	}
	resolved, err := os.ReadFile(filepath.Join(place, result.ScenarioFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d, err := result.Create(f.trial(o.Trial))
	if errors.Is(err, result.ErrExists) { // two points with one digest
		o.State, o.Result, o.Err, o.Reused = Done, slim(r), nil, true
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Discard()
	if err := d.WriteRun(result.Run{Result: r, Scenario: string(resolved)}); err != nil {
		return err
	}
	if _, err := d.Commit(); err != nil {
		return err
	}
	o.State, o.Result, o.Err, o.Reused = Done, slim(r), nil, true
	return nil
}

// Scenario returns the resolved scenario of the plan's first point.
func (f *Folder) Scenario() (string, error) {
	m, err := readManifest(f.path)
	if err != nil {
		return "", err
	}
	return m.Scenario, nil
}

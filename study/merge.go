package study

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"farflash/experiment/trial"
	"farflash/result"
)

// Merge combines all shards of a sweep in a new directory, which is then identical, byte for byte, to that of the sweep
// run whole. It returns the whole plan and the outcome of every trial; its points have no scenarios, so it can be
// summarised but not run.
//
// While it is being written it has a temporary name next to its final one, which result.Unfinished matches.
//
// Shards that do not make up the whole sweep are rejected before anything is written: directories of different sweeps
// or programs, a duplicate shard, a missing one, and an interrupted one.
func Merge(into string, shards []string) (*Folder, *Plan, []Outcome, error) {
	m, order, err := readShards(shards)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := m.plan()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", shards[0], err)
	}
	into = filepath.Clean(into)
	if real, err := filepath.EvalSymlinks(into); err == nil {
		into = real
	}
	if entries, err := os.ReadDir(into); err == nil && len(entries) > 0 {
		return nil, nil, nil, fmt.Errorf("%s is not empty; %w", into, ErrOther)
	}
	outcomes := make([]Outcome, len(p.Points)*p.Reps)
	unfinished := make([]int, len(order))
	for k, s := range p.slots() {
		outcomes[k] = Outcome{Trial: trial.Trial{Digest: p.Points[s.point].Digest, Seed: p.seedOf(s.point, s.rep)},
			State: Pending}
		shard := k % len(order)
		if err := order[shard].read(&outcomes[k], s.point); err != nil {
			return nil, nil, nil, err
		}
		if outcomes[k].State == Pending {
			unfinished[shard]++
		}
	}
	for i, n := range unfinished {
		if n > 0 {
			return nil, nil, nil,
				fmt.Errorf("%s, shard %d/%d, is incomplete: %d of its trials have not run; repeat its command", order[i].dir, i+1, len(order), n)
		}
	}
	f := &Folder{into, p, Program{m.Version, m.Program}}
	return f, p, outcomes, f.assemble(m, outcomes, order)
}

// assemble creates the merged directory atomically, like run directories.
func (f *Folder) assemble(first *manifest, outcomes []Outcome, order []shardFolder) (err error) {
	into := f.path
	if err := os.MkdirAll(filepath.Dir(into), 0o777); err != nil {
		return err
	}
	if f.path, err = os.MkdirTemp(filepath.Dir(into), result.Temporary(filepath.Base(into))); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(f.path))
		}
		f.path = into
	}()
	if err := os.Chmod(f.path, 0o755); err != nil {
		return err
	}
	for k := range outcomes {
		if outcomes[k].State != Done {
			continue
		}
		if err := f.copy(outcomes[k].Trial, order[k%len(order)].dir); err != nil {
			return err
		}
	}
	whole := f.manifest(outcomes)
	whole.Scenario = first.Scenario
	if err := f.WriteJSON(manifestFile(f.plan.Kind), whole); err != nil {
		return err
	}
	if err := os.Remove(into); err != nil && !errors.Is(err, fs.ErrNotExist) {
		// at most an empty directory exists there
		return fmt.Errorf("%s cannot be replaced by the merged folder (%w); name a new one", into, err)
	}
	return os.Rename(f.path, into)
}

// shardFolder is the directory of a shard.
type shardFolder struct {
	dir string
	*manifest
}

// readShards reads the manifests of a sweep's shards and orders them. Each shard must be present exactly once.
func readShards(dirs []string) (*manifest, []shardFolder, error) {
	var first *manifest
	var order []shardFolder
	for _, dir := range dirs {
		m, err := readManifest(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, fmt.Errorf("%s is not the folder of a sweep: it has no %s", dir, sweepFile)
		case err != nil:
			return nil, nil, err
		case m.Schema != schemaOf(Sweep):
			return nil, nil, fmt.Errorf("%s is a comparison; only sweeps have shards", dir)
		case m.Shard == "":
			return nil, nil, fmt.Errorf("%s is a whole sweep, not a shard; there is nothing to merge", dir)
		}
		part, err := ParseShard(m.Shard)
		if err != nil || part.Of > MostTrials {
			return nil, nil, fmt.Errorf("%s: %s: invalid shard %q", dir, sweepFile, m.Shard)
		}
		if first == nil {
			first, order = m, make([]shardFolder, part.Of)
		}
		if why := first.differs(m); why != "" {
			return nil, nil, fmt.Errorf("%s is of a different sweep than %s: %s", dir, dirs[0], why)
		}
		if part.Of != len(order) {
			return nil, nil, fmt.Errorf("%s is shard %s, but %s is shard %s: the sweep is divided in different ways", dir,
				m.Shard, dirs[0], first.Shard)
		}
		place := &order[part.Index-1]
		if place.manifest != nil {
			return nil, nil, fmt.Errorf("%s and %s are both shard %s; leave one of them out", place.dir, dir, m.Shard)
		}
		*place = shardFolder{dir, m}
	}
	var missing []string
	for i, s := range order {
		if s.manifest == nil {
			missing = append(missing, Shard{i + 1, len(order)}.String())
		}
	}
	switch len(missing) {
	case 0:
		return first, order, nil
	case 1:
		return nil, nil, fmt.Errorf("shard %s is missing; name its folder as well", missing[0])
	}
	return nil, nil, fmt.Errorf("shards %s are missing; name their folders as well", few(missing))
}

// plan derives a plan from a manifest.
func (m *manifest) plan() (*Plan, error) {
	p := &Plan{Kind: Sweep, Name: m.Name, Axes: m.Axes, Seed: m.Seed, Reps: m.Reps}
	if m.Reps < 1 || len(m.Points) == 0 || len(m.Points) > MostTrials/m.Reps {
		return nil, fmt.Errorf("%d points with %d replicates are not a study", len(m.Points), m.Reps)
	}
	for _, x := range m.Points {
		if len(x.Values) != len(m.Axes) {
			return nil, fmt.Errorf("point %s has %d values for %d axes", x.Label, len(x.Values), len(m.Axes))
		}
		p.Points = append(p.Points, Point{Label: x.Label, Values: x.Values, Digest: x.Digest})
	}
	if p.Digest() != m.Digest {
		return nil, fmt.Errorf("%s does not match its digest; it was changed after the sweep wrote it", sweepFile)
	}
	return p, nil
}

// read looks up the outcome of a trial of a point.
func (s shardFolder) read(o *Outcome, point int) error {
	place := filepath.Join(s.dir, trials, o.Name())
	r, err := readTrial(place, o.Trial)
	var damaged *damagedError
	switch {
	case errors.As(err, &damaged):
		return fmt.Errorf("%w; remove %s and run the shard again", err, place)
	case err != nil:
		return err
	case r == nil:
		for _, t := range s.Points[point].Trials {
			if t.Seed == o.Seed && t.State == Failed {
				o.State, o.Err = Failed, errors.New(t.Error)
			}
		}
		return nil
	}
	o.State, o.Result, o.Reused = Done, slim(r), true
	return nil
}

// copy copies a trial's run directory from a shard's directory, file by file.
func (f *Folder) copy(t trial.Trial, from string) error {
	d, err := result.Create(f.trial(t))
	if errors.Is(err, result.ErrExists) { // two points with the same digest
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Discard()
	for _, name := range []string{result.ResultFile, result.ScenarioFile, result.CitationsFile, sumsFile} {
		text, err := os.ReadFile(filepath.Join(from, trials, t.Name(), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := d.Write(name, text); err != nil {
			return err
		}
	}
	_, err = d.Commit()
	return err
}

package study

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"farflash/experiment/trial"
	"farflash/numeric/stats"
	"farflash/result"
)

// Results of studies, read back from their directories, for charts and other uses.

// readFound reads a document from a directory.
func readFound(path, name, schema string, into any, is func() string) error {
	file := filepath.Join(path, name)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := result.DecodeFile(file, text, into); err != nil {
		return err
	}
	if got := is(); got != schema {
		return fmt.Errorf("%s: schema %q is not %q, which this program reads", file, got, schema)
	}
	return nil
}

// ReadCurves reads the results of a sweep from its directory. The error is fs.ErrNotExist if there are none yet.
func ReadCurves(path string) (*Curves, error) {
	var d CurvesDocument
	if err := readFound(path, CurvesFile, "farflash/curves/1", &d, func() string { return d.Schema }); err != nil {
		return nil, err
	}
	c, err := d.Curves()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(path, CurvesFile), err)
	}
	return c, nil
}

// Curves converts a document to curves. Points must be those of the grid, in order.
func (d *CurvesDocument) Curves() (*Curves, error) {
	c := &Curves{Name: d.Name, Axes: d.Axes, Level: d.Level, Seed: d.Seed, Reps: d.Reps}
	if len(d.Axes) == 0 || len(d.Points) == 0 {
		return nil, errors.New("no axes or no points")
	}
	grid := 1
	for _, a := range d.Axes {
		if grid *= len(a.Values); grid == 0 || grid > MostTrials {
			return nil, fmt.Errorf("its axes do not span a grid of 1 to %d points", MostTrials)
		}
	}
	if grid != len(d.Points) {
		return nil, fmt.Errorf("%d points, and its axes span %d", len(d.Points), grid)
	}
	for i, p := range d.Points {
		x := PointSummary{Digest: p.Digest, Done: p.Done, Pending: p.Pending, Failed: p.Failed,
			Metrics: EstimatesOf(p.Metrics, d.Level), Transient: p.Transient}
		rest := i
		at := make([]int, len(d.Axes))
		for k := len(d.Axes) - 1; k >= 0; k-- {
			at[k] = rest % len(d.Axes[k].Values)
			rest /= len(d.Axes[k].Values)
		}
		var names []string
		for k, a := range d.Axes {
			v := a.Values[at[k]]
			if p.Values[a.Path] != v {
				return nil, fmt.Errorf("point %d has %s = %q, not %q", i, a.Path, p.Values[a.Path], v)
			}
			x.Values = append(x.Values, v)
			names = append(names, a.Path+"="+v)
		}
		x.Label = strings.Join(names, ", ")
		c.Points = append(c.Points, x)
	}
	return c, nil
}

// EstimatesOf returns the estimates of a document, sorted by name, with the program's help texts.
func EstimatesOf(metrics map[string]IntervalDocument, level float64) []Estimate {
	words := trial.Vocabulary().Metrics
	var out []Estimate
	for name, m := range metrics {
		e := Estimate{Name: name, Unit: m.Unit, Help: name,
			Interval: stats.Interval{Mean: m.Mean, Level: level, N: m.N, Batch: 1}}
		if m.Half != nil {
			e.Half = *m.Half
		}
		if d, ok := words.Lookup(name); ok {
			e.Help = d.Help
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Estimate) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// ReadEffects reads the results of a comparison from its directory. The error is fs.ErrNotExist if there are none yet.
func ReadEffects(path string) (*Effects, error) {
	var d EffectsDocument
	if err := readFound(path, EffectsFile, effectsSchema, &d, func() string { return d.Schema }); err != nil {
		return nil, err
	}
	x := &Effects{Test: Test{Level: d.Level, Power: d.Power, Relevant: d.Relevant, Looks: d.Looks}, Name: d.Name,
		Seeds: d.Seeds, Apart: d.Apart}
	for _, a := range d.Arms {
		x.Arms = append(x.Arms, ArmSummary{Label: a.Label, Digest: a.Digest, Done: a.Done, Failed: a.Failed})
	}
	for _, p := range d.Pairs {
		arm := slices.IndexFunc(d.Arms, func(a ArmDocument) bool { return a.Label == p.B })
		if arm < 0 {
			return nil, fmt.Errorf("%s: no arm %q", filepath.Join(path, EffectsFile), p.B)
		}
		y := Pair{Arm: arm, Family: p.Family, Explored: p.Explored, OnlyA: p.OnlyA, OnlyB: p.OnlyB, Remarks: p.Remarks}
		for _, name := range slices.Concat(p.Primary, p.Exploratory) {
			m, ok := p.Metrics[name]
			if !ok {
				return nil, fmt.Errorf("%s: metric %q has a rank but no effect", filepath.Join(path, EffectsFile),
					name)
			}
			e := Effect{Name: name, Unit: m.Unit, Help: name, Aliases: m.Aliases, Primary: m.Primary,
				RangeA: m.RangeA, RangeB: m.RangeB, Adjusted: m.Adjusted, Wilcoxon: m.Wilcoxon, Verdict: m.Verdict,
				Doubtful: m.Doubtful, Within: m.Within, More: m.More}
			e.A, e.B, e.P, e.Deviation, e.Degrees, e.Tests, e.Ratio = m.A, m.B, m.P, m.Deviation, m.Degrees, 2,
				m.Scale == ratioScale
			e.Effect = stats.Interval{Mean: m.Mean, Half: m.Half, Level: m.Level, N: len(d.Seeds), Batch: 1}
			y.Effects = append(y.Effects, e)
		}
		x.Pairs = append(x.Pairs, y)
	}
	return x, nil
}

// Design is a point of a study, with the results of its completed trials.
type Design struct {
	Label   string
	Results []*result.Result
}

// ReadDesigns reads the results of a study's trials from its directory, in order of points and seeds. The error is
// fs.ErrNotExist if the directory is not a study.
func ReadDesigns(path string) ([]Design, error) {
	if s, err := os.Stat(path); err == nil && !s.IsDir() {
		return nil, fmt.Errorf("%s is a file: %w", path, fs.ErrNotExist)
	}
	m, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	var out []Design
	for _, p := range m.Points {
		d := Design{Label: p.Label}
		for _, t := range p.Trials {
			one := trial.Trial{Digest: p.Digest, Seed: t.Seed}
			r, err := readTrial(filepath.Join(path, trials, one.Name()), one)
			if err != nil {
				return nil, err
			}
			switch {
			case r != nil:
				// Includes trials of a study that crashed or is running, whose manifest is stale.
				d.Results = append(d.Results, r)
			case t.State == Done:
				return nil, fmt.Errorf(
					"%s: trial %s is done but its directory is missing; repeat the study's command", path, one.Name())
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// Is reports whether a path is the directory of a study or of a search, with or without results.
func Is(path string) bool {
	return slices.ContainsFunc([]string{sweepFile, compareFile, searchFile}, func(name string) bool {
		_, err := os.Stat(filepath.Join(path, name))
		return err == nil
	})
}

// Found reports whether an error of reading is not that the file is missing.
func Found(err error) bool { return !errors.Is(err, fs.ErrNotExist) }

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"farflash/cli/verb"
	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/numeric/stats"
	"farflash/result"
	"farflash/scenario"
)

// level is the confidence level of the intervals over replicates.
const level = 0.95

// replicate runs a scenario with several seeds, each into its own subdirectory, and prints the intervals of the
// metrics.
func (p *program) replicate(ctx context.Context, s *scenario.Scenario, f *runFlags) error {
	digest, err := s.Digest()
	if err != nil {
		return verb.BadInput(err)
	}
	predict, err := p.foresee(ctx, &studyFlags{runFlags: *f}, s)
	if err != nil {
		return err
	}
	p.keeping() // before the directory exists: once it is visible, others may expect that completed work is kept
	base, err := makeBase(f.dir, s.Name, digest)
	if err != nil {
		return verb.BadInput(err)
	}
	defer p.unfinished(result.Unfinished(base))()
	jobs := min(trial.Workers(f.jobs), f.reps)
	progress := p.progress("run", unitOf(s), f.quiet, keepsDone)
	runs, remarks := make([]*result.Run, f.reps), make([][]string, f.reps)
	done, shares := make([]atomic.Uint64, f.reps), make([]atomic.Uint64, f.reps) // in millionths
	var interrupted atomic.Bool
	inner, cancel := context.WithCancel(ctx) // the first failure cancels the others
	defer cancel()
	errs := trial.Parallel(inner, f.reps, jobs, func(i int) (err error) {
		defer func() {
			if err != nil {
				cancel()
			}
		}()
		seed := f.seed + uint64(i)
		d, err := result.Create(filepath.Join(base, fmt.Sprintf("seed-%d", seed)))
		if err != nil {
			return err
		}
		defer d.Discard()
		run, out, err := writer(jobs, predict, func(x experiment.Progress) {
			done[i].Store(x.Requests)
			shares[i].Store(uint64(x.Share() * 1e6))
			sum, share := uint64(0), 0.0
			for k := range done {
				sum += done[k].Load()
				share += float64(shares[k].Load()) / 1e6
			}
			progress.Reach(share/float64(f.reps), int64(sum), int64(x.Expected)*int64(f.reps),
				fmt.Sprintf("%d replicates", f.reps))
		}).Write(inner, trial.Trial{Scenario: s, Digest: digest, Seed: seed}, d)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		for _, r := range out.Remarks {
			remarks[i] = append(remarks[i], fmt.Sprintf("seed %d: %s", seed, r))
		}
		if out.Interrupted {
			interrupted.Store(true)
		} else {
			runs[i] = run
		}
		_, err = d.Commit()
		return err
	})
	progress.Stop()
	err = nil
	for _, e := range errs {
		if errors.Is(e, trial.ErrInterrupted) {
			interrupted.Store(true)
		} else if e != nil && err == nil {
			err = e
		}
	}
	if err != nil {
		return refused(errors.Join(err, removeEmpty(base)))
	}
	var results []*result.Result
	for _, r := range runs {
		if r != nil {
			results = append(results, r.Result)
		}
	}
	summary := summarise(results)
	if f.json {
		if err := writeReplicates(p, results, summary); err != nil {
			return verb.Failed(err)
		}
	} else if !f.quiet {
		if err := writeIntervals(p, summary, len(results)); err != nil {
			return verb.Failed(err)
		}
	}
	if !f.quiet {
		for _, r := range slices.Concat(remarks...) {
			p.note("%s", r)
		}
		p.note("wrote %s", base)
	}
	if interrupted.Load() {
		return verb.Failed(fmt.Errorf("interrupted after %d of %d replicates, which are in %s", len(results),
			f.reps, base))
	}
	return p.judge(f, results...)
}

// makeBase creates the directory that holds the replicates' directories, or reuses dir if it is an empty directory.
func makeBase(dir, name, digest string) (string, error) {
	if dir != "" {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) == 0 {
			return dir, nil
		}
		if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
			return "", err
		}
		if err := os.Mkdir(dir, 0o777); err != nil {
			if errors.Is(err, os.ErrExist) {
				return "", fmt.Errorf("%s %w", dir, result.ErrExists)
			}
			return "", err
		}
		return dir, nil
	}
	first := defaultRun(name, digest)
	if err := os.MkdirAll(filepath.Dir(first), 0o777); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		place := first
		if n > 1 {
			place = fmt.Sprintf("%s-%d", first, n)
		}
		err := os.Mkdir(place, 0o777)
		if err == nil || !errors.Is(err, os.ErrExist) {
			return place, err
		}
	}
}

// removeEmpty removes a directory if it is empty.
func removeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		return err
	}
	return os.Remove(dir)
}

// estimate is the interval of a metric over replicates.
type estimate struct {
	Metric result.Metric
	stats.Interval
}

// summarise computes the interval of each metric that all results have.
func summarise(results []*result.Result) []estimate {
	if len(results) < 2 {
		return nil
	}
	var out []estimate
	for _, m := range results[0].Metrics {
		values := make([]float64, 0, len(results))
		for _, r := range results {
			if x, ok := r.Metric(m.Name); ok {
				values = append(values, x.Value)
			}
		}
		if len(values) < len(results) {
			continue
		}
		if i, err := stats.Replicates(values, level); err == nil {
			out = append(out, estimate{m, i})
		}
	}
	return out
}

// writeReplicates prints all results and the intervals as one JSON document.
func writeReplicates(p *program, results []*result.Result, summary []estimate) error {
	type interval struct {
		Mean  float64 `json:"mean"`
		Half  float64 `json:"half"`
		Level float64 `json:"level"`
		N     int     `json:"n"`
		Unit  string  `json:"unit"`
	}
	doc := struct {
		Schema  string              `json:"schema"`
		Metrics map[string]interval `json:"metrics"`
		Runs    []json.RawMessage   `json:"runs"`
	}{"farflash/replicates/1", map[string]interval{}, nil}
	for _, e := range summary {
		doc.Metrics[e.Metric.Name] = interval{e.Mean, e.Half, e.Level, e.N, e.Metric.Unit}
	}
	for _, r := range results {
		text, err := r.Encode()
		if err != nil {
			return err
		}
		doc.Runs = append(doc.Runs, text)
	}
	w := json.NewEncoder(p.data)
	w.SetIndent("", "  ")
	return w.Encode(doc)
}

// writeIntervals prints a table of the most important metrics.
func writeIntervals(p *program, summary []estimate, n int) error {
	if len(summary) == 0 {
		came := "no replicate"
		if n == 1 {
			came = "1 replicate"
		}
		fmt.Fprintf(p.out, "%s completed; intervals need two.\n", came)
		return nil
	}
	fmt.Fprintf(p.out, "%d replicates, means with %g%% confidence intervals\n\n", n, level*100)
	t := term.NewTable(term.Left("metric"), term.Right("mean"), term.Right("+-"), term.Right("relative"))
	for _, e := range summary {
		if !worthShowing(e.Metric.Name) {
			continue
		}
		relative := ""
		if e.Mean != 0 {
			relative = term.Percent(e.Relative())
		}
		t.Row(e.Metric.Name, term.Quantity(e.Mean, e.Metric.Unit), term.Quantity(e.Half, e.Metric.Unit), relative)
	}
	return t.Write(p.out, p.style())
}

// worthShowing selects the metrics for tables that are too small for all of them.
func worthShowing(name string) bool {
	for _, end := range []string{".iops", ".bandwidth", ".latency.mean", ".latency.p50", ".latency.p99",
		".latency.p99_9", ".latency.max",
		"ssd.waf", "ssd.gc.count", "ssd.cmt.hit_ratio", "ssd.utilisation.die", "ssd.utilisation.channel",
		"flow.fct.mean", "flow.fct.p50", "flow.fct.p99", "flow.fct.max",
		"slowdown.mean", "slowdown.p99", "fairness.slowdown", "fairness.progress", "fabric.goodput",
		"fabric.pause.time", "fabric.queue.max", "fabric.ecn.marks"} {
		if strings.HasSuffix(name, end) && !strings.HasPrefix(name, "all.latency.") &&
			!strings.Contains(name, "].all.") && !strings.HasPrefix(name, "volume[") {
			return true
		}
	}
	return false
}

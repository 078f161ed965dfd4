package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/report"
	"farflash/scenario"
	"farflash/study"
)

// studyFlags holds the flags of the verbs that run many trials.
type studyFlags struct {
	runFlags
	cache   string
	noCache bool
	metrics []string
}

// register adds the flags of runFlags, with help texts for many trials, and its own.
func (f *studyFlags) register(cmd *cobra.Command, reps int, output string) {
	f.runFlags.register(cmd, reps, output)
	fl := cmd.Flags()
	fl.Lookup("reps").Usage = "run `N` replicates of each, with seeds seed, seed+1, ..."
	fl.Lookup("json").Usage = "print JSON"
	fl.Lookup("fail-if").Usage = "exit with 3 if a `condition` such as 'read.latency.p99>500us' holds in a trial " +
		"(repeatable)"
	fl.StringVar(&f.cache, "cache", "",
		"cache results in `DIR` (default farflash in the user's cache folder)")
	fl.BoolVar(&f.noCache, "no-cache", false, "do not use the cache")
	registerMetrics(cmd, &f.metrics)
	verb.Must(cmd.RegisterFlagCompletionFunc("cache",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}))
}

func registerMetrics(cmd *cobra.Command, metrics *[]string) {
	cmd.Flags().StringArrayVar(metrics, "metric", nil,
		"show only these metrics: a `name`, or a pattern such as 'read.latency.*' (repeatable)")
}

// check validates the flags that are not part of a scenario.
func (f *studyFlags) check(leastReps int) error {
	if f.noCache && f.cache != "" {
		return verb.Usagef("--cache and --no-cache exclude each other; leave one out")
	}
	if err := checkMetrics(f.metrics); err != nil {
		return err
	}
	return f.runFlags.check(leastReps)
}

// openCache opens the cache of results, nil with --no-cache. The cache is optional: if its default location is
// unusable, the result is nil with a note, but an unusable --cache is an error.
func (p *program) openCache(f *studyFlags, name string) (*study.Cache, error) {
	if f.noCache {
		return nil, nil
	}
	var err error
	dir := f.cache
	if dir == "" {
		dir, err = study.DefaultCache()
	}
	var c *study.Cache
	if err == nil {
		c, err = study.OpenCache(dir, name)
	}
	switch {
	case err == nil:
		return c, nil
	case f.cache != "":
		return nil, verb.Usagef("--cache: %w", err)
	case !f.quiet:
		p.note("results are not cached for other studies: %v", err)
	}
	return nil, nil
}

// programName returns a name that differs between programs that may compute different results. A revision identifies
// the sources; if they were modified or are unknown, a hash of the executable is added.
func programName() (string, error) {
	v := buildVersion()
	if v != "unknown" && v != "devel" && !strings.HasSuffix(v, "+changes") {
		return v, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return v + "-" + hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// carryOut runs a plan's trials in its folder. If interrupted, it returns the completed outcomes.
func (p *program) carryOut(ctx context.Context, plan *study.Plan, f *studyFlags) (*study.Folder, []study.Outcome,
	error) {
	var outcomes []study.Outcome
	folder, err := p.inFolder(ctx, plan, f, func(r *study.Runner) ([]study.Outcome, error) {
		outcomes = r.Run(ctx, plan.Trials())
		return outcomes, nil
	})
	return folder, outcomes, err
}

// inFolder calls work with a runner in the plan's folder, and records the outcomes.
func (p *program) inFolder(ctx context.Context, plan *study.Plan, f *studyFlags,
	work func(*study.Runner) ([]study.Outcome, error)) (*study.Folder, error) {
	name, err := programName()
	if err != nil {
		return nil, verb.Failed(
			fmt.Errorf("cannot read the program's executable, which identifies results in the cache: %w", err))
	}
	cache, err := p.openCache(f, name)
	if err != nil {
		return nil, err
	}
	p.keeping() // before the folder exists: once it is visible, others may expect the command to continue from it
	folder, err := openStudy(plan, f.dir, study.Program{Version: buildVersion(), Name: name})
	if err != nil {
		return nil, verb.BadInput(err)
	}
	if !f.quiet && slices.ContainsFunc(plan.Points, sampled) {
		p.note("measure: a study writes no requests, flows, pauses or timeline of its trials; farflash run writes " +
			"those of one trial")
	}
	var scenarios []*scenario.Scenario
	for _, x := range plan.Points {
		scenarios = append(scenarios, x.Scenario)
	}
	predict, err := p.foresee(ctx, f, scenarios...)
	if err != nil {
		return nil, err
	}
	progress := p.progress(string(plan.Kind), "trials", f.quiet, keepsDone)
	defer p.unfinishedStudy(folder, cache)()
	runner := study.Runner{Workers: f.jobs, Version: buildVersion(), Cache: cache, Folder: folder, Predict: predict,
		Progress: func(x study.Progress) {
			// The most important part first: a narrow terminal cuts off the end.
			note := fmt.Sprintf("%d running", x.Running)
			if x.Failed > 0 {
				note = fmt.Sprintf("%d failed, ", x.Failed) + note
			}
			if x.Reused > 0 {
				note += fmt.Sprintf(", %d reused", x.Reused)
			}
			progress.Reach((float64(x.Done)+x.Begun)/float64(max(1, x.Of)), int64(x.Done), int64(x.Of), note)
		},
		Warn: func(err error) {
			if !f.quiet {
				p.note("%v", err)
			}
		},
	}
	outcomes, err := work(&runner)
	progress.Stop()
	if err != nil {
		return nil, err
	}
	return folder, verb.Failed(folder.Record(outcomes))
}

// unfinishedStudy registers the files of a study and of its cache that are being written, for removal if the command is
// cut short.
func (p *program) unfinishedStudy(folder *study.Folder, cache *study.Cache) (whole func()) {
	var all []func()
	for _, pattern := range append(folder.Unfinished(), cache.Unfinished()...) {
		all = append(all, p.unfinished(pattern))
	}
	return func() {
		for _, whole := range all {
			whole()
		}
	}
}

// sampled reports whether a scenario requests tables or a timeline, which studies do not keep.
func sampled(x study.Point) bool {
	m := x.Scenario.Measure
	return m.Requests || m.Flows || m.Pauses || m.Timeline
}

// openStudy opens the folder of a study. The default name is derived from the plan, with a number appended if the
// folder belongs to something else, such as the results of an older build.
func openStudy(plan *study.Plan, dir string, program study.Program) (*study.Folder, error) {
	if dir != "" {
		return study.OpenFolder(dir, plan, program)
	}
	first := defaultRun(plan.Name+"-"+string(plan.Kind), plan.Digest())
	if plan.Shard.Of > 0 {
		first += fmt.Sprintf("-%d-of-%d", plan.Shard.Index, plan.Shard.Of)
	}
	dir = first
	for n := 2; ; n++ {
		folder, err := study.OpenFolder(dir, plan, program)
		if !errors.Is(err, study.ErrOther) {
			return folder, err
		}
		dir = fmt.Sprintf("%s-%d", first, n)
	}
}

// keep writes a study's findings into its folder, as JSON and as a page.
func keep(folder *study.Folder, name string, doc any, write func(io.Writer) error) error {
	if err := folder.WriteJSON(name, doc); err != nil {
		return verb.Failed(err)
	}
	var page bytes.Buffer
	if err := write(&page); err != nil {
		return verb.Failed(fmt.Errorf("report: %w", err))
	}
	return verb.Failed(folder.Write("report.html", page.Bytes()))
}

// verdict returns the error, and with it the exit code, of a study: interrupted with missing trials first, then failed
// trials, then the conditions of --fail-if.
func (p *program) verdict(plan *study.Plan, folder *study.Folder, outcomes []study.Outcome, f *studyFlags,
	interrupted bool) error {
	bad, missing := 0, 0
	for k, o := range outcomes {
		switch o.State {
		case study.Failed:
			if bad++; bad <= mostListed {
				p.note("failed: %s, seed %d: %v", labelOf(plan, k, o), o.Seed, o.Err)
			}
		case study.Pending:
			missing++
		}
	}
	if bad > mostListed {
		p.note("failed: %d more, listed in %s", bad-mostListed, folder.Path())
	}
	switch {
	case interrupted && missing > 0:
		return verb.Failed(fmt.Errorf("interrupted after %d of %d trials, which are in %s; repeat the command to "+
			"continue", len(outcomes)-missing, len(outcomes), folder.Path()))
	case bad > 0:
		return verb.Failed(fmt.Errorf("%d of %d trials failed; the others are in %s", bad, len(outcomes),
			folder.Path()))
	}
	held := 0
	for _, c := range f.conditions {
		for k, o := range outcomes {
			if o.Result == nil {
				continue
			}
			yes, detail, err := c.Holds(o.Result)
			if err != nil {
				return verb.Usagef("--fail-if: %w", err)
			}
			if !yes {
				continue
			}
			if held++; held <= mostListed {
				p.note("--fail-if: %s (%s, seed %d)", detail, labelOf(plan, k, o), o.Seed)
			}
		}
	}
	if held > mostListed {
		p.note("--fail-if: %d more", held-mostListed)
	}
	if held > 0 {
		return &verb.Error{Code: verb.ExitFailIf, Err: nil}
	}
	return nil
}

// mostListed limits the length of lists on standard error.
const mostListed = 20

// labelOf returns the label of the point of a plan's k-th trial, or its digest in a search, which has no points.
func labelOf(plan *study.Plan, k int, o study.Outcome) string {
	if len(plan.Points) == 0 {
		return o.Digest
	}
	return plan.Label(k)
}

// curvesPage returns a function that writes the page of a sweep.
func curvesPage(c *study.Curves, metrics []string, scenario, version string) func(io.Writer) error {
	return func(w io.Writer) error {
		return report.WriteCurves(w, c,
			report.Study{Metrics: metrics, Scenario: scenario, Version: version, Command: commandLine()})
	}
}

// effectsPage returns a function that writes the page of a comparison.
func effectsPage(x *study.Effects, version string) func(io.Writer) error {
	return func(w io.Writer) error {
		return report.WriteEffects(w, x, report.Study{Version: version, Command: commandLine()})
	}
}

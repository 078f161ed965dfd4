package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/policy/ratecontrol"
	"farflash/report"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/study"
)

// runFlags holds the flags that all simulating verbs share.
type runFlags struct {
	set    []string
	seed   uint64
	reps   int
	until  string
	alone  bool
	dir    string
	json   bool
	quiet  bool
	jobs   int
	failIf []string

	conditions []result.Condition
}

// register adds the flags to a command. output is the help of its output directory, reps the default number of
// replicates.
func (f *runFlags) register(cmd *cobra.Command, reps int, output string) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.set, "set", nil, "change a value: `path=value` (repeatable)")
	fl.Uint64Var(&f.seed, "seed", 1, "random seed")
	fl.IntVar(&f.reps, "reps", reps, "run `N` replicates, with seeds seed, seed+1, ..., and report intervals")
	if fl.Lookup("until") == nil { // headroom has a limit of the same name
		fl.StringVar(&f.until, "until", "",
			"end at a simulated `time` such as 2s, or (steady) when the latency is steady")
	}
	fl.BoolVar(&f.alone, "alone", false, "also run each tenant alone, to report its slowdown (measure.alone)")
	fl.StringVarP(&f.dir, "output", "o", "", output)
	fl.BoolVar(&f.json, "json", false, "print only result.json, on standard output")
	fl.BoolVar(&f.quiet, "quiet", false, "no table, no progress and no remarks")
	fl.IntVarP(&f.jobs, "jobs", "j", 0, "run at most `N` trials at once (default one per processor)")
	fl.StringArrayVar(&f.failIf, "fail-if", nil,
		"exit with 3 if a `condition` such as 'read.latency.p99>500us' holds (repeatable)")
	file := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	verb.Must(cmd.RegisterFlagCompletionFunc("output", file))
	verb.Must(cmd.RegisterFlagCompletionFunc("set", completePath))
}

// check validates the flags that are not part of the scenario.
func (f *runFlags) check(leastReps int) error {
	for _, text := range f.failIf {
		c, err := result.ParseCondition(trial.Vocabulary().Metrics, text)
		if err != nil {
			return verb.Usagef("--fail-if: %w", err)
		}
		f.conditions = append(f.conditions, c)
	}
	if f.reps < leastReps {
		return verb.Usagef("--reps %d is not possible; use %d or more", f.reps, leastReps)
	}
	if f.reps > study.MostTrials {
		return verb.Usagef("--reps %d is not possible; use at most %d", f.reps, study.MostTrials)
	}
	if f.jobs < 0 {
		return verb.Usagef("--jobs %d is not possible; use 1 or more, or 0 for one per processor", f.jobs)
	}
	return nil
}

// ownChanges returns the changes that --until and --alone make to the scenario.
func (f *runFlags) ownChanges() (out []shape.Change) {
	if f.until != "" {
		out = append(out, shape.Change{Path: "measure.until", Value: f.until, Flag: "--until"})
	}
	if f.alone {
		out = append(out, shape.Change{Path: "measure.alone", Value: "true", Flag: "--alone"})
	}
	return out
}

// open loads the scenario that an argument names, with the flags' changes applied.
func (f *runFlags) open(p *program, name string) (*scenario.Scenario, error) {
	if err := f.check(1); err != nil {
		return nil, err
	}
	return p.open(name, f.set, f.ownChanges()...)
}

func parseChanges(set []string) ([]shape.Change, error) {
	var changes []shape.Change
	for _, s := range set {
		c, err := shape.ParseChange(s)
		if err != nil {
			return nil, verb.Usagef("--set: %w", err)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func (p *program) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Simulate a scenario or a preset",
		Long: `Simulate a scenario: a file, a preset's name (farflash list), or - for standard
input. Print a table, and write a run directory with scenario.yaml (every default
included), result.json, timing.json, report.html and citations.bib.
measure.requests, measure.flows, measure.pauses and measure.timeline add
requests.parquet (for an object cluster chunks.parquet), flows.parquet,
pauses.parquet and timeline.pftrace.

The same scenario and seed give the same result.json, byte for byte.`,
		Example: `  farflash run quickstart
  farflash run my.yaml --set ssd.over_provisioning=12% -o runs/op12
  farflash run my.yaml --reps 10 --until steady
  farflash run my.yaml --json --quiet --fail-if 'read.latency.p99>500us' > result.json`,
		Args:              verb.Arguments(1, 1, "a scenario file or a preset's name (farflash list shows them)"),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.open(p, args[0])
			if err != nil {
				return err
			}
			if f.reps > 1 {
				return p.replicate(cmd.Context(), s, &f)
			}
			return p.runOne(cmd.Context(), s, &f)
		},
	}
	f.register(cmd, 1, "write the run to `DIR`, which must not exist (default runs/NAME-DIGEST)")
	return cmd
}

// runOne simulates one trial, writes its run directory and prints the result.
func (p *program) runOne(ctx context.Context, s *scenario.Scenario, f *runFlags) error {
	digest, err := s.Digest()
	if err != nil {
		return verb.BadInput(err)
	}
	predict, err := p.foresee(ctx, &studyFlags{runFlags: *f}, s)
	if err != nil {
		return err
	}
	p.keeping() // before the directory exists: once it is visible, others may expect that completed work is kept
	d, err := createRun(f.dir, s.Name, digest)
	if err != nil {
		return verb.BadInput(err)
	}
	defer d.Discard()
	defer p.unfinished(result.Unfinished(filepath.Dir(d.Path(""))))()
	progress := p.progress("run", unitOf(s), f.quiet, keepsDone)
	run, out, err := writer(1, predict, func(x experiment.Progress) {
		note := x.Simulated.String() + " simulated"
		if x.Prepared > 0 {
			note = fmt.Sprintf("drives %.0f %% preconditioned", x.Prepared*100)
		}
		progress.Reach(x.Share(), int64(x.Requests), int64(x.Expected), note)
	}).Write(ctx, trial.Trial{Scenario: s, Digest: digest, Seed: f.seed}, d)
	progress.Stop()
	if err != nil {
		return refused(err)
	}
	place, err := d.Commit()
	if err != nil {
		return verb.Failed(err)
	}
	run.Path = place
	if err := p.show(run, f); err != nil {
		return verb.Failed(err)
	}
	if !f.quiet && f.json {
		p.note("wrote %s", place)
	}
	if !f.quiet {
		for _, r := range out.Remarks {
			p.note("%s", r)
		}
	}
	if out.Interrupted {
		return verb.Failed(fmt.Errorf("interrupted; %s holds the incomplete result", place))
	}
	return p.judge(f, run.Result)
}

// refused classifies the error of a trial: bad input if the trial could not start, a failure otherwise.
func refused(err error) error {
	var r *experiment.Refusal
	if errors.As(err, &r) {
		return verb.BadInput(err)
	}
	return verb.Failed(err)
}

// writer returns a writer of run directories for up to parallel concurrent trials.
func writer(parallel int, predict func(*scenario.Drive, ratecontrol.Partition) (ratecontrol.Predictor, error),
	progress func(experiment.Progress)) *trial.Writer {
	return &trial.Writer{Version: buildVersion(), CommandLine: commandLine(), Parallel: parallel, Predict: predict,
		Progress: progress, Page: func(run *result.Run) (string, error) {
			var page bytes.Buffer
			err := report.WriteHTML(&page, report.FromDirectory(run))
			return page.String(), err
		}}
}

// commandLine returns the command line of this invocation, quoted for a shell.
func commandLine() string {
	words := []string{"farflash"}
	for _, a := range os.Args[1:] {
		if a == "" || strings.ContainsAny(a, " \t\n\"'`$&|;<>()[]{}*?!#~\\") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// show prints a run as JSON or as a table.
func (p *program) show(run *result.Run, f *runFlags) error {
	if f.json {
		text, err := run.Result.Encode()
		if err != nil {
			return err
		}
		_, err = p.data.Write(text)
		return err
	}
	if f.quiet {
		return nil
	}
	return report.WriteText(p.out, report.FromDirectory(run), p.style())
}

// judge returns the error, and with it the exit code, of a completed run: violated conservation laws first, then the
// conditions of --fail-if.
func (p *program) judge(f *runFlags, results ...*result.Result) error {
	for _, r := range results {
		for _, c := range r.Checks {
			if !c.OK {
				return verb.Failed(fmt.Errorf("check failed (seed %d): %s: %s", r.Seed, c.Name, c.Detail))
			}
		}
	}
	held := 0
	for _, c := range f.conditions {
		for _, r := range results {
			yes, detail, err := c.Holds(r)
			if err != nil {
				return verb.Usagef("--fail-if: %w", err)
			}
			if yes {
				held++
				p.note("--fail-if: %s (seed %d)", detail, r.Seed)
			}
		}
	}
	if held > 0 {
		return &verb.Error{Code: verb.ExitFailIf, Err: nil}
	}
	return nil
}

// createRun creates the run directory.
func createRun(dir, name, digest string) (*result.Directory, error) {
	if dir != "" {
		return result.Create(dir)
	}
	return result.CreateNumbered(defaultRun(name, digest))
}

// defaultRun returns the default path of a run directory.
func defaultRun(name, digest string) string {
	clean := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>| `, r) || r < ' ' {
			return '-'
		}
		return r
	}, name)
	return filepath.Join("runs", strings.TrimLeft(clean, ".")+"-"+digest[:8])
}

// unitOf returns the unit in which a scenario's progress is counted.
func unitOf(s *scenario.Scenario) string {
	if s.Fabric != nil && len(s.Targets) == 0 {
		return "flows"
	}
	return "requests"
}

// What Ctrl-C does to a long-running command.
const (
	keepsDone = "Ctrl-C stops and keeps the results so far"
	justEnds  = "Ctrl-C stops"
)

// progress starts the progress line on standard error; ending describes the effect of a signal.
func (p *program) progress(label, unit string, quiet bool, ending string) *term.Progress {
	c := term.ProgressConfig{Label: label, Unit: unit, Quiet: quiet, Hint: ending}
	if f, ok := p.stderr.(*os.File); ok {
		c.Terminal = term.IsTerminal(f)
		c.Columns = term.Columns(f, 80)
		c.Style = term.Colour(f, os.Getenv)
	}
	x := term.NewProgress(p.stderr, c)
	p.ending.mu.Lock()
	defer p.ending.mu.Unlock()
	p.ending.progress = x
	return x
}

// style returns the colours of standard output.
func (p *program) style() term.Style {
	return styleOf(p.stdout)
}

// errorStyle returns the colours of standard error.
func (p *program) errorStyle() term.Style { return styleOf(p.stderr) }

func styleOf(w io.Writer) term.Style {
	if f, ok := w.(*os.File); ok {
		return term.Colour(f, os.Getenv)
	}
	return term.Style{}
}

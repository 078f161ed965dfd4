package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"farflash/block"
	"farflash/cli/verb"
	"farflash/internal/term"
	"farflash/policy/forest"
	"farflash/policy/ratecontrol"
	"farflash/result"
	"farflash/scenario"
	"farflash/study"
	"farflash/study/training"
)

// predictFlags holds the flags of training.
type predictFlags struct {
	studyFlags
	cfg     training.Config
	samples string
}

func (f *predictFlags) register(cmd *cobra.Command) {
	f.cfg = training.DefaultConfig()
	fl := cmd.Flags()
	fl.StringArrayVar(&f.set, "set", nil, "change a value: `path=value` (repeatable)")
	fl.IntVar(&f.cfg.Micro, "micro", f.cfg.Micro, "run `N` traces with exponential sizes and inter-arrival times")
	fl.IntVar(&f.cfg.Synthetic, "synthetic", f.cfg.Synthetic, "run `N` traces with the moments of recorded ones")
	fl.IntSliceVar(&f.cfg.Ratios, "ratios", f.cfg.Ratios,
		"weight `ratios`; each trace runs at one of every two neighbours")
	fl.IntVar(&f.cfg.Forest.Trees, "trees", f.cfg.Forest.Trees, "number `N` of trees")
	fl.Uint64Var(&f.cfg.Seed, "seed", f.cfg.Seed, "random seed")
	fl.StringVar(&f.samples, "samples", "", "write the samples to `FILE` as CSV")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.BoolVar(&f.quiet, "quiet", false, "no progress and no remarks")
	fl.IntVarP(&f.jobs, "jobs", "j", 0, "run at most `N` trials at once (default one per processor)")
	fl.StringVar(&f.cache, "cache", "",
		"cache results in `DIR` (default farflash in the user's cache folder)")
	fl.BoolVar(&f.noCache, "no-cache", false, "do not use the cache")
	verb.Must(cmd.RegisterFlagCompletionFunc("set", completePath))
}

func (p *program) predict() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "predict",
		Short: "Train and evaluate models of a drive's throughput",
		Args:  verb.Unknown,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.predictTrain(), p.predictEval())
	return cmd
}

func (p *program) predictTrain() *cobra.Command {
	var f predictFlags
	out := ""
	cmd := &cobra.Command{
		Use:   "train PRESET|SCENARIO",
		Short: "Train a model of a drive",
		Long: `Train a random forest that predicts a drive's throughput from its load and the
weights of its separate submission queues (rate_control). The drive is simulated
under traces with different sizes, inter-arrival times, variation, shares of
reads, and weight ratios. A scenario uses the file with rate_control: {kind: src,
model: FILE}; with model: auto it trains the same model on demand.

Repeat the command to resume an interrupted training from the cache. The same
drive and flags give the same file, byte for byte.`,
		Example: `  farflash predict train src-ssd-a -o ssd-a.forest
  farflash predict train my.yaml --micro 2000 --samples samples.csv -o my.forest`,
		Args:              verb.Arguments(1, 1, "a drive's preset or a scenario file"),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			drive, err := f.drive(p, args[0])
			if err != nil {
				return err
			}
			if out == "" {
				return verb.Usagef("predict train: -o is missing; name a file for the model, such as -o " +
					"drive.forest")
			}
			if _, err := os.Stat(out); err == nil {
				return verb.Usagef("%s already exists and is not overwritten; name another", out)
			}
			trainer, runner, err := p.trainer(f.cfg, &f.studyFlags)
			if err != nil {
				return err
			}
			set, err := p.sweepDrive(cmd.Context(), runner, drive, &f)
			if err != nil {
				return err
			}
			name, err := trainer.Name(drive, f.cfg.Partition)
			if err != nil {
				return verb.Failed(err)
			}
			m, err := set.Grow(name, &f.cfg, f.jobs)
			if err != nil {
				return verb.Failed(err)
			}
			file := m.Encode()
			if err := result.WriteFile(out, file); err != nil {
				return verb.Failed(err)
			}
			return verb.Failed(p.printModel(m, file, out, f.json))
		},
	}
	f.register(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the model to `FILE`, which must not exist")
	return cmd
}

func (p *program) predictEval() *cobra.Command {
	var f predictFlags
	cmd := &cobra.Command{
		Use:   "eval PRESET|SCENARIO",
		Short: "Evaluate models of a drive's throughput",
		Long: `Report how well models predict a drive's throughput, by the coefficient of
determination R^2. Five kinds of model are trained on 60 % of the micro traces.
The random forest is also tested on each of four classes of synthetic traces,
after training on the other classes and the micro traces. Training and test sets
share no trace.

R^2 is the mean over reads and writes, which are also listed; then come samples of
a saturated drive, which moved less than 95 % of the load, and the others. The
last column is the worst of five divisions.`,
		Example: `  farflash predict eval src-ssd-a
  farflash predict eval my.yaml --json`,
		Args:              verb.Arguments(1, 1, "a drive's preset or a scenario file"),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			drive, err := f.drive(p, args[0])
			if err != nil {
				return err
			}
			_, runner, err := p.trainer(f.cfg, &f.studyFlags)
			if err != nil {
				return err
			}
			set, err := p.sweepDrive(cmd.Context(), runner, drive, &f)
			if err != nil {
				return err
			}
			r, err := set.Evaluate(cmd.Context(), &f.cfg, f.jobs)
			if err != nil {
				return verb.Failed(err)
			}
			if f.json {
				return p.verbs().JSON(r)
			}
			return verb.Failed(p.printAccuracy(r))
		},
	}
	f.register(cmd)
	return cmd
}

// drive validates the flags and returns the drive that an argument names.
func (f *predictFlags) drive(p *program, name string) (*scenario.Drive, error) {
	if err := f.check(0); err != nil {
		return nil, err
	}
	if err := f.cfg.Validate(); err != nil {
		return nil, verb.Usagef("predict: %w", err)
	}
	s, err := p.openWorkload(name, f.set)
	if err != nil {
		return nil, err
	}
	if s.RateControl != nil {
		f.cfg.Partition = s.RateControl.Partition
	}
	switch {
	case len(s.Targets) > 0:
		if s.SameDrive() == nil {
			return nil, verb.Usagef("%s has targets with different drives; name one drive's preset", name)
		}
		return s.DriveOf(0), nil
	case s.SSD == nil:
		return nil, verb.Usagef("%s has no drive", name)
	}
	return s.SSD, nil
}

// trainer returns a trainer of models and its runner. The caller sets the runner's progress.
func (p *program) trainer(cfg training.Config, f *studyFlags) (*training.Trainer, study.Runner, error) {
	name, err := programName()
	if err != nil {
		return nil, study.Runner{},
			verb.Failed(fmt.Errorf("cannot read the program's executable, which identifies results in the cache: "+
				"%w", err))
	}
	cache, err := p.openCache(f, name)
	if err != nil {
		return nil, study.Runner{}, err
	}
	runner := study.Runner{Workers: f.jobs, Version: buildVersion(), Cache: cache, Warn: func(err error) {
		if !f.quiet {
			p.note("%v", err)
		}
	}}
	return training.NewTrainer(cfg, runner), runner, nil
}

// sweepDrive runs a drive under all traces.
func (p *program) sweepDrive(ctx context.Context, runner study.Runner, drive *scenario.Drive,
	f *predictFlags) (*training.Set, error) {
	defer p.unfinishedTrials(runner.Cache)()
	p.keeping()
	progress := p.progress("training", "trials", f.quiet, keepsDone)
	runner.Progress = func(x study.Progress) { progress.Update(int64(x.Done), int64(x.Of), reused(x)) }
	set, err := training.Sweep(ctx, runner, drive, f.cfg)
	progress.Stop()
	if err != nil {
		return nil, verb.Failed(err)
	}
	if f.samples == "" {
		return set, nil
	}
	var b bytes.Buffer
	if err := set.WriteCSV(&b); err != nil {
		return nil, verb.Failed(err)
	}
	return set, verb.Failed(result.WriteFile(f.samples, b.Bytes()))
}

// reused formats the number of trials taken from the cache, "" for none.
func reused(x study.Progress) string {
	if x.Reused == 0 {
		return ""
	}
	return fmt.Sprintf("%d reused", x.Reused)
}

// unfinishedTrials registers the files of a cache that are being written, for removal if the command is cut short.
func (p *program) unfinishedTrials(cache *study.Cache) (whole func()) {
	var all []func()
	for _, pattern := range cache.Unfinished() {
		all = append(all, p.unfinished(pattern))
	}
	return func() {
		for _, whole := range all {
			whole()
		}
	}
}

// foresee trains the models that scenarios request with model: auto before any trial runs, so that only one progress
// line is active at a time. It returns the lookup of these models, nil if no scenario requests one.
func (p *program) foresee(ctx context.Context, f *studyFlags,
	scenarios ...*scenario.Scenario) (func(*scenario.Drive, ratecontrol.Partition) (ratecontrol.Predictor, error),
	error) {
	if !slices.ContainsFunc(scenarios, func(s *scenario.Scenario) bool { return len(s.Unforeseen()) > 0 }) {
		return nil, nil
	}
	_, runner, err := p.trainer(training.DefaultConfig(), f)
	if err != nil {
		return nil, err
	}
	defer p.unfinishedTrials(runner.Cache)()
	p.keeping()
	var progress *term.Progress
	runner.Progress = func(x study.Progress) { progress.Update(int64(x.Done), int64(x.Of), reused(x)) }
	trainer := training.NewTrainer(training.DefaultConfig(), runner)
	trainer.OnStart = func(drive string) {
		if !f.quiet {
			p.note("training a model of the drive %s; farflash predict train writes one to a file", drive)
		}
	}
	progress = p.progress("training", "trials", f.quiet, keepsDone)
	defer progress.Stop()
	for _, s := range scenarios {
		for _, d := range s.Unforeseen() {
			if _, err := trainer.File(ctx, d, s.RateControl.Partition); err != nil {
				return nil, verb.Failed(err)
			}
		}
	}
	return trainer.Predict(ctx), nil
}

// modelAnswer is the output of farflash predict train --json.
type modelAnswer struct {
	File     string             `json:"file"`
	Checksum string             `json:"checksum"`
	Trees    int                `json:"trees"`
	Nodes    int                `json:"nodes"`
	OutOfBag map[string]float64 `json:"r2_out_of_bag"`
	Notes    map[string]string  `json:"notes"`
}

// printModel describes the model that was written.
func (p *program) printModel(m *forest.Forest, file []byte, path string, asJSON bool) error {
	if asJSON {
		a := modelAnswer{File: path, Checksum: forest.Checksum(file), Trees: m.Trees(), Nodes: m.Nodes(),
			OutOfBag: map[string]float64{}, Notes: map[string]string{}}
		for k, name := range m.Outputs {
			if v := m.OutOfBag[k]; !math.IsNaN(v) {
				a.OutOfBag[name] = v
			}
		}
		for _, n := range m.Notes {
			a.Notes[n.Name] = n.Value
		}
		return p.verbs().JSON(a)
	}
	fmt.Fprintf(p.out, "%s: %d trees, %s nodes, checksum %s\n", filepath.Base(path), m.Trees(),
		term.Count(float64(m.Nodes())), forest.Checksum(file)[:16])
	for _, n := range m.Notes {
		fmt.Fprintf(p.out, "  %s: %s\n", n.Name, n.Value)
	}
	fmt.Fprintf(p.out, "R^2 out of bag, with samples of the same traces: %v %s, %v %s; farflash predict eval tests "+
		"on unseen traces\n",
		block.Read, r2(m.OutOfBag[block.Read]), block.Write, r2(m.OutOfBag[block.Write]))
	return nil
}

// r2 formats a coefficient of determination, "-" for NaN.
func r2[T ~float64](v T) string {
	if math.IsNaN(float64(v)) {
		return "-"
	}
	return strconv.FormatFloat(float64(v), 'f', 3, 64)
}

// printAccuracy prints the equivalents of tables I and III of SRC.
func (p *program) printAccuracy(r *training.Report) error {
	fmt.Fprintf(p.out, "%d samples of %d traces\n", r.Samples, r.Traces)
	style := p.style()
	table := func(title, first string, list []training.Judged) error {
		if len(list) == 0 {
			return nil
		}
		fmt.Fprintf(p.out, "\n%s\n\n", title)
		t := term.NewTable(term.Left(first), term.Right("R^2"), term.Right("read"), term.Right("write"),
			term.Right("samples"),
			term.Right("saturated"), term.Right(""), term.Right("others"), term.Right(""), term.Right("worst"))
		for _, j := range list {
			each := func(a *training.Accuracy) string { return r2(a.Each[block.Read]) + " " + r2(a.Each[block.Write]) }
			t.Row(j.Name, r2(j.All.Mean), r2(j.All.Each[block.Read]), r2(j.All.Each[block.Write]),
				strconv.Itoa(j.All.Rows),
				each(&j.Saturated), strconv.Itoa(j.Saturated.Rows), each(&j.Unsaturated),
				strconv.Itoa(j.Unsaturated.Rows), r2(j.Least))
		}
		return t.Write(p.out, style)
	}
	err := errors.Join(
		table("micro traces, 60 % for training", "model", r.Models),
		table("random forest on one class of traces, trained on all others", "class", r.Classes),
		table("how much of it is about the weight ratio, on the micro traces", "prediction", r.Weight))
	if err != nil || len(r.Importance) == 0 {
		return err
	}
	fmt.Fprintf(p.out, "\nimportance of inputs (Breiman's); both flow speeds together %.2f\n\n", r.FlowSpeed)
	t := term.NewTable(term.Left("input"), term.Right("share"))
	for _, w := range r.Importance {
		t.Row(w.Input, fmt.Sprintf("%.3f", w.Share))
	}
	return t.Write(p.out, style)
}

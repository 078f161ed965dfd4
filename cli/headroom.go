package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/experiment/trial"
	"farflash/numeric/units"
	"farflash/report"
	"farflash/result"
	"farflash/study"
	"farflash/study/headroom"
)

func (p *program) headroom() *cobra.Command {
	var f studyFlags
	cfg := headroom.DefaultConfig()
	var until []string
	within := ""
	cmd := &cobra.Command{
		Use:   "headroom SCENARIO --until CONDITION...",
		Short: "Find the load at which a scenario exceeds a limit",
		Long: `Find the load at which a condition such as 'read.latency.p99>500us' first holds.
The search doubles or halves the scenario's own load until the limit lies between
two loads, then bisects. Of several conditions the first that holds counts.

The scaled keys are printed: interarrival times and the time scale of traces are
divided by the load; MQSim's bandwidth, the load of flows, and the rate or share
of an object cluster are multiplied by it. A closed loop has no load and is
refused; --depth scales its outstanding requests instead. --scale scales only the
named items.

All loads run with the same seeds. With --reps the mean over the replicates
decides, and the seeds also give an interval for the answer. A run that ends
after a number of requests gets shorter as the load grows; measure.until gives
all loads the same time.`,
		Example: `  farflash headroom busy-drive --until 'read.latency.p99>2ms' --reps 3
  farflash headroom my.yaml --depth --until 'all.latency.mean>1ms' --within 1% -o runs/room`,
		Args:              verb.Arguments(1, 1, "a scenario file or a preset's name (farflash list shows them)"),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			share, err := units.ParseFraction(within)
			if err != nil {
				return verb.Usagef("--within: %w", err)
			}
			cfg.Within = float64(share)
			for _, text := range until {
				if !strings.ContainsAny(text, "<>=!") {
					return verb.Usagef("--until %s is not a condition such as 'read.latency.p99>500us'; to set "+
						"the end of each run, use --set measure.until=%s", text, text)
				}
				c, err := result.ParseCondition(trial.Vocabulary().Metrics, text)
				if err != nil {
					return verb.Usagef("--until: %w", err)
				}
				cfg.Limits = append(cfg.Limits, c)
			}
			return p.runHeadroom(cmd.Context(), args[0], cfg, &f)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&until, "until", nil,
		"limit: a `condition` such as 'read.latency.p99>500us' (repeatable: the first that holds)")
	f.register(cmd, 1, "write the search to `DIR`, or resume the one there (default runs/NAME-headroom-DIGEST)")
	fl.StringArrayVar(&cfg.Scale, "scale", nil,
		"scale only this `item`: workload[0], flows[0] or an item's name (repeatable)")
	fl.BoolVar(&cfg.Depth, "depth", false, "scale the outstanding requests of closed loops")
	fl.Float64Var(&cfg.Most, "most", cfg.Most, "try loads from 1/N to `N` times the scenario's")
	fl.StringVar(&within, "within", "2%", "stop when the loads on either side of the limit are within this `share`")
	return cmd
}

// runHeadroom runs the search and shows its findings, also those of an interrupted search.
func (p *program) runHeadroom(ctx context.Context, name string, cfg headroom.Config, f *studyFlags) error {
	err := f.check(1)
	if err != nil {
		return err
	}
	cfg.Seed, cfg.Reps, cfg.Level = f.seed, f.reps, level
	if cfg.Changes, err = parseChanges(f.set); err != nil {
		return err
	}
	cfg.Changes = append(cfg.Changes, f.ownChanges()...)
	if err := cfg.Validate(); err != nil {
		return verb.Usagef("headroom: %w", err)
	}
	if cfg.Source, err = p.find(name); err != nil {
		return err
	}
	h, err := headroom.Plan(cfg)
	if err != nil {
		return verb.BadInput(err)
	}
	program, err := programName()
	if err != nil {
		return verb.Failed(fmt.Errorf("cannot read the program's executable, which identifies results in the cache: "+
			"%w", err))
	}
	cache, err := p.openCache(f, program)
	if err != nil {
		return err
	}
	p.keeping() // before the folder exists: once it is visible, others may expect the command to continue from it
	folder, err := openSearch(study.Search{Name: h.Name, Digest: h.Digest, Seed: f.seed, Reps: f.reps}, "headroom",
		f.dir, study.Program{Version: buildVersion(), Name: program})
	if err != nil {
		return verb.BadInput(err)
	}
	defer p.unfinishedStudy(folder, cache)()
	progress := p.progress("headroom", "loads", f.quiet, keepsDone)
	runner := study.Runner{Workers: f.jobs, Version: buildVersion(), Cache: cache, Folder: folder,
		Warn: func(err error) {
			if !f.quiet {
				p.note("%v", err)
			}
		}}
	run := func(ctx context.Context, trials []trial.Trial) []study.Outcome {
		if runner.Predict == nil {
			if runner.Predict, err = p.foresee(ctx, f, trials[0].Scenario); err != nil {
				out := make([]study.Outcome, len(trials))
				for i := range out {
					out[i] = study.Outcome{Trial: trials[i], State: study.Failed, Err: err}
				}
				return out
			}
		}
		return runner.Run(ctx, trials)
	}
	failed := h.Search(ctx, run,
		func(s headroom.Step) { progress.Update(int64(s.Done), 0, fmt.Sprintf("x%.4g", s.Load)) })
	progress.Stop()
	interrupted := errors.Is(failed, trial.ErrInterrupted)
	if failed != nil && !interrupted && len(h.Points) == 0 {
		return refused(failed)
	}
	if err := p.showHeadroom(h, folder, f); err != nil {
		return err
	}
	switch {
	case interrupted:
		return verb.Failed(fmt.Errorf("interrupted after %d loads, which are in %s; repeat the command to "+
			"continue", len(h.Points), folder.Path()))
	case failed != nil:
		return verb.Failed(failed)
	}
	var outcomes []study.Outcome
	for _, x := range h.Points {
		outcomes = append(outcomes, x.Outcomes...)
	}
	return p.verdict(&study.Plan{}, folder, outcomes, f, false)
}

// showHeadroom writes the findings into the folder and prints them.
func (p *program) showHeadroom(h *headroom.Headroom, folder *study.Folder, f *studyFlags) error {
	doc, err := h.Document()
	if err != nil {
		return verb.Failed(err)
	}
	if err := keep(folder, headroom.File, doc, func(w io.Writer) error {
		return report.WriteHeadroom(w, h,
			report.Study{Metrics: f.metrics, Version: buildVersion(), Command: commandLine()})
	}); err != nil {
		return err
	}
	switch {
	case f.json:
		return p.verbs().JSON(doc)
	case f.quiet:
		return nil
	}
	if err := report.WriteHeadroomText(p.out, h, f.metrics, p.style()); err != nil {
		return verb.Failed(err)
	}
	fmt.Fprintf(p.out, "\nstudy directory: %s\n", folder.Path())
	return nil
}

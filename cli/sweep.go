package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/report"
	"farflash/study"
)

func (p *program) sweep() *cobra.Command {
	var f studyFlags
	var vary []string
	shard := ""
	cmd := &cobra.Command{
		Use:   "sweep SCENARIO --vary PATH=VALUES...",
		Short: "Run a scenario over a grid of parameters",
		Long: `Run a scenario at every point of a grid, several trials in parallel, and show how
its metrics respond. Each --vary is an axis:

  --vary ssd.collection.victim=greedy,random    these values
  --vary ssd.cache.capacity=4MiB..64MiB:x2      from 4 MiB to 64 MiB, doubling
  --vary ssd.over_provisioning=5%..25%:+5%      from 5 % to 25 % in steps of 5 %

In the report's curves the first axis is horizontal, and the second gives one line
per value. All points run with the same seeds and are checked before the first one
runs. A failed trial is listed; the others are kept.

Repeat the command to resume an interrupted sweep. --shard 2/5 runs the second
fifth, for example on another machine; farflash merge merges the shards.`,
		Example: `  farflash sweep busy-drive --vary ssd.over_provisioning=7%,14%,28% --reps 3
  farflash sweep my.yaml --vary ssd.cache.capacity=1MiB..64MiB:x2 --vary ssd.collection.victim=greedy,random -o runs/cache`,
		Args:              verb.Arguments(1, 1, "a scenario file or a preset's name (farflash list shows them)"),
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(1); err != nil {
				return err
			}
			plan, err := p.planSweep(args[0], vary, shard, &f)
			if err != nil {
				return err
			}
			return p.runSweep(cmd.Context(), plan, &f)
		},
	}
	f.register(cmd, 1, "write the sweep to `DIR`, or resume the one there (default runs/NAME-sweep-DIGEST)")
	cmd.Flags().StringArrayVar(&vary, "vary", nil,
		"an axis: `path=a,b,c`, path=lo..hi:xK or path=lo..hi:+K (repeatable)")
	cmd.Flags().StringVar(&shard, "shard", "", "run only the `i/n`-th part of the trials, such as 2/5")
	verb.Must(cmd.RegisterFlagCompletionFunc("vary", completePath))
	return cmd
}

// planSweep parses the axes and every point.
func (p *program) planSweep(name string, vary []string, shard string, f *studyFlags) (*study.Plan, error) {
	if len(vary) == 0 {
		return nil, verb.Usagef(
			"sweep: --vary is missing; write for example --vary ssd.over_provisioning=7%%,14%%,28%%")
	}
	changes, err := parseChanges(f.set)
	if err != nil {
		return nil, err
	}
	var axes []study.Axis
	for i, v := range vary {
		a, err := study.ParseAxis(v)
		if err != nil {
			return nil, verb.Usagef("--vary:%d: %w", i+1, err)
		}
		for _, c := range changes {
			if c.Path == a.Path {
				return nil, verb.Usagef("--vary:%d: %s is also set by --set; leave one out", i+1, a.Path)
			}
		}
		axes = append(axes, a)
	}
	part := study.Shard{}
	if shard != "" {
		if part, err = study.ParseShard(shard); err != nil {
			return nil, verb.Usagef("--shard: %w", err)
		}
	}
	src, err := p.find(name)
	if err != nil {
		return nil, err
	}
	plan, err := study.NewSweep(src, append(changes, f.ownChanges()...), axes, f.seed, f.reps)
	if err != nil {
		return nil, verb.BadInput(err)
	}
	plan.Shard = part
	return plan, nil
}

// runSweep runs the trials and shows the curves.
func (p *program) runSweep(ctx context.Context, plan *study.Plan, f *studyFlags) error {
	folder, outcomes, err := p.carryOut(ctx, plan, f)
	if err != nil {
		return err
	}
	interrupted := ctx.Err() != nil
	if err := p.showSweep(plan, folder, outcomes, f); err != nil {
		return err
	}
	return p.verdict(plan, folder, outcomes, f, interrupted)
}

// showSweep writes and prints the curves of the completed trials.
func (p *program) showSweep(plan *study.Plan, folder *study.Folder, outcomes []study.Outcome, f *studyFlags) error {
	curves, err := study.Respond(plan, outcomes, level)
	if err != nil {
		return verb.Failed(err)
	}
	resolved, err := folder.Scenario()
	if err != nil {
		return verb.Failed(err)
	}
	if err := keep(folder, study.CurvesFile, curves.Document(),
		curvesPage(curves, f.metrics, resolved, buildVersion())); err != nil {
		return err
	}
	switch {
	case f.json:
		return p.verbs().JSON(curves.Document())
	case f.quiet:
		return nil
	}
	if err := report.WriteCurvesText(p.out, curves, f.metrics, p.style()); err != nil {
		return verb.Failed(err)
	}
	fmt.Fprintf(p.out, "\nstudy directory: %s\n", folder.Path())
	return nil
}

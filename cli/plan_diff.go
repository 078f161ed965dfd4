package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/planner/drives"
	"farflash/report"
	"farflash/scenario/shape"
)

func (p *program) planDiff() *cobra.Command {
	var set []string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "diff BEFORE [AFTER]",
		Short: "Compare two plans, or a plan with a change",
		Long: `Compute two plans and print the differences: inputs, costs by kind, drives, and
workloads that move. Drives of one model are matched by their common workloads. Both
plans must have the same objective. --set changes the second plan, which without a
second file is a copy of the first.`,
		Example: `  farflash plan diff plan.yaml --set horizon=3y
  farflash plan diff now.yaml next.yaml`,
		Args: verb.Arguments(1, 2, "one or two plans"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && len(set) == 0 {
				return verb.Usagef("name a second plan, or change the first with --set path=value")
			}
			changes, err := parseChanges(set)
			if err != nil {
				return err
			}
			before, err := p.solvePlan(cmd.Context(), args[0], nil)
			if err != nil {
				return err
			}
			after, err := p.solvePlan(cmd.Context(), args[len(args)-1], changes)
			if err != nil {
				return err
			}
			if before.Interrupted || after.Interrupted {
				return verb.Failed(errors.New("interrupted"))
			}
			d, err := drives.Differ(before, after)
			switch {
			case err != nil:
				return verb.BadInput(err)
			case asJSON:
				return verb.Failed(p.verbs().JSON(d))
			}
			return verb.Failed(report.WritePlanDifference(p.out, d, p.style()))
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "change a value of the second plan: `path=value` (repeatable)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// solvePlan solves the plan in a file.
func (p *program) solvePlan(ctx context.Context, name string, changes []shape.Change) (*drives.Outcome, error) {
	src, err := p.planSource(name)
	if err != nil {
		return nil, err
	}
	x, err := drives.Load(src, nil, changes...)
	if err != nil {
		return nil, verb.BadInput(err)
	}
	cache, err := p.planCache(x, &studyFlags{})
	if err != nil {
		return nil, err
	}
	o, err := x.Solve(ctx, drives.Options{Cache: cache})
	return o, planFailed(err)
}

// planFailed marks located errors as bad input, and any other error, such as that no plan exists, as a failure.
func planFailed(err error) error {
	var located shape.Errors
	if errors.As(err, &located) {
		return verb.BadInput(err)
	}
	return verb.Failed(err)
}

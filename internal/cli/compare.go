package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"farflash/internal/cli/verb"
	"farflash/internal/spelling"
	"farflash/report"
	"farflash/shape"
	"farflash/study"
	"farflash/trial"
	"farflash/units"
)

func (p *program) compare() *cobra.Command {
	var f studyFlags
	all := false
	relevant := ""
	cmd := &cobra.Command{
		Use:   "compare A B [C...]",
		Short: "Say which of several designs is better, with intervals",
		Long: `Compare designs over replicates on common random numbers: every arm runs with
the same seeds, so that all see the same requests at the same times. For each
metric it prints the effect against A, the first arm, with a confidence interval
of the paired differences. A paired t test, corrected for the number of metrics
by Holm's method, tells an effect from chance. Without evidence of a difference
it says how many more replicates would settle it.

An arm is a scenario file or a preset. Changes of its own follow it with commas:
my.yaml,ssd.over_provisioning=12%. --set applies to all arms.

Results are kept in the study's directory and in a cache. The same command
continues an interrupted study.`,
		Example: `  farflash compare busy-drive busy-drive,ssd.collection.victim=random
  farflash compare mine.yaml theirs.yaml --reps 20 --metric 'read.latency.p99*'
  farflash compare my.yaml my.yaml,ssd.over_provisioning=12% my.yaml,ssd.over_provisioning=28%`,
		Args:              verb.Arguments(2, -1, "two scenarios or more, such as my.yaml my.yaml,ssd.over_provisioning=12%"),
		ValidArgsFunction: completeArm,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(2); err != nil {
				return err
			}
			test := study.DefaultTest()
			test.Metrics = f.metrics
			share, err := units.ParseFraction(relevant)
			if err != nil {
				return verb.Usagef("--relevant: %w", err)
			}
			test.Relevant = float64(share)
			plan, err := p.planComparison(args, &f)
			if err != nil {
				return err
			}
			return p.runComparison(cmd.Context(), plan, test, &f, all)
		},
	}
	f.register(cmd, 10, "write the comparison to `DIR`, or continue the one there (default runs/NAME-compare-DIGEST)")
	cmd.Flags().BoolVar(&all, "all", false, "show every metric, not only the main ones")
	cmd.Flags().StringVar(&relevant, "relevant", "1%", "the smallest effect that matters, as a `share` of A's mean")
	return cmd
}

// completeArm offers scenarios for every argument.
func completeArm(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return completeScenario(cmd, nil, prefix)
}

// checkMetrics holds --metric to names that there are.
func checkMetrics(patterns []string) error {
	var names []string
	metrics := trial.Vocabulary().Metrics
	for _, d := range metrics.All() {
		names = append(names, d.Name)
	}
	for _, pattern := range patterns {
		if _, ok := metrics.Lookup(pattern); ok {
			continue
		}
		found := strings.ContainsAny(pattern, "*?") && strings.Contains(pattern, "[")
		for _, n := range names {
			found = found || study.Matches([]string{pattern}, n)
		}
		scope := ""
		for _, x := range trial.Vocabulary().Scopes {
			for _, m := range x.Metrics {
				found = found || study.Matches([]string{pattern}, x.Name+"[0]."+m.Name)
			}
			if strings.HasPrefix(pattern, x.Name+"[") {
				scope = x.Name
			}
		}
		switch best := spelling.Nearest(pattern, names); {
		case found:
		case scope != "":
			return verb.Usagef("--metric: no metric is called %q; parts go by their number, such as %s[0], or by a pattern such as '%s[*].read.latency.p99'", pattern, scope, scope)
		case best != "":
			return verb.Usagef("--metric: no metric is called %q; did you mean %s?", pattern, best)
		default:
			return verb.Usagef("--metric: no metric is called %q; farflash list metrics shows them", pattern)
		}
	}
	return nil
}

// planComparison reads the arms.
func (p *program) planComparison(args []string, f *studyFlags) (*study.Plan, error) {
	shared, err := parseChanges(f.set)
	if err != nil {
		return nil, err
	}
	arms := make([]study.Arm, len(args))
	names := make([]string, len(args))
	own := make([][]shape.Change, len(args))
	read := map[string]shape.Source{} // standard input can be read once
	for i, a := range args {
		var err error
		letter := report.ArmLetter(i)
		if names[i], own[i], err = splitArm(a, letter); err != nil {
			return nil, err
		}
		if _, ok := read[names[i]]; !ok {
			if read[names[i]], err = p.find(names[i]); err != nil {
				return nil, err
			}
		}
		changes := append(shared[:len(shared):len(shared)], own[i]...)
		arms[i] = study.Arm{Source: read[names[i]], Changes: append(changes, f.ownChanges()...)}
	}
	for i := range arms {
		arms[i].Label = armLabel(names, own, i)
	}
	plan, err := study.NewComparison(arms, f.seed, f.reps)
	return plan, verb.BadInput(err)
}

// splitArm cuts "name,path=value,path=value". What stands before the first part with an = is the name.
func splitArm(text, letter string) (string, []shape.Change, error) {
	parts, err := study.SplitValues(text)
	if err != nil {
		return "", nil, verb.Usagef("%s: %q: %w", letter, text, err)
	}
	n := 1
	for n < len(parts) && !strings.Contains(parts[n], "=") {
		n++
	}
	name := strings.Join(parts[:n], ",")
	if strings.Contains(name, "=") || name == "" {
		return "", nil, verb.Usagef("%s: %q begins with no scenario; write for example my.yaml,ssd.over_provisioning=12%%", letter, text)
	}
	var out []shape.Change
	for _, part := range parts[n:] {
		c, err := shape.ParseChange(part)
		if err != nil {
			return "", nil, verb.Usagef("%s: %w; an arm is name,path=value,path=value", letter, err)
		}
		c.Flag = letter
		out = append(out, c)
	}
	return name, out, nil
}

// armLabel names an arm by what tells it from the others: its scenario if they differ in it, and its own changes.
func armLabel(names []string, own [][]shape.Change, i int) string {
	same := true
	for _, n := range names {
		same = same && n == names[0]
	}
	var parts []string
	if !same || len(own[i]) == 0 {
		parts = append(parts, strings.TrimSuffix(strings.TrimSuffix(names[i], ".yaml"), ".yml"))
	}
	for _, c := range own[i] {
		parts = append(parts, c.Path+"="+c.Value)
	}
	return strings.Join(parts, ", ")
}

// runComparison runs the trials and shows the effects.
func (p *program) runComparison(ctx context.Context, plan *study.Plan, test study.Test, f *studyFlags, all bool) error {
	folder, outcomes, err := p.carryOut(ctx, plan, f)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		if err := p.verdict(plan, folder, outcomes, f, true); err != nil {
			return err
		}
	}
	effects, err := study.Compare(plan, outcomes, test)
	if err != nil {
		// Trials that failed are why, or else what was asked for.
		if failure := p.verdict(plan, folder, outcomes, f, false); failure != nil {
			return failure
		}
		return verb.BadInput(err)
	}
	if err := keep(folder, study.EffectsFile, effects.Document(), effectsPage(effects, buildVersion())); err != nil {
		return err
	}
	switch {
	case f.json:
		err = p.verbs().JSON(effects.Document())
	case !f.quiet:
		show := func(name string) bool { return all || len(test.Metrics) > 0 || worthShowing(name) }
		if err = verb.Failed(report.WriteEffectsText(p.out, effects, show, p.style())); err == nil {
			fmt.Fprintf(p.out, "\nstudy directory: %s\n", folder.Path())
		}
	}
	if err != nil {
		return err
	}
	return p.verdict(plan, folder, outcomes, f, false)
}

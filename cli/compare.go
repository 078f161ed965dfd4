package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/experiment/trial"
	"farflash/internal/spelling"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/report"
	"farflash/scenario/shape"
	"farflash/study"
)

func (p *program) compare() *cobra.Command {
	var f studyFlags
	var c comparison
	relevant := ""
	cmd := &cobra.Command{
		Use:   "compare A B [C...]",
		Short: "Compare designs, with confidence intervals",
		Long: `Compare designs over replicates on common random numbers: every arm runs with
the same seeds, so all arms see the same requests at the same times.

Verdicts cover a primary family of six to eight metrics, set by the kind of
experiment or by --metric. Chance alone produces a difference in any of them in
less than 5 % of comparisons. Each effect is the change of an arm relative to A,
the first one, with an interval; an interval that excludes 0 is a difference. If
an effect would matter but the replicates are too few to establish it, compare
estimates how many more are needed. All other metrics are exploratory.

--until-decided adds replicates until every primary metric is decided, up to
--reps. It tests at a few looks, which are planned in advance and corrected for.

An arm is a scenario file or a preset, with its own changes after commas:
my.yaml,ssd.over_provisioning=12%. --set applies to all arms.

Results are stored in the study directory and in a cache. Repeat the command to
resume an interrupted study.`,
		Example: `  farflash compare busy-drive busy-drive,ssd.collection.victim=random
  farflash compare mine.yaml theirs.yaml --reps 20 --metric 'read.latency.p99*'
  farflash compare my.yaml my.yaml,ssd.over_provisioning=12% my.yaml,ssd.over_provisioning=28%`,
		Args: verb.Arguments(2, -1,
			"two or more scenarios, such as my.yaml my.yaml,ssd.over_provisioning=12%"),
		ValidArgsFunction: completeArm,
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.untilDecided && !cmd.Flags().Changed("reps") {
				f.reps = mostUndecided
			}
			if err := f.check(2); err != nil {
				return err
			}
			if c.seeds != study.SeedsCommon && c.seeds != study.SeedsApart {
				return verb.Usagef("--seeds: %q is not %s or %s", c.seeds, study.SeedsCommon, study.SeedsApart)
			}
			c.test = study.DefaultTest()
			c.test.Metrics = f.metrics
			share, err := units.ParseFraction(relevant)
			if err != nil {
				return verb.Usagef("--relevant: %w", err)
			}
			c.test.Relevant = float64(share)
			plan, err := p.planComparison(args, &f)
			if err != nil {
				return err
			}
			plan.Apart = c.seeds == study.SeedsApart
			return p.runComparison(cmd.Context(), plan, &c, &f)
		},
	}
	f.register(cmd, 10, "write the comparison to `DIR`, or resume the one there (default runs/NAME-compare-DIGEST)")
	fl := cmd.Flags()
	fl.Lookup("metric").Usage = "use these primary metrics: a `name`, or a pattern such as 'read.latency.*' " +
		"(repeatable)"
	fl.Lookup("reps").Usage = "run `N` replicates of each, with seeds seed, seed+1, ...; with --until-decided, at " +
		"most N (default then 20)"
	fl.BoolVar(&c.all, "all", false, "show every metric, including those that do not differ")
	fl.StringVar(&relevant, "relevant", "1%", "the smallest effect that matters, as a `share` of A's value")
	fl.BoolVar(&c.untilDecided, "until-decided", false, "add replicates until every primary metric is decided")
	fl.StringVar(&c.seeds, "seeds", study.SeedsCommon,
		"`common`: all arms share their seeds; apart: each arm has its own, which shows the effect of chance")
	verb.Must(cmd.RegisterFlagCompletionFunc("seeds",
		cobra.FixedCompletions([]string{study.SeedsCommon, study.SeedsApart}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// mostUndecided is the default limit on replicates with --until-decided.
const mostUndecided = 20

// comparison holds the flags of compare.
type comparison struct {
	test         study.Test
	all          bool
	untilDecided bool
	seeds        string
}

// completeArm completes scenarios for every argument.
func completeArm(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return completeScenario(cmd, nil, prefix)
}

// checkMetrics verifies that each --metric pattern matches a metric.
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
			return verb.Usagef("--metric: unknown metric %q; name a part by its index, such as %s[0], or with a "+
				"pattern such as '%s[*].read.latency.p99'", pattern, scope, scope)
		case best != "":
			return verb.Usagef("--metric: unknown metric %q; did you mean %s?", pattern, best)
		default:
			return verb.Usagef("--metric: unknown metric %q; see farflash list metrics", pattern)
		}
	}
	return nil
}

// planComparison parses the arms.
func (p *program) planComparison(args []string, f *studyFlags) (*study.Plan, error) {
	shared, err := parseChanges(f.set)
	if err != nil {
		return nil, err
	}
	arms := make([]study.Arm, len(args))
	names := make([]string, len(args))
	own := make([][]shape.Change, len(args))
	read := map[string]shape.Source{} // standard input can be read only once
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

// splitArm splits "name,path=value,path=value". The parts before the first one with an = are the name.
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
		return "", nil, verb.Usagef(
			"%s: %q does not start with a scenario; write for example my.yaml,ssd.over_provisioning=12%%", letter, text)
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

// armLabel names an arm by its differences from the others: its scenario if the arms differ in it, and its own changes.
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

// runComparison runs the trials and prints the effects.
func (p *program) runComparison(ctx context.Context, whole *study.Plan, c *comparison, f *studyFlags) error {
	plan := whole // the plan cut to the replicates that were run
	if c.untilDecided {
		c.test.Looks = stats.Looks(whole.Reps)
	} else {
		c.test.Looks = []int{whole.Reps}
	}
	var outcomes []study.Outcome
	var effects *study.Effects
	var unable error
	folder, err := p.inFolder(ctx, whole, f, func(r *study.Runner) ([]study.Outcome, error) {
		plan, outcomes, effects, unable = r.UntilDecided(ctx, whole, c.test)
		return whole.OfWhole(plan, outcomes), nil
	})
	if err != nil {
		return err
	}
	if effects == nil {
		// Either trials are missing or failed, or the requested metrics cannot be compared.
		if failure := p.verdict(plan, folder, outcomes, f, ctx.Err() != nil); failure != nil {
			return failure
		}
		return verb.BadInput(unable)
	}
	if err := keep(folder, study.EffectsFile, effects.Document(), effectsPage(effects, buildVersion())); err != nil {
		return err
	}
	switch {
	case f.json:
		err = p.verbs().JSON(effects.Document())
	case !f.quiet:
		if err = verb.Failed(report.WriteEffectsText(p.out, effects, len(c.test.Metrics) == 0, c.all,
			p.style())); err == nil {
			fmt.Fprintf(p.out, "\nstudy directory: %s\n", folder.Path())
		}
	}
	if err != nil {
		return err
	}
	return p.verdict(plan, folder, outcomes, f, false)
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/internal/term"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/planner/drives"
	"farflash/planner/tco"
	"farflash/report"
	"farflash/result"
	"farflash/scenario/shape"
)

// planFlags holds the flags of farflash plan.
type planFlags struct {
	bound, asJSON        bool
	force                bool
	kept                 studyFlags // quiet and the cache flags
	explain, dir, traces string
	set                  []string
}

func (p *program) plan() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan PLAN",
		Short: "Plan which drives to buy, when, and where each workload goes",
		Long: `Place workloads on drives at the lowest total cost over the plan's horizon, within
limits of space, IOPS, latency and failure domains. The cost covers purchases when
they are needed, power, failures, growth and the replacement of worn-out drives.
objective: paper minimizes the cost per GB written over the drives' lives instead,
as minTCO does. The plan is a YAML file; workloads and drives may be CSV tables.

--bound proves how far the plan can be from the optimum. plan diff compares two
plans. -o writes report.html, placements.csv, drives.csv and workloads.csv. Ctrl-C
ends the search and prints the best plan found so far.

--from-traces replaces the plan's workloads by those measured from the traces in a
folder, and extrapolates daily writes from a trace's span. A trace shorter than a
day needs --force.`,
		Example: `  farflash plan init plan.yaml
  farflash plan plan.yaml --bound -o rack
  farflash plan plan.yaml --explain database
  farflash plan plan.yaml --from-traces traces/`,
		Args: verb.Arguments(1, 1, "a plan file, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.runPlan(cmd.Context(), args[0], &f)
		},
	}
	cmd.Flags().BoolVar(&f.bound, "bound", false, "prove a lower bound on the cost, and print the gap to it")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&f.kept.quiet, "quiet", false, "show no progress")
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "change a value of the plan: `path=value` (repeatable)")
	cmd.Flags().StringVar(&f.explain, "explain", "", "explain the placement of `WORKLOAD`")
	cmd.Flags().StringVarP(&f.dir, "output", "o", "", "write a report and tables to a new folder `DIR`")
	cmd.Flags().StringVar(&f.traces, "from-traces", "", "measure the workloads from the traces in `DIR`")
	cmd.Flags().StringVar(&f.kept.cache, "cache", "",
		"cache simulations of drives in `DIR` (default farflash in the user's cache folder)")
	cmd.Flags().BoolVar(&f.kept.noCache, "no-cache", false, "simulate drives again")
	verb.Must(cmd.RegisterFlagCompletionFunc("cache",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}))
	cmd.Flags().BoolVar(&f.force, "force", false, "accept traces shorter than a day")
	cmd.AddCommand(p.planInit(), p.planDiff(), p.planCluster())
	return cmd
}

func (p *program) planInit() *cobra.Command {
	table := false
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a plan to start from",
		Long: `Write a commented example plan to a new file or to standard output, or with --csv
a table of workloads for a spreadsheet (minTCO's table 4).`,
		Example: `  farflash plan init plan.yaml
  farflash plan init --csv workloads.csv`,
		Args: verb.Arguments(0, 1, "at most one file name"),
		RunE: func(_ *cobra.Command, args []string) error {
			text := []byte(drives.Template)
			if table {
				var b bytes.Buffer
				jobs := tco.Table4()
				for i := range jobs {
					// print the shares in the paper's decimals rather than as their nearest binary fractions
					jobs[i].Sequential, jobs[i].WriteShare = stats.Micro(jobs[i].Sequential),
						stats.Micro(jobs[i].WriteShare)
				}
				if err := tco.WriteWorkloads(&b, jobs); err != nil {
					return verb.Failed(err)
				}
				text = b.Bytes()
			}
			if len(args) == 0 || args[0] == "-" {
				_, err := p.data.Write(text)
				return verb.Failed(err)
			}
			return writeNew(args[0], text)
		},
	}
	cmd.Flags().BoolVar(&table, "csv", false, "write a table of workloads instead of a plan")
	return cmd
}

func (p *program) runPlan(ctx context.Context, name string, f *planFlags) error {
	src, err := p.planSource(name)
	if err != nil {
		return err
	}
	changes, err := parseChanges(f.set)
	if err != nil {
		return err
	}
	var jobs []tco.Workload
	if f.traces != "" {
		progress := p.progress("traces", "traces", f.kept.quiet, justEnds)
		var skipped []string
		var list []drives.Traced
		list, skipped, err = drives.FromTraces(f.traces, f.force,
			func(done, all int, _ string) { progress.Update(int64(done), int64(all), "") })
		progress.Stop()
		for _, s := range skipped {
			p.note("skipped: %s", s)
		}
		if len(skipped) > 0 {
			p.note("a trace that needs flags to be read is skipped too: convert it first with farflash trace " +
				"convert")
		}
		if err != nil {
			return verb.BadInput(err)
		}
		for i := range list {
			p.note("%s", tracedNote(&list[i]))
		}
		jobs = drives.JobsOf(list)
	}
	x, err := drives.Load(src, jobs, changes...)
	if err != nil {
		return verb.BadInput(err)
	}
	opts := drives.Options{Bound: f.bound, Sensitivity: f.dir != ""}
	if opts.Cache, err = p.planCache(x, &f.kept); err != nil {
		return err
	}
	o, err := x.Solve(ctx, opts)
	if err != nil {
		return planFailed(err)
	}
	var why *drives.Explanation
	if f.explain != "" {
		if why, err = o.Explain(f.explain); err != nil {
			return verb.Usagef("--explain: %w", err)
		}
	}
	if f.dir != "" {
		if err := p.writePlan(o, f, name); err != nil {
			return err
		}
	}
	switch {
	case f.asJSON:
		err = p.verbs().JSON(drives.Describe(o, why))
	case why != nil:
		err = report.WriteExplanationText(p.out, why, p.style())
	default:
		err = report.WritePlanText(p.out, o, p.style())
	}
	if err == nil && o.Interrupted {
		err = errors.New("interrupted; this is the best plan found so far")
	}
	if err == nil {
		err = o.Unserved()
	}
	return verb.Failed(err)
}

// planCache returns the cache for the simulations of a plan's drives, nil if there are no simulations or no cache.
func (p *program) planCache(x *drives.Plan, f *studyFlags) (drives.Cache, error) {
	if !x.Simulates() {
		return nil, nil
	}
	name, err := programName()
	if err != nil {
		return nil, verb.Failed(
			fmt.Errorf("cannot read the program's executable, which identifies results in the cache: %w", err))
	}
	c, err := p.openCache(f, name)
	if c == nil || err != nil {
		return nil, err
	}
	return c, nil
}

// tracedNote describes the evidence for a workload's daily writes.
func tracedNote(w *drives.Traced) string {
	within := "too short for a confidence interval"
	if !math.IsNaN(w.Within) {
		within = "+- " + term.Percent(w.Within) + " at 95 % confidence"
	}
	extrapolated := ""
	if w.Span < drives.LeastSpan {
		extrapolated = "extrapolated "
	}
	return fmt.Sprintf("%s: %s a day, %s; %sfrom a trace of %s", w.Name, term.Size(w.WriteRate*1e9), within,
		extrapolated, term.Seconds(float64(w.Span)*units.Day.Seconds()))
}

func (p *program) planSource(name string) (shape.Source, error) {
	if name == "-" {
		return p.find(name)
	}
	text, err := shape.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return shape.Source{},
			verb.Usagef("no file %s; farflash plan init %s writes an example", name, name)
	}
	return shape.Source{File: name, Text: text, Dir: filepath.Dir(name)}, verb.BadInput(err)
}

// writePlan writes a plan's folder, which must not exist yet.
func (p *program) writePlan(o *drives.Outcome, f *planFlags, name string) error {
	if _, err := os.Stat(f.dir); err == nil {
		return verb.Usagef("%s already exists and is not overwritten; name another", f.dir)
	}
	defer p.unfinished(result.Literal(f.dir))()
	if err := os.MkdirAll(f.dir, 0o777); err != nil {
		return verb.BadInput(err)
	}
	command := "farflash plan " + name
	if f.traces != "" {
		command += " --from-traces " + f.traces
		if f.force {
			command += " --force"
		}
	}
	for _, s := range f.set {
		command += " --set '" + s + "'"
	}
	if f.bound {
		command += " --bound"
	}
	command += " -o " + f.dir
	for _, x := range []struct {
		file  string
		write func(b *bytes.Buffer) error
	}{
		{"report.html", func(b *bytes.Buffer) error { return report.WritePlan(b, o, buildVersion(), command) }},
		{"drives.csv", func(b *bytes.Buffer) error { return o.WriteDrives(b) }},
		{"placements.csv", func(b *bytes.Buffer) error { return o.WritePlacements(b) }},
		{"workloads.csv", func(b *bytes.Buffer) error { return tco.WriteWorkloads(b, o.Plan.Jobs()) }},
	} {
		var b bytes.Buffer
		if err := x.write(&b); err != nil {
			return verb.Failed(fmt.Errorf("%s: %w", x.file, err))
		}
		if err := writeNew(filepath.Join(f.dir, x.file), b.Bytes()); err != nil {
			return err
		}
	}
	p.note("wrote report.html and tables to %s", f.dir)
	return nil
}

package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"farflash/result"
	"farflash/scenario"
)

// runFlags are those of every verb that simulates.
type runFlags struct {
	set    []string
	seed   uint64
	reps   int
	until  string
	dir    string
	json   bool
	quiet  bool
	jobs   int
	failIf []string
}

func (f *runFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.set, "set", nil, "change a value: `path=value` (repeatable), such as ssd.over_provisioning=12%")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of the random numbers")
	fl.IntVar(&f.reps, "reps", 1, "run `N` replicates with the seeds seed, seed+1, ... and report intervals")
	fl.StringVar(&f.until, "until", "", "end at a simulated time such as 2s, or when the latency is `steady`")
	fl.StringVarP(&f.dir, "output", "o", "", "write the run to `DIR`, which must not exist; without it runs/NAME-DIGEST")
	fl.BoolVar(&f.json, "json", false, "print result.json on standard output, and nothing else")
	fl.BoolVar(&f.quiet, "quiet", false, "no progress and no remarks")
	fl.IntVarP(&f.jobs, "jobs", "j", 0, "run `N` replicates at once; 0 is one a processor")
	fl.StringArrayVar(&f.failIf, "fail-if", nil, "exit with 3 if a `condition` holds (repeatable), such as 'read.latency.p99>500us'")
}

// open loads the scenario that an argument names, with the flags' changes.
func (f *runFlags) open(name string) (*scenario.Scenario, error) {
	var changes []scenario.Change
	for _, s := range f.set {
		c, err := scenario.ParseChange(s)
		if err != nil {
			return nil, usagef("--set: %w", err)
		}
		changes = append(changes, c)
	}
	if f.until != "" {
		changes = append(changes, scenario.Change{Path: "measure.until", Value: f.until})
	}
	s, err := scenario.Open(name, changes)
	return s, badInput(err)
}

func (p *program) run() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Simulate a scenario or a preset",
		Args:  arguments(1, 1, "a scenario file or a preset's name (farflash list shows them)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.open(args[0])
			if err != nil {
				return err
			}
			return p.runOne(cmd.Context(), s, &f)
		},
	}
	f.register(cmd)
	return cmd
}

func (p *program) runOne(ctx context.Context, s *scenario.Scenario, f *runFlags) error {
	watch := result.StartTiming()
	out, err := s.Run(ctx, scenario.Options{Seed: f.seed, Version: buildVersion()})
	if err != nil {
		return failed(err)
	}
	t := watch.Timing(int64(out.Events))
	d, err := createRun(f.dir, s.Name, out.Result.Digest)
	if err != nil {
		return badInput(err)
	}
	defer d.Discard()
	if err := d.WriteRun(result.Run{Result: out.Result, Scenario: s.Resolved(), Timing: &t}); err != nil {
		return failed(err)
	}
	if _, err := d.Commit(); err != nil {
		return failed(err)
	}
	if f.json {
		text, err := out.Result.Encode()
		if err != nil {
			return failed(err)
		}
		fmt.Fprintln(p.out, string(text))
	}
	return nil
}

// createRun begins the run directory.
func createRun(dir, name, digest string) (*result.Directory, error) {
	if dir != "" {
		return result.Create(dir)
	}
	return result.CreateNumbered(filepath.Join("runs", name+"-"+digest[:8]))
}

// Package calibratecli implements the calibrate verb of the command line, which fits model parameters to measurements.
// Like package cli, it only reads flags, calls the library and prints.
package calibratecli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"farflash/cli/verb"
	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/result"
	"farflash/scenario/shape"
	"farflash/study"
	"farflash/study/calibrate"
)

// Command returns the calibrate verb.
func Command(p *verb.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Fit a drive to measurements of a real one",
		Args:  verb.Unknown,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(fio(p))
	return cmd
}

// flags holds the flags of calibrate fio.
type flags struct {
	preset, out, cache string
	set                []string
	requests, jobs     int
	seed               uint64
	json, quiet        bool
}

func fio(p *verb.Program) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "fio RESULT.json",
		Short: "Fit a drive's timing to fio's results",
		Long: `Fit a preset drive's timing to fio results from a real drive: page read and
program times, and the rates of the channels and the host link. The jobs are
simulated, and these four parameters adjusted until rates, mean latencies and
percentiles up to the 99th agree. Size and geometry are the preset's; --set
changes them. Dies and planes set the parallelism and must match the real drive.

-o writes a scenario with the fitted drive. Tables compare measured and fitted
figures and give each parameter's standard error, or why it is not known: it may
have no effect beyond some limit, or only a combination of two may be known. A
parameter that affects no figure keeps its value.

Run fio with --output-format=json, with stonewall for consecutive jobs and
group_reporting for numjobs. Use random reads at depth 1 and at 32 or more, large
sequential reads, and sequential writes.`,
		Example: `  farflash calibrate fio result.json -o drive.yaml
  farflash calibrate fio result.json --preset qlc-enterprise --set ssd.geometry.channels=16 -o drive.yaml`,
		Args: verb.Arguments(1, 1, "one file written by fio --output-format=json"),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd, p, args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.preset, "preset", "tlc-enterprise", "fit the drive of this `preset` (see farflash list)")
	fl.StringArrayVar(&f.set, "set", nil,
		"change a drive parameter: `path=value`, such as ssd.geometry.channels=16 (repeatable)")
	fl.StringVarP(&f.out, "output", "o", "", "write the fitted drive as a scenario to a new `FILE`")
	fl.IntVar(&f.requests, "requests", 4000, "simulate each job until its slower direction has issued `N` requests")
	fl.Uint64Var(&f.seed, "seed", 1, "random seed")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.BoolVar(&f.quiet, "quiet", false, "no table, no progress and no remarks")
	fl.IntVarP(&f.jobs, "jobs", "j", 0, "run at most `N` simulations at once (default one per processor)")
	fl.StringVar(&f.cache, "cache", "",
		"cache results in `DIR` (default farflash in the user's cache folder)")
	return cmd
}

func run(cmd *cobra.Command, p *verb.Program, file string, f *flags) error {
	var changes []shape.Change
	for _, s := range f.set {
		c, err := shape.ParseChange(s)
		if err != nil {
			return verb.Usagef("--set: %w", err)
		}
		if !strings.HasPrefix(c.Path, "ssd.") {
			return verb.Usagef("--set: %s is not a key of the drive; the jobs are those of the results", c.Path)
		}
		changes = append(changes, c)
	}
	if f.out != "" {
		if _, err := os.Lstat(f.out); err == nil {
			return verb.Usagef("%s exists; choose another name for -o", f.out)
		}
	}
	r, err := os.Open(file)
	if err != nil {
		return verb.BadInput(err)
	}
	defer r.Close()
	measured, err := calibrate.Read(r, file)
	if err != nil {
		return verb.BadInput(err)
	}
	cache, err := p.Cache(f.cache, f.quiet)
	if err != nil {
		return err
	}
	runner := study.Runner{Workers: f.jobs, Version: p.Version, Cache: cache}
	progress := p.Progress("calibrate", "simulations", f.quiet, "Ctrl-C stops and keeps the best fit")
	defer progress.Stop()
	c, err := calibrate.New(measured,
		calibrate.Config{Preset: f.preset, Changes: changes, Requests: f.requests, Seed: f.seed, Run: runner.Run,
			Step: func(n int, loss float64) {
				progress.Update(int64(n), 0, fmt.Sprintf("fit error %.1f %%", 100*math.Sqrt(2*loss)))
			}})
	if err != nil {
		return verb.BadInput(err)
	}
	p.Keeping()
	failed := c.Fit(cmd.Context())
	progress.Stop()
	if failed != nil && !c.Interrupted {
		return verb.Failed(failed)
	}
	if f.out != "" {
		if err := result.WriteFile(f.out, []byte(c.Scenario())); err != nil {
			return verb.Failed(err)
		}
	}
	switch {
	case f.json:
		err = p.JSON(c.Document())
	case !f.quiet:
		err = verb.Failed(write(p, c))
	}
	switch {
	case err != nil:
		return err
	case errors.Is(failed, trial.ErrInterrupted):
		return verb.Failed(fmt.Errorf("interrupted after %d simulations; this is the best fit so far", c.Evaluations))
	case f.out != "" && !f.quiet:
		p.Note("wrote %s", f.out)
	}
	return nil
}

// write prints the measured and fitted figures and the conclusions about the parameters.
func write(p *verb.Program, c *calibrate.Calibration) error {
	fmt.Fprintf(p.Out, "%s fitted to %s (%s)\n\n", p.Style().Bold(c.Preset), c.Measured.File, c.Measured.Version)
	t := term.NewTable(term.Left("job"), term.Left("figure"), term.Right("measured"), term.Right("fitted"),
		term.Right("difference")).Keys(2)
	for _, f := range c.Fits {
		name := f.Op.String() + " " + f.Name
		if math.IsNaN(f.Simulated) {
			t.Row(f.Job, name, term.Quantity(f.Measured, f.Unit), "-", "")
			continue
		}
		t.Row(f.Job, name, term.Quantity(f.Measured, f.Unit), term.Quantity(f.Simulated, f.Unit),
			fmt.Sprintf("%+.1f %%", 100*f.Difference()))
	}
	if err := t.Write(p.Out, p.Style()); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	t = term.NewTable(term.Left("parameter"), term.Right("preset"), term.Right("fitted"),
		term.Left("uncertainty"))
	for i := range c.Parameters {
		x := &c.Parameters[i]
		t.Row(x.Path, x.Preset, x.Value, x.Uncertainty())
	}
	if err := t.Write(p.Out, p.Style()); err != nil {
		return err
	}
	controller := "model's controller takes no time: a real controller's\ntime is part of the read and program times"
	if c.Controller {
		controller = "controller's time is the preset's"
	}
	fmt.Fprintf(p.Out, "\n%d simulations of %s. The %s.\n", c.Evaluations, plural(len(c.Measured.Waves), "job"), controller)
	return nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

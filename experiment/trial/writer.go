package trial

import (
	"context"
	"errors"
	"fmt"

	"farflash/experiment"
	"farflash/policy/ratecontrol"
	"farflash/result"
	"farflash/scenario"
)

// Writer configures the contents of a run directory that the trial does not determine.
type Writer struct {
	Version     string // of the program
	CommandLine string // that requested the run
	Parallel    int    // parallel trials, recorded in timing.json
	// Page draws report.html; nil: none.
	Page func(*result.Run) (string, error)
	// Progress, if not nil, receives the progress of the run.
	Progress func(experiment.Progress)
	// Predict returns drives' predictors for rate controllers with model: auto.
	Predict func(*scenario.Drive, ratecontrol.Partition) (ratecontrol.Predictor, error)
}

// Write simulates a trial and fills its directory, which the caller commits or discards. An interrupted run is written,
// too.
func (w *Writer) Write(ctx context.Context, t Trial, d *result.Directory) (*result.Run, *experiment.Outcome, error) {
	watch := result.StartTiming()
	o := experiment.Options{Seed: t.Seed, Version: w.Version, Progress: w.Progress, Predict: w.Predict}
	var files tables
	if err := files.open(t.Scenario, d, &o); err != nil {
		return nil, nil, errors.Join(err, files.close())
	}
	out, err := Run(ctx, t.Scenario, o)
	if err = errors.Join(err, files.close()); err != nil {
		return nil, nil, err
	}
	timing := watch.Timing(int64(out.Events))
	timing.CommandLine, timing.Parallel = w.CommandLine, w.Parallel
	run := &result.Run{Result: out.Result, Scenario: t.Scenario.Resolved(), Timing: &timing,
		Citations: t.Scenario.Citations()}
	if w.Page != nil {
		if run.Report, err = w.Page(run); err != nil {
			return nil, nil, fmt.Errorf("report: %w", err)
		}
	}
	return run, out, d.WriteRun(*run)
}

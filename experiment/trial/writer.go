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

// Writer says what a run directory has beside what the trial decides.
type Writer struct {
	Version     string // of the program
	CommandLine string // that asked for the run
	Parallel    int    // trials that run at once, which timing.json tells
	// Page draws report.html; nil: there is none.
	Page func(*result.Run) (string, error)
	// Progress is told how far the run is; nil is nobody.
	Progress func(experiment.Progress)
	// Predict foresees drives for rate controllers that ask for model: auto.
	Predict func(*scenario.Drive) (ratecontrol.Predictor, error)
}

// Write simulates a trial and fills its directory, which the caller commits or discards. What was interrupted is
// written, too.
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

package reproduce

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/sim"
)

// variant is a run of a preset with changes. Its seed is added to that of the experiment.
type variant struct {
	label   string
	changes []shape.Change
	seed    uint64
	keep    bool // record completed chunks
	heed    bool // record congestion notifications that arrive at targets
	result  *result.Result
	chunks  []experiment.Chunk // in order of completion
	notices []sim.Time         // arrival times of notifications
}

// runTrials runs trials in parallel on all processors, and records their scenarios.
func runTrials(ctx context.Context, o Options, r *Report, preset string, trials []variant) error {
	src, err := scenario.Find(preset)
	if err != nil {
		return err
	}
	texts := make([]string, len(trials))
	var done atomic.Int64
	var tell sync.Mutex
	errs := trial.Parallel(ctx, len(trials), 0, func(i int) error {
		t := &trials[i]
		s, err := scenario.Parse(src, o.mutated(t.label, t.changes))
		if err != nil {
			return fmt.Errorf("%s: %w", t.label, err)
		}
		texts[i] = s.Resolved()
		run := experiment.Options{Seed: o.Seed + t.seed, Version: o.Version, Predict: o.Trainer.Predict(ctx)}
		if t.keep {
			run.Chunk = func(x experiment.Chunk) error {
				t.chunks = append(t.chunks, x)
				return nil
			}
		}
		if t.heed {
			run.Notified = func(at sim.Time) { t.notices = append(t.notices, at) }
		}
		out, err := trial.Run(ctx, s, run)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", t.label, err)
		case out.Interrupted:
			return context.Canceled
		}
		t.result = out.Result
		tell.Lock()
		defer tell.Unlock()
		if n := done.Add(1); o.Progress != nil {
			o.Progress(int(n), len(trials))
		}
		return nil
	})
	for i, err := range errs {
		if err != nil {
			return err
		}
		if i == 0 || trials[i].label != trials[i-1].label {
			r.Scenarios = append(r.Scenarios, Named{trials[i].label, texts[i]})
		}
	}
	return nil
}

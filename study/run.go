package study

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/policy/ratecontrol"
	"farflash/result"
	"farflash/scenario"
)

// Runner computes trials on this machine. Set its fields before Run and do not change them afterwards.
type Runner struct {
	// parallel trials, at most one per processor, which is also the meaning of 0: more would use memory and save no
	// time
	Workers int
	Version string  // of the program, for result.json
	Cache   *Cache  // nil: none
	Folder  *Folder // where results are stored; nil: none
	// Progress, if not nil, receives the progress of the study. Calls do not overlap.
	Progress func(Progress)
	// Warn, if not nil, receives errors that do not affect the results, such as a damaged cache entry, with their
	// consequence. Calls do not overlap.
	Warn func(error)
	// Predict returns the predictor of a drive for rate controllers with model: auto; nil: such trials fail.
	Predict func(*scenario.Drive, ratecontrol.Partition) (ratecontrol.Predictor, error)
	// Execute computes a trial; nil is trial.Simulate.
	Execute func(ctx context.Context, t trial.Trial, version string,
		progress func(experiment.Progress)) (*result.Result, error)
}

// Progress is the progress of a study.
type Progress struct {
	Done    int // trials that completed in this run
	Of      int // trials that had to be run
	Running int
	Begun   float64 // sum of the completed shares of running trials
	Failed  int
	Reused  int // found in the folder or the cache
}

// Run computes the trials and returns their outcomes, in order. Failed trials do not stop the others. When the context
// ends, running trials are stopped and stay pending, like those that have not started. A duplicate trial runs once.
func (r *Runner) Run(ctx context.Context, trials []trial.Trial) []Outcome {
	w := &work{Runner: r, out: make([]Outcome, len(trials))}
	first := map[string]int{}
	var unique []int
	for i, t := range trials {
		w.out[i] = Outcome{Trial: t, State: Pending}
		if _, twice := first[t.Name()]; !twice {
			first[t.Name()] = i
			unique = append(unique, i)
		}
	}
	var missing []int
	for _, i := range unique {
		if !w.find(i) {
			missing = append(missing, i)
		}
	}
	w.progress.Of = len(missing)
	trial.Parallel(ctx, len(missing), r.Workers, func(k int) error {
		w.compute(ctx, missing[k]) // it stores the error in the outcome
		return nil
	})
	for i, t := range trials {
		if k := first[t.Name()]; k != i {
			w.out[i] = w.out[k]
		}
	}
	return w.out
}

// work is one call of Run.
type work struct {
	*Runner
	out      []Outcome
	mu       sync.Mutex
	progress Progress
}

// warn passes on an error and its consequence.
func (w *work) warn(err error, so string) {
	if err == nil || w.Warn == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Warn(fmt.Errorf("%w; %s", err, so))
}

// report updates the progress and passes it on.
func (w *work) report(change func(*Progress)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.progress)
	if w.Progress != nil {
		w.Progress(w.progress)
	}
}

// find looks for a trial's result in the folder and in the cache.
func (w *work) find(i int) bool {
	t := w.out[i].Trial
	var r *result.Result
	var err error
	if w.Folder != nil {
		r, err = w.Folder.load(t)
		w.warn(err, "it is ignored")
	}
	if r == nil && w.Cache != nil {
		r, err = w.Cache.Get(t)
		w.warn(err, "it is ignored")
		if r != nil && w.Folder != nil {
			if err := w.Folder.keep(t, r); err != nil {
				w.out[i].State, w.out[i].Err = Failed, notKept(err)
				w.progress.Failed++
				return true
			}
		}
	}
	if r == nil {
		return false
	}
	w.out[i].State, w.out[i].Result, w.out[i].Reused = Done, slim(r), true
	w.progress.Reused++
	return true
}

// notKept is the error of a trial that was computed but could not be stored: a study resumes from its directory.
func notKept(err error) error { return fmt.Errorf("cannot store the result: %w", err) }

// compute runs a trial and stores its result.
func (w *work) compute(ctx context.Context, i int) {
	t := w.out[i].Trial
	w.report(func(p *Progress) { p.Running++ })
	share := 0.0
	going := func(x experiment.Progress) {
		w.report(func(p *Progress) {
			p.Begun += x.Share() - share
			share = x.Share()
		})
	}
	var r *result.Result
	var err error
	if w.Execute != nil {
		r, err = w.Execute(ctx, t, w.Version, going)
	} else {
		r, err = trial.Simulate(ctx, t, experiment.Options{Version: w.Version, Progress: going, Predict: w.Predict})
	}
	if err == nil && w.Cache != nil {
		w.warn(w.Cache.Put(t, r), "the result is not cached for other studies")
	}
	if err == nil && w.Folder != nil {
		if err = w.Folder.keep(t, r); err != nil {
			err = notKept(err)
		}
	}
	o := &w.out[i]
	switch {
	case err == nil:
		o.State, o.Result = Done, slim(r)
	case errors.Is(err, trial.ErrInterrupted) || ctx.Err() != nil && errors.Is(err, ctx.Err()):
	default:
		o.State, o.Err = Failed, err
	}
	w.report(func(p *Progress) {
		p.Running--
		p.Begun -= share
		if o.State != Pending {
			p.Done++
		}
		if o.State == Failed {
			p.Failed++
		}
	})
}

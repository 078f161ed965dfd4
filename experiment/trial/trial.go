// Package trial runs a scenario with a seed; the result depends only on these two.
//
// Its main type is Trial. Run simulates one and reports events to the receivers in its options; Simulate returns only
// the result, and converts a model's panic to an error; a Writer also writes the files of a run directory. Parallel
// computes several on this machine. Kinds lists the kinds of experiment, where new ones must be added.
//
// It leaves out conclusions from several trials (package study), and pages (the Writer is given a function that draws
// them).
package trial

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"farflash/experiment"
	"farflash/experiment/drive"
	"farflash/experiment/network"
	"farflash/experiment/objects"
	"farflash/experiment/system"
	"farflash/experiment/tiers"
	"farflash/experiment/traffic"
	"farflash/policy/ratecontrol"
	"farflash/result"
	"farflash/scenario"
)

// Kinds lists the kinds of experiment. A validated scenario is of exactly one.
func Kinds() []experiment.Kind {
	return []experiment.Kind{drive.Kind{}, network.Kind{}, system.Coupled{}, system.Turns{}, objects.Kind{},
		tiers.Kind{}, traffic.Kind{}}
}

// Trial is one scenario with one seed.
type Trial struct {
	Scenario *scenario.Scenario
	Digest   string // of the scenario; must be computed before trials run in parallel
	Seed     uint64
}

// Name identifies the trial; it names its directory and its cache entry.
func (t Trial) Name() string { return fmt.Sprintf("%s-%d", t.Digest, t.Seed) }

// ErrInterrupted is the error of a trial whose context ended.
var ErrInterrupted = errors.New("interrupted")

// Run simulates a scenario of any kind. When the context ends, the result covers the time until then and
// Outcome.Interrupted is set; if the models were not yet built, there is no result and the error is ErrInterrupted. The
// same scenario and seed yield the same result, byte for byte.
func Run(ctx context.Context, s *scenario.Scenario, o experiment.Options) (*experiment.Outcome, error) {
	for _, k := range Kinds() {
		if k.Is(s) {
			if err := model(s, &o); err != nil {
				return nil, err
			}
			out, err := experiment.Run(ctx, k, Vocabulary(), s, o)
			if ended(ctx, err) {
				return nil, ErrInterrupted
			}
			if err == nil && s.Measure.Alone && !out.Interrupted {
				err = alone(ctx, k, s, o, out)
			}
			return out, err
		}
	}
	return nil, fmt.Errorf("%s: no kind of experiment runs such a scenario", s.Name)
}

// ended reports whether an experiment's error is that the context ended before anything was simulated.
func ended(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// model loads the model file for rate controllers that need one.
func model(s *scenario.Scenario, o *experiment.Options) error {
	if !s.Foresees() || s.RateControl.Model == scenario.AutoModel {
		return nil
	}
	m, err := s.Model()
	o.Predict = func(*scenario.Drive, ratecontrol.Partition) (ratecontrol.Predictor, error) { return m, nil }
	return err
}

// noPredictor is a placeholder predictor for checks.
type noPredictor struct{}

func (noPredictor) Predict(*ratecontrol.Features, int) (read, write float64) { return 0, 0 }

// Check reports whether a scenario can be run: it builds the models like Run, without running them. That takes the time
// and memory of preparing drives and networks. Its errors have positions in the scenario.
func Check(ctx context.Context, s *scenario.Scenario, seed uint64) error {
	for _, k := range Kinds() {
		if k.Is(s) {
			return experiment.Check(ctx, k, s,
				experiment.Options{Seed: seed,
					Predict: func(*scenario.Drive, ratecontrol.Partition) (ratecontrol.Predictor, error) {
						return noPredictor{}, nil
					}})
		}
	}
	return fmt.Errorf("%s: no kind of experiment runs such a scenario", s.Name)
}

// Simulate runs a trial for its result. A violated law is an error, and so is a panic of a model, because one broken
// trial must not abort the others of a study. The options' seed is the trial's.
func Simulate(ctx context.Context, t Trial, o experiment.Options) (r *result.Result, err error) {
	defer func() {
		if x := recover(); x != nil {
			r, err = nil, fmt.Errorf(
				"panic: %v; this is a fault in the model, please report it with the scenario (at %s)", x,
				culprit(string(debug.Stack())))
		}
	}()
	o.Seed = t.Seed
	out, err := Run(ctx, t.Scenario, o)
	switch {
	case err != nil:
		return nil, err
	case out.Interrupted:
		return nil, ErrInterrupted
	}
	return out.Result, broken(out.Result)
}

// broken returns an error for the first violated law.
func broken(r *result.Result) error {
	for _, c := range r.Checks {
		if !c.OK {
			return fmt.Errorf("check failed: %s: %s", c.Name, c.Detail)
		}
	}
	return nil
}

// culprit returns the function that panicked, from a stack trace: the first line after that of panic itself.
func culprit(stack string) string {
	_, rest, found := strings.Cut(stack, "\npanic(")
	if !found {
		return "an unknown place"
	}
	lines := strings.Split(rest, "\n")
	if len(lines) < 3 {
		return "an unknown place"
	}
	name := lines[2]
	if i := strings.LastIndexByte(name, '('); i > 0 {
		name = name[:i]
	}
	return name
}

// Workers is the number of parallel trials if n are requested: at most one per processor, which is also the meaning of
// 0, because more would use memory and save no time.
func Workers(n int) int {
	if most := runtime.GOMAXPROCS(0); n <= 0 || n > most {
		return most
	}
	return n
}

// fault is a panic of one of several goroutines.
type fault struct {
	what  any
	stack []byte
}

// String returns the panic's message.
func (f *fault) String() string { return fmt.Sprint(f.what) }

// Stack returns its stack trace.
func (f *fault) Stack() []byte { return f.stack }

// Parallel calls f for 0 to n-1 on up to the given number of workers, starting in order, and returns their errors in
// order. Calls not started when the context ends get ErrInterrupted.
func Parallel(ctx context.Context, n, workers int, f func(i int) error) []error {
	errs := make([]error, n)
	var next atomic.Int64
	var broken atomic.Pointer[fault]
	var all sync.WaitGroup
	for range min(Workers(workers), n) {
		all.Go(func() {
			// Re-raise a panic in the caller, where it can be recovered.
			defer func() {
				if x := recover(); x != nil {
					broken.CompareAndSwap(nil, &fault{x, debug.Stack()})
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if ctx.Err() != nil || broken.Load() != nil {
					errs[i] = ErrInterrupted
					continue
				}
				errs[i] = f(i)
			}
		})
	}
	all.Wait()
	if x := broken.Load(); x != nil {
		panic(x)
	}
	return errs
}

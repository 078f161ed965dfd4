// Package trial runs a scenario with a seed, which nothing else decides the result of.
//
// Its main type is Trial. Run simulates one and tells whoever asked what goes on; Simulate wants the result alone,
// and has a model's panic for an error; a Writer has the files of a run directory written as well. Parallel computes
// several on this machine. Kinds lists the kinds of experiment: a new one has its line there.
//
// What it leaves out: what trials show together (package study), and pages (the Writer is given who draws them).
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

// Kinds lists the kinds of experiment. A scenario that was checked is of exactly one.
func Kinds() []experiment.Kind {
	return []experiment.Kind{drive.Kind{}, network.Kind{}, system.Coupled{}, system.Turns{}, objects.Kind{},
		tiers.Kind{}, traffic.Kind{}}
}

// Trial is one scenario with one seed.
type Trial struct {
	Scenario *scenario.Scenario
	Digest   string // of the scenario; it must have been computed before trials run side by side
	Seed     uint64
}

// Name tells the trial from all others; it is that of its directory and of its cache entry.
func (t Trial) Name() string { return fmt.Sprintf("%s-%d", t.Digest, t.Seed) }

// ErrInterrupted is what a trial ends with that its context ended.
var ErrInterrupted = errors.New("interrupted")

// Run simulates a scenario, whatever kind it is of. When the context ends, what was done until then is the result and
// Outcome.Interrupted is set; there is none, and ErrInterrupted, if the models were not even made. The same scenario
// and seed give the same result, to the byte.
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
	return nil, fmt.Errorf("%s: no kind of experiment is for such a scenario", s.Name)
}

// ended reports whether an experiment's error is that the context ended before anything was simulated.
func ended(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// model has a file predict for the rate controllers that ask for it.
func model(s *scenario.Scenario, o *experiment.Options) error {
	if !s.Foresees() || s.RateControl.Model == scenario.AutoModel {
		return nil
	}
	m, err := s.Model()
	o.Predict = func(*scenario.Drive) (ratecontrol.Predictor, error) { return m, nil }
	return err
}

// nobody stands for what predicts where nothing is run.
type nobody struct{}

func (nobody) Predict(*ratecontrol.Features, int) (read, write float64) { return 0, 0 }

// Check finds out whether a scenario can be run: it makes the models, as Run does before it lets anything happen.
// That takes the time and memory of preparing drives and networks. Its errors have their places in the scenario.
func Check(ctx context.Context, s *scenario.Scenario, seed uint64) error {
	for _, k := range Kinds() {
		if k.Is(s) {
			return experiment.Check(ctx, k, s,
				experiment.Options{Seed: seed,
					Predict: func(*scenario.Drive) (ratecontrol.Predictor, error) { return nobody{}, nil }})
		}
	}
	return fmt.Errorf("%s: no kind of experiment is for such a scenario", s.Name)
}

// Simulate runs a trial for its result. A law that does not hold at the end is an error, and so is a panic of a
// model: one broken trial must not take the others of a study with it. The options' seed is the trial's.
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

// broken returns an error for the first law that did not hold.
func broken(r *result.Result) error {
	for _, c := range r.Checks {
		if !c.OK {
			return fmt.Errorf("check failed: %s: %s", c.Name, c.Detail)
		}
	}
	return nil
}

// culprit finds the function that panicked in a stack's text: the first line after that of panic itself.
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

// Workers is how many trials are computed at once if n are asked for: at most one a processor, which 0 stands for as
// well, for more would take memory and save no time.
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

// String is what was the matter.
func (f *fault) String() string { return fmt.Sprint(f.what) }

// Stack is where it was.
func (f *fault) Stack() []byte { return f.stack }

// Parallel calls f for 0 to n-1, so many at once, beginning them in order, and returns their errors in order. Those
// that have not begun when the context ends get ErrInterrupted.
func Parallel(ctx context.Context, n, workers int, f func(i int) error) []error {
	errs := make([]error, n)
	var next atomic.Int64
	var broken atomic.Pointer[fault]
	var all sync.WaitGroup
	for range min(Workers(workers), n) {
		all.Go(func() {
			// A panic goes on where it can be caught: with whoever asked.
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

package reproduce

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"farflash/result"
	"farflash/scenario"
	"farflash/shape"
)

// trial is a run of a preset with changes. Its seed is added to that of the experiment.
type trial struct {
	label   string
	changes []shape.Change
	seed    uint64
	keep    bool // the chunks that were done
	result  *result.Result
	chunks  []scenario.Chunk // in the order in which they were done
}

// runTrials runs trials, as many at a time as there are processors, and takes down their scenarios.
func runTrials(ctx context.Context, o Options, r *Report, preset string, trials []trial) error {
	src, err := scenario.Find(preset)
	if err != nil {
		return err
	}
	errs := make([]error, len(trials))
	texts := make([]string, len(trials))
	var next, done atomic.Int64
	var tell sync.Mutex
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(trials)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(trials); i = int(next.Add(1)) - 1 {
				t := &trials[i]
				s, err := scenario.Parse(src, t.changes)
				if err != nil {
					errs[i] = fmt.Errorf("%s: %w", t.label, err)
					continue
				}
				texts[i] = s.Resolved()
				run := scenario.Options{Seed: o.Seed + t.seed, Version: o.Version}
				if t.keep {
					run.Chunk = func(x scenario.Chunk) error {
						t.chunks = append(t.chunks, x)
						return nil
					}
				}
				out, err := s.Run(ctx, run)
				switch {
				case err != nil:
					errs[i] = fmt.Errorf("%s: %w", t.label, err)
				case out.Interrupted:
					errs[i] = context.Canceled
				default:
					t.result = out.Result
				}
				tell.Lock()
				if n := done.Add(1); o.Progress != nil {
					o.Progress(int(n), len(trials))
				}
				tell.Unlock()
			}
		})
	}
	all.Wait()
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

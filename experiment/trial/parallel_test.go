package trial_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"farflash/experiment/trial"
)

// TestParallel verifies that each call is made once, that errors are in order, and that parallelism is limited by the
// workers and the processors.
func TestParallel(t *testing.T) {
	for _, x := range []struct{ n, workers int }{{0, 3}, {1, 0}, {5, 1}, {100, 2}, {100, 1000}} {
		calls := make([]atomic.Int64, x.n)
		var running, most atomic.Int64
		errs := trial.Parallel(t.Context(), x.n, x.workers, func(i int) error {
			now := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			calls[i].Add(1)
			if i%3 == 1 {
				return fmt.Errorf("of %d", i)
			}
			return nil
		})
		if len(errs) != x.n || int(most.Load()) > trial.Workers(x.workers) {
			t.Errorf("%+v: %d errors, %d at once", x, len(errs), most.Load())
		}
		for i := range calls {
			if calls[i].Load() != 1 || (errs[i] != nil) != (i%3 == 1) ||
				errs[i] != nil && errs[i].Error() != fmt.Sprintf("of %d", i) {
				t.Errorf("%+v: %d is called %d times, %v", x, i, calls[i].Load(), errs[i])
			}
		}
	}
	procs := runtime.GOMAXPROCS(0)
	defer func() {
		if now := runtime.GOMAXPROCS(0); now != procs {
			t.Errorf("there are %d processors, of %d", now, procs)
		}
	}()
	for n, want := range map[int]int{-1: runtime.GOMAXPROCS(0), 0: runtime.GOMAXPROCS(0), 1: 1,
		1 << 20: runtime.GOMAXPROCS(0)} {
		if got := trial.Workers(n); got != want {
			t.Errorf("%d asked for are %d, not %d", n, got, want)
		}
	}
}

// TestParallelEnds verifies that calls not started when the context ends are interrupted, and others keep their
// results.
func TestParallelEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	errs := trial.Parallel(ctx, 6, 1, func(i int) error {
		if i == 2 {
			cancel()
		}
		return nil
	})
	for i, err := range errs {
		if errors.Is(err, trial.ErrInterrupted) != (i > 2) || i <= 2 && err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestParallelPanic verifies that a panic of one of several goroutines is re-raised in the caller, and that the others
// finish.
func TestParallelPanic(t *testing.T) {
	defer func() {
		x := recover()
		if fmt.Sprint(x) != "three" {
			t.Errorf("%v", x)
		}
		if f, ok := x.(interface{ Stack() []byte }); !ok || len(f.Stack()) == 0 {
			t.Errorf("%T has no stack", x)
		}
	}()
	trial.Parallel(t.Context(), 8, 2, func(i int) error {
		if i == 3 {
			panic("three")
		}
		return nil
	})
	t.Error("there is no panic")
}

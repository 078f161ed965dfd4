package study

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/numeric/stats"
	"farflash/result"
)

// TestUntilDecided verifies that a large effect ends a comparison at its first look and a null effect at its last, that
// no trial runs twice, and that trials in the directory do not run again.
func TestUntilDecided(t *testing.T) {
	for _, c := range []struct {
		factor       float64
		reps         int
		decided      bool
		verdict      Verdict
		most, looked int
	}{{2, 5, true, Worse, 20, 5}, {1, 12, false, "", 12, 3}} {
		m := madeUp{study: 77, metric: "ssd.waf", factor: c.factor}
		var runs atomic.Int64
		execute := func(ctx context.Context, x trial.Trial, v string, p func(experiment.Progress)) (*result.Result,
			error) {
			runs.Add(1)
			return m.execute(ctx, x, v, p)
		}
		test := DefaultTest()
		test.Metrics = []string{"ssd.waf"}
		test.Looks = stats.Looks(c.most)
		test.Relevant = 1e-6
		p := madeUpPlan(c.most, false)
		r := Runner{Execute: execute}
		first, out, x, err := r.UntilDecided(t.Context(), p, test)
		if err != nil {
			t.Fatal(err)
		}
		if first.Reps != c.reps || len(out) != 2*c.reps || int(runs.Load()) != 2*c.reps || x.Decided() != c.decided ||
			len(x.Seeds) != c.reps {
			t.Errorf("x%v: %d replicates, %d outcomes, %d runs: %+v", c.factor, first.Reps, len(out), runs.Load(), x)
		}
		if e := &x.Pairs[0].Effects[0]; c.verdict != "" && e.Verdict != c.verdict {
			t.Errorf("x%v: %+v", c.factor, e)
		}
		d := x.Document()
		if d.Interrupted || d.Decided != c.decided || !slices.Equal(d.Looks, test.Looks) {
			t.Errorf("x%v: %+v", c.factor, d)
		}
		// In the whole plan the remaining trials are pending.
		whole := p.OfWhole(first, out)
		pending := 0
		for k, o := range whole {
			if o.Name() != p.Trials()[k].Name() {
				t.Fatalf("outcome %d is of %s, not %s", k, o.Name(), p.Trials()[k].Name())
			}
			if o.State == Pending {
				pending++
			}
		}
		if pending != 2*(c.most-c.reps) {
			t.Errorf("x%v: %d are pending", c.factor, pending)
		}
		// p values account for all planned looks.
		alone := test
		alone.Looks = nil
		y, err := Compare(first, out, alone)
		if err != nil {
			t.Fatal(err)
		}
		if e, f := &x.Pairs[0].Effects[0],
			&y.Pairs[0].Effects[0]; e.Adjusted != min(1, float64(len(test.Looks))*f.Adjusted) ||
			!(e.Effect.Half > f.Effect.Half) {
			t.Errorf("%+v with looks, %+v without", e, f)
		}
	}
}

// TestUndecidedEnds verifies that interruptions and errors end it with the trials completed so far.
func TestUndecidedEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := madeUp{study: 78, metric: "ssd.waf", factor: 1}
	var runs atomic.Int64
	r := Runner{Workers: 1,
		Execute: func(ctx context.Context, x trial.Trial, v string, p func(experiment.Progress)) (*result.Result,
			error) {
			if runs.Add(1) == 13 { // during the second look
				cancel()
				return nil, trial.ErrInterrupted
			}
			return m.execute(ctx, x, v, p)
		}}
	test := DefaultTest()
	test.Looks, test.Relevant = stats.Looks(20), 1e-6
	first, out, x, err := r.UntilDecided(ctx, madeUpPlan(20, false), test)
	done := 0
	for _, o := range out {
		if o.State == Done {
			done++
		}
	}
	if err != nil || x != nil || first.Reps != 7 || done != 12 {
		t.Errorf("%d replicates, %d done, %+v, %v", first.Reps, done, x, err)
	}
	for _, looks := range [][]int{nil, {5, 7}, {7, 5, 20}} {
		test.Looks = looks
		if _, _, _, err := r.UntilDecided(t.Context(), madeUpPlan(20, false), test); err == nil ||
			!strings.Contains(err.Error(), "do not end with all 20") {
			t.Errorf("looks after %v: %v", looks, err)
		}
	}
	r.Execute = func(context.Context, trial.Trial, string, func(experiment.Progress)) (*result.Result, error) {
		return nil, errors.New("out of paper")
	}
	test.Looks = stats.Looks(20)
	if first, _, x, err := r.UntilDecided(t.Context(), madeUpPlan(20, false), test); err == nil || x != nil ||
		first.Reps != 5 {
		t.Errorf("trials that fail: %+v, %v", x, err)
	}
}

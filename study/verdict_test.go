package study

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/result"
)

// TestVerdicts verifies the verdicts at the limits of their definitions: a difference is one whose corrected p value is
// below 1 minus the level, and an effect matters from the relevant one on.
func TestVerdicts(t *testing.T) {
	test := DefaultTest()
	limit := 1 - test.Level
	for _, c := range []struct {
		adjusted, mean, half float64 // of a metric whose value in A is 100, so that 1 is relevant
		better               result.Direction
		want                 Verdict
	}{
		{limit, 0.5, 9, result.LowerIsBetter, NoEvidence}, {limit, 1, 9, result.LowerIsBetter, TooFew},
		{limit, -1, 9, result.LowerIsBetter, TooFew}, {limit, -0.99, 9, result.LowerIsBetter, NoEvidence},
		{limit, 0.5, 0.4, result.LowerIsBetter, NoEvidence}, // within the relevant effect
		{limit - 1e-9, 5, 4, result.LowerIsBetter, Worse}, {limit - 1e-9, 5, 4, result.HigherIsBetter, Better},
		{limit - 1e-9, -5, 4, result.LowerIsBetter, Better}, {limit - 1e-9, -5, 4, result.HigherIsBetter, Worse},
		{limit - 1e-9, -5, 4, result.NeitherBetter, Lower}, {limit - 1e-9, 5, 4, result.NeitherBetter, Higher},
	} {
		e := Effect{Adjusted: c.adjusted, Better: c.better}
		e.A, e.Effect.Mean, e.Effect.Half, e.Effect.N = 100, c.mean, c.half, 10
		if test.call(&e); e.Verdict != c.want {
			t.Errorf("%+v: %s", c, e.Verdict)
		}
		if within := c.half < 1; e.Within != within {
			t.Errorf("%+v: within the relevant effect %t", c, e.Within)
		}
	}
}

// TestIdentity verifies which series are aliases: those that are proportional with a positive factor, whatever their
// size and unit, and of few distinct values only equal ones of one unit.
func TestIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfNDistinct(rapid.Float64Range(0.001, 1000), 3, 20, rapid.ID[float64]).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "of A")
		factor := rapid.SampledFrom([]float64{1.0 / 4096, 0.5, 2, 4096, -1, -4096}).Draw(t, "factor")
		scaled := make([]float64, len(values))
		for i, v := range values {
			scaled[i] = factor * v
		}
		a, b := identity("us", values[:cut], values[cut:]), identity("B/s", scaled[:cut], scaled[cut:])
		if (a == b) != (factor > 0) {
			t.Fatalf("%v and %v times that: %s and %s", values, factor, a, b)
		}
		few, same, other := []float64{values[0], values[1]}, []float64{values[0], values[1]},
			[]float64{2 * values[0], 2 * values[1]}
		is := identity("us", few, few)
		if is == identity("us", other, other) || is == identity("B", few, few) || is != identity("us", same, same) {
			t.Fatalf("two values, %v", few)
		}
	})
}

// TestNotRun verifies that a sweep says of each point how many of its trials have not run.
func TestNotRun(t *testing.T) {
	p := sweepOf(t, 3, "ssd.timing.read_latency=40us,80us")
	f := &fake{}
	out := (&Runner{Version: "v", Execute: f.execute}).Run(t.Context(), p.Trials())
	out[1].State, out[1].Result = Pending, nil
	out[2].State, out[2].Result = Pending, nil
	out[3].State, out[3].Result, out[3].Err = Failed, nil, errors.New("out of paper")
	c, err := Respond(p, out, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][3]int{{1, 2, 0}, {2, 0, 1}} { // done, pending, failed
		if x := &c.Points[i]; x.Done != want[0] || x.Pending != want[1] || len(x.Failed) != want[2] {
			t.Errorf("%s: %d done, %d pending, %v failed", x.Label, x.Done, x.Pending, x.Failed)
		}
	}
}

// TestSearchElsewhere verifies that a search does not begin in a directory with other files.
func TestSearchElsewhere(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenSearch(dir, Search{Name: "a", Digest: "00", Seed: 1, Reps: 1}, Program{Version: "v", Name: "p"})
	if err == nil || f != nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v, %v", f, err)
	}
}

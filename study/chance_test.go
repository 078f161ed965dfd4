package study

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/golden"
	"farflash/internal/patience"
	"farflash/result"
)

var update = flag.Bool("update", false, "write tables of docs/validation/stats.md, with FARFLASH_LONG")

// TestNothing compares a design with itself, by real simulations.
func TestNothing(t *testing.T) {
	p, err := NewComparison([]Arm{{Label: "a", Source: source()}, {Label: "b", Source: source()}}, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	out := (&Runner{Version: "v"}).Run(t.Context(), p.Trials())
	x, err := Compare(p, out, DefaultTest())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range x.Pairs[0].Effects {
		if e.Verdict != Identical || e.Effect.Mean != 0 || e.More != 0 {
			t.Errorf("%+v", e)
		}
	}
	if x.Pairs[0].Family != 0 || x.Pairs[0].Explored != 0 || Differing(x.Pairs[0].Effects) != 0 ||
		len(x.Pairs[0].Effects) < 20 {
		t.Errorf("%+v", x.Pairs[0])
	}
	// Only the warnings that the first arm lacks can explain that nothing differs.
	for k, s := range p.slots() {
		r := *out[k].Result
		if r.Warnings = []string{"of both"}; s.point == 1 {
			r.Warnings = []string{"of both", "of one"}
		}
		out[k].Result = &r
	}
	if x, err = Compare(p, out, DefaultTest()); err != nil || !slices.Equal(x.Pairs[0].Remarks, []string{"of one"}) {
		t.Errorf("%v, %v", x.Pairs[0].Remarks, err)
	}
}

// TestNothingButSeeds compares a design with itself on other seeds, by real simulations: a difference in any of its
// metrics is found in no more comparisons than the level permits, however few the replicates are. The metrics include
// counts that are small and often equal.
func TestNothingButSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("six hundred runs")
	}
	const comparisons = 150
	replicates := []int{2}
	if patience.Long(t) {
		replicates = append(replicates, 3, 6)
	}
	lines := golden.Head("replicates of each", ">comparisons", ">in which a difference was found")
	for _, reps := range replicates {
		both, err := NewComparison([]Arm{{Label: "a", Source: source()}, {Label: "b", Source: source()}}, 1, reps)
		if err != nil {
			t.Fatal(err)
		}
		var trials []trial.Trial
		for i := range 2 * reps * comparisons {
			trials = append(trials,
				trial.Trial{Scenario: both.Points[0].Scenario, Digest: both.Points[0].Digest, Seed: uint64(i)})
		}
		out := (&Runner{Version: "v"}).Run(t.Context(), trials)
		found := 0
		for c := range comparisons {
			of := out[2*reps*c : 2*reps*(c+1)]
			arms := make([]Outcome, 0, len(of))
			for _, s := range both.slots() {
				arms = append(arms, of[s.point*reps+s.rep])
			}
			x, err := Compare(both, arms, DefaultTest())
			if err != nil {
				t.Fatal(err)
			}
			if Differing(x.Pairs[0].Primary()) > 0 {
				found++
			}
		}
		t.Logf("%d replicates: a difference in %d of %d comparisons", reps, found, comparisons)
		if found > 14 { // 7.5 are expected at most, with a deviation of 2.7
			t.Errorf("%d replicates: a design differs from itself in %d of %d comparisons", reps, found, comparisons)
		}
		lines = append(lines, golden.Row(fmt.Sprint(reps), fmt.Sprint(comparisons), fmt.Sprint(found)))
	}
	const page, table = "../docs/validation/stats.md", "nothing-but-seeds"
	if patience.Long(t) {
		golden.Table(t, page, table, "seeds 0 to 1799", lines, *update)
	} else if held := golden.Lines(t, page, table); !slices.Equal(held[:min(len(lines), len(held))], lines) {
		t.Errorf("%s has %q, and it is %q", page, held, lines)
	}
}

// TestFalsePositives compares many pairs of designs that differ only by chance: a difference is found in about 2.5 % of
// the comparisons, of the 5 % permitted, for one metric or for twenty, and the true difference is in the corresponding
// share of the intervals. A design that really differs is found, although the seeds matter far more.
func TestFalsePositives(t *testing.T) {
	const reps = 8
	var names []string
	for _, d := range trial.Vocabulary().Metrics.All() {
		if len(names) < 20 && d.Unit == "us" && !strings.Contains(d.Name, "[") {
			names = append(names, d.Name)
		}
	}
	for _, c := range []struct {
		metrics     int
		shift       float64 // of the first metric, in deviations of the differences
		least, most float64
	}{{1, 0, 0.015, 0.04}, {20, 0, 0.01, 0.04}, {1, 3, 0.99, 1}, {20, 4, 0.99, 1}} {
		// For real effects, or with twenty metrics, fewer comparisons suffice.
		comparisons := 2000
		if c.metrics > 1 || c.shift > 0 {
			comparisons = 500
		}
		g := rand.New(rand.NewPCG(7, uint64(c.metrics)))
		found, covered := 0, 0
		shift := c.shift * math.Sqrt2
		for range comparisons {
			both := make([]float64, reps) // the effect of the seed on both designs
			for i := range both {
				both[i] = 100 * g.NormFloat64()
			}
			arm := func(shift float64) func(*result.Result, int) {
				return func(r *result.Result, rep int) {
					for i, name := range names[:c.metrics] {
						v := 1000 + both[rep] + g.NormFloat64()
						if i == 0 {
							v += shift
						}
						r.Set(name, v)
					}
				}
			}
			p, out := armsOf(reps, arm(0), arm(shift))
			test := DefaultTest()
			test.Metrics = names[:c.metrics]
			x, err := Compare(p, out, test)
			if err != nil {
				t.Fatal(err)
			}
			if Differing(x.Pairs[0].Effects) > 0 {
				found++
			}
			for _, e := range x.Pairs[0].Effects {
				truth := 0.0
				if e.Name == names[0] {
					// the mean of 1/x is a hundredth above that of x, which has a deviation of a tenth
					truth = shift / 1000 * 1.01
				}
				if alone := e.At(0.95); math.Abs(alone.Mean-truth) <= alone.Half {
					covered++
				}
				if e.Differs() != (math.Abs(e.Effect.Mean) > e.Effect.Half) {
					t.Fatalf("the interval says other than the verdict: %+v", e)
				}
			}
		}
		share, inside := float64(found)/float64(comparisons), float64(covered)/float64(comparisons*c.metrics)
		t.Logf("%d metrics, a shift of %v: a difference in %.4f of the comparisons, the truth in %.4f of the intervals", c.metrics, c.shift, share, inside)
		if share < c.least || share > c.most {
			t.Errorf("%d metrics, a shift of %v: a difference is found in %v of the comparisons", c.metrics, c.shift,
				share)
		}
		if math.Abs(inside-0.975) > 0.01 {
			t.Errorf("%d metrics, a shift of %v: the true difference is in %v of the intervals", c.metrics, c.shift,
				inside)
		}
	}
}

// TestAlike verifies that effects without spread are certain if the design is deterministic, and otherwise significant
// from a certain number of equal signs on.
func TestAlike(t *testing.T) {
	for _, c := range []struct {
		reps    int
		varies  bool // the metric depends on the seed
		verdict Verdict
		more    int
	}{{2, false, Worse, 0}, {2, true, TooFew, 4}, {5, true, TooFew, 1}, {6, true, Worse, 0}} {
		arm := func(shift float64) func(*result.Result, int) {
			return func(r *result.Result, rep int) {
				v := 10.0
				if c.varies {
					v += float64(rep)
				}
				r.Set("fabric.drops", v*(1+shift))
			}
		}
		p, out := armsOf(c.reps, arm(0), arm(0.3))
		x, err := Compare(p, out, DefaultTest())
		if err != nil {
			t.Fatal(err)
		}
		if e := x.Pairs[0].Effects[0]; e.Verdict != c.verdict || e.More != c.more ||
			math.Abs(e.Effect.Mean-math.Log(1.3)) > 1e-12 {
			t.Errorf("%+v: %+v", c, e)
		}
	}
}

// TestFamilySize verifies that a metric that is significant alone needs more runs among twenty.
func TestFamilySize(t *testing.T) {
	names := []string{"fabric.drops"}
	for _, d := range trial.Vocabulary().Metrics.All() {
		if len(names) < 20 && d.Unit == "us" && !strings.Contains(d.Name, "[") {
			names = append(names, d.Name)
		}
	}
	deltas := []float64{2, 4, 2.5, 5, -0.2, 3} // of the logarithms t is 3.9 with 5 degrees, p = 0.012
	arm := func(b float64) func(*result.Result, int) {
		return func(r *result.Result, rep int) {
			r.Set(names[0], 10+b*deltas[rep])
			for i, name := range names[1:] {
				r.Set(name, 100+b*float64((rep*(7+i)+i)%11-5))
			}
		}
	}
	p, out := armsOf(len(deltas), arm(0), arm(1))
	for _, c := range []struct {
		metrics []string
		verdict Verdict
	}{{names, TooFew}, {names[:1], Worse}} {
		test := DefaultTest()
		test.Metrics = c.metrics
		x, err := Compare(p, out, test)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range x.Pairs[0].Primary() {
			if e.Name == names[0] && (e.Verdict != c.verdict || (e.More > 0) != (c.verdict == TooFew)) {
				t.Errorf("%v: %+v", c.metrics, e)
			}
		}
	}
}

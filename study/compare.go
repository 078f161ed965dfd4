package study

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"farflash/result"
	"farflash/stats"
	"farflash/trial"
)

// Test says how arms are compared.
type Test struct {
	Level    float64  // of the intervals, and 1 minus the significance that verdicts are given at
	Power    float64  // with which further replicates are to find what there is
	Relevant float64  // the smallest effect that matters, as a share of the first arm's mean
	Metrics  []string // which to compare, with * and ? as in file names; empty is all
}

// DefaultTest is 95 % intervals, a power of 80 %, effects from 1 % on, all metrics.
func DefaultTest() Test { return Test{Level: 0.95, Power: 0.8, Relevant: 0.01} }

// Verdict is what a comparison says of one metric.
type Verdict string

// The verdicts. A metric without a direction is higher or lower, not better or worse.
const (
	Identical  Verdict = "identical in every replicate"
	NoEvidence Verdict = "no evidence of a difference"
	Better     Verdict = "better"
	Worse      Verdict = "worse"
	Higher     Verdict = "higher"
	Lower      Verdict = "lower"
)

// Effects is how arms compare with the first.
type Effects struct {
	Test
	Name string
	Arms []ArmSummary
	// Seeds are those that every arm has a result for; the others are left out of all.
	Seeds []uint64
	Pairs []Pair // one for each arm but the first
}

// ArmSummary is an arm and what became of its replicates.
type ArmSummary struct {
	Label    string
	Digest   string
	Scenario string // resolved; may be empty
	Done     int
	Pending  int // not run
	Failed   []Failure
}

// Failure is a trial that failed.
type Failure struct {
	Seed uint64 `json:"seed"`
	Err  string `json:"error"`
}

// Pair is an arm beside the first.
type Pair struct {
	Arm     int // in Arms
	Effects []Effect
	// Family is how many metrics were tested, which Holm's correction is for: all that both arms have and that differ in some
	// replicate. Each arm has a family of its own.
	Family int
	// Agreed is how many of the metrics that differ also do so by the signed-rank test, without correction.
	Agreed int
	// OnlyA and OnlyB are metrics that one of the arms does not have in every replicate.
	OnlyA, OnlyB []string
}

// Differing is how many metrics differ beyond chance.
func (p *Pair) Differing() int {
	n := 0
	for i := range p.Effects {
		if p.Effects[i].Differs() {
			n++
		}
	}
	return n
}

// Effect is how a metric differs from the first arm.
type Effect struct {
	Name, Unit, Help string
	Better           result.Direction // which of two values is better
	stats.Paired
	Holm         float64 // the t test's p value, corrected
	Wilcoxon     float64 // p value of the signed-rank test
	WilcoxonHolm float64 // the same, corrected
	Verdict      Verdict
	// Doubtful marks a difference by the t test that the signed-rank test would not call one even without correction, though
	// there are replicates enough for it: a few of them, far out, may carry the mean.
	Doubtful bool
	// Within marks a metric whose whole interval is closer to 0 than the smallest effect that matters: if there is evidence of
	// a difference it is one that does not matter, and if there is none more replicates would not change what follows.
	Within bool
	// Alone marks a metric without evidence of a difference that would have it if it were the only one that is tested.
	Alone bool
	// More is how many further replicates would settle a metric without evidence; -1 is more than anyone runs. 0 is settled.
	More int
}

// Differs tells whether there is evidence of a difference.
func (e *Effect) Differs() bool { return e.Verdict != Identical && e.Verdict != NoEvidence }

// Relative returns the effect and its interval's ends as shares of the first arm's mean, and false if that is 0.
func (e *Effect) Relative() (mean, low, high float64, ok bool) {
	if e.A == 0 {
		return 0, 0, 0, false
	}
	a := math.Abs(e.A)
	return e.Effect.Mean / a, e.Effect.Low() / a, e.Effect.High() / a, true
}

// Compare tests what the outcomes of a comparison show. It needs two seeds for which all arms have a result.
func Compare(p *Plan, outcomes []Outcome, test Test) (*Effects, error) {
	x := &Effects{Test: test, Name: p.Name}
	byArm := make([][]*result.Result, len(p.Points)) // by replicate
	for _, point := range p.Points {
		a := ArmSummary{Label: point.Label, Digest: point.Digest}
		if point.Scenario != nil {
			a.Scenario = point.Scenario.Resolved()
		}
		x.Arms = append(x.Arms, a)
	}
	for i := range byArm {
		byArm[i] = make([]*result.Result, p.Reps)
	}
	for k, s := range p.slots() {
		o := &outcomes[k]
		switch o.State {
		case Done:
			byArm[s.point][s.rep] = o.Result
			x.Arms[s.point].Done++
		case Failed:
			x.Arms[s.point].Failed = append(x.Arms[s.point].Failed, Failure{o.Seed, o.Err.Error()})
		default:
			x.Arms[s.point].Pending++
		}
	}
	var reps []int
	for r := range p.Reps {
		if !slices.ContainsFunc(byArm, func(of []*result.Result) bool { return of[r] == nil }) {
			reps = append(reps, r)
			x.Seeds = append(x.Seeds, p.Seed+uint64(r))
		}
	}
	if len(reps) < 2 {
		return nil, fmt.Errorf("%d of %d seeds have a result in every arm; a comparison takes two", len(reps), p.Reps)
	}
	for i := range byArm {
		kept := make([]*result.Result, len(reps))
		for k, r := range reps {
			kept[k] = byArm[i][r]
		}
		byArm[i] = kept
	}
	for i := 1; i < len(byArm); i++ {
		pair, err := test.pair(byArm[0], byArm[i])
		if err != nil {
			return nil, err
		}
		pair.Arm = i
		x.Pairs = append(x.Pairs, pair)
	}
	return x, nil
}

// ErrNoMetric is what Compare's error wraps when no metric has one of the names that were asked for.
var ErrNoMetric = errors.New("no metric that the arms have matches")

// wanted tells whether a metric is compared. What the simulator did, rather than what it simulated, is not.
func (t *Test) wanted(name string) bool {
	if strings.HasPrefix(name, "sim.") {
		return false
	}
	return Matches(t.Metrics, name)
}

// Matches tells whether a name is one of those asked for; no patterns ask for all. In a pattern * stands for any text and ?
// for one character.
func Matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		// Indices of components are no character classes here.
		ok, err := path.Match(strings.ReplaceAll(p, "[", `\[`), name)
		return err == nil && ok
	})
}

// values returns a metric over replicates, false if one of them does not have it.
func values(results []*result.Result, name string) ([]float64, bool) {
	out := make([]float64, 0, len(results))
	for _, r := range results {
		m, ok := r.Metric(name)
		if !ok {
			return nil, false
		}
		out = append(out, m.Value)
	}
	return out, true
}

// unvaried reports whether no metric of an arm depends on the seed: then chance has no part in it.
func unvaried(results []*result.Result) bool {
	for _, m := range results[0].Metrics {
		of, ok := values(results, m.Name)
		if !ok || slices.Min(of) != slices.Max(of) {
			return false
		}
	}
	return true
}

// pair compares an arm with the first.
func (t *Test) pair(a, b []*result.Result) (Pair, error) {
	var p Pair
	var family []int // of p.Effects
	var ranked []int // differences that are not 0
	var pt, pw []float64
	words := trial.Vocabulary().Metrics
	certain := unvaried(a) && unvaried(b)
	for _, m := range a[0].Metrics {
		if !t.wanted(m.Name) {
			continue
		}
		x, okA := values(a, m.Name)
		y, okB := values(b, m.Name)
		if !okA || !okB {
			if okA {
				p.OnlyA = append(p.OnlyA, m.Name)
			}
			continue
		}
		paired, err := stats.PairedT(x, y, t.Level)
		if err != nil {
			return p, fmt.Errorf("%s: %w", m.Name, err)
		}
		if certain && x[0] != y[0] {
			paired.P = 0
		}
		differences := make([]float64, len(x))
		for i := range x {
			differences[i] = y[i] - x[i]
		}
		rank, err := stats.Wilcoxon(differences)
		if err != nil {
			return p, fmt.Errorf("%s: %w", m.Name, err)
		}
		e := Effect{Name: m.Name, Unit: m.Unit, Help: m.Help, Better: words.Better(m.Name), Paired: paired, Holm: 1, Wilcoxon: rank.P, WilcoxonHolm: 1, Verdict: Identical}
		if rank.N > 0 {
			family, ranked = append(family, len(p.Effects)), append(ranked, rank.N)
			pt, pw = append(pt, paired.P), append(pw, rank.P)
		}
		p.Effects = append(p.Effects, e)
	}
	for _, m := range b[0].Metrics {
		if _, both := values(a, m.Name); t.wanted(m.Name) && !both {
			if _, ok := values(b, m.Name); ok {
				p.OnlyB = append(p.OnlyB, m.Name)
			}
		}
	}
	if len(p.Effects) == 0 {
		if len(t.Metrics) == 0 {
			return p, errors.New("the arms have no metric in common")
		}
		return p, fmt.Errorf("%w %s", ErrNoMetric, strings.Join(t.Metrics, ", "))
	}
	p.Family = len(family)
	holmT, holmW := stats.Holm(pt), stats.Holm(pw)
	for k, i := range family {
		e := &p.Effects[i]
		e.Holm, e.WilcoxonHolm = holmT[k], holmW[k]
		if err := t.judge(e, ranked[k], p.Family); err != nil {
			return p, fmt.Errorf("%s: %w", e.Name, err)
		}
		if e.Differs() && e.Wilcoxon < 1-t.Level {
			p.Agreed++
		}
	}
	return p, nil
}

// judge gives the verdict on a metric that differs in so many replicates.
func (t *Test) judge(e *Effect, differing, family int) error {
	significance := 1 - t.Level
	relevant := t.Relevant * math.Abs(e.A)
	e.Within = relevant > 0 && math.Max(math.Abs(e.Effect.Low()), math.Abs(e.Effect.High())) < relevant
	if e.Holm >= significance {
		e.Verdict, e.Alone = NoEvidence, e.P < significance
		if e.Within {
			return nil
		}
		return t.settle(e, relevant, significance/float64(family))
	}
	e.Doubtful = e.Wilcoxon >= significance && math.Ldexp(1, 1-differing) < significance // the least that ranks can give
	up := e.Effect.Mean > 0
	switch d := e.Better; {
	case d == result.NeitherBetter && up:
		e.Verdict = Higher
	case d == result.NeitherBetter:
		e.Verdict = Lower
	case up == (d == result.HigherIsBetter):
		e.Verdict = Better
	default:
		e.Verdict = Worse
	}
	return nil
}

// settle says how many more replicates would end the doubt about a metric. The effect that they are to find is the observed
// one, or the smallest that matters if that is larger; the significance is what Holm's correction asks of the first of the
// family, so the number is on the safe side.
func (t *Test) settle(e *Effect, relevant, significance float64) error {
	if e.Deviation == 0 {
		n := e.Effect.N + 1
		for stats.AllAlike(n) >= significance {
			n++
		}
		e.More = n - e.Effect.N
		return nil
	}
	n, err := stats.ReplicatesToDetect(math.Max(math.Abs(e.Effect.Mean), relevant), e.Deviation, significance, t.Power)
	switch {
	case errors.Is(err, stats.ErrTooSmall):
		e.More = -1
	case err != nil:
		return err
	default:
		e.More = max(1, n-e.Effect.N)
	}
	return nil
}

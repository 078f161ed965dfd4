package study

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"farflash/experiment/trial"
	"farflash/numeric/rng"
	"farflash/numeric/stats"
	"farflash/result"
)

// Test configures the comparison of arms.
type Test struct {
	Level    float64  // of the intervals; the significance of verdicts is 1 minus it
	Power    float64  // of the recommended number of further replicates
	Relevant float64  // the smallest effect that matters, as a share of the first arm's mean
	Metrics  []string // the primary family, with the wildcards * and ?; empty: that of the kind of experiment
	// Looks are the numbers of replicates at which a comparison is analysed and may stop, each with an equal part of
	// the significance; nil means one look.
	Looks []int
}

// DefaultTest returns 95 % confidence, a power of 80 %, a relevant effect of 1 %, the family of the kind of experiment,
// and one look.
func DefaultTest() Test { return Test{Level: 0.95, Power: 0.8, Relevant: 0.01} }

// Verdict is the result of a comparison for one metric.
type Verdict string

// The verdicts. A metric without a direction is higher or lower instead of better or worse.
const (
	Identical  Verdict = "identical in every replicate"
	NoEvidence Verdict = "no evidence of a difference"
	TooFew     Verdict = "too few runs to tell" // the observed effect would be relevant
	Better     Verdict = "better"
	Worse      Verdict = "worse"
	Higher     Verdict = "higher"
	Lower      Verdict = "lower"
)

// Effects is the comparison of arms with the first one.
type Effects struct {
	Test
	Name string
	Arms []ArmSummary
	// Seeds are those for which every arm has a result; other seeds are ignored for all arms.
	Seeds []uint64
	// Apart means that every arm has its own seeds; Seeds are those of the first arm.
	Apart bool
	Pairs []Pair // one for each arm except the first
}

// ArmSummary is an arm with the state of its replicates.
type ArmSummary struct {
	Label    string
	Digest   string
	Scenario string // resolved; can be empty
	Done     int
	Pending  int // not run
	Failed   []Failure
}

// Failure is a trial that failed.
type Failure struct {
	Seed uint64 `json:"seed"`
	Err  string `json:"error"`
}

// Pair is the comparison of an arm with the first.
type Pair struct {
	Arm int // index into Arms
	// Effects are the primary family followed by the exploratory metrics, each sorted by verdict (differences first)
	// and size.
	Effects []Effect
	// Family is the number of primary metrics under Holm's correction: those that differ in some replicate. Each arm
	// has its own family.
	Family int
	// Explored is the number of exploratory metrics that were tested.
	Explored int
	// OnlyA and OnlyB are metrics that one of the arms lacks in some replicate.
	OnlyA, OnlyB []string
	// Remarks are the warnings of the arm that the first does not have, in the first replicate, if no metric differs in
	// any: they may be why.
	Remarks []string
}

// Primary returns the effects of the primary family.
func (p *Pair) Primary() []Effect { return p.Effects[:p.primary()] }

// Exploratory returns the other effects.
func (p *Pair) Exploratory() []Effect { return p.Effects[p.primary():] }

func (p *Pair) primary() int {
	n := 0
	for n < len(p.Effects) && p.Effects[n].Primary {
		n++
	}
	return n
}

// decided reports whether each primary metric is called or within Test.Relevant.
func (p *Pair) decided() bool {
	return !slices.ContainsFunc(p.Primary(),
		func(e Effect) bool { return !e.Differs() && !e.Within && e.Verdict != Identical })
}

// Decided reports whether all pairs are decided.
func (x *Effects) Decided() bool {
	return !slices.ContainsFunc(x.Pairs, func(p Pair) bool { return !p.decided() })
}

// Differing counts the effects that are called as differences.
func Differing(effects []Effect) int {
	n := 0
	for i := range effects {
		if effects[i].Differs() {
			n++
		}
	}
	return n
}

// Effect is the difference of a metric from the first arm.
type Effect struct {
	Name, Unit, Help string
	Aliases          []string         // other names of the same quantity
	Better           result.Direction // which of two values is better
	Primary          bool             // part of the primary family
	// Paired has the interval at the level of the verdict (Holm's step, and the look): it excludes 0 exactly if the
	// metric is called. Intervals of exploratory metrics are not corrected.
	stats.Paired
	RangeA, RangeB [2]float64 // extremes over the replicates
	// p value corrected for looks and by Holm; for exploratory metrics by Benjamini and Hochberg
	Adjusted float64
	Wilcoxon float64 // p value of the signed-rank test
	Verdict  Verdict
	// Doubtful marks a difference by the t test that the signed-rank test would not find even without correction,
	// though it has enough replicates: a few outliers may determine the mean.
	Doubtful bool
	// Within marks a metric whose whole interval is closer to 0 than the smallest relevant effect: any difference is
	// irrelevant, and more replicates would not change that.
	Within bool
	// More is the number of further replicates that would settle an undecided metric; -1 means that it is impractical,
	// 0 that it is settled.
	More int
}

// Differs reports whether there is evidence of a difference.
func (e *Effect) Differs() bool {
	return e.Verdict != Identical && e.Verdict != NoEvidence && e.Verdict != TooFew
}

// Relative returns the effect and its interval as shares of A; ok is false if the effect is not a ratio.
func (e *Effect) Relative() (mean, low, high float64, ok bool) {
	if !e.Ratio {
		return 0, 0, 0, false
	}
	return share(e.Effect.Mean), share(e.Effect.Low()), share(e.Effect.High()), true
}

// Erratic reports an undecided metric whose replicates differ by more than a factor of two: their range is more
// informative than the mean.
func (e *Effect) Erratic() bool { return e.Verdict == TooFew && e.Ratio && e.Deviation > math.Ln2 }

// size orders effects: ratios by their distance from 1, differences as a share of the larger value.
func (e *Effect) size() float64 {
	if e.Ratio {
		return math.Abs(e.Effect.Mean)
	}
	if larger := math.Max(math.Abs(e.A), math.Abs(e.B)); larger > 0 {
		return math.Abs(e.Effect.Mean) / larger
	}
	return 0
}

// rank is the order of verdicts in tables.
func (e *Effect) rank() int {
	switch {
	case e.Differs():
		return 0
	case e.Verdict == TooFew:
		return 1
	case e.Verdict == NoEvidence:
		return 2
	}
	return 3
}

// Compare tests the outcomes of a comparison. It needs at least two seeds for which all arms have a result.
func Compare(p *Plan, outcomes []Outcome, test Test) (*Effects, error) {
	x := &Effects{Test: test, Name: p.Name, Apart: p.Apart}
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
			x.Seeds = append(x.Seeds, p.seedOf(0, r))
		}
	}
	if len(reps) < 2 {
		return nil, fmt.Errorf("%d of %d seeds have a result in every arm; a comparison needs two", len(reps), p.Reps)
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
		if pair.Family == 0 && pair.Explored == 0 {
			for _, w := range byArm[i][0].Warnings {
				if !slices.Contains(byArm[0][0].Warnings, w) {
					pair.Remarks = append(pair.Remarks, w)
				}
			}
		}
		x.Pairs = append(x.Pairs, pair)
	}
	return x, nil
}

// errNoMetric is wrapped by Compare's error if no metric matches the requested names.
var errNoMetric = errors.New("no metric of the arms matches")

// Matches reports whether a name matches one of the patterns; without patterns every name does. In a pattern * matches
// any text and ? one character.
func Matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		// Indices of components are not character classes here.
		ok, err := path.Match(strings.ReplaceAll(p, "[", `\[`), name)
		return err == nil && ok
	})
}

// values returns a metric over replicates, and false if one of them lacks it.
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

// unvaried reports whether no metric of an arm depends on the seed: then the arm is deterministic.
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
	words := trial.Vocabulary().Metrics
	certain := unvaried(a) && unvaried(b)
	var effects []Effect
	var names []string // identity of each metric; "" if it does not differ
	for _, m := range a[0].Metrics {
		if strings.HasPrefix(m.Name, "sim.") { // describes the simulator, not the design
			continue
		}
		x, okA := values(a, m.Name)
		y, okB := values(b, m.Name)
		if !okA || !okB {
			if okA && Matches(t.Metrics, m.Name) {
				p.OnlyA = append(p.OnlyA, m.Name)
			}
			continue
		}
		e, err := t.effect(x, y)
		if err != nil {
			return p, fmt.Errorf("%s: %w", m.Name, err)
		}
		name := ""
		if e.Verdict != Identical {
			name = identity(m.Unit, x, y)
			if certain && x[0] != y[0] {
				e.P = 0
			}
		}
		e.Name, e.Unit, e.Help, e.Better = m.Name, m.Unit, m.Help, words.Better(m.Name)
		effects, names = append(effects, e), append(names, name)
	}
	for _, m := range b[0].Metrics {
		if _, both := values(a, m.Name); Matches(t.Metrics, m.Name) && !both && !strings.HasPrefix(m.Name, "sim.") {
			if _, ok := values(b, m.Name); ok {
				p.OnlyB = append(p.OnlyB, m.Name)
			}
		}
	}
	if len(effects) == 0 && len(t.Metrics) == 0 {
		return p, errors.New("the arms have no metric in common")
	}
	t.choose(effects, names, familyOf(a, b))
	p.Effects = once(effects, names)
	if len(t.Metrics) > 0 && p.primary() == 0 {
		return p, fmt.Errorf("%w %s", errNoMetric, strings.Join(t.Metrics, ", "))
	}
	var err error
	if p.Family, err = t.judge(p.Primary()); err != nil {
		return p, err
	}
	if p.Explored, err = t.explore(p.Exploratory()); err != nil {
		return p, err
	}
	for _, effects := range [][]Effect{p.Primary(), p.Exploratory()} {
		slices.SortStableFunc(effects,
			func(x, y Effect) int { return cmp.Or(cmp.Compare(x.rank(), y.rank()), cmp.Compare(y.size(), x.size())) })
	}
	return p, nil
}

// effect tests one metric.
func (t *Test) effect(x, y []float64) (Effect, error) {
	differences := make([]float64, len(x))
	for i := range x {
		differences[i] = y[i] - x[i]
	}
	paired, err := stats.CompareDesigns(x, y, t.Level)
	if err != nil {
		return Effect{}, err
	}
	rank, err := stats.Wilcoxon(differences)
	if err != nil {
		return Effect{}, err
	}
	e := Effect{Paired: paired, RangeA: rangeOf(x), RangeB: rangeOf(y), Adjusted: 1, Wilcoxon: rank.P,
		Verdict: NoEvidence}
	if rank.N == 0 {
		e.Verdict = Identical
	}
	return e, nil
}

func rangeOf(xs []float64) [2]float64 { return [2]float64{slices.Min(xs), slices.Max(xs)} }

// choose marks the primary family: the requested metrics, or the first ones of the kind's list without aliases.
func (t *Test) choose(effects []Effect, names []string, f *family) {
	if len(t.Metrics) > 0 {
		for i := range effects {
			effects[i].Primary = Matches(t.Metrics, effects[i].Name)
		}
		return
	}
	taken, tested := map[string]bool{}, 0
	for _, metric := range f.metrics {
		i := slices.IndexFunc(effects, func(e Effect) bool { return e.Name == metric })
		switch {
		case i < 0 || tested == f.most:
		case names[i] == "":
			effects[i].Primary = effects[i].A != 0 // an unchanged metric is worth showing unless it is 0
		case !taken[names[i]]:
			effects[i].Primary = true
			taken[names[i]] = true
			tested++
		}
	}
}

// once merges aliases: each quantity keeps one name, a primary one if there is one. Primary effects come first.
func once(effects []Effect, names []string) []Effect {
	var out []Effect
	at := map[string]int{}
	for _, primary := range []bool{true, false} {
		for i, e := range effects {
			if e.Primary != primary {
				continue
			}
			if k, there := at[names[i]]; there && names[i] != "" {
				out[k].Aliases = append(out[k].Aliases, e.Name)
				continue
			}
			at[names[i]] = len(out)
			out = append(out, e)
		}
	}
	return out
}

// judge sets the verdicts of the primary family and returns its size.
func (t *Test) judge(effects []Effect) (family int, err error) {
	looks := float64(max(1, len(t.Looks)))
	significance := 1 - t.Level
	tested, p := testedOf(effects)
	for k := range p {
		p[k] = math.Min(1, looks*p[k])
	}
	order := stats.ByValue(p)
	holm := stats.Holm(p)
	left := len(tested) // remaining hypotheses of Holm's procedure
	for _, k := range order {
		e := &effects[tested[k]]
		e.Adjusted = holm[k]
		e.Effect = e.At(1 - significance/(looks*float64(left)))
		t.call(e)
		if e.Differs() {
			left--
		} else if err := t.settle(e, significance/(looks*float64(len(tested)))); err != nil {
			return 0, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return len(tested), nil
}

// explore sets the verdicts of the exploratory metrics and returns their number.
func (t *Test) explore(effects []Effect) (explored int, err error) {
	tested, p := testedOf(effects)
	for k, q := range stats.BenjaminiHochberg(p) {
		e := &effects[tested[k]]
		e.Adjusted = q
		t.call(e)
		if err := t.settle(e, (1-t.Level)/float64(len(tested))); err != nil {
			return 0, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return len(tested), nil
}

// testedOf lists the effects that differ in some replicate, and their p values.
func testedOf(effects []Effect) (tested []int, p []float64) {
	for i := range effects {
		if effects[i].Verdict != Identical {
			tested, p = append(tested, i), append(p, effects[i].P)
		}
	}
	return tested, p
}

// call sets the verdict from the corrected p value.
func (t *Test) call(e *Effect) {
	significance := 1 - t.Level
	relevant := t.relevant(e)
	if e.Adjusted >= significance {
		if reach := math.Abs(e.Effect.Mean); e.Primary && e.Effect.Half < reach {
			e.Effect.Half = reach // small counts: the corrected p value is larger than the spread suggests
		}
	} else {
		// the smallest p value that ranks can attain
		e.Doubtful = e.Wilcoxon >= significance && stats.AllAlike(e.Effect.N) < significance
	}
	e.Within = relevant > 0 && math.Max(math.Abs(e.Effect.Low()), math.Abs(e.Effect.High())) < relevant
	up := e.Effect.Mean > 0
	switch d := e.Better; {
	case e.Adjusted >= significance && !e.Within && math.Abs(e.Effect.Mean) >= relevant:
		e.Verdict = TooFew
	case e.Adjusted >= significance:
		e.Verdict = NoEvidence
	case d == result.NeitherBetter && up:
		e.Verdict = Higher
	case d == result.NeitherBetter:
		e.Verdict = Lower
	case up == (d == result.HigherIsBetter):
		e.Verdict = Better
	default:
		e.Verdict = Worse
	}
}

// relevant is the smallest effect that matters on the effect's scale: a log ratio or a difference.
func (t *Test) relevant(e *Effect) float64 {
	if e.Ratio {
		return rng.Log(1 + t.Relevant)
	}
	return t.Relevant * math.Abs(e.A)
}

// assurance is the probability that the recommended number of replicates attains the power, given that the deviation is
// estimated from few.
const assurance = 0.8

// settle computes the number of further replicates that would decide an undecided metric. They must detect the observed
// effect, or the smallest relevant one if that is larger; the significance is that of Holm's first step, so the number
// is conservative.
func (t *Test) settle(e *Effect, significance float64) error {
	if e.Differs() || e.Within {
		return nil
	}
	if e.Deviation == 0 {
		n := e.Effect.N + 1
		for stats.AllAlike(n) >= significance {
			n++
		}
		e.More = n - e.Effect.N
		return nil
	}
	deviation := stats.DeviationBound(e.Deviation, e.Degrees+1, assurance)
	n, err := stats.ReplicatesToDetect(math.Max(math.Abs(e.Effect.Mean), t.relevant(e)), deviation,
		significance/float64(e.Tests), t.Power)
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

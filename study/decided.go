package study

import (
	"context"
	"fmt"
	"slices"

	"farflash/experiment/trial"
)

// firstReps returns the plan cut to its first n replicates.
func (p *Plan) firstReps(n int) *Plan {
	first := *p
	first.Reps = min(n, p.Reps)
	return &first
}

// OfWhole maps the outcomes of the first replicates to the whole plan; the others are pending.
func (p *Plan) OfWhole(first *Plan, outcomes []Outcome) []Outcome {
	var out []Outcome
	for k, t := range p.Trials() {
		o := Outcome{Trial: t, State: Pending}
		if point, rep := k/p.Reps, k%p.Reps; rep < first.Reps {
			o = outcomes[point*first.Reps+rep]
		}
		out = append(out, o)
	}
	return out
}

// UntilDecided runs a comparison look by look and stops at the first look that decides every primary metric, or after
// the last replicate. It returns the plan of the replicates that were run, their outcomes, and the effects, which are
// nil if the context ended before the look was complete or if they could not be computed. The last of the test's looks
// must equal the plan's replicates.
func (r *Runner) UntilDecided(ctx context.Context, p *Plan, test Test) (*Plan, []Outcome, *Effects, error) {
	if n := len(test.Looks); n == 0 || test.Looks[n-1] != p.Reps || !slices.IsSorted(test.Looks) {
		return nil, nil, nil, fmt.Errorf("looks after %v replicates do not end with all %d", test.Looks, p.Reps)
	}
	known := map[string]Outcome{}
	for _, n := range test.Looks[:len(test.Looks)-1] {
		if first, outcomes, x, err := r.look(ctx, p, n, test, known); x == nil || x.Decided() {
			return first, outcomes, x, err
		}
	}
	return r.look(ctx, p, p.Reps, test, known)
}

// look runs the missing trials of the first n replicates and compares.
func (r *Runner) look(ctx context.Context, p *Plan, n int, test Test, known map[string]Outcome) (*Plan, []Outcome,
	*Effects, error) {
	first := p.firstReps(n)
	trials := first.Trials()
	missing := slices.DeleteFunc(slices.Clone(trials), func(t trial.Trial) bool { _, ok := known[t.Name()]; return ok })
	for _, o := range r.Run(ctx, missing) {
		known[o.Name()] = o
	}
	outcomes := make([]Outcome, len(trials))
	for i, t := range trials {
		outcomes[i] = known[t.Name()]
	}
	if slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.State == Pending }) {
		return first, outcomes, nil, nil
	}
	x, err := Compare(first, outcomes, test)
	return first, outcomes, x, err
}

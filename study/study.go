// Package study runs many trials and says what they show together: which of two designs is better and by how much, and how a
// figure responds to a parameter.
//
// A [Trial] is a scenario and a seed, and nothing else decides what it gives; so its result is named by its digest and seed,
// kept in a [Cache] and never computed twice. A [Plan] lists the trials of a study: the points of a sweep over [Axis] values,
// or the arms of a comparison. A [Runner] computes them on several processors, keeps what succeeds and lists what fails. A
// [Folder] is where a study is on disk: it can be stopped at any time and taken up again, cut into shards that other machines
// compute, and merged. [Compare] turns results into the [Effects] of designs, [Respond] into the [Curves] of a sweep.
//
// Every arm and point runs on the same seeds. Random streams are named by component, so designs meet the same arrivals at the
// same addresses and what remains between them is their own (common random numbers: Law, "Simulation Modeling and Analysis",
// 5th ed., section 11.2). Effects are tested by paired t and Wilcoxon's signed-rank tests with Holm's correction; package stats
// has the formulas.
//
// Whatever comes out is in the order of the plan, whichever trial ended first.
//
// What it leaves out: choosing the next point from the results so far, drawing (package report), and starting other machines: a
// shard is started by whatever starts jobs there.
package study

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"farflash/result"
	"farflash/scenario"
)

// Trial is one scenario with one seed.
type Trial struct {
	Scenario *scenario.Scenario
	Digest   string // of the scenario; it must have been computed before trials run side by side
	Seed     uint64
}

// Name tells the trial from all others; it is that of its directory and of its cache entry.
func (t Trial) Name() string { return fmt.Sprintf("%s-%d", t.Digest, t.Seed) }

// State is how far a trial has come.
type State string

// The states.
const (
	Pending State = "pending" // not run, or interrupted
	Done    State = "done"
	Failed  State = "failed"
)

// Outcome is what became of a trial.
type Outcome struct {
	Trial
	State  State
	Result *result.Result // the metrics and remarks; series, histograms and matrices are on disk alone. nil unless Done
	Err    error          // why it failed
	Reused bool           // it was found in the folder or the cache
}

// ErrInterrupted is what a trial ends with that its context ended.
var ErrInterrupted = errors.New("interrupted")

// Simulate runs a trial. A law that does not hold at the end is an error, and so is a panic of a model: one broken trial must
// not take the others of a study with it.
func Simulate(ctx context.Context, t Trial, version string, progress func(scenario.Progress)) (r *result.Result, err error) {
	defer func() {
		if x := recover(); x != nil {
			r, err = nil, fmt.Errorf("panic: %v; this is a fault in the model, please report it with the scenario (at %s)", x, culprit(string(debug.Stack())))
		}
	}()
	out, err := t.Scenario.Run(ctx, scenario.Options{Seed: t.Seed, Version: version, Progress: progress})
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

// slim leaves out what only a single run's report shows, so that a study of many trials fits into memory.
func slim(r *result.Result) *result.Result {
	s := *r
	s.Series, s.Histograms, s.Matrices = nil, nil, nil
	return &s
}

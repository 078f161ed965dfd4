// Package study runs many trials and draws conclusions from them: which of two designs is better and by how much, and
// how a figure responds to a parameter.
//
// A [trial.Trial] is a scenario and a seed, which together determine its result; so the result is named by its digest
// and seed, stored in a [Cache] and never computed twice. A [Plan] lists the trials of a study: the points of a sweep
// over [Axis] values, or the arms of a comparison. A [Runner] computes them on several processors, stores results and
// lists failures. A [Folder] is a study on disk: it can be stopped and resumed at any time, split into shards that
// other machines compute, and merged. [Compare] turns results into the [Effects] of designs, [Respond] into the
// [Curves] of a sweep.
//
// Every arm and point runs on the same seeds. Random streams are named by component, so designs see the same arrivals
// at the same addresses, and the remaining differences are their own (common random numbers: Law, "Simulation Modeling
// and Analysis", 5th ed., section 11.2). Effects are ratios, and verdicts are about a family of metrics determined by
// the kind of experiment, by t tests with Holm's correction; [Runner.UntilDecided] adds replicates at planned looks.
// Package stats has the formulas.
//
// All output is in the order of the plan, regardless of the order of completion.
//
// It leaves out choosing the next point from the results so far, drawing (package report), and starting other machines,
// which is the task of a job scheduler.
package study

import (
	"farflash/experiment/trial"
	"farflash/result"
)

// State is the state of a trial.
type State string

// The states.
const (
	Pending State = "pending" // not run, or interrupted
	Done    State = "done"
	Failed  State = "failed"
)

// Outcome is a trial with its result or error.
type Outcome struct {
	trial.Trial
	State  State
	Result *result.Result // the metrics and remarks; series, histograms and matrices are on disk only. nil unless Done
	Err    error          // why it failed
	Reused bool           // it was found in the folder or the cache
}

// slim drops the data that only a single run's report shows, so that a study of many trials fits in memory.
func slim(r *result.Result) *result.Result {
	s := *r
	s.Series, s.Histograms, s.Matrices = nil, nil, nil
	return &s
}

// Package study runs many trials and says what they show together: which of two designs is better and by how much,
// and how a figure responds to a parameter.
//
// A [trial.Trial] is a scenario and a seed, and nothing else decides what it gives; so its result is named by its
// digest and seed, kept in a [Cache] and never computed twice. A [Plan] lists the trials of a study: the points of a
// sweep over [Axis] values, or the arms of a comparison. A [Runner] computes them on several processors, keeps what
// succeeds and lists what fails. A [Folder] is where a study is on disk: it can be stopped at any time and taken up
// again, cut into shards that other machines compute, and merged. [Compare] turns results into the [Effects] of
// designs, [Respond] into the [Curves] of a sweep.
//
// Every arm and point runs on the same seeds. Random streams are named by component, so designs meet the same
// arrivals at the same addresses and what remains between them is their own (common random numbers: Law, "Simulation
// Modeling and Analysis", 5th ed., section 11.2). Effects are ratios, and verdicts are about a family of metrics that
// the kind of experiment decides, by t tests with Holm's correction; [Runner.UntilDecided] adds replicates at looks
// that were planned. Package stats has the formulas.
//
// Whatever comes out is in the order of the plan, whichever trial ended first.
//
// What it leaves out: choosing the next point from the results so far, drawing (package report), and starting other
// machines: a shard is started by whatever starts jobs there.
package study

import (
	"farflash/experiment/trial"
	"farflash/result"
)

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
	trial.Trial
	State  State
	Result *result.Result // the metrics and remarks; series, histograms and matrices are on disk alone. nil unless Done
	Err    error          // why it failed
	Reused bool           // it was found in the folder or the cache
}

// slim leaves out what only a single run's report shows, so that a study of many trials fits into memory.
func slim(r *result.Result) *result.Result {
	s := *r
	s.Series, s.Histograms, s.Matrices = nil, nil, nil
	return &s
}

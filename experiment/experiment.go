// Package experiment runs a scenario: it advances models from one point of observation to the next, until everything
// has happened or the run must end, and fills in the result.
//
// There is one loop (Loop) and one entry point (Run). A kind of experiment is a Kind, which builds an Experiment from a
// scenario: its models, the Meters that observe them, and the metrics they fill into a result. The kinds are in
// packages of their own: drive, network, system, objects, tiers, traffic; requests builds the sources that a scenario's
// workload names, timeline records when things happened. Package trial knows all kinds.
//
// It leaves out the language of scenarios (package scenario), files (package trial), and studies of several runs
// (package study).
package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"

	"farflash/model/cosim"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/result"
	"farflash/scenario"
	"farflash/sim"
)

// Options configure a run. Only the seed affects the result.
type Options struct {
	Seed     uint64
	Version  string         // of the program, for result.json
	Progress func(Progress) // Progress, if not nil, receives the progress of the run from time to time.
	// Sample, if not nil, receives every completed request. An error ends the run.
	Sample func(cosim.Sample) error
	// Flow, if not nil, receives every flow of a network at the end, and Pause every pause as it takes effect or ends.
	// An error ends the run.
	Flow  func(Flow) error
	Pause func(Pause) error
	// Chunk, if not nil, receives every completed chunk of an object cluster. An error ends the run.
	Chunk func(Chunk) error
	// Notified, if not nil, is called for each CNP that arrives at a target of a coupled system.
	Notified       func(sim.Time)
	Timeline       io.Writer // Timeline receives a timeline for Perfetto; nil: none.
	TimelineSlices int       // TimelineSlices limits its slices; 0 is the default.

	// Predict returns the predictor of a drive whose depth is partitioned for a rate controller that needs one; nil:
	// there is none.
	Predict func(*scenario.Drive, ratecontrol.Partition) (ratecontrol.Predictor, error)

	ctx context.Context // of the run; nil if a Kind is called directly
}

// Preparing is called by a Kind with the completed share of a long preparation, from 0 to 1. An error stops it.
func (o *Options) Preparing(share float64) error {
	if o.Progress != nil {
		o.Progress(Progress{Prepared: share})
	}
	if o.ctx != nil {
		return o.ctx.Err()
	}
	return nil
}

// Progress is the progress of a run.
type Progress struct {
	Requests  uint64 // completed
	Expected  uint64 // in total; 0 if unknown
	Simulated units.Duration
	Until     units.Duration // 0 if the run has no time limit
	Prepared  float64        // during preparation, before the simulation: the completed share, from 0 to 1
	// Pass is the number of completed runs of a trial that consists of several, Passes their total number; 0 means a
	// single run.
	Pass, Passes int
}

// Share is the completed share by completions or time, whichever is larger; 0 if no total is known.
func (p *Progress) Share() float64 {
	share := 0.0
	if p.Expected > 0 {
		share = float64(p.Requests) / float64(p.Expected)
	}
	if p.Until > 0 {
		share = max(share, float64(p.Simulated)/float64(p.Until))
	}
	if share = min(share, 1); p.Passes > 1 {
		share = (float64(p.Pass) + share) / float64(p.Passes)
	}
	return share
}

// Outcome is the output of a run, including its result.
type Outcome struct {
	Result *result.Result
	Events uint64
	// Interrupted means that the context ended the run, so the result covers the time until then.
	Interrupted bool
	// Own is the measured time of each of the scenario's tenants in seconds, from its first arrival to the end of its
	// last request; nil without accounts by tenant.
	Own     []float64
	Remarks []string // Remarks concern the files that were requested.
}

// Kind is a kind of experiment.
type Kind interface {
	// Is reports whether a validated scenario is of this kind.
	Is(s *scenario.Scenario) bool
	// Build builds the models of a trial, without running them.
	Build(s *scenario.Scenario, o *Options) (Experiment, error)
}

// Experiment is the models of one trial.
type Experiment interface {
	// Advance runs all events up to a time, and reports the models' progress. It may stop earlier, because no events
	// are left or because the context has ended. Times must not decrease from one call to the next. An error ends the
	// run.
	Advance(ctx context.Context, to sim.Time) (RunState, error)
	// Meters returns the observers of the models. It is called once, before the first Advance.
	Meters() []Meter
	// Fill is called once, after the last Advance and the meters' End: it fills in the result, whose name is set, and
	// the rest of the outcome. It may run baselines for comparison, which the context can also end.
	Fill(ctx context.Context, o *Outcome) error
	// Close releases the files that the models have opened. It is always called once.
	Close() error
}

// Refusal is the reason why a scenario cannot be run, as Check and Run find it.
type Refusal struct{ Err error }

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// build builds the models. Its errors have the position in the scenario.
func build(k Kind, s *scenario.Scenario, o *Options) (x Experiment, err error) {
	defer func() {
		switch {
		case err == nil:
		case o.ctx.Err() != nil && errors.Is(err, o.ctx.Err()):
			err = o.ctx.Err() // an interruption has no position in the scenario
		default:
			err = &Refusal{s.Located(err)}
		}
	}()
	defer clockEnds(&err)
	return k.Build(s, o)
}

// clockEnds converts the panic at the end of the clock's range to an error.
func clockEnds(err *error) {
	x := recover()
	if x == nil {
		return
	}
	end, ok := x.(*sim.ClockError)
	if !ok {
		panic(x)
	}
	*err = end
}

// complete reports what a run cannot do without.
func complete(ctx context.Context, k Kind, s *scenario.Scenario) error {
	if ctx == nil || k == nil || s == nil {
		return errors.New("experiment: the context, the kind or the scenario is nil")
	}
	return nil
}

// Check builds a scenario's models without running them. Run accepts what Check accepts.
func Check(ctx context.Context, k Kind, s *scenario.Scenario, o Options) error {
	if err := complete(ctx, k, s); err != nil {
		return err
	}
	o.ctx = ctx
	x, err := build(k, s, &o)
	if err != nil {
		return err
	}
	return x.Close()
}

// Run simulates a scenario of a kind; words are the permitted names in its result. When the context ends, the result
// covers the time until then and Outcome.Interrupted is set. The same scenario and seed yield the same bytes.
func Run(ctx context.Context, k Kind, words *result.Vocabulary, s *scenario.Scenario, o Options) (out *Outcome,
	err error) {
	if err := complete(ctx, k, s); err != nil {
		return nil, err
	}
	if words == nil {
		return nil, errors.New("experiment: the vocabulary is nil; use result.NewVocabulary")
	}
	digest, err := s.Digest()
	if err != nil {
		return nil, err
	}
	o.ctx = ctx
	x, err := build(k, s, &o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if failed := x.Close(); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	defer clockEnds(&err)
	out = &Outcome{Result: result.New(words, digest, o.Seed, o.Version)}
	out.Result.Name = s.Name
	l := Loop{Until: s.Measure.Until.Time, Progress: o.Progress}
	out.Interrupted, err = l.Run(ctx, x)
	if err != nil {
		return nil, err
	}
	if w := s.WarmUpUntil(); w > 0 && l.reached <= w && !out.Interrupted {
		text := fmt.Sprintf(
			"the run ends at %v, within the warm-up of %v, and measures nothing; use a shorter warm-up", l.reached,
			w)
		if !s.NetworkAlone() {
			text += ", auto, or a share such as 10%"
		}
		return nil, s.Located(&units.FieldError{Path: "measure.warm_up", Msg: text})
	}
	out.Result.Interrupted = out.Interrupted
	if err := x.Fill(ctx, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Package experiment runs a scenario: it lets models go on from one moment to the next at which somebody looks, until
// everything has happened or the run is to end, and has what was found filled in.
//
// There is one loop (Loop) and one way through it (Run). A kind of experiment is a Kind, which makes an Experiment of
// a scenario: its models, the Meters that follow them, and what they fill into a result. The kinds are in folders of
// their own: drive, network, system, objects, tiers, traffic; requests makes the sources that a scenario's workload
// names, timeline writes what happened when. Package trial knows all kinds.
//
// What it leaves out: what a scenario may say (package scenario), files (package trial), and several runs (package
// study).
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

// Options say how a scenario is run. They change no result but by the seed.
type Options struct {
	Seed    uint64
	Version string // of the program, for result.json
	// Progress is told now and then how far the run is; nil is nobody.
	Progress func(Progress)
	// Sample is told of every completed request; nil is nobody. An error ends the run.
	Sample func(cosim.Sample) error
	// Flow is told of every flow of a network at the end, Pause of every pause as it takes
	// effect or ends; nil is nobody. An error ends the run.
	Flow  func(Flow) error
	Pause func(Pause) error
	// Chunk is told of every chunk of an object cluster that is done; nil is nobody. An error ends the run.
	Chunk func(Chunk) error
	// Notified is called for each CNP that arrives at a target of a coupled system; nil is off.
	Notified func(sim.Time)
	// Timeline is where what happened when is written to, for Perfetto; nil is nowhere.
	Timeline io.Writer
	// TimelineSlices is how many slices it has at most; 0 is the default.
	TimelineSlices int

	// Predict foresees a drive for a rate controller that needs that; nil says that nobody can.
	Predict func(*scenario.Drive) (ratecontrol.Predictor, error)

	ctx context.Context // of the run; nil if a Kind is asked directly
}

// Preparing is told by a Kind, while it makes models, how much of a long preparation is done, from 0 to 1. An error
// says that it is to end.
func (o *Options) Preparing(share float64) error {
	if o.Progress != nil {
		o.Progress(Progress{Prepared: share})
	}
	if o.ctx != nil {
		return o.ctx.Err()
	}
	return nil
}

// Progress is how far a run is.
type Progress struct {
	Requests  uint64 // completed
	Expected  uint64 // in all; 0 if not known
	Simulated units.Duration
	Until     units.Duration // 0 if the run is not ended by time
	Prepared  float64        // while nothing is simulated yet: how much of what is made first is done, from 0 to 1
	// Pass is how many runs are done already of a trial that takes several, Passes how many those are; 0 is one.
	Pass, Passes int
}

// Share is how much of a run is done, from 0 to 1, by what has completed or by the time that it is ended by, whatever
// is nearer to the end; 0 if neither is known.
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

// Outcome is what a run gives beside its result.
type Outcome struct {
	Result *result.Result
	Events uint64
	// Interrupted says that the context ended the run, so that the result is of what
	// was done until then.
	Interrupted bool
	// Own is the measured time of each of the scenario's tenants in seconds, from its first arrival to the end of its
	// last request; nil if there are no accounts of them.
	Own []float64
	// Remarks are what there is to say of the files that were asked for.
	Remarks []string
}

// Kind is a kind of experiment.
type Kind interface {
	// Is reports whether a scenario, which was checked, is one.
	Is(s *scenario.Scenario) bool
	// Build makes the models of a trial. It runs nothing yet.
	Build(s *scenario.Scenario, o *Options) (Experiment, error)
}

// Experiment is the models of one trial.
type Experiment interface {
	// Advance lets everything happen that does up to a time, and says how far the models are. It may stop before:
	// because nothing is left to happen, or because the context has ended. Times never fall from one call to the
	// next. An error ends the run.
	Advance(ctx context.Context, to sim.Time) (Standing, error)
	// Meters follow the models. They are asked for once, before the first Advance.
	Meters() []Meter
	// Fill is called once, after the last Advance and the meters' End: it fills in the result, which has its name,
	// and the rest of the outcome. It may run what the result is compared with; the context ends that, too.
	Fill(ctx context.Context, o *Outcome) error
	// Close frees what the models have opened. It is called once, whatever else has happened.
	Close() error
}

// Refusal is why a scenario cannot be run, found before anything was: Check finds the same.
type Refusal struct{ Err error }

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// build makes the models. What is wrong with them stands at its place in the scenario.
func build(k Kind, s *scenario.Scenario, o *Options) (x Experiment, err error) {
	defer func() {
		switch {
		case err == nil:
		case o.ctx.Err() != nil && errors.Is(err, o.ctx.Err()):
			err = o.ctx.Err() // it has no place: nothing is wrong with what was being made
		default:
			err = &Refusal{s.Located(err)}
		}
	}()
	defer clockEnds(&err)
	return k.Build(s, o)
}

// clockEnds makes an error of a panic with which the clock has come to its end.
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

// Check makes the models of a scenario and runs nothing: what it does not refuse, Run does not refuse either.
func Check(ctx context.Context, k Kind, s *scenario.Scenario, o Options) error {
	o.ctx = ctx
	x, err := build(k, s, &o)
	if err != nil {
		return err
	}
	return x.Close()
}

// Run simulates a scenario that is of a kind; words are the names that its result may have. When the context ends,
// what was done until then is the result and Outcome.Interrupted is set. The same scenario and seed give the same
// result, to the byte.
func Run(ctx context.Context, k Kind, words *result.Vocabulary, s *scenario.Scenario, o Options) (out *Outcome,
	err error) {
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
			"the run ends at %v, within the warm-up of %v, so that nothing is measured; use a shorter one", l.reached,
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

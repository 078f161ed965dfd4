package reproduce

import (
	"farflash/ftl/waf"
	"farflash/shape"
	"farflash/study"
	"farflash/study/training"
	"farflash/tco"
)

// mutation is a change of a model, or of what a model is given, under which the verdicts of rows turn: what is ok or not stated is not reproduced any more, and
// what is not reproduced would be. A row that is ok or not stated and that no mutation turns says nothing about the model, whatever its figure: an identity, a sum of inputs, a
// bound that nothing can reach. The tests have each experiment's, verdicts.txt names that of each row, and TestMutations runs them. What it does not change is nil.
type mutation struct {
	name string // what is changed, in words
	rows string // a regular expression of the rows that it turns, label and metric with a tab between; the first mutation of an experiment that fits a row is its

	changes func(run string) []shape.Change // of scenarios, by the name of the run
	mix     func(*waf.Experiment)           // of what is written to a drive
	drive   func(*tco.Drive)                // of each drive, or array
	job     func(*tco.Workload)             // of each workload
	policy  map[tco.Policy]tco.Policy       // who chooses drives in another's place
	weights func(tco.Weights) tco.Weights   // of equation 5
	zones   func(zones int) int             // how many there are in the place of so many
	flash   func(*flashInputs)              // of the flash controller
	train   func(*training.Config)          // of how models of drives are trained
}

// mutated are a run's changes.
func (o *Options) mutated(run string, changes []shape.Change) []shape.Change {
	if o.mutant == nil || o.mutant.changes == nil {
		return changes
	}
	return with(changes, o.mutant.changes(run)...)
}

// seeds is how many of so many draws are made.
func (o *Options) seeds(n int) int {
	if o.few > 0 {
		return min(n, o.few)
	}
	return n
}

func (o *Options) drives(list []tco.Drive, err error) ([]tco.Drive, error) {
	if err == nil && o.mutant != nil && o.mutant.drive != nil {
		for i := range list {
			o.mutant.drive(&list[i])
		}
	}
	return list, err
}

func (o *Options) jobs(list []tco.Workload) []tco.Workload {
	if o.mutant != nil && o.mutant.job != nil {
		for i := range list {
			o.mutant.job(&list[i])
		}
	}
	return list
}

func (o *Options) policy(p tco.Policy) tco.Policy {
	if o.mutant != nil {
		if other, ok := o.mutant.policy[p]; ok {
			return other
		}
	}
	return p
}

func (o *Options) weights(w tco.Weights) tco.Weights {
	if o.mutant != nil && o.mutant.weights != nil {
		return o.mutant.weights(w)
	}
	return w
}

// trainer makes the models of drives.
func (o *Options) trainer() *training.Trainer {
	if o.mutant == nil || o.mutant.train == nil {
		return o.Trainer
	}
	cfg := training.DefaultConfig()
	o.mutant.train(&cfg)
	return training.NewTrainer(cfg, study.Runner{Version: o.Version})
}

// declare fills in what rows rest on and, of those that are held, what turns them.
func (r *Report) declare(e *Experiment) {
	turns := map[[2]string]string{}
	for _, h := range heldRows(e.ID) {
		turns[[2]string{h.label, h.metric}] = h.turns
	}
	for i := range r.Rows {
		x := &r.Rows[i]
		x.Inputs, x.Turns = e.inputs, turns[[2]string{x.Label, x.Metric}]
	}
}

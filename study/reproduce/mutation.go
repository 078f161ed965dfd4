package reproduce

import (
	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
	"farflash/scenario/shape"
	"farflash/study"
	"farflash/study/training"
)

// mutation is a change of the model or its inputs that flips the verdicts of rows: ok and not stated become not
// reproduced, and not reproduced becomes ok. A row that no mutation flips does not test the model (an identity, a sum
// of inputs, an unreachable bound). Tests define the mutations of each experiment, verdicts.txt names the one of each
// row, and TestMutations runs them. A nil field has no effect.
type mutation struct {
	name string // the change, in words
	rows string // regular expression over "label\tmetric"; the first match of an experiment applies

	changes func(run string) []shape.Change // of scenarios, by the name of the run
	mix     func(*waf.Experiment)           // of the writes to a drive
	drive   func(*tco.Drive)                // of each drive, or array
	job     func(*tco.Workload)             // of each workload
	policy  map[tco.Policy]tco.Policy       // substitutes for placement policies
	weights func(tco.Weights) tco.Weights   // of equation 5
	zones   func(zones int) int             // number of zones
	flash   func(*flashInputs)              // of the flash controller
	train   func(*training.Config)          // of the training of drive models
}

// mutated appends the mutation's changes to those of a run.
func (o *Options) mutated(run string, changes []shape.Change) []shape.Change {
	if o.mutant == nil || o.mutant.changes == nil {
		return changes
	}
	return with(changes, o.mutant.changes(run)...)
}

// seeds limits the number of draws.
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

// trainer returns the trainer for models of drives.
func (o *Options) trainer() *training.Trainer {
	if o.mutant == nil || o.mutant.train == nil {
		return o.Trainer
	}
	cfg := training.DefaultConfig()
	o.mutant.train(&cfg)
	return training.NewTrainer(cfg, study.Runner{Version: o.Version})
}

// declare sets the inputs of rows and, of held rows, the mutation that flips them.
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

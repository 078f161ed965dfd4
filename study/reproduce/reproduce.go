// Package reproduce reruns the papers' tables and figures and compares the results with the printed ones.
//
// Its main types are Experiment, one table or figure, and Report, its result: a row for each figure, with the paper's
// value if it prints one, the expected agreement with its reason, and the Verdict that follows from a stated Criterion.
// Everything that a paper leaves open is in the scenarios that an experiment runs, which it returns, with the reason in
// comments. Inputs are not tuned to make rows fit.
//
// Experiments that measure the real stack do so on the machine on which they run: their rows have criteria and verdicts
// like others, but no verdict is recorded.
//
// It leaves out figures that only measure somebody else's machine.
package reproduce

import (
	"context"
	"fmt"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/internal/spelling"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/study"
	"farflash/study/training"
)

// Experiment is one table or figure of a paper.
type Experiment struct {
	ID    string // its name for farflash reproduce
	Title string
	Paper string // citation
	// Measured means that its figures depend on the machine and the moment: two runs differ, and only the list of rows
	// is recorded, without verdicts.
	Measured bool

	inputs string // inputs of our models behind its rows
	run    func(context.Context, Options) (*Report, error)
}

// Options configure the run of an experiment.
type Options struct {
	Seed    uint64
	Version string
	// Trainer provides models and samples of drives; nil: a trainer without a cache.
	Trainer *training.Trainer
	// Server is a command that calls bench.Serve, for measurements with servers in a separate process. Empty: servers
	// run in this process.
	Server []string
	// Progress, if not nil, is called after each run with the numbers of completed and of all runs.
	Progress func(done, all int)

	brief  bool      // tests only: measured experiments at their smallest
	mutant *mutation // tests only: the change under test
	few    int       // tests only: limit of seeds; 0: no limit
}

// Row is one figure. Its label and metric identify it within its experiment.
type Row struct {
	Label   string
	Metric  string
	Paper   *float64 // nil if the paper prints no number
	Ours    float64  // NaN if it is missing
	Unit    string
	Quote   string    // the sentence of the paper that is tested, quoted
	Meets   Criterion // criterion for ours, which determines the verdict
	Expect  string    // the expected agreement, and why
	Because string    // the known reason if it is not reproduced
	Inputs  string    // inputs of our models behind the figure
	Turns   string    // the mutation that flips its verdict; "" for measured rows, whose verdicts are not recorded
}

// row is a row without a quotation.
func row(label, metric string, paper *float64, ours float64, unit, expect string, meets Criterion) Row {
	return Row{Label: label, Metric: metric, Paper: paper, Ours: ours, Unit: unit, Expect: expect, Meets: meets}
}

// Report is the result of an experiment.
type Report struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Paper string `json:"paper"`
	Rows  []Row  `json:"rows"`
	Count Count  `json:"count"`
	OK    bool   `json:"ok"` // no row is worse than recorded: Fell
	// Measured is that of the experiment, and Note the scope of its figures; "" if there is none.
	Measured bool   `json:"measured,omitempty"`
	Note     string `json:"note,omitempty"`

	// Unjudged are figures for the pages that no sentence of the paper states: they have no criterion, and hence no
	// verdict.
	Unjudged []Figure `json:"-"`
	// Curves are the lines of the figure, for a chart.
	Curves []Curve `json:"-"`
	// Scenarios are the texts of the runs, by name.
	Scenarios []Named `json:"-"`

	clusters *puts // of the tables of the Replicast paper, for the pages
}

// Figure is a result without a verdict.
type Figure struct {
	Label, Metric string
	Ours          float64
	Unit, Note    string
}

// tell adds a figure.
func (r *Report) tell(label, metric string, ours float64, unit, note string) {
	r.Unjudged = append(r.Unjudged, Figure{label, metric, ours, unit, note})
}

// Curve is a line of a figure.
type Curve struct {
	Panel, Name    string
	XLabel, YLabel string
	X, Y           []float64

	YUnit  string   // named as in package result; "" is a plain number
	Names  []string // names of the positions along x, if those are not numbers; X counts them from 0 (bars)
	Dots   bool     // points without connecting lines
	Shares bool     // X are shares from 0 to 1, drawn on a scale stretched towards 1
}

// Named is a text with a name.
type Named struct{ Name, Text string }

// All returns the experiments in the order of the papers.
func All() []Experiment {
	return []Experiment{mqsimFairness(), snisFig2(), snisTable2(), snisFig4(), snisFig5(), snisFig6(), snisFig7(),
		replicastTable(2, "400", replicastTable2, (*puts).better),
		replicastTable(3, "1000", replicastTable3, (*puts).outperforms), replicastTable4(), replicastTable5(),
		replicastFig8(), replicastFig9(), replicastFig10(), replicastFig11(), replicastFig12(), replicastFig13(),
		srcFig2(), srcFig5(), srcTable1(), srcTable3(), srcFig7(), srcFig8(), srcFig9(), srcFig10(), srcTable4(),
		mintcoTable4(), mintcoFig6(), mintcoFig7(), mintcoFig8(), mintcoFig9(), mintcoFig10(),
		flashnetFig1(), flashnetFig8(), flashnetTable2(), flashnetTable3(), flashnetLatency(), flashnetBandwidth(),
		flashnetFig9(), flashnetWAF(), realitySoftware()}
}

// Find returns the experiment with an id.
func Find(id string) (Experiment, error) {
	var ids []string
	for _, e := range All() {
		if e.ID == id {
			return e, nil
		}
		ids = append(ids, e.ID)
	}
	hint := ""
	if near := spelling.Nearest(id, ids); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return Experiment{}, fmt.Errorf("no experiment %q%s (see farflash reproduce list)", id, hint)
}

// Run reruns the experiment.
func (e Experiment) Run(ctx context.Context, o Options) (*Report, error) {
	if o.Trainer == nil {
		o.Trainer = training.NewTrainer(training.DefaultConfig(), study.Runner{Version: o.Version})
	}
	r, err := e.run(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.ID, err)
	}
	r.ID, r.Title, r.Paper, r.Measured = e.ID, e.Title, e.Paper, e.Measured
	r.declare(&e)
	for i := range r.Rows {
		r.Count.tell(r.Rows[i].Verdict())
	}
	r.OK = len(r.Fell()) == 0
	return r, nil
}

// measure runs a scenario's text and returns its metrics by name.
func measure(ctx context.Context, name, text string, o Options) (map[string]float64, error) {
	s, err := scenario.Parse(shape.Source{File: name, Text: []byte(text)}, o.mutated(name, nil))
	if err != nil {
		return nil, err
	}
	out, err := trial.Run(ctx, s, experiment.Options{Seed: o.Seed, Version: o.Version, Predict: o.Trainer.Predict(ctx)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if out.Interrupted {
		return nil, context.Canceled
	}
	m := map[string]float64{}
	for _, x := range out.Result.Metrics {
		m[x.Name] = x.Value
	}
	return m, nil
}

// Package reproduce reruns the papers' tables and figures and sets our figures
// beside the printed ones.
//
// Its main types are Experiment, one table or figure, and Report, what came out: a row for each figure, with the
// paper's value where it prints one, how close ours should be and why, and the Verdict that follows from a stated
// Criterion. Everything that a paper leaves open is in the scenarios that an experiment runs, which it returns, with
// the reason beside it. Nothing is tuned until a row fits.
//
// Experiments that measure the real stack do so on the machine they run on: their rows have criteria and verdicts
// like others, but no verdict is held.
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
	ID    string // what farflash reproduce calls it
	Title string
	Paper string // citation
	// Measured says that its figures are of the machine and the moment: two runs differ, and no verdict is held, but
	// only which rows there are.
	Measured bool

	inputs string // of our models, behind its rows
	run    func(context.Context, Options) (*Report, error)
}

// Options say how an experiment is run.
type Options struct {
	Seed    uint64
	Version string
	// Trainer makes the models of drives that scenarios ask for, and samples of drives; nil is one that keeps nothing.
	Trainer *training.Trainer
	// Server is a command that calls bench.Serve, for what is measured here: servers in a process of their own. None
	// is servers in this one.
	Server []string
	// Progress is told after each run how many of all are done; nil is nobody.
	Progress func(done, all int)

	brief  bool      // tests only: measured experiments at their smallest
	mutant *mutation // tests only: the change under test
	few    int       // tests only: limit of seeds; 0 is all
}

// Row is one figure. Its label and metric name it among those of its experiment.
type Row struct {
	Label   string
	Metric  string
	Paper   *float64 // nil where the paper prints no number
	Ours    float64  // NaN if it is missing
	Unit    string
	Says    string    // the sentence of the paper that is tested, quoted
	Meets   Criterion // of ours; what makes the verdict
	Expect  string    // how close, and why
	Because string    // why it is not reproduced, where it is not and that is known
	Inputs  string    // of our models, behind the figure
	Turns   string    // the mutation that flips its verdict; "" for measured rows, whose verdicts are not held
}

// row is a row without a quotation.
func row(label, metric string, paper *float64, ours float64, unit, expect string, meets Criterion) Row {
	return Row{Label: label, Metric: metric, Paper: paper, Ours: ours, Unit: unit, Expect: expect, Meets: meets}
}

// Report is what an experiment found.
type Report struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Paper string `json:"paper"`
	Rows  []Row  `json:"rows"`
	Count Count  `json:"count"`
	OK    bool   `json:"ok"` // no row is worse than it is held to be: Fell
	// Measured is the experiment's, and Note what its figures can show and what not; "" if there is nothing to say.
	Measured bool   `json:"measured,omitempty"`
	Note     string `json:"note,omitempty"`

	// Told are figures of the pages that no sentence of the paper is about: they have no criterion, and so no verdict.
	Told []Figure `json:"-"`
	// Curves are the figure's own lines, for a picture.
	Curves []Curve `json:"-"`
	// Scenarios are the texts that were run, by name.
	Scenarios []Named `json:"-"`

	clusters *puts // of the tables of the Replicast paper, for the pages
}

// Figure is what was found and not judged.
type Figure struct {
	Label, Metric string
	Ours          float64
	Unit, Note    string
}

// tell adds a figure.
func (r *Report) tell(label, metric string, ours float64, unit, note string) {
	r.Told = append(r.Told, Figure{label, metric, ours, unit, note})
}

// Curve is a line of a figure.
type Curve struct {
	Panel, Name    string
	XLabel, YLabel string
	X, Y           []float64

	YUnit  string   // as package result names units; "" is a plain number
	Names  []string // of the places along x, if those are no numbers: X counts them from 0, and the figure is of bars
	Dots   bool     // points that no line joins
	Shares bool     // X are shares from 0 to 1, to be spread towards 1
}

// Named is a text with a name.
type Named struct{ Name, Text string }

// All lists the experiments in the order of the papers.
func All() []Experiment {
	return []Experiment{mqsimFairness(), snisFig2(), snisTable2(), snisFig4(), snisFig5(), snisFig6(), snisFig7(),
		replicastTable(2, "400", replicastTable2, (*puts).better),
		replicastTable(3, "1000", replicastTable3, (*puts).outperforms), replicastTable4(), replicastTable5(),
		replicastFig8(), replicastFig9(), replicastFig10(), replicastFig11(), replicastFig12(), replicastFig13(),
		srcFig2(), srcFig5(), srcTable1(), srcTable3(), srcFig7(), srcFig8(), srcFig9(), srcFig10(), srcTable4(),
		mintcoTable4(), mintcoFig6(), mintcoFig7(), mintcoFig8(), mintcoFig9(), mintcoFig10(),
		flashnetFig1(), flashnetFig8(), flashnetTable2(), flashnetTable3(), flashnetLatency(), flashnetBandwidth(),
		flashnetFig9(), flashnetWAF()}
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
	return Experiment{}, fmt.Errorf("there is no experiment %q%s (farflash reproduce list shows all)", id, hint)
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

package training

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/experiment/trial"
	"farflash/policy/forest"
	"farflash/policy/ratecontrol"
)

// Accuracy is the accuracy of a model's predictions on unseen rows: R^2 of each output, and their mean, which is
// assumed to be SRC's single figure.
type Accuracy struct {
	Rows int                         `json:"rows"`
	Mean Number                      `json:"mean"`
	Each [ratecontrol.Outputs]Number `json:"read_write"`
}

// Number is a figure that may be missing: NaN, encoded as null in JSON.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return fmt.Appendf(nil, "%.6g", float64(n)), nil
}

// Judged is a model, or a class of traces, with its accuracy over all rows, over those with a saturated drive, and over
// the others.
type Judged struct {
	Name        string   `json:"name"`
	All         Accuracy `json:"all"`
	Saturated   Accuracy `json:"saturated"`
	Unsaturated Accuracy `json:"unsaturated"`
	// Least is the worst of the means over the other divisions of the micro traces; NaN if there is only one division.
	Least Number `json:"least,omitempty"`
}

// Weight is an input with its importance (Breiman's).
type Weight struct {
	Input string  `json:"input"`
	Share float64 `json:"share"`
}

// Report is the accuracy of models of a drive.
type Report struct {
	Samples int      `json:"samples"`
	Traces  int      `json:"traces"`
	Models  []Judged `json:"models"` // on micro traces, 60 % of them for training (SRC, table I)
	// the forest on each class of synthetic traces, trained on the other classes and the micro traces (table III)
	Classes    []Judged `json:"classes"`
	Importance []Weight `json:"importance"`
	// Weight shows how much of R^2 is about the weight ratio, on the same division as Models: a forest that does not
	// know the ratio; the flow speeds themselves as the prediction; and the forest's prediction of the deviations from
	// the mean over a trace's ratios, in which everything but the ratio is constant.
	Weight    []Judged `json:"weight"`
	FlowSpeed float64  `json:"flow_speed"` // total importance of both flow speeds
}

// divisions is the number of divisions of the micro traces, to show how much of a figure is chance.
const divisions = 5

// models are the five models of SRC's table I.
var models = []struct {
	name string
	fit  func(s *forest.Samples, c *Config, workers int) (forest.Model, error)
}{
	{"linear regression",
		func(s *forest.Samples, _ *Config, _ int) (forest.Model, error) { return forest.FitLinear(s) }},
	{"polynomial regression",
		func(s *forest.Samples, _ *Config, _ int) (forest.Model, error) { return forest.FitPolynomial(s, 2) }},
	{"k-nearest neighbours", func(s *forest.Samples, _ *Config, _ int) (forest.Model, error) {
		return forest.FitKNN(s, min(5, s.Rows()))
	}},
	{"decision tree", func(s *forest.Samples, _ *Config, _ int) (forest.Model,
		error) {
		return forest.GrowTree(s, 1, 0)
	}},
	{forestName, func(s *forest.Samples, c *Config, workers int) (forest.Model, error) {
		return forest.Grow(s, c.Forest, workers)
	}},
}

const forestName = "random forest"

// Evaluate fits models to parts of a set and tests them on the rest. Each trace is on one side only.
func (s *Set) Evaluate(ctx context.Context, cfg *Config, workers int) (*Report, error) {
	out := &Report{Samples: len(s.Rows)}
	var micro []int
	of := map[Class][]int{}
	for i, r := range s.Rows {
		if i == 0 || r.Trace != s.Rows[i-1].Trace {
			out.Traces++
		}
		of[r.Class] = append(of[r.Class], i)
	}
	micro = of[Micro]
	if len(micro) > 0 {
		own := s.Samples.Pick(micro)
		if own.Group[0] == own.Group[len(own.Group)-1] {
			return nil, errors.New("one micro trace cannot be split into training and test sets; use more")
		}
		for division := range uint64(divisions) {
			fold := own.GroupSplit(0.6, cfg.Seed+division)
			train, test := own.Pick(fold.Train), rowsOf(micro, fold.Test)
			for k, m := range models {
				if ctx.Err() != nil {
					return nil, trial.ErrInterrupted
				}
				model, err := m.fit(train, cfg, workers)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", m.name, err)
				}
				if division > 0 {
					out.Models[k].Least = min(out.Models[k].Least, s.accuracy(model, test).Mean)
					continue
				}
				j := s.judge(m.name, model, test)
				j.Least = j.All.Mean
				out.Models = append(out.Models, j)
				if f, ok := model.(*forest.Forest); ok && m.name == forestName {
					out.weigh(f)
					if err := s.blind(out, f, train, test, cfg, workers); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	for c := LowLow; c < Classes; c++ {
		if len(of[c]) == 0 {
			continue
		}
		if ctx.Err() != nil {
			return nil, trial.ErrInterrupted
		}
		var train []int
		for i, r := range s.Rows {
			if r.Class != c {
				train = append(train, i)
			}
		}
		if len(train) == 0 {
			return nil, fmt.Errorf("all traces are of the class %v, which leaves none for training", c)
		}
		f, err := forest.Grow(s.Samples.Pick(train), cfg.Forest, workers)
		if err != nil {
			return nil, err
		}
		j := s.judge(c.String(), f, of[c])
		j.Least = j.All.Mean
		out.Classes = append(out.Classes, j)
	}
	return out, nil
}

// rowsOf returns the rows at the given positions of a list.
func rowsOf(some, at []int) []int {
	out := make([]int, len(at))
	for i, k := range at {
		out[i] = some[k]
	}
	return out
}

// weigh records a forest's importance, in descending order.
func (r *Report) weigh(f *forest.Forest) {
	for i, name := range f.Inputs {
		r.Importance = append(r.Importance, Weight{name, f.Importance[i]})
		if strings.HasSuffix(name, ".flow_speed") {
			r.FlowSpeed += f.Importance[i]
		}
	}
	slices.SortStableFunc(r.Importance, func(a, b Weight) int { return cmp.Compare(b.Share, a.Share) })
}

// blind fills in Report.Weight by a forest, the set that it was grown on, and rows that test.
func (s *Set) blind(out *Report, f *forest.Forest, train *forest.Samples, test []int, cfg *Config, workers int) error {
	same := &forest.Samples{Inputs: train.Inputs, Outputs: train.Outputs}
	for i := range train.Rows() {
		x := slices.Clone(train.X(i))
		x[ratecontrol.Inputs-1] = 1 // an input that is the same everywhere is in no tree
		same.Add(x, train.Y(i), train.Group[i])
	}
	without, err := forest.Grow(same, cfg.Forest, workers)
	if err != nil {
		return fmt.Errorf("%s: %w", forestName, err)
	}
	out.Weight = []Judged{s.judge(forestName+" without the weight ratio", without, test),
		s.judge("flow speeds as they are", speeds{}, test), s.response(f, test)}
	for i := range out.Weight {
		out.Weight[i].Least = out.Weight[i].All.Mean
	}
	return nil
}

// speeds predicts that a drive reads and writes as much as arrives.
type speeds struct{}

func (speeds) Predict(x, y []float64) {
	const size = (ratecontrol.Inputs - 2) / ratecontrol.Outputs // features of a direction, the last one its flow speed
	for k := range y {
		y[k] = x[(k+1)*size]
	}
}

// response judges a model's prediction of the deviations from the mean over each trace's rows.
func (s *Set) response(m forest.Model, rows []int) Judged {
	d := &deviations{Set: Set{Samples: &forest.Samples{Inputs: s.Samples.Inputs, Outputs: s.Samples.Outputs}}}
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && s.Rows[rows[to]].Trace == s.Rows[rows[from]].Trace {
			to++
		}
		var said, is [][ratecontrol.Outputs]float64
		var meanSaid, meanIs [ratecontrol.Outputs]float64
		for _, i := range rows[from:to] {
			var y, z [ratecontrol.Outputs]float64
			m.Predict(s.Samples.X(i), y[:])
			copy(z[:], s.Samples.Y(i))
			said, is = append(said, y), append(is, z)
			for k := range y {
				meanSaid[k] += y[k] / float64(to-from)
				meanIs[k] += z[k] / float64(to-from)
			}
		}
		for n, i := range rows[from:to] {
			for k := range meanIs {
				said[n][k] -= meanSaid[k]
				is[n][k] -= meanIs[k]
			}
			d.said = append(d.said, said[n])
			x := slices.Clone(s.Samples.X(i))
			x[ratecontrol.Inputs-1] = float64(len(d.Rows))
			d.Samples.Add(x, is[n][:], 0)
			d.Rows = append(d.Rows, s.Rows[i])
		}
		from = to
	}
	all := make([]int, len(d.Rows))
	for i := range all {
		all[i] = i
	}
	return d.judge(forestName+", response to the weight ratio within a trace", d, all)
}

// deviations are samples of deviations, whose last input is their number, and their predictions.
type deviations struct {
	Set
	said [][ratecontrol.Outputs]float64
}

// Predict implements forest.Model.
func (d *deviations) Predict(x, y []float64) { copy(y, d.said[int(x[len(x)-1])][:]) }

// accuracy tests a model on the given rows.
func (s *Set) accuracy(m forest.Model, rows []int) Accuracy {
	a := Accuracy{Rows: len(rows)}
	sum := 0.0
	for k, v := range forest.R2(m, s.Samples, rows) {
		a.Each[k] = Number(v)
		sum += v
	}
	a.Mean = Number(sum / ratecontrol.Outputs)
	return a
}

// judge tests a model on the given rows, and on the saturated and unsaturated ones separately.
func (s *Set) judge(name string, m forest.Model, rows []int) Judged {
	var yes, no []int
	for _, i := range rows {
		if s.Rows[i].Saturated {
			yes = append(yes, i)
		} else {
			no = append(no, i)
		}
	}
	return Judged{Name: name, All: s.accuracy(m, rows), Saturated: s.accuracy(m, yes), Unsaturated: s.accuracy(m, no)}
}

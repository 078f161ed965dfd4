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
	FlowSpeed  float64  `json:"flow_speed"` // total importance of both flow speeds
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

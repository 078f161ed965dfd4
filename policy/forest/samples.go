package forest

import (
	"fmt"
	"math"

	"farflash/numeric/rng"
)

// Samples are rows of inputs and their outputs.
type Samples struct {
	Inputs, Outputs []string
	Group           []int // of each row: rows that belong together, such as those of one trace; nil: each is a group

	x, y []float64
}

// Add adds a row.
func (s *Samples) Add(x, y []float64, group int) {
	if len(x) != len(s.Inputs) || len(y) != len(s.Outputs) {
		panic(fmt.Sprintf("forest: row has %d inputs and %d outputs; the samples have %d and %d", len(x), len(y),
			len(s.Inputs), len(s.Outputs)))
	}
	s.x, s.y, s.Group = append(s.x, x...), append(s.y, y...), append(s.Group, group)
}

// Rows returns the number of rows.
func (s *Samples) Rows() int { return len(s.Group) }

// X returns a row's inputs.
func (s *Samples) X(row int) []float64 { n := len(s.Inputs); return s.x[row*n : (row+1)*n : (row+1)*n] }

// Y returns a row's outputs.
func (s *Samples) Y(row int) []float64 {
	n := len(s.Outputs)
	return s.y[row*n : (row+1)*n : (row+1)*n]
}

// Pick returns a subset of the rows.
func (s *Samples) Pick(rows []int) *Samples {
	out := &Samples{Inputs: s.Inputs, Outputs: s.Outputs}
	for _, row := range rows {
		out.Add(s.X(row), s.Y(row), s.Group[row])
	}
	return out
}

// check reports samples to which no model can be fitted.
func (s *Samples) check() error {
	switch {
	case s.Rows() == 0:
		return fmt.Errorf("no samples")
	case len(s.Inputs) == 0 || len(s.Outputs) == 0 || len(s.Inputs) > mostColumn || len(s.Outputs) > mostColumn:
		return fmt.Errorf("samples of %d inputs and %d outputs; each must be 1 to %d", len(s.Inputs), len(s.Outputs),
			mostColumn)
	}
	for row := range s.Rows() {
		for i, v := range s.X(row) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("row %d: %s is %v; it must be finite", row+1, s.Inputs[i], v)
			}
		}
		for i, v := range s.Y(row) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("row %d: %s is %v; it must be finite", row+1, s.Outputs[i], v)
			}
		}
	}
	return nil
}

// Fold is a division of rows into a training and a test set.
type Fold struct{ Train, Test []int }

// Folds divides rows at random into k parts, whose sizes differ by at most one; each part is tested once with a model
// trained on the others.
func (s *Samples) Folds(k int, seed uint64) []Fold {
	own := make([]int, s.Rows())
	for i := range own {
		own[i] = i
	}
	return folds(own, s.Rows(), k, seed)
}

// GroupFolds divides groups at random into k parts, so that no group is on both sides of a fold.
func (s *Samples) GroupFolds(k int, seed uint64) []Fold {
	number, of := map[int]int{}, make([]int, s.Rows())
	for row, g := range s.Group {
		n, seen := number[g]
		if !seen {
			n = len(number)
			number[g] = n
		}
		of[row] = n
	}
	return folds(of, len(number), k, seed)
}

// folds divides rows by the part of their group; of holds the group of each row.
func folds(of []int, groups, k int, seed uint64) []Fold {
	k = max(1, min(k, groups))
	part := make([]int, groups)
	for i, g := range shuffled(groups, seed) {
		part[g] = i % k
	}
	out := make([]Fold, k)
	for row, g := range of {
		for i := range out {
			if part[g] == i {
				out[i].Test = append(out[i].Test, row)
			} else {
				out[i].Train = append(out[i].Train, row)
			}
		}
	}
	return out
}

// GroupSplit divides groups at random: a share of them, rounded, for training, the others for testing.
func (s *Samples) GroupSplit(train float64, seed uint64) Fold {
	var names []int
	seen := map[int]int{}
	for _, g := range s.Group {
		if _, there := seen[g]; !there {
			seen[g] = len(names)
			names = append(names, g)
		}
	}
	trains := make([]bool, len(names))
	for i, g := range shuffled(len(names), seed) {
		trains[g] = float64(i) < float64(train*float64(len(names)))-0.5
	}
	var f Fold
	for row, g := range s.Group {
		if trains[seen[g]] {
			f.Train = append(f.Train, row)
		} else {
			f.Test = append(f.Test, row)
		}
	}
	return f
}

// shuffled returns the numbers below n in an order determined by the seed.
func shuffled(n int, seed uint64) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	r := rng.NewStream(seed, "forest/folds")
	for i := n - 1; i > 0; i-- {
		j := r.IntN(int64(i + 1))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

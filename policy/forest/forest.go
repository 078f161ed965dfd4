// Package forest implements regression: it fits models to samples and reports their accuracy.
//
// Its main type is Forest, a random forest of regression trees (Breiman, "Random Forests", Machine Learning 45, 2001):
// each tree is grown on a bootstrap sample by CART's least-squares rule with a few inputs drawn at each split, the mean
// of the trees is the prediction, and the rows outside of a tree's sample test it. A forest may have several outputs;
// trees are then split by the sum of their variances, each in units of its own. For comparison there are a single Tree,
// KNN, Linear and Polynomial, all of them a Model; R2, and the Folds of cross-validation, by row and by group. A Forest
// can be written to a file and read back (file.go).
//
// The same samples and seed yield the same bits, on any machine and any number of processors: each tree has a random
// stream of its own, sums are formed in the order of the rows, products are rounded before they are added, and ties go
// to the first input and the first row.
//
// Formulas are those of Hastie, Tibshirani and Friedman, "The Elements of Statistical Learning" (2nd ed.): trees 9.2.2,
// importance 10.13.1 (Breiman's), forests 15.2 and 15.3, nearest neighbours 13.3. It leaves out classification, missing
// values, pruning and boosting.
package forest

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// Model predicts outputs from inputs.
type Model interface {
	// Predict sets y, one number for each output, from x, one for each input. It has no other effect and is safe for
	// concurrent use.
	Predict(x, y []float64)
}

// Config configures the growth of a forest.
type Config struct {
	Trees int // number of trees
	// Try is the number of inputs drawn at each split; 0 means a third of them, at least one (Breiman's choice for
	// regression).
	Try int
	// Leaf is the minimum number of rows in a leaf, each counted as often as the bootstrap drew it.
	Leaf int
	// Depth is the maximum number of splits from root to leaf; 0 means no limit.
	Depth int
	Seed  uint64
}

// DefaultConfig returns a forest of 100 trees with leaves of any size.
func DefaultConfig() Config { return Config{Trees: 100, Leaf: 1, Seed: 1} }

// Limits of forests that are grown or read.
const (
	mostTrees  = 10_000
	mostColumn = 1 << 12
	mostNodes  = 1 << 27 // of all trees
)

// Validate reports the first invalid setting.
func (c *Config) Validate() error {
	switch {
	case c.Trees < 1 || c.Trees > mostTrees:
		return units.Wrong("trees", "%d is not possible; use 1 to %d", c.Trees, mostTrees)
	case c.Try < 0:
		return units.Wrong("try", "%d is not possible; use 1 or more, or 0 for a third of the inputs", c.Try)
	case c.Leaf < 1:
		return units.Wrong("leaf", "%d is not possible; use 1 or more", c.Leaf)
	case c.Depth < 0:
		return units.Wrong("depth", "%d is not possible; use 1 or more, or 0 for no limit", c.Depth)
	}
	return nil
}

// Forest is a random forest. It is immutable.
type Forest struct {
	Inputs, Outputs []string
	// Notes describe the training data; they do not affect predictions.
	Notes []Note
	// OutOfBag is the R^2 of each output if every row is predicted by the trees grown without it; NaN if there is none.
	OutOfBag []float64
	// Importance is each input's share of the variance reduction by splits, over all trees (Breiman's).
	Importance []float64
	// Low and High are the minimum and the maximum of each input among the rows.
	Low, High []float64

	roots  []int32
	nodes  []node
	ends   []int32   // of each leaf node: the start of its outputs; 0 for others
	leaves []float64 // outputs of each leaf
}

// Note is a named remark on a forest.
type Note struct{ Name, Value string }

// node is a split: values at or below the threshold continue at next, the others at the node after it. A leaf has an
// infinite threshold and itself as next, so that trees of any depth can be walked in lockstep.
type node struct {
	threshold float64
	input     int32
	next      int32
}

// Trees returns the number of trees.
func (f *Forest) Trees() int { return len(f.roots) }

// Nodes returns the number of nodes of all trees.
func (f *Forest) Nodes() int { return len(f.nodes) }

// abreast is the number of trees that are walked at once: while one waits for memory the others proceed, and there is
// no unpredictable branch.
const abreast = 8

// Predict implements Model: the mean over the trees. It does not allocate.
func (f *Forest) Predict(x, y []float64) {
	y, x = y[:len(f.Outputs)], x[:len(f.Inputs)]
	clear(y)
	nodes, roots := f.nodes, f.roots
	for ; len(roots) >= abreast; roots = roots[abreast:] {
		at := [abreast]int32(roots)
		for moved := int32(1); moved != 0; {
			moved = 0
			for i := range abreast {
				here := at[i]
				n := &nodes[here]
				above := int32(0)
				if x[n.input] > n.threshold {
					above = 1
				}
				at[i] = n.next + above
				moved |= at[i] ^ here
			}
		}
		for _, leaf := range at {
			f.add(leaf, y)
		}
	}
	for _, root := range roots {
		f.add(f.leaf(root, x), y)
	}
	n := float64(len(f.roots))
	for k := range y {
		y[k] /= n
	}
}

// leaf returns the leaf that x reaches from a root.
func (f *Forest) leaf(at int32, x []float64) int32 {
	for {
		n := &f.nodes[at]
		if n.next == at {
			return at
		}
		if at = n.next; x[n.input] > n.threshold {
			at++
		}
	}
}

// add adds a leaf's outputs.
func (f *Forest) add(leaf int32, y []float64) {
	said := f.leaves[f.ends[leaf]:]
	for k := range y {
		y[k] += said[k]
	}
}

// Grow grows a forest, with trees in parallel on the given number of processors; 0 means all of them.
func Grow(s *Samples, cfg Config, workers int) (*Forest, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if cfg.Try == 0 {
		cfg.Try = max(1, len(s.Inputs)/3)
	}
	cfg.Try = min(cfg.Try, len(s.Inputs))
	t := prepare(s)
	grown := make([]*grower, cfg.Trees)
	var next atomic.Int64
	var all sync.WaitGroup
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	for range min(workers, cfg.Trees) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < cfg.Trees; i = int(next.Add(1)) - 1 {
				g := newGrower(t, &cfg, rng.NewStream(cfg.Seed, fmt.Sprintf("forest/tree[%d]", i)))
				g.bootstrap()
				g.grow()
				grown[i] = g.finished()
			}
		})
	}
	all.Wait()
	return t.join(grown)
}

// join assembles a forest from its trees, in their order.
func (t *table) join(trees []*grower) (*Forest, error) {
	s := t.s
	f := &Forest{Inputs: s.Inputs, Outputs: s.Outputs, Low: t.low, High: t.high,
		Importance: make([]float64, len(s.Inputs)), OutOfBag: make([]float64, len(s.Outputs))}
	nodes := 0
	for _, g := range trees {
		nodes += len(g.nodes)
	}
	if nodes > mostNodes {
		return nil, fmt.Errorf(
			"the trees have %d nodes; the maximum is %d: use fewer trees or rows, or larger leaves", nodes,
			mostNodes)
	}
	f.nodes, f.ends = make([]node, 0, nodes), make([]int32, 0, nodes)
	rows, outputs := s.Rows(), len(s.Outputs)
	sum, votes := make([]float64, rows*outputs), make([]int32, rows)
	for _, g := range trees {
		first, leaf := int32(len(f.nodes)), int32(len(f.leaves))
		f.roots = append(f.roots, first)
		for i, n := range g.nodes {
			end := int32(0)
			if n.next == int32(i) {
				end = g.ends[i] + leaf
			}
			n.next += first
			f.nodes, f.ends = append(f.nodes, n), append(f.ends, end)
		}
		f.leaves = append(f.leaves, g.leaves...)
		for i, v := range g.gain {
			f.Importance[i] += v
		}
		for row, times := range g.times {
			if times > 0 {
				continue
			}
			votes[row]++
			f.add(f.leaf(first, s.X(row)), sum[row*outputs:(row+1)*outputs])
		}
	}
	total := 0.0
	for _, v := range f.Importance {
		total += v
	}
	for i := range f.Importance {
		if total > 0 {
			f.Importance[i] /= total
		}
	}
	for k := range outputs {
		var said, is []float64
		for row := range rows {
			if votes[row] > 0 {
				said = append(said, sum[row*outputs+k]/float64(votes[row]))
				is = append(is, s.Y(row)[k])
			}
		}
		f.OutOfBag[k] = Determination(said, is)
	}
	return f, nil
}

// Determination is the coefficient of determination R^2 of predicted and actual values: one minus the squared errors
// over the squared distances from the mean. It is NaN if the actual values are constant.
func Determination(said, is []float64) float64 {
	mean := 0.0
	for _, v := range is {
		mean += v
	}
	mean /= float64(len(is))
	residual, total := 0.0, 0.0
	for i, v := range is {
		e, d := v-said[i], v-mean
		residual += float64(e * e)
		total += float64(d * d)
	}
	if !(total > 0) {
		return math.NaN()
	}
	return 1 - residual/total
}

// R2 returns a model's coefficient of determination of each output on the given rows.
func R2(m Model, s *Samples, rows []int) []float64 {
	outputs := len(s.Outputs)
	said, is := make([][]float64, outputs), make([][]float64, outputs)
	y := make([]float64, outputs)
	for _, row := range rows {
		m.Predict(s.X(row), y)
		for k := range outputs {
			said[k], is[k] = append(said[k], y[k]), append(is[k], s.Y(row)[k])
		}
	}
	out := make([]float64, outputs)
	for k := range out {
		out[k] = Determination(said[k], is[k])
	}
	return out
}

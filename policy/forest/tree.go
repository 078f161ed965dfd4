package forest

import (
	"cmp"
	"math"
	"slices"

	"farflash/numeric/rng"
)

// table is the state shared by all trees of a forest: columns of the samples and the order of rows in each.
type table struct {
	s         *Samples
	columns   [][]float64 // by input, by row
	order     [][]int32   // by input: rows by value, then by number
	target    []float64   // by row and output: outputs minus their mean, in units of their deviation
	low, high []float64
}

// prepare sorts the columns.
func prepare(s *Samples) *table {
	rows, inputs, outputs := s.Rows(), len(s.Inputs), len(s.Outputs)
	t := &table{s: s, low: make([]float64, inputs), high: make([]float64, inputs),
		target: make([]float64, rows*outputs)}
	for i := range inputs {
		c, order := make([]float64, rows), make([]int32, rows)
		for row := range rows {
			c[row], order[row] = s.X(row)[i], int32(row)
		}
		slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(c[a], c[b]), cmp.Compare(a, b)) })
		t.columns, t.order = append(t.columns, c), append(t.order, order)
		t.low[i], t.high[i] = c[order[0]], c[order[rows-1]]
	}
	for k := range outputs {
		mean, square := 0.0, 0.0
		for row := range rows {
			mean += s.Y(row)[k]
		}
		mean /= float64(rows)
		for row := range rows {
			d := s.Y(row)[k] - mean
			square += float64(d * d)
		}
		unit := math.Sqrt(square / float64(rows))
		if unit == 0 {
			unit = 1
		}
		for row := range rows {
			t.target[row*outputs+k] = (s.Y(row)[k] - mean) / unit
		}
	}
	return t
}

// grower grows one tree.
type grower struct {
	*table
	cfg    *Config
	r      rng.Stream
	times  []int32   // of each row: its multiplicity in the tree's sample
	order  [][]int32 // by input: the sample's rows by value; each node has the same range of all
	inputs []int32   // scratch: candidates for a draw
	spare  []int32   // scratch: rows of the right side
	left   []bool    // scratch: of each row
	sum    []float64 // scratch: of the node, and of its left side, by output
	gain   []float64 // by input: reduction of the squares by splits
	nodes  []node
	ends   []int32
	leaves []float64
}

// split is the best split found.
type split struct {
	input     int32
	threshold float64
	score     float64
	below     int // rows of the node at or below the threshold
}

func newGrower(t *table, cfg *Config, r rng.Stream) *grower {
	g := &grower{table: t, cfg: cfg, r: r, times: make([]int32, t.s.Rows()), left: make([]bool, t.s.Rows()),
		gain: make([]float64, len(t.columns)), sum: make([]float64, 2*len(t.s.Outputs)),
		inputs: make([]int32, len(t.columns))}
	for i := range g.inputs {
		g.inputs[i] = int32(i)
	}
	return g
}

// bootstrap draws as many rows as there are, with replacement.
func (g *grower) bootstrap() {
	n := int64(len(g.times))
	for range n {
		g.times[g.r.IntN(n)]++
	}
}

// grow grows the tree on the rows in times.
func (g *grower) grow() {
	g.order = make([][]int32, len(g.columns))
	for i, all := range g.table.order {
		for _, row := range all {
			if g.times[row] > 0 {
				g.order[i] = append(g.order[i], row)
			}
		}
	}
	g.spare = make([]int32, 0, len(g.order[0]))
	g.nodes, g.ends = make([]node, 1), make([]int32, 1)
	g.node(0, 0, len(g.order[0]), 0)
}

// finished keeps only the parts that a forest needs.
func (g *grower) finished() *grower {
	return &grower{times: g.times, gain: g.gain, nodes: g.nodes, ends: g.ends, leaves: g.leaves}
}

// node grows the node of a range of the orders, and its subtree. The two children of a split are adjacent.
func (g *grower) node(at, lo, hi, depth int) {
	best := split{input: -1}
	if (g.cfg.Depth == 0 || depth < g.cfg.Depth) && !g.pure(lo, hi) {
		best = g.search(lo, hi)
	}
	if best.input < 0 {
		g.nodes[at] = node{threshold: math.Inf(1), next: int32(at)}
		g.ends[at] = int32(len(g.leaves))
		g.leaf(lo, hi)
		return
	}
	g.divide(lo, hi, &best)
	next := len(g.nodes)
	g.nodes[at] = node{best.threshold, best.input, int32(next)}
	g.nodes, g.ends = append(g.nodes, node{}, node{}), append(g.ends, 0, 0)
	g.node(next, lo, lo+best.below, depth+1)
	g.node(next+1, lo+best.below, hi, depth+1)
}

// pure reports whether all rows of a node have the same outputs.
func (g *grower) pure(lo, hi int) bool {
	n := len(g.s.Outputs)
	first := int(g.order[0][lo]) * n
	for _, row := range g.order[0][lo+1 : hi] {
		if !slices.Equal(g.target[int(row)*n:int(row)*n+n], g.target[first:first+n]) {
			return false
		}
	}
	return true
}

// leaf creates a leaf with the mean of the rows.
func (g *grower) leaf(lo, hi int) {
	at, weight := len(g.leaves), 0.0
	g.leaves = append(g.leaves, make([]float64, len(g.s.Outputs))...)
	for _, row := range g.order[0][lo:hi] {
		t := float64(g.times[row])
		weight += t
		for k, v := range g.s.Y(int(row)) {
			g.leaves[at+k] += float64(t * v)
		}
	}
	for k := range g.s.Outputs {
		g.leaves[at+k] /= weight
	}
}

// search draws inputs until the configured number of non-constant ones was tried, and returns the best split. Ties go
// to the first input, and there to the lowest threshold.
func (g *grower) search(lo, hi int) split {
	outputs := len(g.s.Outputs)
	sum, below := g.sum[:outputs], g.sum[outputs:]
	clear(sum)
	weight := 0.0
	for _, row := range g.order[0][lo:hi] {
		t := float64(g.times[row])
		weight += t
		for k := range sum {
			sum[k] += float64(t * g.target[int(row)*outputs+k])
		}
	}
	parent := 0.0
	for _, v := range sum {
		parent += float64(v*v) / weight
	}
	best := split{input: -1, score: parent}
	for drawn, tried := 0, 0; drawn < len(g.inputs) && tried < g.cfg.Try; drawn++ {
		pick := drawn + int(g.r.IntN(int64(len(g.inputs)-drawn)))
		g.inputs[drawn], g.inputs[pick] = g.inputs[pick], g.inputs[drawn]
		i := g.inputs[drawn]
		c, rows := g.columns[i], g.order[i][lo:hi]
		if c[rows[0]] == c[rows[len(rows)-1]] {
			continue
		}
		tried++
		clear(below)
		w := 0.0
		for n, row := range rows[:len(rows)-1] {
			t := float64(g.times[row])
			w += t
			for k := range below {
				below[k] += float64(t * g.target[int(row)*outputs+k])
			}
			a, b := c[row], c[rows[n+1]]
			if a == b || w < float64(g.cfg.Leaf) || weight-w < float64(g.cfg.Leaf) {
				continue
			}
			score := 0.0
			for k, v := range below {
				rest := sum[k] - v
				score += float64(v*v)/w + float64(rest*rest)/(weight-w)
			}
			if score > best.score || score == best.score && i < best.input {
				best = split{i, a + float64((b-a)/2), score, n + 1}
				if best.threshold >= b {
					best.threshold = a // adjacent floating-point numbers
				}
			}
		}
	}
	if best.input >= 0 {
		g.gain[best.input] += best.score - parent
	}
	return best
}

// divide stably partitions the node's range of each order, with the rows of the left side first.
func (g *grower) divide(lo, hi int, s *split) {
	for n, row := range g.order[s.input][lo:hi] {
		g.left[row] = n < s.below
	}
	for _, order := range g.order {
		part, to := order[lo:hi], 0
		g.spare = g.spare[:0]
		for _, row := range part {
			if g.left[row] {
				part[to] = row
				to++
			} else {
				g.spare = append(g.spare, row)
			}
		}
		copy(part[to:], g.spare)
	}
}

// GrowTree grows a single tree on all rows by CART's rule, with every input tried at each split. Its out-of-bag error
// is NaN, because there are no such rows.
func GrowTree(s *Samples, leaf, depth int) (*Forest, error) {
	cfg := Config{Trees: 1, Try: len(s.Inputs), Leaf: leaf, Depth: depth}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	t := prepare(s)
	g := newGrower(t, &cfg, rng.NewStream(cfg.Seed, "forest/tree"))
	for row := range g.times {
		g.times[row] = 1
	}
	g.grow()
	return t.join([]*grower{g.finished()})
}

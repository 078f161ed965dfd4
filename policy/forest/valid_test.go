package forest

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// pair returns samples of two inputs and one output, y = x1 + 10 x2.
func pair(rows int) *Samples {
	s := &Samples{Inputs: []string{"x1", "x2"}, Outputs: []string{"y"}}
	for i := range rows {
		a, b := float64(i%4), float64(i/4)
		s.Add([]float64{a, b}, []float64{a + float64(10*b)}, i)
	}
	return s
}

// many returns one sample with the given numbers of inputs and outputs, all 0.
func many(inputs, outputs int) *Samples {
	s := &Samples{Inputs: make([]string, inputs), Outputs: make([]string, outputs)}
	s.Add(make([]float64, inputs), make([]float64, outputs), 0)
	return s
}

// TestValid modifies a valid forest to either side of each bound that valid checks.
func TestValid(t *testing.T) {
	leafOf := func(f *Forest) int { return int(f.leaf(f.roots[0], []float64{0, 0})) }
	split := func(f *Forest) *node { return &f.nodes[f.roots[0]] }
	last := func(f *Forest) int32 { return int32(len(f.nodes) - 1) }
	for name, c := range map[string]struct {
		change func(*Forest)
		want   string
	}{
		"as grown": {func(*Forest) {}, ""},
		"no inputs": {func(f *Forest) { f.Inputs, f.Importance, f.Low, f.High = nil, nil, nil, nil },
			"0 inputs and 1 outputs"},
		"no outputs": {func(f *Forest) { f.Outputs, f.OutOfBag = nil, nil }, "2 inputs and 0 outputs"},
		"too many inputs": {func(f *Forest) { f.Inputs = make([]string, mostColumn+1) },
			"4097 inputs and 1 outputs"},
		"too many outputs": {func(f *Forest) { f.Outputs = make([]string, mostColumn+1) },
			"2 inputs and 4097 outputs"},
		"the most inputs":  {func(f *Forest) { f.Inputs = make([]string, mostColumn) }, "the statistics do not match"},
		"the most outputs": {func(f *Forest) { f.Outputs = make([]string, mostColumn) }, "the statistics do not match"},
		"out of bag":       {func(f *Forest) { f.OutOfBag = nil }, "the statistics do not match"},
		"importance":       {func(f *Forest) { f.Importance = f.Importance[:1] }, "the statistics do not match"},
		"low":              {func(f *Forest) { f.Low = f.Low[:1] }, "the statistics do not match"},
		"high":             {func(f *Forest) { f.High = f.High[:1] }, "the statistics do not match"},
		"no trees":         {func(f *Forest) { f.roots = nil }, "trees: 0"},
		"the most trees":   {func(f *Forest) { f.roots = make([]int32, mostTrees) }, ""},
		"too many trees":   {func(f *Forest) { f.roots = make([]int32, mostTrees+1) }, "trees: 10001"},
		"a root before":    {func(f *Forest) { f.roots[1] = -1 }, "tree 1: root out of range"},
		"a root behind": {func(f *Forest) { f.roots[1] = int32(len(f.nodes)) },
			"tree 1: root out of range"},
		"a root at the end": {func(f *Forest) { f.roots[1] = last(f) }, ""},
		"no such input":     {func(f *Forest) { split(f).input = 2 }, "node 0: input out of range"},
		"the last input":    {func(f *Forest) { split(f).input = 1 }, ""},
		"below the inputs":  {func(f *Forest) { split(f).input = -1 }, "node 0: input out of range"},
		"a leaf that splits": {func(f *Forest) { f.nodes[leafOf(f)].threshold = math.Inf(-1) },
			": invalid leaf"},
		"outputs before": {func(f *Forest) { f.ends[leafOf(f)] = -1 }, ": invalid leaf"},
		"outputs behind": {func(f *Forest) { f.ends[leafOf(f)] = int32(len(f.leaves)) },
			": invalid leaf"},
		"the last outputs": {func(f *Forest) { f.ends[leafOf(f)] = int32(len(f.leaves) - 1) }, ""},
		"back": {func(f *Forest) { n := &f.nodes[f.roots[1]]; n.next = f.roots[1] - 1 },
			"successor out of range"},
		"beyond":       {func(f *Forest) { split(f).next = last(f) }, "successor out of range"},
		"the last two": {func(f *Forest) { split(f).next = last(f) - 1 }, ""},
		"no threshold": {func(f *Forest) { split(f).threshold = math.NaN() }, "node 0: threshold is NaN"},
		"no number":    {func(f *Forest) { f.leaves[0] = math.NaN() }, "an output is not finite"},
		"no end":       {func(f *Forest) { f.leaves[0] = math.Inf(-1) }, "an output is not finite"},
	} {
		f, err := Grow(pair(16), Config{Trees: 2, Try: 2, Leaf: 1, Seed: 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		c.change(f)
		err = f.valid()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestLimits verifies the limits on settings and samples, from both sides.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		c    Config
		want string
	}{
		{DefaultConfig(), ""}, {Config{Trees: 1, Leaf: 1}, ""}, {Config{Trees: mostTrees, Leaf: 1}, ""},
		{Config{Trees: 0, Leaf: 1}, "trees"}, {Config{Trees: mostTrees + 1, Leaf: 1}, "trees"},
		{Config{Trees: 1, Leaf: 0}, "leaf"},
		{Config{Trees: 1, Leaf: 1, Try: -1}, "try"}, {Config{Trees: 1, Leaf: 1, Try: 1}, ""},
		{Config{Trees: 1, Leaf: 1, Depth: -1}, "depth"}, {Config{Trees: 1, Leaf: 1, Depth: 1}, ""},
	} {
		if err := c.c.Validate(); (err == nil) != (c.want == "") ||
			err != nil && !strings.HasPrefix(err.Error(), c.want+":") {
			t.Errorf("%+v: %v", c.c, err)
		}
	}
	if c := DefaultConfig(); c != (Config{Trees: 100, Leaf: 1, Seed: 1}) {
		t.Errorf("%+v", c)
	}
	infinite, none := pair(3), pair(3)
	infinite.x[2], none.y[1] = math.Inf(1), math.Inf(-1)
	for _, c := range []struct {
		s    *Samples
		want string
	}{
		{pair(1), ""}, {many(mostColumn, 1), ""}, {many(1, mostColumn), ""}, {pair(0), "no samples"},
		{many(0, 1), "samples of 0 inputs and 1 outputs; each must be 1 to 4096"},
		{many(1, 0), "samples of 1 inputs and 0 outputs"},
		{many(mostColumn+1, 1), "samples of 4097 inputs"}, {many(1, mostColumn+1), "samples of 1 inputs and 4097"},
		{infinite, "row 2: x1 is +Inf"}, {none, "row 2: y is -Inf"},
	} {
		if err := c.s.check(); (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	for k, possible := range map[int]bool{0: false, 1: true, 3: true, 4: false} {
		if _, err := FitKNN(pair(3), k); (err == nil) != possible {
			t.Errorf("%d neighbours of 3 rows: %v", k, err)
		}
	}
	// 1999 inputs have 1999 terms of degree 1; 62 inputs have 62 and, of degree 2, 62*63/2.
	for inputs, c := range map[int]struct {
		degree   int
		possible bool
	}{mostTerms: {1, true}, mostTerms + 1: {1, false}, 61: {2, true}, 62: {2, false}} {
		m, err := FitPolynomial(many(inputs, 1), c.degree)
		if (err == nil) != c.possible || err == nil && c.degree == 2 && len(m.terms) != inputs+inputs*(inputs+1)/2 {
			t.Errorf("degree %d of %d inputs: %v", c.degree, inputs, err)
		}
	}
}

// TestDivisions verifies that folds are as equal as possible and no more than there are groups, and that a share of
// groups is rounded to the nearest number.
func TestDivisions(t *testing.T) {
	sizes := func(folds []Fold) (out []int) {
		for _, f := range folds {
			out = append(out, len(f.Test))
		}
		slices.Sort(out)
		return out
	}
	s := pair(7)
	for k, want := range map[int][]int{0: {7}, 1: {7}, 2: {3, 4}, 3: {2, 2, 3}, 7: {1, 1, 1, 1, 1, 1, 1},
		9: {1, 1, 1, 1, 1, 1, 1}} {
		if got := sizes(s.Folds(k, 1)); !slices.Equal(got, want) {
			t.Errorf("7 rows in %d: %v", k, got)
		}
	}
	s.Group = []int{5, 9, 5, 9, 9, 2, 5}
	if got := sizes(s.GroupFolds(4, 1)); !slices.Equal(got, []int{1, 3, 3}) {
		t.Errorf("groups of 1, 3 and 3 rows: %v", got)
	}
	s = pair(4)
	for share, want := range map[float64]int{0: 0, 0.1: 0, 0.2: 1, 0.5: 2, 0.6: 2, 0.65: 3, 0.9: 4, 1: 4} {
		f := s.GroupSplit(share, 1)
		if rows := slices.Sorted(slices.Values(slices.Concat(f.Train, f.Test))); len(f.Train) != want ||
			!slices.Equal(rows, []int{0, 1, 2, 3}) {
			t.Errorf("a share of %v of 4 groups: %v train, %v test", share, f.Train, f.Test)
		}
	}
	picked := pair(6).Pick([]int{4, 1})
	if picked.Rows() != 2 || !slices.Equal(picked.X(0), []float64{0, 1}) || picked.Y(1)[0] != 1 ||
		!slices.Equal(picked.Group, []int{4, 1}) {
		t.Errorf("%+v", picked)
	}
	seen := map[int]bool{}
	for seed := range uint64(20) {
		seen[shuffled(3, seed)[0]] = true
	}
	if len(seen) != 3 {
		t.Errorf("of 3 numbers only %v come first", seen)
	}
}

// TestWalks verifies that the mean over trees does not depend on how many are walked at once.
func TestWalks(t *testing.T) {
	s := pair(24)
	for _, trees := range []int{1, abreast - 1, abreast, abreast + 1, 2*abreast + 3} {
		f, err := Grow(s, Config{Trees: trees, Try: 9, Leaf: 1, Seed: 2}, 2)
		if err != nil {
			t.Fatal(err)
		}
		y := make([]float64, 1)
		for row := range s.Rows() {
			sum := 0.0
			for _, root := range f.roots {
				sum += f.leaves[f.ends[f.leaf(root, s.X(row))]]
			}
			if f.Predict(s.X(row), y); math.Abs(y[0]-sum/float64(trees)) > 1e-12 {
				t.Fatalf("%d trees, row %d: %v, not %v", trees, row, y[0], sum/float64(trees))
			}
		}
	}
	if got := Determination([]float64{1, 5}, []float64{1, 3}); got != -1 {
		t.Errorf("R^2 %v: of squares of 2 about the mean, errors of 4", got)
	}
	if got := Determination([]float64{1, 2}, []float64{3, 3}); !math.IsNaN(got) {
		t.Errorf("R^2 of what does not vary is %v", got)
	}
	f, err := Grow(pair(1), Config{Trees: 3, Leaf: 1}, 1)
	if err != nil || f.Importance[0] != 0 || f.Importance[1] != 0 {
		t.Errorf("of one row inputs matter by %v, %v", f.Importance, err)
	}
}

// TestDegenerate verifies that least squares fits the rows exactly if columns are constant or equal, or if there are
// fewer rows than columns.
func TestDegenerate(t *testing.T) {
	for name, rows := range map[string][][]float64{
		"a constant":     {{5, 1, 1}, {5, 2, 2}, {5, 3, 3}},
		"the same twice": {{1, 1, 4}, {2, 2, 6}, {3, 3, 8}},
		"two rows":       {{1, 7, 4}, {2, 9, 6}},
		"one row":        {{1, 7, 4}},
		"all nothing":    {{0, 0, 0}, {0, 0, 0}},
		"below zero":     {{-1, 2, -3}, {-2, 5, 1}, {4, -3, 0}},
	} {
		s := &Samples{Inputs: []string{"a", "b"}, Outputs: []string{"y"}}
		for i, r := range rows {
			s.Add(r[:2], r[2:], i)
		}
		m, err := FitLinear(s)
		if err != nil {
			t.Fatal(err)
		}
		y := []float64{math.NaN()}
		for i, r := range rows {
			if m.Predict(s.X(i), y); !(math.Abs(y[0]-r[2]) < 1e-9) {
				t.Errorf("%s, row %d: %v, not %v", name, i, y[0], r[2])
			}
		}
	}
}

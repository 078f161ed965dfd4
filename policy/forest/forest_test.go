package forest_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/forest"
)

// names returns n names of a kind.
func names(kind string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d", kind, i+1))
	}
	return out
}

// small returns samples with one output; the last number of each row is the output.
func small(rows ...[]float64) *forest.Samples {
	n := len(rows[0]) - 1
	s := &forest.Samples{Inputs: names("x", n), Outputs: []string{"y"}}
	for i, r := range rows {
		s.Add(r[:n], r[n:], i)
	}
	return s
}

// friedman is Friedman's first function (Annals of Statistics 19, 1991): ten uniform inputs of which five matter, and
// noise of variance 1. A second output is the same with the roles of the inputs 4 and 5 exchanged.
func friedman(rows int, seed uint64, outputs int) *forest.Samples {
	r := rng.NewStream(seed, "friedman")
	s := &forest.Samples{Inputs: names("x", 10), Outputs: names("y", outputs)}
	for row := range rows {
		x := make([]float64, 10)
		for i := range x {
			x[i] = r.Float64()
		}
		same := float64(10*math.Sin(math.Pi*x[0]*x[1])) + float64(20*float64((x[2]-0.5)*(x[2]-0.5))) + r.Norm()
		y := []float64{same + float64(10*x[3]) + float64(5*x[4]), same + float64(5*x[3]) + float64(10*x[4])}
		s.Add(x, y[:outputs], row/4)
	}
	return s
}

// all returns the numbers of all rows.
func all(s *forest.Samples) []int {
	out := make([]int, s.Rows())
	for i := range out {
		out[i] = i
	}
	return out
}

func predict(m forest.Model, x ...float64) float64 {
	y := []float64{math.NaN()}
	m.Predict(x, y)
	return y[0]
}

// TestTreeByHand verifies by hand that a single tree splits where the squares fall most, halfway between neighbours.
func TestTreeByHand(t *testing.T) {
	// Split at 3.5: left 1, 1, 4 and right 9, 9. The squares about the mean are 64.8; this leaves 6, the next best
	// (at 2.5) 50/3 and (at 4.5) 42.75.
	s := small([]float64{1, 1}, []float64{2, 1}, []float64{3, 4}, []float64{4, 9}, []float64{5, 9})
	one, err := forest.GrowTree(s, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[float64]float64{0: 2, 3.5: 2, 3.51: 9, 100: 9} {
		if got := predict(one, x); got != want {
			t.Errorf("of depth 1, at %v: %v, want %v", x, got, want)
		}
	}
	// Leaves of at least two rows: the left side cannot be split into 1, 1 and 4.
	for _, c := range []struct {
		leaf, nodes int
		at3         float64
	}{{1, 5, 4}, {2, 3, 2}, {3, 1, 4.8}} {
		f, err := forest.GrowTree(s, c.leaf, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := predict(f, 3); math.Abs(got-c.at3) > 1e-12 || f.Nodes() != c.nodes {
			t.Errorf("leaves of %d: %v at 3 and %d nodes, want %v and %d", c.leaf, got, f.Nodes(), c.at3, c.nodes)
		}
	}
}

// TestImportanceByHand verifies by hand that importance is the share of the squares that an input's splits remove.
func TestImportanceByHand(t *testing.T) {
	// y = 10 a + 1 b over the four corners: a takes 100 of 101 parts of the squares (2 * 25 * 2 = 100 against 2 * 0.5
	// = 1).
	s := small([]float64{0, 0, 7, 0}, []float64{0, 1, 7, 1}, []float64{1, 0, 7, 10}, []float64{1, 1, 7, 11})
	f, err := forest.GrowTree(s, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{100. / 101, 1. / 101, 0} {
		if got := f.Importance[i]; math.Abs(got-want) > 1e-12 {
			t.Errorf("importance of %s %v, want %v", f.Inputs[i], got, want)
		}
	}
	if f.Low[1] != 0 || f.High[1] != 1 || f.Low[2] != 7 || f.High[2] != 7 {
		t.Errorf("ranges %v to %v", f.Low, f.High)
	}
}

// TestTies verifies that ties go to the first input, that equal values are never separated, and that a constant input
// is not split.
func TestTies(t *testing.T) {
	f, err := forest.GrowTree(small([]float64{0, 0, 0}, []float64{1, 1, 1}), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := predict(f, 1, 0); got != 1 {
		t.Errorf("the second of two equal inputs decides: %v", got)
	}
	f, err = forest.GrowTree(small([]float64{3, 0}, []float64{3, 1}), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if f.Nodes() != 1 || predict(f, 3) != 0.5 {
		t.Errorf("%d nodes, and %v", f.Nodes(), predict(f, 3))
	}
	a := math.Nextafter(1, 2)
	f, err = forest.GrowTree(small([]float64{1, 0}, []float64{a, 1}), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if predict(f, 1) != 0 || predict(f, a) != 1 {
		t.Errorf("numbers that are neighbours: %v and %v", predict(f, 1), predict(f, a))
	}
}

// TestFriedman compares the forest with the figures of an independent one on the same function: 2,000 rows, 100 trees
// and 4 inputs per split had an R^2 of 0.895 on new rows, 0.860 out of bag (with noise), and the five relevant inputs
// ahead of the five irrelevant ones.
func TestFriedman(t *testing.T) {
	s := friedman(2000, 1, 1)
	cfg := forest.DefaultConfig()
	cfg.Try = 4
	f, err := forest.Grow(s, cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	fresh := friedman(2000, 2, 1)
	r2 := forest.R2(f, fresh, all(fresh))[0]
	t.Logf("R^2 %.4f on new rows, %.4f out of bag, %d nodes, importance %.3f", r2, f.OutOfBag[0], f.Nodes(),
		f.Importance)
	if math.Abs(r2-0.895) > 0.025 || math.Abs(f.OutOfBag[0]-0.860) > 0.015 {
		t.Errorf("R^2 is %.4f on new rows and %.4f out of bag; want some 0.895 and 0.860", r2, f.OutOfBag[0])
	}
	if least, most := slices.Min(f.Importance[:5]), slices.Max(f.Importance[5:]); least < 1.5*most {
		t.Errorf("importance %v: what matters is not told from what does not", f.Importance)
	}
	tree, err := forest.GrowTree(s, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	linear, err := forest.FitLinear(s)
	if err != nil {
		t.Fatal(err)
	}
	square, err := forest.FitPolynomial(s, 2)
	if err != nil {
		t.Fatal(err)
	}
	near, err := forest.FitKNN(s, 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name      string
		m         forest.Model
		low, high float64
	}{{"tree", tree, 0.66, 0.78}, {"linear", linear, 0.70, 0.78}, {"square", square, 0.86, 0.92},
		{"nearest", near, 0.70, 0.82}} {
		if got := forest.R2(x.m, fresh, all(fresh))[0]; got < x.low || got > x.high {
			t.Errorf("%s: R^2 %.4f, want %.2f to %.2f", x.name, got, x.low, x.high)
		}
	}
}

// TestOutputs verifies that with two outputs, each is predicted about as well as alone.
func TestOutputs(t *testing.T) {
	s, fresh := friedman(1000, 1, 2), friedman(1000, 2, 2)
	f, err := forest.Grow(s, forest.Config{Trees: 50, Try: 4, Leaf: 1, Seed: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range forest.R2(f, fresh, all(fresh)) {
		if v < 0.78 || math.Abs(v-f.OutOfBag[k]) > 0.04 {
			t.Errorf("output %d: R^2 %.4f, out of bag %.4f", k, v, f.OutOfBag[k])
		}
	}
}

// TestOutOfBag verifies that a bootstrap leaves out a share of (1-1/n)^n, and that a constant output has no R^2.
func TestOutOfBag(t *testing.T) {
	s := small([]float64{0, 5}, []float64{1, 5}, []float64{2, 5}, []float64{3, 5})
	f, err := forest.Grow(s, forest.Config{Trees: 30, Leaf: 1, Seed: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(f.OutOfBag[0]) || predict(f, 9) != 5 {
		t.Errorf("R^2 out of bag %v, prediction %v", f.OutOfBag[0], predict(f, 9))
	}
	if got := forest.Determination([]float64{1, 2, 4}, []float64{1, 2, 3}); got != 0.5 {
		t.Errorf("R^2 %v, want 0.5: 1 of 2 squares is left", got)
	}
}

// TestExact verifies the bytes of a forest grown from numbers that are the same on every machine, on any number of
// processors.
func TestExact(t *testing.T) {
	r := rng.NewStream(7, "exact")
	s := &forest.Samples{Inputs: names("x", 6), Outputs: names("y", 2)}
	for row := range 300 {
		x := make([]float64, 6)
		for i := range x {
			x[i] = r.Float64()
		}
		x[5] = float64(int(4 * x[5]))
		s.Add(x, []float64{float64(x[0]*x[1]) + x[5], float64(x[2]*x[2]) - float64(x[3]*x[0])}, row)
	}
	var first []byte
	for _, workers := range []int{1, 2, 7} {
		f, err := forest.Grow(s, forest.Config{Trees: 20, Leaf: 2, Seed: 3}, workers)
		if err != nil {
			t.Fatal(err)
		}
		f.Notes = []forest.Note{{Name: "of", Value: "a test"}}
		b := f.Encode()
		if first == nil {
			first = b
		}
		if !bytes.Equal(b, first) {
			t.Errorf("with %d processors it is another forest", workers)
		}
	}
	const want = "6941c82ece8f07ee8d6325971acc2f021323c4d6b9c392bd531a08368895c112"
	if got := forest.Checksum(first); got != want {
		t.Errorf("the checksum is %s; want %s", got, want)
	}
}

// TestLinear verifies that least squares recovers the generating function, up to rounding, and that a dependent column
// has no effect.
func TestLinear(t *testing.T) {
	r := rng.NewStream(1, "linear")
	s := &forest.Samples{Inputs: names("x", 4), Outputs: names("y", 2)}
	for row := range 60 {
		a, b, c := r.Float64(), 1e6*r.Float64(), 1e-6*r.Float64()
		s.Add([]float64{a, b, c, a + 1}, []float64{3 + 2*a - 5e-6*b + 7e6*c, 1 + 4*a*a - 2e-6*a*b + c*1e6*a}, row)
	}
	one, err := forest.FitLinear(s)
	if err != nil {
		t.Fatal(err)
	}
	two, err := forest.FitPolynomial(s, 2)
	if err != nil {
		t.Fatal(err)
	}
	y := make([]float64, 2)
	for row := range s.Rows() {
		one.Predict(s.X(row), y)
		if d := math.Abs(y[0] - s.Y(row)[0]); d > 1e-8 {
			t.Fatalf("row %d: linear is off by %g", row, d)
		}
		two.Predict(s.X(row), y)
		if d := math.Abs(y[1] - s.Y(row)[1]); d > 1e-8 {
			t.Fatalf("row %d: square is off by %g", row, d)
		}
	}
	// By hand: the slope is 1/2, and the line goes through the means, 1 and 4/3.
	line, err := forest.FitLinear(small([]float64{0, 1}, []float64{1, 1}, []float64{2, 2}))
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[float64]float64{0: 5. / 6, 2: 11. / 6, 4: 17. / 6} {
		if got := predict(line, x); math.Abs(got-want) > 1e-12 {
			t.Errorf("line at %v: %v, want %v", x, got, want)
		}
	}
}

// TestKNN verifies that the nearest rows are found by standardised distance, the first of equally near ones.
func TestKNN(t *testing.T) {
	s := small([]float64{0, 0, 1}, []float64{0, 1000, 2}, []float64{4, 0, 4}, []float64{4, 1000, 8})
	for _, c := range []struct {
		k    int
		x    []float64
		want float64
	}{{1, []float64{0.1, 10}, 1}, {1, []float64{2, 500}, 1}, {2, []float64{2, 500}, 1.5}, {2, []float64{4, 900}, 6},
		{4, []float64{9, 9}, 3.75}} {
		m, err := forest.FitKNN(s, c.k)
		if err != nil {
			t.Fatal(err)
		}
		if got := predict(m, c.x...); got != c.want {
			t.Errorf("%d nearest to %v: %v, want %v", c.k, c.x, got, c.want)
		}
	}
}

// TestFolds verifies that every row is tested once, that no group is on both sides, and that parts are even.
func TestFolds(t *testing.T) {
	s := friedman(103, 1, 1) // groups of four rows
	for name, folds := range map[string][]forest.Fold{"rows": s.Folds(5, 1), "groups": s.GroupFolds(5, 1),
		"split": {s.GroupSplit(0.6, 1)}} {
		tested := make([]int, s.Rows())
		for _, f := range folds {
			if len(f.Train)+len(f.Test) != s.Rows() {
				t.Errorf("%s: %d and %d rows of %d", name, len(f.Train), len(f.Test), s.Rows())
			}
			trains := map[int]bool{}
			for _, row := range f.Train {
				trains[s.Group[row]] = true
			}
			for _, row := range f.Test {
				tested[row]++
				if name != "rows" && trains[s.Group[row]] {
					t.Errorf("%s: group %d is on both sides", name, s.Group[row])
				}
			}
			if n := len(f.Test); name == "rows" && (n < 20 || n > 21) {
				t.Errorf("a part of %d rows of 103", n)
			}
		}
		if name != "split" && (slices.Min(tested) != 1 || slices.Max(tested) != 1) {
			t.Errorf("%s: rows are tested %d to %d times", name, slices.Min(tested), slices.Max(tested))
		}
	}
	f := s.GroupSplit(0.6, 1)
	if n := len(f.Train); n < 15*4 || n > 16*4 {
		t.Errorf("%d of 103 rows train", n)
	}
	if slices.Equal(f.Test, s.GroupSplit(0.6, 2).Test) {
		t.Error("two seeds divide alike")
	}
}

// TestRefused verifies that invalid input is rejected with a message.
func TestRefused(t *testing.T) {
	good := small([]float64{0, 0}, []float64{1, 1})
	bad := small([]float64{0, 0}, []float64{math.NaN(), 1})
	for want, f := range map[string]func() error{
		"no samples":       func() error { _, err := forest.GrowTree(&forest.Samples{}, 1, 0); return err },
		"row 2: x1 is NaN": func() error { _, err := forest.Grow(bad, forest.DefaultConfig(), 1); return err },
		"trees: 0 is not":  func() error { _, err := forest.Grow(good, forest.Config{Leaf: 1}, 1); return err },
		"leaf: 0 is not":   func() error { _, err := forest.GrowTree(good, 0, 0); return err },
		"depth: -1 is not": func() error { _, err := forest.GrowTree(good, 1, -1); return err },
		"3 neighbours are not possible with 2 rows": func() error { _, err := forest.FitKNN(good, 3); return err },
		"degree 0": func() error { _, err := forest.FitPolynomial(good, 0); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v", want, err)
		}
	}
}

// TestNoAllocation verifies that a prediction does not allocate.
func TestNoAllocation(t *testing.T) {
	f, err := forest.Grow(friedman(200, 1, 2), forest.Config{Trees: 10, Leaf: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float64, 10), make([]float64, 2)
	if n := testing.AllocsPerRun(100, func() { f.Predict(x, y) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkGrow(b *testing.B) {
	s := friedman(2000, 1, 2)
	for b.Loop() {
		if _, err := forest.Grow(s, forest.DefaultConfig(), 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPredict(b *testing.B) {
	s := friedman(2000, 1, 2)
	f, err := forest.Grow(s, forest.DefaultConfig(), 0)
	if err != nil {
		b.Fatal(err)
	}
	fresh := friedman(1000, 2, 2)
	y := make([]float64, 2)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		f.Predict(fresh.X(i%fresh.Rows()), y)
		i++
	}
}

func Example() {
	s := &forest.Samples{Inputs: []string{"x"}, Outputs: []string{"square"}}
	for i := range 100 {
		x := float64(i) / 100
		s.Add([]float64{x}, []float64{float64(x * x)}, i)
	}
	f, err := forest.Grow(s, forest.DefaultConfig(), 0)
	if err != nil {
		panic(err)
	}
	y := make([]float64, 1)
	f.Predict([]float64{0.5}, y)
	fmt.Printf("%d trees say %.2f; R^2 out of bag %.3f\n", f.Trees(), y[0], f.OutOfBag[0])
	// Output: 100 trees say 0.25; R^2 out of bag 0.999
}

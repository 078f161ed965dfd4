package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

func closeTo(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s is %.9g, want %.9g", what, got, want)
	}
}

// darwin has the heights of Zea mays, crossed and self-fertilised, in eighths of an inch: Darwin's 15 pairs as Fisher
// uses them ("The Design of Experiments", section 17). Fisher gives t = 2.148.
var darwin = []float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}

func TestPairedT(t *testing.T) {
	a := make([]float64, len(darwin))
	p, err := pairedT(a, darwin, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "mean difference", p.Effect.Mean, 314.0/15, 1e-12)
	closeTo(t, "mean of the first", p.A, 0, 1e-12)
	closeTo(t, "mean of the second", p.B, 314.0/15, 1e-12)
	closeTo(t, "t", p.Effect.Mean/(p.Deviation/math.Sqrt(15)), 2.148, 1e-3)
	closeTo(t, "p", p.P, 0.0497, 1e-3) // just significant, according to Fisher
	if !(p.Effect.Low() > 0 && p.Effect.Low() < 0.1) {
		t.Errorf("the interval begins at %v", p.Effect.Low())
	}
}

func TestPairedDegenerate(t *testing.T) {
	for _, c := range []struct {
		name       string
		a, b       []float64
		mean, half float64
		p          float64
	}{
		{"identical", []float64{1, 2, 3}, []float64{1, 2, 3}, 0, 0, 1},
		{"shifted", []float64{1, 2, 4}, []float64{2, 3, 5}, 1, 0, 0.25},
		{"shifted often", []float64{1, 2, 4, 1, 2}, []float64{2, 3, 5, 2, 3}, 1, 0, 0.0625},
		{"equal counts", []float64{7, 7}, []float64{9, 9}, 2, 0, 0.5},
	} {
		p, err := pairedT(c.a, c.b, 0.95)
		if err != nil || p.Effect.Mean != c.mean || p.Effect.Half != c.half || p.P != c.p {
			t.Errorf("%s: %+v, %v", c.name, p, err)
		}
	}
	for _, c := range [][2][]float64{{{1}, {2}}, {{1, 2}, {1, 2, 3}}, {{1, math.NaN()}, {1, 2}},
		{{1, 2}, {1, math.Inf(1)}}} {
		if _, err := pairedT(c[0], c[1], 0.95); err == nil {
			t.Errorf("%v against %v is taken", c[0], c[1])
		}
	}
	if _, err := pairedT([]float64{1, 2}, []float64{1, 3}, 1); err == nil {
		t.Error("a level of 1 is taken")
	}
}

// TestTwoSidedT compares with the closed forms for one and two degrees of freedom, and with gonum's distribution.
func TestTwoSidedT(t *testing.T) {
	for _, x := range []float64{0.1, 0.7, 1, 2.5, 12.7, 60} {
		closeTo(t, "p with 1 degree", twoSidedT(x, 1), 1-2/math.Pi*math.Atan(x), 6e-6)
		closeTo(t, "p with 2 degrees", twoSidedT(-x, 2), 1-x/math.Sqrt(2+x*x), 6e-6)
		for _, degrees := range []int{3, 9, 29, 400} {
			want := 2 * distuv.StudentsT{Sigma: 1, Nu: float64(degrees)}.CDF(-x)
			closeTo(t, "p", twoSidedT(x, degrees), want, 6e-6)
		}
	}
	if p := twoSidedT(0, 4); p != 1 {
		t.Errorf("p of 0 is %v", p)
	}
	if p := twoSidedT(math.Inf(-1), 4); p != 0 {
		t.Errorf("p of -inf is %v", p)
	}
}

// TestWilcoxonTable compares exact p values with published lower critical values (two-sided 5 %: Wilcoxon and Wilcox,
// "Some Rapid Approximate Statistical Procedures", 1964): at the critical value p is at most 0.05, one above it is
// more.
func TestWilcoxonTable(t *testing.T) {
	for _, c := range []struct{ n, critical int }{{6, 0}, {7, 2}, {8, 3}, {9, 5}, {10, 8}, {12, 13}, {15, 25},
		{20, 52}, {25, 89}, {30, 137}, {50, 434}} {
		for more := range 2 {
			p := signedRankOfSum(t, c.n, c.critical+more)
			if (p <= 0.05) != (more == 0) {
				t.Errorf("n = %d, rank sum %d: p = %v", c.n, c.critical+more, p)
			}
		}
	}
}

// signedRankOfSum tests n untied differences whose negative ones have the given rank sum.
func signedRankOfSum(t *testing.T, n, sum int) float64 {
	t.Helper()
	d := make([]float64, n)
	for i := n; i >= 1; i-- {
		d[i-1] = float64(i)
		if i <= sum {
			d[i-1] = -d[i-1]
			sum -= i
		}
	}
	r, err := Wilcoxon(d)
	if err != nil || sum != 0 || !r.Exact {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.P
}

// TestWilcoxonByHand enumerates the assignments of signs, with ties and zeros.
func TestWilcoxonByHand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Map(rapid.IntRange(-5, 5), func(i int) float64 { return float64(i) }), 0,
			12).Draw(t, "d")
		got, err := Wilcoxon(d)
		if err != nil {
			t.Fatal(err)
		}
		kept := slices.DeleteFunc(slices.Clone(d), func(x float64) bool { return x == 0 })
		rank := func(x float64) float64 {
			below, same := 0.0, 0.0
			for _, y := range kept {
				switch {
				case math.Abs(y) < math.Abs(x):
					below++
				case math.Abs(y) == math.Abs(x):
					same++
				}
			}
			return below + (same+1)/2
		}
		sum := func(signs int) (positive, negative float64) {
			for i, x := range kept {
				if signs>>i&1 == 1 {
					positive += rank(x)
				} else {
					negative += rank(x)
				}
			}
			return positive, negative
		}
		mine := 0
		for i, x := range kept {
			if x > 0 {
				mine |= 1 << i
			}
		}
		p, n := sum(mine)
		if p != got.Positive || got.N != len(kept) {
			t.Fatalf("%v: %+v, rank sums are %v and %v", d, got, p, n)
		}
		count := 0
		for signs := range 1 << len(kept) {
			if positive, _ := sum(signs); positive <= math.Min(p, n) {
				count++
			}
		}
		want := math.Min(1, 2*float64(count)/float64(int(1)<<len(kept)))
		if math.Abs(got.P-want) > 1e-15 {
			t.Fatalf("%v: p = %v, counted %v", d, got.P, want)
		}
	})
}

// TestWilcoxonTies tests 60 differences of one magnitude, 40 of them positive, in the normal approximation: its
// variance is n(n+1)(2n+1)/24 - (n^3-n)/48, that of a sum of n signs times the mean rank.
func TestWilcoxonTies(t *testing.T) {
	d := make([]float64, 60)
	for i := range d {
		d[i] = 1
		if i >= 40 {
			d[i] = -1
		}
	}
	r, err := Wilcoxon(d)
	if err != nil || r.Exact {
		t.Fatalf("%+v, %v", r, err)
	}
	deviation := 30.5 / 2 * math.Sqrt(60)
	closeTo(t, "p", r.P, math.Erfc((40*30.5-60*61/4-0.5)/deviation/math.Sqrt2), 1e-5)
}

// TestWilcoxonNormal compares the approximation with the exact distribution where both are available.
func TestWilcoxonNormal(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		d := make([]float64, mostExact+1)
		for i := range d {
			d[i] = math.Round(10*(g.NormFloat64()+0.2)) + 0.5
		}
		approximate, err := Wilcoxon(d)
		if err != nil || approximate.Exact {
			t.Fatalf("%+v, %v", approximate, err)
		}
		ranks, _ := doubledRanks(d)
		all := 0
		for _, r := range ranks {
			all += r
		}
		positive := int(2 * approximate.Positive)
		exact := exactSignedRank(ranks, min(positive, all-positive))
		if math.Abs(approximate.P-exact) > 0.004 {
			t.Errorf("p = %v, exactly %v", approximate.P, exact)
		}
	}
	if _, err := Wilcoxon([]float64{1, math.NaN()}); err == nil {
		t.Error("NaN is taken")
	}
}

func TestHolm(t *testing.T) {
	for _, c := range []struct{ p, want []float64 }{
		{nil, []float64{}},
		{[]float64{0.2}, []float64{0.2}},
		// The usual textbook example: 0.01, 0.04, 0.03 and 0.005 become 0.03, 0.06, 0.06 and 0.02.
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		{[]float64{0.5, 0.9, 0.5}, []float64{1, 1, 1}},
		{[]float64{0, 0, 0.04}, []float64{0, 0, 0.04}},
	} {
		got := Holm(c.p)
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-15 }) {
			t.Errorf("Holm(%v) = %v, want %v", c.p, got, c.want)
		}
	}
}

// TestHolmHolds counts false findings among true null hypotheses.
func TestHolmHolds(t *testing.T) {
	g := rand.New(rand.NewPCG(3, 4))
	const families = 4000
	wrong := 0
	for range families {
		p := make([]float64, 20)
		for i := range p {
			p[i] = g.Float64()
		}
		if slices.Min(Holm(p)) < 0.05 {
			wrong++
		}
	}
	if share := float64(wrong) / families; math.Abs(share-0.05) > 0.012 {
		t.Errorf("%v of the families have a false finding", share)
	}
}

// TestReplicatesToDetect verifies the promised power by simulation.
func TestReplicatesToDetect(t *testing.T) {
	g := rand.New(rand.NewPCG(5, 6))
	for _, effect := range []float64{3, 1, 0.5} {
		n, err := ReplicatesToDetect(effect, 1, 0.05, 0.8)
		if err != nil {
			t.Fatal(err)
		}
		const trials = 4000
		found := 0
		a, b := make([]float64, n), make([]float64, n)
		for range trials {
			for i := range b {
				b[i] = effect + g.NormFloat64()
			}
			p, err := pairedT(a, b, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			if p.P < 0.05 {
				found++
			}
		}
		power := float64(found) / trials
		t.Logf("effect %v: %d replicates, power %.3f", effect, n, power)
		if power < 0.77 || n > 5 && power > 0.84 {
			t.Errorf("effect %v: %d replicates have power %v", effect, n, power)
		}
	}
	// The textbook's normal approximation for large n: ((1.960 + 0.842)/0.1)^2 = 785, plus two for the t distribution.
	if n, err := ReplicatesToDetect(-0.1, 1, 0.05, 0.8); err != nil || n < 785 || n > 788 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := ReplicatesToDetect(1, 0, 0.05, 0.8); err != nil || n != 2 {
		t.Errorf("without spread: %d, %v", n, err)
	}
	for _, effect := range []float64{0, 1e-9, math.NaN()} {
		if _, err := ReplicatesToDetect(effect, 1, 0.05, 0.8); !errors.Is(err, ErrTooSmall) {
			t.Errorf("effect %v: %v", effect, err)
		}
	}
	if _, err := ReplicatesToDetect(1, 1, 0, 0.8); err == nil {
		t.Error("a significance of 0 is taken")
	}
}

// TestEdgesOfSamples verifies that a quantile of few values is one of them, whatever the share, and that pairs with an
// infinite or undefined difference are rejected, in either order.
func TestEdgesOfSamples(t *testing.T) {
	for _, c := range []struct {
		sorted []float64
		share  float64
		want   float64
	}{{[]float64{7}, 0, 7}, {[]float64{7}, 1, 7}, {[]float64{1, 2, 3, 4}, 0, 1}, {[]float64{1, 2, 3, 4}, 0.25, 1},
		{[]float64{1, 2, 3, 4}, 0.26, 2}, {[]float64{1, 2, 3, 4}, 0.5, 2}, {[]float64{1, 2, 3, 4}, 1, 4},
		{[]float64{1, 2, 3, 4}, 1.5, 4}, {[]float64{1, 2, 3, 4}, -1, 1}} {
		if got := QuantileOf(c.sorted, c.share); got != c.want {
			t.Errorf("of %v a share of %v is up to %v, not %v", c.sorted, c.share, got, c.want)
		}
	}
	for _, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
		for _, pair := range [][2][]float64{{{1, 2}, {1, v}}, {{v, 2}, {1, 3}}} {
			if _, err := pairedT(pair[0], pair[1], 0.95); err == nil {
				t.Errorf("%v beside %v has a difference", pair[0], pair[1])
			}
		}
	}
}

package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestCompareDesigns verifies that ratios are compared by their logarithms, exactly as Student's t test compares those;
// no end of an interval is below -100 %.
func TestCompareDesigns(t *testing.T) {
	g := rand.New(rand.NewPCG(11, 12))
	a, b, la, lb := make([]float64, 6), make([]float64, 6), make([]float64, 6), make([]float64, 6)
	for i := range a {
		la[i] = 3 * g.NormFloat64()
		lb[i] = la[i] + 1 + 2*g.NormFloat64()
		a[i], b[i] = math.Exp(la[i]), math.Exp(lb[i])
	}
	got, err := CompareDesigns(a, b, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	want, err := CompareDesigns(la, lb, 0.95) // some of these are negative
	if err != nil {
		t.Fatal(err)
	}
	if !got.Ratio || want.Ratio {
		t.Errorf("%+v, %+v", got, want)
	}
	closeTo(t, "mean", got.Effect.Mean, want.Effect.Mean, 1e-12)
	closeTo(t, "half", got.Effect.Half, want.Effect.Half, 1e-12)
	closeTo(t, "p", got.P, want.P, 1e-5)
	closeTo(t, "A", got.A, math.Exp(want.A), 1e-12)
	closeTo(t, "B over A", got.B/got.A, math.Exp(got.Effect.Mean), 1e-12)
	wide := got.At(0.99)
	closeTo(t, "half at 99 %", wide.Half/got.Effect.Half,
		TQuantile(0.9975, got.Degrees)/TQuantile(0.9875, got.Degrees), 1e-9)
	if wide.Level != 0.99 || wide.Mean != got.Effect.Mean {
		t.Errorf("%+v", wide)
	}
	// At each level the interval excludes 0 if and only if p is below.
	for i := range b {
		b[i] *= 100
	}
	far, err := CompareDesigns(a, b, 0.95)
	if edge := far.At(1 - far.P); err != nil || far.P > 0.1 || math.Abs(edge.Half/edge.Mean-1) > 1e-4 {
		t.Errorf("at a level of 1 - %v the interval is %v +- %v, %v", far.P, edge.Mean, edge.Half, err)
	}
	for i := range b {
		b[i] /= 100
	}
	// A change of units does not affect the comparison.
	for i := range a {
		a[i], b[i] = 1000*a[i], 1000*b[i]
	}
	other, err := CompareDesigns(a, b, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "mean in other units", other.Effect.Mean, got.Effect.Mean, 1e-12)
	closeTo(t, "p in other units", other.P, got.P, 1e-5)
	// No ratio unless all values are positive.
	for _, zero := range []float64{0, -1} {
		c := slices.Clone(a)
		c[2] = zero
		got, err := CompareDesigns(a, c, 0.95)
		want, _ := pairedT(a, c, 0.95)
		if err != nil || got.Effect.Mean != want.Effect.Mean || got.A != want.A || got.B != want.B || got.Ratio {
			t.Errorf("%+v, not %+v: %v", got, want, err)
		}
	}
	// A factor that is equal in all replicates has no spread, apart from rounding.
	for i := range b {
		b[i] = a[i] * 1.1
	}
	if got, err := CompareDesigns(a, b, 0.95); err != nil || got.Deviation != 0 || got.Effect.Half != 0 ||
		got.P != AllAlike(6) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestTwoTests verifies that neither test exceeds its level under the null hypothesis, whether the designs are
// independent, positively or negatively correlated. If seeds have no common effect, the combination is more powerful
// than the paired test at the same error, because of its degrees of freedom; if the effect is strong, it still detects
// the difference.
func TestTwoTests(t *testing.T) {
	g := rand.New(rand.NewPCG(21, 22))
	const comparisons, level = 3000, 0.05 / 6
	for _, n := range []int{2, 3, 5, 10} {
		for _, c := range []struct{ correlation, shift float64 }{{0, 0}, {0.9, 0}, {-0.5, 0}, {0, 2.5}, {0.99, 0.5}} {
			both, paired, plain := 0, 0, 0
			for range comparisons {
				a, b := make([]float64, n), make([]float64, n)
				la, lb := make([]float64, n), make([]float64, n)
				for i := range a {
					la[i] = g.NormFloat64()
					lb[i] = c.correlation*la[i] + math.Sqrt(1-c.correlation*c.correlation)*g.NormFloat64() + c.shift
					a[i], b[i] = math.Exp(la[i]), math.Exp(lb[i])
				}
				p, err := CompareDesigns(a, b, 0.95)
				if err != nil {
					t.Fatal(err)
				}
				q, err := pairedT(la, lb, 0.95)
				if err != nil {
					t.Fatal(err)
				}
				if p.P < level {
					both++
				}
				if p.P < 0.05 {
					plain++
				}
				if q.P < level/2 {
					paired++
				}
			}
			t.Logf("%d replicates, correlation %v, shift %v: found in %.4f, %.4f at 5 %%; by the paired test with "+
				"half of the error in %.4f", n, c.correlation, c.shift, float64(both)/comparisons,
				float64(plain)/comparisons, float64(paired)/comparisons)
			if c.shift == 0 && (float64(both)/comparisons > level || float64(plain)/comparisons > 0.05) {
				t.Errorf("%d replicates, correlation %v: %d and %d of %d find a difference", n, c.correlation, both,
					plain, comparisons)
			}
			if n == 5 && c.correlation == 0 && c.shift > 0 && both < paired*12/10 {
				t.Errorf("of independent designs it finds %d, and the paired test alone %d", both, paired)
			}
			if n == 10 && c.correlation > 0.9 && both < comparisons*9/10 && c.shift > 0 {
				t.Errorf("of designs with much in common it finds %d", both)
			}
		}
	}
}

// TestSignFlips compares with a full enumeration of signs, and verifies that equal differences get the p value of their
// signs.
func TestSignFlips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Map(rapid.IntRange(-4, 4), func(i int) float64 { return float64(i) / 10 }), 1,
			9).Draw(t, "d")
		sum := 0.0
		for _, x := range d {
			sum += x
		}
		count := 0
		for signs := range 1 << len(d) {
			other := 0.0
			for i, x := range d {
				if signs>>i&1 == 1 {
					x = -x
				}
				other += x
			}
			if math.Abs(other) >= math.Abs(sum)-1e-12 {
				count++
			}
		}
		if got, want := signFlips(d), float64(count)/float64(int(1)<<len(d)); got != want {
			t.Fatalf("%v: %v, not %v", d, got, want)
		}
	})
	if got := signFlips([]float64{3, 3, 3, 3}); got != AllAlike(4) {
		t.Errorf("of differences that are alike it is %v", got)
	}
	if got := signFlips(make([]float64, mostFlips+1)); got != 0 {
		t.Errorf("of too many it is %v", got)
	}
}

// TestStepped verifies that small counts are distinguished from values that happen to be equal.
func TestStepped(t *testing.T) {
	for _, c := range []struct {
		d    []float64
		want bool
	}{
		{[]float64{1, 1, 1, 2}, true}, {[]float64{0.1, 0.2, 0.3, 0.1, 0}, true}, {[]float64{1, -1, 2}, true},
		{[]float64{3, 3, 3}, true},
		{[]float64{1, 2, 3}, false}, {[]float64{112, 110, 112, 115}, false}, {[]float64{1, 1, 4}, false},
		{[]float64{0, 0, 5}, false}, {nil, false},
	} {
		if got := stepped(c.d); got != c.want {
			t.Errorf("%v: %v", c.d, got)
		}
	}
	p, err := pairedT([]float64{0, 0, 0, 0}, []float64{1, 1, 1, 2}, 0.95)
	if err != nil || p.P != 0.125 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestCountsHold compares two designs with equal distributions of small counts: the t test alone would exceed its
// level.
func TestCountsHold(t *testing.T) {
	g := rand.New(rand.NewPCG(13, 14))
	for n := 2; n <= 8; n++ {
		const comparisons = 4000
		wrong := 0
		for range comparisons {
			a, b := make([]float64, n), make([]float64, n)
			for i := range a {
				a[i], b[i] = 10+float64(g.IntN(3)), 10+float64(g.IntN(3))
			}
			p, err := CompareDesigns(a, b, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			if p.P < 0.05 {
				wrong++
			}
		}
		if share := float64(wrong) / comparisons; share > 0.06 {
			t.Errorf("%d replicates: %v of the comparisons of a count with itself have a difference", n, share)
		}
	}
}

func TestBenjaminiHochberg(t *testing.T) {
	for _, c := range []struct{ p, want []float64 }{
		{nil, []float64{}},
		{[]float64{0.2}, []float64{0.2}},
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.02, 0.04, 0.04, 0.02}},
		{[]float64{0.5, 0.9, 0.5}, []float64{0.75, 0.9, 0.75}},
	} {
		got := BenjaminiHochberg(c.p)
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-15 }) {
			t.Errorf("BenjaminiHochberg(%v) = %v, want %v", c.p, got, c.want)
		}
	}
	// The example of their paper: 15 p values, of which 4 are significant at 0.05.
	paper := []float64{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
		0.6528, 0.7590, 1}
	found := 0
	for _, q := range BenjaminiHochberg(paper) {
		if q <= 0.05 {
			found++
		}
	}
	if found != 4 {
		t.Errorf("%d of the paper's example, not 4", found)
	}
	// The share of false findings, with 30 true null hypotheses and 10 false ones.
	g := rand.New(rand.NewPCG(15, 16))
	false_, families := 0.0, 3000
	for range families {
		p := make([]float64, 40)
		for i := range p {
			p[i] = g.Float64()
			if i < 10 {
				p[i] /= 1000
			}
		}
		all, wrong := 0, 0
		for i, q := range BenjaminiHochberg(p) {
			if q < 0.05 {
				all++
				if i >= 10 {
					wrong++
				}
			}
		}
		false_ += float64(wrong) / float64(max(all, 1))
	}
	if share := false_ / float64(families); math.Abs(share-0.05*30/40) > 0.006 {
		t.Errorf("%v of findings are false", share)
	}
}

func TestLooks(t *testing.T) {
	for _, c := range []struct {
		most int
		want []int
	}{{2, []int{2}}, {5, []int{5}}, {6, []int{5, 6}}, {10, []int{5, 7, 10}}, {20, []int{5, 7, 10, 14, 20}},
		{30, []int{5, 7, 10, 14, 20, 28, 30}}} {
		if got := Looks(c.most); !slices.Equal(got, c.want) {
			t.Errorf("%d: %v", c.most, got)
		}
	}
}

// TestLooksHold analyses pairs without a true difference at every look, and stops at the first finding.
func TestLooksHold(t *testing.T) {
	g := rand.New(rand.NewPCG(17, 18))
	looks := Looks(20)
	const studies = 3000
	divided, plain := 0, 0
	for range studies {
		a, b := make([]float64, 20), make([]float64, 20)
		for i := range b {
			a[i], b[i] = math.Exp(g.NormFloat64()), math.Exp(g.NormFloat64())
		}
		least := 1.0
		for _, n := range looks {
			p, err := CompareDesigns(a[:n], b[:n], 0.95)
			if err != nil {
				t.Fatal(err)
			}
			least = min(least, p.P)
		}
		if least*float64(len(looks)) < 0.05 {
			divided++
		}
		if least < 0.05 {
			plain++
		}
	}
	t.Logf("of %d studies %d end with a difference, and %d without dividing the error among the looks", studies,
		divided, plain)
	if share := float64(divided) / studies; share > 0.05 {
		t.Errorf("%v of the studies end with a difference", share)
	}
	if share := float64(plain) / studies; share < 0.07 {
		t.Errorf("only %v of the studies would end with a difference; the looks are not what is tested", share)
	}
}

// TestDeviationBound verifies the bound's level, and Browne's guarantee: of replicate numbers computed from pilots of
// five, four in five have the power.
func TestDeviationBound(t *testing.T) {
	// chi2(0.2, 4), from printed tables
	closeTo(t, "the bound of 5 at 80 %", DeviationBound(1, 5, 0.8), math.Sqrt(4/1.648777), 1e-6)
	g := rand.New(rand.NewPCG(19, 20))
	const pilots = 4000
	needed, err := ReplicatesToDetect(0.8, 1, 0.05, 0.8)
	if err != nil {
		t.Fatal(err)
	}
	// From this deviation on, the number computed from a pilot is large enough.
	enough, less := 1.0, 0.0
	for range 40 {
		middle := (enough + less) / 2
		n, err := ReplicatesToDetect(0.8, middle, 0.05, 0.8)
		if err != nil {
			t.Fatal(err)
		}
		if n >= needed {
			enough = middle
		} else {
			less = middle
		}
	}
	bounded, naive, above := 0, 0, 0
	for range pilots {
		var m Moments
		for range 5 {
			m.Add(g.NormFloat64())
		}
		s := math.Sqrt(m.sampleVariance())
		bound := DeviationBound(s, 5, 0.8)
		if bound >= 1 {
			above++
		}
		if bound >= enough {
			bounded++
		}
		if s >= enough {
			naive++
		}
	}
	t.Logf("the bound is above the deviation in %d of %d pilots; replicates are enough in %d, and with the pilot's "+
		"own deviation in %d", above, pilots, bounded, naive)
	if share := float64(above) / pilots; math.Abs(share-0.8) > 0.025 {
		t.Errorf("the bound is above the deviation in %v", share)
	}
	if share := float64(bounded) / pilots; share < 0.79 {
		t.Errorf("replicates are enough in %v", share)
	}
	if share := float64(naive) / pilots; share > 0.6 {
		t.Errorf("the bound is not needed: %v", share)
	}
}

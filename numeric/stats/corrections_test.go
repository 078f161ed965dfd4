package stats

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestAdjustedByHand recomputes the interval of batch means: Student's, widened for correlation and skewness.
func TestAdjustedByHand(t *testing.T) {
	const level = 0.9
	for _, c := range []struct {
		name       string
		xs         []float64
		correlated bool
	}{
		{"symmetric, each unlike the last", []float64{1, 3, 1, 3, 1, 3, 1, 3}, false},
		{"symmetric, with a little correlation", []float64{1, 1, 3, 3, 1, 3, 3, 1, 1, 3, 1, 3}, false},
		{"skewed to the right", []float64{1, 2, 1, 9, 2, 1, 2, 1}, false},
		{"skewed to the left", []float64{9, 8, 9, 1, 8, 9, 8, 9}, false},
		{"skewed and correlated", []float64{2, 2, 3, 9, 8, 3, 2, 3, 2, 2, 3, 2}, true},
		{"far too correlated", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, true},
	} {
		n := float64(len(c.xs))
		mean, square, cube, lag := 0.0, 0.0, 0.0, 0.0
		for _, x := range c.xs {
			mean += x / n
		}
		for i, x := range c.xs {
			square += (x - mean) * (x - mean)
			cube += (x - mean) * (x - mean) * (x - mean)
			if i > 0 {
				lag += (x - mean) * (c.xs[i-1] - mean)
			}
		}
		r := math.Max(0, lag/square+1/n)
		quantile := TQuantile(0.95, len(c.xs)-1)
		// Johnson's t, as Willink inverts it: the farther end, in standard errors.
		factor := 1.0
		if skewness := cube / n / math.Pow(square/n, 1.5); math.Abs(skewness) > 1e-9 {
			b := math.Abs(skewness) / 6 / math.Sqrt(n)
			low, high := math.Cbrt(1-6*b*(quantile+b)), math.Cbrt(1+6*b*(quantile-b))
			factor = math.Max(1, math.Max(math.Abs(low-1), math.Abs(high-1))/(2*b)/quantile)
		}
		want := quantile * math.Sqrt(square/(n-1)/n) * math.Sqrt((1+r)/(1-r)) * factor
		got, correlated := adjusted(c.xs, level)
		if math.Abs(got.Half/want-1) > 1e-6 || math.Abs(got.Mean-mean) > 1e-12 || correlated != c.correlated ||
			got.N != len(c.xs) || got.Level != level {
			t.Errorf("%s: %+v, correlated %v; want %v around %v (r %v, factor %v)", c.name, got, correlated, want,
				mean, r, factor)
		}
	}
	if i, correlated := adjusted([]float64{2, 2, 2}, level); i.Half != 0 || i.Mean != 2 || correlated {
		t.Errorf("what does not vary: %+v, %v", i, correlated)
	}
}

// TestBatchEnds verifies that batches have equal sizes, the last one ends with the last observation, and the remainder
// is dropped at the front.
func TestBatchEnds(t *testing.T) {
	xs := []float64{100, 1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		size int
		want []float64
	}{{1, xs}, {2, []float64{1.5, 3.5, 5.5}}, {3, []float64{2, 5}}, {4, []float64{4.5}}, {7, []float64{121. / 7}},
		{8, []float64{}}} {
		if got := batches(xs, c.size); !slices.Equal(got, c.want) {
			t.Errorf("batches of %d: %v, want %v", c.size, got, c.want)
		}
	}
}

// TestLongEnough verifies the bound on the correlation of batch means: what independent means exceed once in ten cases,
// and at least 0.1.
func TestLongEnough(t *testing.T) {
	// The lag-1 autocorrelation is set exactly: runs of length k in a pattern of n, or a given number of changes.
	for _, c := range []struct {
		xs   []float64
		r    float64
		want bool
	}{
		{pattern(32, 16), 0.90625, false}, {pattern(32, 1), -0.96875, true},
		// 32 means pass up to 1.28/sqrt(32) - 1/32 = 0.195: of changes among 31 pairs, 12 give 0.1875+..., 13 less.
		{flips(32, 12), (31 - 24) / 32., false}, {flips(32, 13), (31 - 26) / 32., true},
		// 1,024 means pass up to 0.1, although the one-in-ten bound would be 0.039.
		{flips(1024, 460), (1023 - 920) / 1024., false}, {flips(1024, 461), (1023 - 922) / 1024., true},
	} {
		var m Moments
		for _, x := range c.xs {
			m.Add(x)
		}
		if math.Abs(m.ACF1()-c.r) > 1e-9 {
			t.Errorf("the case has %v, want %v", m.ACF1(), c.r)
		}
		if got := longEnough(c.xs); got != c.want {
			t.Errorf("%d means with a correlation of %v: %v", len(c.xs), c.r, got)
		}
	}
}

// pattern returns n values of -1 or 1 in runs of the given length.
func pattern(n, run int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = float64(1 - 2*(i/run%2))
	}
	return xs
}

// flips returns n values, half of them -1 and half 1, with the given number of changes: their lag-1 autocorrelation is
// (n-1-2*changes)/n.
func flips(n, changes int) []float64 {
	xs := make([]float64, 0, n)
	// The number of runs is changes plus 1, alternating between the values. Every run has length one except the first
	// of either value.
	up, down := changes/2+1, (changes+1)/2
	for k := range changes + 1 {
		length, x := 1, 1.0
		if k%2 == 1 {
			x = -1
		}
		switch k {
		case 0:
			length = n/2 - up + 1
		case 1:
			length = n/2 - down + 1
		}
		for range length {
			xs = append(xs, x)
		}
	}
	return xs
}

// TestJudgeBatches verifies the size of the batches behind a verdict's interval, and that the interval excludes the
// warm-up.
func TestJudgeBatches(t *testing.T) {
	s := NewSettling(SettlingConfig{precision: 0.05, level: 0.95, least: 64, growth: 2, patience: 100})
	for i := range 300 {
		s.Add(10 + float64(i*7%5))
	}
	v := s.Judge()
	// 300 observations are 300 batches of one; the last 33 groups of 9 are used.
	if v.Interval.Batch != 9 || v.Interval.N != 33 || v.Cut.Index != 0 || !v.Reached {
		t.Errorf("%+v", v)
	}
	for i := range 724 {
		s.Add(10 + float64(i*7%5))
	}
	// 1,024 observations are 256 batches of 4, combined into 32 groups of 8.
	if v := s.Judge(); v.Interval.Batch != 32 || v.Interval.N != 32 {
		t.Errorf("%+v", v)
	}
}

// TestWidth verifies that the reported precision is the interval's half width plus the shift of the mean by the
// warm-up.
func TestWidth(t *testing.T) {
	s := NewSettling(SettlingConfig{precision: 1e-4, level: 0.95, least: 64, growth: 2, patience: 1 << 20})
	for range 20 {
		s.Add(500)
	}
	for i := range 480 {
		s.Add(float64(50 + i*i*37%101))
	}
	v := s.Judge()
	off := math.Abs(s.total/500 - v.Interval.Mean)
	want := fmt.Sprintf("the mean is known to %.2g %%; 0.01 %% is required", 100*(v.Interval.Half+off)/v.Interval.Mean)
	if v.Reached || v.Explain != want || off < v.Interval.Half/2 || v.Interval.Half < off/10 || v.Interval.Mean > 110 {
		t.Errorf("%+v, want %q; off by %v", v, want, off)
	}
}

// TestOccurrences verifies which rare events delay the stop rule, up to which count, and when it gives up waiting.
func TestOccurrences(t *testing.T) {
	s := NewSettling(SettlingConfig{precision: 0.05, level: 0.95, least: 64, growth: 2, patience: 200})
	add := func(n int) {
		for i := range n {
			s.Add(10 + float64(i*7%5))
		}
	}
	add(199)
	for _, c := range []struct {
		times             int64
		last              bool
		reached, hopeless bool
	}{{320, false, true, false}, {320, true, true, false}, {319, false, false, false}, {319, true, false, true},
		{0, false, false, false}} {
		if v := s.Judge(Occurrence{"often", 1000, false}, Occurrence{"seldom", c.times, c.last}); v.Reached !=
			c.reached || v.Hopeless != c.hopeless {
			t.Errorf("%+v: %+v", c, v)
		}
	}
	if v := s.Judge(Occurrence{"seldom", 3, false}); v.Explain !=
		"seldom: only 3 in 199 observations; at least 320 are needed to know their part of the mean" {
		t.Errorf("%q", v.Explain)
	}
	add(1)
	if v := s.Judge(Occurrence{"seldom", 3, false}); v.Reached || !v.Hopeless {
		t.Errorf("after all patience: %+v", v)
	}
	// Other reasons take precedence.
	wild := NewSettling(SettlingConfig{precision: 0.001, level: 0.95, least: 64, growth: 2, patience: 100})
	for i := range 400 {
		wild.Add(float64(i * 37 % 101))
	}
	if v := wild.Judge(Occurrence{"seldom", 3, false}); v.Reached || v.Hopeless || v.Interval.N == 0 {
		t.Errorf("%+v", v)
	}
}

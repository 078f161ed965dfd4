package rng

import (
	"fmt"
	"math"
	"testing"
)

// The numbers of a stream are part of every result and must never change.
func TestStreamGolden(t *testing.T) {
	cases := []struct {
		seed uint64
		name string
		want [3]uint64
	}{
		{0, "", [3]uint64{0xa3142234a2659df4, 0x99ddd12a4755be0e, 0x76a03be649a64c7d}},
		{1, "ssd[0]/arrivals", [3]uint64{0x2d296e8ab88df801, 0xd940de9ab1b64b18, 0xe8c17528febebfda}},
		{1, "ssd[1]/arrivals", [3]uint64{0xe4b9facf5572d7fd, 0xcf805e844849a29d, 0x18eb1f24c4e5b421}},
		{2, "ssd[0]/arrivals", [3]uint64{0x556cac1b1c3df1a2, 0x6671afd712bacc34, 0x9e039b0e59960972}},
		{1<<64 - 1, "host[17]/flow-sizes", [3]uint64{0x314d61cd20bfd89d, 0x9001773391e17c0a, 0xf7d593ffd6f52e}},
	}
	for _, c := range cases {
		s := NewStream(c.seed, c.name)
		if got := [3]uint64{s.Uint64(), s.Uint64(), s.Uint64()}; got != c.want {
			t.Errorf("stream (%d, %q) begins %#x, want %#x", c.seed, c.name, got, c.want)
		}
	}
	s := NewStream(5, "golden")
	draws := []struct {
		name string
		next func() uint64
		want uint64
	}{
		{"Uint64", s.Uint64, 0xb0fbde1bb206a57c},
		{"Float64", func() uint64 { return math.Float64bits(s.Float64()) }, 0xfd3501a5a87f5903},
		{"IntN", func() uint64 { return uint64(s.IntN(1000003)) }, 0xb0338f89ce890575},
		{"IntN of a large number", func() uint64 { return uint64(s.IntN(1<<62 + 1)) }, 0xf0315adfa9a5c934},
		{"Exp", func() uint64 { return math.Float64bits(s.Exp()) }, 0xb6ea08ca553ba201},
		{"Norm", func() uint64 { return math.Float64bits(s.Norm()) }, 0xb532dc40ab6fc2b6},
	}
	for _, d := range draws {
		if got := fingerprint(10000, func(int) uint64 { return d.next() }); got != d.want {
			t.Errorf("%s draws have fingerprint %#x, want %#x", d.name, got, d.want)
		}
	}
}

func TestStreamIsItsSeedAndName(t *testing.T) {
	a, b := NewStream(9, "a"), NewStream(9, "a")
	other := NewStream(9, "b")
	for range 100 {
		other.Norm()
		if a.Uint64() != b.Uint64() {
			t.Fatal("two streams of one name differ")
		}
	}
}

// chiSquare verifies that counts fit equal probabilities, to within four deviations.
func chiSquare(t *testing.T, what string, counts []int) {
	t.Helper()
	total := 0
	for _, c := range counts {
		total += c
	}
	want, sum := float64(total)/float64(len(counts)), 0.0
	for _, c := range counts {
		sum += (float64(c) - want) * (float64(c) - want) / want
	}
	freedom := float64(len(counts) - 1)
	if d := (sum - freedom) / math.Sqrt(2*freedom); math.Abs(d) > 4 {
		t.Errorf("%s: chi-square is %.0f at %.0f degrees of freedom", what, sum, freedom)
	}
}

func TestIntNUnbiased(t *testing.T) {
	s := NewStream(1, "intn")
	for _, n := range []int64{1, 2, 3, 7, 10, 64, 1000} {
		counts := make([]int, n)
		for range 200 * max(n, 50) {
			counts[s.IntN(n)]++
		}
		if n > 1 {
			chiSquare(t, fmt.Sprintf("IntN(%d)", n), counts)
		}
	}
	// The bounds with the largest modulo bias: a plain remainder would return the lower half of 3 * 2^61 half as often
	// again.
	for _, n := range []int64{3 << 61, 1<<62 + 1<<61 + 1, 1<<63 - 1} {
		counts := make([]int, 12)
		for range 60000 {
			x := s.IntN(n)
			if x < 0 || x >= n {
				t.Fatalf("IntN(%d) is %d", n, x)
			}
			counts[min(x/(n/12), 11)]++
		}
		chiSquare(t, fmt.Sprintf("IntN(%d)", n), counts)
	}
	for _, n := range []int64{0, -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("IntN(%d) did not panic", n)
				}
			}()
			s.IntN(n)
		}()
	}
}

func TestFloat64Uniform(t *testing.T) {
	s := NewStream(1, "float64")
	counts := make([]int, 1000)
	for range 500000 {
		x := s.Float64()
		if x < 0 || x >= 1 {
			t.Fatalf("Float64 is %v", x)
		}
		counts[int(x*1000)]++
	}
	chiSquare(t, "Float64", counts)
}

func TestMoments(t *testing.T) {
	const n = 1 << 20
	cases := []struct {
		name string
		draw func(*Stream) float64
		// raw moments 1 to 4, then the eighth for the deviation of the fourth's mean
		want [4]float64
		m6   float64
		m8   float64
	}{
		{"Float64", (*Stream).Float64, [4]float64{1. / 2, 1. / 3, 1. / 4, 1. / 5}, 1. / 7, 1. / 9},
		{"Exp", (*Stream).Exp, [4]float64{1, 2, 6, 24}, 720, 40320},
		{"Norm", (*Stream).Norm, [4]float64{0, 1, 0, 3}, 15, 105},
	}
	for _, c := range cases {
		s := NewStream(11, c.name)
		var sum [4]float64
		for range n {
			x := c.draw(&s)
			p := 1.0
			for k := range sum {
				p *= x
				sum[k] += p
			}
		}
		squares := [4]float64{c.want[1], c.want[3], c.m6, c.m8}
		for k := range sum {
			deviation := math.Sqrt((squares[k] - c.want[k]*c.want[k]) / n)
			if d := (sum[k]/n - c.want[k]) / deviation; math.Abs(d) > 4 {
				t.Errorf("%s: moment %d is %v, want %v: %.1f deviations off", c.name, k+1, sum[k]/n, c.want[k], d)
			}
		}
	}
}

// The largest distance between the empirical and the true distribution (Kolmogorov-Smirnov) must be one that chance
// produces.
func TestDistributions(t *testing.T) {
	const n = 200000
	cases := []struct {
		name       string
		draw       func(*Stream) float64
		cumulative func(float64) float64
	}{
		{"Exp", (*Stream).Exp, func(x float64) float64 { return 1 - math.Exp(-x) }},
		{"Norm", (*Stream).Norm, func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }},
	}
	for _, c := range cases {
		s := NewStream(13, c.name)
		counts := make([]int, 500)
		for range n {
			counts[min(int(c.cumulative(c.draw(&s))*500), 499)]++
		}
		sum, worst := 0, 0.0
		for i, k := range counts {
			sum += k
			worst = max(worst, math.Abs(float64(sum)/n-float64(i+1)/500))
		}
		if worst*math.Sqrt(n) > 1.95 { // exceeded with a probability of one in a thousand
			t.Errorf("%s: distance %.5f", c.name, worst)
		}
		chiSquare(t, c.name, counts)
	}
}

// Streams with similar names or seeds must be uncorrelated, at every lag that could affect a model.
func TestStreamsUncorrelated(t *testing.T) {
	const n, lags = 20000, 4
	var streams [][]float64
	for seed := range uint64(4) {
		for i := range 5 {
			s := NewStream(seed, fmt.Sprintf("ssd[%d]/arrivals", i))
			xs := make([]float64, n+lags)
			for k := range xs {
				xs[k] = (s.Float64() - 0.5) * math.Sqrt(12)
			}
			streams = append(streams, xs)
		}
	}
	worst := 0.0
	for i, a := range streams {
		for j, b := range streams {
			for lag := range lags {
				if i == j && lag == 0 {
					continue
				}
				sum := 0.0
				for k := range n {
					sum += a[k] * b[k+lag]
				}
				worst = max(worst, math.Abs(sum)/math.Sqrt(n))
			}
		}
	}
	// The largest of 1580 normal deviates exceeds 4.9 with a probability of one in a thousand.
	if worst > 4.9 {
		t.Errorf("a correlation of %.1f deviations", worst)
	}
}

func TestStreamAllocatesNothing(t *testing.T) {
	s := NewStream(1, "allocations")
	if a := testing.AllocsPerRun(1000, func() { sink64 = s.Exp() + s.Norm() + float64(s.IntN(7)) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

func BenchmarkStream(b *testing.B) {
	draws := []struct {
		name string
		draw func(*Stream) float64
	}{
		{"Float64", (*Stream).Float64},
		{"IntN", func(s *Stream) float64 { return float64(s.IntN(1000)) }},
		{"Exp", (*Stream).Exp},
		{"Norm", (*Stream).Norm},
	}
	for _, d := range draws {
		b.Run(d.name, func(b *testing.B) {
			s := NewStream(1, "bench")
			sum := 0.0
			for range b.N {
				sum += d.draw(&s)
			}
			sink64 = sum
		})
	}
}

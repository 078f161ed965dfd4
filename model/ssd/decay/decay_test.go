package decay_test

import (
	"math"
	"math/big"
	"testing"

	"farflash/model/ssd/decay"
	"farflash/numeric/rng"
)

// TestRate compares the curve of 72 layers of TLC with sums computed independently (bc -l), for a fresh block, a worn
// one, an old one and one that is read often.
func TestRate(t *testing.T) {
	f := decay.TLC72.Fit()
	for _, c := range []struct{ cycles, days, reads, want float64 }{
		{0, 0, 0, 1.48e-3},
		{1000, 0, 0, 1.48e-3 + 3.90e-10*math.Pow(1000, 2.05)},
		{1000, 365, 0, 1.48e-3 + 3.90e-10*math.Pow(1000, 2.05) + 6.28e-5*math.Pow(1000, .14)*math.Pow(365, .54)},
		{3000, 90, 500, 1.48e-3 + 3.90e-10*math.Pow(3000, 2.05) + 6.28e-5*math.Pow(3000, .14)*math.Pow(90, .54) +
			3.73e-9*math.Pow(3000, .33)*math.Pow(500, 1.71)},
		{1e6, 1e6, 1e9, 0.5},
	} {
		if got := f.Rate(c.cycles, c.days, c.reads); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v cycles, %v days, %v reads: %v, want %v", c.cycles, c.days, c.reads, got, c.want)
		}
	}
	// 1000 cycles and 100 reads a page together: 2.126765e-3, as printed by the authors of a program derived from
	// MQSim.
	if got := f.Rate(1000, 0, 100); math.Abs(got-2.126765e-3) > 5e-10 {
		t.Errorf("1000 cycles and 100 reads: %v", got)
	}
	for _, x := range [][2][3]float64{{{100, 1, 1}, {200, 1, 1}}, {{100, 1, 1}, {100, 2, 1}},
		{{100, 1, 1}, {100, 1, 2}}} {
		if a, b := x[0], x[1]; f.Rate(a[0], a[1], a[2]) >= f.Rate(b[0], b[1], b[2]) {
			t.Errorf("the rate does not grow from %v to %v", a, b)
		}
	}
}

// exactTail computes the upper tail of a binomial distribution with big floats.
func exactTail(n, t int, p float64) float64 {
	const prec = 400
	x := new(big.Float).SetPrec(prec).SetFloat64(p)
	y := new(big.Float).SetPrec(prec).Sub(big.NewFloat(1).SetPrec(prec), x)
	term := big.NewFloat(1).SetPrec(prec)
	for range n {
		term.Mul(term, y)
	}
	below := new(big.Float).SetPrec(prec).Set(term)
	for k := range t {
		term.Mul(term, x).Mul(term, new(big.Float).SetInt64(int64(n-k)))
		term.Quo(term, y).Quo(term, new(big.Float).SetInt64(int64(k+1)))
		below.Add(below, term)
	}
	out, _ := new(big.Float).Sub(big.NewFloat(1).SetPrec(prec), below).Float64()
	return out
}

// TestFails compares the failure probability of a codeword with the binomial distribution in 400-bit floats, from
// codewords that hardly ever fail to those that always do.
func TestFails(t *testing.T) {
	for _, c := range []struct{ bits, corrects int }{{64, 0}, {512, 4}, {8192, 72}, {32768, 50}} {
		code := decay.NewCode(c.bits, c.corrects)
		for _, share := range []float64{.2, .5, .7, .9, .99, 1, 1.01, 1.2, 2} {
			p := share * float64(c.corrects+1) / float64(c.bits)
			want := exactTail(c.bits, c.corrects, p)
			got := code.Fails(p)
			if want < 0x1p-64 {
				want = 0
			}
			if math.Abs(got-want) > 1e-8*want+1e-14 && got < .999999 {
				t.Errorf("%d of %d bits, %v wrong: fails %v, want %v", c.corrects, c.bits, p, got, want)
			}
			const words = 16
			if got, want := code.AnyFails(p, words), 1-math.Pow(1-want, words); math.Abs(got-want) > 1e-7*want+1e-14 {
				t.Errorf("%d of %d bits, %v wrong: one of %d fails %v, want %v", c.corrects, c.bits, p, words, got,
					want)
			}
		}
	}
	sure := decay.NewCode(64, 64)
	if got := sure.Fails(.5); got != 0 {
		t.Errorf("a code that corrects everything fails %v", got)
	}
}

// TestFailsOften compares it with random draws of bits.
func TestFailsOften(t *testing.T) {
	const bits, corrects, p, tries = 256, 4, .015, 20000
	code := decay.NewCode(bits, corrects)
	random := rng.NewStream(1, "bits")
	failed := 0
	for range tries {
		wrong := 0
		for range bits {
			if random.Float64() < p {
				wrong++
			}
		}
		if wrong > corrects {
			failed++
		}
	}
	want := code.Fails(p)
	if got := float64(failed) / tries; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/tries) {
		t.Errorf("fails %v of the time, want %v", got, want)
	}
}

// TestLimits verifies that invalid coefficients are rejected.
func TestLimits(t *testing.T) {
	f := decay.TLC72.Fit()
	if err := f.Validate(); err != nil {
		t.Error(err)
	}
	for i := range 9 {
		f := decay.TLC72.Fit()
		*[]*float64{&f.Base, &f.Wear, &f.WearPower, &f.Retention, &f.RetentionCycles, &f.RetentionDays, &f.Disturb,
			&f.DisturbCycles, &f.DisturbReads}[i] = -1
		if f.Validate() == nil {
			t.Errorf("the %dth figure may be negative", i)
		}
	}
	var c decay.Curve
	if err := c.UnmarshalText([]byte("given")); err != nil || c != decay.Given || c.Fit() != (decay.Fit{}) {
		t.Errorf("%v, %v", c, err)
	}
}

package rng

import (
	"math"
	"math/big"
	"testing"
)

// precision is the precision of the reference computation, in bits.
const precision = 160

func exact(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

func zero() *big.Float { return new(big.Float).SetPrec(precision) }

// bigAtanhDoubled returns 2 artanh(s) = ln((1+s)/(1-s)) for small s.
func bigAtanhDoubled(s *big.Float) *big.Float {
	sum, power, square := zero(), zero().Mul(s, exact(2)), zero().Mul(s, s)
	for k := 1; power.Sign() != 0 && (sum.Sign() == 0 || power.MantExp(nil) > sum.MantExp(nil)-precision); k += 2 {
		sum.Add(sum, zero().Quo(power, exact(float64(k))))
		power.Mul(power, square)
	}
	return sum
}

func bigLog(x float64) *big.Float {
	m, e := math.Frexp(x)
	if m < 0.7 {
		m, e = 2*m, e-1
	}
	s := zero().Quo(zero().Sub(exact(m), exact(1)), zero().Add(exact(m), exact(1)))
	ln2 := bigAtanhDoubled(zero().Quo(exact(1), exact(3)))
	return zero().Add(bigAtanhDoubled(s), ln2.Mul(ln2, exact(float64(e))))
}

// bigExp sums the series of e^(x/4096) and squares twelve times.
func bigExp(x float64) *big.Float {
	r := exact(x)
	r.SetMantExp(r, -12)
	sum, term := exact(1), exact(1)
	for n := 1; n < 60; n++ {
		term.Quo(term.Mul(term, r), exact(float64(n)))
		sum.Add(sum, term)
	}
	for range 12 {
		sum.Mul(sum, sum)
	}
	return sum
}

// ulps returns the distance of got from want, in units of want's last place.
func ulps(got float64, want *big.Float) float64 {
	w, _ := want.Float64()
	ulp := math.Nextafter(math.Abs(w), math.Inf(1)) - math.Abs(w)
	d, _ := zero().Quo(zero().Sub(exact(got), want), exact(ulp)).Float64()
	return math.Abs(d)
}

// arguments returns arguments over all magnitudes, densely near 1 and near 0.
func arguments() []float64 {
	s := NewStream(1, "arguments")
	xs := []float64{1, 2, math.E, 0.5, math.Sqrt2 / 2, math.Sqrt2, math.Nextafter(1, 0), math.Nextafter(1, 2),
		math.MaxFloat64, math.SmallestNonzeroFloat64, 0x1p-1022, 0x1p-53, 10, 1000}
	for range 2000 {
		xs = append(xs,
			s.Float64(),
			1+(s.Float64()-0.5)/16,
			1+(s.Float64()-0.5)*0x1p-30,
			math.Float64frombits(s.Uint64()>>2), // (0, 2)
			math.Ldexp(1+s.Float64(), int(s.IntN(2000))-1000))
	}
	return xs
}

func TestLogAccuracy(t *testing.T) {
	worst, at := 0.0, 0.0
	for _, x := range arguments() {
		if x == 1 {
			continue
		}
		if d := ulps(Log(x), bigLog(x)); d > worst {
			worst, at = d, x
		}
	}
	t.Logf("worst: %.3f ulp at %v", worst, at)
	if worst > 2 {
		t.Errorf("Log(%v) is %.2f ulp off", at, worst)
	}
}

func TestExpAccuracy(t *testing.T) {
	s := NewStream(2, "arguments")
	worst, at := 0.0, 0.0
	for i := range 6000 {
		x := (s.Float64() - 0.5) * [3]float64{1400, 20, 1e-3}[i%3]
		if d := ulps(Exp(x), bigExp(x)); d > worst {
			worst, at = d, x
		}
	}
	t.Logf("worst: %.3f ulp at %v", worst, at)
	if worst > 2 {
		t.Errorf("Exp(%v) is %.2f ulp off", at, worst)
	}
}

func TestPowAccuracy(t *testing.T) {
	s := NewStream(3, "arguments")
	for range 3000 {
		x, y := math.Exp(8*(s.Float64()-0.5)), 24*(s.Float64()-0.5)
		want := math.Pow(x, y)
		if d := math.Abs(Pow(x, y)/want - 1); d > 2e-14 {
			t.Errorf("Pow(%v, %v) is %v off", x, y, d)
		}
	}
}

func TestMathSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	cases := []struct {
		name      string
		got, want float64
	}{
		{"Log(0)", Log(0), -inf},
		{"Log(-0)", Log(math.Copysign(0, -1)), -inf},
		{"Log(1)", Log(1), 0},
		{"Log(-1)", Log(-1), nan},
		{"Log(+Inf)", Log(inf), inf},
		{"Log(-Inf)", Log(-inf), nan},
		{"Log(NaN)", Log(nan), nan},
		{"Exp(0)", Exp(0), 1},
		{"Exp(710)", Exp(710), inf},
		{"Exp(709.785)", Exp(709.785), inf},
		{"Exp(-746)", Exp(-746), 0},
		{"Exp(-745)", Exp(-745), math.SmallestNonzeroFloat64},
		{"Exp(+Inf)", Exp(inf), inf},
		{"Exp(-Inf)", Exp(-inf), 0},
		{"Exp(NaN)", Exp(nan), nan},
		{"Pow(7, 0)", Pow(7, 0), 1},
		{"Pow(1, 1e300)", Pow(1, 1e300), 1},
		{"Pow(2, 2000)", Pow(2, 2000), inf},
		{"Pow(2, -2000)", Pow(2, -2000), 0},
	}
	for _, c := range cases {
		if math.Float64bits(c.got) != math.Float64bits(c.want) && !(math.IsNaN(c.got) && math.IsNaN(c.want)) {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
}

// fingerprint is FNV-1a over the bits of a sequence of numbers.
func fingerprint(n int, next func(i int) uint64) uint64 {
	h := uint64(14695981039346656037)
	for i := range n {
		x := next(i)
		for b := 0; b < 64; b += 8 {
			h = (h ^ x>>b&255) * 1099511628211
		}
	}
	return h
}

// These bits must be the same on every processor and with every GOAMD64.
func TestMathGoldenBits(t *testing.T) {
	values := []struct {
		name string
		got  float64
		want uint64
	}{
		{"Log(2)", Log(2), 0x3fe62e42fefa39ef},
		{"Log(10)", Log(10), 0x40026bb1bbb55516},
		{"Log(0.1)", Log(0.1), 0xc0026bb1bbb55515},
		{"Log(1e300)", Log(1e300), 0x4085963447f87fb5},
		{"Log(5e-324)", Log(5e-324), 0xc0874385446d71c3},
		{"Exp(1)", Exp(1), 0x4005bf0a8b14576a},
		{"Exp(-1)", Exp(-1), 0x3fd78b56362cef38},
		{"Exp(0.1)", Exp(0.1), 0x3ff1aec7b35a00d4},
		{"Exp(700)", Exp(700), 0x7f0d945df4f8ec8e},
		{"Exp(-744)", Exp(-744), 0x2},
		{"Pow(2, 0.5)", Pow(2, 0.5), 0x3ff6a09e667f3bcc},
		{"Pow(0.3, 17)", Pow(0.3, 17), 0x3e162fa4f993ecdd},
	}
	for _, v := range values {
		if got := math.Float64bits(v.got); got != v.want {
			t.Errorf("%s has bits %#x, want %#x", v.name, got, v.want)
		}
	}
	xs := arguments()
	s := NewStream(4, "arguments")
	sweeps := []struct {
		name string
		got  uint64
		want uint64
	}{
		{"Log", fingerprint(len(xs), func(i int) uint64 { return math.Float64bits(Log(xs[i])) }), 0x44c50a20eec065be},
		{"Exp", fingerprint(10000, func(int) uint64 { return math.Float64bits(Exp(1480 * (s.Float64() - 0.5))) }),
			0xd6093b22cec4d029},
		{"Pow", fingerprint(10000, func(int) uint64 { return math.Float64bits(Pow(10*s.Float64(), 8*s.Float64())) }),
			0xe896cf7be5a0cbd4},
	}
	for _, v := range sweeps {
		if v.got != v.want {
			t.Errorf("%s's values have fingerprint %#x, want %#x", v.name, v.got, v.want)
		}
	}
}

func BenchmarkLog(b *testing.B) {
	sum := 0.0
	for i := range b.N {
		sum += Log(float64(i&1023) + 0.5)
	}
	sink64 = sum
}

func BenchmarkExp(b *testing.B) {
	sum := 0.0
	for i := range b.N {
		sum += Exp(float64(i&127) - 64)
	}
	sink64 = sum
}

// sink64 keeps the compiler from eliminating benchmarked computations.
var sink64 float64

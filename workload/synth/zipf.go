package synth

import (
	"farflash/numeric/rng"
	"math"
)

// Ranks draws k from 1 to n with probability proportional to k^-theta, in constant time and memory, by
// rejection-inversion (Hörmann and Derflinger, ACM TOMACS 6(3), 1996). h(x) = x^-theta; H is its integral from 1.
type Ranks struct {
	n          float64
	theta      float64
	low, high  float64 // H at 1.5 minus h(1), and at n + 0.5
	acceptance float64 // a draw less than this below its integer is accepted immediately
}

// NewRanks returns a source of ranks up to n. theta must be above 0.
func NewRanks(n int64, theta float64) Ranks {
	z := Ranks{n: float64(n), theta: theta}
	z.low = z.integral(1.5) - 1
	z.high = z.integral(z.n + 0.5)
	z.acceptance = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z
}

// Next draws a rank.
func (z *Ranks) Next(s *rng.Stream) int64 {
	for {
		u := z.high + float64(s.Float64()*(z.low-z.high))
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.acceptance || u >= z.integral(k+0.5)-z.density(k) {
			return int64(k)
		}
	}
}

func (z *Ranks) density(x float64) float64 { return rng.Exp(-z.theta * rng.Log(x)) }

// integral returns (x^(1-theta) - 1)/(1-theta), or log x if theta is 1, without the cancellation near it.
func (z *Ranks) integral(x float64) float64 {
	l := rng.Log(x)
	return l * growth((1-z.theta)*l)
}

// inverse returns the x whose integral is y.
func (z *Ranks) inverse(y float64) float64 {
	t := max(y*(1-z.theta), -1)
	return rng.Exp(y * decline(t))
}

// growth returns (e^t - 1)/t.
func growth(t float64) float64 {
	if math.Abs(t) < 1e-4 {
		return 1 + float64(t/2*(1+float64(t/3*(1+float64(t/4)))))
	}
	return (rng.Exp(t) - 1) / t
}

// decline returns log(1+t)/t.
func decline(t float64) float64 {
	if math.Abs(t) < 1e-4 {
		return 1 - float64(t*(0.5-float64(t*(1.0/3-float64(t/4)))))
	}
	return rng.Log(1+t) / t
}

// Scatter is a random bijection of 0..n-1 in constant memory: a four-round Feistel network on the smallest even
// number of bits that holds n, walked until the result is below n (Black and Rogaway, CT-RSA 2002).
type Scatter struct {
	n    uint64
	half uint // bits of each half
	mask uint64
	keys [4]uint64
}

// NewScatter returns a bijection of 0 to n-1.
func NewScatter(n int64, seed uint64, name string) Scatter {
	p := Scatter{n: uint64(n), half: 1}
	for p.n > 1<<(2*p.half) {
		p.half++
	}
	p.mask = 1<<p.half - 1
	s := rng.NewStream(seed, name)
	for i := range p.keys {
		p.keys[i] = s.Uint64()
	}
	return p
}

// At returns the place of k.
func (p *Scatter) At(k int64) int64 {
	v := uint64(k)
	for {
		left, right := v>>p.half, v&p.mask
		for _, key := range p.keys {
			z := (right + key) * rng.Golden
			z = (z ^ z>>29) * 0xbf58476d1ce4e5b9
			left, right = right, left^z>>32&p.mask
		}
		if v = left<<p.half | right; v < p.n {
			return int64(v)
		}
	}
}

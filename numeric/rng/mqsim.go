package rng

import "math"

// MQSim is MQSim's variant of MRG32k3a: the multipliers are L'Ecuyer's, and the moduli m1 and m2 are those in MQSim.
// MQSim computes in float64. Integers give the same results, because nearly all values there are exact. The exception
// is the first states after seeding, which can be negative: then a difference of products can exceed 2^53 and is
// rounded, and so is the multiple of the modulus subtracted from it.
type MQSim struct {
	s [2][3]int64
}

// NewMQSim seeds a generator: all ones, advanced (seed/200 + 1) * 2^(seed mod 200) steps. It panics if the seed is
// negative, with which MQSim does not end.
func NewMQSim(seed int32) MQSim {
	if seed < 0 {
		panic("rng: a negative seed of MQSim")
	}
	g := MQSim{[2][3]int64{{1, 1, 1}, {1, 1, 1}}}
	g.advance(int64(seed/200+1), int(seed%200))
	return g
}

// advance jumps ahead by n * 2^e steps with powers of the transition matrices. Products of two residues exceed 63 bits
// and wrap around, in MQSim as here (integer overflow wraps in both languages). The states are therefore not those of
// the true jump, but they are the ones that MQSim uses.
func (g *MQSim) advance(n int64, e int) {
	matrices := [2][3][3]int64{
		{{0, 1, 0}, {0, 0, 1}, {mrgM1 - mrgA13, mrgA12, 0}},
		{{0, 1, 0}, {0, 0, 1}, {mrgM2 - mrgA23, 0, mrgA21}},
	}
	moduli := [2]int64{mrgM1, mrgM2}
	for i := range matrices {
		power, modulus := &matrices[i], moduli[i]
		for range e {
			square(power, modulus)
		}
		state := g.s[i]
		for left := n; left != 0; {
			if left&1 != 0 {
				state = apply(power, state, modulus)
			}
			if left >>= 1; left != 0 {
				square(power, modulus)
			}
		}
		g.s[i] = state
	}
}

func square(a *[3][3]int64, m int64) {
	var d [3][3]int64
	for i := range d {
		for j := range d[i] {
			for k := range a {
				d[i][j] = (a[i][k]*a[k][j] + d[i][j]) % m
			}
		}
	}
	*a = d
}

func apply(a *[3][3]int64, u [3]int64, m int64) (w [3]int64) {
	for i := range w {
		for j := range u {
			w[i] = (a[i][j]*u[j] + w[i]) % m
		}
	}
	return w
}

// Next returns a number in (0, 1).
func (g *MQSim) Next() float64 {
	p1 := reduce(mrgA12*g.s[0][1]-mrgA13*g.s[0][0], mrgM1)
	g.s[0] = [3]int64{g.s[0][1], g.s[0][2], p1}
	p2 := reduce(mrgA21*g.s[1][2]-mrgA23*g.s[1][0], mrgM2)
	g.s[1] = [3]int64{g.s[1][1], g.s[1][2], p2}
	p := p1 - p2
	if p < 0 {
		p += mrgM1
	}
	return float64(p+1) * mrgNorm
}

// reduce returns x, a difference of two float64 products, modulo m, in [0, m). m is a constant below 2^32 where this is
// inlined, and x is between -2^62 and 2^62, so adding m<<30 makes the dividend non-negative.
func reduce(x, m int64) int64 {
	if x > 1<<53 || x < -1<<53 {
		return reduceRounded(float64(x), float64(m))
	}
	return int64(uint64(x+m<<30) % uint64(m))
}

// reduceRounded is reduce where the difference, and the multiple of m that is subtracted from it, are rounded as in
// MQSim.
//
//go:noinline
func reduceRounded(x, m float64) int64 {
	if x -= float64(math.Trunc(x/m) * m); x < 0 {
		x += m
	}
	return int64(x)
}

// Between returns an integer from a to b, inclusive, of fewer than 2^63.
func (g *MQSim) Between(a, b uint64) uint64 {
	if b < a || b-a >= 1<<63-1 {
		panic("rng: Between two numbers of which the second is less, or that are 2^63 apart")
	}
	return a + uint64(int64(float64(int64(b-a+1))*g.Next()))
}

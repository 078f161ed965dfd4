package rng

// NS3Draws generates the numbers of an ns-3 program that creates a random variable for each draw: the first number of
// each stream of MRG32k3a. Streams are 2^127 steps apart, runs 2^76.
type NS3Draws struct {
	s    [2][3]uint64
	jump [2]matrix
}

type matrix [3][3]uint64

// The moduli, and the transition matrices of a single step.
var (
	mrgModuli = [2]uint64{mrgM1, mrgM2}
	mrgStep   = [2]matrix{
		{{0, 1, 0}, {0, 0, 1}, {mrgM1 - mrgA13, mrgA12, 0}},
		{{0, 1, 0}, {0, 0, 1}, {mrgM2 - mrgA23, 0, mrgA21}},
	}
)

// NewNS3Draws starts at the given stream of a run, with ns-3's seed of 1.
func NewNS3Draws(run, stream uint64) *NS3Draws {
	d := &NS3Draws{s: [2][3]uint64{{1, 1, 1}, {1, 1, 1}}}
	for i, m := range mrgModuli {
		power := mrgStep[i]
		for k := range 127 {
			if k == 76 {
				d.s[i] = advance(power, d.s[i], run, m)
			}
			power = power.times(&power, m)
		}
		d.jump[i] = power
		d.s[i] = advance(power, d.s[i], stream, m)
	}
	return d
}

// Next returns the first number of the next stream, in (0, 1).
func (d *NS3Draws) Next() float64 {
	// With a constant modulus, the compiler turns the remainder into a multiplication.
	const m0, m1 = mrgM1, mrgM2
	a, b := &d.s[0], &d.s[1]
	x := (mrgA12*a[1] + (m0-mrgA13)*a[0]) % m0
	y := (mrgA21*b[2] + (m1-mrgA23)*b[0]) % m1
	var s, t [3]uint64
	for i := range 3 {
		j, k := &d.jump[0][i], &d.jump[1][i]
		s[i] = (j[0]*a[0]%m0 + j[1]*a[1]%m0 + j[2]*a[2]%m0) % m0
		t[i] = (k[0]*b[0]%m1 + k[1]*b[1]%m1 + k[2]*b[2]%m1) % m1
	}
	*a, *b = s, t
	if x <= y {
		x += m0
	}
	return float64(x-y) * mrgNorm
}

// advance applies a transition n times.
func advance(power matrix, s [3]uint64, n, m uint64) [3]uint64 {
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			s = power.apply(s, m)
		}
		power = power.times(&power, m)
	}
	return s
}

func (a *matrix) times(b *matrix, m uint64) (c matrix) {
	for i := range c {
		for j := range c {
			for k := range c {
				c[i][j] = (c[i][j] + a[i][k]*b[k][j]%m) % m
			}
		}
	}
	return c
}

func (a *matrix) apply(s [3]uint64, m uint64) (t [3]uint64) {
	for i := range t {
		for k := range t {
			t[i] = (t[i] + a[i][k]*s[k]%m) % m
		}
	}
	return t
}

package rng

import (
	"math"
	"testing"

	"farflash/internal/hostile"
	"farflash/internal/patience"
)

// TestArguments verifies that ranges that do not exist are refused.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "rng")
	g, s := NewMQSim(1), NewStream(1, "x")
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"none", func() { s.IntN(0) }, "must be positive"},
		{"negative", func() { s.IntN(math.MinInt64) }, "must be positive"},
		{"backwards", func() { g.Between(2, 1) }, "the second is less"},
		{"around", func() { g.Between(math.MaxUint64, 0) }, "the second is less"},
		{"too many", func() { g.Between(0, math.MaxInt64) }, "2^63 apart"},
	} {
		refused(c.name, func() error { c.do(); return nil }, c.want)
	}
}

// FuzzDraws seeds every generator with the input, and draws: all numbers are within their range.
func FuzzDraws(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{200, 25, 200, 24, 200, 23, 200, 22, 255, 6, 255, 7, 255, 8})
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		code := hostile.Code(in)
		var g MQSim
		hostile.Refused(t, "rng", func() { g = NewMQSim(int32(code.Int())) })
		n := NewNS3Draws(uint64(code.Int()), uint64(code.Int()))
		s := NewStream(uint64(code.Int()), string(in))
		for range 20 {
			for _, x := range []float64{g.Next(), n.Next(), s.Float64()} {
				if !(x >= 0 && x <= 1) {
					t.Errorf("a number of %v", x)
				}
			}
			a, b, m := uint64(code.Int()), uint64(code.Int()), code.Int()
			hostile.Refused(t, "rng", func() {
				if x := g.Between(a, b); x < a || x > b && b-a < 1<<53 {
					t.Errorf("%d is not from %d to %d", x, a, b)
				}
			})
			hostile.Refused(t, "rng", func() {
				if x := s.IntN(m); x < 0 || x >= m {
					t.Errorf("%d of %d", x, m)
				}
			})
			if x := s.Exp(); !(x >= 0) {
				t.Errorf("an exponential of %v", x)
			}
			s.Norm()
			x, y := code.Float(), code.Float()
			Log(x)
			Pow(x, y)
			if e := Exp(x); e < 0 {
				t.Errorf("exp(%v) is %v", x, e)
			}
		}
	})
}

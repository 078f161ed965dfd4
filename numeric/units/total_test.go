package units

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestTotal compares sums of durations with those of whole numbers without limit.
func TestTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Int64(), 0, 40).Draw(t, "durations")
		k := rapid.IntRange(0, len(list)).Draw(t, "the first sum has")
		var a, b Total
		want := new(big.Int)
		for i, d := range list {
			if i < k {
				a.Add(Duration(d))
			} else {
				b.Add(Duration(d))
			}
			want.Add(want, big.NewInt(d))
		}
		sum := a.Plus(b)
		if sum.Minus(b) != a || sum.Minus(sum) != (Total{}) {
			t.Errorf("%v + %v is %v, and less the second %v", a, b, sum, sum.Minus(b))
		}
		if sum.Sign() != want.Sign() {
			t.Errorf("the sign of %v is %d", want, sum.Sign())
		}
		if f, _ := new(big.Float).SetInt(want).Float64(); sum.Picoseconds() != f {
			t.Errorf("%v is %v as a number", want, sum.Picoseconds())
		}
		if d, ok := sum.duration(); ok != want.IsInt64() || ok && int64(d) != want.Int64() {
			t.Errorf("%v is %v, %t", want, d, ok)
		}
	})
}

func TestTotalText(t *testing.T) {
	long := TotalOf(Forever, Forever)
	for want, x := range map[string]Total{"0s": {}, "75us": TotalOf(50*Microsecond, 25*Microsecond),
		"18446744.1s": long} {
		if got := x.String(); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	if us := long.Microseconds(); math.Abs(us-2*Forever.Microseconds()) > 1 {
		t.Errorf("%v us", us)
	}
	if n := testing.AllocsPerRun(100, func() { long.Add(Second) }); n != 0 {
		t.Errorf("an addition allocates %v times", n)
	}
}

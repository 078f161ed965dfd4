package units

import (
	"fmt"
	"math/big"
	"math/bits"
)

// Total is an exact sum of durations, also beyond 106 days. The zero value is empty.
type Total struct {
	high int64
	low  uint64 // picoseconds are high * 2^64 + low
}

// TotalOf returns the sum of some durations.
func TotalOf(list ...Duration) Total {
	var t Total
	for _, d := range list {
		t.Add(d)
	}
	return t
}

// Add adds a duration, which may be negative. It allocates nothing.
func (t *Total) Add(d Duration) {
	low, carry := bits.Add64(t.low, uint64(d), 0)
	t.low = low
	t.high += int64(d)>>63 + int64(carry)
}

// Plus returns the sum of t and o.
func (t Total) Plus(o Total) Total {
	low, carry := bits.Add64(t.low, o.low, 0)
	return Total{t.high + o.high + int64(carry), low}
}

// Minus returns t less o.
func (t Total) Minus(o Total) Total {
	low, borrow := bits.Sub64(t.low, o.low, 0)
	return Total{t.high - o.high - int64(borrow), low}
}

// Sign returns -1, 0 or 1 as the sum is below, at or above 0.
func (t Total) Sign() int {
	switch {
	case t.high < 0:
		return -1
	case t.high > 0 || t.low > 0:
		return 1
	}
	return 0
}

// duration returns the sum if one Duration can hold it.
func (t Total) duration() (Duration, bool) {
	d := Duration(t.low)
	return d, t.high == int64(d)>>63
}

// Picoseconds returns the nearest number.
func (t Total) Picoseconds() float64 {
	if d, ok := t.duration(); ok {
		return float64(d)
	}
	n := new(big.Int).Lsh(big.NewInt(t.high), 64)
	f, _ := new(big.Float).SetInt(n.Add(n, new(big.Int).SetUint64(t.low))).Float64()
	return f
}

// Microseconds returns the sum in microseconds.
func (t Total) Microseconds() float64 { return t.Picoseconds() / float64(Microsecond) }

// String is the sum as a Duration is written, or in seconds if it is longer.
func (t Total) String() string {
	if d, ok := t.duration(); ok {
		return d.String()
	}
	return fmt.Sprintf("%.9gs", t.Picoseconds()/float64(Second))
}

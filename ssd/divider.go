package ssd

import "math/bits"

// divider divides by a number that is known only at run time with one multiplication,
// several times faster than the processor's own division. It is exact for dividends
// below 2^32 (Granlund and Montgomery, PLDI 1994).
type divider struct {
	by      uint32
	inverse uint64 // floor(2^64 / by) + 1; unused for 1
}

func newDivider(by int64) divider {
	d := divider{by: uint32(by)}
	if by > 1 {
		d.inverse = ^uint64(0)/uint64(by) + 1
	}
	return d
}

// split returns quotient and remainder.
func (d *divider) split(n uint32) (q, r uint32) {
	if d.by == 1 {
		return n, 0
	}
	hi, _ := bits.Mul64(d.inverse, uint64(n))
	q = uint32(hi)
	return q, n - q*d.by
}

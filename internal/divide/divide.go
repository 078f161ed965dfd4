// Package divide divides repeatedly by a number that is known only at run time, with one multiplication for each
// division, which is several times faster than the processor's division instruction.
//
// Its one type is By. It leaves out signed numbers, and dividends so large that the multiplication is not exact. The
// method is from Granlund and Montgomery (PLDI 1994).
package divide

import "math/bits"

// By divides by a constant. The result is exact if (n+1)*by is at most 2^64: the product (n+1)*floor((2^64-1)/by) is
// then below 2^64*(n+1)/by by at most 2^64/by, so divided by 2^64 it is at least n/by and less than (n+1)/by, and its
// high word is n/by rounded down.
type By struct{ by, inverse uint64 }

// New returns a By for a divisor of 1 or more.
func New(by uint64) By { return By{by, ^uint64(0) / by} }

// Of returns n over the divisor, rounded down.
func (d By) Of(n uint64) uint64 {
	hi, _ := bits.Mul64(n+1, d.inverse)
	return hi
}

// Split returns the quotient and the remainder.
func (d By) Split(n uint64) (quotient, remainder uint64) {
	hi, _ := bits.Mul64(n+1, d.inverse)
	return hi, n - hi*d.by
}

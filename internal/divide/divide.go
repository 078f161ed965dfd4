// Package divide divides by numbers that are known only at run time, again and again by the same ones, with a
// multiplication each: several times faster than the processor's own division.
//
// Its one type is By. It leaves out signed numbers and dividends so large that the multiplication is not exact. After
// Granlund and Montgomery (PLDI 1994).
package divide

import "math/bits"

// By divides by a constant: exactly, for every n for which n+1 times the divisor is at most 2^64. Then
// (n+1)*floor((2^64-1)/by) falls short of (n+1)/by of 2^64 by less than the 1/by of it that n+1 is ahead.
type By struct{ by, inverse uint64 }

// New returns what divides by a number of 1 or more.
func New(by uint64) By { return By{by, ^uint64(0) / by} }

// Of is n over the divisor, rounded down.
func (d By) Of(n uint64) uint64 {
	hi, _ := bits.Mul64(n+1, d.inverse)
	return hi
}

// Split is the quotient and the remainder.
func (d By) Split(n uint64) (quotient, remainder uint64) {
	hi, _ := bits.Mul64(n+1, d.inverse)
	return hi, n - hi*d.by
}

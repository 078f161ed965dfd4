// Package decay models the decay of data in flash: the share of a page's bits that are wrong by wear, age and reads,
// and the resulting failure probability of an error correcting code.
//
// Its main types are Fit, a raw bit error rate as a function of program/erase cycles, days since programming and reads,
// in the form that Kim, Choi and Min fitted to chips ("Design Tradeoffs for SSD Reliability", FAST 2019); Curve, the
// fits that have a name; and Code, a code with a given number of correctable bits a codeword. All are pure functions of
// plain values.
//
// It leaves out differences between blocks, layers and page types, which make some blocks worse than the mean;
// temperature, except as faster aging; partial programs; and codes without a sharp failure threshold (LDPC, which is
// approximated by its threshold).
package decay

import (
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// Fit is a raw bit error rate base + wear cycles^wear_power + retention cycles^retention_cycles days^retention_days +
// disturb cycles^disturb_cycles reads^disturb_reads by the erases of a block, the days since it was programmed, and the
// mean reads of its pages since. Kim et al. call the coefficients epsilon, alpha, beta and gamma, the exponents k, m,
// n, p and q.
type Fit struct {
	// Base is the constant part.
	Base float64
	// Wear is the coefficient of the wear term.
	Wear float64
	// WearPower is the exponent of the cycles in the wear term.
	WearPower float64
	// Retention is the coefficient of the retention term.
	Retention float64
	// RetentionCycles is the exponent of the cycles in the retention term.
	RetentionCycles float64
	// RetentionDays is the exponent of the days in the retention term.
	RetentionDays float64
	// Disturb is the coefficient of the read disturb term.
	Disturb float64
	// DisturbCycles is the exponent of the cycles in the read disturb term.
	DisturbCycles float64
	// DisturbReads is the exponent of the reads of a page in the read disturb term.
	DisturbReads float64
}

// Validate returns an error that lists every invalid coefficient by its key.
func (f *Fit) Validate() error {
	var bad units.Faults
	for _, x := range []struct {
		key   string
		value float64
		most  float64
	}{
		{"base", f.Base, 0.5}, {"wear", f.Wear, 1}, {"retention", f.Retention, 1}, {"disturb", f.Disturb, 1},
		{"wear_power", f.WearPower, 10}, {"retention_cycles", f.RetentionCycles, 10},
		{"retention_days", f.RetentionDays, 10},
		{"disturb_cycles", f.DisturbCycles, 10}, {"disturb_reads", f.DisturbReads, 10},
	} {
		bad.Hold(x.value >= 0 && x.value <= x.most, x.key, "%v is not possible; use 0 to %v", x.value, x.most)
	}
	return bad.Err()
}

// Rate returns the raw bit error rate. It is at most one half, at which the bits are random.
func (f *Fit) Rate(cycles, days, reads float64) float64 {
	p := f.Base
	p += float64(f.Wear * power(cycles, f.WearPower))
	p += float64(float64(f.Retention*power(cycles, f.RetentionCycles)) * power(days, f.RetentionDays))
	p += float64(float64(f.Disturb*power(cycles, f.DisturbCycles)) * power(reads, f.DisturbReads))
	return min(p, 0.5)
}

// power returns x^y for x >= 0.
func power(x, y float64) float64 {
	switch {
	case y == 0:
		return 1
	case x == 0:
		return 0
	}
	return rng.Pow(x, y)
}

// Curve names a fit.
type Curve uint8

// The curves.
const (
	// TLC72: a chip of 72 layers of TLC, fitted by Kim, Choi and Min (FAST 2019). Time is assumed to be in days, and
	// reads to be those of a page: a block's reads divided by its pages.
	TLC72 Curve = iota
	// Given is the fit given in the scenario.
	Given
)

var curveNames = units.Names[Curve]{"tlc-72-layers", "given"}

// String returns the name used in scenarios.
func (c Curve) String() string { return curveNames.Name(c) }

// MarshalText writes the curve's name.
func (c Curve) MarshalText() ([]byte, error) { return curveNames.Marshal(c) }

// UnmarshalText reads a curve's name.
func (c *Curve) UnmarshalText(text []byte) error { return curveNames.Unmarshal(text, c) }

// Fit returns the curve's fit; that of Given is zero.
func (c Curve) Fit() Fit {
	if c != TLC72 {
		return Fit{}
	}
	return Fit{
		Base: 1.48e-3,
		Wear: 3.90e-10, WearPower: 2.05,
		Retention: 6.28e-5, RetentionCycles: 0.14, RetentionDays: 0.54,
		Disturb: 3.73e-9, DisturbCycles: 0.33, DisturbReads: 1.71,
	}
}

// Code corrects up to a fixed number of wrong bits in a codeword. Create one with NewCode.
type Code struct {
	bits, corrects int
	choose         float64 // log of the binomial coefficient (bits over corrects+1)
	never          float64 // greatest error rate at which a codeword fails with probability below 2^-64
}

// NewCode returns a code with codewords of the given number of bits, 1 to 2^20, of which up to corrects can be
// corrected.
func NewCode(bits, corrects int) Code {
	c := Code{bits: bits, corrects: corrects}
	if corrects >= bits {
		c.never = 1
		return c
	}
	for k := 1; k <= corrects+1; k++ {
		c.choose += rng.Log(float64(bits-k+1)) - rng.Log(float64(k))
	}
	low, high := 0.0, 0.5
	for range 60 {
		if mid := (low + high) / 2; c.tail(mid) < 0x1p-64 {
			low = mid
		} else {
			high = mid
		}
	}
	c.never = low
	return c
}

// Fails returns the probability that a codeword has more wrong bits than the code can correct, if bits are wrong
// independently with probability p: the upper tail of a binomial distribution. Below 2^-64 it is 0.
func (c *Code) Fails(p float64) float64 {
	if p <= c.never {
		return 0
	}
	return c.tail(p)
}

// tail sums the terms of the upper tail, from corrects+1 wrong bits on.
func (c *Code) tail(p float64) float64 {
	if p <= 0 {
		return 0
	}
	first := c.corrects + 1
	odds := p / (1 - p)
	term := rng.Exp(c.choose + float64(float64(first)*rng.Log(p)) + float64(float64(c.bits-first)*rng.Log(1-p)))
	if float64(first) > float64(float64(c.bits)*p) { // terms fall from here on
		sum := term
		for k := first; k < c.bits && term > sum*0x1p-60; k++ {
			term = float64(term * float64(odds*(float64(c.bits-k)/float64(k+1))))
			sum += term
		}
		return min(sum, 1)
	}
	// The terms rise, so sum the lower tail instead: from corrects wrong bits downwards.
	sum := 0.0
	for k := first; k > 0; k-- {
		term = float64(term * (float64(k) / float64(c.bits-k+1) / odds))
		sum += term
		if term < sum*0x1p-60 {
			break
		}
	}
	return max(0, 1-sum)
}

// AnyFails returns the probability that at least one of the codewords fails.
func (c *Code) AnyFails(p float64, codewords int) float64 {
	f := c.Fails(p)
	switch {
	case f == 0:
		return 0
	case f == 1:
		return 1
	case f < 1e-9: // 1 - f would lose precision
		return min(float64(float64(codewords)*f), 1)
	}
	return 1 - rng.Exp(float64(float64(codewords)*rng.Log(1-f)))
}

// Limit returns the error rate at which the mean number of wrong bits in a codeword is the given share of the
// correctable ones.
func (c *Code) Limit(share float64) float64 {
	return math.Min(float64(share*float64(c.corrects))/float64(c.bits), 0.5)
}

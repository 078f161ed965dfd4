// Package durability computes how long a redundancy scheme keeps data: mean time to data loss, the probability of a
// loss within a year and its nines, for replicas and erasure codes, and the effect of copy placement on them.
//
// Its main types are Scheme (k data and m parity shards), Rebuild (how long it takes to rebuild a drive's content),
// Chain (the birth-death chain of a redundancy group, solved exactly, and the usual approximation), Fleet (a cluster of
// such groups) and Simulation, which simulates drives' failures and rebuilds as events and must agree with the chain
// where both apply. The copyset functions count the sets of drives whose loss loses data.
//
// It follows Gibson and Patterson's chains (Patterson, Gibson and Katz, SIGMOD 1988; Chen et al., ACM Computing Surveys
// 26(2), 1994) and Cidon et al., "Copysets: Reducing the Frequency of Data Loss in Cloud Storage" (USENIX ATC 2013).
//
// Time spans here are years to billions of years, beyond the range of units.Duration, so they are Hours.
//
// It leaves out sectors that are lost silently and found during a rebuild, data that is unavailable but not lost, local
// reconstruction codes, failures of whole racks other than as simultaneous failures of nodes, and operator errors.
package durability

import (
	"fmt"
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// Hours is a time span in hours, at any scale.
type Hours float64

// Year is 365 days, as in vendors' conversions of AFR and MTTF.
const Year Hours = 8760

// Years returns h in years.
func (h Hours) Years() float64 { return float64(h / Year) }

// hoursOf converts a duration.
func hoursOf(d units.Duration) Hours { return Hours(d.Seconds() / 3600) }

// mttf returns the mean time to failure of a drive with exponential lifetime and the given annual failure rate: AFR = 1
// - exp(-Year/MTTF).
func mttf(afr units.Fraction) (Hours, error) {
	if !(afr > 0 && afr < 1) {
		return 0, fmt.Errorf("invalid annual failure rate, %v; it must be more than 0 and less than 100%%", afr)
	}
	return Year / Hours(-logOneMinus(float64(afr))), nil
}

// Scheme is the redundancy of a chunk: any Data of its Data+Parity shards restore it.
type Scheme struct {
	Data   int // k: 1 for replicas
	Parity int // m: the number of losses it tolerates
}

// Replicas returns the scheme of n whole copies.
func Replicas(n int) Scheme { return Scheme{Data: 1, Parity: n - 1} }

// Width returns the number of drives that hold a chunk.
func (s Scheme) Width() int { return s.Data + s.Parity }

func (s Scheme) check() error {
	if s.Data < 1 || s.Parity < 0 {
		return fmt.Errorf("%d data and %d parity shards; at least 1 and 0 are needed", s.Data, s.Parity)
	}
	if s.Width() > 256 {
		return fmt.Errorf("%d data and %d parity shards exceed 256, the limit of codes over bytes", s.Data,
			s.Parity)
	}
	return nil
}

// nines returns minus the decimal logarithm of a probability of loss: 11 for 1e-11. It is infinite for 0.
func nines(loss float64) float64 { return -rng.Log(loss) / math.Ln10 }

// Any returns the probability that at least one of n independent events of probability p happens: 1-(1-p)^n, exact also
// for tiny p. n need not be an integer.
func Any(p, n float64) float64 {
	switch {
	case n <= 0:
		return 0
	case p >= 1:
		return 1
	}
	return lossOf(-float64(n * logOneMinus(p)))
}

// series is the argument below which the first terms of a power series are exact.
const series = 1e-3

// logOneMinus returns ln(1-p), exact also for tiny p.
func logOneMinus(p float64) float64 {
	if p > series {
		return rng.Log(1 - p)
	}
	s := 0.0
	for k := 6; k >= 1; k-- {
		s = float64(s*p) + 1/float64(k)
	}
	return -float64(s * p)
}

// lossOf returns 1-exp(-x) for x >= 0, exact also for tiny x.
func lossOf(x float64) float64 {
	if x > series {
		return 1 - rng.Exp(-x)
	}
	s := 1.0
	for k := 6; k >= 2; k-- {
		s = 1 - float64(s*x)/float64(k)
	}
	return float64(s * x)
}

// Package rng generates the models' pseudo-random numbers, and provides the logarithm, exponential and power that shape
// them: the same bits on every machine.
//
// Its main type is Stream, a generator determined by a trial's seed and a component's name. Mix and SplitMix (mix.go)
// decorrelate similar numbers; Log, Exp and Pow (math.go) replace math's in models; NS3Draws and MQSim reproduce the
// generators of those two simulators number by number, both based on MRG32k3a (mrg32k3a.go).
//
// It leaves out distributions other than the exponential and the normal (workload/synth has them), and cryptography:
// its numbers are predictable.
package rng

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// Stream is a named stream of pseudo-random numbers (PCG-DXSM, 128 bits of state). A component owns the streams from
// which it draws, so that adding a component does not disturb the others and designs can be compared on common random
// numbers.
//
// The zero Stream is a valid but unnamed one; use NewStream.
type Stream struct {
	pcg rand.PCG
}

// NewStream returns the stream determined by (seed, name), for example NewStream(trialSeed, "ssd[3]/arrivals").
func NewStream(seed uint64, name string) Stream {
	// FNV-1a over the name, then two rounds of SplitMix64's finaliser, so that similar seeds and names give unrelated
	// states.
	h := uint64(14695981039346656037)
	for i := 0; i < len(name); i++ {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	var s Stream
	s.pcg.Seed(Mix(seed+Golden), Mix(h^Mix(seed)))
	return s
}

// Uint64 returns 64 uniform bits.
func (s *Stream) Uint64() uint64 { return s.pcg.Uint64() }

// Float64 returns a uniform number in [0, 1) with 53 bits.
func (s *Stream) Float64() float64 { return float64(s.pcg.Uint64()>>11) * 0x1p-53 }

// IntN returns a uniform integer in [0, n). n must be positive.
func (s *Stream) IntN(n int64) int64 {
	if n <= 0 {
		panic("rng: IntN: n must be positive")
	}
	// Lemire's multiply-and-reject: no modulo bias, and usually a single multiplication.
	bound := uint64(n)
	hi, lo := bits.Mul64(s.pcg.Uint64(), bound)
	if lo < bound {
		for reject := -bound % bound; lo < reject; {
			hi, lo = bits.Mul64(s.pcg.Uint64(), bound)
		}
	}
	return int64(hi)
}

// Exp returns an exponentially distributed number of mean 1.
func (s *Stream) Exp() float64 { return -Log(1 - s.Float64()) }

// Norm returns a normally distributed number of mean 0 and deviation 1 (Marsaglia's polar method; the second of each
// pair is dropped so that the stream has no hidden state).
func (s *Stream) Norm() float64 {
	for {
		u := 2*s.Float64() - 1
		v := 2*s.Float64() - 1
		q := float64(u*u) + float64(v*v)
		if q > 0 && q < 1 {
			return u * math.Sqrt(-2*Log(q)/q)
		}
	}
}

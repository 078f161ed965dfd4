package rng

// Golden is 2^64 over the golden ratio, rounded to the nearest odd number. Its multiples modulo 2^64 are well spread,
// and SplitMix64 uses it as its increment.
const Golden = 0x9e3779b97f4a7c15

// Mix is SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014): a bijection in which every output bit depends on
// every input bit. It maps 0 to 0.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// SplitMix is the state of a SplitMix64 generator, for short sequences that are determined by a few numbers.
type SplitMix uint64

// Next returns the next 64 bits.
func (s *SplitMix) Next() uint64 {
	*s += Golden
	return Mix(uint64(*s))
}

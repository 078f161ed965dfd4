package rng

// Golden is 2^64 over the golden ratio, to the nearest odd number: its multiples lie far apart, and SplitMix64 counts
// in steps of it.
const Golden = 0x9e3779b97f4a7c15

// Mix is SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014): a bijection whose every output bit depends on
// every input bit. It leaves 0 as it is.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// SplitMix is the state of a SplitMix64 generator, for short sequences that a few numbers determine.
type SplitMix uint64

// Next returns the next 64 bits.
func (s *SplitMix) Next() uint64 {
	*s += Golden
	return Mix(uint64(*s))
}

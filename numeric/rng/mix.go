package rng

// Golden is 2^64 over the golden ratio, rounded to odd: the increment of SplitMix64.
const Golden = 0x9e3779b97f4a7c15

// Mix is SplitMix64's finaliser, a bijection that maps 0 to 0 (Steele, Lea and Flood, OOPSLA 2014).
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// SplitMix is a SplitMix64 generator, for short sequences given by a few numbers.
type SplitMix uint64

// Next returns the next 64 bits.
func (s *SplitMix) Next() uint64 {
	*s += Golden
	return Mix(uint64(*s))
}

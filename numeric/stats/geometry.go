package stats

import "math/bits"

// geometry maps values to histogram buckets: values below 2^(sub+1) have a bucket each; above, every octave is divided
// into 2^sub equal buckets. The last bucket also takes all larger values.
type geometry struct {
	sub    uint // log2 of the buckets per octave
	groups int  // octaves, the first two (0..2^sub and 2^sub..2^(sub+1)) included
}

func (g geometry) buckets() int { return g.groups << g.sub }

// index returns the bucket of v.
func (g geometry) index(v uint64) int {
	msb := uint(bits.Len64(v|1)) - 1
	if msb <= g.sub {
		return int(v)
	}
	shift := msb - g.sub
	i := int(shift+1)<<g.sub + int(v>>shift&(1<<g.sub-1))
	return min(i, g.buckets()-1)
}

// bounds returns the range [low, high) of bucket i. For the last bucket, high is its nominal bound, although it also
// holds larger values.
func (g geometry) bounds(i int) (low, high uint64) {
	if i < 2<<g.sub {
		return uint64(i), uint64(i) + 1
	}
	shift := uint(i)>>g.sub - 1
	low = (1<<g.sub + uint64(i)&(1<<g.sub-1)) << shift
	return low, low + 1<<shift
}

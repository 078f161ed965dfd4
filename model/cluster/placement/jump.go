package placement

import "fmt"

// jumpHash is the jump consistent hash of a key (Lamping and Veach, arXiv:1406.2294, 2014): a bucket in [0, buckets).
// From n to n+1 buckets a key stays or moves to the new one. buckets must be positive.
func jumpHash(key uint64, buckets int32) int32 {
	var bucket, next int64
	for next < int64(buckets) {
		bucket = next
		key = key*2862933555777941757 + 1
		// The next bucket count at which the key would jump; 31 bits make the fraction.
		next = int64(float64(bucket+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return int32(bucket)
}

// Jump places by jumpHash, without any state and with perfect balance. Copies after the first rehash the chunk and skip
// domains that are taken.
//
// Buckets are the targets in use, in order: a target added at the end takes exactly its share, while one removed from
// elsewhere than the end renumbers all targets after it. There are no weights.
type Jump struct{ view }

// NewJump returns a placer by jump hash. All weights must be equal or 0.
func NewJump(m Map) (*Jump, error) {
	v, err := newView(m)
	if err != nil {
		return nil, err
	}
	if !v.equal {
		return nil, fmt.Errorf("jump hash supports no weights, and the targets' differ; use HRW, a ring, Maglev or straw2")
	}
	return &Jump{v}, nil
}

func (p *Jump) pick(hash uint64) int32 { return p.live[jumpHash(hash, int32(len(p.live)))] }

// Place implements Placer.
func (p *Jump) Place(chunk uint64, n int, out []int32) []int32 { return p.rehash(p, chunk, n, out) }

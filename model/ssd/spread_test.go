package ssd

import (
	"testing"

	"farflash/numeric/rng"
)

// TestSpread verifies that each bit becomes a run of any length: a page of flash may have more than eight grains, and a
// number that is not a power of two.
func TestSpread(t *testing.T) {
	r := rng.NewStream(1, "spread")
	for each := uint32(1); each <= 64; each++ {
		const units = 300
		from := make([]uint64, units/64+1)
		for k := range uint32(units) {
			from[k>>6] |= r.Uint64() & 1 << (k & 63)
		}
		to := make([]uint64, (units*each+63)/64)
		spread(to, from, each)
		for i := range units * each {
			if got, want := to[i>>6]>>(i&63)&1, from[i/each>>6]>>(i/each&63)&1; got != want {
				t.Fatalf("%d in a row: bit %d is %d, not %d", each, i, got, want)
			}
		}
	}
}

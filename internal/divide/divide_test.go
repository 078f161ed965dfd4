package divide_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"farflash/internal/divide"
)

// TestBy verifies that results equal those of the processor's division, up to the limits of the exact range.
func TestBy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.Uint64Range(1, 1<<rapid.IntRange(1, 63).Draw(t, "bits")).Draw(t, "by")
		most := ^uint64(0)/by - 1 // (n+1)*by < 2^64
		n := rapid.Uint64Range(0, most).Draw(t, "n")
		d := divide.New(by)
		for _, n := range []uint64{n, n / by * by, min(max(n/by, 1)*by-1, most), 0, most} {
			if q, r := d.Split(n); q != n/by || r != n%by || d.Of(n) != q {
				t.Fatalf("%d / %d = %d rest %d", n, by, q, r)
			}
		}
	})
}

var sum uint64

func BenchmarkBy(b *testing.B) {
	d := divide.New(uint64(b.N)%3 + 524_287)
	for i := range uint64(b.N) {
		q, r := d.Split(i * 977)
		sum += q + r
	}
}

func BenchmarkProcessor(b *testing.B) {
	by := uint64(b.N)%3 + 524_287
	for i := range uint64(b.N) {
		sum += i*977/by + i*977%by
	}
}

func Example() {
	q, r := divide.New(7).Split(100)
	fmt.Println(q, r)
	// Output: 14 2
}

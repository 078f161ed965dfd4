package meter

import (
	"math"
	"math/bits"
	"slices"
	"sync"
)

// Schema is the schema of native histograms: 2^Schema buckets an octave.
const Schema = 3

// The native buckets: bucket i holds latencies above 2^((i-1)/8) seconds and up to 2^(i/8) seconds. Shorter ones than
// those of the first bucket, of up to 119 ns, count as zero, and longer ones than those of the last, of up to
// 17 minutes, as the last.
const (
	First = -23<<Schema + 1
	Last  = 10 << Schema
	Least = 1.0 / (1 << 23) // seconds: no more counts as zero
)

// Decimal returns the upper bounds of the decimal buckets, in nanoseconds. The last bucket has none.
func Decimal() []int64 { return slices.Clone(decimal[:]) }

var decimal = [...]int64{
	1e3, 2.5e3, 5e3, 10e3, 25e3, 50e3, 100e3, 250e3, 500e3, 1e6, 2.5e6, 5e6, 10e6, 25e6, 50e6, 100e6, 250e6, 1e9, 5e9,
}

// cells is the number of cells: one for each native bucket and for zero, one more for each decimal bound, which divides
// a bucket, and one without an upper bound.
const cells = Last - First + 2 + len(decimal) + 1

// Bound is the range of a cell's latencies.
type Bound struct {
	Upper   int64 // in nanoseconds, inclusive
	Native  int   // bucket, First-1 for zero
	Decimal int   // bucket
}

// Bounds returns the cells' ranges, in ascending order.
func Bounds() []Bound {
	table.once.Do(fill)
	return slices.Clone(table.bounds[:])
}

// table finds the cell of a latency. guess is the first cell that can hold a latency of that bit length of which these
// follow the first: cellOf passes few further ones. Where a decimal bound is also a native one, the second of the two
// cells stays empty. New fills it, so that a program that serves no clients starts without.
var table struct {
	once   sync.Once
	bounds [cells]Bound
	upper  [cells]int64
	guess  [64][1 << finer]uint16
}

func fill() {
	var native []int64
	for i := First - 1; i <= Last; i++ {
		native = append(native, int64(math.Exp2(float64(i)/(1<<Schema))*1e9))
	}
	upper := append(slices.Concat(native, decimal[:]), math.MaxInt64)
	slices.Sort(upper)
	copy(table.upper[:], upper)
	for i, n := range upper {
		b, _ := slices.BinarySearch(native, n)
		d, _ := slices.BinarySearch(decimal[:], n)
		table.bounds[i] = Bound{n, min(First-1+b, Last), d}
	}
	for width := finer + 1; width < len(table.guess); width++ {
		for next := range table.guess[width] {
			at, _ := slices.BinarySearch(upper, int64(1<<finer|next)<<(width-1-finer))
			table.guess[width][next] = uint16(at)
		}
	}
}

// finer is the number of bits after the first that guess distinguishes.
const finer = 4

// cellOf returns the cell of a latency.
func cellOf(nanos int64) int {
	at, width := 0, bits.Len64(uint64(max(nanos, 0)))
	if width > finer {
		at = int(table.guess[width][nanos>>(width-1-finer)&(1<<finer-1)])
	}
	for nanos > table.upper[at] {
		at++
	}
	return at
}

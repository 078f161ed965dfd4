package fill

import (
	"fmt"
	"math"
	"math/bits"
	"testing"
)

// TestPlaceAndDatumAreInverse verifies that every datum is found on the page it is placed on, that no two share a page,
// and that blocks hold the data they report.
func TestPlaceAndDatumAreInverse(t *testing.T) {
	for _, c := range []struct {
		pages  int
		counts []int
		rest   []int // data in order behind the spread
	}{
		{1, []int{1, 0, 1}, nil}, {2, []int{0, 1, 2, 2}, []int{3}}, {3, []int{0, 1, 2, 3}, []int{3, 1}},
		{70, []int{0, 0, 1, 35, 36, 69, 70}, []int{140, 71}}, {256, []int{10, 128, 129, 256}, nil},
		{64, nil, []int{1000, 64, 1}},
	} {
		t.Run(fmt.Sprint(c.pages, c.counts), func(t *testing.T) {
			f := New(2, c.pages, 5)
			for plane := range 2 {
				if c.counts != nil {
					f.AppendSpread(plane, NewSpread(c.counts, 7))
				}
				for _, n := range c.rest {
					f.Append(plane, n)
				}
			}
			for plane := range 2 {
				owner := map[uint32]uint32{}
				n := uint32(0)
				for _, x := range append(append([]int(nil), c.counts...), c.rest...) {
					n += uint32(x)
				}
				for i := range n {
					p := f.Place(plane, i)
					if was, ok := owner[p]; ok {
						t.Fatalf("data %d and %d lie on page %d", was, i, p)
					}
					owner[p] = i
					if back, ok := f.Datum(plane, p); !ok || back != i {
						t.Fatalf("datum %d lies on page %d, which holds %d (%v)", i, p, back, ok)
					}
				}
				for b := range f.Blocks(plane) {
					valid := make([]uint64, (c.pages+63)/64)
					written, holding := f.Block(plane, b, valid)
					if w, h := f.Holding(plane, b); w != written || h != holding {
						t.Errorf("block %d has %d of %d pages, and %d of %d", b, holding, written, h, w)
					}
					if b < len(c.counts) && (written != c.pages || holding != c.counts[b]) {
						t.Errorf("block %d holds %d pages of %d, not %d of %d", b, holding, written, c.counts[b],
							c.pages)
					}
					ones := 0
					for _, w := range valid {
						ones += bits.OnesCount64(w)
					}
					if ones != holding {
						t.Errorf("block %d: %d bits for %d pages", b, ones, holding)
					}
					for page := range c.pages {
						at := uint32(b*c.pages + page)
						_, held := owner[at]
						_, ok := f.Datum(plane, at)
						if bit := valid[page>>6]>>(page&63)&1 != 0; bit != held || ok != held {
							t.Errorf("page %d: bit %v, datum %v, held %v", at, bit, ok, held)
						}
					}
				}
				if _, ok := f.Datum(plane, uint32(f.Blocks(plane)*c.pages)); ok {
					t.Error("a page beyond the last block holds a datum")
				}
			}
		})
	}
}

// TestSpreadIsUniform verifies that valid pages and the blocks of data are as good as random: each page is valid as
// often as any other, neighbours together as often as any pair, and consecutive data are in independent blocks.
func TestSpreadIsUniform(t *testing.T) {
	const pages, blocks, half = 256, 4000, 128
	counts := make([]int, blocks)
	for i := range counts {
		counts[i] = half
	}
	f := New(1, pages, 11)
	f.AppendSpread(0, NewSpread(counts, 13))
	var single, pair [pages]float64
	for b := range blocks {
		valid := make([]uint64, pages/64)
		f.Block(0, b, valid)
		at := func(i int) bool { return valid[i%pages>>6]>>(i%pages&63)&1 != 0 }
		for i := range pages {
			if at(i) {
				single[i]++
				if at(i + 1) {
					pair[i]++
				}
			}
		}
	}
	chi := func(what string, seen []float64, p float64) {
		x := 0.0
		for _, n := range seen {
			x += (n - blocks*p) * (n - blocks*p) / (blocks * p * (1 - p))
		}
		// The standard deviation of chi-squared is the square root of twice its degrees of freedom.
		if z := (x - pages) / math.Sqrt(2*pages); math.Abs(z) > 5 {
			t.Errorf("%s: %.1f deviations from even", what, z)
		}
	}
	chi("pages", single[:], .5)
	chi("neighbours", pair[:], .5*(half-1)/(pages-1))
	together, n := 0, uint32(blocks*half)
	var in [blocks]float64
	for i := range n {
		b := f.Place(0, i) / pages
		if i%8 == 0 {
			in[b]++
		}
		if i+1 < n && b == f.Place(0, i+1)/pages {
			together++
		}
	}
	// By chance half of the blocks*half pairs share a block; Poisson.
	if z := (float64(together) - half) / math.Sqrt(half); math.Abs(z) > 5 {
		t.Errorf("%d data share their block with the next, %.1f deviations from %d", together, z, half)
	}
	x := 0.0
	for _, k := range in {
		x += (k - half/8) * (k - half/8) / (half / 8 * 7 / 8)
	}
	if z := (x - blocks) / math.Sqrt(2*blocks); math.Abs(z) > 5 {
		t.Errorf("every eighth datum: %.1f deviations from even over blocks", z)
	}
}

func BenchmarkPlace(b *testing.B) {
	counts := make([]int, 2000)
	for i := range counts {
		counts[i] = 1024 + i%1024
	}
	f := New(1, 2048, 11)
	f.AppendSpread(0, NewSpread(counts, 13))
	n := f.planes[0].areas[0].n
	b.Run("place", func(b *testing.B) {
		sum := uint32(0)
		for i := range b.N {
			sum += f.Place(0, uint32(i*7919)%n)
		}
		if sum == 1 {
			b.Log(sum)
		}
	})
	b.Run("datum", func(b *testing.B) {
		sum := uint32(0)
		for i := range b.N {
			d, _ := f.Datum(0, uint32(i*7919)%(2000*2048))
			sum += d
		}
		if sum == 1 {
			b.Log(sum)
		}
	})
}

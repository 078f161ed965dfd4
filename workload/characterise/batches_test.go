package characterise_test

import (
	"math"
	"testing"

	"farflash/block"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/workload"
	"farflash/workload/characterise"
)

// TestWriteRateWithin compares the confidence interval of the write rate with batches formed by hand.
func TestWriteRateWithin(t *testing.T) {
	meter := func(seconds int64, bytes func(second int64) int64) characterise.Result {
		m := characterise.New()
		for s := range seconds + 1 { // the last one ends the span
			for _, op := range []block.Op{block.Write, block.Read} { // reads must not count
				m.Add(&workload.Record{Time: 5*units.Second + units.Duration(s)*units.Second, Offset: s << 20,
					Size: bytes(s), Op: op, Response: workload.NoResponse})
			}
		}
		return m.Result()
	}
	if r := meter(7, func(int64) int64 { return 512 }); !math.IsNaN(float64(r.WriteRateWithin)) {
		t.Errorf("seven seconds are taken to tell %v", r.WriteRateWithin)
	}
	for _, seconds := range []int64{8, 63, 64, 1000} {
		if r := meter(seconds, func(int64) int64 { return 4096 }); r.WriteRateWithin != 0 {
			t.Errorf("%d seconds that are alike: %v", seconds, r.WriteRateWithin)
		}
	}
	uneven := func(s int64) int64 { return 512 * (1 + s*s%7) }
	for seconds, length := range map[int64]int64{8: 1, 63: 1, 64: 2, 127: 2, 128: 4, 1000: 16} {
		n := seconds / length
		sum, squares := 0.0, 0.0
		for i := range n {
			v := 0.0
			for s := i * length; s < (i+1)*length; s++ {
				v += float64(uneven(s))
			}
			sum, squares = sum+v, squares+v*v
		}
		mean := sum / float64(n)
		want := stats.TQuantile(0.975, int(n-1)) * math.Sqrt((squares/float64(n)-mean*mean)/float64(n-1)) / mean
		if got := float64(meter(seconds, uneven).WriteRateWithin); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%d seconds: within %v, by hand %v", seconds, got, want)
		}
	}
}

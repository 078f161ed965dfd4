package stats_test

import (
	"fmt"

	"farflash/numeric/stats"
	"farflash/numeric/units"
)

func Example() {
	var reads, writes, all stats.Histogram
	for i := range 1000 {
		reads.Record(80*units.Microsecond + units.Duration(i)*20*units.Nanosecond)
		writes.Record(400 * units.Microsecond)
	}
	all.Merge(&reads)
	all.Merge(&writes)
	fmt.Printf("mean %.2f us, p50 %.1f us, p99 %.1f us\n", all.Mean()/1e6, reads.Quantile(0.5).Microseconds(),
		all.Quantile(0.99).Microseconds())

	i, _ := stats.Replicates([]float64{402, 398, 405, 399, 401}, 0.95)
	fmt.Printf("%.1f +- %.1f\n", i.Mean, i.Half)
	// Output:
	// mean 245.00 us, p50 90.0 us, p99 399.9 us
	// 401.0 +- 3.4
}

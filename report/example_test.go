package report_test

import (
	"os"

	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/report"
	"farflash/result"
)

func Example() {
	var reads stats.Histogram
	for i := range 1000 {
		reads.Record(80*units.Microsecond + units.Duration(i)*units.Nanosecond*100)
	}
	r := result.New(trial.Vocabulary(), "sha256:0123456789abcdef", 1, "0.1.0")
	r.Name, r.SimulatedS = "quickstart", 0.1
	r.Set("read.count", 1000)
	r.Set("read.iops", 10000)
	r.SetLatencies("read", &reads)
	r.Check("requests conserved", true, "issued 1000 = completed 1000")
	_ = report.WriteText(os.Stdout, report.Run{Result: r}, term.Style{})
	// Output:
	// quickstart
	// seed 1, digest 0123456789ab, simulated 100 ms
	//
	//       count   IOPS  bandwidth    mean     p50     p90     p99     p99.9     max
	// read  1,000  10.0k             130 us  130 us  170 us  179 us  > 180 us  180 us
	//
	// checks: 1 of 1 hold
}

package result_test

import (
	"fmt"
	"strings"

	"farflash/experiment/trial"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
)

func Example() {
	var reads stats.Histogram
	for i := range 1000 {
		reads.Record(80*units.Microsecond + units.Duration(i)*units.Microsecond)
	}
	r := result.New(trial.Vocabulary(), "sha256:1f2e", 1, "0.1.0")
	r.SetLatencies("read", &reads)

	condition, err := result.ParseCondition(trial.Vocabulary().Metrics, "read.latency.p99>500us")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, detail, _ := condition.Holds(r)
	fmt.Println(detail)

	_, err = result.ParseCondition(trial.Vocabulary().Metrics, "read.latency.p98>500us")
	wrong, near, _ := strings.Cut(err.Error(), "; ")
	fmt.Println(wrong)
	fmt.Println(near)
	// Output:
	// read.latency.p99>500us holds: read.latency.p99 is 1069.64 us
	// condition "read.latency.p98>500us": unknown metric "read.latency.p98"
	// similar names: read.latency.p90, read.latency.p95, read.latency.p99, read.latency.p50, read.latency.min
}

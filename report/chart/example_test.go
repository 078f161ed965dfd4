package chart_test

import (
	"fmt"
	"strings"

	"farflash/report/chart"
)

func Example() {
	svg := chart.Lines(chart.LineChart{
		X: chart.Axis{Label: "Time", Unit: chart.Secs},
		Y: chart.Axis{Label: "Throughput", Unit: chart.ByteRates, FromZero: true},
		Series: []chart.Series{
			{Name: "read", X: []float64{0, 1, 2}, Y: []float64{3.1e8, 4e8, 3.8e8}},
		},
	})
	fmt.Println(strings.Contains(svg, "Throughput (MB/s)"))
	// Output: true
}

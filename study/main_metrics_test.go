package study

import (
	"slices"
	"testing"

	"farflash/numeric/stats"
)

// TestMainMetrics verifies which metrics are shown where space is limited: those of general interest that are not 0
// at all points, in the order of interest; or, of patterns, all that match, zeros included, each once.
func TestMainMetrics(t *testing.T) {
	point := func(metrics ...Estimate) PointSummary { return PointSummary{Metrics: metrics} }
	of := func(name string, mean float64) Estimate {
		return Estimate{Name: name, Interval: stats.Interval{Mean: mean}}
	}
	c := Curves{Points: []PointSummary{
		point(of("ssd.waf", 1.5), of("read.latency.mean", 0), of("read.bandwidth", 0), of("sim.events", 7)),
		point(of("ssd.waf", 2.5), of("read.latency.mean", 80), of("read.bandwidth", 0), of("sim.events", 9)),
	}}
	for _, x := range []struct{ patterns, want []string }{
		{nil, []string{"read.latency.mean", "ssd.waf"}},
		{[]string{"read.*"}, []string{"read.latency.mean", "read.bandwidth"}},
		{[]string{"ssd.waf", "*"}, []string{"ssd.waf", "read.latency.mean", "read.bandwidth", "sim.events"}},
		{[]string{"write.*"}, nil},
	} {
		if got := c.Main(x.patterns); !slices.Equal(got, x.want) {
			t.Errorf("%q shows %q, not %q", x.patterns, got, x.want)
		}
	}
}

package drive_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/experiment/trial/trialtest"
)

// backlog overloads a drive in both directions.
const backlog = `
ssd: {preset: mqsim-default, cache: {mode: off}, host: {fetch_size: 32}}
workload:
  - synthetic:
      reads: {size: 16KiB, interarrival: 4us}
      writes: {size: 16KiB, interarrival: 4us}
measure: {until: 20ms, warm_up: 5ms}
`

// TestDivided verifies that a local drive with separate queues satisfies every law, and that its reads fall and its
// writes grow with the weight ratio while both queues are busy.
func TestDivided(t *testing.T) {
	before := [2]float64{}
	for i, w := range []int{1, 3, 15} {
		out := trialtest.Run(t, backlog, 1, "rate_control={kind: static}",
			fmt.Sprintf("rate_control.weight_ratio=%d", w))
		now := [2]float64{trialtest.Metric(t, out, "read.bandwidth"), trialtest.Metric(t, out, "write.bandwidth")}
		if i > 0 && (now[0] > 0.8*before[0] || now[1] < before[1]) {
			t.Errorf("ratio %d: reads %.3g and writes %.3g bytes/s, before %.3g and %.3g", w, now[0], now[1],
				before[0], before[1])
		}
		before = now
	}
}

// TestDividedAlways verifies that a partition that always binds reaches a local drive's queues: reads alone that have
// one of 32 places are as fast as reads one at a time; with places for whoever waits they are several times as fast.
func TestDividedAlways(t *testing.T) {
	const reads = "ssd: {preset: mqsim-default, host: {fetch_size: 32}}\n" +
		"workload: [{synthetic: {reads: {size: 4KiB}, requests: 800}, closed: %d}]\n%s"
	rate := func(closed int, control string) float64 {
		return trialtest.Metric(t, trialtest.Run(t, fmt.Sprintf(reads, closed, control), 1), "read.iops")
	}
	one := rate(1, "")
	always := rate(32, "rate_control: {kind: static, weight_ratio: 31, partition: always}\n")
	waiting := rate(32, "rate_control: {kind: static, weight_ratio: 31}\n")
	if math.Abs(always-one) > 0.01*one || waiting < 3*one {
		t.Errorf("%.4g reads a second with one of 32 places, %.4g with all, %.4g one at a time", always, waiting, one)
	}
}

// TestDividedRefused verifies that settings that a local drive does not support are rejected at their line.
func TestDividedRefused(t *testing.T) {
	for control, want := range map[string]string{
		"{kind: src}": "rate_control.kind: src follows a network's demand, which a local drive " +
			"does not have",
		"{kind: static, partition: never}": "rate_control.partition: \"never\" is not possible",
		"{kind: static, weight_ratio: 0}":  "rate_control.weight_ratio: 0 is not possible",
	} {
		_, err := trialtest.Parse(backlog, "rate_control="+control)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", control, err)
		}
	}
	if _, err := trialtest.Parse(trialtest.SmallFabric, "rate_control={kind: static}"); err == nil ||
		!strings.Contains(err.Error(), "no drives to divide") {
		t.Errorf("a network: error %v", err)
	}
}

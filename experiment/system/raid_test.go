package system_test

import (
	"math"
	"testing"

	"farflash/experiment/trial/trialtest"
	"farflash/model/nvmf"
)

// TestVolumeBehindNetwork compares the commands of a volume over targets with closed forms, whole, degraded and during
// a rebuild, and verifies that a request of a single command is the same as without a volume.
func TestVolumeBehindNetwork(t *testing.T) {
	const text = `
targets: [{count: 5, ssds: 1}]
ssd: {preset: tlc-enterprise, geometry: {channels: 2, chips_per_channel: 2, blocks_per_plane: 32, pages_per_block: 64}, cache: {capacity: 1MiB}}
fabric: {topology: {star: {hosts: 6}}, host_link: 100Gbps}
workload:
  - synthetic: {writes: {size: 4KiB, addresses: {align: 4KiB}}, requests: 500}
    closed: 4
  - synthetic: {reads: {size: 4KiB, addresses: {align: 4KiB}}, requests: 500}
    closed: 4
`
	o := trialtest.Run(t, text, 1, "host_raid={level: 5}")
	for name, want := range map[string]float64{"raid.read.commands": 1500, "raid.write.commands": 1000,
		"nvmf.commands": 2500, "raid.rows.modified": 500, "read.count": 500, "write.count": 500} {
		if got := trialtest.Metric(t, o, name); got != want {
			t.Errorf("%s is %v, and should be %v", name, got, want)
		}
	}
	mean := trialtest.Metric(t, o, "write.latency.mean")
	sum := 0.0
	for k := range nvmf.Stages {
		sum += trialtest.Metric(t, o, "write.stage."+k.String()+".mean")
	}
	if math.Abs(sum/mean-1) > 1e-6 {
		t.Errorf("the stages of writes are %v us together, and writes take %v us", sum, mean)
	}
	if whole := trialtest.Metric(t, trialtest.Run(t, text, 1, "host_raid={level: 0}"), "write.latency.mean"); mean <
		2*whole {
		t.Errorf("a small write takes %v us with parity and %v us without, and it has to read first", mean, whole)
	}
	a, b := trialtest.Run(t, text, 1, "host_raid={level: 0}"), trialtest.Run(t, text, 1, "route.target.stripe=64KiB")
	for _, name := range []string{"read.latency.mean", "write.latency.mean", "nvmf.commands"} {
		if x, y := trialtest.Metric(t, a, name), trialtest.Metric(t, b, name); x != y {
			t.Errorf("%s is %v of level 0, and %v of stripes by the route", name, x, y)
		}
	}
	o = trialtest.Run(t, text, 1, "host_raid={level: 6, failed: [1], rebuild: 20GB/s}",
		"workload[1].synthetic.requests=5000")
	if n := trialtest.Metric(t, o, "raid.degraded"); n == 0 || trialtest.Metric(t, o, "raid.rebuilt") == 0 ||
		trialtest.Metric(t, o, "ssd[1].write.count") == 0 {
		t.Errorf("degraded %v, rebuilt %v", n, trialtest.Metric(t, o, "raid.rebuilt"))
	}
}

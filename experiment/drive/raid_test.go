package drive_test

import (
	"math"
	"strings"
	"testing"

	"farflash/experiment/trial/trialtest"
)

// volume is a drive for local volumes, with writes and reads of one page each.
const volume = `
ssd: {preset: tlc-enterprise, geometry: {channels: 2, chips_per_channel: 2, blocks_per_plane: 32, pages_per_block: 64}, cache: {capacity: 1MiB}}
workload:
  - synthetic: {writes: {size: 4KiB, addresses: {align: 4KiB}}, requests: 1000}
    closed: 4
  - synthetic: {reads: {size: 4KiB, addresses: {align: 4KiB}}, requests: 1000}
    closed: 4
`

// TestVolumeOfOne verifies that a striped volume of one drive equals that drive.
func TestVolumeOfOne(t *testing.T) {
	// A volume leaves less than a chunk at a drive's end unused; the requests avoid it.
	set := []string{"workload[0].synthetic.writes.addresses.space=64MiB",
		"workload[1].synthetic.reads.addresses.space=64MiB"}
	one := trialtest.Run(t, volume, 1, set...)
	same := trialtest.Run(t, volume, 1, append(set, "host_raid={level: 0, drives: 1}")...)
	for _, name := range []string{"read.latency.mean", "read.latency.p99", "write.latency.mean", "write.latency.p99",
		"read.iops", "ssd.flash.programs"} {
		if a, b := trialtest.Metric(t, one, name), trialtest.Metric(t, same, name); math.Abs(a/b-1) > 1e-9 {
			t.Errorf("%s is %v of the drive and %v of the volume", name, a, b)
		}
	}
}

// TestVolumes compares the members' commands with closed forms, and verifies that the drives executed them.
func TestVolumes(t *testing.T) {
	for _, c := range []struct {
		raid          string
		reads, writes float64 // commands for 1000 reads and as many writes
	}{
		{"{level: 0, drives: 4}", 1000, 1000},
		{"{level: 1, drives: 2}", 1000, 2000},
		{"{level: 1, drives: 6, copies: 3}", 1000, 3000},
		{"{level: 5, drives: 5}", 3000, 2000},
		{"{level: 6, drives: 8}", 4000, 3000},
	} {
		o := trialtest.Run(t, volume, 1, "host_raid="+c.raid)
		if r, w := trialtest.Metric(t, o, "raid.read.commands"),
			trialtest.Metric(t, o, "raid.write.commands"); r != c.reads || w != c.writes {
			t.Errorf("%s: %v reads and %v writes, and should be %v and %v", c.raid, r, w, c.reads, c.writes)
		}
		sum := [2]float64{}
		for _, m := range o.Result.Metrics {
			for i, op := range []string{"read", "write"} {
				if strings.HasPrefix(m.Name, "ssd[") && strings.HasSuffix(m.Name, "]."+op+".count") {
					sum[i] += m.Value
				}
			}
		}
		if sum != [2]float64{c.reads, c.writes} {
			t.Errorf("%s: the drives did %v", c.raid, sum)
		}
		if n := trialtest.Metric(t, o, "read.count") + trialtest.Metric(t, o, "write.count"); n != 2000 {
			t.Errorf("%s: %v requests", c.raid, n)
		}
	}
	// A read of a failed member reads each other member: 4 for the fifth of the data on it, 1 for all else.
	o := trialtest.Run(t, volume, 1, "host_raid={level: 5, drives: 5, failed: [2]}", "workload[0].limit=1")
	reads := trialtest.Metric(t, o, "raid.read.commands")
	if degraded := trialtest.Metric(t, o, "raid.degraded"); math.Abs(degraded-200) > 60 ||
		reads < 1000+3*degraded-4 || reads > 1000+3*degraded+4 {
		t.Errorf("%v of 1000 reads are of the failed member, and there are %v commands", degraded, reads)
	}
	if n := trialtest.Metric(t, o, "ssd[2].read.count"); n != 0 {
		t.Errorf("a member that has failed is read %v times", n)
	}
	// A rebuild completes alongside requests, and its member has then been written.
	o = trialtest.Run(t, volume, 1, "host_raid={level: 5, drives: 5, failed: [2], rebuild: 20GB/s}",
		"workload[1].synthetic.requests=20000")
	if trialtest.Metric(t, o, "raid.rebuilt") < 0.05 || trialtest.Metric(t, o, "ssd[2].write.count") == 0 {
		t.Errorf("%v is rebuilt, with %v writes", trialtest.Metric(t, o, "raid.rebuilt"),
			trialtest.Metric(t, o, "ssd[2].write.count"))
	}
}

// TestVolumeEndsByTime: requests queued at the host of a volume count as outstanding when a run ends by time.
func TestVolumeEndsByTime(t *testing.T) {
	o := trialtest.Run(t, volume, 1, "host_raid={level: 1, drives: 2}", "measure.until=1ms",
		"workload=[{queue: {depth: 3}, synthetic: {reads: {size: 4KiB, interarrival: 2us}, requests: 900}}]")
	if n := trialtest.Metric(t, o, "read.count"); n == 0 || n > 400 {
		t.Errorf("%v of 500 requests ended; most should wait", n)
	}
}

package drive_test

import (
	"fmt"
	"math"
	"testing"

	"farflash/experiment/internal/drivemeter"
	"farflash/experiment/trial/trialtest"
	"farflash/internal/patience"
	"farflash/model/ssd"
	"farflash/policy/ftl"
	"farflash/policy/ftl/waf"
	"farflash/scenario"
)

// full is a large drive written at full speed, with the given number of writes.
const full = `
ssd:
  preset: tlc-enterprise
  geometry: {channels: 4, chips_per_channel: 2, dies_per_chip: 1, planes_per_die: 1, blocks_per_plane: 682, pages_per_block: 64, page_size: 16KiB}
  over_provisioning: %g%%
  cache: {mode: write, capacity: 1MiB}
  mapping: {grain: 4KiB, ideal: true, allocation: %s}
  preconditioning: {fill: steady, small_writes: %v}
workload: [{synthetic: {writes: {size: %s, addresses: {%s align: %s}}, requests: %d}, closed: 128}]
`

// TestSteadyFromTheFirstWrite verifies that the first 1 % of the capacity, written at full speed to a drive in steady
// state, has the write amplification of the closed form, for several spare areas, skews and grains. If every plane is
// its own pool, 1 % is a few blocks each, so 2 % are written.
func TestSteadyFromTheFirstWrite(t *testing.T) {
	const blocks, open, urgent = 682, 2, 3
	spare, skews, allocations := []float64{12.7, 28},
		[]string{"", "pattern: hot-cold, hot_requests: 80%, hot_space: 20%,"}, []string{"dynamic"}
	if patience.Long(t) {
		spare, skews, allocations = []float64{7, 12.7, 20, 28, 40}, append(skews, "pattern: zipf, theta: 0.9,"),
			append(allocations, "static")
	}
	for _, allocation := range allocations {
		for _, spare := range spare {
			for _, grains := range []int{1, 4} { // per write
				for _, skew := range skews {
					pages, times := 8*64*4, 1
					if allocation == "static" {
						if skew != "" || grains > 1 { // planes are not written evenly, and their blocks hold 64 writes
							continue
						}
						pages, times = 64*4, 2
					}
					size := fmt.Sprintf("%dKiB", 4*grains)
					writes := int(8*64*4*blocks*(1-spare/100)/100) * times / grains
					o := trialtest.Run(t, fmt.Sprintf(full, spare, allocation, grains == 1, size, skew, size, writes),
						1)
					// Fewer blocks than the urgent threshold are free, and one is open for the host and one for
					// survivors.
					form, err := waf.Policy{Victim: ftl.Greedy}.WAF(float64(blocks-open-urgent+1)/
						(blocks*(1-spare/100)), pages/grains)
					if err != nil {
						t.Fatal(err)
					}
					off := trialtest.Metric(t, o, "ssd.waf")/form - 1
					t.Logf("%s, %g %% spare, writes of %s %s: %.3f is expected, off by %+.1f %%", allocation, spare,
						size, skew, form, 100*off)
					if math.Abs(off) > 0.05 {
						t.Errorf("%s, %g %% spare, writes of %s %s: off by %+.1f %%", allocation, spare, size, skew,
							100*off)
					}
				}
			}
		}
	}
}

// TestSteadyLargeDrive writes the first 6 GB of 1.28 TB, with FARFLASH_LONG. A write of 4 KiB takes a quarter of a
// page, and 8 x 4 dies of 4 planes program a page each.
func TestSteadyLargeDrive(t *testing.T) {
	patience.SkipUnlessLong(t)
	o := trialtest.Run(t, `
ssd:
  geometry: {channels: 8, chips_per_channel: 4, dies_per_chip: 1, planes_per_die: 4, blocks_per_plane: 682, pages_per_block: 1024, page_size: 16KiB}
  over_provisioning: 12.7%
  timing: {cell: TLC, read_latency: 45us, program_latency: 650us, erase_latency: 35ms, channel_rate: 1200MT/s}
  host: {lane_rate: 2GB/s, lanes: 4, fetch_size: 512, commands: 4096}
  dram: {data_rate: 3200MT/s, burst_size: 8B}
  cache: {mode: write, capacity: 16MiB}
  mapping: {ideal: true}
  scheduling: {suspend_program: true, suspend_erase: true, independent_reads: true}
  preconditioning: {fill: steady, small_writes: true}
workload: [{synthetic: {writes: {size: 4KiB, addresses: {align: 4KiB}}, requests: 1500000}, closed: 128}]
measure: {warm_up: 30%}
`, 1)
	form, err := waf.Policy{Victim: ftl.Greedy}.WAF(float64(682-4)/(682*(1-.127)), 4096)
	if err != nil {
		t.Fatal(err)
	}
	if w := trialtest.Metric(t, o, "ssd.waf"); math.Abs(w/form-1) > 0.05 {
		t.Errorf("a write amplification of %.3f; %.3f is expected", w, form)
	}
	if x := trialtest.Metric(t, o, "write.iops"); math.Abs(x/125_000-1) > 0.05 {
		t.Errorf("%.0f writes a second", x)
	}
}

// TestBusyDriveFalls verifies that the preset's write amplification falls with its spare space, also where there is so
// little that collection does not keep up with the host's requests, and that it equals that of a run four times as
// long.
func TestBusyDriveFalls(t *testing.T) {
	preset, err := scenario.PresetText("busy-drive")
	if err != nil {
		t.Fatal(err)
	}
	run := func(spare, times string) float64 {
		o := trialtest.Run(t, preset, 1, "ssd.over_provisioning="+spare, "workload[0].synthetic.duration="+times,
			"workload[1].synthetic.duration="+times)
		if text := o.Result.Transient; text != "" {
			t.Errorf("%s spare, %s: %s", spare, times, text)
		}
		return trialtest.Metric(t, o, "ssd.waf")
	}
	last := math.Inf(1)
	for _, spare := range []string{"14%", "20%", "28%"} {
		x := run(spare, "1.5s")
		if x >= last*0.9 {
			t.Errorf("%s spare: %.3f, after %.3f", spare, x, last)
		}
		last = x
		if !patience.Long(t) {
			continue
		}
		if long := run(spare, "6s"); math.Abs(x/long-1) > 0.05 {
			t.Errorf("%s spare: %.3f, but %.3f in the long run", spare, x, long)
		}
	}
}

// TestLevels checks the initial level of free blocks, by load.
func TestLevels(t *testing.T) {
	preset, err := scenario.PresetText("busy-drive")
	if err != nil {
		t.Fatal(err)
	}
	closed := fmt.Sprintf(full, 28., "dynamic", true, "4KiB", "", "4KiB", 10)
	for _, c := range []struct {
		name, text string
		set        []string
		want       ssd.Free
	}{
		{"a closed loop of writes", closed, nil, ssd.FreeHard},
		{"that is told", closed, []string{"ssd.preconditioning.free=start"}, ssd.FreeStart},
		{"that pauses", closed, []string{"workload[0].think.time=100ms"}, ssd.FreeStart},
		{"one write at a time, into flash", closed, []string{"ssd.cache.mode=off", "workload[0].closed=1"},
			ssd.FreeStart},
		{"many", closed, []string{"ssd.cache.mode=off"}, ssd.FreeHard},
		{"collection goes first", closed, []string{"ssd.collection.preemptible=false"}, ssd.FreeStart},
		{"a new drive", closed, []string{"ssd.preconditioning.fill=none"}, ssd.FreeByLoad},
		{"a closed loop of reads", `
ssd: {preset: tlc-enterprise, preconditioning: {fill: steady}}
workload: [{synthetic: {reads: {size: 4KiB}, requests: 10}, closed: 128}]
`, nil, ssd.FreeStart},
		{"an open loop", preset, nil, ssd.FreeStart},
		{"with little spare space", preset, []string{"ssd.over_provisioning=14%"}, ssd.FreeHard},
		{"that comes slower", preset,
			[]string{"ssd.over_provisioning=14%", "workload[1].synthetic.writes.interarrival.mean=100us"},
			ssd.FreeStart},
		{"beside reads that leave nothing", preset, []string{"workload[0].synthetic.reads.interarrival.mean=2us"},
			ssd.FreeHard},
		{"on four drives", preset, []string{"ssd.over_provisioning=14%", "host_raid.drives=4"}, ssd.FreeStart},
	} {
		s, err := trialtest.Parse(c.text, c.set...)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := drivemeter.Preconditioned(s, 0).Preconditioning.Free; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

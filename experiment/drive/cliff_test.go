package drive_test

import (
	"fmt"
	"math"
	"testing"

	"farflash/experiment/trial/trialtest"
	"farflash/scenario"
)

// TestCliff compares the preset qlc-client with Guru3D's measurement of a Solidigm P41 Plus 1 TB that was written
// completely: 3000 MB/s until its SLC cache is full, 262 MB/s on average afterwards. The cache is a fortieth here, so
// that it fills soon; neither rate depends on that.
func TestCliff(t *testing.T) {
	preset, err := scenario.PresetText("qlc-client")
	if err != nil {
		t.Fatal(err)
	}
	const size, cache = 128 << 10, 3 << 30
	takes := func(requests int) float64 {
		r := trialtest.Run(t, preset, 1, "ssd.slc_cache.capacity=3GiB", "measure.warm_up=0%",
			fmt.Sprintf("workload=[{synthetic: {writes: {size: 128KiB, addresses: {pattern: sequential, align: "+
				"128KiB}}, requests: %d}, closed: 32}]", requests))
		return r.Result.SimulatedS
	}
	full := cache / size * 9 / 10
	before := takes(full)
	if rate := float64(full*size) / before; math.Abs(rate/3000e6-1) > .05 {
		t.Errorf("the cache takes %.0f MB/s", rate/1e6)
	}
	const more = 5000
	first, second := takes(cache/size*11/10), takes(cache/size*11/10+more)
	if rate := more * size / (second - first); math.Abs(rate/262e6-1) > .1 {
		t.Errorf("behind the cliff it takes %.0f MB/s", rate/1e6)
	} else {
		t.Logf("behind the cliff it takes %.0f MB/s", rate/1e6)
	}
}

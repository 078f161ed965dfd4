package drive_test

import (
	"errors"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/scenario/shape"
)

// futile is a drive whose cached map holds a hundred entries, and which collects the oldest block, however full it is.
const vain = `{
  geometry: {channels: 1, chips_per_channel: 3, dies_per_chip: 2, planes_per_die: 4, blocks_per_plane: 67, pages_per_block: 70, page_size: 512B},
  timing: {cell: MLC}, over_provisioning: 28%, fdp: {handles: 1, groups: 3, isolation: persistently},
  mapping: {grain: 512B, cmt_capacity: 1005B, allocation: static}, cache: {mode: read-write, capacity: 70KB},
  collection: {victim: fifo, concurrent: 3, copyback: true}, preconditioning: {fill: steady, small_writes: true}, namespaces: [{}, {}]}
`

const vainLoad = `workload:
  - {synthetic: {writes: {size: 4KiB, addresses: {align: 512B}}, requests: 600}, closed: 59, group: 2}
  - {synthetic: {writes: {size: 16KiB, interarrival: 10us, addresses: {align: 8KiB}}, requests: 300}, group: 1, fua: true}
  - {synthetic: {writes: {size: 32KiB, interarrival: 10us, addresses: {align: 4KiB}}, requests: 300}, group: 2, namespace: 1}
`

// TestVain verifies that a drive that only collects is an error with the cause's position, and that the remedy in the
// error helps. With a time limit it is not an error.
func TestVain(t *testing.T) {
	for _, c := range []struct{ change, want string }{
		{"ssd.initial=on-read", "ssd.mapping.cmt_capacity: livelock of collection on drive 0 at "},
		{"ssd.mapping.cmt_capacity=8KB", ""},
		{"ssd.mapping.ideal=true", ""},
		{"ssd.over_provisioning=45%", ""},
		{"ssd.collection.victim=greedy", ""},
		{"measure.until=130s", ""}, // after the time of the error
	} {
		s, err := trialtest.Parse("ssd: "+vain+vainLoad, c.change)
		if err != nil {
			t.Fatal(c.change, err)
		}
		_, err = trial.Run(t.Context(), s, experiment.Options{Seed: 1})
		var at *shape.Error
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.change, err)
		case c.want != "" &&
			(!errors.As(err, &at) || at.At.Line != 4 || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "emptied each of its blocks 8 times")):
			t.Errorf("%s: %v", c.change, err)
		}
	}
}

// TestVainBehindNetwork verifies that the error is also reported for a drive in a system.
func TestVainBehindNetwork(t *testing.T) {
	s, err := trialtest.Parse("targets: [{ssds: 1, ssd: " + vain + "}]\n" +
		strings.NewReplacer(", fua: true", "", ", namespace: 1", "").Replace(vainLoad) +
		"fabric: {topology: {star: {hosts: 2}}, host_link: 40Gbps, up_link: 40Gbps, delay: 1us}\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = trial.Run(t.Context(), s, experiment.Options{Seed: 1}); err == nil ||
		!strings.Contains(err.Error(), "livelock of collection") {
		t.Error(err)
	}
}

// TestLongRequests verifies that requests of a third of the drive, which take many rounds of collection with many
// moves, are not an error.
func TestLongRequests(t *testing.T) {
	s, err := trialtest.Parse("ssd: "+vain+
		"workload: [{synthetic: {writes: {size: 16MiB, addresses: {align: 512B}}, requests: 3}, closed: 3}]\n",
		"ssd.mapping.cmt_capacity=2.5KB")
	if err != nil {
		t.Fatal(err)
	}
	o, err := trial.Run(t.Context(), s, experiment.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if waf := trialtest.Metric(t, o, "ssd.waf"); waf < 40 {
		t.Errorf("a write amplification of %v shows nothing", waf)
	}
}

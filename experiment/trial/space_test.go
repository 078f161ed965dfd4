package trial_test

import (
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/drawn"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// shared is a drive with one channel that is promised to two namespaces, as in MQSim.
const shared = `ssd:
  preset: tlc-enterprise
  compat: mqsim
  geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, chips_per_channel: 1, dies_per_chip: 1}
  over_provisioning: 35%
  cache: {capacity: 256KiB}
  preconditioning: {fill: steady, occupancy: 80%}
  namespaces: [{streams: 2}, {channels: [0], cache: write}]
workload:
- {synthetic: {reads: {size: {mean: 8KiB, scv: 1.5}, addresses: {pattern: zipf, theta: 0.9}}, writes: {size: 16KiB}, interarrival: {mean: 50us, scv: 4, acf1: 0.1}, read_fraction: 50%, requests: 300}, placement: 1, queue: {depth: 16, weight: 2, in_flight: 8}}
- {mqsim: {reads: 50%, addresses: hot-cold, hot_region: 10%, sizes: normal, size: 16KiB, size_deviation: 1KiB, requests: 200, bandwidth: 100MB/s}, namespace: 1}
- {trace: {file: random.csv}, addresses: fold, limit: 100}
`

// TestFullPeer verifies that a drive by the peer's rules whose data leave too little space for open and reserve blocks
// stops forever when its host writes, that check rejects it with the limit, and that at the limit the run completes;
// and that a drive by our rules does not stop.
func TestFullPeer(t *testing.T) {
	dir := t.TempDir()
	if err := drawn.WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	parse := func(set ...shape.Change) *scenario.Scenario {
		s, err := scenario.Parse(shape.Source{File: "shared.yaml", Text: []byte(shared), Dir: dir}, set)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	err := trial.Check(t.Context(), parse(), 1)
	for _, part := range []string{"shared.yaml:7:",
		"ssd.preconditioning.occupancy: 80% fills 26 of a plane's 40 blocks",
		"8 open blocks and 10 that must be free", "at most 22"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v: it does not say %q", err, part)
		}
	}
	for _, c := range []shape.Change{{Path: "ssd.preconditioning.occupancy", Value: "67%"},
		{Path: "ssd.compat", Value: "none"}} {
		for seed := range uint64(4) {
			o, err := trial.Run(t.Context(), parse(c), experiment.Options{Seed: seed, Version: "test"})
			if err != nil {
				t.Errorf("with %s=%s, seed %d: %v", c.Path, c.Value, seed, err)
				continue
			}
			for _, k := range o.Result.Checks {
				if !k.OK {
					t.Errorf("with %s=%s, seed %d: %s: %s", c.Path, c.Value, seed, k.Name, k.Detail)
				}
			}
		}
	}
}

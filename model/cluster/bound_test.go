package cluster_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"farflash/model/cluster"
	"farflash/numeric/units"
)

// TestBoundsHold verifies, for real clusters in a closed loop of puts, that no chunk beats Least and that no bound is
// ever exceeded.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := cluster.DefaultConfig()
		cfg.Protocol = rapid.SampledFrom(cluster.SharedSchemes()).Draw(t, "protocol")
		cfg.Gateways, cfg.Outstanding = rapid.IntRange(1, 12).Draw(t, "gateways"),
			rapid.IntRange(1, 6).Draw(t, "outstanding")
		cfg.Replicas = rapid.IntRange(1, 4).Draw(t, "replicas")
		cfg.Group = rapid.IntRange(cfg.Replicas, 9).Draw(t, "group")
		cfg.Targets = max(cfg.Group*rapid.IntRange(2, 4).Draw(t, "groups"), 2*cfg.Replicas)
		cfg.Targets -= cfg.Targets % cfg.Group
		cfg.Chunk = units.Bytes(rapid.SampledFrom([]int{1, 4000, 9001, 16384, 131072, 300001}).Draw(t, "chunk"))
		cfg.Disk.Rate = units.ByteRate(rapid.SampledFrom([]int{50, 400, 5000}).Draw(t, "disk")) *
			units.ByteRate(units.MiB)
		cfg.Disk.Count = rapid.IntRange(1, 2).Draw(t, "disks")
		cfg.Link.Trip = units.Duration(rapid.IntRange(0, 20).Draw(t, "trip")) * units.Microsecond
		if cfg.Protocol.Sequential() {
			cfg.Choosy = rapid.Bool().Draw(t, "choosy")
		}
		if cfg.Protocol.Placed() {
			cfg.Choices = rapid.IntRange(1, 2).Draw(t, "choices")
		}
		if rapid.Bool().Draw(t, "coded") && !cfg.Protocol.Multicasts() {
			cfg.Code = cluster.Code{Data: 2, Parity: 1}
		}
		if rapid.Bool().Draw(t, "unequal") {
			cfg.Disk.Kinds = []cluster.Kind{{Share: 0.3, Rate: cfg.Disk.Rate / 2},
				{Share: 0.2, Rate: 3 * cfg.Disk.Rate}}
		}
		writesBack := rapid.Bool().Draw(t, "write-back")
		if writesBack {
			cfg.Acknowledge = cluster.WriteBack
		}
		if cfg.Validate() != nil {
			t.Skip("no such cluster")
		}
		until := 4 * units.Millisecond
		c, done := run(t, cfg, rapid.Uint64Range(1, 1000).Draw(t, "seed"), until)
		for _, d := range done {
			if took := d.Done - d.Begun; took < c.Least() {
				t.Fatalf("chunk %d, begun at %v, took %v, less than %v", d.Chunk, d.Begun, took, c.Least())
			}
		}
		for _, b := range c.Bounds() {
			if writesBack && b.Resource == "disks" {
				continue // with early acknowledgement, acknowledged pieces may still wait for the disks
			}
			if got, most := float64(len(done)), b.Chunks*until.Seconds(); got > most*(1+1e-6) {
				t.Fatalf("%v chunks, more than the %s allow, %v", got, b.Resource, most)
			}
		}
	})
}

// TestNoCeiling verifies that a link that SURGE crosses in no time, with a chunk of one byte, is not listed as a bound,
// and that the others are.
func TestNoCeiling(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Compat, cfg.Control.Queued, cfg.Chunk = cluster.CompatSURGEHead, false, 1
	c, _ := run(t, cfg, 1, 0)
	var names []string
	for _, b := range c.Bounds() {
		names = append(names, b.Resource)
		if math.IsInf(b.Chunks, 0) || b.Chunks <= 0 {
			t.Errorf("%s allow %v chunks a second", b.Resource, b.Chunks)
		}
	}
	if !slices.Equal(names, []string{"disks", "chunks outstanding"}) || math.IsInf(c.Bound().Chunks, 0) {
		t.Errorf("bounds of %v, the least %v", names, c.Bound())
	}
}

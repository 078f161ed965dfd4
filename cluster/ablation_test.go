package cluster_test

import (
	"testing"

	"farflash/cluster"
	"farflash/units"
)

// TestAblation: what each part of pull brings, docs/validation/replicast.md: the share of the disks' time that is left without it, of a cluster of the
// Replicast paper in its second 10 ms of 20, each within what ten seeds over 100 ms spread by and the shorter run adds.
func TestAblation(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	for _, x := range []struct {
		name      string
		rate      units.ByteRate // MiB/s
		chunk     units.Bytes
		change    func(*cluster.Config)
		low, high float64 // %
	}{
		{"pull", 400, 16 * units.KiB, func(*cluster.Config) {}, 99.5, 100.5},
		{"one group", 400, 16 * units.KiB, func(c *cluster.Config) { c.Groups = 1 }, 88, 92},
		{"one group of 18", 400, 16 * units.KiB, func(c *cluster.Config) { c.Groups, c.Group = 1, 18 }, 93, 96},
		{"bound when asked", 400, 16 * units.KiB, func(c *cluster.Config) { c.Ahead = units.Second }, 44, 56},
		{"no chain", 400, 16 * units.KiB, func(c *cluster.Config) { c.Code = cluster.Code{Data: 1, Parity: 2} }, 99.3, 100.5},
		{"larger messages", 400, 16 * units.KiB, func(c *cluster.Config) { c.Control.Unicast = 300 }, 99.5, 100.5},
		{"Replicast-M of 18", 400, 16 * units.KiB, func(c *cluster.Config) { c.Protocol, c.Group = cluster.ReplicastM, 18 }, 82, 86},
		{"pull", 1000, 128 * units.KiB, func(*cluster.Config) {}, 97, 101},
		{"no chain", 1000, 128 * units.KiB, func(c *cluster.Config) { c.Code = cluster.Code{Data: 1, Parity: 2} }, 67, 73},
	} {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Chunk, cfg.Disk.Rate = cluster.Pull, x.chunk, x.rate*units.ByteRate(units.MiB)
		x.change(&cfg)
		_, done := run(t, cfg, 1, 20*units.Millisecond)
		n := 0
		for _, d := range done {
			if d.Done >= 10*units.Millisecond {
				n++
			}
		}
		bytes := float64(n) * 3 * float64(x.chunk)
		share := 100 * bytes / (90 * float64(cfg.Disk.Rate) * 0.01)
		t.Logf("%s, %v: %.1f %%", x.name, x.chunk, share)
		if share < x.low || share > x.high {
			t.Errorf("%s, %v: %.1f %% of what the disks allow, not %v to %v", x.name, x.chunk, share, x.low, x.high)
		}
	}
}

// TestTwoGroups: with 57 chunks outstanding for two groups of five, as in the laboratory of the Replicast paper's table 4, hardly a negotiation of
// Replicast-M ends with a common window, where Replicast-H needs none.
func TestTwoGroups(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	for _, p := range []cluster.Scheme{cluster.ReplicastM, cluster.ReplicastH} {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Compat, cfg.Control.Queued = p, cluster.CompatSURGE, false
		cfg.Gateways, cfg.Targets, cfg.Group, cfg.Chunk, cfg.Disk.Rate = 57, 10, 5, 16*units.KiB, 800_000_000
		c, _ := run(t, cfg, 1, 20*units.Millisecond)
		k := c.Counters
		given := float64(k.Aborted) / float64(k.Aborted+k.Done)
		if (given > 0.99) != (p == cluster.ReplicastM) {
			t.Errorf("%v: %.2f %% of %d negotiations are given up", p, 100*given, k.Aborted+k.Done)
		}
	}
}

// TestAdmission: a gateway of pull that asks for one chunk at a time, and works on four, does a third more of those whose pieces it sends one after the other.
func TestAdmission(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Outstanding, cfg.Disk.Rate = cluster.Pull, 4, 1000*units.ByteRate(units.MiB)
	cfg.Code = cluster.Code{Data: 4, Parity: 2}
	done := func(admit int) float64 {
		cfg.Admit = admit
		_, list := run(t, cfg, 1, 20*units.Millisecond)
		return float64(len(list))
	}
	if all, one := done(0), done(1); one < 1.3*all {
		t.Errorf("%v chunks with one admitted at a time, %v without", one, all)
	}
}

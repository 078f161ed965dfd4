package cluster_test

import (
	"slices"
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestAblation verifies the contribution of each part of pull (docs/validation/replicast.md): the disk utilization that
// remains without it, for a cluster of the Replicast paper in the second 10 ms of 20 ms. Each interval covers the
// spread of ten seeds over 100 ms, widened for the shorter run.
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
		{"bound when asked", 400, 16 * units.KiB, func(c *cluster.Config) { c.Ahead = units.Second }, 99, 100.5},
		{"no chain", 400, 16 * units.KiB, func(c *cluster.Config) { c.Code = cluster.Code{Data: 1, Parity: 2} }, 99.3,
			100.5},
		{"larger messages", 400, 16 * units.KiB, func(c *cluster.Config) { c.Control.Unicast = 300 }, 99.5, 100.5},
		{"Replicast-M of 18", 400, 16 * units.KiB,
			func(c *cluster.Config) { c.Protocol, c.Group = cluster.ReplicastM, 18 }, 82, 86},
		{"pull", 1000, 128 * units.KiB, func(*cluster.Config) {}, 97, 101},
		{"bound when asked", 1000, 128 * units.KiB, func(c *cluster.Config) { c.Ahead = units.Second }, 83, 90},
		{"no chain", 1000, 128 * units.KiB, func(c *cluster.Config) { c.Code = cluster.Code{Data: 1, Parity: 2} }, 71,
			78},
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

// TestTwoGroups: with 57 chunks outstanding for two groups of five, as in the laboratory of the Replicast paper's table
// 4, hardly any negotiation of Replicast-M finds a common window; Replicast-H does not need one.
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

// TestDepth verifies that pull keeps disks busy with any number of chunks outstanding and when gateways send each piece
// of a code themselves, that it keeps up in an open loop, and that a burst at one gateway, whose link stays busy for
// long, does not stall the targets of other gateways.
func TestDepth(t *testing.T) {
	for _, x := range []struct {
		name  string
		chunk units.Bytes
		low   float64 // %
		set   func(*cluster.Config)
	}{
		{"two outstanding", 16 * units.KiB, 86, func(c *cluster.Config) { c.Outstanding = 2 }},
		{"four outstanding", 16 * units.KiB, 98, func(c *cluster.Config) { c.Outstanding = 4 }},
		{"eight outstanding", 16 * units.KiB, 99, func(c *cluster.Config) { c.Outstanding = 8 }},
		{"an open loop at 90 %", 16 * units.KiB, 89, func(c *cluster.Config) { c.Load.Share, c.Outstanding = 0.9, 64 }},
		{"a code, two outstanding", 256 * units.KiB, 96,
			func(c *cluster.Config) { c.Outstanding, c.Code = 2, cluster.Code{Data: 4, Parity: 2} }},
		{"a code, eight outstanding", 256 * units.KiB, 98,
			func(c *cluster.Config) { c.Outstanding, c.Code = 8, cluster.Code{Data: 4, Parity: 2} }},
	} {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Chunk, cfg.Disk.Rate = cluster.Pull, x.chunk, 1000*units.ByteRate(units.MiB)
		x.set(&cfg)
		from, until := 6*units.Millisecond, 12*units.Millisecond
		// A chunk takes 3 ms, and chunks that start together finish together.
		if cfg.Code.Data > 0 && cfg.Outstanding > 2 {
			from, until = 2*from, 2*until
		}
		_, done := run(t, cfg, 1, until)
		n := 0
		for _, d := range done {
			if d.Done >= from {
				n++
			}
		}
		pieces := 3.0
		if cfg.Code.Data > 0 {
			pieces = 1.5
		}
		share := 100 * float64(n) * pieces * float64(x.chunk) / (90 * float64(cfg.Disk.Rate) * (until - from).Seconds())
		t.Logf("%s: %.1f %%", x.name, share)
		if share < x.low || share > 103 {
			t.Errorf("%s: %.1f %% of what the disks allow, not %v", x.name, share, x.low)
		}
	}
}

// bursts yields n chunks at gateway 0 at once, and occasional single chunks at the others.
type bursts struct{ left, n int }

func (b *bursts) Next(a *cluster.Arrival) bool {
	if b.n++; b.n > 600 {
		return false
	}
	*a = cluster.Arrival{Object: -1}
	if b.n > b.left {
		a.At, a.Gateway = sim.Time(b.n-b.left)*10*units.Microsecond, int32(1+b.n%89)
	}
	return true
}

// TestBurst: a burst of 64 chunks occupies one gateway's link for 6.8 ms; the chunks that other gateways start in that
// time take hardly longer than without the burst.
func TestBurst(t *testing.T) {
	mean := func(burst int) float64 {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Outstanding, cfg.Disk.Rate = cluster.Pull, 64, 1000*units.ByteRate(units.MiB)
		eng := sim.New()
		c, err := cluster.New(cfg, eng, 1)
		if err != nil {
			t.Fatal(err)
		}
		sum, n := sim.Time(0), 0
		c.OnDone = func(d *cluster.Done) {
			if d.Gateway > 0 {
				sum += d.Done - d.Begun
				n++
			}
		}
		c.Replay(&bursts{left: burst})
		c.Start()
		eng.Run(20 * units.Millisecond)
		return sum.Seconds() / float64(n)
	}
	if alone, beside := mean(0), mean(64); beside > 1.3*alone {
		t.Errorf("others' chunks take %.0f us, and %.0f beside a burst", 1e6*alone, 1e6*beside)
	}
}

// TestLateIsSoonKnown verifies that pull retries lost data after the time that sending takes, without the time of the
// wait for capacity; under loss its tail is therefore no longer than that of chain, however many chunks are queued.
func TestLateIsSoonKnown(t *testing.T) {
	tail := func(p cluster.Scheme) sim.Time {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Outstanding, cfg.Chunk, cfg.Link.Loss = p, 16, 32*units.KiB, 0.003
		if p == cluster.Chain {
			cfg.Choices = 2
		}
		_, done := run(t, cfg, 1, 60*units.Millisecond)
		var took []sim.Time
		for _, d := range done {
			if d.Done > 30*units.Millisecond {
				took = append(took, d.Done-d.Begun)
			}
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	if pull, chain := tail(cluster.Pull), tail(cluster.Chain); pull > chain {
		t.Errorf("a hundredth of pull's chunks takes %v or more, and of a chain's %v", pull, chain)
	}
}

package cluster_test

import (
	"math"
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/units"
)

// TestSizes verifies that chunks of several sizes have their shares, that all laws hold with reads, codes, losses and
// failures, and that disks write the actual sizes.
func TestSizes(t *testing.T) {
	for k, p := range cluster.Schemes() {
		if p == cluster.CommandWindow {
			continue
		}
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Group, cfg.Chunk, cfg.Outstanding = p, 8, 18, 9, 64*units.KiB, 3
		cfg.Sizes = []cluster.Size{{Chunk: 5000, Share: 0.5}, {Chunk: 20 * units.KiB, Share: 0.3},
			{Chunk: 64 * units.KiB, Share: 0.2}}
		if p != cluster.ReplicastProxy {
			cfg.Link.Loss, cfg.Repair.Detect, cfg.Objects, cfg.Reads = 0.0005, units.Millisecond, 300, 0.3
			cfg.Failures = []cluster.Failure{{Target: 3, At: 5 * units.Millisecond}}
		}
		if !p.Multicasts() && k%2 == 0 {
			cfg.Code = cluster.Code{Data: 3, Parity: 1}
		}
		c, done := run(t, settled(cfg), 3, 60*units.Millisecond)
		if err := c.Check(); err != nil {
			t.Errorf("%v: %v", p, err)
		}
		count, n := map[units.Bytes]float64{}, 0.0
		for _, d := range done {
			if !d.Read {
				count[d.Size]++
				n++
			}
		}
		for _, s := range cfg.Sizes {
			if share := count[s.Chunk] / n; math.Abs(share-float64(s.Share)) > 0.06 {
				t.Errorf("%v: %.3f of %v chunks have %v, not %v", p, share, n, s.Chunk, s.Share)
			}
		}
		if len(cfg.Failures) > 0 && c.Counters.Repaired == 0 {
			t.Errorf("%v: nothing is made again", p)
		}
	}
}

// TestSizesBound verifies that the disks' bound follows from the mean size, and that pull and chain reach it.
func TestSizesBound(t *testing.T) {
	for _, p := range []cluster.Scheme{cluster.Pull, cluster.Chain} {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Choices, cfg.Outstanding = p, 1, 4
		if p == cluster.Chain {
			cfg.Choices = 2
		}
		cfg.Sizes = []cluster.Size{{Chunk: 16 * units.KiB, Share: 0.5}, {Chunk: 128 * units.KiB, Share: 0.5}}
		const until = 40 * units.Millisecond
		c, done := run(t, cfg, 1, until)
		if got, want := c.Bound().Chunks,
			90*float64(cfg.Disk.Rate)/(3*cfg.MeanChunk()); math.Abs(got/want-1) > 1e-6 || cfg.MeanChunk() != 72*1024 {
			t.Errorf("%v: %v chunks a second are allowed, not %v", p, got, want)
		}
		n, size := 0.0, 0.0
		for _, d := range done {
			if d.Done > until/2 {
				n++
				size += float64(d.Size)
			}
		}
		reached := size * 3 / (90 * float64(cfg.Disk.Rate) * (until / 2).Seconds())
		t.Logf("%v: %.3f of what disks allow", p, reached)
		if reached < map[cluster.Scheme]float64{cluster.Pull: 0.97, cluster.Chain: 0.9}[p] || reached > 1.03 {
			t.Errorf("%v: %.3f of what disks allow", p, reached)
		}
	}
}

// TestSizesRefused: shares that do not add up, sizes above chunk, lists without chunk itself, and sizes with SURGE are
// refused.
func TestSizesRefused(t *testing.T) {
	for name, list := range map[string][]cluster.Size{
		"too little": {{Chunk: 128 * units.KiB, Share: 0.9}}, "too large": {{Chunk: 256 * units.KiB, Share: 1}},
		"all smaller": {{Chunk: 64 * units.KiB, Share: 1}},
		"nothing":     {{Chunk: 0, Share: 0.5}, {Chunk: 128 * units.KiB, Share: 0.5}},
		"no share":    {{Chunk: 1, Share: 0}, {Chunk: 128 * units.KiB, Share: 1}},
	} {
		cfg := cluster.DefaultConfig()
		cfg.Sizes = list
		if cfg.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	cfg := cluster.DefaultConfig()
	if cfg.Sizes = []cluster.Size{{Chunk: 128 * units.KiB, Share: 1}}; cfg.Validate() != nil {
		t.Errorf("all of one size: %v", cfg.Validate())
	}
	if cfg.Compat, cfg.Control.Queued = cluster.CompatSURGE, false; cfg.Validate() == nil {
		t.Error("SURGE has several sizes")
	}
}

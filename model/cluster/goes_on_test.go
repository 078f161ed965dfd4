package cluster_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestReadsGoOn verifies that gateways make progress with any code and read policy. In a closed loop, by Little's law,
// the chunks in flight are the permitted maximum, so no read hangs; in an open loop, all chunks that arrive some time
// before the end complete.
func TestReadsGoOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := cluster.DefaultConfig()
		cfg.Protocol = rapid.SampledFrom([]cluster.Scheme{cluster.Chain, cluster.UCH, cluster.Pull,
			cluster.ReplicastH, cluster.Grants, cluster.DCTCP}).Draw(t, "protocol")
		cfg.Code = cluster.Code{Data: rapid.IntRange(1, 5).Draw(t, "data"),
			Parity: rapid.IntRange(0, 3).Draw(t, "parity")}
		n := cfg.Code.Data + cfg.Code.Parity
		cfg.Gateways, cfg.Group = rapid.IntRange(1, 8).Draw(t, "gateways"), max(n, 4)
		cfg.Targets = cfg.Group * rapid.IntRange(2, 4).Draw(t, "groups")
		cfg.Outstanding = rapid.IntRange(1, 4).Draw(t, "outstanding")
		cfg.Chunk, cfg.Objects, cfg.Reads = 64*units.KiB, 200, 1
		cfg.Read = cluster.Reading(rapid.IntRange(0, int(cluster.ReadTied)).Draw(t, "read"))
		cfg.Disk.Count = rapid.IntRange(1, 2).Draw(t, "disks")
		if rapid.Bool().Draw(t, "open") {
			cfg.Load.Share, cfg.Outstanding = 0.3, 64
		}
		if cfg.Validate() != nil {
			t.Skip("no such cluster")
		}
		const until = 60 * units.Millisecond
		c, done := run(t, cfg, rapid.Uint64Range(1, 1000).Draw(t, "seed"), until)
		sum, last := 0.0, make([]sim.Time, cfg.Gateways)
		for _, d := range done {
			sum += (d.Done - d.Begun).Seconds()
			last[d.Gateway] = max(last[d.Gateway], d.Done)
		}
		if cfg.Load.Share > 0 {
			if k := &c.Counters; float64(k.Arrived-k.Gets.Done) > 0.1*float64(k.Arrived)+20 {
				t.Fatalf("%d of %d that came are done", k.Gets.Done, k.Arrived)
			}
			return
		}
		asked := float64(cfg.Gateways * cfg.Outstanding)
		if got := sum / until.Seconds(); got < 0.8*asked || got > asked*(1+1e-9) {
			t.Fatalf("%.2f are under way, of %.0f", got, asked)
		}
		for g, at := range last {
			if at < until-20*units.Millisecond {
				t.Fatalf("gateway %d was last done at %v", g, at)
			}
		}
	})
}

// TestTiedUnderACode: of six targets with a piece, five are asked, and the fifth read is canceled only when four have
// begun.
func TestTiedUnderACode(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Chunk, cfg.Reads, cfg.Code, cfg.Read = cluster.Chain, 6, 18,
		64*units.KiB, 1, cluster.Code{Data: 4, Parity: 2}, cluster.ReadTied
	const until = 50 * units.Millisecond
	var reads int
	eng := sim.New()
	c, err := cluster.New(cfg, eng, 1)
	if err != nil {
		t.Fatal(err)
	}
	under := 0.0
	c.OnDone = func(d *cluster.Done) { under += (d.Done - d.Begun).Seconds() }
	c.OnDisk = func(*cluster.Work) { reads++ }
	c.Start()
	eng.Run(until)
	if got := under / until.Seconds(); got < 5.9 {
		t.Errorf("%.2f reads are under way, of 6", got)
	}
	if each := float64(reads) / float64(c.Counters.Gets.Done); each < 4 || each > 4.7 {
		t.Errorf("%.2f pieces are read for a chunk of four", each)
	}
}

// TestNothingIsGivenUp verifies that a chunk that finds no common window is put eventually, in open and closed loops,
// and that its latency counts from its arrival.
func TestNothingIsGivenUp(t *testing.T) {
	for _, share := range []units.Fraction{0.5, 0.7} {
		cfg := cluster.DefaultConfig()
		cfg.Gateways, cfg.Targets, cfg.Outstanding, cfg.Group, cfg.Load.Share = 16, 24, 32, 4, share
		const until = 200 * units.Millisecond
		eng := sim.New()
		c, err := cluster.New(cfg, eng, 1)
		if err != nil {
			t.Fatal(err)
		}
		// By Little's law the sum of latencies from arrival is the total time of chunks in the cluster.
		came, here := 0.0, 0.0
		c.OnDone = func(d *cluster.Done) { came += (d.Done - d.Begun).Seconds() }
		c.Start()
		const step = 10 * units.Microsecond
		for at := step; at <= until; at += step {
			eng.Run(at)
			here += float64(c.Counters.Arrived-c.Counters.Done) * step.Seconds()
		}
		k := &c.Counters
		if err := c.Check(); err != nil || k.Aborted == 0 || k.Dropped > 0 ||
			float64(k.Done) < 0.98*float64(k.Arrived) {
			t.Errorf("%v: %d came and %d are done, %d attempts aborted; %v", share, k.Arrived, k.Done, k.Aborted, err)
		}
		if math.Abs(came/here-1) > 0.05 {
			t.Errorf("%v: chunks were there for %.4f s, and their latencies are %.4f s", share, here, came)
		}
	}
}

// TestMixStays verifies that retries keep their operation: in a closed loop the share of reads is the configured one,
// and puts do not exceed the bound. Three groups with many chunks outstanding do not livelock in search of a common
// window.
func TestMixStays(t *testing.T) {
	for _, reads := range []units.Fraction{0.05, 0.2, 0.5} {
		for seed := range uint64(3) {
			cfg := cluster.DefaultConfig()
			cfg.Gateways, cfg.Targets, cfg.Outstanding, cfg.Group = 16, 24, 8, 8
			cfg.Reads, cfg.Read, cfg.Objects = reads, cluster.ReadRandom, 2000
			const until = 150 * units.Millisecond
			c, done := run(t, cfg, seed, until)
			k := &c.Counters
			// Counts starts, because which chunks complete depends on which are in flight at the end.
			n, got := float64(k.Begun+k.Gets.Begun), float64(k.Gets.Begun)
			if off := (got/n - float64(reads)) / math.Sqrt(float64(reads*(1-reads))/n); math.Abs(off) > 4 ||
				k.Aborted == 0 {
				t.Errorf("%v, seed %d: %.1f %% of %.0f are read, %.1f standard deviations off; %d attempts aborted",
					reads, seed, 100*got/n, n, off, k.Aborted)
			}
			if reached := float64(len(done)) / until.Seconds() / c.Bound().Chunks; reached < 0.7 || reached > 1 {
				t.Errorf("%v, seed %d: %.3f of the bound", reads, seed, reached)
			}
		}
	}
}

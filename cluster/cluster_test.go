package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/cluster"
	"farflash/sim"
	"farflash/units"
)

// failer is what testing.T and rapid.T have in common.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// run simulates a cluster for a time and returns it with the chunks that were done.
func run(t failer, cfg cluster.Config, seed uint64, until sim.Time) (*cluster.Cluster, []cluster.Done) {
	t.Helper()
	eng := sim.New()
	c, err := cluster.New(cfg, eng, seed)
	if err != nil {
		t.Fatal(err)
	}
	var done []cluster.Done
	c.OnDone = func(d *cluster.Done) { done = append(done, *d) }
	c.Start()
	eng.Run(until)
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return c, done
}

var schemes = []cluster.Scheme{cluster.UCH, cluster.UCHInverse, cluster.ReplicastM, cluster.ReplicastH, cluster.Pull, cluster.Chain, cluster.Grants, cluster.DCTCP}

// surges are those that SURGE has as well, so that its rules can be asked for; hashed are those in which no group bids.
var (
	surges = []cluster.Scheme{cluster.UCH, cluster.UCHInverse, cluster.ReplicastM, cluster.ReplicastH}
	hashed = []cluster.Scheme{cluster.UCH, cluster.UCHInverse, cluster.Chain, cluster.Grants, cluster.DCTCP}
)

// lone is a cluster with one gateway, whose chunks are alone.
func lone(p cluster.Scheme, compat bool, size units.Bytes) cluster.Config {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Chunk = p, 1, size
	if compat {
		cfg.Compat, cfg.Control.Queued = cluster.CompatSURGE, false
	}
	return cfg
}

// TestFloor: with one gateway the first chunk, which meets idle targets, takes what the closed form says: to the picosecond by the
// rules of SURGE, and with queues for control messages besides their turns on the link.
func TestFloor(t *testing.T) {
	for _, p := range []cluster.Scheme{cluster.UCH, cluster.ReplicastM, cluster.Pull, cluster.Chain} {
		for _, size := range []units.Bytes{16 * units.KiB, 128 * units.KiB, units.MiB} {
			for _, rate := range []units.ByteRate{400, 1000} {
				for _, compat := range []bool{true, false} {
					if compat && !slices.Contains(surges, p) {
						continue
					}
					cfg := lone(p, compat, size)
					cfg.Disk.Rate = rate * units.ByteRate(units.MiB)
					c, done := run(t, cfg, 1, 50*units.Millisecond)
					if len(done) < 2 {
						t.Fatalf("%v: %d chunks done", p, len(done))
					}
					got, floor := done[0].Done-done[0].Begun, c.Floor()
					slack := sim.Time(0)
					if !compat && p == cluster.ReplicastM {
						// Nine bids of 300 B come at the same time and take turns on the gateway's link, and so do three
						// acknowledgements; windows may begin later than the acceptance is out.
						link := units.BitRate(9_900_000_000)
						slack = 12*link.TimeFor(300) + 3*units.Microsecond
					}
					if got < floor-slack || got > floor+slack+slackOfFrames(cfg, compat) {
						t.Errorf("%v, %v, %v MiB/s, compat %v: the first chunk takes %v, alone it should take %v", p, size, rate, compat, got, floor)
					}
				}
			}
		}
	}
}

// slackOfFrames is what queues on the links add where they are simulated: the frame that a request waits for.
func slackOfFrames(cfg cluster.Config, compat bool) sim.Time {
	if compat {
		return 0
	}
	link := units.BitRate(9_900_000_000)
	return 4 * link.TimeFor(cfg.Link.Frame)
}

// TestLaws: whatever the cluster, chunks are conserved, every chunk has all its replicas acknowledged, and nothing is faster than the bound.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := cluster.DefaultConfig()
		cfg.Protocol = rapid.SampledFrom(schemes).Draw(t, "protocol")
		cfg.Gateways = rapid.IntRange(1, 20).Draw(t, "gateways")
		cfg.Replicas = rapid.IntRange(1, 4).Draw(t, "replicas")
		cfg.Group = rapid.IntRange(cfg.Replicas, 9).Draw(t, "group")
		cfg.Targets = cfg.Group * rapid.IntRange(2, 4).Draw(t, "groups")
		if slices.Contains(hashed, cfg.Protocol) {
			cfg.Targets = max(cfg.Targets, 2*cfg.Replicas)
		}
		cfg.Outstanding = rapid.IntRange(1, 3).Draw(t, "outstanding")
		cfg.Chunk = units.Bytes(rapid.SampledFrom([]int{1, 4000, 16384, 131072, 300001}).Draw(t, "chunk"))
		cfg.Disk.Rate = units.ByteRate(rapid.SampledFrom([]int{50, 400, 5000}).Draw(t, "disk")) * units.ByteRate(units.MiB)
		if rapid.Bool().Draw(t, "compat") {
			cfg.Compat, cfg.Control.Queued = cluster.CompatSURGE, false
		} else {
			cfg.Control.Queued = rapid.Bool().Draw(t, "queued")
		}
		if !slices.Contains(surges, cfg.Protocol) {
			cfg.Compat, cfg.Control.Queued, cfg.Groups = cluster.CompatNone, true, rapid.IntRange(1, 2).Draw(t, "asked")
		}
		if !cfg.Control.Queued {
			cfg.Outstanding = 1
		} else {
			variety(t, &cfg)
		}
		until := 3 * units.Millisecond
		c, done := run(t, cfg, rapid.Uint64Range(1, 1000).Draw(t, "seed"), until)
		for _, d := range done {
			if d.Done <= d.Begun {
				t.Fatalf("a chunk that began at %v was done at %v", d.Begun, d.Done)
			}
		}
		k := c.Counters
		if uint64(len(done)) != k.Done+k.Gets.Done {
			t.Fatalf("%d chunks told of, %+v", len(done), k)
		}
		if cfg.Load.Share > 0 || cfg.Reads > 0 {
			return // a chance mix may need less than the mean one
		}
		for _, b := range c.Bounds() {
			if b.Resource == "chunks outstanding" && cfg.Protocol == cluster.ReplicastH {
				continue // the floor of several replicas is an estimate
			}
			if b.Resource == "gateways' links" && cfg.Protocol <= cluster.UCHInverse && !cfg.Control.Queued {
				continue // SURGE does not charge the sender's link for the last frame of a replica
			}
			// What is under way at the end may have had a part of its work done.
			if got := float64(len(done)) / until.Seconds(); got > b.Chunks*1.01+float64(cfg.Gateways*cfg.Outstanding)/until.Seconds() {
				t.Fatalf("%v chunks a second, more than the %s allow, %v", got, b.Resource, b.Chunks)
			}
		}
	})
}

// variety draws what real links allow: reads, codes, open loops, placements, unequal disks.
func variety(t *rapid.T, cfg *cluster.Config) {
	if cfg.Protocol != cluster.ReplicastM && rapid.Bool().Draw(t, "coded") {
		cfg.Code = cluster.Code{Data: rapid.IntRange(1, 4).Draw(t, "data"), Parity: rapid.IntRange(0, 3).Draw(t, "parity")}
		n := cfg.Code.Data + cfg.Code.Parity
		cfg.Group = max(cfg.Group, n)
		cfg.Targets = max(2*n, 2*cfg.Group)
		cfg.Chunk = max(cfg.Chunk, 8)
	}
	if slices.Contains(hashed, cfg.Protocol) {
		cfg.Placement = cluster.Placement(rapid.IntRange(0, int(cluster.PlaceStraw2)).Draw(t, "placement"))
		cfg.Choices = rapid.IntRange(1, 2).Draw(t, "choices")
	}
	cfg.Reads = units.Fraction(rapid.SampledFrom([]float64{0, 0, 0.5, 1}).Draw(t, "reads"))
	cfg.Read = cluster.Reading(rapid.IntRange(0, int(cluster.ReadLeastLoaded)).Draw(t, "read"))
	if cfg.Code.Data == 0 && cfg.Replicas > 1 {
		cfg.Read = cluster.Reading(rapid.IntRange(0, int(cluster.ReadTied)).Draw(t, "read"))
	}
	cfg.Objects = 100
	if rapid.Bool().Draw(t, "open") {
		cfg.Load.Share = units.Fraction(rapid.SampledFrom([]float64{0.3, 0.9, 2}).Draw(t, "load"))
	}
	if rapid.Bool().Draw(t, "unequal") {
		cfg.Disk.Kinds = []cluster.Kind{{Share: 0.3, Rate: cfg.Disk.Rate / 2}, {Share: 0.2, Rate: 3 * cfg.Disk.Rate}}
	}
}

// TestSame: a configuration and a seed give the same chunks at the same times, another seed others.
func TestSame(t *testing.T) {
	for _, p := range schemes {
		cfg := cluster.DefaultConfig()
		cfg.Protocol = p
		_, a := run(t, cfg, 1, 5*units.Millisecond)
		_, b := run(t, cfg, 1, 5*units.Millisecond)
		_, other := run(t, cfg, 2, 5*units.Millisecond)
		if !slices.Equal(a, b) {
			t.Errorf("%v: two runs of a seed differ", p)
		}
		if slices.Equal(a, other) {
			t.Errorf("%v: two seeds give the same", p)
		}
	}
}

// TestNoAllocations: once it is warm, a cluster allocates nothing.
func TestNoAllocations(t *testing.T) {
	for _, p := range schemes {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Chunk = p, 16*units.KiB
		eng := sim.New()
		c, err := cluster.New(cfg, eng, 1)
		if err != nil {
			t.Fatal(err)
		}
		c.Start()
		at := 10 * units.Millisecond
		eng.Run(at)
		before := c.Counters.Frames
		n := testing.AllocsPerRun(1, func() {
			at += 5 * units.Millisecond
			eng.Run(at)
		})
		// Rings and pools may still grow when a new most is reached.
		if frames := float64(c.Counters.Frames-before) / 2; n > frames/200 {
			t.Errorf("%v: %g allocations for %g frames", p, n, frames)
		}
	}
}

func BenchmarkCluster(b *testing.B) {
	for _, p := range schemes {
		for _, nodes := range []int{90, 900, 9000} {
			b.Run(fmt.Sprintf("%v/%d", p, nodes), func(b *testing.B) {
				cfg := cluster.DefaultConfig()
				cfg.Protocol, cfg.Gateways, cfg.Targets = p, nodes, nodes
				eng := sim.New()
				c, err := cluster.New(cfg, eng, 1)
				if err != nil {
					b.Fatal(err)
				}
				c.Start()
				b.ReportAllocs()
				at := sim.Time(0)
				for c.Counters.Frames < uint64(b.N) {
					at += 100 * units.Microsecond
					eng.Run(at)
				}
				b.ReportMetric(float64(eng.Events())/b.Elapsed().Seconds()/1e6, "Mevents/s")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(eng.Events()), "ns/event")
			})
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, x := range []struct {
		change func(*cluster.Config)
		want   string
	}{
		{func(c *cluster.Config) { c.Gateways = 0 }, "gateways: 0 is not possible; use 1 to 1048576"},
		{func(c *cluster.Config) { c.Targets = 91 }, "group: 9 does not divide the 91 targets; the nearest number of targets that it divides is 90"},
		{func(c *cluster.Config) { c.Targets = 9 }, "targets: 9 are one group; Replicast needs at least two, 18 targets"},
		{func(c *cluster.Config) { c.Replicas = 10 }, "group: 9 targets cannot keep 10 replicas"},
		{func(c *cluster.Config) { c.Protocol, c.Targets = cluster.UCH, 5 }, "targets: 5 are too few: the next chunk goes to 3 others than the last; use at least 6"},
		{func(c *cluster.Config) { c.Chunk = 0 }, "chunk: 0B is not possible; use 1B to 1GiB"},
		{func(c *cluster.Config) { c.Compat = cluster.CompatSURGE }, "control.queued: SURGE's control messages never wait for each other; use false, or compat: none"},
		{func(c *cluster.Config) { c.Disk.Rate = 0 }, "disk.rate: 0B/s is not possible; use a rate such as 400MiB/s"},
		{func(c *cluster.Config) { c.Link.Overhead = 0.015 }, "link.overhead: 1.5% is not possible; use whole per cent from 0% to 99%"},
		{func(c *cluster.Config) { c.Control.Share = 0 }, "control.share: 0% is not possible; use whole per cent from 1% to 99%"},
	} {
		cfg := cluster.DefaultConfig()
		x.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}

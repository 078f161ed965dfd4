package cluster_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/sim"
)

// failer is the part of testing.T and rapid.T that the helpers use.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// run simulates a cluster until a time and returns it with the completed chunks.
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

var schemes = cluster.Schemes()

// lone returns a cluster with one gateway, whose chunks never contend.
func lone(p cluster.Scheme, compat bool, size units.Bytes) cluster.Config {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Chunk = p, 1, size
	if p == cluster.CommandWindow {
		cfg.Replicas = 1
	}
	if compat {
		cfg.Compat, cfg.Control.Queued = p.Build(), false
	}
	return cfg
}

// TestFloor verifies that with one gateway the first chunk, which meets idle targets, takes the time of the closed
// form: exactly under SURGE's rules, and with queued control messages up to the time that they wait for the link.
func TestFloor(t *testing.T) {
	for _, p := range []cluster.Scheme{cluster.UCH, cluster.ReplicastM, cluster.Pull, cluster.Chain, cluster.UCHAIMD,
		cluster.ReplicastProxy, cluster.CommandWindow} {
		for _, size := range []units.Bytes{16 * units.KiB, 128 * units.KiB, units.MiB} {
			for _, rate := range []units.ByteRate{400, 1000} {
				for _, compat := range []bool{true, false} {
					if compat && p.Build() == cluster.CompatNone {
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
						// Nine bids of 300 B arrive together and take turns on the gateway's link, and so do three
						// acknowledgements; windows may begin later than the acceptance is out.
						link := units.BitRate(9_900_000_000)
						slack = 12*link.TimeFor(300) + 3*units.Microsecond
					}
					if got < floor-slack || got > floor+slack+slackOfFrames(cfg, compat) {
						t.Errorf("%v, %v, %v MiB/s, compat %v: the first chunk takes %v, alone it should take %v", p,
							size, rate, compat, got, floor)
					}
				}
			}
		}
	}
}

// TestWindow verifies that with a window of one command a gateway completes a chunk per floor, and that with two the
// disk is always busy. The disk's latency grows with the queue; by Little's law this does not change the rate as long
// as the disk has work.
func TestWindow(t *testing.T) {
	for _, x := range []struct {
		window int
		want   func(floor, disk sim.Time) sim.Time // from one chunk to the next
		after  func(floor, disk sim.Time) sim.Time // latency
	}{
		{1, func(floor, _ sim.Time) sim.Time { return floor }, func(floor, _ sim.Time) sim.Time { return floor }},
		{2, func(_, disk sim.Time) sim.Time { return disk }, func(_, disk sim.Time) sim.Time { return 2 * disk }},
		{8, func(_, disk sim.Time) sim.Time { return disk }, func(_, disk sim.Time) sim.Time { return 8 * disk }},
	} {
		cfg := lone(cluster.CommandWindow, true, 128*units.KiB)
		cfg.Targets, cfg.Outstanding, cfg.Disk.Latency = 1, x.window, cluster.LatencyGrows
		c, done := run(t, cfg, 1, 200*units.Millisecond)
		disk := units.Duration(312_500 * int64(units.Nanosecond))
		tail := done[len(done)-100:]
		mean := (tail[99].Done - tail[3].Done) / 96 // a multiple of every window tested here
		if want := x.want(c.Floor(), disk); mean != want {
			t.Errorf("window %d: a chunk every %v, not %v", x.window, mean, want)
		}
		sum := sim.Time(0)
		for _, d := range tail[3:99] {
			sum += d.Done - d.Begun
		}
		if want := x.after(c.Floor(), disk); sum/96 != want {
			t.Errorf("window %d: a chunk takes %v, not %v", x.window, sum/96, want)
		}
	}
}

// TestFloorOfOneReplica: for the protocols whose gateways reserve windows one after another, the floor is exact with
// one replica.
func TestFloorOfOneReplica(t *testing.T) {
	for _, p := range []cluster.Scheme{cluster.ReplicastH, cluster.ReplicastHDouble} {
		for _, size := range []units.Bytes{16 * units.KiB, units.MiB} {
			cfg := lone(p, true, size)
			cfg.Replicas, cfg.Choosy = 1, p == cluster.ReplicastHDouble
			c, done := run(t, cfg, 1, 50*units.Millisecond)
			if got := done[0].Done - done[0].Begun; got != c.Floor() {
				t.Errorf("%v, %v: the first chunk takes %v, alone it should take %v", p, size, got, c.Floor())
			}
		}
	}
}

// slackOfFrames returns the delay that simulated link queues add: the frame that a request waits for.
func slackOfFrames(cfg cluster.Config, compat bool) sim.Time {
	if compat {
		return 0
	}
	link := units.BitRate(9_900_000_000)
	return 4 * link.TimeFor(cfg.Link.Frame)
}

// TestLaws verifies for random clusters that chunks are conserved, that every chunk has all its replicas acknowledged,
// and that no bound is exceeded.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := cluster.DefaultConfig()
		cfg.Protocol = rapid.SampledFrom(schemes).Draw(t, "protocol")
		cfg.Gateways = rapid.IntRange(1, 20).Draw(t, "gateways")
		cfg.Replicas = rapid.IntRange(1, 4).Draw(t, "replicas")
		cfg.Group = rapid.IntRange(cfg.Replicas, 9).Draw(t, "group")
		cfg.Targets = cfg.Group * rapid.IntRange(2, 4).Draw(t, "groups")
		if cfg.Protocol.Placed() {
			cfg.Targets = max(cfg.Targets, 2*cfg.Replicas)
		}
		cfg.Outstanding = rapid.IntRange(1, 3).Draw(t, "outstanding")
		cfg.Chunk = units.Bytes(rapid.SampledFrom([]int{1, 4000, 16384, 131072, 300001}).Draw(t, "chunk"))
		cfg.Disk.Rate = units.ByteRate(rapid.SampledFrom([]int{50, 400, 5000}).Draw(t, "disk")) *
			units.ByteRate(units.MiB)
		if cfg.Protocol.Build() != cluster.CompatNone && rapid.Bool().Draw(t, "compat") {
			cfg.Compat, cfg.Control.Queued = cfg.Protocol.Build(), false
			if rapid.Bool().Draw(t, "head") {
				cfg.Compat = cluster.CompatSURGEHead
			}
		} else {
			cfg.Control.Queued = rapid.Bool().Draw(t, "queued")
		}
		if cfg.Protocol.NeedsQueues() {
			cfg.Control.Queued, cfg.Groups = true, rapid.IntRange(1, 2).Draw(t, "asked")
		}
		if !cfg.Control.Queued {
			cfg.Outstanding = 1
		}
		if cfg.Protocol == cluster.CommandWindow {
			cfg.Replicas, cfg.Targets = 1, max(cfg.Gateways, cfg.Targets)
			cfg.Outstanding = rapid.IntRange(1, 30).Draw(t, "window")
		}
		if cfg.Control.Queued {
			variety(t, &cfg)
		}
		cfg.Disk.Latency = cluster.DiskLatency(rapid.IntRange(0, 1).Draw(t, "latency"))
		if rapid.Bool().Draw(t, "write-back") {
			cfg.Acknowledge = cluster.WriteBack
		}
		if cfg.Protocol.Sequential() {
			cfg.Choosy = rapid.Bool().Draw(t, "choosy")
		}
		until := 3 * units.Millisecond
		c, done := run(t, settled(cfg), rapid.Uint64Range(1, 1000).Draw(t, "seed"), until)
		for _, d := range done {
			if d.Done <= d.Begun {
				t.Fatalf("a chunk that began at %v was done at %v", d.Begun, d.Done)
			}
		}
		k := c.Counters
		if uint64(len(done)) != k.Done+k.Gets.Done {
			t.Fatalf("%d chunks seen, %+v", len(done), k)
		}
		if cfg.Load.Share > 0 || cfg.Reads > 0 {
			return // a random mix may need less than the mean one
		}
		for _, b := range c.Bounds() {
			if b.Resource == "chunks outstanding" && cfg.Protocol.Sequential() {
				continue // with several replicas the floor is an estimate
			}
			if b.Resource == "gateways' links" && cfg.Protocol.Placed() && !cfg.Control.Queued {
				continue // SURGE does not charge the sender's link for the last frame of a replica
			}
			if b.Resource == "gateways' links" && cfg.Protocol == cluster.ReplicastH && cfg.Choosy &&
				cfg.Compat == cluster.CompatSURGEHead {
				// Without queues, a gateway of SURGE's last build that restarts its negotiation may hold windows of two
				// replicas at once
				continue
			}
			if b.Resource == "gateways' links" && cfg.Protocol == cluster.ReplicastHDouble && !cfg.Control.Queued {
				// Both targets of a chunk may have granted the same window, and without queues the gateway sends to
				// both at once
				continue
			}
			// Chunks in flight at the end are partly processed, and with write-back, pieces waiting for the disks count
			// as done.
			under := cfg.Gateways * cfg.Outstanding
			if cfg.Acknowledge == cluster.WriteBack {
				piece := max(cfg.Chunk/units.Bytes(max(cfg.Code.Data, 1)), 1)
				// A fast disk of the unequal ones has a queue three times as long.
				under += 3 * cfg.Targets * max(2, int(cfg.Disk.Queue/piece))
			}
			if got := float64(len(done)) / until.Seconds(); got > b.Chunks*1.01+float64(under)/until.Seconds() {
				t.Fatalf("%v chunks a second, more than the %s allow, %v", got, b.Resource, b.Chunks)
			}
		}
	})
}

// variety draws features that need queued links: reads, codes, open loops, placements, unequal disks, losses.
func variety(t *rapid.T, cfg *cluster.Config) {
	if !cfg.Protocol.Multicasts() && cfg.Protocol != cluster.CommandWindow && rapid.Bool().Draw(t, "coded") {
		cfg.Code = cluster.Code{Data: rapid.IntRange(1, 4).Draw(t, "data"),
			Parity: rapid.IntRange(0, 3).Draw(t, "parity")}
		n := cfg.Code.Data + cfg.Code.Parity
		cfg.Group = max(cfg.Group, n)
		cfg.Targets = max(2*n, 2*cfg.Group)
		cfg.Chunk = max(cfg.Chunk, 8)
	}
	if cfg.Protocol.Placed() {
		cfg.Placement = cluster.Placement(rapid.IntRange(0, int(cluster.PlaceStraw2)).Draw(t, "placement"))
		cfg.Choices = rapid.IntRange(1, 2).Draw(t, "choices")
	}
	if cfg.Protocol != cluster.CommandWindow {
		cfg.Reads = units.Fraction(rapid.SampledFrom([]float64{0, 0, 0.5, 1}).Draw(t, "reads"))
	}
	if cfg.Protocol.Recovers() {
		cfg.Link.Loss = units.Fraction(rapid.SampledFrom([]float64{0, 0, 0.01, 0.2}).Draw(t, "loss"))
	}
	cfg.Processor = cluster.Processor{Message: drawWork(t, "message"), Frame: drawWork(t, "frame")}
	cfg.Read = cluster.Reading(rapid.IntRange(0, int(cluster.ReadLeastLoaded)).Draw(t, "read"))
	if cfg.Code.Data == 0 && cfg.Replicas > 1 {
		cfg.Read = cluster.Reading(rapid.IntRange(0, int(cluster.ReadTied)).Draw(t, "read"))
	}
	cfg.Objects = 100
	if rapid.Bool().Draw(t, "open") {
		cfg.Load.Share = units.Fraction(rapid.SampledFrom([]float64{0.3, 0.9, 2}).Draw(t, "load"))
		cfg.Chunk = max(cfg.Chunk, 4000) // one-byte chunks would queue gigabytes of arrivals
	}
	if rapid.Bool().Draw(t, "unequal") {
		cfg.Disk.Kinds = []cluster.Kind{{Share: 0.3, Rate: cfg.Disk.Rate / 2}, {Share: 0.2, Rate: 3 * cfg.Disk.Rate}}
	}
}

// TestSame verifies that a configuration and a seed determine the chunks and their times, and that another seed gives
// others.
func TestSame(t *testing.T) {
	for _, p := range schemes {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Gateways, cfg.Targets = p, 27, 27
		if p == cluster.CommandWindow {
			cfg.Replicas = 1
		}
		_, a := run(t, cfg, 1, 5*units.Millisecond)
		_, b := run(t, cfg, 1, 5*units.Millisecond)
		_, other := run(t, cfg, 2, 5*units.Millisecond)
		if !slices.Equal(a, b) {
			t.Errorf("%v: two runs of a seed differ", p)
		}
		if slices.Equal(a, other) && p != cluster.CommandWindow { // command-window draws no random numbers
			t.Errorf("%v: two seeds give the same", p)
		}
	}
}

// TestNoAllocations verifies that a warm cluster does not allocate.
func TestNoAllocations(t *testing.T) {
	if cluster.Walks {
		t.Skip("looking at the laws allocates")
	}
	for _, p := range schemes {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Chunk = p, 16*units.KiB
		if p == cluster.CommandWindow {
			cfg.Replicas = 1
		}
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
		// Rings and pools may still grow when a queue reaches a new maximum.
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
				if p == cluster.CommandWindow {
					cfg.Replicas = 1
				}
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
		{func(c *cluster.Config) { c.Targets = 91 },
			"group: 9 does not divide the 91 targets; the nearest number of targets that it divides is 90"},
		{func(c *cluster.Config) { c.Targets = 9 },
			"targets: 9 form one group; Replicast needs at least two, 18 targets"},
		{func(c *cluster.Config) { c.Replicas = 10 }, "group: 9 targets cannot store 10 replicas"},
		{func(c *cluster.Config) { c.Protocol, c.Targets = cluster.UCH, 5 },
			"targets: 5 are too few: the next chunk goes to 3 targets other than the last; use at least 6"},
		{func(c *cluster.Config) { c.Chunk = 0 }, "chunk: 0B is not possible; use 1B to 1GiB"},
		{func(c *cluster.Config) { c.Compat = cluster.CompatSURGE },
			"control.queued: SURGE's control messages never queue; use false, or compat: none"},
		{func(c *cluster.Config) { c.Disk.Rate = 0 }, "disk.rate: 0B/s is not possible; use a rate such as 400MiB/s"},
		{func(c *cluster.Config) { c.Link.Overhead = 0.015 },
			"link.overhead: 1.5% is not possible; use whole per cent from 0% to 99%"},
		{func(c *cluster.Config) { c.Protocol = cluster.CommandWindow },
			"replicas: 3 are not possible with command-window, whose gateways have one target each; use 1"},
		{func(c *cluster.Config) { c.Protocol, c.Replicas, c.Gateways = cluster.CommandWindow, 1, 91 },
			"targets: 90 are too few: each of the 91 gateways needs its own"},
		{func(c *cluster.Config) { c.Protocol, c.Core = cluster.UCHAIMD, cluster.CorePacket },
			"core: targets of uch-aimd inspect the queues at their ports, and a packet network has its own; leave it " +
				"out, or use another protocol"},
		{func(c *cluster.Config) { c.Protocol, c.Compat = cluster.Pull, cluster.CompatSURGE },
			"compat: SURGE has no pull; leave it out"},
		{func(c *cluster.Config) { c.Protocol, c.Link.Loss = cluster.ReplicastProxy, 0.01 },
			"protocol: replicast-proxy does not tolerate lost messages or failed targets: only a group's " +
				"proxy knows what the group has promised; use one of uch-ccp, uch-ccp-inverse, replicast-m, replicast-h, pull, " +
				"chain, grants, dctcp, uch-aimd, replicast-h-double"},
		{func(c *cluster.Config) { c.Protocol, c.Replicas, c.Reads = cluster.CommandWindow, 1, 0.5 },
			"reads: the gateways of command-window only write, each to its own target; leave it out, or use another " +
				"protocol"},
		{func(c *cluster.Config) { c.Control.Share = 0 },
			"control.share: 0% is not possible; use whole per cent from 1% to 99%"},
	} {
		cfg := cluster.DefaultConfig()
		x.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}

// TestBoundsWithout verifies that failed targets reduce the bounds of disks and targets' links proportionally, and
// leave that of gateways' links unchanged.
func TestBoundsWithout(t *testing.T) {
	c, _ := run(t, cluster.DefaultConfig(), 1, 0)
	all, less := c.Bounds(), c.BoundsWithout(30)
	for i := range all {
		want := all[i].Chunks
		if all[i].Resource == "disks" || all[i].Resource == "targets' links" {
			want *= 2.0 / 3
		}
		if math.Abs(less[i].Chunks/want-1) > 1e-9 {
			t.Errorf("%s allow %v chunks a second, not %v", all[i].Resource, less[i].Chunks, want)
		}
	}
}

package cluster_test

import (
	"strings"
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/sim"
)

// arrivals yields chunks at given times.
type arrivals []cluster.Arrival

func (s *arrivals) Next(a *cluster.Arrival) bool {
	if len(*s) == 0 {
		return false
	}
	*a, *s = (*s)[0], (*s)[1:]
	return true
}

// round returns a cluster with round numbers: links and disks take 1 ns per byte, a message has 100 B, a frame 1000 B,
// and a trip takes 1 us. Each of two replicas has 2000 B.
func round() cluster.Config {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Placement = cluster.Chain, cluster.PlaceHRW
	cfg.Gateways, cfg.Targets, cfg.Replicas, cfg.Chunk, cfg.Reads, cfg.Objects = 2, 4, 2, 2000, 0.5, 1
	cfg.Disk.Rate = units.ByteRate(units.GB)
	cfg.Link = cluster.Link{Rate: 8 * units.Gbps, Frame: 1000, Trip: units.Microsecond, Mark: cfg.Link.Mark}
	cfg.Control.Unicast, cfg.Outstanding = 100, 4
	return cfg
}

// TestReadsAlone verifies read times from idle disks, computed by hand in ns. A request arrives after 100 + 1000; the
// disk takes 2000; a frame takes 1000 at each end of its path, overlapping, and a trip: the first of two frames arrives
// 2000 after it was sent, the second 1000 later.
func TestReadsAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		read   cluster.Reading
		change func(*cluster.Config)
		want   sim.Time // ns
		works  int      // disk jobs
		hedged uint64
		stale  uint64 // stale frames
	}{
		{"random", cluster.ReadRandom, nil, 1100 + 2000 + 3000, 1, 0, 0},
		// Two targets are asked, one after the other; the second answer arrives 100 later. Then as random.
		{"bids", cluster.ReadBids, nil, 1200 + 1100 + 6100, 1, 0, 0},
		{"least-loaded", cluster.ReadLeastLoaded, nil, 1200 + 1100 + 6100, 1, 0, 0},
		// The hedge starts when the first read has begun; its frames start 500 after the end of the first one's.
		{"hedged", cluster.ReadHedged, func(c *cluster.Config) { c.HedgeAfter = 1500 * units.Nanosecond }, 6100, 2, 1,
			2},
		{"hedged too late", cluster.ReadHedged, func(c *cluster.Config) { c.HedgeAfter = 6200 * units.Nanosecond },
			6100, 1, 0, 0},
		// Both reads begin, 100 apart, and the notification to the first arrives too late. Their frames take turns at
		// the gateway: 4100 to 5100, then the other's first, and from 6100 the second; the other's second is stale.
		{"tied", cluster.ReadTied, nil, 7100, 2, 0, 1},
		// Two one-frame pieces of 1000, requested 100 apart: 1100 + 1000 + 1000, then 1000 of reception, and the
		// other's 1000 behind it.
		{"a code of 2+1", cluster.ReadRandom, func(c *cluster.Config) { c.Code = cluster.Code{Data: 2, Parity: 1} },
			5100, 2, 0, 0},
		// The last frame has 500 B: 2000 + 2500 + 2500, plus its 500 of reception and a trip.
		{"a frame that is not full", cluster.ReadRandom, func(c *cluster.Config) { c.Chunk = 2500 },
			1100 + 2500 + 1000 + 1000 + 1500, 1, 0, 0},
	} {
		cfg := round()
		cfg.Read = c.read
		if c.change != nil {
			c.change(&cfg)
		}
		eng := sim.New()
		k, err := cluster.New(cfg, eng, 1)
		if err != nil {
			t.Fatal(c.name, err)
		}
		k.Replay(&arrivals{{At: units.Microsecond, Gateway: 1, Read: true, Object: 0}})
		var done []cluster.Done
		works := 0
		k.OnDone = func(d *cluster.Done) { done = append(done, *d) }
		k.OnDisk = func(w *cluster.Work) {
			works++
			if !w.Read || w.Repair || w.Chunk != 1 ||
				w.To-w.From != units.Duration(cfg.Chunk)*units.Nanosecond/units.Duration(max(cfg.Code.Data, 1)) {
				t.Errorf("%s: %+v", c.name, w)
			}
		}
		k.Start()
		eng.Run(units.Millisecond)
		if err := k.Check(); err != nil {
			t.Error(c.name, err)
		}
		if len(done) != 1 || done[0].Done-done[0].Begun != c.want*units.Nanosecond ||
			done[0].Begun != units.Microsecond || !done[0].Read || done[0].Gateway != 1 || done[0].Size != cfg.Chunk {
			t.Errorf("%s: %+v, not after %v ns", c.name, done, c.want)
		}
		n := &k.Counters
		if works != c.works || n.Hedged != c.hedged || n.Stale != c.stale || n.Gets.Done != 1 || n.Gets.Begun != 1 ||
			n.Begun != 0 || n.Arrived != 1 || n.Degraded+n.Unavailable != 0 {
			t.Errorf("%s: %d reads of disks, %+v", c.name, works, n)
		}
	}
}

// TestReadsBeside verifies that the policies that ask first choose the idle disk, that random does not, and that a tied
// read is canceled at the disk that has not begun.
func TestReadsBeside(t *testing.T) {
	for _, read := range []cluster.Reading{cluster.ReadBids, cluster.ReadLeastLoaded, cluster.ReadTied} {
		cfg := round()
		cfg.Read, cfg.Targets, cfg.Replicas, cfg.Choices = read, 2, 2, 1
		cfg.Chunk = 20_000
		eng := sim.New()
		k, err := cluster.New(cfg, eng, 1)
		if err != nil {
			t.Fatal(err)
		}
		// The second read is requested while the first one occupies its disk for 20 us.
		k.Replay(&arrivals{{At: 0, Gateway: 0, Read: true}, {At: 5 * units.Microsecond, Gateway: 1, Read: true}})
		began := map[uint64][]sim.Time{}
		targets := map[int32]int{}
		k.OnDisk = func(w *cluster.Work) {
			began[w.Chunk] = append(began[w.Chunk], w.From)
			targets[w.Target]++
		}
		k.Start()
		eng.Run(units.Millisecond)
		if k.Counters.Gets.Done != 2 {
			t.Fatalf("%v: %+v", read, k.Counters)
		}
		if read == cluster.ReadTied {
			// The first request reads from both targets. The second is queued at both, begins at the one where it was
			// queued first, and the other cancels it 100 ns later unless it has begun.
			if len(began[2]) < 1 || began[2][0] < 21*units.Microsecond {
				t.Errorf("%v: %v", read, began)
			}
			continue
		}
		if len(targets) != 2 || len(began[1]) != 1 || len(began[2]) != 1 || began[2][0] > 10*units.Microsecond {
			t.Errorf("%v: reads of targets %v, begun at %v", read, targets, began)
		}
	}
}

// TestOpenLoop verifies that chunks arrive at the configured rate, given as a number or as a share of the bound, with
// the configured share of reads, and that those that find their gateway busy queue in FIFO order.
func TestOpenLoop(t *testing.T) {
	cfg := round()
	cfg.Objects, cfg.Reads, cfg.Read = 100, 0.3, cluster.ReadRandom
	cfg.Load.Rate = 100_000
	c, done := run(t, cfg, 1, 100*units.Millisecond)
	n := float64(c.Counters.Arrived)
	// 10,000 Poisson arrivals: three standard deviations are 300; of 3000 reads, 137.
	if c.Offered() != 100_000 || n < 9700 || n > 10300 || float64(c.Counters.Gets.Begun) < 0.3*n-140 ||
		float64(c.Counters.Gets.Begun) > 0.3*n+140 || len(done) < 9600 {
		t.Errorf("%v a second are offered, %d come, %d of them read, %d are done", c.Offered(), c.Counters.Arrived,
			c.Counters.Gets.Begun, len(done))
	}
	cfg.Load.Rate, cfg.Load.Share, cfg.Reads = 0, 0.5, 0
	c, _ = run(t, cfg, 1, 10*units.Millisecond)
	// Four disks write 2000 B in 2 us, and each chunk has two pieces: 1,000,000 per second. Two gateways' links carry
	// the 2000 B of each chunk once, with a chain: also 1,000,000.
	if c.Offered() != 500_000 || c.Bound().Chunks != 1_000_000 || c.Counters.Arrived < 4700 ||
		c.Counters.Arrived > 5300 {
		t.Errorf("%v of %v a second are offered, %d come", c.Offered(), c.Bound(), c.Counters.Arrived)
	}
	cfg.Load.Share = 0
	if c, _ = run(t, cfg, 1, units.Millisecond); c.Offered() != 0 || c.Counters.Arrived != 0 || c.Counters.Begun == 0 {
		t.Errorf("a closed loop is offered %v", c.Offered())
	}
	// With one chunk outstanding, each begins when the one before it completes.
	cfg.Outstanding, cfg.Gateways = 1, 1
	eng := sim.New()
	c, err := cluster.New(cfg, eng, 1)
	if err != nil {
		t.Fatal(err)
	}
	var list arrivals
	for k := range 20 {
		list = append(list, cluster.Arrival{At: sim.Time(k), Object: -1})
	}
	c.Replay(&list)
	var order []cluster.Done
	c.OnDone = func(d *cluster.Done) { order = append(order, *d) }
	c.Start()
	eng.Run(units.Millisecond)
	alone := c.Floor()
	for k, d := range order {
		if d.Begun != sim.Time(k) || d.Done != alone*sim.Time(k+1) {
			t.Errorf("the %d-th comes at %v and is done at %v; alone it takes %v", k, d.Begun, d.Done, alone)
		}
	}
	if len(order) != 20 {
		t.Errorf("%d are done", len(order))
	}
}

// TestBoundsByHand verifies the bounds of disks and links for puts and reads, from the number of times a chunk crosses
// each link. A piece takes 2 us on a disk and on a link.
func TestBoundsByHand(t *testing.T) {
	const each = 500_000 // pieces per second
	for _, c := range []struct {
		name            string
		change          func(*cluster.Config)
		disks, gateways float64 // chunks per second
		targets         float64
		binding         string
	}{
		{"a chain", func(c *cluster.Config) { c.Reads = 0 }, 4 * each / 2.0, 2 * each, 4 * each / 2.0, "disks"},
		{"one after the other", func(c *cluster.Config) { c.Protocol, c.Reads = cluster.Grants, 0 }, 4 * each / 2.0,
			2 * each / 2.0, 4 * each / 2.0, "gateways' links"},
		{"a multicast", func(c *cluster.Config) {
			c.Protocol, c.Reads, c.Placement, c.Group, c.Control.Replicast = cluster.ReplicastM, 0,
				cluster.PlaceRandom, 2, 100
		}, 4 * each / 2.0, 2 * each, 4 * each / 2.0, "disks"},
		{"half are read", func(*cluster.Config) {}, 4 * each / 1.5, 2 * each / 0.5, 4 * each / 1.0, "disks"},
		{"all are read", func(c *cluster.Config) { c.Reads = 1 }, 4 * each / 1.0, 2 * each / 1.0, 4 * each / 1.0,
			"gateways' links"},
		{"a code of 2+1", func(c *cluster.Config) { c.Reads, c.Code = 0, cluster.Code{Data: 2, Parity: 1} },
			8 * each / 3.0, 4 * each / 3.0, 8 * each / 3.0, "gateways' links"},
		{"slow disks among them", func(c *cluster.Config) {
			c.Reads, c.Disk.Kinds = 0, []cluster.Kind{{Share: 0.5, Rate: units.ByteRate(units.GB) / 4}}
		}, (2*each + 2*each/4.0) / 2, 2 * each, 4 * each / 2.0, "disks"},
	} {
		cfg := round()
		c.change(&cfg)
		k, err := cluster.New(cfg, sim.New(), 1)
		if err != nil {
			t.Fatal(c.name, err)
		}
		got := map[string]float64{}
		for _, b := range k.Bounds() {
			got[b.Resource] = b.Chunks
		}
		for resource, want := range map[string]float64{"disks": c.disks, "gateways' links": c.gateways,
			"targets' links": c.targets} {
			if got[resource] < want*(1-1e-9) || got[resource] > want*(1+1e-9) {
				t.Errorf("%s: %s allow %v, not %v", c.name, resource, got[resource], want)
			}
		}
		if k.Binding() != c.binding {
			t.Errorf("%s: %s bind", c.name, k.Binding())
		}
		if out := got["chunks outstanding"]; (out > 0) != (cfg.Reads == 0) ||
			out > 0 && (out < 8/k.Floor().Seconds()*(1-1e-9)) {
			t.Errorf("%s: 8 outstanding allow %v, and one takes %v", c.name, out, k.Floor())
		}
		for target, v := range k.Speeds() {
			if want := []float64{each, each / 4.0, each * 2}; v != want[0] && v != want[1] && v != want[2] {
				t.Errorf("%s: target %d writes %v pieces a second", c.name, target, v)
			}
		}
	}
}

// TestKinds verifies that the configured share of the targets, drawn by seed, has each kind of disk, and that weights
// set the share of the chunks that a target stores.
func TestKinds(t *testing.T) {
	cfg := round()
	cfg.Targets, cfg.Reads, cfg.Gateways = 40, 0, 10
	cfg.Disk.Kinds = []cluster.Kind{{Share: 0.25, Rate: units.ByteRate(units.GB) / 2}, {Share: 0.2, Weight: 4}}
	var slow [2][]int
	for seed := range uint64(2) {
		c, _ := run(t, cfg, seed, 8*units.Millisecond)
		heavy := 0.0
		disks, _, _ := c.Busy(8 * units.Millisecond)
		all := 0.0
		for target, v := range c.Speeds() {
			work := disks[target].Seconds() * v
			if all += work; v == 250_000 {
				slow[seed] = append(slow[seed], target)
			}
		}
		if len(slow[seed]) != 10 {
			t.Errorf("%d targets are slow", len(slow[seed]))
		}
		// Eight targets of weight four receive 32 of 64 parts of the chunks, so each of them writes about four times as
		// much as another one of its speed.
		var list []float64
		for target, v := range c.Speeds() {
			list = append(list, disks[target].Seconds()*v)
		}
		for _, w := range list {
			if w > all/64*2.5 {
				heavy++
			}
		}
		if heavy != 8 {
			t.Errorf("%v targets have much more than others: %v", heavy, list)
		}
	}
	same := 0
	for k := range slow[0] {
		if k < len(slow[1]) && slow[0][k] == slow[1][k] {
			same++
		}
	}
	if same == len(slow[0]) {
		t.Errorf("whatever the seed, targets %v are slow", slow[0])
	}
}

// TestLimits verifies that each key accepts its minimum and maximum and no value beyond.
func TestLimits(t *testing.T) {
	type change func(*cluster.Config)
	for key, list := range map[string]struct{ good, bad []change }{
		"gateways": {[]change{func(c *cluster.Config) { c.Gateways = 1 },
			func(c *cluster.Config) { c.Gateways = 1 << 20 }},
			[]change{func(c *cluster.Config) { c.Gateways = 0 }, func(c *cluster.Config) { c.Gateways = 1<<20 + 1 }}},
		"targets": {[]change{func(c *cluster.Config) { c.Targets = 4 },
			func(c *cluster.Config) { c.Targets = 1 << 20 }},
			[]change{func(c *cluster.Config) { c.Targets = 0 }, func(c *cluster.Config) { c.Targets = 1<<20 + 1 }}},
		"chunk": {[]change{func(c *cluster.Config) { c.Chunk = 1 },
			func(c *cluster.Config) { c.Chunk = units.GiB }},
			[]change{func(c *cluster.Config) { c.Chunk = 0 }, func(c *cluster.Config) { c.Chunk = units.GiB + 1 }}},
		"replicas": {[]change{func(c *cluster.Config) { c.Replicas = 1 },
			func(c *cluster.Config) { c.Replicas, c.Targets = 16, 16 }},
			[]change{func(c *cluster.Config) { c.Replicas = 0 },
				func(c *cluster.Config) {
					c.Replicas, c.Targets = 17,
						40
				}, func(c *cluster.Config) { c.Replicas = 5 }}},
		"outstanding": {[]change{func(c *cluster.Config) { c.Outstanding = 1 },
			func(c *cluster.Config) { c.Outstanding = 1024 }},
			[]change{func(c *cluster.Config) { c.Outstanding = 0 }, func(c *cluster.Config) { c.Outstanding = 1025 }}},
		"disk.rate": {[]change{func(c *cluster.Config) { c.Disk.Rate = 1000 }},
			[]change{func(c *cluster.Config) { c.Disk.Rate = 0 }, func(c *cluster.Config) { c.Disk.Rate = -1 }}},
		"disk.queue": {nil, []change{func(c *cluster.Config) { c.Disk.Queue = -1 }}},
		"disk.depth": {[]change{func(c *cluster.Config) { c.Disk.Depth = 1 },
			func(c *cluster.Config) { c.Disk.Depth = 1024 }},
			[]change{func(c *cluster.Config) { c.Disk.Depth = 0 }, func(c *cluster.Config) { c.Disk.Depth = 1025 }}},
		"disk.kinds": {[]change{func(c *cluster.Config) { c.Disk.Kinds = []cluster.Kind{{Share: 1, Weight: 1e6}} },
			func(c *cluster.Config) { c.Disk.Kinds = []cluster.Kind{{Share: 0.5}, {Share: 0.5}} }},
			[]change{func(c *cluster.Config) { c.Disk.Kinds = []cluster.Kind{{Share: 0}} },
				func(c *cluster.Config) { c.Disk.Kinds = []cluster.Kind{{Share: 1.01}} },
				func(c *cluster.Config) { c.Disk.Kinds = []cluster.Kind{{Share: 0.5}, {Share: 0.51}} },
				func(c *cluster.Config) {
					c.Disk.Kinds = []cluster.Kind{{Share: 1,
						Weight: 1e6 + 1}}
				}, func(c *cluster.Config) { c.Disk.Kinds = []cluster.Kind{{Share: 1, Weight: -1}} },
				func(c *cluster.Config) { c.Disk.Kinds = []cluster.Kind{{Share: 1, Rate: -1}} },
				func(c *cluster.Config) {
					c.Disk.Model, c.Disk.Kinds = cluster.ModelSSD, []cluster.Kind{{Share: 1, Rate: 1}}
				}}},
		"disk.model": {[]change{func(c *cluster.Config) { c.Disk.Model = cluster.ModelSSD }},
			[]change{func(c *cluster.Config) { surge(c); c.Disk.Model = cluster.ModelSSD }}},
		"link.rate": {[]change{func(c *cluster.Config) { c.Link.Rate = 1e6 * units.Gbps }},
			[]change{func(c *cluster.Config) { c.Link.Rate = 0 },
				func(c *cluster.Config) { c.Link.Rate = 1e6*units.Gbps + 1 }}},
		"link.overhead": {[]change{func(c *cluster.Config) { c.Link.Overhead = 0.99 },
			func(c *cluster.Config) { c.Link.Overhead = 0 }},
			[]change{func(c *cluster.Config) { c.Link.Overhead = 1 },
				func(c *cluster.Config) { c.Link.Overhead = -0.01 }}},
		"link.frame": {[]change{func(c *cluster.Config) { c.Link.Frame, c.Control.Unicast = 64, 64 },
			func(c *cluster.Config) {
				grouped(c)
				c.Control.Unicast, c.Link.Frame, c.Control.Replicast = 100, 64, 64
			}, func(c *cluster.Config) { c.Link.Frame = 64 * units.KiB }},
			[]change{func(c *cluster.Config) { c.Link.Frame = 63 },
				func(c *cluster.Config) { c.Link.Frame = 64*units.KiB + 1 }}},
		"link.trip": {[]change{func(c *cluster.Config) { c.Link.Trip = 0 },
			func(c *cluster.Config) { c.Link.Trip = units.Second }},
			[]change{func(c *cluster.Config) { c.Link.Trip = -1 },
				func(c *cluster.Config) { c.Link.Trip = units.Second + 1 }}},
		"link.mark": {[]change{func(c *cluster.Config) { c.Protocol, c.Link.Mark = cluster.DCTCP, 0 }},
			[]change{func(c *cluster.Config) { c.Link.Mark = -1 }}},
		"link.loss": {[]change{func(c *cluster.Config) { c.Link.Loss = 0.5 }},
			[]change{func(c *cluster.Config) { c.Link.Loss = 0.51 },
				func(c *cluster.Config) { c.Link.Loss, c.Core = 0.1, cluster.CorePacket }}},
		"control.unicast": {[]change{func(c *cluster.Config) { c.Control.Unicast = 1 },
			func(c *cluster.Config) { c.Control.Unicast = 1000 }},
			[]change{func(c *cluster.Config) { c.Control.Unicast = 0 },
				func(c *cluster.Config) { c.Control.Unicast = 1001 }}},
		"control.replicast": {[]change{func(c *cluster.Config) { grouped(c); c.Control.Replicast = 1 },
			func(c *cluster.Config) { grouped(c); c.Control.Replicast = 1000 }},
			[]change{func(c *cluster.Config) { grouped(c); c.Control.Replicast = 0 },
				func(c *cluster.Config) { grouped(c); c.Control.Replicast = 1001 }}},
		"control.share": {[]change{func(c *cluster.Config) { grouped(c); c.Control.Share = 0.01 },
			func(c *cluster.Config) { grouped(c); c.Control.Share = 0.99 }},
			[]change{func(c *cluster.Config) { grouped(c); c.Control.Share = 1 },
				func(c *cluster.Config) { grouped(c); c.Control.Share = 0.015 }}},
		"overcommit": {[]change{func(c *cluster.Config) { c.Protocol, c.Overcommit = cluster.Grants, 1 },
			func(c *cluster.Config) { c.Protocol, c.Overcommit = cluster.Grants, 1024 }},
			[]change{func(c *cluster.Config) { c.Overcommit = 0 }, func(c *cluster.Config) { c.Overcommit = 1025 }}},
		"objects": {[]change{func(c *cluster.Config) { c.Objects = 1 },
			func(c *cluster.Config) { c.Objects = 1 << 28 }},
			[]change{func(c *cluster.Config) { c.Objects = 0 }, func(c *cluster.Config) { c.Objects = 1<<28 + 1 }}},
		"reads": {[]change{func(c *cluster.Config) { c.Reads = 1 }},
			[]change{func(c *cluster.Config) { c.Reads = 1.01 }, func(c *cluster.Config) {
				c.Protocol, c.Placement, c.Control.Queued = cluster.UCH, cluster.PlaceRandom, false
				c.Outstanding = 1
			}}},
		"hedge_after": {[]change{func(c *cluster.Config) { c.HedgeAfter = 1 }},
			[]change{func(c *cluster.Config) { c.HedgeAfter = -1 }}},
		"read": {[]change{func(c *cluster.Config) { c.Read = cluster.ReadTied }},
			[]change{func(c *cluster.Config) { c.Read, c.Replicas = cluster.ReadTied, 1 },
				func(c *cluster.Config) { c.Read, c.Replicas = cluster.ReadHedged, 1 }}},
		"load.rate": {[]change{func(c *cluster.Config) { c.Load.Rate = 1e12 }},
			[]change{func(c *cluster.Config) { c.Load.Rate = -1 }, func(c *cluster.Config) { c.Load.Rate = 1.1e12 }}},
		"load.share": {[]change{func(c *cluster.Config) { c.Load.Share = 10 }},
			[]change{func(c *cluster.Config) { c.Load.Share = 10.1 },
				func(c *cluster.Config) { c.Load.Rate, c.Load.Share = 1, 1 }}},
		"choices": {[]change{func(c *cluster.Config) { c.Choices = 32; c.Targets = 64 }},
			[]change{func(c *cluster.Config) { c.Choices = 0 }, func(c *cluster.Config) { c.Choices = 33 },
				func(c *cluster.Config) { grouped(c); c.Choices = 2 }}},
		"code.parity": {nil, []change{func(c *cluster.Config) { c.Code.Parity = 1 }}},
		"code": {[]change{func(c *cluster.Config) {
			c.Code, c.Targets = cluster.Code{Data: 12, Parity: 4},
				16
		}}, []change{func(c *cluster.Config) { c.Code, c.Targets = cluster.Code{Data: 12, Parity: 5}, 17 },
			func(c *cluster.Config) { grouped(c); c.Code = cluster.Code{Data: 1, Parity: 1} }}},
		"code.data": {[]change{func(c *cluster.Config) { c.Code, c.Chunk = cluster.Code{Data: 3}, 3 }},
			[]change{func(c *cluster.Config) { c.Code, c.Chunk = cluster.Code{Data: 3}, 2 }}},
		"retry_after": {[]change{func(c *cluster.Config) { c.RetryAfter = 0 }},
			[]change{func(c *cluster.Config) { c.RetryAfter = -1 }}},
		"repair.detect": {[]change{func(c *cluster.Config) { c.Repair.Detect = 0 }},
			[]change{func(c *cluster.Config) { c.Repair.Detect = -1 }}},
		"repair.streams": {[]change{func(c *cluster.Config) { c.Repair.Streams = 64 }},
			[]change{func(c *cluster.Config) { c.Repair.Streams = 64.1 }}},
		"failures": {[]change{func(c *cluster.Config) { c.Failures = []cluster.Failure{{Target: 3, At: 0}} },
			func(c *cluster.Config) {
				c.Repair.Detect = 5
				c.Failures = []cluster.Failure{{At: 7, Back: 12}, {At: 17}}
			}},
			[]change{func(c *cluster.Config) { c.Failures = []cluster.Failure{{Target: 4}} },
				func(c *cluster.Config) { c.Failures = []cluster.Failure{{Target: -1}} },
				func(c *cluster.Config) { c.Failures = []cluster.Failure{{At: -1}} },
				func(c *cluster.Config) {
					c.Repair.Detect = 5
					c.Failures = []cluster.Failure{{At: 7,
						Back: 11}}
				}, func(c *cluster.Config) {
					c.Repair.Detect = 5
					c.Failures = []cluster.Failure{{At: 7, Back: 12}, {At: 16}}
				},
				func(c *cluster.Config) { c.Failures = []cluster.Failure{{At: 7}, {At: 1e12}} }}},
		"group": {[]change{func(c *cluster.Config) { grouped(c) }},
			[]change{func(c *cluster.Config) { grouped(c); c.Group = 1 },
				func(c *cluster.Config) { grouped(c); c.Targets = 5 }}},
		"groups": {[]change{func(c *cluster.Config) { pulled(c); c.Groups, c.Targets = 4, 8 }},
			[]change{func(c *cluster.Config) { pulled(c); c.Groups = 0 },
				func(c *cluster.Config) {
					pulled(c)
					c.Groups, c.Targets = 5,
						10
				}, func(c *cluster.Config) { pulled(c); c.Groups = 3 }}},
		"quorum": {[]change{func(c *cluster.Config) { c.Quorum = 2 }},
			[]change{func(c *cluster.Config) { c.Quorum = 3 }, func(c *cluster.Config) { c.Quorum = -1 },
				func(c *cluster.Config) { c.Code, c.Quorum = cluster.Code{Data: 2, Parity: 1}, 1 }}},
		"racks": {[]change{func(c *cluster.Config) { c.Racks = 4 },
			func(c *cluster.Config) { pulled(c); c.Racks = 2 }},
			[]change{func(c *cluster.Config) { c.Racks = -1 }, func(c *cluster.Config) { c.Racks = 1 },
				func(c *cluster.Config) { c.Racks = 5 }, func(c *cluster.Config) { surge(c); c.Racks = 4 }}},
		"repair.disk": {[]change{func(c *cluster.Config) { c.Repair.Disk = 0.001 }},
			[]change{func(c *cluster.Config) { c.Repair.Disk = 0 }, func(c *cluster.Config) { c.Repair.Disk = 1.1 }}},
		"repair.link": {[]change{func(c *cluster.Config) { c.Repair.Link = 0.001 }},
			[]change{func(c *cluster.Config) { c.Repair.Link = 0 }, func(c *cluster.Config) { c.Repair.Link = 1.1 }}},
		"choosy": {nil, []change{func(c *cluster.Config) { c.Choosy = true }}},
		"placement": {nil, []change{func(c *cluster.Config) { grouped(c); c.Placement = cluster.PlaceRing },
			func(c *cluster.Config) {
				c.Placement = cluster.PlaceJump
				c.Disk.Kinds = []cluster.Kind{{Share: 1, Weight: 2}}
			}}},
		"core": {[]change{func(c *cluster.Config) { c.Core = cluster.CorePacket }},
			[]change{func(c *cluster.Config) { c.Protocol, c.Core = cluster.UCHAIMD, cluster.CorePacket }}},
		"compat": {[]change{surge},
			[]change{func(c *cluster.Config) { surge(c); c.Protocol = cluster.ReplicastProxy },
				func(c *cluster.Config) { surge(c); c.Protocol = cluster.Chain }}},
	} {
		for n, change := range list.good {
			cfg := round()
			change(&cfg)
			if err := cfg.Validate(); err != nil {
				t.Errorf("%s, good %d: %v", key, n, err)
			}
		}
		for n, change := range list.bad {
			cfg := round()
			change(&cfg)
			found := false
			for _, f := range units.FieldErrors(cfg.Validate()) {
				found = found || f.Path == key || strings.HasPrefix(f.Path, key+"[")
			}
			if !found {
				t.Errorf("%s, bad %d: %v", key, n, cfg.Validate())
			}
		}
	}
}

// surge restricts a configuration to features that SURGE has.
func surge(c *cluster.Config) {
	c.Protocol, c.Placement, c.Compat, c.Control.Queued = cluster.UCH, cluster.PlaceRandom, cluster.CompatSURGE, false
	c.Reads, c.Outstanding = 0, 1
}

// grouped configures two groups of two that bid for chunks.
func grouped(c *cluster.Config) {
	c.Protocol, c.Placement, c.Group = cluster.ReplicastM, cluster.PlaceRandom, 2
}

// pulled configures pull with two groups of two.
func pulled(c *cluster.Config) {
	grouped(c)
	c.Protocol, c.Groups = cluster.Pull, 2
}

package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"farflash/internal/golden"
	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/sim"
)

// some yields a number of chunks at random times in the first milliseconds, some of them reads.
type some struct {
	left, gateways int
	at             sim.Time
	reads          bool
}

func (s *some) Next(a *cluster.Arrival) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	s.at += 20 * units.Microsecond
	*a = cluster.Arrival{At: s.at, Gateway: int32(s.left % s.gateways), Read: s.reads && s.left%3 == 0, Object: -1}
	return true
}

// rest runs a cluster with a number of chunks until it is idle, and verifies that all resources are free again and that
// every piece is at a present target in a rack of its own, or counted.
func rest(t failer, cfg cluster.Config, seed uint64, chunks int) *cluster.Cluster {
	t.Helper()
	eng := sim.New()
	c, err := cluster.New(cfg, eng, seed)
	if err != nil {
		t.Fatal(err)
	}
	c.Replay(&some{left: chunks, gateways: cfg.Gateways, reads: cfg.Reads > 0})
	c.Start()
	eng.Run(1000 * units.Second)
	if _, _, _, tasks, _, _ := c.Used(); tasks > 0 {
		eng.Run(100_000 * units.Second) // a gateway that has lost many attempts backs off for long
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if jobs, parcels, casts, tasks, repairs, queued := c.Used(); jobs+parcels+casts+tasks+repairs+queued > 0 ||
		c.Rebuilding() {
		t.Fatalf("at rest %d jobs, %d parcels, %d casts, %d chunks and %d repairs are in use, and %d pieces wait",
			jobs, parcels, casts, tasks, repairs, queued)
	}
	away := map[int32]bool{}
	for _, f := range cfg.Failures {
		away[int32(f.Target)] = f.Back == 0
	}
	holders, copies := c.Holders()
	nowhere := 0
	for i, x := range holders {
		if x < 0 {
			nowhere++
			continue
		}
		if away[x] {
			t.Fatalf("a piece of chunk %d is taken to be at target %d, which is gone", i/copies, x)
		}
		for _, y := range holders[i/copies*copies : i] {
			if y >= 0 && (x == y || cfg.Racks > 0 && x%int32(cfg.Racks) == y%int32(cfg.Racks)) {
				t.Fatalf("chunk %d has two pieces at targets %d and %d", i/copies, x, y)
			}
		}
	}
	if k := &c.Counters; uint64(nowhere) > k.PiecesGone+uint64(c.Missing()) {
		t.Fatalf("%d pieces are nowhere, %d are gone and %d missing", nowhere, k.PiecesGone, c.Missing())
	}
	return c
}

// TestRandomFailures verifies that after any failures, returns and losses all chunks are put or counted, every lost
// piece is rebuilt or counted, and all streams, jobs and buffers are free again.
func TestRandomFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := cluster.DefaultConfig()
		cfg.Protocol = rapid.SampledFrom(recovering()).Draw(t, "protocol")
		cfg.Gateways, cfg.Targets, cfg.Group, cfg.Objects = 3, 18, 6, 60
		cfg.Replicas = rapid.IntRange(1, 3).Draw(t, "replicas")
		if !cfg.Protocol.Multicasts() && rapid.Bool().Draw(t, "coded") {
			cfg.Code = cluster.Code{Data: rapid.IntRange(1, 3).Draw(t, "data"),
				Parity: rapid.IntRange(0, 2).Draw(t, "parity")}
		}
		cfg.Outstanding = rapid.IntRange(1, 4).Draw(t, "outstanding")
		cfg.Chunk = units.Bytes(rapid.SampledFrom([]int{500, 16384, 70000}).Draw(t, "chunk"))
		cfg.Reads = units.Fraction(rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "reads"))
		if cfg.Reads > 0 {
			cfg.Read = cluster.Reading(rapid.IntRange(0, int(cluster.ReadLeastLoaded)).Draw(t, "read"))
		}
		cfg.Link.Loss = units.Fraction(rapid.SampledFrom([]float64{0, 0.001, 0.01}).Draw(t, "loss"))
		cfg.Repair.Detect = units.Duration(rapid.SampledFrom([]int{0, 200, 1000}).Draw(t, "detect")) * units.Microsecond
		cfg.Repair.Streams = units.Fraction(rapid.SampledFrom([]float64{0, 0.1, 0.5, 4}).Draw(t, "streams"))
		cfg.Repair.Disk = units.Fraction(rapid.SampledFrom([]float64{1, 0.3}).Draw(t, "share of disks"))
		cfg.Repair.Link = units.Fraction(rapid.SampledFrom([]float64{1, 0.2}).Draw(t, "share of links"))
		if rapid.Bool().Draw(t, "racks") {
			cfg.Racks = 6
			if cfg.Protocol == cluster.Pull {
				cfg.Racks = 9
			}
			if cfg.Protocol.Placed() {
				cfg.Racks = 9
			}
		}
		if rapid.Bool().Draw(t, "written back") {
			cfg.Acknowledge = cluster.WriteBack
		}
		copies, least := cfg.Replicas, 1
		if cfg.Code.Data > 0 {
			copies, least = cfg.Code.Data+cfg.Code.Parity, cfg.Code.Data
		}
		if rapid.Bool().Draw(t, "a quorum") {
			cfg.Quorum = rapid.IntRange(least, copies).Draw(t, "quorum")
		}
		for n := range rapid.IntRange(1, 5).Draw(t, "failures") {
			f := cluster.Failure{Target: n * 3,
				At: units.Duration(rapid.IntRange(0, 5000).Draw(t, "at")) * units.Microsecond}
			if rapid.Bool().Draw(t, "comes back") {
				f.Back = f.At + units.Duration(rapid.IntRange(1000, 9000).Draw(t, "for"))*units.Microsecond
				if rapid.Bool().Draw(t, "fails again") {
					cfg.Failures = append(cfg.Failures, f)
					f = cluster.Failure{Target: f.Target,
						At: f.Back + units.Duration(rapid.IntRange(1000, 3000).Draw(t, "again at"))*units.Microsecond}
				}
			}
			cfg.Failures = append(cfg.Failures, f)
		}
		rest(t, settled(cfg), rapid.Uint64Range(1, 100).Draw(t, "seed"), 150)
	})
}

// TestRebuildEnds verifies that every piece lost to one to three failures is rebuilt, under message loss, for every
// protocol and read policy, with and without other reads.
func TestRebuildEnds(t *testing.T) {
	for _, p := range recovering() {
		for _, reads := range []units.Fraction{0, 0.3} {
			t.Run(fmt.Sprint(p, reads), func(t *testing.T) {
				cfg := cluster.DefaultConfig()
				cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Chunk, cfg.Objects, cfg.Reads = p, 6, 36, 64*units.KiB,
					3000, reads
				cfg.Link.Loss = 0.001
				cfg.Failures = []cluster.Failure{{Target: 3, At: 10 * units.Millisecond},
					{Target: 4, At: 15 * units.Millisecond}, {Target: 5, At: 20 * units.Millisecond}}
				c := rest(t, cfg, 1, 2000)
				k := c.Counters
				if k.PiecesLost < 600 || k.Repaired < k.PiecesLost/2 || c.Missing() > 0 || k.Failed > k.Unavailable ||
					k.LostChunks > 20 || c.RepairedAt == 0 {
					t.Errorf("%d missing, %+v", c.Missing(), k)
				}
			})
		}
	}
}

// TestWhole verifies conservation of bytes for every protocol: without losses and failures, disks write exactly the
// pieces of the chunks that are put, and targets receive exactly these.
func TestWhole(t *testing.T) {
	for _, p := range cluster.Schemes() {
		for _, code := range []cluster.Code{{}, {Data: 3, Parity: 2}} {
			cfg := cluster.DefaultConfig()
			cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Chunk, cfg.Code, cfg.Outstanding = p, 6, 36, 50_000, code, 2
			if p == cluster.CommandWindow {
				cfg.Replicas = 1
			}
			if cfg.Validate() != nil {
				continue
			}
			c := rest(t, cfg, 1, 300)
			k, piece, copies := &c.Counters, cfg.Chunk, cfg.Replicas
			if code.Data > 0 {
				piece, copies = (cfg.Chunk+2)/3, 5
			}
			want := units.Bytes(k.Done) * units.Bytes(copies) * piece
			if _, targets := c.SumBytes(); k.Done != 300 || k.Put.Written != want || targets.Data != want ||
				k.Wasted+k.Mended.Handed > 0 {
				t.Errorf("%v %v: targets received %d B, not %d: %+v", p, code, targets.Data, want, k)
			}
		}
	}
}

// TestLostChunks verifies that with one copy every chunk of a failed target is lost and counted once, and no piece of
// it counts as missing.
func TestLostChunks(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Chunk, cfg.Objects, cfg.Replicas = cluster.Chain, 2, 10,
		16*units.KiB, 1000, 1
	cfg.Failures = []cluster.Failure{{Target: 3, At: units.Millisecond}}
	c := rest(t, cfg, 1, 0)
	if k := &c.Counters; k.LostChunks < 60 || k.LostChunks > 140 || k.PiecesGone != k.LostChunks ||
		k.PiecesLost != k.LostChunks || k.Repaired > 0 || c.Missing() > 0 {
		t.Errorf("%+v", k)
	}
	// With two copies, and both targets down before the failure is known, the chunks stored on both are lost.
	cfg.Replicas = 2
	cfg.Failures = append(cfg.Failures, cluster.Failure{Target: 4, At: 2 * units.Millisecond})
	c = rest(t, cfg, 1, 0)
	if k := &c.Counters; k.LostChunks < 8 || k.LostChunks > 45 || k.PiecesGone != 2*k.LostChunks ||
		k.Repaired != k.PiecesLost-k.PiecesGone || c.Missing() > 0 {
		t.Errorf("%+v", k)
	}
}

// TestStaysDead verifies that the piece of a chunk that completes after its target's failure is known, or after the
// target is back and empty, is rebuilt.
func TestStaysDead(t *testing.T) {
	for _, back := range []units.Duration{0, 300 * units.Microsecond} {
		lost := uint64(0)
		for at := range units.Duration(42) {
			cfg := cluster.DefaultConfig()
			cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Chunk, cfg.Objects, cfg.Outstanding = cluster.Chain, 1, 6,
				16*units.KiB, 1, 64
			// 3 ms per piece, so that chunks wait for their last copy while targets fail
			cfg.Disk.Kinds = []cluster.Kind{{Share: 0.5, Rate: 5 * units.ByteRate(units.MiB)}}
			cfg.Failures = []cluster.Failure{{Target: int(at) % 6, At: at * 300 * units.Microsecond}}
			if back > 0 {
				cfg.Failures[0].Back = cfg.Failures[0].At + back
			}
			cfg.Repair.Detect = 100 * units.Microsecond
			c := rest(t, cfg, 1, 40)
			lost += c.Counters.PiecesLost
			if c.Missing() > 0 {
				t.Fatalf("%+v", c.Counters)
			}
		}
		if lost < 20 {
			t.Errorf("only %d pieces were lost: the test is none", lost)
		}
	}
}

// TestWideCodes verifies that two groups of nine store eleven pieces.
func TestWideCodes(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Chunk, cfg.Code = cluster.Pull, 9, 90, 256*units.KiB,
		cluster.Code{Data: 8, Parity: 3}
	c := rest(t, cfg, 1, 500)
	if c.Counters.Done != 500 {
		t.Errorf("%+v", c.Counters)
	}
	cfg.Groups = 1
	if err := cfg.Validate(); err == nil {
		t.Error("one group of nine keeps eleven pieces")
	}
}

// TestShares verifies that repairs stay within their share of disks and links, and that rebuilding takes proportionally
// longer.
func TestShares(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Chunk, cfg.Objects = cluster.Chain, 2, 12, 64*units.KiB, 4000
	cfg.Failures = []cluster.Failure{{Target: 3, At: units.Millisecond}}
	cfg.Repair.Streams = 4
	until := func(disk, link units.Fraction) (sim.Time, *cluster.Cluster) {
		cfg.Repair.Disk, cfg.Repair.Link = disk, link
		c := rest(t, cfg, 1, 0)
		return c.RepairedAt - 6*units.Millisecond, c
	}
	free, _ := until(1, 1)
	for _, share := range []float64{0.2, 0.05} {
		byDisk, c := until(units.Fraction(share), 1)
		// Each disk reads or writes its share of twice the lost bytes; those with more than the mean take longer.
		each := float64(c.Counters.Mended.Written) * 2 / 11 / float64(cfg.Disk.Rate) / share
		if got := byDisk.Seconds(); got < each || got > 1.6*each {
			t.Errorf("with %v of the disks %v, and a disk's part takes %v s", share, byDisk, each)
		}
		byLink, _ := until(1, units.Fraction(share))
		each = float64(c.Counters.Mended.Written) / 11 / (9.9e9 / 8) / share
		if got := byLink.Seconds(); got < each || got > 2*each {
			t.Errorf("with %v of the links %v, and a link's part takes %v s", share, byLink, each)
		}
		if byDisk < free || byLink < free {
			t.Errorf("%v and %v, and %v without a limit", byDisk, byLink, free)
		}
	}
}

// TestQuorum verifies that a put is reported at its quorum, without waiting for the slowest targets, and that its
// gateway holds the chunk until all pieces are stored.
func TestQuorum(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Chunk = cluster.Chain, 4, 30, 64*units.KiB
	cfg.Disk.Kinds = []cluster.Kind{{Share: 0.3, Rate: 20 * units.ByteRate(units.MiB)}}
	cfg.Load.Rate = 1000
	mean := func(quorum int) float64 {
		cfg.Quorum = quorum
		c, done := run(t, cfg, 1, 200*units.Millisecond)
		sum := 0.0
		for _, d := range done {
			sum += (d.Done - d.Begun).Seconds()
		}
		if k := &c.Counters; k.Done < 150 || k.Short > 0 {
			t.Errorf("%+v", k)
		}
		return sum / float64(len(done))
	}
	all, two, one := mean(0), mean(2), mean(1)
	if all != mean(3) {
		t.Error("all of three are another quorum than three")
	}
	if two > 0.7*all || one > 0.9*two {
		t.Errorf("%v s with all, %v with two and %v with one", all, two, one)
	}
	c := rest(t, cfg, 1, 200) // with a quorum of 3
	cfg.Quorum = 1
	if d := rest(t, cfg, 1, 200); d.Counters.Put != c.Counters.Put || d.Counters.Replicas != 600 {
		t.Errorf("%+v and %+v", d.Counters, c.Counters)
	}
}

// TestRacks verifies that no two pieces of a chunk share a rack, for every protocol and placement.
func TestRacks(t *testing.T) {
	for _, p := range recovering() {
		for placement := range cluster.PlaceCopysets + 1 {
			cfg := cluster.DefaultConfig()
			cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Chunk, cfg.Objects, cfg.Placement, cfg.Racks = p, 6, 36,
				16*units.KiB, 400, placement, 4
			if p.Grouped() {
				cfg.Group = 4
			}
			cfg.Reads, cfg.Failures = 0.2,
				[]cluster.Failure{{Target: 3, At: units.Millisecond},
					{Target: 7, At: 2 * units.Millisecond, Back: 20 * units.Millisecond}}
			if cfg.Validate() != nil {
				continue
			}
			c := rest(t, cfg, 1, 600)
			if k := &c.Counters; k.Done < 300 || k.Failed > k.Unavailable || k.PiecesLost == 0 {
				t.Errorf("%v, %v: %+v", p, placement, k)
			}
		}
	}
}

// TestRebuildTable verifies the table in docs/models/cluster.md of what repairs cost puts: all of it with
// FARFLASH_LONG, otherwise the row in which one protocol completes and the other does not.
func TestRebuildTable(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const fails, until = 20 * units.Millisecond, 300 * units.Millisecond
	lines := golden.Head("share of disks and links", ">`pull`: p99 of puts", ">pieces made again",
		">`chain`, 2 choices: p99", ">pieces")
	shares := []units.Fraction{1, 0.5, 0.3, 0.1}
	if !long {
		shares = shares[1:2]
	}
	for _, share := range shares {
		row := []string{share.String()}
		for _, p := range []cluster.Scheme{cluster.Pull, cluster.Chain} {
			cfg := cluster.DefaultConfig()
			cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Outstanding, cfg.Load.Share = p, 45, 45, 8, 0.6
			if p == cluster.Chain {
				cfg.Choices = 2
			}
			cfg.Objects = 60_000
			cfg.Failures = []cluster.Failure{{Target: 7, At: fails}}
			cfg.Repair.Disk, cfg.Repair.Link = share, share
			c, done := run(t, cfg, 1, until)
			whole := c.Missing() == 0
			var took []sim.Time
			for _, d := range done {
				if d.Begun >= fails && (!whole || d.Begun < c.RepairedAt) {
					took = append(took, d.Done-d.Begun)
				}
			}
			slices.Sort(took)
			made := fmt.Sprintf("%d of %d", c.Counters.Repaired, c.Counters.PiecesLost)
			if whole {
				made = fmt.Sprintf("all %d, in %.0f ms", c.Counters.Repaired, (c.RepairedAt-fails).Seconds()*1e3)
			}
			row = append(row, fmt.Sprintf("%.2f ms", took[len(took)*99/100].Seconds()*1e3), made)
		}
		lines = append(lines, golden.Row(row...))
	}
	const page, name = "../../docs/models/cluster.md", "rebuild"
	if !long {
		golden.Rows(t, page, name, lines)
		return
	}
	golden.Table(t, page, name, "seed 1", lines, *update)
}

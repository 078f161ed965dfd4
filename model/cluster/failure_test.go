package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"farflash/model/cluster"
	"farflash/numeric/units"
)

// recovering returns the protocols that make progress despite lost messages and failed targets.
func recovering() []cluster.Scheme {
	return slices.DeleteFunc(cluster.Schemes(), func(p cluster.Scheme) bool { return !p.Recovers() })
}

// TestLoss verifies that under loss of frames and messages every chunk is eventually put or read, and none hangs.
func TestLoss(t *testing.T) {
	for _, p := range recovering() {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Chunk, cfg.Reads = p, 16*units.KiB, 0.3
		cfg.Gateways, cfg.Targets = 18, 18
		_, want := run(t, cfg, 1, 20*units.Millisecond)
		for _, loss := range []units.Fraction{1e-4, 1e-3, 0.01} {
			t.Run(fmt.Sprint(p, loss), func(t *testing.T) {
				cfg := cfg
				cfg.Link.Loss = loss
				c, done := run(t, cfg, 1, 20*units.Millisecond)
				// Most negotiations of replicast-h-double, 70 messages each, lose one and must be retried.
				if len(done) < len(want)/8 || c.Counters.Retried == 0 || c.Counters.Failed > 0 {
					t.Errorf("%d chunks done, %d without losses; %+v", len(done), len(want), c.Counters)
				}
				late := 0
				for _, d := range done {
					if d.Done > 15*units.Millisecond {
						late++
					}
				}
				if late < len(done)/8 {
					t.Errorf("of %d chunks %d are done in the last quarter", len(done), late)
				}
			})
		}
	}
}

// TestFailures verifies that failed targets are avoided, that the pieces they stored are rebuilt at valid places, and
// that they take part again after their return.
func TestFailures(t *testing.T) {
	for _, p := range recovering() {
		for _, code := range []cluster.Code{{}, {Data: 2, Parity: 2}} {
			if code.Data > 0 && p.Multicasts() {
				continue
			}
			t.Run(fmt.Sprint(p, code), func(t *testing.T) {
				cfg := cluster.DefaultConfig()
				cfg.Protocol, cfg.Chunk, cfg.Code = p, 16*units.KiB, code
				cfg.Gateways, cfg.Targets, cfg.Objects, cfg.Reads = 10, 18, 400, 0.5
				cfg.Failures = []cluster.Failure{{Target: 3, At: 5 * units.Millisecond},
					{Target: 7, At: 10 * units.Millisecond, Back: 25 * units.Millisecond}}
				cfg.Repair.Detect = 2 * units.Millisecond
				c, done := run(t, cfg, 1, 50*units.Millisecond)
				k := c.Counters
				if k.PiecesLost < 50 || k.Repaired < k.PiecesLost/4 || c.RepairedAt == 0 || k.Unrepaired > 0 ||
					k.Unavailable > 0 || k.Failed > 0 {
					t.Errorf("%+v", k)
				}
				// New chunks replace stored ones in full, so some pieces need no rebuilding.
				if missing := c.Missing(); missing > 0 {
					t.Errorf("%d pieces are missing at the end", missing)
				}
				tail := 0
				for _, d := range done {
					if d.Done > 40*units.Millisecond {
						tail++
					}
				}
				if tail < len(done)/8 {
					t.Errorf("of %d chunks %d are done in the last fifth", len(done), tail)
				}
				if disks, _, _ := c.Busy(50 * units.Millisecond); disks[7] == 0 || disks[3] > disks[7] {
					t.Errorf("target 7, which is back, was busy for %v, target 3 for %v", disks[7], disks[3])
				}
			})
		}
	}
}

// TestTooManyFailures verifies that chunks with too few pieces left are counted as unavailable, and that everything
// else continues.
func TestTooManyFailures(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Chunk, cfg.Replicas = cluster.Pull, 16*units.KiB, 2
	cfg.Gateways, cfg.Targets, cfg.Objects, cfg.Reads = 10, 18, 200, 0.5
	cfg.Repair.Streams = 0
	for target := range 6 {
		cfg.Failures = append(cfg.Failures, cluster.Failure{Target: target, At: units.Millisecond})
	}
	c, done := run(t, cfg, 1, 50*units.Millisecond)
	if k := c.Counters; k.Unavailable == 0 || k.Failed < k.Unavailable || k.Repaired > 0 || k.Degraded == 0 {
		t.Errorf("%+v", k)
	}
	if len(done) < 1000 {
		t.Errorf("%d chunks are done", len(done))
	}
}

// TestSentOnce verifies that data is sent once even if the timer of an abandoned attempt fires at the same instant as
// that of the next attempt.
func TestSentOnce(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Chunk, cfg.Replicas = cluster.ReplicastM, 500, 1
	cfg.Gateways, cfg.Group, cfg.Targets, cfg.Outstanding = 4, 3, 9, 2
	cfg.Objects, cfg.Reads, cfg.Link.Loss = 50, 0.5, 0.05
	cfg.Failures = []cluster.Failure{{Target: 0}}
	cfg.Repair.Detect = units.Millisecond
	for seed := range uint64(10) {
		run(t, settled(cfg), seed, 12*units.Millisecond)
	}
}

// TestHarshLaws verifies that chunks are conserved and gateways make progress under any losses and failures.
func TestHarshLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := cluster.DefaultConfig()
		cfg.Protocol = rapid.SampledFrom(recovering()).Draw(t, "protocol")
		cfg.Gateways = rapid.IntRange(1, 6).Draw(t, "gateways")
		cfg.Group = rapid.IntRange(3, 6).Draw(t, "group")
		cfg.Targets = cfg.Group * 3
		cfg.Replicas = rapid.IntRange(1, 3).Draw(t, "replicas")
		cfg.Outstanding = rapid.IntRange(1, 4).Draw(t, "outstanding")
		cfg.Chunk = units.Bytes(rapid.SampledFrom([]int{500, 16384, 70000}).Draw(t, "chunk"))
		cfg.Objects = 50
		cfg.Reads = units.Fraction(rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "reads"))
		cfg.Link.Loss = units.Fraction(rapid.SampledFrom([]float64{0, 0.001, 0.05, 0.3}).Draw(t, "loss"))
		cfg.Repair.Detect = units.Millisecond
		cfg.Processor = cluster.Processor{Message: drawWork(t, "message"), Frame: drawWork(t, "frame")}
		for n := range rapid.IntRange(0, 3).Draw(t, "failures") {
			f := cluster.Failure{Target: n,
				At: units.Duration(rapid.IntRange(0, 5000).Draw(t, "at")) * units.Microsecond}
			if rapid.Bool().Draw(t, "comes back") {
				f.Back = f.At + units.Duration(rapid.IntRange(1000, 9000).Draw(t, "for"))*units.Microsecond
			}
			cfg.Failures = append(cfg.Failures, f)
		}
		run(t, settled(cfg), rapid.Uint64Range(1, 100).Draw(t, "seed"), 12*units.Millisecond)
	})
}

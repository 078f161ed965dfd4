package cluster_test

import (
	"math"
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

// drawWork draws a processing time, most often zero.
func drawWork(t *rapid.T, what string) units.Duration {
	return units.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 3000, 40_000}).Draw(t, what)) * units.Nanosecond
}

// TestProcessorAlone verifies that processing delays a lone one-frame chunk on a chain by one send and one receive of
// the frame at each hop, plus sending and handling the last acknowledgement; earlier acknowledgements have been handled
// by then.
func TestProcessorAlone(t *testing.T) {
	cfg := lone(cluster.Chain, false, 8000)
	cfg.Gateways = 1
	eng := sim.New()
	c, err := cluster.New(cfg, eng, 1)
	if err != nil {
		t.Fatal(err)
	}
	floor := c.Floor()
	for _, p := range []cluster.Processor{{Message: 300 * units.Nanosecond}, {Frame: 5 * units.Microsecond},
		{Message: 700 * units.Nanosecond, Frame: 11 * units.Microsecond}} {
		cfg.Processor = p
		_, done := run(t, cfg, 1, 5*units.Millisecond)
		if len(done) < 5 {
			t.Fatalf("%d chunks are done", len(done))
		}
		want := floor + sim.Time(2*cfg.Replicas)*p.Frame + 2*p.Message
		for _, d := range done {
			if got := d.Done - d.Begun; got != want {
				t.Fatalf("with %+v a chunk takes %v, not %v", p, got, want)
			}
		}
	}
}

// TestProcessorFull verifies that a saturated processor is always busy and sets the throughput: a gateway's where
// acknowledgements dominate, and where frames dominate, that of a target, which receives each frame once and forwards
// two of three.
func TestProcessorFull(t *testing.T) {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Chunk = cluster.Chain, 8000
	cfg.Gateways, cfg.Targets = 4, 40
	const until = 200 * units.Millisecond
	for _, x := range []struct {
		p     cluster.Processor
		chunk units.Duration // processing time per chunk at the busiest node
		under int            // chunks that keep it busy
	}{
		{cluster.Processor{Message: 50 * units.Microsecond}, 3 * 50 * units.Microsecond, 16},
		{cluster.Processor{Frame: 50 * units.Microsecond}, 50 * units.Microsecond, 64},
	} {
		cfg.Processor, cfg.Outstanding = x.p, x.under
		c, done := run(t, cfg, 1, until)
		want := float64(cfg.Gateways) * (until.Seconds() / x.chunk.Seconds())
		if got := float64(len(done)); math.Abs(got/want-1) > 0.02 {
			t.Errorf("with %+v %g chunks are done, not %g", x.p, got, want)
		}
		gateways, targets := c.ProcessorTime(until)
		if share := gateways.Seconds() / until.Seconds() / 4; share < 0.98 || share > 1 {
			t.Errorf("with %+v gateways' processors work %.3f of the time", x.p, share)
		}
		// Each chunk is three acknowledgements that targets send and gateways handle, or one frame that gateways send
		// and that targets receive three times and forward twice.
		of := map[bool]float64{true: 1, false: 5}[x.p.Message > 0]
		if got := targets.Seconds() / gateways.Seconds(); math.Abs(got/of-1) > 0.02 {
			t.Errorf("with %+v targets' processors work %.3f times as long as gateways', not %g", x.p, got, of)
		}
	}
}

// TestProcessorLost verifies that messages queued at a failed target's processor are lost, and that chunks complete all
// the same.
func TestProcessorLost(t *testing.T) {
	for _, p := range recovering() {
		cfg := cluster.DefaultConfig()
		cfg.Protocol, cfg.Chunk, cfg.Gateways, cfg.Targets = p, 16*units.KiB, 18, 27
		cfg.Processor = cluster.Processor{Message: 2 * units.Microsecond, Frame: 3 * units.Microsecond}
		cfg.Failures = []cluster.Failure{{Target: 2, At: 3 * units.Millisecond},
			{Target: 9, At: 4 * units.Millisecond, Back: 9 * units.Millisecond}}
		cfg.Repair.Detect = units.Millisecond
		_, done := run(t, settled(cfg), 1, 20*units.Millisecond)
		late := 0
		for _, d := range done {
			if d.Done > 15*units.Millisecond {
				late++
			}
		}
		if late < len(done)/10 {
			t.Errorf("%v: of %d chunks %d are done in the last quarter", p, len(done), late)
		}
	}
}

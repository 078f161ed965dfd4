package cluster

import (
	"math"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"
)

// TestBurstsArrive verifies that each burst arrives at one gateway, and that the rate is the configured one.
func TestBurstsArrive(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Protocol, cfg.Outstanding, cfg.Chunk, cfg.Load = Chain, 256, 4*units.KiB, Load{Rate: 200_000, Burst: 16}
	c, err := New(cfg, sim.New(), 3)
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	at, n, runs := sim.Time(-1), 0, 0
	for runs = 0; c.eng.Now() < 200*units.Millisecond; runs++ {
		next := c.load.coming
		c.eng.Run(next.At) // all chunks of a burst arrive at the same time
		came := int(c.Counters.Arrived) - n
		if n += came; came < 1 || came > 16 || next.At == at {
			t.Fatalf("a burst of %d", came)
		}
		if under := c.load.under[next.Gateway]; int(under) < came {
			t.Fatalf("%d came to gateway %d, which has %d", came, next.Gateway, under)
		}
		at = next.At
	}
	if got := float64(n) / c.eng.Now().Seconds(); math.Abs(got/cfg.Load.Rate-1) > 0.05 {
		t.Errorf("%.0f chunks a second come", got)
	}
	if mean := float64(n) / float64(runs); math.Abs(mean/cfg.Load.bursts().mean()-1) > 0.05 {
		t.Errorf("bursts of %.2f, not %.2f", mean, cfg.Load.bursts().mean())
	}
}

// TestBurstKeys verifies that keys without effect are refused.
func TestBurstKeys(t *testing.T) {
	for _, l := range []Load{{Burst: 4}, {Rate: 1, Shape: 1}, {Rate: 1, Burst: -1}, {Rate: 1, Burst: 1 << 20},
		{Rate: 1, Burst: 4, Shape: 1e-9}, {Rate: 1, Burst: 4, Shape: math.NaN()}} {
		cfg := DefaultConfig()
		cfg.Load = l
		if cfg.Validate() == nil {
			t.Errorf("%+v is accepted", l)
		}
	}
}

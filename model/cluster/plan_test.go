package cluster_test

import (
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestBidWidth verifies that the first bids of idle targets are as wide as configured, relative to the time of a chunk
// and a trip, and that the default is 140%.
func TestBidWidth(t *testing.T) {
	first := func(width units.Fraction) sim.Time {
		cfg := cluster.DefaultConfig()
		cfg.Gateways, cfg.BidWidth = 1, width
		eng := sim.New()
		c, err := cluster.New(cfg, eng, 1)
		if err != nil {
			t.Fatal(err)
		}
		var got sim.Time
		c.OnBid = func(b *cluster.BidChange) {
			if got == 0 {
				got = b.Window.Width()
			}
		}
		c.Start()
		eng.Run(100 * units.Microsecond)
		return got
	}
	const rate = 8910 * units.Mbps // 90% of a link of 9.9 Gbit/s is for data
	share := rate.TimeFor(128*units.KiB) + units.Microsecond
	if a, b := first(0), first(1.4); a != b || a == 0 {
		t.Errorf("a bid is %v wide, and %v with 140 %%", a, b)
	}
	for _, x := range []struct{ from, to units.Fraction }{{1.4, 1.5}, {1.5, 3}} {
		got, want := first(x.to)-first(x.from), sim.Time(float64(share)*float64(x.to-x.from))
		if got < want-2*units.Nanosecond || got > want+2*units.Nanosecond {
			t.Errorf("from %v to %v a bid is wider by %v, not %v", x.from, x.to, got, want)
		}
	}
}

package cluster

import (
	"math"
	"testing"

	"farflash/sim"
	"farflash/units"
)

// TestBursts: sizes of bursts have the distribution's probabilities, and their mean is what is reckoned with.
func TestBursts(t *testing.T) {
	for _, l := range []Load{{Burst: 64}, {Burst: 2, Shape: 1}, {Burst: 7, Shape: 0.5}, {Burst: 300, Shape: 3}} {
		const n = 200_000
		sum, atLeast := 0, make([]int, l.Burst+2)
		for k := range n {
			b := l.burst((float64(k) + 0.5) / n)
			if b < 1 || b > l.Burst {
				t.Fatalf("%+v: a burst of %d", l, b)
			}
			sum += b
			for j := 1; j <= b; j++ {
				atLeast[j]++
			}
		}
		if got, want := float64(sum)/n, l.meanBurst(); math.Abs(got-want) > 1e-3*want {
			t.Errorf("%+v: mean %v, not %v", l, got, want)
		}
		a, end := l.shape(), math.Pow(float64(l.Burst)+1, -l.shape())
		for j := 1; j <= l.Burst; j++ {
			if got, want := float64(atLeast[j])/n, (math.Pow(float64(j), -a)-end)/(1-end); math.Abs(got-want) > 2e-5 {
				t.Errorf("%+v: a burst is of %d or more in %v, not %v", l, j, got, want)
			}
		}
	}
	if one := (&Load{Burst: 1}); one.meanBurst() != 1 || one.burst(0.999) != 1 {
		t.Errorf("bursts of one are of %v", one.meanBurst())
	}
}

// TestBurstsArrive: bursts come to one gateway each, at the rate that is asked for.
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
		c.eng.Run(next.At) // all of a burst come at the same time
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
	if mean := float64(n) / float64(runs); math.Abs(mean/cfg.Load.meanBurst()-1) > 0.05 {
		t.Errorf("bursts of %.2f, not %.2f", mean, cfg.Load.meanBurst())
	}
}

// TestBurstKeys: what decides nothing is refused.
func TestBurstKeys(t *testing.T) {
	for _, l := range []Load{{Burst: 4}, {Rate: 1, Shape: 1}, {Rate: 1, Burst: -1}, {Rate: 1, Burst: 1 << 20}, {Rate: 1, Burst: 4, Shape: 1e-9}, {Rate: 1, Burst: 4, Shape: math.NaN()}} {
		cfg := DefaultConfig()
		cfg.Load = l
		if cfg.Validate() == nil {
			t.Errorf("%+v is accepted", l)
		}
	}
}

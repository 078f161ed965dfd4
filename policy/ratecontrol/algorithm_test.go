package ratecontrol_test

import (
	"math"
	"testing"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"

	"pgregory.net/rapid"
)

// algorithm1 is the procedure PredictWeightRatio of SRC, in the paper's own steps and words. A division of 0 by 0 ends
// its loop, because no comparison with NaN holds.
func algorithm1(tpm func(w int) float64, r, tau float64) int {
	w, best := 1, 1
	tput := tpm(w)
	if tput < r {
		return w
	}
	minDis := math.Abs(tput - r)
	for {
		w++
		preTput := tput
		tput = tpm(w)
		dis := math.Abs(tput - r)
		if minDis > dis {
			minDis = dis
			best = w
		}
		curTput := tput
		if !(math.Abs(preTput-curTput)/preTput >= tau) {
			return best
		}
	}
}

// TestSearchesBesideTheirDefinitions verifies that mode paper is Algorithm 1 step by step, and that scan returns the
// least ratio with the least distance, for arbitrary predictions, including 0 and equal neighbours.
func TestSearchesBesideTheirDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list table
		for range rapid.IntRange(1, 12).Draw(t, "n") {
			list = append(list, float64(rapid.IntRange(0, 12).Draw(t, "reads")))
		}
		want := rapid.SampledFrom([]float64{0.5, 1, 2, 2.5, 3, 5, 7.5, 12}).Draw(t, "want")
		tau := rapid.SampledFrom([]float64{0.01, 0.1, 0.25, 0.5, 1}).Draw(t, "tau")
		most := rapid.IntRange(1, 15).Draw(t, "most")
		ask := func(mode ratecontrol.Search) (ratio int, predictions uint64) {
			c := ratecontrol.DefaultConfig()
			c.Kind, c.Mode, c.Tolerance, c.MaxRatio = ratecontrol.SRC, mode, units.Fraction(tau), most
			ctl, err := ratecontrol.New(c, []ratecontrol.Predictor{list})
			if err != nil {
				t.Fatal(err)
			}
			s := steering(1)
			ctl.Start(s)
			ctl.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Rate: want})
			return s.Weights[0].Write, s.Predictions
		}
		looked := uint64(0)
		tpm := func(w int) float64 { looked++; read, _ := list.Predict(nil, w); return read }
		best := algorithm1(tpm, want, tau)
		if got, n := ask(ratecontrol.Paper); got != best || n != looked {
			t.Errorf("%v, %v wanted, tau %v: ratio %d after %d predictions; Algorithm 1 has %d after %d", list, want,
				tau, got, n, best, looked)
		}
		best = 1
		if tpm(1) >= want {
			for w := 2; w <= most; w++ {
				if math.Abs(tpm(w)-want) < math.Abs(tpm(best)-want) {
					best = w
				}
			}
		}
		if got, _ := ask(ratecontrol.Scan); got != best {
			t.Errorf("%v, %v wanted, up to %d: ratio %d, the closest is %d", list, want, most, got, best)
		}
	})
}

// TestSharesFade verifies that a target's demand is divided by the reads of this window and the last, that older reads
// do not count, and that without reads all drives have equal shares.
func TestSharesFade(t *testing.T) {
	const window = units.Millisecond
	falling := table{8, 7, 6, 5, 4, 3, 2, 1}
	for _, x := range []struct {
		name  string
		at    units.Duration // of the demand of 8
		first int            // ratio of the drive with reads at time 0
		other int
	}{
		{"at once", window / 2, 1, 8},
		{"in the next window", window + window/2, 1, 8},
		{"two later", 2*window + window/2, 5, 5},
		{"much later", 70 * window, 5, 5},
	} {
		c := newController(t, func(c *ratecontrol.Config) { c.Kind, c.Window = ratecontrol.SRC, window }, falling,
			falling)
		s := steering(2)
		c.Start(s)
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Arrived, Op: block.Read, Bytes: 4096})
		// writes do not count
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Arrived, Op: block.Write, Drive: 1, Bytes: 1 << 20})
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Now: x.at, Rate: 8})
		if s.Weights[0].Write != x.first || s.Weights[1].Write != x.other {
			t.Errorf("%s: %+v, not %d and %d", x.name, s.Weights, x.first, x.other)
		}
	}
}

// TestSharesOfWindows verifies that windows are contiguous. A read that arrives as one ends belongs to the next, and
// counts in that one and the one after it.
func TestSharesOfWindows(t *testing.T) {
	const window = units.Millisecond
	falling := table{8, 7, 6, 5, 4, 3, 2, 1}
	for at, want := range map[units.Duration][2]int{window: {5, 5}, 2*window - 1: {5, 5}, 2 * window: {8, 1},
		3*window - 1: {8, 1}, 3 * window: {5, 5}} {
		c := newController(t, func(c *ratecontrol.Config) { c.Kind, c.Window = ratecontrol.SRC, window }, falling,
			falling)
		s := steering(2)
		c.Start(s)
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Arrived, Op: block.Read, Bytes: 4096})
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Arrived, Now: window, Op: block.Read, Drive: 1, Bytes: 4096})
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Now: at, Rate: 8})
		if got := [2]int{s.Weights[0].Write, s.Weights[1].Write}; got != want {
			t.Errorf("at %v: %v, not %v", at, got, want)
		}
	}
}

// TestCorrectedFromEqualWeights verifies that a drive that reads twice as much at equal weights as predicted gets a
// larger ratio, unless it has the largest; one that reads less keeps it.
func TestCorrectedFromEqualWeights(t *testing.T) {
	for _, x := range []struct {
		most  int
		reads float64 // actual over desired reads
		rises bool
	}{{32, 2, true}, {32, 0.5, false}, {1, 2, false}, {1, 0.5, false}} {
		const want = 4e9
		c := newController(t, func(c *ratecontrol.Config) {
			c.Kind, c.Mode, c.MaxRatio = ratecontrol.SRC, ratecontrol.Corrected, x.most
		}, table{want, want / 4})
		s := steering(1)
		c.Start(s)
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Rate: want})
		if s.Weights[0].Write != 1 {
			t.Fatalf("%+v is not what the model says", s.Weights)
		}
		for range 3 {
			now := s.Wake
			s.Wake = units.Forever
			c.React(s, &ratecontrol.Signal{Event: ratecontrol.Ended, Now: now, Op: block.Read,
				Bytes: int64(x.reads * want * 10e-3)})
			c.React(s, &ratecontrol.Signal{Event: ratecontrol.Timer, Now: now})
			if w := s.Weights[0].Write; (w > 1) != x.rises || w > x.most {
				t.Errorf("up to %d, %v times what is wanted: %+v", x.most, x.reads, s.Weights)
			}
		}
	}
}

// TestCorrectedCountsAllDecisions verifies that the desired volume of a window is the sum over its decisions. A drive
// that reads exactly that causes no correction, however the demand changed.
func TestCorrectedCountsAllDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var falling table
		for w := range 32 {
			falling = append(falling, 10e9-0.3e9*float64(w))
		}
		cfg := ratecontrol.DefaultConfig()
		cfg.Kind, cfg.Mode = ratecontrol.SRC, ratecontrol.Corrected
		c, err := ratecontrol.New(cfg, []ratecontrol.Predictor{falling})
		if err != nil {
			t.Fatal(err)
		}
		s := steering(1)
		c.Start(s)
		demands := rapid.SliceOfN(rapid.Float64Range(1.5e9, 9e9), 2, 8).Draw(t, "demands")
		read, now, last := 0.0, units.Duration(0), 0.0
		step := cfg.Window / units.Duration(len(demands))
		for _, rate := range demands {
			c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Now: now, Rate: rate})
			read += rate * step.Seconds()
			now, last = now+step, rate
		}
		read += last * (cfg.Window - now).Seconds()
		w := s.Weights[0].Write
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Ended, Now: now, Op: block.Read, Bytes: int64(read)})
		s.Wake = units.Forever
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Timer, Now: cfg.Window})
		if got := s.Weights[0].Write; got != w {
			t.Errorf("%v demanded, and read: the ratio goes from %d to %d", demands, w, got)
		}
	})
}

// TestReserveHeedsReadsAlone verifies that arrivals and completed writes do not change reserve's settings, and that a
// large read counts until the reads after it have decayed it.
func TestReserveHeedsReadsAlone(t *testing.T) {
	for _, kind := range []ratecontrol.Kind{ratecontrol.Reserve, ratecontrol.Paced} {
		c := newController(t, func(c *ratecontrol.Config) { c.Kind = kind })
		s := steering(1)
		c.Start(s)
		took := 100 * units.Microsecond
		// so low that the limit is two of the largest reads
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Rate: 1000})
		if s.ReadLimit != 0 || (s.SendRate == 1000) != (kind == ratecontrol.Paced) {
			t.Fatalf("%v, before anything is known: %+v", kind, s)
		}
		const large, small = int64(1 << 20), int64(4096)
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Ended, Op: block.Read, Bytes: large, Took: took})
		for n := range 400 {
			want := 2 * max(float64(large)*math.Pow(63.0/64, float64(n)), float64(small))
			if math.Abs(float64(s.ReadLimit)-want) > 2 || s.SendLimit != s.ReadLimit {
				t.Fatalf("%v, %d small reads behind a large one: limits of %d and %d, %.0f is twice what is left of it", kind, n, s.ReadLimit, s.SendLimit, want)
			}
			before := *s
			for _, x := range []ratecontrol.Signal{{Event: ratecontrol.Arrived, Op: block.Read, Bytes: large},
				{Event: ratecontrol.Arrived, Op: block.Write, Bytes: large},
				{Event: ratecontrol.Ended, Op: block.Write, Bytes: large, Took: units.Second},
				{Event: ratecontrol.Timer}} {
				x.Now, x.Rate = units.Duration(n)*took, 5e9
				c.React(s, &x)
			}
			if s.ReadLimit != before.ReadLimit || s.SendLimit != before.SendLimit || s.SendRate != before.SendRate ||
				s.WriteRate != before.WriteRate || s.Wake != before.Wake {
				t.Fatalf("%v: %+v becomes %+v by what is no read", kind, before, *s)
			}
			c.React(s, &ratecontrol.Signal{Event: ratecontrol.Ended, Op: block.Read, Bytes: small, Took: took})
		}
	}
}

// TestReserveByHand verifies that the limit is the demand times a horizon that starts as headroom plus two times a
// read's time, falls while reads are acknowledged later than the goal, and is restored while the limit binds; and that
// writes are held while it has bound within that horizon.
func TestReserveByHand(t *testing.T) {
	const took = 100 * units.Microsecond
	c := newController(t, func(c *ratecontrol.Config) { c.Kind, c.Headroom, c.Yield = ratecontrol.Reserve, 1, 0.25 })
	s := steering(1)
	s.Toll, s.Pairs = 0.1, 3
	c.Start(s)
	if !s.Overtake || s.Wake != units.Forever {
		t.Fatalf("it begins as %+v", s)
	}
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Rate: 1e9})
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Ended, Now: units.Second, Op: block.Read, Bytes: 10000,
		Took: took})
	if s.ReadLimit != 300_000 || s.WriteRate != 0 || s.SendLimit != 3*20000 {
		t.Fatalf("three reads' time at 1 GB/s: %+v", s)
	}
	// A read that is acknowledged as early as any: the goal is 100 us plus the 10 us of sending, and the wait is 0;
	// while the limit does not bind, it is not raised.
	sent := func(now, late units.Duration, reading int64) {
		s.Reading = reading
		c.React(s, &ratecontrol.Signal{Event: ratecontrol.Sent, Now: now, Bytes: 10000, Took: late})
	}
	sent(units.Second+took, 20*units.Microsecond, 0)
	if s.ReadLimit != 300_000 || s.WriteRate != 0 {
		t.Fatalf("raised although it does not bind: %+v", s)
	}
	sent(units.Second+2*took, 20*units.Microsecond, 290_000)
	// half of 110 us for a thirtieth of the limit
	want := 1e9 * (300e-6 + 0.5*110e-6*10000/300_000)
	if math.Abs(float64(s.ReadLimit)-want) > 1 || s.WriteRate != 0.25*1e9/0.1 {
		t.Fatalf("it binds: %+v, want a limit of %.0f, and writes at a quarter of the demand over the toll", s, want)
	}
	if s.SendLimit != 3*80_000 { // four of the shortest paths, for each queue pair
		t.Fatalf("a send limit of %d", s.SendLimit)
	}
	// A very late read counts no more than twice the goal; it counts although the limit does not bind, and after the
	// horizon writes are not limited.
	limit := s.ReadLimit
	sent(units.Second+2*took+units.Millisecond, units.Second, 0)
	if want := float64(limit) - 0.5*110e-6*1e9*10000/float64(limit); math.Abs(float64(s.ReadLimit)-want) > 1 ||
		s.WriteRate != 0 {
		t.Fatalf("late: %+v, want a limit of %.0f and free writes", s, want)
	}
	// However late all reads are, the horizon stays at least a read's time in its drive.
	for range 1000 {
		sent(2*units.Second, units.Second, 0)
	}
	if s.ReadLimit != 100_000 {
		t.Fatalf("always late: %+v", s)
	}
}

// TestReserveHoldsNoWritesBeforeItKnows verifies that writes are not limited before a read limit has been set, even
// just after time 0.
func TestReserveHoldsNoWritesBeforeItKnows(t *testing.T) {
	c := newController(t, func(c *ratecontrol.Config) { c.Kind, c.Yield = ratecontrol.Reserve, 0.25 })
	s := steering(1)
	s.Toll = 0.1
	c.Start(s)
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Rate: 1e9})
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Ended, Now: 1, Op: block.Read, Bytes: 10000,
		Took: 100 * units.Microsecond})
	if s.WriteRate != 0 || s.ReadLimit == 0 {
		t.Errorf("%+v", s)
	}
}

// TestPaceHasNoEnd verifies that bytes whose time exceeds the clock's range wait forever instead of going at once.
func TestPaceHasNoEnd(t *testing.T) {
	p := ratecontrol.NewPace(units.Millisecond)
	p.SetRate(0, 1e-3)
	for i := range 3 { // each takes longer than the clock's range
		p.Take(units.Duration(i), 1<<40)
		if p.Open(units.Duration(i)+units.Second) || p.Due(0) < units.Second {
			t.Fatalf("after %d pieces the next may go at %v", i+1, p.Due(0))
		}
	}
	p.SetRate(units.Second, 1e-6)
	if p.Open(2*units.Second) || p.Due(0) != units.Forever {
		t.Fatalf("at a thousandth of the rate the next may go at %v", p.Due(0))
	}
}

package ratecontrol_test

import (
	"testing"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"

	"pgregory.net/rapid"
)

// TestPace verifies for arbitrary sequences and rates that the bytes in any span do not exceed the rates' sum over it
// plus the slack and one piece, and that a greedy sender attains the rates.
func TestPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 1 << 20
		slack := units.Duration(rapid.IntRange(0, 2000).Draw(t, "slack")) * units.Microsecond
		greedy := rapid.Bool().Draw(t, "greedy")
		p := ratecontrol.NewPace(slack)
		now, rate := units.Duration(0), 1e6*float64(rapid.IntRange(1, 5000).Draw(t, "rate"))
		p.SetRate(now, rate)
		given, went := 0.0, int64(0) // by the rates so far
		ahead := 0.0                 // given - went: the span with the largest excess starts where it is greatest
		highest := rate
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
				rate = 1e6 * float64(rapid.IntRange(1, 5000).Draw(t, "rate"))
				p.SetRate(now, rate)
				highest = max(highest, rate)
			}
			step := p.Due(now) - now
			if !greedy {
				step = units.Duration(rapid.IntRange(0, 1000).Draw(t, "step")) * units.Microsecond
			}
			now += step
			given += rate * step.Seconds()
			ahead = max(ahead, given-float64(went))
			if !p.Open(now) {
				continue
			}
			n := rapid.Int64Range(1, most).Draw(t, "bytes")
			p.Take(now, n)
			went += n
			if over, may := float64(went)-given+ahead, most+highest*slack.Seconds(); over > may+1000 {
				t.Fatalf("in a span %.0f bytes more went than the rates give, %.0f may", over, may)
			}
		}
		if greedy && (float64(went) < given-1000 || float64(went) > given+most+1000) {
			t.Fatalf("%d bytes went, %.0f by the rates", went, given)
		}
	})
}

// TestPaceByHand verifies that a piece of 1000 bytes takes a microsecond at 1 GB/s, that unpaid bytes are rescaled to a
// new rate, and that unused time beyond the slack is lost.
func TestPaceByHand(t *testing.T) {
	const us = units.Microsecond
	p := ratecontrol.NewPace(3 * us)
	p.Take(0, 1<<40) // there is no limit yet
	if !p.Open(0) || p.Due(5*us) != 5*us {
		t.Fatal("without a rate all may go")
	}
	p.SetRate(0, 1e9)
	p.Take(0, 4000)
	if p.Open(4*us-1) || !p.Open(4*us) || p.Due(us) != 4*us {
		t.Fatalf("4000 bytes are due at %v", p.Due(us))
	}
	p.SetRate(2*us, 0.5e9) // two of their microseconds remain, which become four
	if p.Due(2*us) != 6*us {
		t.Fatalf("at half the rate they are due at %v", p.Due(2*us))
	}
	p.Take(20*us, 1000) // three of the fourteen idle microseconds are caught up
	if p.Due(20*us) != 20*us || !p.Open(20*us) {
		t.Fatalf("after a pause 1000 bytes are due at %v", p.Due(20*us))
	}
	p.Take(20*us, 1000)
	if p.Due(20*us) != 21*us {
		t.Fatalf("1000 bytes more are due at %v", p.Due(20*us))
	}
	p.SetRate(20*us, 0)
	if !p.Open(20 * us) {
		t.Fatal("without a rate all may go")
	}
}

// TestYield verifies that while reads wait, write data is requested at a rate whose acknowledgements take the yield of
// the demand, and without a limit when none wait any more.
func TestYield(t *testing.T) {
	s := steering(1)
	s.Toll = 0.08
	c := controller(ratecontrol.Reserve, 1, 1, 0.02)
	c.Start(s)
	if !s.Overtake {
		t.Error("responses do not overtake")
	}
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Rate: 4e9, Cut: true})
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Ended, Now: units.Millisecond, Op: block.Read, Bytes: 65536,
		Took: 100 * units.Microsecond})
	if s.ReadLimit == 0 || s.WriteRate != 0 {
		t.Fatalf("no read has been held yet: %+v", s)
	}
	sent := ratecontrol.Signal{Event: ratecontrol.Sent, Now: 2 * units.Millisecond, Bytes: 65536,
		Took: 50 * units.Microsecond}
	s.Reading = s.ReadLimit
	c.React(s, &sent)
	if s.WriteRate != 1e9 {
		t.Fatalf("%v bytes of writes a second; 2 %% of 4 GB/s at 0.08 bytes each are 1 GB/s", s.WriteRate)
	}
	c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Now: sent.Now, Rate: 2e9, Cut: true})
	if s.WriteRate != 0.5e9 {
		t.Fatalf("%v bytes of writes a second at half the demand", s.WriteRate)
	}
	s.Reading, sent.Now = 0, 20*units.Millisecond
	c.React(s, &sent)
	if s.WriteRate != 0 {
		t.Fatalf("%v bytes of writes a second though no read waits", s.WriteRate)
	}
	if s.SendRate != 0 {
		t.Errorf("reserve hands over %v a second", s.SendRate)
	}
}

// TestPaced verifies that data is handed to the network at the demanded rate, from the first demand on.
func TestPaced(t *testing.T) {
	s := steering(1)
	c := newController(t, func(c *ratecontrol.Config) { c.Kind = ratecontrol.Paced })
	c.Start(s)
	if s.SendRate != 0 {
		t.Errorf("%v a second before anything is demanded", s.SendRate)
	}
	for _, rate := range []float64{1e9, 3e9} {
		if c.React(s, &ratecontrol.Signal{Event: ratecontrol.Demand, Rate: rate}); s.SendRate != rate {
			t.Errorf("%v a second where %v are demanded", s.SendRate, rate)
		}
	}
}

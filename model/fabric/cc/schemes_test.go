package cc

import (
	"math"
	"testing"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// ack returns an acknowledgement.
func ack(acked, next uint64) Signal { return Signal{Kind: Ack, Acked: acked, Next: next} }

func TestNone(t *testing.T) {
	for w, want := range map[Window]units.Bytes{WindowNone: 0, WindowBDP: 10000, WindowScaled: 10000} {
		a := must(NewNone(LineRate{Window: w}, units.Mbps))
		s := newSender(10 * units.Gbps)
		a.Start(0, &s)
		a.React(0, &s, &Signal{Kind: CNP})
		if s.Rate != s.Line || s.Window != want || s.Wake != sim.Forever || a.Wants() != (Wants{}) {
			t.Errorf("%v: %+v", w, s)
		}
	}
}

// TestDCTCP follows DCTCP by hand: 10G, g = 1/4, packets of 1000 B.
func TestDCTCP(t *testing.T) {
	a := must(newDCTCP(DCTCP{Gain: 0.25, RateAI: units.Gbps, Window: WindowScaled}, 100*units.Mbps))
	s := newSender(10 * units.Gbps)
	a.Start(0, &s)
	d := a.(*dctcp)
	for _, step := range []struct {
		what        string
		acked, next uint64
		mark        bool
		rate        units.BitRate
		window      units.Bytes
		alpha       float64
	}{
		{"first round trip: alpha 1 halves the rate, its length is 10+1", 1000, 10000, true, 5e9, 5000, 1},
		{"no second cut in the round trip", 2000, 11000, true, 5e9, 5000, 1},
		{"not yet over", 10000, 20000, true, 5e9, 5000, 1},
		// 3 of 11 before, and this one: 4/11; alpha = 3/4 + 1/11; the cut is over too.
		{"over, marked: alpha and another cut", 11000, 20000, true, 2897727272, 2897, 0.75 + 0.25*4/11},
		{"over, without marks: + AI", 21000, 30000, false, 3897727272, 3897, 0.75 * (0.75 + 0.25*4/11)},
		{"within", 22000, 31000, false, 3897727272, 3897, 0.75 * (0.75 + 0.25*4/11)},
	} {
		x := ack(step.acked, step.next)
		x.Marked = step.mark
		a.React(0, &s, &x)
		if s.Rate != step.rate || s.Window != step.window || math.Abs(d.qps[0].alpha-step.alpha) > 1e-15 {
			t.Fatalf("%s: rate %d, window %d, alpha %v; want %d, %d, %v", step.what, s.Rate, s.Window, d.qps[0].alpha,
				step.rate, step.window, step.alpha)
		}
	}
}

// TestTimely follows TIMELY by hand: alpha 1/2, beta 4/5, 50us to 500us, gradients over 20us.
func TestTimely(t *testing.T) {
	c := DefaultTimely()
	c.Alpha, c.RateAI, c.RateHAI, c.HyperAfter = 0.5, 100*units.Mbps, units.Gbps, 2
	a := must(newTimely(c, 100*units.Mbps))
	s := newSender(10 * units.Gbps)
	a.Start(0, &s)
	pos := uint64(0)
	for _, step := range []struct {
		what string
		rtt  sim.Time
		rate units.BitRate
	}{
		{"the first only counts", 100 * us, 10e9},
		{"gradient +: (0/2 + 10us/2)/20us = 1/4, times 1 - 0.8/4", 110 * us, 8e9},
		{"steeper: (5 + 50)/2 = 27.5us: 1 - 0.8*1.375 < 0, down to the least", 160 * us, 100 * units.Mbps},
		{"falling, but the average still rises: (27.5 - 20)/2", 140 * us, 100 * units.Mbps},
		{"gradient below 0: first", 100 * us, 200 * units.Mbps},
		{"second", 90 * us, 300 * units.Mbps},
		{"third is hyper", 80 * us, 1300 * units.Mbps},
		{"below TLow, whatever the gradient", 49*us + 999*ns, 2300 * units.Mbps},
		{"beyond THigh: 1 - 0.8 (1 - 500/1000)", 1000 * us, 1380 * units.Mbps},
		{"beyond THigh counts even if it falls", 501 * us, 1377796407},
	} {
		x := ack(pos+1000, pos+5000)
		x.RTT = step.rtt + 400 // picoseconds below the clock's resolution
		a.React(0, &s, &x)
		inside := ack(pos+4000, pos+9000)
		inside.RTT = 400 * us
		before := s.Rate
		a.React(0, &s, &inside)
		if s.Rate != before {
			t.Fatalf("%s: an acknowledgement within the round trip moves the rate", step.what)
		}
		pos += 5000
		if s.Rate != step.rate {
			t.Fatalf("%s: rate %d, want %d", step.what, s.Rate, step.rate)
		}
	}
}

// TestHPCC follows HPCC by hand: 10G, round trip 8us, BDP 8000 B.
func TestHPCC(t *testing.T) {
	for _, multi := range []bool{false, true} {
		c := HPCC{TargetUtilisation: 0.5, MaxStage: 1, RateAI: 100 * units.Mbps, FastReact: true, MultiRate: multi,
			Window: WindowScaled}
		a := must(newHPCC(c, 100*units.Mbps))
		s := newSender(10 * units.Gbps)
		a.Start(0, &s)
		hops := []Hop{{Rate: 10 * units.Gbps}, {Rate: 20 * units.Gbps}}
		for _, step := range []struct {
			what        string
			acked, next uint64
			dt          sim.Time
			bytes       uint64
			queue       units.Bytes
			rate        units.BitRate
		}{
			{"the first only stores", 1000, 8000, us, 1000, 0, 10e9},
			// 5000 B in 8us are 0.5 of 10G; over a whole round trip u = 1 is forgotten.
			{"fast: load 1: 10/1 + AI, at most the line", 2000, 9000, 8 * us, 5000, 0, 10e9},
			// 5000 B in 4us is u 1, half of the average: 0.75; load 1.5.
			{"fast: 10/1.5 + AI", 3000, 10000, 4 * us, 5000, 0, 6766666666},
			// 8 B over 8us: u 0.0008, stage 0 of 1: + AI on the reference of 10G.
			{"fast, idle: the reference is still the line's", 4000, 11000, 8 * us, 8, 0, 10e9},
			// 8000 B in 8us is 0.8, and the queue counts with the lesser of 0 and 800.
			{"full: 10/1.6 + AI", 9000, 16000, 8 * us, 8000, 800, 6350 * units.Mbps},
			// u = 0.4 + 800/10000 = 0.48, load 0.96: stage 0 to 1.
			{"full: + AI", 17000, 24000, 8 * us, 4000, 800, 6450 * units.Mbps},
			// The same u, but a second increase is one too many: 6.45/0.96 + AI.
			{"full: after MaxStage a division", 25000, 32000, 8 * us, 4000, 800, 6818750000},
		} {
			for i := range hops {
				hops[i].Time += step.dt
				hops[i].Bytes += step.bytes
				hops[i].Queue = step.queue
			}
			x := ack(step.acked, step.next)
			x.Hops = hops
			a.React(0, &s, &x)
			if d := s.Rate - step.rate; d > 1 || d < -1 {
				t.Fatalf("multi %v, %s: rate %d, want %d", multi, step.what, s.Rate, step.rate)
			}
			if want := units.Bytes(int64(s.Rate) / 1e6); s.Window != want {
				t.Fatalf("multi %v, %s: window %d, want %d", multi, step.what, s.Window, want)
			}
		}
		// A changed path is measured from the next packet on.
		before := s.Rate
		x := ack(25500, 33000)
		x.Hops = []Hop{{Time: 1, Bytes: 7, Rate: 10 * units.Gbps}}
		a.React(0, &s, &x)
		if s.Rate != before {
			t.Errorf("multi %v: a clock that goes back moves the rate", multi)
		}
	}
}

func TestHPCCOptions(t *testing.T) {
	c := defaultHPCC()
	c.SampleFeedback, c.FastReact = true, true
	a := must(newHPCC(c, units.Mbps))
	s := newSender(10 * units.Gbps)
	a.Start(0, &s)
	x := ack(1000, 8000)
	x.Hops = []Hop{{Rate: 10 * units.Gbps, Time: us}}
	a.React(0, &s, &x)
	x = ack(2000, 9000)
	x.Hops = []Hop{{Rate: 10 * units.Gbps, Time: 9 * us, Bytes: 20000}}
	a.React(0, &s, &x)
	if s.Rate != s.Line {
		t.Error("a hop without a queue counts within the round trip")
	}
	c.SampleFeedback, c.FastReact = false, false
	a = must(newHPCC(c, units.Mbps))
	a.Start(0, &s)
	for _, x := range []Signal{ack(1000, 8000), ack(2000, 9000)} {
		x.Hops = []Hop{{Rate: 10 * units.Gbps, Time: sim.Time(x.Acked) * us, Bytes: x.Acked * 1e7}}
		a.React(0, &s, &x)
	}
	if s.Rate != s.Line {
		t.Error("without FastReact the rate moves within the round trip")
	}
}

func TestQuantise(t *testing.T) {
	h := Hop{Time: 12345678, Bytes: 1000, Queue: 999, Rate: 1}
	if got := Quantise(h, 0); got != (Hop{12345000, 896, 960, 1}) {
		t.Errorf("%+v", got)
	}
	if got := Quantise(h, 4); got != (Hop{12345000, 512, 960, 1}) {
		t.Errorf("times 4: %+v", got)
	}
}

// TestCodec verifies that decoded values have the right mean and that codes round to a power.
func TestCodec(t *testing.T) {
	c, err := NewCodec(1.05)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Bytes(); got != 1 {
		t.Errorf("base 1.05 takes %d B, want 1", got)
	}
	r := rng.NewStream(1, "codec")
	for _, u := range []float64{0, 1e-9, 1.0 / 512, 0.01, 0.3, 0.95, 1, 1.7, 512} {
		want := max(1, math.Ceil(u*512)) / 512
		mean := 0.0
		const n = 20000
		for range n {
			v := c.decode(c.encode(u, &r))
			if v > want*1.0501 || v < want/1.0501 {
				t.Fatalf("%v comes back as %v", u, v)
			}
			mean += v / n
		}
		if math.Abs(mean/want-1) > 0.002 {
			t.Errorf("%v comes back as %v in the mean, want %v", u, mean, want)
		}
	}
}

// TestMeter compares the switch's approximate arithmetic with exact arithmetic.
func TestMeter(t *testing.T) {
	c, _ := NewCodec(1.05)
	r := rng.NewStream(1, "meter")
	const rate, rtt = 100 * units.Gbps, 13 * us
	var m Meter
	exact, last, size := 0.0, sim.Time(0), units.Bytes(0)
	now := sim.Time(0)
	for range 20000 {
		now += sim.Time(84+r.IntN(60)) * ns
		queue := units.Bytes(r.IntN(200000))
		if r.IntN(8) == 0 {
			m.Pass(now, 60)
			last, size = now, 60
			continue
		}
		dt := min(float64(now-last), float64(rtt)) / 1000
		whole := float64(rtt / ns)
		u := exact * (whole - dt) / whole
		u += float64(size) / (float64(rate) / 8e9) / whole
		u += float64(queue>>8<<8) * dt / (float64(rate) / 8e9) / (whole * whole)
		exact, last, size = u, now, 1048
		m.Update(now, 1048, queue, rate, rtt, c, &r)
		if math.Abs(m.utilisation()-exact) > 0.02*exact {
			t.Fatalf("at %v: utilisation %v, exactly %v", now, m.utilisation(), exact)
		}
	}
	for _, x := range []int64{1, 2, 3, 255, 256, 1000, 1 << 15, 65535, 65536, 1 << 20, 123456789} {
		if got, want := float64(approximateLog(x, &r))/logUnit, math.Log2(float64(x)); math.Abs(got-want) > 6e-5 {
			t.Errorf("log2(%d) = %v, want %v", x, got, want)
		}
	}
}

// TestPINT follows HPCC-PINT by hand.
func TestPINT(t *testing.T) {
	a := must(newPINT(PINT{TargetUtilisation: 0.5, MaxStage: 1, RateAI: 100 * units.Mbps, LogBase: 2, Probability: 1},
		100*units.Mbps, 1))
	s := newSender(10 * units.Gbps)
	a.Start(0, &s)
	for _, step := range []struct {
		what        string
		acked, next uint64
		power       uint16
		rate        units.BitRate
	}{
		{"the first only counts", 1000, 8000, 9, 10e9},
		{"fast: 2^9/512 = 1, load 2", 2000, 9000, 9, 5100 * units.Mbps},
		{"fast again, from the same reference", 3000, 10000, 9, 5100 * units.Mbps},
		{"full", 9000, 16000, 9, 5100 * units.Mbps},
		{"full: load 1/2: + AI", 17000, 24000, 7, 5200 * units.Mbps},
		{"full: the second increase divides by 1/2", 25000, 32000, 7, 10e9},
	} {
		x := ack(step.acked, step.next)
		x.Power = step.power
		a.React(0, &s, &x)
		if s.Rate != step.rate {
			t.Fatalf("%s: rate %d, want %d", step.what, s.Rate, step.rate)
		}
	}
	// One in four is used.
	c := defaultPINT()
	c.Probability = 0.25
	a = must(newPINT(c, units.Mbps, 7))
	a.Start(2, &s)
	first := ack(1, 1e6)
	for a.(*pint).qps[2].round == 0 {
		a.React(2, &s, &first)
	}
	moved := 0
	for range 10000 {
		s.Rate = 1
		x := ack(2, 1e6)
		x.Power = 400
		a.React(2, &s, &x)
		if s.Rate != 1 {
			moved++
		}
	}
	if moved < 2300 || moved > 2700 {
		t.Errorf("%d of 10000 acknowledgements were looked at, want 2500", moved)
	}
}

// TestSwift follows Swift by hand: target 25us, no flow scaling.
func TestSwift(t *testing.T) {
	c := defaultSwift()
	c.FlowScaling, c.TargetPerHop, c.InitialWindow = 0, 5*us, 4
	a := must(newSwift(c))
	s := newSender(10 * units.Gbps)
	a.Start(0, &s)
	w := a.(*swift)
	var acked uint64
	for _, step := range []struct {
		what    string
		kind    Kind
		now     sim.Time
		rtt     sim.Time
		packets uint64
		window  float64
		bytes   units.Bytes
		rate    units.BitRate
	}{
		{"below target: + 1/4 for each of two packets", Ack, 10 * us, 29 * us, 2, 4.5, 4500, 10e9},
		{"1 - 0.8 (40 - 30)/40 = 0.8", Ack, 20 * us, 40 * us, 1, 3.6, 3600, 10e9},
		{"no second decrease within a round trip of 40us", Ack, 59 * us, 300 * us, 1, 3.6, 3600, 10e9},
		{"now the round trip is 300us", Ack, 319 * us, 300 * us, 1, 3.6, 3600, 10e9},
		{"at most half", Ack, 320 * us, 300 * us, 1, 1.8, 1800, 10e9},
		{"below one packet: 900 B per 300us", Timeout, 620 * us, 0, 0, 0.9, 1000, 24 * units.Mbps},
		{"below one packet each packet adds 1", Ack, 630 * us, 20 * us, 1, 1.9, 1900, 10e9},
	} {
		acked += step.packets * 1000
		a.React(0, &s, &Signal{Kind: step.kind, Now: step.now, RTT: step.rtt, Acked: acked, Next: acked + 4000})
		if math.Abs(w.qps[0].window-step.window) > 1e-12 || s.Window < step.bytes-1 || s.Window > step.bytes ||
			s.Rate != step.rate {
			t.Fatalf("%s: window %v, %d B at %v; want %v, %d B at %v", step.what, w.qps[0].window, s.Window, s.Rate,
				step.window, step.bytes, step.rate)
		}
	}
	for i := range 5 {
		a.React(0, &s, &Signal{Kind: Timeout, Now: sim.Time(i) * units.Millisecond})
	}
	if got := w.qps[0].window; got != c.MinWindow {
		t.Errorf("window %v after five timeouts", got)
	}
	// Flow scaling at the ends of its range.
	w = must(newSwift(defaultSwift())).(*swift)
	for window, want := range map[float64]sim.Time{0.01: 127 * us, 0.1: 127 * us, 100: 27 * us, 1000: 27 * us} {
		if got := w.target(window, 2); got < want-2 || got > want+2 {
			t.Errorf("target for %v packets is %v, want %v", window, got, want)
		}
	}
	if got := w.target(1, 0); math.Abs(float64(got)/float64(us)-(25+100*0.9/(math.Sqrt(10)-0.1))) > 1e-6 {
		t.Errorf("target for one packet is %v", got)
	}
}

// TestHPCCPath verifies that after a change of path no counter of the old path is subtracted; with the header of HPCC's
// ns-3 it is, and its counters wrap around.
func TestHPCCPath(t *testing.T) {
	hop := func(at sim.Time, bytes uint64) []Hop {
		return []Hop{{Time: at, Bytes: bytes, Rate: 100 * units.Gbps}}
	}
	for _, perHop := range []bool{false, true} {
		c := defaultHPCC()
		c.MultiRate = perHop
		begin := func() (Algorithm, *Sender) {
			a := must(newHPCC(c, 100*units.Mbps))
			s := newSender(100 * units.Gbps)
			a.Start(0, &s)
			for i := range uint64(20) { // half of the link
				x := ack(1000*(i+1), 1000*(i+2))
				x.Now = sim.Time(i) * units.Microsecond
				x.Hops, x.Path = hop(x.Now, 6250*i), 7
				a.React(0, &s, &x)
			}
			return a, &s
		}
		a, s := begin()
		was := s.Rate
		x := ack(21000, 22000)
		x.Hops, x.Path = hop(20*units.Microsecond, 1<<40), 8
		a.React(0, s, &x)
		if s.Rate != was {
			t.Errorf("a rate for each hop %v: on another way the rate goes from %v to %v at once", perHop, was, s.Rate)
		}
		x = ack(22000, 23000)
		x.Hops, x.Path = hop(21*units.Microsecond, 1<<40+6250), 8
		a.React(0, s, &x)
		if s.Rate < was {
			t.Errorf("a rate for each hop %v: half of the new way's link takes the rate from %v to %v", perHop, was,
				s.Rate)
		}
		a, s = begin()
		x = ack(21000, 22000)
		x.Hops, x.Path, x.Multiple = hop(20*units.Microsecond, 100<<20), 8, 1
		a.React(0, s, &x)
		if s.Rate >= was {
			t.Errorf("a rate for each hop %v: HPCC's ns-3 subtracts other ports' counts, the rate goes from %v to %v",
				perHop, was, s.Rate)
		}
	}
	s := newSender(100 * units.Gbps)
	a, b := Quantise(Hop{Time: 16_777_000 * units.Nanosecond, Bytes: 1<<27 - 128, Rate: 100 * units.Gbps}, 1),
		Quantise(Hop{Time: 16_778_000 * units.Nanosecond, Bytes: 1<<27 + 6144, Rate: 100 * units.Gbps}, 1)
	if b.Time > a.Time || b.Bytes > a.Bytes {
		t.Errorf("%+v and %+v do not wrap around", a, b)
	}
	// 6272 B in a microsecond are half of the link.
	if u, ns, ok := measure(&a, &b, &s, 1); !ok || ns != 1000 || math.Abs(u-6272*8e-3/100) > 1e-12 {
		t.Errorf("utilisation %v over %v ns, %v", u, ns, ok)
	}
	if _, _, ok := measure(&a, &b, &s, 0); ok {
		t.Error("exact counters that go backward are taken")
	}
}

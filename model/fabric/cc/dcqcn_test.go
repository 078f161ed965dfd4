package cc

import (
	"fmt"
	"testing"
	"unsafe"

	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

const (
	us = units.Microsecond
	ns = units.Nanosecond
)

// must returns New's result and panics on an error.
func must(a Algorithm, err error) Algorithm {
	if err != nil {
		panic(err)
	}
	return a
}

// newSender returns a queue pair of a host with the given line rate.
func newSender(line units.BitRate) Sender {
	return Sender{Line: line, BaseRTT: 8 * us, BDP: units.Bytes(line/8) * 8 / 1e6, MTU: 1000, Hops: 1}
}

// wakeUntil delivers the timers that are due, up to and including t.
func wakeUntil(a Algorithm, s *Sender, t sim.Time) {
	for s.Wake <= t {
		at := s.Wake
		s.Wake = sim.Forever
		a.React(0, s, &Signal{Kind: Timer, Now: at})
	}
}

// TestDCQCNPaper follows the paper's state machine by hand: 10G, g = 1/4, F = 2, AI 1G, HAI 2G.
func TestDCQCNPaper(t *testing.T) {
	c := DefaultDCQCN()
	c.Gain, c.FastRecovery, c.RateAI, c.RateHAI = 0.25, 2, units.Gbps, 2*units.Gbps
	c.ByteCounter = 10 * units.KB
	a := must(newDCQCN(c, 100*units.Mbps))
	s := newSender(10 * units.Gbps)
	a.Start(0, &s)
	d := a.(*dcqcn)
	step := func(what string, x Signal, wantRate, wantTarget units.BitRate, wantAlpha float64) {
		t.Helper()
		if x.Kind == Timer {
			wakeUntil(a, &s, x.Now)
		} else {
			a.React(0, &s, &x)
		}
		st := &d.qps[0]
		if s.Rate != wantRate || st.target != wantTarget || st.alpha != wantAlpha {
			t.Fatalf("%s: rate %v, target %v, alpha %v; want %v, %v, %v", what, s.Rate, st.target, st.alpha, wantRate,
				wantTarget, wantAlpha)
		}
	}
	step("nothing yet", Signal{Kind: Sent, Now: 1 * us, Payload: 90000}, 10e9, 10e9, 1)
	step("first CNP", Signal{Kind: CNP, Now: 100 * us}, 5e9, 10e9, 1)
	step("fast recovery by time, T=1", Signal{Kind: Timer, Now: 155 * us}, 7.5e9, 10e9, 1)
	step("CNP: alpha decays once, cuts, is raised", Signal{Kind: CNP, Now: 156 * us}, 4687500000, 7.5e9, 0.8125)
	step("fast recovery by bytes, B=1", Signal{Kind: Sent, Now: 157 * us, Payload: 10001}, 6093750000, 7.5e9, 0.8125)
	step("additive, B=2", Signal{Kind: Sent, Now: 158 * us, Payload: 10001}, 7296875000, 8.5e9, 0.8125)
	step("additive, B=3, T=0", Signal{Kind: Sent, Now: 159 * us, Payload: 10001}, 8398437500, 9.5e9, 0.8125)
	step("exactly the counter is not enough", Signal{Kind: Sent, Now: 160 * us, Payload: 10000}, 8398437500, 9.5e9,
		0.8125)
	step("additive by time, T=1; the target stops at the line's rate", Signal{Kind: Timer, Now: 211 * us}, 9199218750,
		10e9, 0.8125)
	step("T=2, T=3: B=3 and T=3 exceed F: hyper, but the target is there", Signal{Kind: Timer, Now: 321 * us},
		9799804687, 10e9, 0.8125)
	if s.Wake != 376*us {
		t.Errorf("woken at %v, want 376us", s.Wake)
	}
}

// TestDCQCNMellanox follows the other state machine by hand: 10G, g = 1/4, alpha 2us, check 4us, increase 10us, F = 1.
func TestDCQCNMellanox(t *testing.T) {
	c := MellanoxDCQCN(10 * units.Gbps)
	c.Gain, c.AlphaInterval, c.RateIncreaseTimer, c.RateAI, c.RateHAI = 0.25, 2*us, 10*us, units.Gbps, 4*units.Gbps
	a := must(newDCQCN(c, 100*units.Mbps))
	s := newSender(10 * units.Gbps)
	a.Start(0, &s)
	d := a.(*dcqcn)
	cnp := func(at sim.Time) { a.React(0, &s, &Signal{Kind: CNP, Now: at}) }
	check := func(what string, wantRate, wantTarget units.BitRate, wake sim.Time) {
		t.Helper()
		if s.Rate != wantRate || d.qps[0].target != wantTarget || s.Wake != wake {
			t.Fatalf("%s: rate %v, target %v, wake %v; want %v, %v, %v", what, s.Rate, d.qps[0].target, s.Wake,
				wantRate, wantTarget, wake)
		}
	}
	cnp(100 * us)
	check("first CNP", 10e9, 10e9, 104*us+ns)
	wakeUntil(a, &s, 105*us)
	// Alpha decayed at 102 and 104 us: 1 * 9/16.
	check("cut", 7187500000, 10e9, 114*us+ns)
	cnp(106 * us) // alpha falls at 106 to 27/64; this CNP is in the epoch 106 to 108
	check("pending", 7187500000, 10e9, 108*us+ns)
	wakeUntil(a, &s, 109*us)
	// Alpha at 108 us: 3/4 * 27/64 + 1/4 = 145/256; no increase since, the target stays.
	check("second cut", 5151977539, 10e9, 118*us+ns)
	wakeUntil(a, &s, 118*us+ns)
	check("one fast recovery", 7575988769, 10e9, 128*us+ns)
	cnp(120*us + ns) // at the very end of an interval, so it counts for the next
	check("pending", 7575988769, 10e9, 124*us+ns)
	wakeUntil(a, &s, 127*us)
	if d.qps[0].target != 7575988769 {
		t.Fatalf("target %v: after an increase a cut lowers it", d.qps[0].target)
	}
	before := s.Rate
	wakeUntil(a, &s, 134*us+ns) // fast recovery
	wakeUntil(a, &s, 144*us+ns) // additive
	if got := d.qps[0].target; got != 8575988769 {
		t.Errorf("target %v after the additive increase, want 8575988769", got)
	}
	wakeUntil(a, &s, 154*us+ns) // hyper
	if got := d.qps[0].target; got != 10e9 || s.Rate <= before {
		t.Errorf("target %v after the hyper increase, want 10 Gbps", got)
	}
	wakeUntil(a, &s, units.Second)
	if s.Wake != sim.Forever || s.Rate < 10e9-1 {
		t.Errorf("at rest: woken at %v at rate %v", s.Wake, s.Rate)
	}
}

// clock holds the timers of an eager machine, in ns-3's order: by time, then by when they were scheduled.
type clock struct {
	at, order [3]int64
	run       [3]func()
	now, n    int64
}

func (c *clock) set(i int, after int64) {
	c.n++
	c.at[i], c.order[i] = c.now+after, c.n
}

func (c *clock) until(t int64) {
	for {
		next := -1
		for i := range c.at {
			if c.at[i] >= 0 && c.at[i] <= t &&
				(next < 0 || c.at[i] < c.at[next] || c.at[i] == c.at[next] && c.order[i] < c.order[next]) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		c.now = c.at[next]
		c.at[next] = -1
		c.run[next]()
	}
	c.now = t
}

// eager is a state machine that steps every timer.
type eager struct {
	clock
	c                  DCQCN
	line, min          int64
	rate, target       int64
	alpha              float64
	stage, bytes       int
	left               int64
	first, seen, check bool
	state              int // ns3-rdma's rpStage
}

const (
	alphaTimer = iota
	lookTimer
	increaseTimer
)

func newEager(c DCQCN, line, min units.BitRate) *eager {
	e := &eager{c: c, line: int64(line), min: int64(min), rate: int64(line), target: int64(line), first: true,
		left: int64(c.ByteCounter), alpha: float64(c.AlphaInitial)}
	e.at = [3]int64{-1, -1, -1}
	return e
}

func (e *eager) cutRate() { e.rate = max(e.min, int64(float64(e.rate)*(1-e.alpha/2))) }

func (e *eager) mean() { e.rate = min(e.line, max(e.min, e.rate/2+e.target/2)) }

// mellanox makes e HPCC's machine; it returns the reaction to a CNP.
func (e *eager) mellanox() func() {
	g := float64(e.c.Gain)
	e.run[alphaTimer] = func() {
		e.alpha *= 1 - g
		if e.seen {
			e.alpha += g
		}
		e.seen = false
		e.set(alphaTimer, int64(e.c.AlphaInterval))
	}
	e.run[lookTimer] = func() {
		e.set(lookTimer, int64(e.c.RateDecreaseInterval))
		if !e.check {
			return
		}
		if e.c.ClampTarget == ClampAlways || e.stage != 0 {
			e.target = e.rate
		}
		e.cutRate()
		e.stage, e.check = 0, false
		e.set(increaseTimer, int64(e.c.RateIncreaseTimer))
	}
	e.run[increaseTimer] = func() {
		e.set(increaseTimer, int64(e.c.RateIncreaseTimer))
		switch {
		case e.stage < e.c.FastRecovery:
		case e.stage == e.c.FastRecovery:
			e.target = min(e.line, e.target+int64(e.c.RateAI))
		default:
			e.target = min(e.line, e.target+int64(e.c.RateHAI))
		}
		e.mean()
		e.stage++
	}
	return func() {
		e.seen, e.check = true, true
		if e.first {
			e.alpha, e.seen, e.first = 1, false, false
			e.set(alphaTimer, int64(e.c.AlphaInterval))
			e.set(lookTimer, int64(e.c.RateDecreaseInterval+ns))
			e.rate = int64(float64(e.c.RateOnFirstCNP) * float64(e.rate))
			e.target = e.rate
		}
	}
}

// paper makes e the machine of SIGCOMM 2015.
func (e *eager) paper() (cnp func(), sent func(int64)) {
	g := float64(e.c.Gain)
	f := e.c.FastRecovery
	increase := func() {
		switch lo, hi := min(e.stage, e.bytes), max(e.stage, e.bytes); {
		case hi < f:
		case lo > f:
			e.target = min(e.line, e.target+int64(lo-f)*int64(e.c.RateHAI))
		default:
			e.target = min(e.line, e.target+int64(e.c.RateAI))
		}
		e.mean()
	}
	e.run[alphaTimer] = func() { e.alpha *= 1 - g; e.set(alphaTimer, int64(e.c.AlphaInterval)) }
	e.run[increaseTimer] = func() { e.stage++; e.set(increaseTimer, int64(e.c.RateIncreaseTimer)); increase() }
	return func() {
			e.first = false
			e.target = e.rate
			e.cutRate()
			e.alpha = (1-g)*e.alpha + g
			e.stage, e.bytes, e.left = 0, 0, int64(e.c.ByteCounter)
			e.set(alphaTimer, int64(e.c.AlphaInterval))
			e.set(increaseTimer, int64(e.c.RateIncreaseTimer))
		}, func(n int64) {
			if e.left -= n; !e.first && e.left < 0 {
				e.left = int64(e.c.ByteCounter)
				e.bytes++
				increase()
			}
			if e.first {
				e.left = int64(e.c.ByteCounter)
			}
		}
}

// ns3rdma makes e the machine of ns3-rdma, with its states 1 to 3.
func (e *eager) ns3rdma() (cnp func(), sent func(int64)) {
	g, f := float64(e.c.Gain), e.c.FastRecovery
	adjust := func(more int64) {
		if (e.bytes == 1 || e.stage == 1) && e.target > 10*e.rate {
			e.target /= 8
		} else {
			e.target = min(e.target+more, int64(top))
		}
		e.mean()
	}
	active := func() { adjust(int64(e.c.RateAI)); e.state = 2 }
	hyper := func() { adjust(int64(e.c.RateHAI) * int64(min(e.bytes, e.stage)-f+1)); e.state = 3 }
	choose := func() {
		if e.bytes < f || e.stage < f {
			active()
		} else {
			hyper()
		}
	}
	e.run[alphaTimer] = func() { e.alpha *= 1 - g; e.set(alphaTimer, int64(e.c.AlphaInterval)) }
	e.run[increaseTimer] = func() {
		e.stage++
		period := int64(e.c.RateIncreaseTimer)
		if e.state == 3 {
			period /= 2
		}
		e.set(increaseTimer, period)
		switch {
		case e.state == 3:
			hyper()
		case e.state == 2 || e.stage >= f:
			choose()
		default:
			adjust(0)
		}
	}
	return func() {
			if e.c.ClampTarget == ClampAlways || e.bytes != 0 || e.c.ClampTarget == ClampAfterIncrease && e.stage != 0 {
				e.target, e.left = e.rate, int64(e.c.ByteCounter)
			}
			e.bytes, e.stage = 0, 0
			e.alpha = (1-g)*e.alpha + g
			e.cutRate()
			e.set(alphaTimer, int64(e.c.AlphaInterval))
			e.set(increaseTimer, int64(e.c.RateIncreaseTimer))
			e.state = 1
		}, func(n int64) {
			if e.state == 0 {
				return
			}
			if e.left -= n; e.left >= 0 {
				return
			}
			e.bytes++
			e.left = int64(e.c.ByteCounter)
			switch e.state {
			case 1:
				if e.bytes < f {
					adjust(0)
				} else {
					choose()
				}
			case 2:
				active()
			case 3:
				e.left /= 2
				hyper()
			}
		}
}

// TestDCQCNLazyIsEager drives the lazy machine and one that steps every timer with the same CNPs and packets, and
// verifies that their rates are equal.
func TestDCQCNLazyIsEager(t *testing.T) {
	for _, machine := range []string{"mellanox", "paper", "ns3-rdma"} {
		t.Run(machine, func(t *testing.T) { rapid.Check(t, func(r *rapid.T) { lazyIsEager(r, machine) }) })
	}
}

func lazyIsEager(r *rapid.T, machine string) {
	const least = 100 * units.Mbps
	micro := func(label string, of ...int) sim.Time { return sim.Time(rapid.SampledFrom(of).Draw(r, label)) * us }
	line := rapid.SampledFrom([]units.BitRate{10e9, 25e9, 40e9 + 1, 100e9}).Draw(r, "line")
	var c DCQCN
	var e *eager
	var cnp func()
	sent := func(int64) {}
	tune := func() {
		c.Gain = units.Fraction(1 / rapid.SampledFrom([]float64{2, 16, 256}).Draw(r, "1/g"))
		c.AlphaInterval = micro("alpha", 1, 50, 55)
		c.RateIncreaseTimer = micro("increase", 2, 4, 55, 300)
		c.FastRecovery = rapid.IntRange(1, 5).Draw(r, "F")
		if c.ByteCounter > 0 {
			c.ByteCounter = units.Bytes(rapid.SampledFrom([]int{1500, 20000, 1 << 20}).Draw(r, "bytes"))
		}
	}
	switch machine {
	case "mellanox":
		c = MellanoxDCQCN(line)
		tune()
		c.RateDecreaseInterval = micro("look", 4, 50)
		c.RateOnFirstCNP = rapid.SampledFrom([]units.Fraction{1, 0.5}).Draw(r, "first")
		c.ClampTarget = rapid.SampledFrom([]Clamp{ClampAlways, ClampAfterIncrease}).Draw(r, "clamp")
		e = newEager(c, line, least)
		cnp = e.mellanox()
	case "paper":
		c = DefaultDCQCN()
		tune()
		e = newEager(c, line, least)
		cnp, sent = e.paper()
	case "ns3-rdma":
		c = NS3RDMADCQCN()
		tune()
		c.ClampTarget = Clamp(rapid.IntRange(0, 2).Draw(r, "clamp"))
		e = newEager(c, line, least)
		cnp, sent = e.ns3rdma()
	}
	a := must(newDCQCN(c, least))
	s := newSender(line)
	a.Start(0, &s)
	timersFirst := rapid.Bool().Draw(r, "timers first")
	now := sim.Time(0)
	for i := range rapid.IntRange(1, 120).Draw(r, "steps") {
		switch rapid.IntRange(0, 3).Draw(r, "gap") {
		case 0:
			now += sim.Time(rapid.IntRange(0, 3000).Draw(r, "ns")) * ns
		case 1:
			now += sim.Time(rapid.IntRange(0, 60).Draw(r, "us")) * us
		case 2:
			now += sim.Time(rapid.IntRange(0, 900).Draw(r, "us")) * us
		case 3:
			now += sim.Time(rapid.IntRange(0, 1).Draw(r, "1ns"))*ns + 4*us
		}
		e.until(int64(now))
		if timersFirst {
			wakeUntil(a, &s, now)
		} else {
			wakeUntil(a, &s, now-1)
		}
		kind := Timer
		switch rapid.IntRange(0, 4).Draw(r, "kind") {
		case 0, 1:
			kind = CNP
			cnp()
			a.React(0, &s, &Signal{Kind: CNP, Now: now})
		case 2, 3:
			n := rapid.Int64Range(1, 30000).Draw(r, "payload")
			kind = Sent
			sent(n)
			a.React(0, &s, &Signal{Kind: Sent, Now: now, Payload: units.Bytes(n)})
		default:
			wakeUntil(a, &s, now)
		}
		st := a.(*dcqcn).qps[0]
		// Alpha folded over more than 32 intervals may differ in its last bits, which can move a rate by 1 bit/s;
		// halving two rates makes that at most 2.
		if d := int64(s.Rate) - e.rate; d > 3 || d < -3 {
			r.Fatalf("step %d, %v at %v: rate %d, eagerly %d (target %d, %d; alpha %v, %v)", i, kind, now, s.Rate,
				e.rate, st.target, e.target, st.alpha, e.alpha)
		}
		if d := int64(st.target) - e.target; d > 3 || d < -3 {
			r.Fatalf("step %d, %v at %v: target %d, eagerly %d", i, kind, now, st.target, e.target)
		}
	}
}

// TestDCQCNAlphaFolds compares one step over many intervals with many steps over one.
func TestDCQCNAlphaFolds(t *testing.T) {
	d := must(newDCQCN(MellanoxDCQCN(100*units.Gbps), units.Mbps)).(*dcqcn)
	for _, n := range []int{1, 2, 31, 32, 33, 34, 100, 3000} {
		for _, seen := range []bool{false, true} {
			once := dcqcnState{alpha: 0.7, seen: seen}
			each := once
			d.fold(&once, sim.Time(n)*us+999*ns)
			for i := range n {
				d.fold(&each, sim.Time(i+1)*us)
			}
			if rel := once.alpha/each.alpha - 1; rel > 1e-12 || rel < -1e-12 || once.alphaAt != each.alphaAt {
				t.Errorf("%d intervals, CNP %v: alpha %v at %v, stepwise %v at %v", n, seen, once.alpha, once.alphaAt,
					each.alpha, each.alphaAt)
			}
		}
	}
}

// TestDCQCNIdleCostsNothing verifies that a queue pair at line rate requests no timer.
func TestDCQCNIdleCostsNothing(t *testing.T) {
	for _, c := range []DCQCN{DefaultDCQCN(), MellanoxDCQCN(10 * units.Gbps)} {
		a := must(newDCQCN(c, units.Mbps))
		s := newSender(10 * units.Gbps)
		a.Start(0, &s)
		if s.Wake != sim.Forever || s.Window != 0 || s.Rate != s.Line {
			t.Errorf("at the start: %+v", s)
		}
		a.React(0, &s, &Signal{Kind: CNP, Now: us})
		wakes := 0
		for s.Wake != sim.Forever {
			at := s.Wake
			s.Wake = sim.Forever
			a.React(0, &s, &Signal{Kind: Timer, Now: at})
			wakes++
		}
		if wakes > 80 {
			t.Errorf("%d wakes until a queue pair is at rest", wakes)
		}
	}
	if n := unsafe.Sizeof(dcqcnState{}); n > 64 {
		t.Errorf("a queue pair takes %d B", n)
	}
}

func BenchmarkDCQCN(b *testing.B) {
	for _, m := range []struct {
		name string
		c    DCQCN
		gap  sim.Time
	}{
		{"paper/50us", DefaultDCQCN(), 50 * us},
		{"mellanox/100ns", MellanoxDCQCN(100 * units.Gbps), 100 * ns},
		{"mellanox/500ns", MellanoxDCQCN(100 * units.Gbps), 500 * ns},
	} {
		b.Run(fmt.Sprintf("CNP/%s", m.name), func(b *testing.B) {
			a := must(newDCQCN(m.c, units.Mbps))
			s := newSender(100 * units.Gbps)
			a.Start(0, &s)
			x := Signal{Kind: CNP}
			b.ReportAllocs()
			for b.Loop() {
				x.Now += m.gap
				a.React(0, &s, &x)
			}
		})
	}
}

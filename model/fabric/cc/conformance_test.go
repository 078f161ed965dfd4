package cc

import (
	"encoding"
	"reflect"
	"strings"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

// Tests that every algorithm must pass. They include a new one as soon as it has a Scheme.

// schemesUnderTest returns all algorithms, and variants whose options select other state machines.
func schemesUnderTest() map[string]Config {
	out := map[string]Config{}
	for k := range schemes {
		c := DefaultConfig()
		c.Algorithm = k
		out[k.String()] = c
	}
	c := out["dcqcn"]
	c.DCQCN = MellanoxDCQCN(100 * units.Gbps)
	c.DCQCN.Window = WindowScaled
	out["dcqcn/mellanox"] = c
	c.DCQCN = NS3RDMADCQCN()
	c.DCQCN.ByteCounter = 10000
	out["dcqcn/ns3-rdma"] = c
	c = out["hpcc"]
	c.HPCC.MultiRate, c.HPCC.SampleFeedback = true, true
	out["hpcc/multi"] = c
	c = out["tcp"]
	c.TCP.Growth = GrowthNewReno
	out["tcp/newreno"] = c
	c.TCP.Growth = GrowthDCTCP
	out["tcp/dctcp"] = c
	c = out["hpcc-pint"]
	c.PINT.Probability = 0.5
	out["hpcc-pint/sampled"] = c
	return out
}

// anySignal draws a signal that some network may send, sensible or not.
func anySignal(r *rapid.T, now sim.Time) Signal {
	x := Signal{
		Kind: Kind(rapid.IntRange(0, int(kinds)-1).Draw(r, "kind")), Marked: rapid.Bool().Draw(r, "marked"),
		Power: rapid.Uint16().Draw(r, "power"),
		Now:   now,
		Acked: rapid.Uint64Range(0, 1<<40).Draw(r, "acked"), Next: rapid.Uint64Range(0, 1<<40).Draw(r, "next"),
		Payload: units.Bytes(rapid.Int64Range(0, 1<<20).Draw(r, "payload")),
		Pulls:   rapid.Int32Range(0, 1<<10).Draw(r, "pulls"),
		RTT:     sim.Time(rapid.Int64Range(0, int64(10*units.Millisecond)).Draw(r, "rtt")),
	}
	for range rapid.IntRange(0, MaxHops+1).Draw(r, "hops") {
		x.Hops = append(x.Hops, Hop{
			Time:  sim.Time(rapid.Int64Range(0, int64(units.Millisecond)).Draw(r, "time")),
			Bytes: rapid.Uint64Range(0, 1<<50).Draw(r, "bytes"),
			Queue: units.Bytes(rapid.Int64Range(0, 1<<30).Draw(r, "queue")),
			Rate:  units.BitRate(rapid.Int64Range(0, 4e11).Draw(r, "rate")),
		})
	}
	return x
}

// TestRatesStayInBounds feeds arbitrary signals to every algorithm.
func TestRatesStayInBounds(t *testing.T) {
	for name, c := range schemesUnderTest() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				line := units.BitRate(rapid.Int64Range(1e8, 1e12).Draw(r, "line"))
				c := c
				c.MinRate = units.BitRate(rapid.Int64Range(1, int64(line)).Draw(r, "min"))
				a := must(New(c, 1))
				s := Sender{Line: line,
					BaseRTT: sim.Time(rapid.Int64Range(1, int64(units.Millisecond)).Draw(r, "base")), Wake: 1}
				s.BDP = units.Bytes(float64(line) / 8 * s.BaseRTT.Seconds())
				if rapid.Bool().Draw(r, "mtu") {
					s.MTU = 4096
				}
				const q = 3
				a.Start(q, &s)
				low := c.MinRate
				if c.Algorithm == SchemeSwift {
					low = 1
				}
				now := sim.Time(0)
				check := func() {
					if s.Rate < low || s.Rate > line || s.Window < 0 || s.Wake <= now && now > 0 {
						r.Fatalf("rate %v of %v to %v, window %v, wake %v at %v", s.Rate, low, line, s.Window, s.Wake,
							now)
					}
				}
				check()
				for range rapid.IntRange(1, 60).Draw(r, "signals") {
					now += sim.Time(rapid.Int64Range(1, int64(100*us)).Draw(r, "gap"))
					for s.Wake <= now {
						at := s.Wake
						s.Wake = sim.Forever
						a.React(q, &s, &Signal{Kind: Timer, Now: at})
						if s.Wake <= at {
							r.Fatalf("woken at %v, it asks for %v", at, s.Wake)
						}
					}
					x := anySignal(r, now)
					a.React(q, &s, &x)
					check()
				}
			})
		})
	}
}

// TestReactAllocatesNothing verifies that Start and React do not allocate.
func TestReactAllocatesNothing(t *testing.T) {
	for name, c := range schemesUnderTest() {
		a := must(New(c, 1))
		s := newSender(100 * units.Gbps)
		a.Start(0, &s)
		hops := make([]Hop, 3)
		var now sim.Time
		var pos uint64
		x := new(Signal) // on the heap, as the network's is: it passes through an interface
		n := testing.AllocsPerRun(500, func() {
			for kind := range kinds {
				now += 3 * us
				pos += 1000
				for i := range hops {
					hops[i] = Hop{Time: now, Bytes: pos, Queue: 3000, Rate: 100 * units.Gbps}
				}
				*x = Signal{Kind: kind, Now: now, Marked: pos%7000 == 0, Power: 200, Acked: pos, Next: pos + 9000,
					RTT: 60 * us, Payload: 1000, Hops: hops}
				a.React(0, &s, x)
			}
			if pos%100000 == 0 {
				a.Start(0, &s)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestStartForgets verifies that Start clears all state of a reused index.
func TestStartForgets(t *testing.T) {
	for name, c := range schemesUnderTest() {
		if c.Algorithm == SchemeHPCCPINT && c.PINT.Probability < 1 {
			continue // its random stream continues
		}
		used, fresh := must(New(c, 1)), must(New(c, 1))
		s := newSender(100 * units.Gbps)
		r := newSender(100 * units.Gbps)
		play := func(a Algorithm, s *Sender, from sim.Time) {
			for i := range 200 {
				now := from + sim.Time(i)*7*us
				wakeUntil(a, s, now)
				n := uint64(i+1) * 1000
				a.React(0, s, &Signal{Kind: Kind(i % 5 * 3 % 5), Now: now, Marked: i%3 == 0, Acked: n, Next: n + 5000,
					Payload: 1000, Power: 240, RTT: sim.Time(20+i%50) * us,
					Hops: []Hop{{Time: now, Bytes: n, Queue: 2000, Rate: s.Line}}})
			}
		}
		used.Start(0, &s)
		play(used, &s, us)
		used.Start(0, &s)
		fresh.Start(0, &r)
		if s != r {
			t.Errorf("%s: after Start %+v, want %+v", name, s, r)
		}
		play(used, &s, units.Second)
		play(fresh, &r, units.Second)
		if s != r {
			t.Errorf("%s: later %+v, want %+v", name, s, r)
		}
	}
}

// weather feeds a queue pair the signals of a network for a while: an acknowledgement every 5 us, with all that an
// algorithm can want, and, when congested, a CNP every 50 us and losses in each round trip.
func weather(a Algorithm, q int32, s *Sender, from, until sim.Time, congested bool) {
	for now := from; now < until; now += 5 * us {
		for s.Wake <= now {
			at := s.Wake
			s.Wake = sim.Forever
			a.React(q, s, &Signal{Kind: Timer, Now: at})
		}
		pos := uint64(now/us) * 1000
		// a tenth of the line is used
		hop := Hop{Time: now, Bytes: uint64(float64(s.Line) / 80 * now.Seconds()), Rate: s.Line}
		x := Signal{Kind: Ack, Now: now, Acked: pos, Next: pos + 20000, RTT: s.BaseRTT}
		if congested {
			hop.Bytes, hop.Queue = uint64(float64(s.Line)/8*now.Seconds()), 10*s.BDP
			x.Marked, x.RTT, x.Power = true, 100*s.BaseRTT, 300 // 1.05^300/512 is above 1000
		}
		x.Hops = []Hop{hop}
		a.React(q, s, &Signal{Kind: Sent, Now: now, Payload: 5000})
		a.React(q, s, &x)
		if congested && now%(50*us) == 0 {
			a.React(q, s, &Signal{Kind: CNP, Now: now})
		}
		if congested && a.Wants().Losses {
			a.React(q, s, &Signal{Kind: Loss, Now: now, Acked: pos, Next: pos + 20000})
		}
	}
}

// allowed returns the rate in bits per second that a queue pair's rate and window permit.
func allowed(s *Sender) float64 {
	r := float64(s.Rate)
	if s.Window > 0 {
		r = min(r, float64(8*s.Window)/s.BaseRTT.Seconds())
	}
	return r
}

// TestCongestionIsAnswered verifies that congestion lowers the permitted rate to less than a third, and that most of it
// returns when the congestion is over.
func TestCongestionIsAnswered(t *testing.T) {
	for name, c := range schemesUnderTest() {
		if c.Algorithm == SchemeNone || c.Algorithm == SchemeNDP { // NDP's receivers pace the sender
			continue
		}
		a := must(New(c, 1))
		s := newSender(10 * units.Gbps)
		a.Start(0, &s)
		full := allowed(&s)
		weather(a, 0, &s, units.Millisecond, 3*units.Millisecond, true)
		low := allowed(&s)
		if low > full/3 {
			t.Errorf("%s: %.3g of %.3g bit/s after 2 ms of congestion", name, low, full)
		}
		weather(a, 0, &s, 3*units.Millisecond, 60*units.Millisecond, false)
		if high := allowed(&s); high < full*0.8 || high < 1.5*low {
			t.Errorf("%s: %.3g of %.3g bit/s, from %.3g, 57 ms after the congestion", name, high, full, low)
		}
	}
}

// TestPairsAreStrangers verifies that the signals of one queue pair do not affect another.
func TestPairsAreStrangers(t *testing.T) {
	for name, c := range schemesUnderTest() {
		alone, among := must(New(c, 1)), must(New(c, 1))
		r, s, other := newSender(10*units.Gbps), newSender(10*units.Gbps), newSender(10*units.Gbps)
		for q := range int32(3) { // indexes are dense
			x := newSender(10 * units.Gbps)
			alone.Start(q, &x)
			among.Start(q, &x)
		}
		alone.Start(1, &r)
		among.Start(2, &other)
		among.Start(1, &s)
		for at := units.Millisecond; at < 3*units.Millisecond; at += 100 * us {
			weather(alone, 1, &r, at, at+100*us, at%(400*us) == 0)
			weather(among, 2, &other, at, at+100*us, true)
			weather(among, 1, &s, at, at+100*us, at%(400*us) == 0)
			if r != s {
				t.Fatalf("%s: at %v alone %+v, beside a congested one %+v", name, at, r, s)
			}
		}
	}
}

// TestWantsStays verifies that an algorithm's Wants is constant and not empty.
func TestWantsStays(t *testing.T) {
	for name, c := range schemesUnderTest() {
		a := must(New(c, 1))
		was := a.Wants()
		s := newSender(10 * units.Gbps)
		a.Start(0, &s)
		weather(a, 0, &s, units.Millisecond, 2*units.Millisecond, true)
		if a.Wants() != was {
			t.Errorf("%s: it wanted %+v and now %+v", name, was, a.Wants())
		}
		if c.Algorithm != SchemeNone && !was.Acks && !was.CNPs {
			t.Errorf("%s: it hears of no congestion", name)
		}
		if (was.RTT || was.INT || was.PINT) && !was.Acks {
			t.Errorf("%s: what is measured comes with acknowledgements, which it does not want", name)
		}
	}
}

func TestNames(t *testing.T) {
	for k := range schemes {
		var back Scheme
		text, err := k.MarshalText()
		if err != nil || back.UnmarshalText(text) != nil || back != k {
			t.Errorf("%v comes back as %v", k, back)
		}
	}
	for _, c := range []struct {
		into encoding.TextUnmarshaler
		text string
		want string
	}{
		{new(Scheme), "dqcn",
			`"dqcn" is not possible; use none, dcqcn, dctcp, timely, hpcc, hpcc-pint, swift, tcp, nscc or ndp (did you mean dcqcn?)`},
		{new(Scheme), "hpccpint",
			`"hpccpint" is not possible; use none, dcqcn, dctcp, timely, hpcc, hpcc-pint, swift, tcp, nscc or ndp (did you mean hpcc?)`},
		{new(Scheme), "reno-vegas",
			`"reno-vegas" is not possible; use none, dcqcn, dctcp, timely, hpcc, hpcc-pint, swift, tcp, nscc or ndp`},
		{new(Window), "scale", `"scale" is not possible; use none, bdp or scaled (did you mean scaled?)`},
		{new(Clamp), "never", `"never" is not possible; use always, after-increase or after-bytes`},
	} {
		if err := c.into.UnmarshalText([]byte(c.text)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
	for _, good := range []string{"none", "bdp", "scaled"} {
		var w Window
		if err := w.UnmarshalText([]byte(good)); err != nil || w.String() != good {
			t.Errorf("window %s: %v", good, err)
		}
	}
	for _, good := range []string{"always", "after-increase", "after-bytes"} {
		var c Clamp
		text, _ := c.MarshalText()
		if err := c.UnmarshalText([]byte(good)); err != nil || c.String() != good || string(text) != "always" {
			t.Errorf("clamp %s: %v", good, err)
		}
	}
	if got := Scheme(99).String(); got != "(99)" {
		t.Error(got)
	}
}

// TestErrors verifies that errors name the key at fault.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		scheme Scheme
		spoil  func(*Config)
		want   string
	}{
		{SchemeNone, func(c *Config) { c.MinRate = 0 }, "min_rate: 0bps is not possible"},
		{SchemeNone, func(c *Config) { c.None.Window = 9 }, "none.window: (9) is not possible"},
		{SchemeDCQCN, func(c *Config) { c.DCQCN.Gain = 0 },
			"dcqcn.gain: 0 is not possible; it must be above 0 and at most 1"},
		{SchemeDCQCN, func(c *Config) { c.DCQCN.CutAtOnce, c.DCQCN.RateDecreaseInterval = false, 0 },
			"dcqcn.rate_decrease_interval: 0s is not possible"},
		{SchemeDCQCN, func(c *Config) { c.DCQCN.AlphaInterval = -1 }, "dcqcn.alpha_interval: "},
		{SchemeDCQCN, func(c *Config) { c.DCQCN.FastRecovery = 0 },
			"dcqcn.fast_recovery: 0 is not possible; it must be 1 to 1000"},
		{SchemeDCQCN, func(c *Config) { c.DCQCN.ByteCounter = -1 }, "dcqcn.byte_counter: "},
		{SchemeDCQCN, func(c *Config) { c.DCQCN.ByteCounter, c.DCQCN.ClampTarget = 0, ClampAfterBytes },
			"dcqcn.clamp_target: after-bytes is not possible without a byte counter"},
		{SchemeDCQCN, func(c *Config) { c.DCQCN.ClampTarget = 7 }, "dcqcn.clamp_target: (7) is not possible"},
		{SchemeDCQCN, func(c *Config) { c.DCQCN.RateAI = -1 }, "dcqcn.rate_ai: -1bps is not possible"},
		{SchemeDCTCP, func(c *Config) { c.DCTCP.Gain = 2 }, "dctcp.gain: 2 is not possible"},
		{SchemeTimely, func(c *Config) { c.Timely.MinRTT = 0 }, "timely.min_rtt: 0s is not possible"},
		{SchemeTimely, func(c *Config) { c.Timely.THigh = us },
			"timely.t_high: 1us is not possible; it must be at least t_low, 50us"},
		{SchemeTimely, func(c *Config) { c.Timely.HyperAfter = -1 }, "timely.hyper_after: -1 is not possible"},
		{SchemeHPCC, func(c *Config) { c.HPCC.TargetUtilisation = 0 }, "hpcc.target_utilisation: 0 is not possible"},
		{SchemeHPCC, func(c *Config) { c.HPCC.MaxStage = -1 }, "hpcc.max_stage: -1 is not possible"},
		{SchemeHPCCPINT, func(c *Config) { c.PINT.LogBase = 1 }, "pint.log_base: 1 is not possible"},
		{SchemeHPCCPINT, func(c *Config) { c.PINT.Probability = 0 }, "pint.probability: 0 is not possible"},
		{SchemeSwift, func(c *Config) { c.Swift.TargetDelay = 0 }, "swift.target_delay: 0s is not possible"},
		{SchemeSwift, func(c *Config) { c.Swift.MaxDecrease = 1 }, "swift.max_decrease: 1 is not possible"},
		{SchemeSwift, func(c *Config) { c.Swift.ScalingMax = 0.01 }, "swift.scaling_max: 0.01 is not possible"},
		{SchemeSwift, func(c *Config) { c.Swift.MaxWindow = 0.5 }, "swift.max_window: 0.5 is not possible"},
		{SchemeSwift, func(c *Config) { c.Swift.FlowScaling = -1 }, "swift.flow_scaling: "},
		{SchemeSwift, func(c *Config) { c.Swift.TargetPerHop = -1 }, "swift.target_per_hop: "},
		{SchemeSwift, func(c *Config) { c.Swift.InitialWindow = -1 }, "swift.initial_window: -1 is not possible"},
		{SchemeSwift, func(c *Config) { c.Swift.ResetAfter = 0 }, "swift.reset_after: 0 is not possible"},
		{SchemeNSCC, func(c *Config) { c.NSCC.TargetDelay = -1 }, "nscc.target_delay: "},
		{SchemeNSCC, func(c *Config) { c.NSCC.Gamma = 0 }, "nscc.gamma: 0 is not possible"},
		{SchemeNSCC, func(c *Config) { c.NSCC.MaxDecrease = 1 }, "nscc.max_decrease: 1 is not possible"},
		{SchemeNSCC, func(c *Config) { c.NSCC.MaxWindow = 0 }, "nscc.max_window: 0 is not possible"},
		{SchemeNSCC, func(c *Config) { c.NSCC.Fair = -1 }, "nscc.fair: -1 is not possible"},
		{SchemeNSCC, func(c *Config) { c.NSCC.QuickBelow = 2 }, "nscc.quick_below: 2 is not possible"},
		{99, func(*Config) {}, "algorithm: (99) is not possible"},
	} {
		conf := DefaultConfig()
		conf.Algorithm = c.scheme
		c.spoil(&conf)
		a, err := New(conf, 1)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
		if a != nil && !reflect.ValueOf(a).IsZero() {
			t.Errorf("%v: an algorithm beside the error", err)
		}
	}
}

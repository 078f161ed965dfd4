package reserve

import (
	"slices"
	"testing"

	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

func surgeUnicast() Config { return surge(UnicastConfig(), 128*units.KiB) }

func TestLeakyByHand(t *testing.T) {
	// SURGE's capacity of 72000+2400 bits, which assumes 300 B of control; 9.9 bits per nanosecond.
	l := NewLeaky(mustNew(t, surgeUnicast()), 9900*units.Mbps)
	if !l.Use(0, 74400) || l.Use(0, 1) {
		t.Fatal("not 74400 bits")
	}
	if !l.holds(1*ns, 9) || l.holds(1*ns, 10) {
		t.Error("after 1 ns: not 9 bits")
	}
	if !l.holds(2*ns, 18) || l.holds(2*ns, 19) {
		t.Error("after 2 ns, looked at twice: not 18 bits")
	}
	if at := l.When(2*ns, 72000); at != 7273*ns {
		t.Errorf("72000 bits at %v", at)
	}
	if l.holds(7272*ns, 72000) || !l.Use(7300*ns, 72000) {
		t.Error("When is wrong")
	}
	if l.When(7300*ns, 74401) != sim.Forever {
		t.Error("more than there is room for")
	}
	l.SetRate(7300*ns, 0)
	if l.When(7300*ns, 74400) != sim.Forever {
		t.Error("a bucket that does not fill")
	}

	exact := NewLeaky(mustNew(t, UnicastConfig()), 9900*units.Mbps)
	exact.Use(0, 72800)
	for i := sim.Time(1); i <= 100; i++ {
		exact.holds(i*ns, 0)
	}
	if !exact.holds(100*ns, 990) || exact.holds(100*ns, 991) {
		t.Error("after 100 ns, looked at 100 times: not 990 bits")
	}
	if exact.Rate() != 9900*units.Mbps {
		t.Errorf("rate %v", exact.Rate())
	}
}

// TestLeakyWhen verifies that bits are available at the time that When returns and not before.
func TestLeakyWhen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := UnicastConfig()
		c.Compat = Compat(rapid.Bool().Draw(t, "compat"))
		d, _ := New(c)
		l := NewLeaky(d, units.BitRate(rapid.Int64Range(1, 400e9).Draw(t, "rate")))
		now, tick := sim.Time(0), sim.Time(1)
		if c.Compat {
			tick = ns
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			bits := rapid.Int64Range(1, 72800).Draw(t, "bits")
			at := l.When(now, bits)
			if at > now {
				early := l
				if early.holds(at-tick, bits) {
					t.Fatalf("%d bits are there before %v", bits, at)
				}
			}
			now = at
			if !l.Use(now, bits) {
				t.Fatalf("%d bits are not there at %v: %+v", bits, at, l)
			}
		}
	})
}

// TestLeakyConserves verifies that no more bits leave than the initial ones and those added, and that a bucket without
// faults loses none.
func TestLeakyConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, _ := New(UnicastConfig())
		const rate = 9_900_000_000
		l := NewLeaky(d, rate)
		used, now := l.room, sim.Time(0)
		l.Use(0, l.room)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now += sim.Time(rapid.Int64Range(0, 1e6).Draw(t, "later"))
			if n := rapid.Int64Range(0, 20000).Draw(t, "bits"); l.Use(now, n) {
				used += n
			}
			if l.value < l.room && l.value != l.room+muldivBits(now, rate)-used {
				t.Fatalf("%d bits at %v after %d have been used", l.value, now, used)
			}
			if l.value == l.room {
				return
			}
		}
	})
}

func muldivBits(t sim.Time, rate int64) int64 {
	q, _ := muldivrem(int64(t), rate, 0, int64(units.Second))
	return q
}

func TestAIMDByHand(t *testing.T) {
	d := mustNew(t, surgeUnicast())
	a := NewAIMD(d)
	if a.Rate() != units.Gbps {
		t.Errorf("begins at %v", a.Rate())
	}
	// A step after every 74400 bits or more: the second frame raises the rate to 2 Gb/s.
	if !a.Use(0, 72000) || a.Rate() != units.Gbps || a.Use(0, 72000) {
		t.Error("the first frame")
	}
	at := a.When(0, 72000)
	if at != 69600*ns {
		t.Errorf("the second frame at %v", at)
	}
	if !a.Use(at, 72000) || a.Rate() != 2*units.Gbps {
		t.Errorf("after the second frame %v", a.Rate())
	}
	for range 30 {
		at = a.When(at, 72000)
		a.Use(at, 72000)
	}
	if a.Rate() != 9900*units.Mbps {
		t.Errorf("at most the link: %v", a.Rate())
	}
	a.Ding(at)
	if a.Rate() != 4950*units.Mbps {
		t.Errorf("after a ding %v", a.Rate())
	}
	for range 5 {
		a.Ding(at)
	}
	if a.Rate() != units.Gbps {
		t.Errorf("at least %v", a.Rate())
	}
	// A ding changes the rate from then on; in SURGE from the bucket's last update.
	b, c := NewAIMD(d), NewAIMD(mustNew(t, UnicastConfig()))
	for _, x := range []*AIMD{&b, &c} {
		x.Use(0, x.room)
		x.rate = 4 * units.Gbps
		x.Ding(1000 * ns)
		x.fill(1000 * ns)
	}
	if b.value != 2000 || c.value != 4000 {
		t.Errorf("after a ding %d and %d bits", b.value, c.value)
	}
	fast := UnicastConfig()
	fast.LinkRate = 100 * units.Gbps
	if x := NewAIMD(mustNew(t, fast)); x.Rate() != 10*units.Gbps {
		t.Errorf("begins at %v of 100 Gb/s", x.Rate())
	}
}

func TestPacer(t *testing.T) {
	d := mustNew(t, surge(ProxyConfig(), 128*units.KiB))
	p := NewPacer(d, d.ControlRate)
	if !p.Use(5*ns, 300) || p.Next() != 2429*ns || p.Use(2428*ns, 300) || !p.ready(2429*ns) {
		t.Error("not a message each 2424 ns")
	}
	p.SetRate(d.DataRate)
	if !p.Use(2429*ns, 9000) || p.Next() != (2429+8080)*ns {
		t.Errorf("next at %v", p.Next())
	}
}

func TestShareByHand(t *testing.T) {
	s := NewShare(mustNew(t, surgeUnicast()), DivideEqually)
	if got := s.Admit(1, 128*units.KiB); got != 9900*units.Mbps {
		t.Errorf("alone %v", got)
	}
	if got := s.Divide(nil); !slices.Equal(got, []Rate{{1, 9900 * units.Mbps}}) {
		t.Errorf("rates %v", got)
	}
	if got := s.Divide(nil); len(got) != 0 {
		t.Errorf("rates again %v", got)
	}
	if got := s.Admit(2, 128*units.KiB); got != 4950*units.Mbps {
		t.Errorf("with another %v", got)
	}
	// 9.9 Gb/s for a trip are 1237 B: with 9000+1237 B left a flow gets no rate, with one more it does.
	s.Received(1, 128*units.KiB-10237)
	if got := s.Divide(nil); !slices.Equal(got, []Rate{{2, 4950 * units.Mbps}}) {
		t.Errorf("rates %v", got)
	}
	s.Admit(3, 128*units.KiB)
	s.Received(1, 128*units.KiB-10238)
	if got := s.Divide(nil); !slices.Equal(got,
		[]Rate{{1, 3300 * units.Mbps}, {2, 3300 * units.Mbps}, {3, 3300 * units.Mbps}}) {
		t.Errorf("rates %v", got)
	}
	if !s.Remove(1) || s.Remove(1) || s.Len() != 2 {
		t.Error("a flow ends once")
	}
	s.Divide(nil)
	s.Remove(2)
	s.Remove(3)
	if got := s.Divide(nil); len(got) != 0 {
		t.Errorf("rates %v", got)
	}
	if s.Admit(4, units.KiB); len(s.Divide(nil)) != 0 {
		t.Error("a flow of less than a frame hears a rate")
	}

	inverse := NewShare(mustNew(t, surgeUnicast()), DivideByRemaining)
	inverse.Admit(1, 100000)
	inverse.Admit(2, 100000)
	inverse.Admit(3, 100000)
	inverse.Received(2, 50000)
	inverse.Received(3, 91000)
	if got := inverse.Divide(nil); !slices.Equal(got, []Rate{{1, 3300 * units.Mbps}, {2, 6600 * units.Mbps}}) {
		t.Errorf("by what remains: %v", got)
	}
}

// TestShareDividesTheLink verifies that the assigned rates add up to the link or slightly less.
func TestShareDividesTheLink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, _ := New(UnicastConfig())
		s := NewShare(d, Division(rapid.IntRange(0, 1).Draw(t, "division")))
		n := rapid.IntRange(1, 90).Draw(t, "flows")
		for id := range uint64(n) {
			s.Admit(id, units.MiB)
			s.Received(id, units.Bytes(rapid.Int64Range(0, 900000).Draw(t, "offset")))
		}
		sum := units.BitRate(0)
		rates := s.Divide(nil)
		for _, r := range rates {
			sum += r.Rate
		}
		if len(rates) != n || sum > d.Effective || sum < d.Effective-units.BitRate(n) {
			t.Fatalf("%d of %d flows hear %v", len(rates), n, sum)
		}
	})
}

func headUnicast() Config {
	c := UnicastConfig()
	c.Rules = RulesHead
	return c
}

func TestDingerByHand(t *testing.T) {
	d := mustNew(t, surgeUnicast())
	g := NewDinger(d)
	if g.Due() != 10272*ns { // 7272 for a frame at 9.9 Gb/s, and three trips
		t.Errorf("due at %v", g.Due())
	}
	if h := NewDinger(mustNew(t, surge(headUnicast(), units.MiB))); h.Due() != 10200*ns {
		t.Errorf("due at %v in SURGE's last build, which forgets the overhead", h.Due())
	}
	g.Admit(1, 128*units.KiB)
	g.Admit(2, 128*units.KiB)
	g.Received(1, 18000)
	three := []Arrival{{1, 20000 * ns}, {2, 27272 * ns}, {1, 34544 * ns}}
	if got := g.Look(10272*ns, three, 0, nil); len(got) != 0 {
		t.Errorf("looks too early: %v", got)
	}
	if got := g.Look(10273*ns, three, 0, nil); !slices.Equal(got, []uint64{1}) {
		t.Errorf("three frames too near: %v", got)
	}
	// Not again until a frame later, and not near its end.
	g.Received(1, 36000)
	if got := g.Look(30000*ns, three, 0, nil); len(got) != 0 {
		t.Errorf("dinged again: %v", got)
	}
	g.Received(1, 45000)
	if got := g.Look(50000*ns, three, 0, nil); len(got) != 1 {
		t.Errorf("not dinged: %v", got)
	}
	g.Received(1, 110000)
	if got := g.Look(70000*ns, three, 0, nil); len(got) != 0 {
		t.Errorf("dinged near the end: %v", got)
	}
	apart := []Arrival{{1, 20000 * ns}, {2, 27273 * ns}, {1, 34545 * ns}}
	if got := g.Look(90000*ns, apart, 0, nil); len(got) != 0 {
		t.Errorf("dinged though apart: %v", got)
	}
	// A full disk dings for each frame. Two chunks fit; one and a half round to two.
	if got := g.Look(110000*ns, apart, 3*d.DiskChunk/2, nil); !slices.Equal(got, []uint64{1, 2, 1}) {
		t.Errorf("a full disk: %v", got)
	}
	if !g.Remove(1) || g.Remove(1) {
		t.Error("a flow ends once")
	}
	if got := g.Look(130000*ns, three, 0, nil); len(got) != 0 {
		t.Errorf("a flow that has ended is dinged: %v", got)
	}
}

func TestDisk(t *testing.T) {
	d := mustNew(t, surge(DefaultConfig(), 128*units.KiB)) // 312500 to write, 117685 to send, 2 may wait
	u := mustNew(t, surgeUnicast())                        // 105916 to send
	head := mustNew(t, surge(headHybrid(), 128*units.KiB))
	for _, c := range []struct {
		busy                 sim.Time // ns
		queued               int
		bid, unicast, atHead sim.Time
	}{
		{0, 0, 0, 0, 0},
		{-5, 0, 0, 0, 0},
		{156249, 0, 0, 0, 0},
		{156250, 1, 0, 0, 0},
		{312500, 1, 0, 0, 0},
		{312501, 1, 0, 0, 1},
		{468749, 1, 0, 0, 156249},
		{468750, 2, 351065, 362834, 156250},
		{781249, 2, 663564, 675333, 468749},
		{781250, 3, 781250, 675334, 468750},
	} {
		busy := c.busy * ns
		if got := d.queuedChunks(busy); got != c.queued {
			t.Errorf("busy for %d: %d queued, want %d", c.busy, got, c.queued)
		}
		if got := d.BidDelay(busy); got != c.bid*ns {
			t.Errorf("busy for %d: bids delayed by %v, want %d", c.busy, got, c.bid)
		}
		if got := u.UnicastDelay(busy); got != c.unicast*ns {
			t.Errorf("busy for %d: unicast delayed by %v, want %d", c.busy, got, c.unicast)
		}
		if a, b := head.BidDelay(busy), head.UnicastDelay(busy); a != c.atHead*ns || b != a {
			t.Errorf("busy for %d: delayed by %v and %v, want %d", c.busy, a, b, c.atHead)
		}
	}
	for n, want := range map[int]sim.Time{0: 0, 3: 0, 4: 1, 7: 1, 8: 2, 11: 2, 12: 3, 16: 4, 19: 4, 20: 8, 100: 8} {
		if got := d.VariableLatency(sim.Time(n) * d.DiskChunk); got != want*d.DiskChunk {
			t.Errorf("%d chunks queued: %v more latency", n, got)
		}
	}
	if d.QueuedFrames(53643*ns) != 3 || d.QueuedFrames(53642*ns) != 2 { // 21457 each
		t.Error("two and a half frames round up")
	}
	if d.AckDelay(625000*ns-1, true) != 0 || d.AckDelay(625000*ns, true) != 625000*ns || d.AckDelay(1, false) != 1 {
		t.Error("acknowledgements")
	}
}

package reserve

import (
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

func TestIntersectByHand(t *testing.T) {
	d := mustNew(t, surge(DefaultConfig(), 128*units.KiB)) // bids of 166159, accepted 125765, control 2424
	exact := *d
	exact.Compat = false
	for _, c := range []struct {
		name         string
		now          sim.Time
		lefts        []sim.Time
		surge, exact sim.Time // start of the picks' window, or -1
	}{
		{"all alike", 0, []sim.Time{5848, 5848, 5848, 5848}, 5848, 5848},
		{"late answer", 10000, []sim.Time{5848, 5848, 5848, 5848}, 12424, 12424},
		{"too late an answer", 60000, []sim.Time{5848, 5848, 5848, 5848}, -1, -1},
		{"the last three only", 0, []sim.Time{0, 200000, 210000, 240000}, -1, 240000},
		{"the first three just", 0, []sim.Time{0, 20000, 40394, 900000}, 40394, 40394},
		{"a nanosecond too far", 0, []sim.Time{0, 20000, 40395, 900000}, -1, -1},
	} {
		o := NewOffers(d)
		for i, left := range c.lefts {
			o.Add(int32(i), win(left, left+166159), nil)
		}
		for _, rule := range []struct {
			name string
			d    *Durations
			want sim.Time
		}{{"surge", d, c.surge}, {"exact", &exact, c.exact}} {
			picks, ok := rule.d.Intersect(c.now*ns, o, 3, nil)
			if ok != (rule.want >= 0) {
				t.Errorf("%s, %s: found %v", c.name, rule.name, ok)
				continue
			}
			for _, p := range picks {
				if p.Window != win(rule.want, rule.want+125765) {
					t.Errorf("%s, %s: %v, want from %v", c.name, rule.name, p.Window, rule.want)
				}
			}
		}
	}
}

// newSequence returns a Sequence for one gateway.
func newSequence(d *Durations) *Sequence { return &Sequence{d: d, previous: never} }

// TestIntersectIsEarliest compares the choice with an exhaustive search over subsets of the offers.
func TestIntersectIsEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := DefaultConfig()
		c.ChunkSize = rapid.SampledFrom([]units.Bytes{16 * units.KiB, units.MiB}).Draw(t, "chunk")
		c.Replicas = rapid.IntRange(1, 5).Draw(t, "replicas")
		d, _ := New(c)
		offers := drawOffers(t, d, rapid.IntRange(c.Replicas, 9).Draw(t, "offers"))
		now := sim.Time(rapid.Int64Range(0, int64(d.Window)).Draw(t, "now"))
		o := fill(d, offers)
		var rejected uint
		if rapid.Bool().Draw(t, "reject") {
			rejected = 1 << rapid.IntRange(0, len(offers)-1).Draw(t, "rejected")
			for i := range offers {
				if rejected>>i&1 == 1 && !o.Reject(int32(i)) {
					t.Fatal("no such offer")
				}
			}
		}
		best := sim.Time(never)
		for set := range uint(1) << len(offers) {
			n, begin, end := 0, now+d.Control, sim.Forever
			for i, f := range offers {
				if set>>i&1 == 1 {
					n++
					begin, end = max(begin, sim.Time(f.left)*ns), min(end, sim.Time(f.right)*ns)
				}
			}
			if n == c.Replicas && set&rejected == 0 && end-begin >= d.Needed && (best == never || begin < best) {
				best = begin
			}
		}
		picks, ok := d.Intersect(now, o, c.Replicas, nil)
		if ok != (best != never) {
			t.Fatalf("found %v, the best of all subsets begins at %v", ok, best)
		}
		if !ok {
			return
		}
		seen := map[int32]bool{}
		for _, p := range picks {
			f := offers[p.Server]
			if seen[p.Server] || rejected>>p.Server&1 == 1 || p.Window != picks[0].Window ||
				!p.Window.within(win(sim.Time(f.left), sim.Time(f.right))) {
				t.Fatalf("picks %v of %v", picks, offers)
			}
			seen[p.Server] = true
		}
		if w := picks[0].Window; len(picks) != c.Replicas || w.Left != best || w.Width() < d.Needed ||
			w.Width() > d.Accepted {
			t.Fatalf("%d picks of %v, the best begins at %v", len(picks), w, best)
		}
	})
}

func TestOffersOrder(t *testing.T) {
	servers := func(c Config, rnd *rng.Stream) []int32 {
		o := NewOffers(mustNew(t, c))
		for i, left := range []sim.Time{5, 3, 5, 5, 9} {
			o.Add(int32(i), win(left, left+1), rnd)
		}
		var s []int32
		for i := range o.Len() {
			s = append(s, o.At(i).Server)
		}
		return s
	}
	if got := servers(DefaultConfig(), nil); !slices.Equal(got, []int32{1, 0, 2, 3, 4}) {
		t.Errorf("as they came: %v", got)
	}
	if got := servers(surge(DefaultConfig(), units.MiB), nil); !slices.Equal(got, []int32{1, 3, 2, 0, 4}) {
		t.Errorf("SURGE: %v", got)
	}
	rnd := rng.NewStream(1, "gateway[0]/ties")
	count := map[int32]int{}
	const n = 6000
	for range n {
		got := servers(DefaultConfig(), &rnd)
		if got[0] != 1 || got[4] != 4 {
			t.Fatalf("out of order: %v", got)
		}
		count[got[1]]++
	}
	for _, s := range []int32{0, 2, 3} {
		if c := count[s]; c < n/3-200 || c > n/3+200 {
			t.Errorf("server %d is the first of three equals %d times in %d", s, c, n)
		}
	}
}

func TestSequenceByHand(t *testing.T) {
	// Bids of 130553, accepted 129553; chunk 117685, frame 8080, control 2424, trip 1000.
	d := mustNew(t, surge(HybridConfig(), 128*units.KiB))
	s := newSequence(d)
	s.Start()
	choose := func(missing int, lefts ...sim.Time) []Pick {
		o := NewOffers(d)
		for i, left := range lefts {
			o.Add(int32(i), win(left, left+130553), nil)
		}
		return s.Choose(0, o, missing, nil)
	}
	// The second begins 8080 after the end of the first; the third is a nanosecond too late.
	picks := choose(3, 6000, 6000+129553+8080, 6000+2*(129553+8080)+1, 900000)
	want := []Pick{{0, win(6000, 135553)}, {1, win(143633, 273186)}}
	if !slices.Equal(picks, want) {
		t.Errorf("picks %v, want %v", picks, want)
	}
	// There is a usable gap between the two: the next request is sent at the end of the first.
	if at, from := s.More(0, picks); at != 135553*ns || from != 273186*ns {
		t.Errorf("more at %v from %v", at, from)
	}
	// The new window begins later than requested, and the end of the previous ones can still be reached.
	picks = choose(1, 300000, 300100)
	if at, from := s.More(200000*ns, picks); at != 273186*ns || from != 429553*ns {
		t.Errorf("more at %v from %v", at, from)
	}
	// No hole: two control messages before the end.
	picks = choose(1, 430000)
	if at, from := s.More(420000*ns, picks); at != (559553-4848)*ns || from != 559553*ns {
		t.Errorf("more at %v from %v", at, from)
	}
	// A hole, but too close to be used.
	s.Start()
	s.More(0, choose(1, 6000))
	if at, _ := s.More(134000*ns, choose(1, 500000)); at != (629553-4848)*ns {
		t.Errorf("more at %v", at)
	}

	// Without SURGE's faults, a window that begins too early is used in part, or not at all.
	exact := mustNew(t, HybridConfig())
	e := newSequence(exact)
	o := NewOffers(exact)
	o.Add(0, Window{0, exact.Window}, nil)
	now := exact.Window - exact.Needed - exact.Control
	if got := e.Choose(now, o, 1, nil); len(got) != 1 || got[0].Window != (Window{now + exact.Control, exact.Window}) {
		t.Errorf("late: %v", got)
	}
	if got := e.Choose(now+1, o, 1, nil); len(got) != 0 {
		t.Errorf("too late: %v", got)
	}
	if at, from := e.More(now, nil); at != from || at <= now {
		t.Errorf("after nothing, more at %v from %v", at, from)
	}
	// An idle server's wider bid is preferred, and trimmed.
	o.Reset()
	o.Add(0, Window{5 * units.Microsecond, 5*units.Microsecond + exact.Window}, nil)
	wide := Window{6 * units.Microsecond, 6*units.Microsecond + exact.Window + exact.Trip}
	o.Add(1, wide, nil)
	if got := e.Choose(0, o, 3, nil); len(got) != 1 ||
		got[0] != (Pick{1, Window{wide.Left, wide.Left + exact.Accepted}}) {
		t.Errorf("idle: %v", got)
	}
}

// TestSequenceLiesInOffers verifies that the chosen windows lie in their offers, in order and without overlap, even if
// answers are late.
func TestSequenceLiesInOffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := HybridConfig()
		c.Rules = rapid.SampledFrom([]Rules{RulesPaper, RulesHead}).Draw(t, "rules")
		d, _ := New(c)
		offers := drawOffers(t, d, 9)
		o := fill(d, offers)
		now := sim.Time(rapid.Int64Range(0, int64(2*d.Window)).Draw(t, "now"))
		missing := rapid.IntRange(1, 5).Draw(t, "missing")
		lost := int32(rapid.IntRange(0, 8).Draw(t, "lost"))
		o.Reject(lost)
		picks := newSequence(d).Choose(now, o, missing, nil)
		usable := slices.ContainsFunc(offers, func(f leaf) bool {
			return f.server != lost && sim.Time(f.right)*ns-max(sim.Time(f.left)*ns, now+d.Control) >= d.Needed
		})
		if usable != (len(picks) > 0) || len(picks) > missing {
			t.Fatalf("%d picks, %d missing, usable offers: %v", len(picks), missing, usable)
		}
		for i, p := range picks {
			f := offers[p.Server]
			if p.Server == lost || !p.Window.within(win(sim.Time(f.left), sim.Time(f.right))) ||
				p.Window.Left < now+d.Control || p.Window.Width() < d.Needed {
				t.Fatalf("picks %v of %v at %v", picks, offers, now)
			}
			if i > 0 && p.Window.Left < picks[i-1].Window.Right {
				t.Fatalf("picks %v overlap", picks)
			}
		}
		if len(picks) > 0 {
			if at, from := newSequence(d).More(now, picks); from != picks[len(picks)-1].Window.Right || at < now {
				t.Fatalf("more at %v from %v after %v", at, from, picks)
			}
		}
	})
}

func TestChoosyByHand(t *testing.T) {
	d := mustNew(t, surge(headHybrid(), 128*units.KiB))
	if d.MaxBidWait != 20544*ns {
		t.Fatalf("patience of %v", d.MaxBidWait)
	}
	c := NewChoosy(d)
	c.Start()
	o := NewOffers(d)
	o.Add(0, win(141088, 271641), nil)
	// A distance of 2*20544 or more is too far; patience doubles.
	if got := c.Choose(100000*ns, o, 3, nil); len(got) != 0 || c.Patience() != 41088*ns {
		t.Errorf("too far: %v, patience %v", got, c.Patience())
	}
	if at, from := c.More(100000*ns, nil); at != 110272*ns || from != 110272*ns {
		t.Errorf("asks again at %v from %v", at, from)
	}
	got := c.Choose(100001*ns, o, 3, nil)
	if len(got) != 1 {
		t.Fatalf("near enough: %v", got)
	}
	if at, from := c.More(100001*ns, got); at != 141088*ns || from != 270641*ns {
		t.Errorf("more at %v from %v", at, from)
	}
	// The acceptance must settle first: sent by +2424, a trip, and half a control message.
	if at, _ := c.More(140000*ns, got); at != (140000+2424+1000+1212)*ns {
		t.Errorf("more at %v", at)
	}
	c.Start()
	if c.Patience() != (41088+20544)/2*ns {
		t.Errorf("patience of %v after a start", c.Patience())
	}
	c.Start()
	if c.Patience() != (30816+41088)/2*ns {
		t.Errorf("patience of %v after two", c.Patience())
	}
	// Rejections: one with a request due soon enough anyway, one that advances the next request.
	if at, from := c.Rejected(1000*ns, 3000*ns, 7*ns, 0, 0); at != 3000*ns || from != 7*ns {
		t.Errorf("rejected: %v from %v", at, from)
	}
	if at, from := c.Rejected(9000*ns, sim.Forever, 0, 8000*ns, 20000*ns); at != (8000+1000+1212)*ns ||
		from != 20000*ns {
		t.Errorf("rejected: %v from %v", at, from)
	}
	if at, from := c.Rejected(19000*ns, sim.Forever, 0, 8000*ns, 0); at != 19000*ns || from != 19000*ns {
		t.Errorf("rejected: %v from %v", at, from)
	}
}

func TestProxyByHand(t *testing.T) {
	// Bids of 166159; chunk 117685, disk 312500, control 2424, trip 1000.
	d := mustNew(t, surge(ProxyConfig(), 128*units.KiB))
	p := NewProxy(d)
	first := p.Assign(0, 1, nil, nil)
	for i, got := range first {
		if got != (Pick{int32(i), win(3424, 169583)}) {
			t.Errorf("first chunk: %v", first)
		}
	}
	if p.DiskDone(0) != (169583+312500)*ns || p.Pending(0) != 1 {
		t.Errorf("disk done at %v, %d pending", p.DiskDone(0), p.Pending(0))
	}
	// Idle members come first, then those with the earliest start.
	for i, got := range p.Assign(0, 2, nil, nil) {
		if got != (Pick{int32(i + 3), win(3424, 169583)}) {
			t.Errorf("second chunk: %v", got)
		}
	}
	p.Assign(0, 3, nil, nil)
	for i, got := range p.Assign(0, 4, nil, nil) {
		if got != (Pick{int32(i), win(170583, 336742)}) {
			t.Errorf("fourth chunk: %v", got)
		}
	}
	// A member's report overrides the estimate; its remaining reservations are written after that.
	if !p.Done(1, 1, 430000*ns) || p.Done(1, 1, 0) {
		t.Error("a chunk is done once")
	}
	if p.DiskDone(1) != 742500*ns || p.Pending(1) != 1 {
		t.Errorf("disk done at %v", p.DiskDone(1))
	}
	if n := p.Expire(sim.Time(336743)*ns, 0); n != 11 {
		t.Errorf("%d expired", n)
	}
}

// TestProxyTakesTheEarliest verifies that no omitted member could have begun to write before a chosen one, and that the
// windows of a member do not overlap.
func TestProxyTakesTheEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ProxyConfig()
		c.Compat = Compat(rapid.Bool().Draw(t, "compat"))
		c.Lead = sim.Time(rapid.IntRange(0, 1).Draw(t, "lead")) * 20 * units.Microsecond
		d, _ := New(c)
		p := NewProxy(d)
		rnd := rng.NewStream(1, "proxy")
		now := sim.Time(0)
		last := make([]sim.Time, c.Group)
		type given struct {
			server int32
			chunk  uint64
		}
		var open []given
		for chunk := range uint64(rapid.IntRange(1, 40).Draw(t, "chunks")) {
			now += sim.Time(rapid.IntRange(0, 300000).Draw(t, "later")) * ns
			for len(open) > 0 && rapid.Bool().Draw(t, "done") {
				g := open[0]
				open = open[1:]
				if !p.Done(g.server, g.chunk, now+sim.Time(rapid.IntRange(0, 600000).Draw(t, "busy"))*ns) {
					t.Fatal("a promise is lost")
				}
				if p.Pending(g.server) == 0 {
					last[g.server] = 0 // early data frees its window
				}
			}
			picks := p.Assign(now, chunk, &rnd, nil)
			if len(picks) != c.Replicas {
				t.Fatalf("%d picks", len(picks))
			}
			taken := map[int32]bool{}
			latest := sim.Time(0)
			for _, k := range picks {
				latest = max(latest, p.members[k.Server].start)
				if taken[k.Server] || k.Window != picks[0].Window || k.Window.Width() != d.Window {
					t.Fatalf("picks %v", picks)
				}
				taken[k.Server] = true
				if k.Window.Left < last[k.Server] {
					t.Fatalf("window %v begins before %v", k.Window, last[k.Server])
				}
				last[k.Server] = k.Window.Right
				open = append(open, given{k.Server, chunk})
				if soonest := now + d.Control + d.Trip + d.Lead; !bool(c.Compat) && k.Window.Left < soonest {
					t.Fatalf("window %v begins before its gateway knows, %v", k.Window, soonest)
				}
			}
			for i := range p.members {
				if !taken[int32(i)] && p.members[i].start < latest {
					t.Fatalf("member %d could write at %v, one was taken that writes at %v", i, p.members[i].start,
						latest)
				}
			}
		}
	})
}

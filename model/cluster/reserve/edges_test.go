package reserve

import (
	"testing"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// The figures of this file are for a link on which a byte takes 1 ns: control messages of 300, chunks of 100,000,
// frames of 8,000, a trip of 1,000, a gap of 500; bids of 141,400, of which 108,000 are needed. A gateway that asks at
// 0 can use a window from 1,600 on. A disk writes a chunk in 200,000.
func roundConfig(rules Rules) Config {
	c := DefaultConfig()
	c.LinkRate, c.OverheadPercent, c.ReservedPercent = 8*units.Gbps, 0, 100
	c.FrameSize, c.ChunkSize, c.Gap, c.Rules = 8000, 100000, 500*ns, rules
	c.DiskRate, c.Accept, c.DiskQueue = units.ByteRate(500e6), AcceptAll, 200000
	return c
}

// TestGaps verifies where bids begin behind each other if there are gaps between them, for both kinds of queue, and
// the rest of one that is accepted in part.
func TestGaps(t *testing.T) {
	d := mustNew(t, roundConfig(RulesPaper))
	for _, q := range []bidQueue{NewRegular(d), NewSparse(d)} {
		ask := func(now sim.Time, chunk uint64, notBefore sim.Time) Window {
			return q.Request(now*ns, chunk, 0, notBefore*ns, 0, nil)
		}
		first := ask(0, 1, 0)
		if _, regular := q.(*Regular); first != win(1600, 143000) && !(regular && first == win(1600, 343000)) {
			t.Errorf("%T: first bid %v", q, first)
		}
		end := first.Right/ns + 500 + 1000
		if got := ask(0, 2, 0); got != win(end, end+141400) {
			t.Errorf("%T: second bid %v", q, got)
		}
		if got := ask(0, 3, end+400000); got != win(end+400000, end+541400) {
			t.Errorf("%T: third bid %v", q, got)
		}
	}

	// Sparse: a hole takes a bid if it is wide enough for it and the gap behind it.
	for _, x := range []struct{ left, want sim.Time }{{143500, 1600}, {143499, 143499 + 141400 + 1500}} {
		q := NewSparse(d)
		q.Request(0, 1, 0, x.left*ns, 0, nil)
		if got := q.Request(0, 2, 0, 0, 0, nil); got != win(x.want, x.want+141400) {
			t.Errorf("before a bid at %d: %v", x.left, got)
		}
	}

	// Regular: canceled neighbours grow up to the gap, if that leaves more than a control message.
	for _, more := range []sim.Time{0, 1} {
		q := NewRegular(d)
		for chunk := range uint64(4) {
			q.Request(0, chunk, 0, 0, 0, nil) // 1600-343000, 344500-485900, 487400-628800, 630300-771700
		}
		q.Cancel(0, 0)
		q.Cancel(0, 2)
		w := win(343000+800+more, 487400-800-more)
		q.bids[1].Window = w
		q.Accept(0, 1, w)
		left, right := Window{1600 * ns, 343000 * ns}, win(487400, 628800)
		if more > 0 {
			left.Right, right.Left = w.Left-500*ns, w.Right+500*ns
		}
		wantBids(t, q, Bid{Chunk: 0, State: Canceled, Window: left}, Bid{Chunk: 1, State: Accepted, Window: w},
			Bid{Chunk: 2, State: Canceled, Window: right}, Bid{Chunk: 3, Window: win(630300, 771700)})
	}
}

// TestIdleTargets verifies when an idle target widens its bid: not if its disk is so full that a chunk would wait for
// it as long as it takes to send.
func TestIdleTargets(t *testing.T) {
	for _, x := range []struct {
		rules   Rules
		regular bool
		delay   sim.Time
		wider   sim.Time // or -1 at random
	}{
		{RulesPaper, true, 99999, 200000}, {RulesPaper, true, 100000, 0},
		{RulesPaper, false, 99999, -1}, {RulesPaper, false, 100000, 0},
		{RulesHead, false, 0, 2000}, {RulesHead, false, 1, 0},
	} {
		d := mustNew(t, roundConfig(x.rules))
		rnd := rng.NewStream(3, "bids")
		wide := 0
		for range 50 {
			var q bidQueue = NewSparse(d)
			if x.regular {
				q = NewRegular(d)
			}
			w := q.Request(0, 1, 0, 0, x.delay*ns, &rnd)
			wider := w.Width() - d.Window
			if wider > 0 {
				wide++
			}
			if want := x.wider; wider != want*ns && (want >= 0 || wider != 0 && wider != 200000*ns) ||
				q.Tally().Stretched != min(int64(wider), 1) || w.Left != max(1600, x.delay)*ns {
				t.Errorf("%+v: %v, wider by %v", x, w, wider)
			}
		}
		if x.wider < 0 && (wide == 0 || wide == 50) {
			t.Errorf("%+v: %d of 50 are wider", x, wide)
		}
	}
}

// TestRegularReuses verifies from both sides how much of a canceled bid must be left, and how many may be pending.
func TestRegularReuses(t *testing.T) {
	d := mustNew(t, roundConfig(RulesPaper))
	for _, x := range []struct {
		pending int
		now     sim.Time
		delay   sim.Time
		want    sim.Time // where the bid begins
	}{
		{2, 0, 0, 1600},
		{2, 200000, 0, 201600},            // exactly a bid is left of the first, 343000 - 141400
		{2, 200001, 0, 486100 + 1300},     // less, so it goes behind the second
		{2, 200000, 1, 486100 + 1300},     // not with a full disk
		{3, 0, 0, 1600},                   //
		{4, 0, 0, 771700 + 1500},          // too many
		{2, 0, -1, 1600},                  //
		{2, 100000, 0, 101600},            // the past is cut off
		{3, 343000 - 141400 - 1300, 0, 0}, // forgotten only when the acceptance would be late
	} {
		q := NewRegular(d)
		for chunk := range uint64(x.pending) {
			q.Request(0, chunk, 0, 0, 0, nil)
		}
		q.Cancel(0, 0)
		got := q.Request(x.now*ns, 9, 0, 0, x.delay*ns, nil)
		want := x.want
		if want == 0 {
			want = 628800 + 1500
		}
		if got.Left != want*ns {
			t.Errorf("%+v: %v", x, got)
		}
		if reused := q.Tally().Reused; (reused == 1) != (want < 300000) {
			t.Errorf("%+v: %d reused", x, reused)
		}
	}
}

// TestDoubleBooking verifies from both sides when a window is offered a second time.
func TestDoubleBooking(t *testing.T) {
	d := mustNew(t, roundConfig(RulesHead)) // three control messages and trips are 3,900, two trips 2,000
	for _, x := range []struct {
		now, notBefore, delay sim.Time
		doubled               bool
	}{
		{300, 0, 0, true}, {299, 0, 0, false}, // the first bid leaves at 300
		{300, 100000, 0, true}, {300, 100001, 0, false},
		{300, 0, 1, false}, {300, 0, -1, true},
		{100000 - 5900, 0, 0, true}, // age cancels out: 3,900 after it was made, and two trips from then on
	} {
		q := NewDoubleBooked(d)
		first := q.Request(0, 1, 0, 100000*ns, 0, nil)
		got := q.Request(x.now*ns, 2, 0, x.notBefore*ns, x.delay*ns, nil)
		if doubled := got == (Window{first.Left, first.Left + d.Window}); doubled != x.doubled ||
			doubled != (q.Tally().DoubleBooked == 1) {
			t.Errorf("%+v: %v after %v", x, got, first)
		}
		// No window is offered three times.
		if third := q.Request(x.now*ns, 3, 0, 0, 0, nil); x.doubled && third.Left == first.Left {
			t.Errorf("%+v: %v is offered a third time", x, third)
		}
	}
	// A window that begins 5,900 after its bid was made can be offered again; one that begins earlier cannot.
	for _, begins := range []sim.Time{5900, 5899} {
		q := NewDoubleBooked(d)
		q.Request(0, 1, 0, begins*ns, 0, nil)
		q.Request(1000*ns, 2, 0, 0, 0, nil)
		if doubled := q.Tally().DoubleBooked == 1; doubled != (begins == 5900) {
			t.Errorf("a window from %d on is offered again: %v", begins, doubled)
		}
	}
}

// TestSequenceRules verifies when the next request is due, from both sides of each rule. Windows are given by their
// edges; the end of a chunk's acceptance is 1,450 from now.
func TestSequenceRules(t *testing.T) {
	paper, head := mustNew(t, roundConfig(RulesPaper)), mustNew(t, roundConfig(RulesHead))
	picks := func(windows ...Window) (list []Pick) {
		for i, w := range windows {
			list = append(list, Pick{int32(i), w})
		}
		return list
	}
	for _, x := range []struct {
		name          string
		d             *Durations
		previous, now sim.Time
		picks         []Pick
		at, notBefore sim.Time
	}{
		{"no hole", paper, -1, 0, picks(win(2000, 110000)), 109400, 110000},
		{"one of two narrow", paper, -1, 0, picks(win(2000, 110000), win(110300, 210000)), 209400, 210000},
		{"a hole between two", paper, -1, 0, picks(win(2000, 110000), win(110301, 210000)), 110000, 210000},
		{"a hole before", paper, 5000, 3699, picks(win(5301, 110000)), 5000, 110000},
		{"a narrow one", paper, 5000, 3699, picks(win(5300, 110000)), 109400, 110000},
		{"too late for it", paper, 5000, 3700, picks(win(5301, 110000)), 109400, 110000},
		{"no wider than messages", paper, -1, 0, picks(win(2000, 2500)), 2000, 2500},
		{"last build", head, -1, 0, picks(win(2000, 110000)), 2000, 110000},
		{"last build, settled", head, -1, 1000, picks(win(2000, 110000)), 2450, 110000},
		{"nothing chosen", paper, -1, 1000, nil, 2450, 2450},
	} {
		s := newSequence(x.d)
		s.Start()
		if s.previous != never {
			t.Fatal("a chunk begins with a window")
		}
		if x.previous >= 0 {
			s.previous = x.previous * ns
		}
		at, notBefore := s.More(x.now*ns, x.picks)
		if at != x.at*ns || notBefore != x.notBefore*ns {
			t.Errorf("%s: at %v from %v, want %d and %d", x.name, at, notBefore, x.at, x.notBefore)
		}
		if n := len(x.picks); n > 0 && s.previous != x.picks[n-1].Window.Right {
			t.Errorf("%s: the windows end at %v", x.name, s.previous)
		}
	}

	// Which offers follow each other: the gap may be a frame, or in the last build a control message and a trip.
	for _, x := range []struct {
		d     *Durations
		reach sim.Time
	}{{paper, 8000}, {head, 1300}} {
		for _, more := range []sim.Time{0, 1} {
			o := NewOffers(x.d)
			second := 2000 + 141400 + x.reach + more
			o.Add(0, win(2000, 2000+141400), nil)
			o.Add(1, win(second, second+141400), nil)
			if got := newSequence(x.d).Choose(0, o, 2, nil); len(got) != 2-int(more) {
				t.Errorf("%v behind the first: %v", x.reach+more, got)
			}
			if got := newSequence(x.d).Choose(0, o, 0, nil); len(got) != 0 {
				t.Errorf("no replica is missing: %v", got)
			}
		}
	}
	// A rejected offer is passed over, and so is one that is taken; an offer too short is no end of the sequence.
	o := NewOffers(paper)
	for i, left := range []sim.Time{2000, 2000, 143400, 143400, 143400} {
		o.Add(int32(i), win(left, left+141400), nil)
	}
	o.list[3].Window.Right = 200000 * ns
	o.Reject(0)
	o.Reject(2)
	got := newSequence(paper).Choose(0, o, 9, nil)
	if len(got) != 2 || got[0].Server != 1 || got[1].Server != 4 {
		t.Errorf("%v", got)
	}

	// An idle server's wider bid is taken if it begins less than a frame later; in the last build 2,600.
	for _, x := range []struct {
		d      *Durations
		within sim.Time
	}{{paper, 8000}, {head, 2600}} {
		for _, y := range []struct {
			later, wider sim.Time
			want         int32
		}{{x.within - 1, 1, 1}, {x.within, 1, 0}, {x.within - 1, 0, 0}, {0, 1, 1}} {
			o := NewOffers(x.d)
			o.Add(0, win(2000, 2000+141400), nil)
			o.Add(1, win(2000+y.later, 2000+y.later+141400+y.wider), nil)
			if got := newSequence(x.d).Choose(0, o, 1, nil); len(got) != 1 || got[0].Server != y.want {
				t.Errorf("%d later, %d wider: %v", y.later, y.wider, got)
			}
		}
	}
	// SURGE considers the second and third of three offers, and none of two, whatever there was before.
	c := roundConfig(RulesPaper)
	c.Compat = true
	d := mustNew(t, c)
	o = NewOffers(d)
	for i := range int32(3) {
		o.Add(i, win(2000+sim.Time(i), 2000+sim.Time(i)+141400+sim.Time(i)*100000), nil)
	}
	if got := newSequence(d).Choose(0, o, 1, nil); len(got) != 1 || got[0] != (Pick{2, win(2002, 343402)}) {
		t.Errorf("of three: %v", got)
	}
	o.Reset()
	o.Add(7, win(2000, 2000+141400), nil)
	o.Add(8, win(2001, 2001+341400), nil)
	if got := newSequence(d).Choose(0, o, 1, nil); len(got) != 1 || got[0].Server != 7 {
		t.Errorf("of two: %v", got)
	}
	if o.Reject(99) {
		t.Error("a server that has made no offer is rejected")
	}
}

// TestChoosyEdges verifies from both sides when a gateway is patient enough, and when a rejection advances its request.
func TestChoosyEdges(t *testing.T) {
	d := mustNew(t, roundConfig(RulesHead)) // patience of 6*(300+1000)
	for _, far := range []sim.Time{15599, 15600} {
		c := NewChoosy(d)
		c.Start()
		o := NewOffers(d)
		o.Add(0, win(far, far+141400), nil)
		kept := []Pick{{Server: 77}}
		got := c.Choose(0, o, 1, kept)
		if patient := len(got) == 2; patient != (far == 15599) || got[0].Server != 77 {
			t.Errorf("%d away: %v", far, got)
		}
		if far == 15600 && c.Patience() != 15600*ns {
			t.Errorf("patience %v", c.Patience())
		}
		if at, from := c.More(10*ns, nil); far == 15600 && (at != (10+3900)*ns || from != at) {
			t.Errorf("asks again at %v from %v", at, from)
		}
	}
	c := NewChoosy(d)
	if at, from := c.More(0, nil); at != 1950*ns || from != 1950*ns { // a quarter of 7,800
		t.Errorf("asks again at %v from %v", at, from)
	}
	for _, planned := range []sim.Time{1299, 1300} {
		at, from := c.Rejected(1000*ns, planned*ns, 7*ns, 900*ns, 5000*ns)
		wantAt, wantFrom := planned, sim.Time(7)
		if planned == 1300 {
			wantAt, wantFrom = 900+1000+150, 5000
		}
		if at != wantAt*ns || from != wantFrom*ns {
			t.Errorf("planned at %d: at %v from %v", planned, at, from)
		}
	}
}

// TestExpects verifies what a queue waits for.
func TestExpects(t *testing.T) {
	d := mustNew(t, roundConfig(RulesPaper))
	q := NewRegular(d)
	is := func(step string, accepted, tentative bool) {
		t.Helper()
		if a, b := q.Expects(); a != accepted || b != tentative || q.Tentative() != tentative {
			t.Errorf("%s: data %v, answers %v", step, a, b)
		}
	}
	is("empty", false, false)
	w := q.Request(0, 1, 0, 0, 0, nil)
	is("asked", false, true)
	q.Accept(0, 1, w)
	is("accepted", true, false)
	q.Request(0, 2, 0, 0, 0, nil)
	is("asked again", true, true)
	q.Request(0, 3, 0, 0, 0, nil)
	q.Cancel(0, 2)
	is("one canceled", true, true)
	q.Done(1)
	is("done", false, true)
	q.Cancel(0, 3)
	is("all canceled", false, false)
}

// TestExpire verifies from both sides when bids are removed, and that those of a canceled chunk do not count.
func TestExpire(t *testing.T) {
	d := mustNew(t, roundConfig(RulesPaper))
	for _, late := range []sim.Time{0, 1} {
		q := NewRegular(d)
		w := q.Request(0, 1, 0, 0, 0, nil)
		for chunk := range uint64(3) {
			q.Request(0, 2+chunk, 0, 0, 0, nil)
		}
		q.Cancel(0, 2)
		n := q.Expire(w.Right+50*ns+late, 50*ns)
		if n != int(late) || q.Tally().Expired != int64(late) || q.canceled != 1 {
			t.Errorf("%d expire, %d canceled are left", n, q.canceled)
		}
		if n := q.Expire(sim.Time(600000)*ns, 0); n != 1-int(late) || q.canceled != 0 || q.Len() != 2 {
			t.Errorf("%d expire, %d are left, %d canceled", n, q.Len(), q.canceled)
		}
	}
	p := NewProxy(d)
	picks := p.Assign(0, 1, nil, nil)
	right := picks[0].Window.Right
	if n := p.Expire(right+9, 9); n != 0 {
		t.Errorf("%d expire early", n)
	}
	if n := p.Expire(right+10, 9); n != 3 || p.Pending(picks[0].Server) != 0 {
		t.Errorf("%d expire", n)
	}
}

// TestProxyTimes verifies the windows that a proxy assigns by hand: behind a member's last, when its disk has capacity,
// and with a lead.
func TestProxyTimes(t *testing.T) {
	c := roundConfig(RulesHead)
	c.Group, c.Replicas, c.Lead = 1, 1, 2000*ns
	d := mustNew(t, c)
	p := NewProxy(d)
	assign := func(now sim.Time, chunk uint64, want sim.Time) {
		t.Helper()
		got := p.Assign(now*ns, chunk, nil, nil)
		if len(got) != 1 || got[0] != (Pick{0, win(want, want+141400)}) {
			t.Errorf("chunk %d: %v, want from %d", chunk, got, want)
		}
	}
	assign(0, 1, 3300) // a control message, a trip and the lead; written from 144700 to 344700
	if p.DiskDone(0) != 344700*ns {
		t.Errorf("written at %v", p.DiskDone(0))
	}
	// The next window could begin at 144700+1500 = 146200, and its chunk be there at 247200, when the disk has 97500 of
	// work, less than one chunk of two.
	assign(0, 2, 146200) // ends at 287600; written by 544700
	// 287600+1500 = 289100, there at 390100: 154600 of work.
	assign(0, 3, 289100) // ends at 430500, written by 744700
	// 432000, there at 533000: 211700 of work, 11700 too much.
	assign(0, 4, 443700)
	if p.DiskDone(0) != 944700*ns || p.Pending(0) != 4 {
		t.Errorf("written at %v, %d pending", p.DiskDone(0), p.Pending(0))
	}
	if p.Done(0, 9, 0) || !p.Done(0, 2, 1000000*ns) || p.DiskDone(0) != 1600000*ns || p.Pending(0) != 3 {
		t.Errorf("written at %v, %d pending", p.DiskDone(0), p.Pending(0))
	}
}

// TestAIMDSteps follows the rate of a sender: a tenth of the link more after each frame and control message of 8,300
// bytes that it sends, from the start or from the last ding on.
func TestAIMDSteps(t *testing.T) {
	a := NewAIMD(mustNew(t, roundConfig(RulesPaper)))
	const step = 800 * units.Mbps
	now := sim.Time(0)
	use := func(bytes int64, want units.BitRate) {
		t.Helper()
		now = a.When(now, 8*bytes)
		if !a.Use(now, 8*bytes) || a.Rate() != want {
			t.Errorf("at %v: %v, want %v", now, a.Rate(), want)
		}
	}
	use(8299, step)
	use(1, 2*step)
	use(8000, 2*step)
	use(300, 3*step)
	use(8000, 3*step)
	a.Ding(now)
	use(300, 3*step/2) // the 8,000 bytes no longer count
	use(7999, 3*step/2)
	use(1, 5*step/2)
	for range 20 {
		use(8300, min(a.Rate()+step, 10*step))
	}
	if a.Use(now, 8*8301) {
		t.Error("more than the bucket holds")
	}
}

// TestShareSkips verifies that a flow whose end is in flight gets no rate wherever it stands among the others.
func TestShareSkips(t *testing.T) {
	d := mustNew(t, roundConfig(RulesPaper)) // 8 Gb/s; a frame of 8,000, and 1,000 bytes in flight
	for ends := range uint64(3) {
		for division, left := range map[Division]units.Bytes{DivideEqually: 9000 / 3, DivideByRemaining: 8000} {
			s := NewShare(d, division)
			for id := range uint64(3) {
				s.Admit(id, 100000)
			}
			// The last one admitted has a third of the rate, so less of it is in flight.
			if division == DivideEqually {
				left = 8000 + 1000/units.Bytes(ends+1)
			}
			s.Received(ends, 100000-left)
			s.Received(99, 5)
			want := 8 * units.Gbps / 3
			if division == DivideByRemaining {
				want = 4 * units.Gbps
			}
			n := 0
			for _, r := range s.Divide(nil) {
				if n++; r.Flow == ends || r.Rate != want {
					t.Errorf("%v, of which %d ends: %+v, want %v", division, ends, r, want)
				}
			}
			if n != 2 {
				t.Errorf("%v, of which %d ends: %d rates", division, ends, n)
			}
			s.Admit(7, 100000)
			s.Received(ends, 100000-left-1) // a byte more, and it counts again
			if got := s.Divide(nil); division == DivideByRemaining && len(got) != 4 {
				t.Errorf("%v: %v", division, got)
			}
		}
	}
}

// TestShareInFlight verifies that the bytes in flight of a flow follow from its last rate.
func TestShareInFlight(t *testing.T) {
	s := NewShare(mustNew(t, roundConfig(RulesPaper)), DivideEqually)
	s.Admit(1, 100000)
	s.Divide(nil)
	s.Admit(2, 100000)
	s.Divide(nil) // 4 Gb/s each, 500 bytes in flight
	s.Admit(3, 100000)
	for id, left := range map[uint64]units.Bytes{1: 8500, 2: 8501} {
		s.Received(id, 100000-left)
	}
	if got := s.Divide(nil); len(got) != 2 || got[0].Flow != 2 || got[1].Flow != 3 {
		t.Errorf("%v", got)
	}
}

// TestDingerWaits verifies from both sides when a receiver looks, how close frames are, and how far a flow must be from
// its end and from its last ding.
func TestDingerWaits(t *testing.T) {
	d := mustNew(t, roundConfig(RulesPaper)) // a frame takes 8,000, the interval is 11,000
	near := []Arrival{{1, 0}, {2, 8000 * ns}, {1, 16000 * ns}}
	for _, x := range []struct {
		name     string
		arrivals []Arrival
		offset   units.Bytes
		dinged   bool
	}{
		{"near", near, 20000, true},
		{"one apart", []Arrival{{1, 0}, {2, 8000 * ns}, {1, 16001 * ns}}, 20000, false},
		{"one pair", near[:2], 20000, false},
		{"three pairs", []Arrival{{1, 0}, {2, 0}, {3, 0}, {4, 0}}, 20000, true},
		{"nothing", nil, 20000, false},
		{"another flow's", []Arrival{{3, 0}, {1, 0}, {1, 0}}, 20000, false},
		{"three frames to go", near, 100000 - 24000, false},
		{"more than three frames", near, 100000 - 24001, true},
		{"a frame after nothing", near, 8000, false},
		{"more than a frame", near, 8001, true},
	} {
		g := NewDinger(d)
		if g.Due() != 11000*ns {
			t.Fatalf("due at %v", g.Due())
		}
		g.Admit(1, 100000)
		g.Admit(2, 100000)
		g.Received(1, x.offset)
		if got := g.Look(11000*ns, x.arrivals, 0, nil); len(got) != 0 {
			t.Errorf("%s: %v as it is due", x.name, got)
		}
		got := g.Look(11001*ns, x.arrivals, 0, []uint64{77})
		if got[0] != 77 || (len(got) == 2 && got[1] == 1) != x.dinged || len(got) > 2 {
			t.Errorf("%s: %v", x.name, got)
		}
		if g.Due() != 22001*ns || g.Len() != 2 {
			t.Errorf("%s: due again at %v", x.name, g.Due())
		}
		// Two chunks fit on the disk, of which each takes 200,000: at one and a half it is full, as rounded.
		for busy, full := range map[sim.Time]bool{299999: false, 300000: true} {
			g := NewDinger(d)
			g.Admit(1, 100000)
			got := g.Look(11001*ns, []Arrival{{1, 0}, {9, 0}, {1, 0}}, busy*ns, nil)
			if (len(got) == 2) != full || !full && len(got) != 0 {
				t.Errorf("busy for %d: %v", busy, got)
			}
			if again := g.Look(22001*ns, []Arrival{{1, 0}}, busy*ns, nil); len(again) != 0 {
				t.Errorf("busy for %d: %v before it is due", busy, again)
			}
		}
	}
	// After a ding, the next is a frame later: marked at 20,000 and a frame, so from 36,001 on.
	g := NewDinger(d)
	g.Admit(1, 100000)
	for i, x := range []struct {
		offset units.Bytes
		dinged bool
	}{{20000, true}, {36000, false}, {36001, true}, {50000, false}} {
		g.Received(1, x.offset)
		if got := g.Look(sim.Time(20000*(i+1))*ns, near, 0, nil); (len(got) == 1) != x.dinged {
			t.Errorf("at %d bytes: %v", x.offset, got)
		}
	}
}

// TestNoTime: nothing waits for a disk that writes a chunk of a byte in no time.
func TestNoTime(t *testing.T) {
	c := roundConfig(RulesPaper)
	c.ChunkSize, c.FrameSize, c.DiskRate = 1, 64, units.ByteRate(5e12)
	d := mustNew(t, c)
	if d.DiskChunk != 0 || d.QueuedFrames(0) != 0 || d.UnicastDelay(0) != 0 || d.BidDelay(0) != 0 {
		t.Errorf("a chunk takes %v; %d frames wait, for %v and %v", d.DiskChunk, d.QueuedFrames(0), d.UnicastDelay(0),
			d.BidDelay(0))
	}
}

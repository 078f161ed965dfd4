package reserve

import (
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

// bidQueue is the common interface of the three queues.
type bidQueue interface {
	Request(now sim.Time, chunk uint64, gateway int32, notBefore, diskDelay sim.Time, rnd *rng.Stream) Window
	Accept(now sim.Time, chunk uint64, w Window) Acceptance
	Cancel(now sim.Time, chunk uint64) bool
	Done(chunk uint64) bool
	Expire(now, grace sim.Time) int
	Find(chunk uint64) (Bid, bool)
	Len() int
	At(int) Bid
	Tally() Tally
}

var queueKinds = []struct {
	name   string
	config func() Config
	make   func(*Durations) bidQueue
}{
	{"regular", DefaultConfig, func(d *Durations) bidQueue { return NewRegular(d) }},
	{"sparse", HybridConfig, func(d *Durations) bidQueue { return NewSparse(d) }},
	{"double", headHybrid, func(d *Durations) bidQueue { return NewDoubleBooked(d) }},
}

func headHybrid() Config {
	c := HybridConfig()
	c.Rules = RulesHead
	return c
}

const ns = units.Nanosecond

// win returns a window given in nanoseconds.
func win(left, right sim.Time) Window { return Window{left * ns, right * ns} }

// wantBids compares the chunks, states and windows of a queue.
func wantBids(t *testing.T, q bidQueue, want ...Bid) {
	t.Helper()
	if q.Len() != len(want) {
		t.Errorf("%d bids pending, want %d", q.Len(), len(want))
		return
	}
	for i, w := range want {
		b := q.At(i)
		if b.Chunk != w.Chunk || b.State != w.State || b.Window != w.Window {
			t.Errorf("bid %d: chunk %d %v %v, want chunk %d %v %v", i, b.Chunk, b.State, b.Window, w.Chunk, w.State,
				w.Window)
		}
	}
}

// The figures below are for 128 KiB chunks in whole nanoseconds: control 2424, chunk 117685, trip 1000; earliest start
// 5848 after a request; bids of 166159, accepted 125765 (Replicast-M); bids of 130553, accepted 129553 (Replicast-H).

func TestRegularByHand(t *testing.T) {
	q := NewRegular(mustNew(t, surge(DefaultConfig(), 128*units.KiB)))
	ask := func(now sim.Time, chunk uint64, delay sim.Time, want Window) {
		t.Helper()
		if got := q.Request(now*ns, chunk, 0, 0, delay*ns, nil); got != want {
			t.Errorf("chunk %d at %d: %v, want %v", chunk, now, got, want)
		}
	}
	ask(0, 1, 0, win(5848, 407377))         // idle: wider by two chunk times
	ask(100, 2, 0, win(408377, 574536))     // a trip behind it
	ask(200, 3, 0, win(575536, 741695))     //
	ask(300, 4, 2e6, win(2000300, 2166459)) // the disk is full for 2 ms

	// The first is accepted and trimmed; the second is canceled and cannot grow into either neighbour.
	q.Accept(10000*ns, 1, win(5848, 131613))
	q.Cancel(10000*ns, 2)
	q.Cancel(10100*ns, 3)
	wantBids(t, q,
		Bid{Chunk: 1, State: Accepted, Window: win(5848, 131613)},
		Bid{Chunk: 3, State: Canceled, Window: win(408377, 741695)}, // merged
		Bid{Chunk: 4, State: Tentative, Window: win(2000300, 2166459)})

	// A new request reuses the merged bid whole; with a full disk it would not.
	ask(10200, 5, 0, win(408377, 741695))
	q.Accept(15000*ns, 5, win(408377, 534142))
	ask(15100, 6, 1000, win(2167459, 2333618))
	q.Cancel(15200*ns, 4)
	q.Done(1)
	ask(15300, 7, 0, win(2000300, 2166459)) // in the hole again, with three pending
	q.Cancel(15400*ns, 7)
	q.Cancel(15500*ns, 6) // everything behind the accepted ones is now canceled and forgotten
	ask(15600, 8, 0, win(535142, 701301))
	wantBids(t, q,
		Bid{Chunk: 5, State: Accepted, Window: win(408377, 534142)},
		Bid{Chunk: 8, State: Tentative, Window: win(535142, 701301)})
	if !q.Done(5) || q.Done(5) {
		t.Error("a chunk is done once")
	}
}

// TestRegularGivesBack verifies that canceled bids grow into the part that an acceptance does not use.
func TestRegularGivesBack(t *testing.T) {
	q := NewRegular(mustNew(t, surge(DefaultConfig(), 128*units.KiB)))
	for chunk := range uint64(4) {
		q.Request(0, chunk, 0, 0, 0, nil)
	}
	// 0: 5848-407377, 1: 408377-574536, 2: 575536-741695, 3: 742695-908854.
	q.Cancel(1000*ns, 0)
	q.Cancel(1000*ns, 2)
	q.Accept(1000*ns, 1, win(440000, 565765))
	wantBids(t, q,
		Bid{Chunk: 0, State: Canceled, Window: win(5848, 440000)},
		Bid{Chunk: 1, State: Accepted, Window: win(440000, 565765)},
		Bid{Chunk: 2, State: Canceled, Window: win(565765, 741695)},
		Bid{Chunk: 3, State: Tentative, Window: win(742695, 908854)})
	// With four bids pending, none is reused.
	if got := q.Request(2000*ns, 4, 0, 0, 0, nil); got != win(909854, 1076013) {
		t.Errorf("with four pending: %v", got)
	}
	q.Cancel(2000*ns, 4)
	// Too little is left of the first one by the time a gateway could use it: 440000 - (t + 3424) < 166159.
	q.Cancel(270417*ns, 99)
	if q.Len() != 4 {
		t.Errorf("%d pending one nanosecond before the first expires", q.Len())
	}
	q.Cancel(270418*ns, 99)
	wantBids(t, q,
		Bid{Chunk: 1, State: Accepted, Window: win(440000, 565765)},
		Bid{Chunk: 2, State: Canceled, Window: win(565765, 741695)},
		Bid{Chunk: 3, State: Tentative, Window: win(742695, 908854)})
}

func TestSparseByHand(t *testing.T) {
	q := NewSparse(mustNew(t, surge(HybridConfig(), 128*units.KiB)))
	ask := func(now sim.Time, chunk uint64, notBefore, delay sim.Time, want Window) {
		t.Helper()
		if got := q.Request(now*ns, chunk, 0, notBefore*ns, delay*ns, nil); got != want {
			t.Errorf("chunk %d at %d: %v, want %v", chunk, now, got, want)
		}
	}
	ask(0, 1, 0, 0, win(5848, 136401))
	ask(0, 2, 300000, 0, win(300000, 430553))
	ask(0, 3, 0, 0, win(137401, 267954)) // into the hole
	ask(0, 4, 0, 0, win(431553, 562106)) // the remaining hole is too small
	ask(0, 5, 0, 700000, win(700000, 830553))
	ask(0, 6, 0, 0, win(563106, 693659)) // and this one just fits
	q.Accept(0, 1, win(5848, 135401))
	q.Cancel(0, 3)
	ask(0, 7, 0, 0, win(136401, 266954)) // a canceled bid leaves a hole
	q.Foresee(7, win(136401, 265954))
	wantBids(t, q,
		Bid{Chunk: 1, State: Accepted, Window: win(5848, 135401)},
		Bid{Chunk: 7, State: Tentative, Window: win(136401, 265954)},
		Bid{Chunk: 2, State: Tentative, Window: win(300000, 430553)},
		Bid{Chunk: 4, State: Tentative, Window: win(431553, 562106)},
		Bid{Chunk: 6, State: Tentative, Window: win(563106, 693659)},
		Bid{Chunk: 5, State: Tentative, Window: win(700000, 830553)})

	// An idle target widens its bid by two chunk times for about half of the requests.
	rnd := rng.NewStream(1, "target[0]/bids")
	wide := 0
	for chunk := range uint64(1000) {
		idle := NewSparse(q.d)
		switch idle.Request(0, chunk, 0, 0, 0, &rnd) {
		case win(5848, 371771):
			wide++
		case win(5848, 136401):
		default:
			t.Fatal("neither wide nor narrow")
		}
	}
	if wide < 450 || wide > 550 {
		t.Errorf("%d of 1000 bids of idle targets are wider", wide)
	}
	head := NewSparse(mustNew(t, surge(headHybrid(), 128*units.KiB)))
	if got := head.Request(0, 1, 0, 0, 0, nil); got != win(5848, 138401) {
		t.Errorf("the last build widens by two trips: %v", got)
	}
	head.Reserve(0, 2, 0, win(200000, 300000))
	wantBids(t, head, Bid{Chunk: 1, Window: win(5848, 138401)},
		Bid{Chunk: 2, State: Accepted, Window: win(200000, 300000)})
}

func TestDoubleBookedByHand(t *testing.T) {
	d := mustNew(t, surge(headHybrid(), 128*units.KiB))
	q := NewDoubleBooked(d)
	first := q.Request(0, 1, 1, 0, 0, nil)
	if first != win(5848, 138401) {
		t.Fatalf("first bid %v", first)
	}
	// The window begins too soon to be revoked: 3*(2424+1000) - age + 2000 from now.
	if got := q.Request(3000*ns, 2, 2, 0, 0, nil); got != win(139401, 269954) {
		t.Errorf("second bid %v", got)
	}
	// The second begins late enough, and its bid has been sent.
	if got := q.Request(5424*ns, 3, 3, 0, 0, nil); got != win(139401, 269954) {
		t.Errorf("doubled bid %v", got)
	}
	// No third bid is made for a window, none for one that has just been offered, and none when the disk is full.
	if got := q.Request(9000*ns, 4, 4, 0, 0, nil); got != win(270954, 401507) {
		t.Errorf("third bid %v", got)
	}
	if got := q.Request(9001*ns, 5, 5, 0, 0, nil); got != win(402507, 533060) {
		t.Errorf("bid right behind another %v", got)
	}
	if got := q.Request(12000*ns, 6, 6, 0, 1*ns, nil); got != win(534060, 664613) {
		t.Errorf("bid with a full disk %v", got)
	}
	a := q.Accept(13000*ns, 2, win(139401, 268954))
	if a.Verdict != TakenFrom || a.Loser.Chunk != 3 || a.Loser.Gateway != 3 {
		t.Errorf("acceptance of the first: %+v", a)
	}
	if b, _ := q.Find(3); b.State != Rejected {
		t.Errorf("the loser is %v", b.State)
	}
	if a := q.Accept(14000*ns, 3, win(139401, 268954)); a.Verdict != Late {
		t.Errorf("acceptance of the loser: %+v", a)
	}
	if _, ok := q.Find(3); ok {
		t.Error("the loser is still there")
	}
	// When the first is canceled, the second has the window alone.
	q.Request(20000*ns, 7, 7, 0, 0, nil)
	if b, _ := q.Find(7); b.Window != win(534060, 664613) {
		t.Errorf("doubled bid %v", b.Window)
	}
	if !q.Cancel(21000*ns, 6) {
		t.Error("not canceled")
	}
	if a := q.Accept(22000*ns, 7, win(534060, 663613)); a.Verdict != Taken {
		t.Errorf("acceptance of the one that is left: %+v", a)
	}
	// A loser that learns of it in time cancels.
	q.Request(30000*ns, 8, 8, 0, 0, nil)
	b, _ := q.Find(8)
	if b.Window != win(402507, 533060) {
		t.Fatalf("the latest tentative bid that is alone is chunk 5's: %v", b.Window)
	}
	q.Accept(31000*ns, 8, win(402507, 532060))
	if !q.Cancel(32000*ns, 5) {
		t.Error("a rejected bid is not canceled")
	}
	if got := q.Tally(); got.DoubleBooked != 3 || got.Refused != 1 {
		t.Errorf("tally %+v", got)
	}
}

// bidRun drives a queue with random operations and checks its invariants.
type bidRun struct {
	t    failer
	kind string
	d    *Durations
	q    bidQueue
	now  sim.Time
	next uint64
	rnd  rng.Stream
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// step performs one operation, chosen by five numbers.
func (r *bidRun) step(op, which uint8, a, b, c uint32) {
	r.t.Helper()
	switch op % 8 {
	case 0, 1, 2:
		r.request(sim.Time(a)*ns, sim.Time(b%400000)*ns*sim.Time(c%2))
	case 3:
		r.accept(which, a, b)
	case 4:
		if chunk, ok := r.pick(which); ok {
			before, _ := r.q.Find(chunk)
			if got := r.q.Cancel(r.now, chunk); got != (before.State == Tentative || before.State == Rejected) {
				r.t.Fatalf("cancel of a bid that was %v: %v", before.State, got)
			}
		}
	case 5:
		if chunk, ok := r.pick(which); ok {
			before, _ := r.q.Find(chunk)
			if r.q.Done(chunk) != (before.State == Accepted) {
				r.t.Fatalf("done of a bid that was %v", before.State)
			}
		}
	case 6:
		r.now += sim.Time(a%300000) * ns
	case 7:
		if which%8 == 0 {
			r.q.Expire(r.now, sim.Time(b%100000)*ns)
		}
	}
	r.hold()
}

// pick returns a chunk that has a bid.
func (r *bidRun) pick(which uint8) (uint64, bool) {
	if r.q.Len() == 0 {
		return 0, false
	}
	b := r.q.At(int(which) % r.q.Len())
	return b.Chunk, b.State != Canceled
}

func (r *bidRun) request(notBefore, delay sim.Time) {
	r.t.Helper()
	r.next++
	soonest := r.d.earliest(r.now, r.now+notBefore%(500000*ns))
	w := r.q.Request(r.now, r.next, int32(r.next%90), soonest, delay, &r.rnd)
	b, ok := r.q.Find(r.next)
	if !ok || b.Window != w || b.State != Tentative || b.Gateway != int32(r.next%90) || b.Created != r.now {
		r.t.Fatalf("given %v, kept %+v", w, b)
	}
	if !bool(r.d.Compat) && (w.Left < soonest || delay > 0 && w.Left < r.now+delay) {
		r.t.Fatalf("asked at %v not before %v, disk full for %v, given %v", r.now, soonest, delay, w)
	}
	if w.Width() < r.d.Window {
		r.t.Fatalf("given %v, narrower than %v", w, r.d.Window)
	}
}

func (r *bidRun) accept(which uint8, a, b uint32) {
	r.t.Helper()
	chunk, ok := r.pick(which)
	if !ok {
		return
	}
	bid, _ := r.q.Find(chunk)
	width := r.d.Needed + sim.Time(a)*ns%(r.d.Accepted-r.d.Needed+1)
	left := bid.Window.Left + sim.Time(b)*ns%(bid.Window.Width()-width+1)
	w := Window{left, left + width}
	if bid.State == Accepted {
		w = bid.Window
	}
	if bid.State == Rejected {
		w = Window{bid.Window.Left, bid.Window.Left + width}
	}
	got := r.q.Accept(r.now, chunk, w).Verdict
	want := map[State]Verdict{Accepted: Unknown, Rejected: Late}[bid.State]
	after, found := r.q.Find(chunk)
	switch {
	case bid.State != Tentative:
		if got != want {
			r.t.Fatalf("accepting a bid that was %v: verdict %d", bid.State, got)
		}
	case got != Taken && got != TakenFrom || !found || after.State != Accepted || after.Window != w:
		r.t.Fatalf("accepting %v of %v: verdict %d, kept %+v", w, bid.Window, got, after)
	}
}

// hold verifies the invariants that hold after each operation.
func (r *bidRun) hold() {
	r.t.Helper()
	var pending, canceled int64
	for i := range r.q.Len() {
		b := r.q.At(i)
		if b.State == Canceled {
			canceled++
		} else {
			pending++
		}
		for j := range i {
			o := r.q.At(j)
			apart := b.Window.Left >= o.Window.Right || o.Window.Left >= b.Window.Right
			if b.State == Accepted && o.State == Accepted && !apart {
				r.t.Fatalf("accepted windows %v and %v overlap", o.Window, b.Window)
			}
			pair := b.paired && b.other == o.Chunk || b.State == Rejected || o.State == Rejected
			if !apart && (r.kind != "double" || !pair) {
				r.t.Fatalf("bids %+v and %+v overlap", o, b)
			}
			if b.Chunk == o.Chunk && b.State != Canceled && o.State != Canceled {
				r.t.Fatalf("chunk %d has two bids", b.Chunk)
			}
		}
	}
	y := r.q.Tally()
	if ended := y.Canceled + y.Done + y.Expired + y.Withdrawn + y.Refused; y.Given != ended+pending {
		r.t.Fatalf("%d bids given, %d ended, %d pending: %+v", y.Given, ended, pending, y)
	}
	if q, ok := r.q.(*Regular); ok && int64(q.canceled) != canceled {
		r.t.Fatalf("%d canceled bids counted, %d pending", q.canceled, canceled)
	}
}

func TestBidsRandom(t *testing.T) {
	for _, k := range queueKinds {
		for _, compat := range []Compat{false, true} {
			t.Run(k.name+map[Compat]string{true: "/surge"}[compat], rapid.MakeCheck(func(t *rapid.T) {
				c := k.config()
				c.Compat = compat
				c.ChunkSize = rapid.SampledFrom([]units.Bytes{16 * units.KiB, 128 * units.KiB, units.MiB}).Draw(t,
					"chunk")
				c.Gap = rapid.SampledFrom([]sim.Time{0, 300 * ns}).Draw(t, "gap")
				d, err := New(c)
				if err != nil {
					t.Fatalf("%v", err)
				}
				r := bidRun{t: t, kind: k.name, d: d, q: k.make(d), rnd: rng.NewStream(1, "bids")}
				for range rapid.IntRange(1, 120).Draw(t, "steps") {
					r.step(rapid.Uint8().Draw(t, "op"), rapid.Uint8().Draw(t, "which"),
						rapid.Uint32().Draw(t, "a"), rapid.Uint32().Draw(t, "b"), rapid.Uint32().Draw(t, "c"))
				}
			}))
		}
	}
}

// FuzzBids drives all queues with the same bytes, six an operation.
func FuzzBids(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 0, 1, 2, 3, 4, 4, 1, 0, 0, 0, 0, 6, 0, 200, 1, 0, 0})
	f.Add([]byte("request, request, accept, cancel, done, expire"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		defer patience.Limit()()
		for _, k := range queueKinds {
			for _, compat := range []Compat{false, true} {
				c := k.config()
				c.Compat = compat
				d := mustNew(t, c)
				r := bidRun{t: t, kind: k.name, d: d, q: k.make(d), rnd: rng.NewStream(1, "bids")}
				for p := ops; len(p) >= 6; p = p[6:] {
					r.step(p[0], p[1], uint32(p[2])<<11+uint32(p[3]), uint32(p[4])<<11, uint32(p[5]))
				}
			}
		}
	})
}

// TestCanceledIsReused verifies that released time goes to the next request.
func TestCanceledIsReused(t *testing.T) {
	for _, k := range queueKinds {
		t.Run(k.name, rapid.MakeCheck(func(t *rapid.T) {
			d, _ := New(k.config())
			q := k.make(d)
			for chunk := range uint64(3) {
				q.Request(0, chunk, 0, 0, 0, nil)
			}
			chunk := uint64(rapid.IntRange(0, 2).Draw(t, "canceled"))
			now := sim.Time(rapid.IntRange(0, 100000).Draw(t, "now")) * ns
			b, _ := q.Find(chunk)
			q.Cancel(now, chunk)
			soonest := max(d.earliest(now, 0), b.Window.Left)
			got := q.Request(now, 9, 0, 0, 0, nil)
			if q.Tally().DoubleBooked == 0 && b.Window.Right-soonest >= d.Window && got.Left > soonest {
				t.Fatalf("canceled %v, asked at %v, given %v", b.Window, now, got)
			}
		}))
	}
}

// TestAskedAgain verifies that a second request for a chunk replaces the first.
func TestAskedAgain(t *testing.T) {
	for _, k := range queueKinds {
		d := mustNew(t, k.config())
		q := k.make(d)
		a := q.Request(0, 1, 0, 0, 0, nil)
		if b := q.Request(0, 1, 0, 0, 0, nil); a != b {
			t.Errorf("%s: first %v, then %v", k.name, a, b)
		}
		if y := q.Tally(); y.Withdrawn != 1 || y.Given != 2 {
			t.Errorf("%s: %+v", k.name, y)
		}
		if n := q.Expire(a.Right+1, 0); n != 1 || q.Len() != 0 {
			t.Errorf("%s: %d expired, %d left", k.name, n, q.Len())
		}
		if q.Accept(0, 1, a).Verdict != Unknown || q.Cancel(0, 1) || q.Done(1) {
			t.Errorf("%s: an expired bid is answered to", k.name)
		}
	}
}

// TestOutside verifies that a gateway cannot take more than its bid.
func TestOutside(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("accepted")
		}
	}()
	q := NewSparse(mustNew(t, HybridConfig()))
	w := q.Request(0, 1, 0, 0, 0, nil)
	q.Accept(0, 1, Window{w.Left - 1, w.Right})
}

package put

import (
	"fmt"
	"slices"
	"testing"

	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// sheet records messages, frames and writes; busy is every disk's backlog.
type sheet struct {
	messages []Message
	frames   int
	busy     sim.Time
}

func (s *sheet) Send(_ int32, m Message, _ []int32)            { s.messages = append(s.messages, m) }
func (s *sheet) Hold(m Message, _ sim.Time)                    { s.messages = append(s.messages, m) }
func (s *sheet) Cancel(_ int32, m Message, _ []int32)          { s.messages = append(s.messages, m) }
func (s *sheet) Accept(m Message, _ []int32, _ []reserve.Pick) { s.messages = append(s.messages, m) }
func (s *sheet) Backlog(int32) sim.Time                        { return s.busy }
func (s *sheet) WriteTime(int32) sim.Time                      { return 4 * units.Microsecond }
func (s *sheet) Write(int32, Message)                          {}
func (s *sheet) take() []Message                               { m := s.messages; s.messages = nil; return m }

func (s *sheet) Acknowledged(int32)    {}
func (s *sheet) Abort(int32, sim.Time) {}
func (s *sheet) Bound(int32, sim.Time) {}

type sheetFrames struct{ *sheet }

func (s *sheetFrames) Send(int32, int32, Frame, sim.Time, []int32)         { s.frames++ }
func (s *sheetFrames) Waiting(_ int32, seen []WaitingFrame) []WaitingFrame { return seen }

// bench returns a bus with round numbers: a byte takes 1 ns on a link, a message has 100 B, a frame at most 1000 B, a
// trip takes 1 us and a piece has 4000 B. Chunk n has ID n+1 and belongs to gateway 0; all of two groups of four
// targets are its candidates.
func bench(t *testing.T, p Scheme, change func(*Plan)) (*Bus, *sheet) {
	t.Helper()
	c := reserve.UnicastConfig()
	c.LinkRate, c.OverheadPercent, c.FrameSize, c.ChunkSize, c.Trip, c.Replicas = 8*units.Gbps, 0, 1000, 4000,
		units.Microsecond, 3
	c.ControlSize, c.DiskRate, c.DiskQueue = 100, 1_000_000_000, 100*units.KB
	d, err := reserve.New(c)
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Traits: p.Traits(), Times: d, Gateways: 2, Targets: 8, Copies: 3, Piece: 4000, Alone: d.DiskChunk,
		Frame: 1000, Trip: units.Microsecond, GroupSize: 4, Candidates: 2, Choices: 1,
		Overcommit: 2, Ahead: 5 * units.Microsecond, Queued: true}
	change(&plan)
	b, s := made(t, plan), &sheet{}
	b.Messages, b.Disks, b.Outcomes, b.Frames, b.Tally = s, s, s, &sheetFrames{s}, &Tally{}
	b.Clock.Engine = sim.New()
	b.Clock.Self, b.Clock.Handler = b.Clock.Engine.NewComponent(), b.Clock.Engine.AddHandler(clockwork{})
	for i := range 6 {
		b.Chunks = append(b.Chunks, Chunk{ID: uint64(i + 1), Groups: [MaxGroups]int32{0, 1}})
	}
	return b, s
}

// clockwork handles events that only advance the clock.
type clockwork struct{}

func (clockwork) Handle(sim.Event) {}

// pass advances the clock.
func pass(b *Bus, by sim.Time) {
	b.After(b.Now()+by, 0)
	b.Engine.Run(b.Now() + by)
}

// orders calls a function with all permutations of 0 to n-1.
func orders(n int, f func(order []int)) {
	var next func(order []int)
	next = func(order []int) {
		if len(order) == n {
			f(order)
			return
		}
		for k := range n {
			if !slices.Contains(order, k) {
				next(append(slices.Clone(order), k))
			}
		}
	}
	next(nil)
}

// TestGrantsOrder verifies that, in whatever order pieces began to arrive, a target grants to the two with the fewest
// bytes missing, fewest first, up to the bytes received plus a round trip's reach (2.1 us, so two frames, and two
// more), and that a full disk stops grants.
func TestGrantsOrder(t *testing.T) {
	orders(4, func(order []int) {
		b, s := bench(t, Grants, func(p *Plan) { p.Piece = 7500 })
		g := newGrants(b)
		for _, k := range order {
			g.come[1] = append(g.come[1],
				coming{chunk: int32(k), id: uint64(k + 1), received: units.Bytes(1000 * (k + 1)), place: int8(k)})
		}
		s.busy = units.Second
		if g.serve(1); len(s.take()) != 0 || !b.Engine.Armed(g.clock[1]) {
			t.Errorf("%v: a full disk is granted for, or not looked at again", order)
		}
		s.busy = 0
		g.serve(1)
		got := ""
		for _, m := range s.take() {
			got += fmt.Sprintf("%d from %d to %d B, replica %d; ", m.ID, m.From, m.A, m.N)
		}
		if want := "4 from 1 to 7500 B, replica 3; 3 from 1 to 7000 B, replica 2; "; got != want {
			t.Errorf("%v: %s, not %s", order, got, want)
		}
		if g.serve(1); len(s.take()) != 0 {
			t.Errorf("%v: the same is granted twice", order)
		}
	})
}

// TestOffersOrder verifies that a gateway whose collection of offers is over binds with as many targets as there are
// copies, in the order in which their links are free, with ties in order of arrival, and declines later offers.
func TestOffersOrder(t *testing.T) {
	in := []sim.Time{30, 10, 20, 10}
	orders(4, func(order []int) {
		b, s := bench(t, Pull, func(p *Plan) { p.Copies = 4 })
		p := newPull(b)
		p.puts = []pulled{{id: 1, heard: true}}
		for n, k := range order {
			if b.Chunks[0].N != 0 {
				t.Fatalf("%v: bound with %d offers", order, n)
			}
			p.Message(&Message{Kind: offer, From: int32(k), Chunk: 0, ID: 1, A: in[k]})
		}
		want := []int32{1, 3, 2, 0}
		if slices.Index(order, 3) < slices.Index(order, 1) {
			want[0], want[1] = 3, 1
		}
		x := &b.Chunks[0]
		if !slices.Equal(x.Targets[:x.N], want) {
			t.Errorf("offers of %v: %v, not %v", order, x.Targets[:x.N], want)
		}
		// An offer after the announcement must have arrived is declined, unless it is from a chosen target.
		s.take()
		pass(b, 3*units.Microsecond)
		p.Message(&Message{Kind: offer, From: 5, Chunk: 0, ID: 1})
		p.Message(&Message{Kind: offer, From: 2, Chunk: 0, ID: 1})
		if m := s.take(); len(m) != 1 || m[0].Kind != giveUp || m[0].To != 5 {
			t.Errorf("%v: answered with %+v", order, m)
		}
	})
}

// TestPullListens verifies that of six simultaneous offers a gateway chooses the three with the soonest completion,
// whatever their order, after the time that the messages of all eight targets take on its link, and that a timer of an
// earlier attempt has no effect.
func TestPullListens(t *testing.T) {
	done := []sim.Time{60, 10, 50, 20, 40, 30}
	orders(6, func(order []int) {
		b, s := bench(t, Pull, func(*Plan) {})
		p := newPull(b)
		p.puts = []pulled{{id: 1}}
		for _, k := range order {
			p.Message(&Message{Kind: offer, From: int32(k), Chunk: 0, ID: 1, A: 7, B: done[k]})
		}
		x := &b.Chunks[0]
		if b.Engine.Next() != 800*units.Nanosecond || x.N != 0 {
			t.Fatalf("%v: bound to %d, or after %v", order, x.N, b.Engine.Next())
		}
		p.puts[0].id = 9
		p.Timer(0 | listens)
		if p.puts[0].id = 1; x.N != 0 || p.puts[0].heard {
			t.Fatalf("%v: an attempt that is over is bound", order)
		}
		p.Timer(0 | listens)
		slices.Sort(x.Targets[:x.N])
		if !slices.Equal(x.Targets[:x.N], []int32{1, 3, 5}) || len(s.take()) != 2 {
			t.Errorf("%v: taken are %v", order, x.Targets[:x.N])
		}
	})
}

// TestPullTakes verifies when a gateway announces that it will begin to send, and when targets expect the data. Per
// chunk bound before, its link carries a message for each of two groups, 0.1 us, and the data, 4 us a piece: one piece
// for a chain, all pieces for a code. A target of a code behind k others waits another k pieces. It counts as work only
// data that begins within 5 us (ahead): the third target's does not, at 8 us.
func TestPullTakes(t *testing.T) {
	for _, c := range []struct {
		coded bool
		each  sim.Time    // time of a chunk on its gateway's link
		ready [3]sim.Time // time until each target's link is free
	}{
		{false, 4200 * units.Nanosecond,
			[3]sim.Time{4 * units.Microsecond, 4 * units.Microsecond, 4 * units.Microsecond}},
		{true, 12200 * units.Nanosecond, [3]sim.Time{4 * units.Microsecond, 4 * units.Microsecond, 0}},
	} {
		b, s := bench(t, Pull, func(p *Plan) { p.Coded = c.coded })
		p := newPull(b)
		p.puts = make([]pulled, 3)
		for i := range int32(3) {
			p.puts[i].heard = true
			for k := range int32(3) {
				p.Message(&Message{Kind: offer, From: k, Chunk: i, ID: uint64(i + 1)})
			}
			m := s.take()
			if len(m) != 2 || m[0].Kind != take || m[0] != m[1] || m[0].A != sim.Time(i)*c.each {
				t.Errorf("coded %v: chunk %d is told of by %+v, not in %v", c.coded, i, m, sim.Time(i)*c.each)
			}
		}
		for k, want := range c.ready {
			p.Message(&Message{Kind: take, To: int32(k), Chunk: 0, ID: 1})
			s.take()
			if _, ready, _, ok := p.ends[k].Offer(b.Now(), 0, 4*units.Microsecond); ok {
				t.Errorf("coded %v: target %d offers itself to nobody, in %v", c.coded, k, ready)
			}
			p.ends[k].Ask(reserve.Waiting{ID: 9, From: 1})
			if _, ready, _, ok := p.ends[k].Offer(b.Now(), 0, 1*units.Microsecond); !ok || ready != want {
				t.Errorf("coded %v: target %d is free in %v, not %v (%v)", c.coded, k, ready, want, ok)
			}
		}
	}
}

// TestCancelledFlows verifies that an abandoned flow leaves the whole link, 8 bit/ns, to the other one, which the
// target notifies, and that canceling an unknown flow has no effect.
func TestCancelledFlows(t *testing.T) {
	b, s := bench(t, UCH, func(p *Plan) { p.Copies = 1 })
	u := newUCH(b, reserve.DivideEqually)
	var keys [2]sim.Time
	for n := range int32(2) {
		u.of = append(u.of, [MaxReplicas]int32{})
		b.Chunks[n].N, b.Chunks[n].Targets[0] = 1, 3
		u.ask(n, 0)
		s.take()
		keys[n] = sim.Time(u.key(n))
		u.Message(&Message{Kind: putRequest, To: 3, Chunk: n, ID: uint64(n + 1), N: n})
		if m := s.take(); len(m) == 0 || m[0].Kind != rateInit || m[0].A != 8e9/sim.Time(n+1) {
			t.Errorf("flow %d is answered with %+v", n, m)
		}
	}
	u.Message(&Message{Kind: putCancel, To: 3, A: 77 << 32})
	if m := s.take(); len(m) != 0 || u.share[3].Len() != 2 {
		t.Errorf("a cancel of nothing sends %+v", m)
	}
	u.Message(&Message{Kind: putCancel, To: 3, A: keys[0]})
	if m := s.take(); len(m) != 1 || m[0].Kind != rateSet || m[0].N != 1 || m[0].A != 8e9 || u.share[3].Len() != 1 {
		t.Errorf("the other flow hears %+v", m)
	}
}

// TestFlowsThatMayNotSend verifies that a flow without an answer, or with all data sent, sends no frames, and that
// others do.
func TestFlowsThatMayNotSend(t *testing.T) {
	for _, c := range []struct {
		started bool
		sent    units.Bytes
		frames  bool
	}{{false, 0, false}, {true, 4000, false}, {false, 4000, false}, {true, 0, true}, {true, 3000, true}} {
		b, s := bench(t, UCHAIMD, func(p *Plan) { p.Copies = 1 })
		a := newAIMD(b)
		a.of = make([][MaxReplicas]int32, 1)
		a.ask(0, 0)
		pass(b, units.Millisecond) // the request has left the link
		a.flows.Items[0].started, a.flows.Items[0].sent = c.started, c.sent
		if a.Timer(0); s.frames > 0 != c.frames {
			t.Errorf("AIMD, answered %v, %d B sent: %d frames", c.started, c.sent, s.frames)
		}
		b, s = bench(t, UCH, func(p *Plan) { p.Copies = 1 })
		u := newUCH(b, reserve.DivideEqually)
		u.of = make([][MaxReplicas]int32, 1)
		u.ask(0, 0)
		pass(b, units.Millisecond)
		if u.flows.Items[0].sent = c.sent; c.started {
			u.flows.Items[0].rate = 8 * units.Gbps
			u.flows.Items[0].own.SetRate(b.Now(), 8*units.Gbps)
		}
		if u.Timer(0); s.frames > 0 != c.frames {
			t.Errorf("CCP, answered %v, %d B sent: %d frames", c.started, c.sent, s.frames)
		}
	}
}

// TestTargetsLook verifies that an AIMD target keeps inspecting its port while it has at least one flow.
func TestTargetsLook(t *testing.T) {
	for flows := range uint64(3) {
		b, _ := bench(t, UCHAIMD, func(*Plan) {})
		a := newAIMD(b)
		for n := range flows {
			a.dinger[2].Admit(n, 4000)
		}
		if a.inspect(2); b.Engine.Armed(a.look[2]) != (flows > 0) {
			t.Errorf("with %d flows the target looks again: %v", flows, b.Engine.Armed(a.look[2]))
		}
	}
}

// TestAbandonedAsksNoMore verifies that an abandoned chunk's timer does not ask for its other replicas.
func TestAbandonedAsksNoMore(t *testing.T) {
	b, s := bench(t, ReplicastH, func(p *Plan) { p.Copies = 2 })
	h := newHybrid(b)
	h.Begin(0)
	s.take()
	h.askAt(0, b.Now(), b.Now())
	h.Abandon(0)
	s.take()
	h.Timer(1)
	if m := s.take(); len(m) != 0 {
		t.Errorf("a chunk that is given up asks: %+v", m)
	}
}

// TestAbandonedSendsNoMore verifies that an abandoned chunk's timer does not send frames.
func TestAbandonedSendsNoMore(t *testing.T) {
	for _, given := range []bool{false, true} {
		b, s := bench(t, ReplicastM, func(*Plan) {})
		r := newReplicast(b)
		r.Begin(0)
		b.Chunks[0].N, b.Chunks[0].Targets = 3, [MaxReplicas]int32{0, 1, 2}
		r.puts[0].next = b.Now()
		if given {
			r.Abandon(0)
		}
		if r.Timer(0); s.frames > 0 == given {
			t.Errorf("given up %v: %d frames", given, s.frames)
		}
	}
}

// TestDings verifies that a ding slows down the flow it addresses, unless that flow has sent all its data.
func TestDings(t *testing.T) {
	for _, c := range []struct {
		id   uint64
		from int32
		sent units.Bytes
		want uint64
	}{{1, 3, 1000, 1}, {2, 3, 1000, 0}, {1, 4, 1000, 0}, {1, 3, 4000, 0}, {2, 4, 1000, 0}, {1, 3, 3999, 1}} {
		b, _ := bench(t, UCHAIMD, func(p *Plan) { p.Copies = 1 })
		a := newAIMD(b)
		a.of = make([][MaxReplicas]int32, 1)
		b.Chunks[0].Targets[0] = 3
		a.ask(0, 0)
		a.flows.Items[0].started, a.flows.Items[0].sent = true, c.sent
		before := a.rate[0].Rate()
		a.Message(&Message{Kind: dinged, From: c.from, N: 0, ID: c.id})
		if slower := a.rate[0].Rate() < before; b.Tally.Dings != c.want || slower && c.want == 0 {
			t.Errorf("%+v: %d dings, slower %v", c, b.Tally.Dings, slower)
		}
	}
}

// TestDataWaitsForItsAcceptance verifies that a frame that is due while the acceptance of its window is on the link is
// sent when that has left, and no frame before.
func TestDataWaitsForItsAcceptance(t *testing.T) {
	for _, wait := range []sim.Time{0, 5 * units.Microsecond} {
		b, s := bench(t, ReplicastH, func(p *Plan) { p.Copies = 1 })
		h := newHybrid(b)
		h.Begin(0)
		n := h.flows.Take()
		h.flows.Items[n] = delivery{chunk: 0, target: 2}
		h.puts[0].control = b.Now() + wait
		h.Timer(uint32(n) << 1)
		next := 1 * units.Microsecond // when the next frame is due, if this one was sent
		if wait > 0 {
			next = wait
		}
		if s.frames > 0 == (wait > 0) || b.Engine.Pending() != 1 || b.Engine.Next() != next {
			t.Errorf("a message on the link for %v: %d frames, and more at %v", wait, s.frames, b.Engine.Next())
		}
	}
}

package puttest

import (
	"slices"
	"testing"

	"farflash/model/cluster/put"
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// Subject is an idle cluster under test, with at least 2 gateways and 6 targets. Its Traits.New must make the protocol
// that fresh is given.
type Subject struct {
	Bus    *put.Bus
	Engine *sim.Engine
	// Begin has a gateway put a chunk.
	Begin func(gateway int32)
}

// Conform tests that the bus of the clusters that fresh makes fulfils its contracts.
func Conform(t *testing.T, fresh func(t *testing.T, protocol func(*put.Bus) put.Protocol) Subject) {
	for _, c := range []struct {
		name string
		test func(*session)
	}{
		{"messages arrive once", (*session).send},
		{"held messages", (*session).hold},
		{"acceptances", (*session).accept},
		{"frames", (*session).frames},
		{"frames of chunks that are over", (*session).stale},
		{"disks", (*session).disks},
		{"outcomes", (*session).outcomes},
		{"timers", (*session).timers},
		{"groups", (*session).groups},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &session{t: t}
			s.Subject = fresh(t, func(*put.Bus) put.Protocol { return s })
			s.begin = func(i int32) {
				s.begin = func(int32) {} // a closed loop begins more chunks, which the test ignores
				s.chunk = i
				c.test(s)
			}
			s.Subject.Begin(0)
			s.Engine.Run(s.Engine.Now() + units.Second)
			if s.after == nil {
				t.Fatal("no chunk has begun")
			}
			s.after()
		})
	}
}

// session is a protocol that records what arrives. A test runs when its chunk begins; after verifies the
// records at the end.
type session struct {
	Subject
	t     *testing.T
	chunk int32
	begin func(i int32)
	after func()
	heard []heard
	got   []got
	woken []woken
}

type heard struct {
	at sim.Time
	put.Message
}

type got struct {
	at sim.Time
	put.Frame
}

type woken struct {
	at  sim.Time
	arg uint32
}

func (s *session) Begin(i int32) { s.begin(i) }
func (s *session) Message(m *put.Message) {
	s.heard = append(s.heard, heard{s.Engine.Now(), *m})
}
func (s *session) Frame(f put.Frame) { s.got = append(s.got, got{s.Engine.Now(), f}) }
func (s *session) Timer(arg uint32)  { s.woken = append(s.woken, woken{s.Engine.Now(), arg}) }

// Floor implements put.Forecast.
func (s *session) Floor(*put.Plan) sim.Time { return units.Millisecond }

// Expects implements put.Forecast.
func (s *session) Expects(int32) (promised, open bool) { return false, false }

// message returns a message about the session's chunk.
func (s *session) message(kind uint8, from, to int32) put.Message {
	return put.Message{Kind: kind, From: from, To: to, Chunk: s.chunk, ID: s.Bus.Chunks[s.chunk].ID, A: 5, B: 7, N: 11}
}

// soonest returns the earliest time at which a message sent now may arrive.
func (s *session) soonest() sim.Time { return s.Engine.Now() + s.Bus.OnLink() + s.Bus.Trip }

// send verifies that messages arrive once at each receiver, unchanged and not too early, that targets receive their own
// number, and that arguments may be reused.
func (s *session) send() {
	b := s.Bus
	at := s.soonest()
	to := []int32{b.Node(1), b.Node(2), b.Node(5)}
	b.Messages.Send(0, s.message(1, 0, -1), to)
	to[0], to[1], to[2] = 0, 0, 0
	b.Messages.Send(b.Node(3), s.message(2, 3, 0), []int32{0})
	b.Messages.Send(b.Node(3), s.message(3, 3, 4), []int32{b.Node(4)})
	b.Messages.Cancel(0, s.message(4, 0, -1), []int32{b.Node(0), b.Node(3)})
	want := map[uint8][]int32{1: {1, 2, 5}, 2: {0}, 3: {4}, 4: {0, 3}}
	s.after = func() {
		where := map[uint8][]int32{}
		for _, h := range s.heard {
			where[h.Kind] = append(where[h.Kind], h.To)
			if h.at < at || h.Chunk != s.chunk || h.ID == 0 || h.A != 5 || h.B != 7 || h.N != 11 {
				s.t.Errorf("%+v, sent to come at %v", h, at)
			}
		}
		for kind, list := range want {
			if slices.Sort(where[kind]); !slices.Equal(where[kind], list) {
				s.t.Errorf("message %d is heard at %v, not at %v", kind, where[kind], list)
			}
		}
	}
}

// hold verifies that a message held at a target arrives later by the delay.
func (s *session) hold() {
	const long = 50 * units.Microsecond
	at := s.soonest() + long
	s.Bus.Messages.Hold(s.message(1, 2, 0), long)
	s.after = func() {
		if len(s.heard) != 1 || s.heard[0].at < at || s.heard[0].at > at+units.Microsecond || s.heard[0].From != 2 {
			s.t.Errorf("%+v, held until %v", s.heard, at)
		}
	}
}

// accept verifies that picked targets receive their windows, and the others the common message.
func (s *session) accept() {
	m := s.message(1, 0, -1)
	m.A, m.B, m.N = 0, 0, -1
	s.Bus.Messages.Accept(m, []int32{0, 1, 2, 3},
		[]reserve.Pick{{Server: 2, Window: reserve.Window{Left: 20, Right: 21}},
			{Server: 1, Window: reserve.Window{Left: 10, Right: 11}}})
	s.after = func() {
		if len(s.heard) != 4 {
			s.t.Errorf("%d have heard of 4", len(s.heard))
		}
		for _, h := range s.heard {
			want := put.Message{Kind: 1, Chunk: s.chunk, ID: h.ID, To: h.To, N: -1}
			if h.To == 1 || h.To == 2 {
				want.N, want.A, want.B = h.To, sim.Time(10*h.To), sim.Time(10*h.To+1)
			}
			if h.Message != want {
				s.t.Errorf("%+v, want %+v", h.Message, want)
			}
		}
	}
}

// frames verifies that frames arrive once at each receiver in the order in which they were sent, no earlier than their
// link allows: one after the other where links queue. A message does not queue behind all of them.
func (s *session) frames() {
	b := s.Bus
	const n = 20
	start, each := s.Engine.Now(), b.FrameTime(b.Frame)
	for k := range uint32(n) {
		b.Frames.Send(0, s.chunk, put.Frame{Arg: k, Size: b.Frame}, each, []int32{b.Node(1), b.Node(4)})
	}
	b.Messages.Send(0, s.message(1, 0, 1), []int32{b.Node(1)})
	s.after = func() {
		next := map[int32]uint32{}
		for _, g := range s.got {
			before := sim.Time(0)
			if b.Queued && !b.Unpaced {
				before = sim.Time(g.Arg)
			}
			if g.Arg != next[g.Target] || g.Size != b.Frame || g.at < start+each*(before+1)+b.Trip {
				s.t.Errorf("%+v, after %d others", g, next[g.Target])
			}
			next[g.Target]++
		}
		if next[1] != n || next[4] != n || len(next) != 2 {
			s.t.Errorf("frames at %v", next)
		}
		if len(s.heard) != 1 || len(s.got) == 0 || s.heard[0].at >= s.got[len(s.got)-1].at {
			s.t.Errorf("%+v, behind %d frames", s.heard, len(s.got))
		}
	}
}

// stale verifies that frames of a completed chunk are not delivered.
func (s *session) stale() {
	b := s.Bus
	b.Frames.Send(0, s.chunk, put.Frame{Arg: 1, Size: b.Frame}, 0, []int32{b.Node(1)})
	b.Outcomes.Abort(s.chunk, units.Microsecond)
	s.after = func() {
		if len(s.got) > 0 {
			s.t.Errorf("%+v", s.got)
		}
	}
}

// disks verifies that a target writes pieces one after the other, each in its WriteTime, and acknowledges each one.
func (s *session) disks() {
	b := s.Bus
	start, write := s.Engine.Now(), b.Disks.WriteTime(2)
	if b.Disks.Backlog(2) != 0 || write <= 0 {
		s.t.Fatalf("an idle disk is busy for %v, and writes in %v", b.Disks.Backlog(2), write)
	}
	for k := range 3 {
		b.Disks.Write(2, s.message(uint8(k+1), 2, 0))
		if got, want := b.Disks.Backlog(2), write*sim.Time(k+1); got != want {
			s.t.Errorf("with %d pieces a disk is busy for %v, not %v", k+1, got, want)
		}
	}
	if b.Disks.Backlog(3) != 0 {
		s.t.Error("another disk is busy")
	}
	s.after = func() {
		if len(s.heard) != 3 || b.Disks.Backlog(2) != 0 {
			s.t.Fatalf("%+v; busy for %v at the end", s.heard, b.Disks.Backlog(2))
		}
		for k, h := range s.heard {
			if at := start + write*sim.Time(k+1) + b.OnLink() + b.Trip; h.Kind != uint8(k+1) || h.at != at {
				s.t.Errorf("%+v, want at %v", h, at)
			}
		}
	}
}

// outcomes verifies that the last acknowledgement ends a chunk, and no earlier one does.
func (s *session) outcomes() {
	b := s.Bus
	id := b.Chunks[s.chunk].ID
	b.Chunks[s.chunk].N = int8(b.Copies) // as a protocol would choose them
	for k := range b.Copies {
		if b.Chunks[s.chunk].ID != id || int(b.Chunks[s.chunk].Acked) != k {
			s.t.Fatalf("after %d acknowledgements of %d: %+v", k, b.Copies, b.Chunks[s.chunk])
		}
		b.Outcomes.Acknowledged(s.chunk)
	}
	if b.Chunks[s.chunk].ID == id {
		s.t.Error("all replicas are acknowledged and the chunk goes on")
	}
	s.after = func() {}
}

// timers verifies that timers fire at their time unless stopped, and that a time in the past fires now.
func (s *session) timers() {
	b, now := s.Bus, s.Engine.Now()
	b.After(now+300, 3)
	b.After(now-1, 1)
	stopped, moved := b.NewTimer(9), b.NewTimer(2)
	b.Arm(stopped, now+150)
	b.Disarm(stopped)
	b.Arm(moved, now+500)
	b.Arm(moved, now+200)
	s.after = func() {
		if want := []woken{{now, 1}, {now + 200, 2}, {now + 300, 3}}; !slices.Equal(s.woken, want) {
			s.t.Errorf("%v, want %v", s.woken, want)
		}
	}
}

// groups verifies that GroupOf leaves out targets that are away.
func (s *session) groups() {
	b := s.Bus
	size := int32(b.GroupSize)
	b.Away[size+1] = true
	list := b.GroupOf(1, nil)
	if len(list) != int(size)-1 || slices.Contains(list, size+1) || slices.Min(list) != size ||
		slices.Max(list) != 2*size-1 {
		s.t.Errorf("group 1 is %v without %d", list, size+1)
	}
	b.Away[size+1] = false
	s.after = func() {}
}

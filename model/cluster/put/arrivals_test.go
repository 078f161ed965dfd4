package put

import (
	"slices"
	"testing"

	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// waiting is Frames with a fixed list of waiting frames.
type waiting []WaitingFrame

func (waiting) Send(int32, int32, Frame, sim.Time, []int32) {}
func (w waiting) Waiting(_ int32, seen []WaitingFrame) []WaitingFrame {
	return append(seen, w...)
}

// TestArrivals verifies the frames that an AIMD target observes: with queues, those at its port, back to back from now
// on; without queues, those in flight in order of arrival, which is not the order of sending.
func TestArrivals(t *testing.T) {
	d, err := reserve.New(reserve.UnicastConfig())
	if err != nil {
		t.Fatal(err)
	}
	b := made(t, Plan{Traits: UCHAIMD.Traits(), Times: d, Gateways: 1, Targets: 2, Copies: 1, Piece: 1000, Frame: 1000,
		Queued: true, Choices: 1})
	b.Clock.Engine = sim.New()
	b.Clock.Self, b.Clock.Handler = b.Clock.Engine.NewComponent(), b.Clock.Engine.AddHandler(clockwork{})
	b.Frames = waiting{{Arg: 1, Takes: 10}, {Arg: 0, Takes: 25}}
	a := newAIMD(b)
	for range 2 {
		n := a.flows.Take()
		a.flows.Items[n].epoch = uint32(7 + n)
	}
	want := []reserve.Arrival{{Flow: 8<<32 | 1, At: 10}, {Flow: 7 << 32, At: 35}}
	if got := a.arrivals(0); !slices.Equal(got, want) {
		t.Errorf("%v come, not %v", got, want)
	}
	b.Queued = false
	for _, x := range []reserve.Arrival{{Flow: 1, At: 50}, {Flow: 2, At: 70}, {Flow: 3, At: 60}, {Flow: 4, At: 10},
		{Flow: 5, At: 60}} {
		a.expect(1, x)
	}
	want = []reserve.Arrival{{Flow: 4, At: 10}, {Flow: 1, At: 50}, {Flow: 3, At: 60}, {Flow: 5, At: 60},
		{Flow: 2, At: 70}}
	if got := a.arrivals(1); !slices.Equal(got, want) || len(a.arrivals(0)) != 0 {
		t.Errorf("%v come, not %v", got, want)
	}
	if n, f := a.flowOf(8<<32 | 1); n != 1 || f != &a.flows.Items[1] {
		t.Errorf("flow %d", n)
	}
	if _, f := a.flowOf(7<<32 | 1); f != nil {
		t.Error("a flow that was given up is known")
	}
}

// TestPieces verifies that pieces in arrival are kept in the order in which they began, frame by frame, until they are
// whole or forgotten.
func TestPieces(t *testing.T) {
	var a arrivals
	one, two := &Chunk{ID: 5, Gateway: 3, N: 2, Targets: [MaxReplicas]int32{7, 9}},
		&Chunk{ID: 6, N: 1, Targets: [MaxReplicas]int32{9}}
	if a.whole(one, 0, Frame{Target: 9, Size: 600}, 1000) || a.whole(two, 1, Frame{Target: 9, Size: 999}, 1000) ||
		len(a) != 2 {
		t.Errorf("%+v", a)
	}
	if a[0] != (coming{chunk: 0, place: 1, gateway: 3, id: 5, received: 600}) || a.of(6) != 1 || a.of(7) != -1 {
		t.Errorf("%+v", a)
	}
	a.forget(7)
	if !a.whole(one, 0, Frame{Target: 9, Size: 400}, 1000) || len(a) != 1 || a[0].id != 6 {
		t.Errorf("%+v", a)
	}
	a.forget(6)
	if len(a) != 0 {
		t.Errorf("%+v", a)
	}
	if k := a.add(two, 1, Frame{Target: 9, Size: 1}); k != 0 || a[0].received != 1 {
		t.Errorf("%+v", a)
	}
}

// TestPlanTimes verifies a plan's durations, computed by hand: 1 ns per byte on a link at 8 Gbit/s, a message of 100 B,
// a trip of 1 us, a disk of 4 us for 2500 B.
func TestPlanTimes(t *testing.T) {
	c := reserve.UnicastConfig()
	c.LinkRate, c.OverheadPercent, c.FrameSize, c.ChunkSize, c.Trip, c.Replicas = 8*units.Gbps, 0, 1000, 2500,
		units.Microsecond, 3
	c.ControlSize, c.DiskRate, c.DiskQueue = 100, 625_000_000, 100*units.KB
	d, err := reserve.New(c)
	if err != nil {
		t.Fatal(err)
	}
	const ns = units.Nanosecond
	for _, x := range []struct {
		name      string
		plan      Plan
		got       func(b *Bus) sim.Time
		want      sim.Time
		chainWant sim.Time
	}{
		{"data", Plan{}, (*Bus).dataTime, 2500 * ns, 2500 * ns},
		{"probing nobody", Plan{Choices: 1}, (*Bus).probing, 0, 0},
		{"probing two for each", Plan{Choices: 2}, (*Bus).probing, (6*100 + 2*1000 + 100) * ns,
			(6*100 + 2*1000 + 100) * ns},
		{"along a chain", Plan{Choices: 1}, (*Bus).alongChain, (2500 + 1000 + 2*2500) * ns,
			(2500 + 1000 + 2*2000) * ns},
		{"side by side", Plan{Choices: 1}, (*Bus).sideBySide, (3*2500 + 1000 + 4000 + 100 + 1000) * ns,
			(3*2500 + 1000 + 4000 + 100 + 1000) * ns},
		{"a full frame", Plan{}, func(b *Bus) sim.Time { return b.FrameTime(1000) }, 1000 * ns, 1000 * ns},
		{"half a frame", Plan{}, func(b *Bus) sim.Time { return b.FrameTime(500) }, 500 * ns, 500 * ns},
		{"a message", Plan{}, (*Bus).OnLink, 100 * ns, 100 * ns},
	} {
		for _, chained := range []bool{false, true} {
			p := x.plan
			p.Traits, p.Times, p.Gateways, p.Targets, p.Copies = &Traits{Chained: chained}, d, 2, 9, 3
			p.Piece, p.Frame, p.Trip, p.Queued, p.Alone = 2500, 1000, units.Microsecond, true, d.DiskChunk
			want := x.want
			if chained {
				want = x.chainWant
			}
			b := made(t, p)
			if got := x.got(b); got != want {
				t.Errorf("%s, chained %v: %v, not %v", x.name, chained, got, want)
			}
			p.Coded = true
			if b = made(t, p); b.Chained() {
				t.Errorf("%s: the pieces of a code go along a chain", x.name)
			}
			if b.Node(4) != 6 {
				t.Errorf("target 4 of a cluster with two gateways is node %d", b.Node(4))
			}
		}
	}
}

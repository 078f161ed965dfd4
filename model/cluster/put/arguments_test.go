package put

import (
	"math"
	"testing"

	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/model/cluster/reserve"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// made returns the bus of a plan that must be possible.
func made(t testing.TB, p Plan) *Bus {
	t.Helper()
	b, err := NewBus(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// planned returns a plan of nine targets in groups of three.
func planned(t testing.TB, s Scheme) Plan {
	t.Helper()
	d, err := reserve.New(reserve.UnicastConfig())
	if err != nil {
		t.Fatal(err)
	}
	return Plan{Traits: s.Traits(), Times: d, Gateways: 2, Targets: 9, Copies: 3, Piece: 4000, Frame: 1000,
		Trip: units.Microsecond, GroupSize: 3, Candidates: 2, Choices: 1, Overcommit: 2, Queued: true}
}

// TestArguments verifies that what a plan cannot be is an error, and that groups and targets that it does not have are
// refused.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "put")
	plan := func(change func(*Plan)) func() error {
		return func() error {
			p := planned(t, ReplicastM)
			change(&p)
			_, err := NewBus(p)
			return err
		}
	}
	refused("no plan", func() error { _, err := NewBus(Plan{}); return err }, "are nil")
	refused("no protocol", plan(func(p *Plan) { p.Traits = Count.Traits() }), "are nil")
	refused("gateways", plan(func(p *Plan) { p.Gateways = -1 }), "gateways")
	refused("targets", plan(func(p *Plan) { p.Targets = math.MaxInt }), "targets")
	refused("copies", plan(func(p *Plan) { p.Copies = MaxReplicas + 1 }), "copies")
	refused("racks", plan(func(p *Plan) { p.Racks = -1 }), "racks")
	refused("candidates", plan(func(p *Plan) { p.Candidates = MaxGroups + 1 }), "candidates")
	refused("choices", plan(func(p *Plan) { p.Choices = 64 }), "choices")
	refused("overcommit", plan(func(p *Plan) { p.Overcommit = -1 }), "overcommit")
	refused("bidders without groups", plan(func(p *Plan) { p.GroupSize = 0 }), "group_size")
	refused("group", plan(func(p *Plan) { p.GroupSize = 10 }), "group_size")
	refused("piece", plan(func(p *Plan) { p.Piece = 0 }), "piece")
	refused("frame", plan(func(p *Plan) { p.Frame = -1 }), "frame")
	refused("room", plan(func(p *Plan) { p.Room = -1 }), "room")
	refused("trip", plan(func(p *Plan) { p.Trip = -1 }), "trip")
	b, s := made(t, planned(t, ReplicastM)), rng.NewStream(1, "draws")
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"group of targets", func() { b.GroupOf(3, nil) }, "group 3"},
		{"negative group", func() { b.GroupOf(-1, nil) }, "group -1"},
		{"pick", func() { b.Pick(&s, 2, []int32{1}) }, "Pick of 2"},
		{"pick of fewer than none", func() { b.Pick(&s, -1, nil) }, "Pick of -1"},
		{"pick by nothing", func() { b.Pick(nil, 0, nil) }, "without a stream"},
		{"pick in one rack", func() {
			p := planned(t, ReplicastM)
			p.Racks = 3
			made(t, p).Pick(&s, 2, []int32{0, 3, 6})
		}, "separate racks"},
		{"draw", func() { DrawGroups(&s, 1, make([]int32, 2)) }, "DrawGroups of 2"},
		{"draw by nothing", func() { DrawGroups(nil, 1, nil) }, "without a stream"},
	} {
		refused(c.name, func() error { c.do(); return nil }, c.want)
	}
	if Scheme(255).Traits() != nil || (&Plan{}).GroupCount() != 0 {
		t.Error("a protocol or groups that do not exist")
	}
}

// FuzzBus makes the bus and the machine of every protocol for a plan that the input changes, and calls them: the plan
// is refused, or whatever it is asked for returns or is refused by name.
func FuzzBus(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add([]byte{1, 2, 0, 5, 3, 0, 6, 200, 1, 200, 2, 200, 3, 200, 4, 240, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte("plans of gateways, targets, groups and racks, as many as anybody asks for"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		code := hostile.Code(in)
		p := planned(t, Scheme(code.Below(int(Count))))
		traits, times := p.Traits, p.Times
		p.Traits, p.Times = nil, nil // they are shared
		code.Change(&p, code.Below(5))
		p.Traits, p.Times = traits, times
		if p.Gateways > 1<<12 || p.Targets > 1<<12 {
			return // many nodes are no different
		}
		b, err := NewBus(p)
		if err != nil {
			return
		}
		b.Clock.Engine = sim.New()
		b.Clock.Self, b.Clock.Handler = b.Clock.Engine.NewComponent(), b.Clock.Engine.AddHandler(clockwork{})
		b.Tally, b.Rand = new(Tally), rng.NewStream(1, "draws")
		m := p.Traits.New(b)
		if m == nil {
			t.Fatalf("%s has no machine", p.Traits.Name)
		}
		for range 20 {
			n, k := code.Int(), int32(code.Int())
			among := make([]int32, code.Below(12))
			for i := range among {
				among[i] = int32(code.Below(p.Targets))
			}
			for _, f := range []func(){
				func() { b.GroupOf(k, nil) }, func() { b.Pick(&b.Rand, int(n), among) }, func() { b.Holders() },
				func() { DrawGroups(&b.Rand, int(n), make([]int32, code.Below(9))) },
				func() { Nearest(int(n), int(k)) },
				func() { b.keepTime(sim.Time(n)) }, func() { b.FrameTime(units.Bytes(n)) }, func() { b.listens() },
				func() { b.SameRack(k, int32(n)) }, func() { b.shares(among, k) }, func() { b.Node(k) },
				func() { p.Traits.Says(uint8(n)) }, func() { m.(Forecast).Floor(&b.Plan) },
			} {
				hostile.Refused(t, "put", f)
			}
		}
	})
}

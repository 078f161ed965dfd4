package put

import (
	"slices"
	"testing"

	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// quiet is an event handler that ignores events.
type quiet struct{}

func (quiet) Handle(sim.Event) {}

// TestLose verifies that a gateway whose window is revoked gives up that replica and asks again at once for the missing
// ones, not before the windows left from its last choice; unless it has begun to send, the rejection is late, or it
// will ask soon enough anyway.
func TestLose(t *testing.T) {
	d, err := reserve.New(reserve.HybridConfig())
	if err != nil {
		t.Fatal(err)
	}
	const now = 100 * units.Microsecond
	for _, c := range []struct {
		name    string
		from    int32
		change  func(h *double)
		targets []int32
		rights  []sim.Time
		before  int8
		after   sim.Time // notBefore of the new request, relative to now; -1: no new request
	}{
		{"chosen before", 4, nil, []int32{5, 6}, []sim.Time{20, 30}, 1, 30},
		{"the second of them", 5, nil, []int32{4, 6}, []sim.Time{10, 30}, 1, 30},
		{"of the last choice", 6, nil, []int32{4, 5}, []sim.Time{10, 20}, 2, 0},
		{"one of two of the last choice", 5, func(h *double) { h.puts[0].before = 1 }, []int32{4, 6},
			[]sim.Time{10, 30}, 1, 30},
		{"sent in part", 5, func(h *double) { h.flows.Items[h.puts[0].booked[1].flow].sent = 1 }, []int32{4, 5, 6},
			[]sim.Time{10, 20, 30}, 2, -1},
		{"arrived", 5, func(h *double) { h.puts[0].booked[1].flow = -1 }, []int32{4, 5, 6}, []sim.Time{10, 20, 30}, 2,
			-1},
		{"not chosen", 7, nil, []int32{4, 5, 6}, []sim.Time{10, 20, 30}, 2, -1},
		{"of an attempt before", 4, func(h *double) { h.b.Chunks[0].ID = 2 }, []int32{4, 5, 6},
			[]sim.Time{10, 20, 30}, 2, -1},
		{"soon enough", 4, func(h *double) { h.puts[0].again = now + 1 }, []int32{5, 6}, []sim.Time{20, 30}, 1, -1},
	} {
		eng := sim.New()
		b := made(t, Plan{Traits: ReplicastHDouble.Traits(), Times: d, Gateways: 1, Targets: 18, GroupSize: 9,
			Copies: 3, Piece: 128 * units.KiB, Frame: 9000})
		b.Clock = Clock{Engine: eng, Self: eng.NewComponent(), Handler: eng.AddHandler(quiet{})}
		b.Tally = new(Tally)
		eng.Schedule(b.Self, b.Handler, now, 0, 0)
		eng.Run(now)
		h := newDouble(b)
		b.Chunks = []Chunk{{ID: 1, N: 3, Targets: [MaxReplicas]int32{4, 5, 6}}}
		s := sequel{offers: reserve.NewOffers(d), order: reserve.NewChoosy(d), again: sim.Forever, before: 2}
		for k := range 3 {
			s.booked[k] = booking{h.flows.Take(), now + sim.Time(k+1)*10}
		}
		h.puts = []sequel{s}
		if c.change != nil {
			c.change(h)
		}
		again := h.puts[0].again
		h.lose(&Message{From: c.from, ID: 1})
		x, p := &b.Chunks[0], &h.puts[0]
		var rights []sim.Time
		for k := range x.N {
			rights = append(rights, p.booked[k].right-now)
		}
		if !slices.Equal(x.Targets[:x.N], c.targets) || !slices.Equal(rights, c.rights) || p.before != c.before {
			t.Errorf("%s: targets %v with windows until %v, %d chosen before", c.name, x.Targets[:x.N], rights,
				p.before)
		}
		lost := len(c.targets) == 2
		dead := 0
		for k := range h.flows.Items {
			if h.flows.Items[k].dead {
				dead++
			}
		}
		if (dead == 1) != lost || (b.Tally.LateRejected == 1) != lost {
			t.Errorf("%s: %d replicas are given up, %d windows taken back", c.name, dead, b.Tally.LateRejected)
		}
		switch {
		case c.after < 0 && p.again != again:
			t.Errorf("%s: asks again at %v", c.name, p.again)
		case c.after >= 0 && (p.again != now || p.notBefore != now+c.after):
			t.Errorf("%s: asks again at %v, not before %v", c.name, p.again, p.notBefore-now)
		}
	}
}

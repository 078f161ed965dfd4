package fabric

import (
	"fmt"
	"strings"
	"testing"

	"farflash/fabric/cc"
	"farflash/fabric/topo"
	"farflash/sim"
	"farflash/units"
)

// starter posts planned flows at their times, in one part.
type starter struct {
	parts *Parts
	i     int
}

// Handle posts the flow of the event.
func (s *starter) Handle(e sim.Event) {
	if err := s.parts.Begin(s.i, int32(e.Arg)); err != nil {
		panic(err)
	}
}

// runParts runs a network in parts on one goroutine, window by window, until nothing happens any more.
func runParts(t *testing.T, n *Network, of []int32, ahead sim.Time, flows []Flow) *Parts {
	t.Helper()
	count := int32(0)
	for _, p := range of {
		count = max(count, p+1)
	}
	p, err := n.Divide(of, ahead, flows, make([]Sink, count))
	if err != nil {
		t.Fatal(err)
	}
	for i := range int(count) {
		e := p.Engine(i)
		self, target := e.NewComponent(), e.AddHandler(&starter{p, i})
		for k, f := range flows {
			if of[f.Src] == int32(i) {
				e.Schedule(self, target, f.Start, 0, uint32(k))
			}
		}
	}
	for round := uint32(1); ; round++ {
		first := sim.Forever
		for i := range int(count) {
			first = min(first, p.Take(i, round))
		}
		if first == sim.Forever {
			break
		}
		if p.Stuck() {
			t.Fatal("a part is stuck")
		}
		for i := range int(count) {
			p.Run(i, first+p.Ahead()-1)
		}
	}
	p.Settle()
	return p
}

// TestPartsAgree holds that a network in parts does what it does in one piece: the same times of all messages, the same counts and
// the same figures of all ports, whatever the congestion control measures on the way.
func TestPartsAgree(t *testing.T) {
	g := build(t, topo.Config{Clos: &topo.Clos{Pods: 3, Leaves: 2, Tors: 2, HostsPerPod: 4, Spines: 2}}, 10*units.Gbps, 20*units.Gbps, units.Microsecond)
	var flows []Flow
	for i := range int32(36) {
		flows = append(flows, Flow{Src: i % 12, Dst: (i*5 + 1 + i/12) % 12, Class: 1, Size: units.Bytes(20+i) * units.KB, Start: sim.Time(i/12) * 30 * units.Microsecond})
		if f := &flows[i]; f.Src == f.Dst {
			f.Dst = (f.Dst + 1) % 12
		}
	}
	for _, scheme := range allSchemes {
		t.Run(scheme.String(), func(t *testing.T) {
			c := DefaultConfig()
			c.CongestionControl.Algorithm = scheme
			c.Buffer = 400 * units.KB
			c.PFC.Threshold = Threshold{Size: 8 * units.KB}
			c.ECN.Kmin, c.ECN.Kmax, c.ECN.Rate = 10*units.KB, 30*units.KB, 10*units.Gbps
			if scheme == cc.SchemeHPCC {
				c.Telemetry = Telemetry{Size: 42, AckSize: 28}
			}
			var want string
			for _, parts := range []int{1, 2, 3} {
				of := g.Partition(parts)
				ahead := g.Lookahead(of)
				if parts == 1 {
					ahead = units.Millisecond // nothing crosses
				}
				n := newRig(t, c, g, 3).net
				p := runParts(t, n, of, ahead, flows)
				got := figures(n)
				if want == "" {
					want = got
					if n.Counters.Completed != uint64(len(flows)) || n.Counters.Pauses == 0 {
						t.Fatalf("%d messages completed, %d pauses: the run is no test", n.Counters.Completed, n.Counters.Pauses)
					}
				}
				if got != want {
					t.Errorf("in %d parts\n%s\nin one\n%s", parts, got, want)
				}
				if p.Events() < 1000 {
					t.Errorf("%d events", p.Events())
				}
			}
		})
	}
}

// figures are all that a network has to tell.
func figures(n *Network) string {
	c := n.Counters
	s := fmt.Sprintf("%+v\n", c)
	for i, m := range n.Messages() {
		s += fmt.Sprintln(i, m.Posted, m.Begun, m.Delivered, m.Acked)
	}
	for i := range n.Ports() {
		s += fmt.Sprintf("%+v\n", n.Port(int32(i)))
	}
	return s + fmt.Sprintln(n.notes.taken, n.PacketHops())
}

// TestPartsStuck: a watchdog that finds a paused port in a part stops the run; the circle, if it is one, goes through other parts.
func TestPartsStuck(t *testing.T) {
	c := plain()
	c.Watchdog.After = 20 * units.Microsecond
	c.PFC.Threshold = Threshold{Size: 4 * units.KB}
	g := build(t, topo.Config{Dumbbell: &topo.Dumbbell{Left: 4, Right: 4}}, 10*units.Gbps, units.Gbps, units.Microsecond)
	of := make([]int32, len(g.Nodes))
	for i := range of {
		if name := g.Nodes[i].Name; name == "h4" || name == "h5" || name == "h6" || name == "h7" || name == "s1" {
			of[i] = 1
		}
	}
	n := newRig(t, c, g, 1).net
	var flows []Flow
	for i := range int32(4) {
		flows = append(flows, Flow{Src: i, Dst: 4 + i, Class: 1, Size: 100 * units.KB})
	}
	p, err := n.Divide(of, units.Microsecond, flows, make([]Sink, 2))
	if err != nil {
		t.Fatal(err)
	}
	for i := range flows {
		if err := p.Begin(0, int32(i)); err != nil {
			t.Fatal(err)
		}
	}
	for round := uint32(1); round < 200 && !p.Stuck(); round++ {
		first := min(p.Take(0, round), p.Take(1, round))
		p.Run(0, first+p.Ahead()-1)
		p.Run(1, first+p.Ahead()-1)
	}
	if !p.Stuck() {
		t.Error("a port that stays paused for 20 us was not found")
	}
}

func TestDivideRefuses(t *testing.T) {
	g := star(t, 2, units.Gbps, units.Microsecond)
	of := []int32{0, 1, 1}
	for _, x := range []struct {
		want   string
		divide func(n *Network) error
	}{
		{"parts of 2 nodes; the network has 3", func(n *Network) error { _, err := n.Divide(of[:2], 1, nil, nil); return err }},
		{"links between parts need a delay", func(n *Network) error { _, err := n.Divide(of, 0, nil, nil); return err }},
		{"flow 0: h0 cannot send to itself", func(n *Network) error {
			_, err := n.Divide(of, 1, []Flow{{Src: 0, Dst: 0, Class: 1, Size: 1}}, nil)
			return err
		}},
		{"before anything is posted", func(n *Network) error {
			if _, err := n.Send(0, 1, 1, 1); err != nil {
				t.Fatal(err)
			}
			_, err := n.Divide(of, 1, nil, nil)
			return err
		}},
		{"no links that fail", func(n *Network) error {
			if err := n.Fail(0, 1, 2); err != nil {
				t.Fatal(err)
			}
			_, err := n.Divide(of, 1, nil, nil)
			return err
		}},
	} {
		if err := x.divide(newRig(t, plain(), g, 1).net); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("got %v, want %s", err, x.want)
		}
	}
}

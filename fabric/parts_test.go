package fabric

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"farflash/fabric/cc"
	"farflash/fabric/topo"
	"farflash/sim"
	"farflash/units"
)

// runParts runs a network in parts, window by window, until nothing happens any more, in turns or each on a goroutine of its own.
func runParts(t failer, n *Network, of []int32, apart bool, flows []Flow) *Parts {
	t.Helper()
	count := int(slices.Max(of)) + 1
	p, err := n.Divide(of, make([]Sink, count), apart)
	if err != nil {
		t.Fatal(err)
	}
	for {
		first := p.First()
		if len(flows) > 0 {
			first = min(first, flows[0].Start)
		}
		if first == sim.Forever {
			break
		}
		if p.Whole(first) {
			continue
		}
		to := p.Horizon(first)
		for ; len(flows) > 0 && flows[0].Start <= to; flows = flows[1:] {
			if _, err := p.Plan(flows[0]); err != nil {
				t.Fatal(err)
			}
		}
		p.First()
		p.Window(to)
		var all sync.WaitGroup
		for i := range count {
			if apart {
				all.Go(func() { p.Run(i) })
			} else {
				p.Run(i)
			}
		}
		all.Wait()
		p.Watch()
		if err := p.Err(); err != nil {
			t.Fatal(err)
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
			for _, life := range []Life{Persistent, PerMessage} {
				c.QueuePairs.Life = life
				var want string
				for _, parts := range []int{1, -1, 2, -2, 3, -3} {
					n := newRig(t, c, g, 3).net
					for i, l := range g.Links {
						// One link fails where there is another way, and a host's for a while.
						if name := g.Nodes[l.B].Name; g.Nodes[l.A].Tier > 0 && i%7 == 3 || name == "h3" {
							if err := n.Fail(int32(i), sim.Time(20+i)*units.Microsecond, sim.Time(120+i)*units.Microsecond); err != nil {
								t.Fatal(err)
							}
						}
					}
					p := runParts(t, n, g.Partition(max(parts, -parts)), parts < 0, flows)
					got := figures(n)
					if want == "" {
						want = got
						if n.Counters.Completed != uint64(len(flows)) || n.Counters.Pauses == 0 {
							t.Fatalf("%d messages completed, %d pauses: the run is no test", n.Counters.Completed, n.Counters.Pauses)
						}
					}
					if got != want {
						t.Errorf("%v, in %d parts\n%s\nin one\n%s", life, parts, got, want)
					}
					if p.Events() < 1000 {
						t.Errorf("%d events", p.Events())
					}
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

func TestDivideRefuses(t *testing.T) {
	g := star(t, 2, units.Gbps, units.Microsecond)
	of := []int32{0, 1, 1}
	for _, x := range []struct {
		want   string
		divide func(n *Network) error
	}{
		{"parts of 2 nodes; the network has 3", func(n *Network) error { _, err := n.Divide(of[:2], make([]Sink, 2), false); return err }},
		{"links between parts need a delay", func(n *Network) error {
			n.graph.Links[0].Delay = 0
			_, err := n.Divide(of, make([]Sink, 2), false)
			n.graph.Links[0].Delay = units.Microsecond
			return err
		}},
		{"h0 cannot send to itself", func(n *Network) error {
			p, err := n.Divide(of, make([]Sink, 2), false)
			if err == nil {
				_, err = p.Plan(Flow{Src: 0, Dst: 0, Class: 1, Size: 1})
			}
			return err
		}},
		{"before anything is posted", func(n *Network) error {
			if _, err := n.Send(0, 1, 1, 1); err != nil {
				t.Fatal(err)
			}
			_, err := n.Divide(of, make([]Sink, 2), false)
			return err
		}},
	} {
		if err := x.divide(newRig(t, plain(), g, 1).net); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("got %v, want %s", err, x.want)
		}
	}
}

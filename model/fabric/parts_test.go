package fabric

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/model/fabric/spread"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// runParts runs a network in parts, window by window, until it is idle, either in turns or on a goroutine per part.
func runParts(t failer, n *Network, of []int32, apart bool, flows []Flow) *Parts {
	t.Helper()
	return runPartsTo(t, n, of, apart, flows, make([]Sink, slices.Max(of)+1), func(*Parts) {})
}

// runPartsTo is runParts with a sink for each part; begin is called before the first window.
func runPartsTo(t failer, n *Network, of []int32, apart bool, flows []Flow, sinks []Sink, begin func(*Parts)) *Parts {
	t.Helper()
	count := len(sinks)
	p, err := n.Divide(of, sinks, apart)
	if err != nil {
		t.Fatal(err)
	}
	begin(p)
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

// TestPartsAgree verifies that a network in parts behaves as in one piece: the same times of all messages, the same
// counters and the same figures of all ports, whatever telemetry the congestion control uses.
func TestPartsAgree(t *testing.T) {
	g := build(t, topo.Config{Clos: &topo.Clos{Pods: 3, Leaves: 2, Tors: 2, HostsPerPod: 4, Spines: 2}},
		10*units.Gbps, 20*units.Gbps, units.Microsecond)
	var flows []Flow
	for i := range int32(36) {
		flows = append(flows,
			Flow{Src: i % 12, Dst: (i*5 + 1 + i/12) % 12, Class: 1, Size: units.Bytes(20+i) * units.KB,
				Start: sim.Time(i/12) * 30 * units.Microsecond})
		if f := &flows[i]; f.Src == f.Dst {
			f.Dst = (f.Dst + 1) % 12
		}
	}
	type way struct {
		name   string
		scheme cc.Scheme
		spread spread.Config
	}
	var ways []way
	for _, scheme := range allSchemes {
		ways = append(ways, way{scheme.String(), scheme, spread.DefaultConfig()})
	}
	for _, choice := range []spread.Choice{spread.RoundRobin, spread.Random, spread.LeastQueue} {
		for _, per := range []spread.Unit{spread.Packet, spread.Flowlet} {
			ways = append(ways, way{choice.String() + " " + per.String(), cc.SchemeDCQCN,
				spread.Config{Choice: choice, Per: per, Gap: 2 * units.Microsecond, Table: 64}})
		}
	}
	for _, w := range ways {
		scheme := w.scheme
		t.Run(w.name, func(t *testing.T) {
			c := DefaultConfig()
			c.CongestionControl.Algorithm = scheme
			if c.LoadBalancing = w.spread; w.spread.Choice != spread.Hash {
				c.Recovery.Kind, c.Recovery.Reordering, c.Recovery.Window = SelectiveRepeat, 16, 512
			}
			c.Buffer = 400 * units.KB
			c.Convergence = 10 * units.Microsecond
			c.PFC.Threshold = Threshold{Size: 8 * units.KB}
			c.ECN.Kmin, c.ECN.Kmax, c.ECN.Rate = 10*units.KB, 30*units.KB, 10*units.Gbps
			if scheme == cc.SchemeHPCC {
				c.Telemetry = Telemetry{Size: 42, AckSize: 28}
			}
			for _, life := range []setting.Life{Persistent, PerMessage} {
				c.QueuePairs.Life = life
				var want string
				for _, parts := range []int{1, -1, 2, -2, 3, -3} {
					n := newRig(t, c, g, 3).net
					for i, l := range g.Links {
						// A few links with alternatives fail for good, and a host's link for a while.
						if name := g.Nodes[l.B].Name; g.Nodes[l.A].Tier > 0 && i%7 == 3 || name == "h3" {
							if err := n.Fail(int32(i), sim.Time(20+i)*units.Microsecond,
								sim.Time(120+i)*units.Microsecond); err != nil {
								t.Fatal(err)
							}
						}
					}
					p := runParts(t, n, g.Partition(max(parts, -parts)), parts < 0, flows)
					got := figures(n)
					if want == "" {
						want = got
						if n.Counters.Completed != uint64(len(flows)) || n.Counters.Pauses == 0 {
							t.Fatalf("%d messages completed, %d pauses: the run is not a test", n.Counters.Completed,
								n.Counters.Pauses)
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

// figures prints all results of a network.
func figures(n *Network) string {
	c := n.Counters
	s := fmt.Sprintf("%+v\n", c)
	for i, m := range n.Messages() {
		s += fmt.Sprintln(i, m.Posted, m.Begun, m.Delivered, m.Acked)
	}
	for i := range n.Ports() {
		s += fmt.Sprintf("%+v\n", n.Port(int32(i)))
	}
	return s + fmt.Sprintln(n.notes.Taken, n.packetHops())
}

// TestBalance verifies that, counted in events, two threads that each take the next available part would need little
// more than half the time of one.
func TestBalance(t *testing.T) {
	const k, hosts = 8, 128
	g := build(t, topo.Config{FatTree: &topo.FatTree{K: k}}, 100*units.Gbps, 100*units.Gbps, units.Microsecond)
	n := newRig(t, DefaultConfig(), g, 1).net
	p, err := n.Divide(g.Partition(k), make([]Sink, k), false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int32(hosts) {
		if _, err := p.Plan(Flow{Src: i, Dst: (i + hosts/2 + i%7 + 1) % hosts, Class: 3,
			Size: 100 * units.KB}); err != nil {
			t.Fatal(err)
		}
	}
	var all, took uint64
	for first := p.First(); first < sim.Forever; first = p.First() {
		if p.Whole(first) {
			continue
		}
		p.Window(p.Horizon(first))
		var threads [2]uint64
		for i := range k {
			was := p.Events()
			p.Run(i)
			one := p.Events() - was
			all += one
			threads[slices.Index(threads[:], slices.Min(threads[:]))] += one
		}
		took += slices.Max(threads[:])
		p.Watch()
	}
	if gain := float64(all) / float64(took); gain < 1.8 {
		t.Errorf("two threads gain %.2f over %d events", gain, all)
	}
}

func TestDivideRefuses(t *testing.T) {
	g := star(t, 2, units.Gbps, units.Microsecond)
	of := []int32{0, 1, 1}
	for _, x := range []struct {
		want   string
		divide func(n *Network) error
	}{
		{"parts of 2 nodes; the network has 3",
			func(n *Network) error { _, err := n.Divide(of[:2], make([]Sink, 2), false); return err }},
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
		{"before messages are posted", func(n *Network) error {
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

// forgetter forgets every message that its part has sent.
type forgetter struct {
	parts **Parts
	part  int
}

// Delivered implements Sink.
func (forgetter) Delivered(int32) {}

// Acked implements Sink.
func (f forgetter) Acked(m int32) { (*f.parts).Forget(f.part, m) }

// TestPartsForget verifies that completed and forgotten messages occupy no space in a network in parts either, and that
// forgetting them does not change results.
func TestPartsForget(t *testing.T) {
	g := build(t, topo.Config{Clos: &topo.Clos{Pods: 3, Leaves: 2, Tors: 2, HostsPerPod: 4, Spines: 2}},
		10*units.Gbps, 20*units.Gbps, units.Microsecond)
	for _, life := range []setting.Life{Persistent, PerMessage} {
		c := DefaultConfig()
		c.QueuePairs.Life = life
		var want Counters
		for _, count := range []int{1, 3} {
			n := newRig(t, c, g, 1).net
			var p *Parts
			var sinks []Sink
			for i := range count {
				sinks = append(sinks, forgetter{&p, i})
			}
			var err error
			if p, err = n.Divide(g.Partition(count), sinks, count > 1); err != nil {
				t.Fatal(err)
			}
			const flows = 3000
			planned := 0
			for {
				first := p.First()
				if planned < flows {
					first = min(first, sim.Time(planned)*units.Microsecond)
				}
				if first == sim.Forever {
					break
				}
				if p.Whole(first) {
					continue
				}
				to := p.Horizon(first)
				for ; planned < flows && sim.Time(planned)*units.Microsecond <= to; planned++ {
					i := int32(planned)
					if _, err := p.Plan(Flow{Src: i % 12, Dst: (i%12 + 1 + i/12%11) % 12, Class: 3, Size: 2000,
						Start: sim.Time(i) * units.Microsecond}); err != nil {
						t.Fatal(err)
					}
				}
				p.First()
				p.Window(to)
				for i := range count {
					p.Run(i)
				}
				p.Watch()
			}
			p.Settle()
			if got := len(n.Messages()); got > 400 || n.Counters.Completed != flows {
				t.Errorf("%v, %d parts: room for %d messages, %d of %d ended", life, count, got, n.Counters.Completed,
					flows)
			}
			if len(n.senders) > 400 {
				t.Errorf("%v, %d parts: %d queue pairs", life, count, len(n.senders))
			}
			if count == 1 {
				want = n.Counters
			} else if n.Counters != want {
				t.Errorf("%v: in %d parts\n%+v\nin one\n%+v", life, count, n.Counters, want)
			}
		}
	}
}

package fabric

import (
	"fmt"
	"reflect"
	"testing"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

// TestFailures takes links down and up at random while messages are in flight.
func TestFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := build(t, topo.Config{Clos: &topo.Clos{Pods: 2, Leaves: 2, Tors: 2, HostsPerPod: 6, Spines: 2}},
			10*units.Gbps, 10*units.Gbps, units.Microsecond)
		c := DefaultConfig()
		c.Recovery.Kind = setting.RecoveryKind(rapid.IntRange(0, 1).Draw(t, "recovery"))
		c.Recovery.Timeout, c.Recovery.Retries = Timeout{Time: units.Millisecond}, 0
		c.Convergence = sim.Time(rapid.IntRange(0, 2).Draw(t, "convergence")) * 50 * units.Microsecond
		c.PFC.Quanta = rapid.SampledFrom([]int{0, 100, 65535}).Draw(t, "quanta")
		c.PFC.Threshold = Threshold{Size: units.Bytes(rapid.IntRange(2000, 40000).Draw(t, "threshold"))}
		c.QueuePairs.Life = setting.Life(rapid.IntRange(0, 1).Draw(t, "life"))
		r := newRig(t, c, g, 1)
		drawMessages(t, r, []uint8{1, 2}, 100)
		for range rapid.IntRange(1, 5).Draw(t, "failures") {
			link := int32(rapid.IntRange(0, len(g.Links)-1).Draw(t, "link"))
			at := sim.Time(rapid.IntRange(50, 600).Draw(t, "at")) * units.Microsecond
			until := at + sim.Time(rapid.IntRange(1, 2000).Draw(t, "for"))*units.Microsecond
			if l := g.Links[link]; rapid.Bool().Draw(t, "for good") && g.Nodes[l.A].Tier > 1 {
				until = 0 // there is another leaf or spine
				link = int32(len(g.Links) - 1)
			}
			if err := r.net.Fail(link, at, until); err != nil {
				t.Fatal(err)
			}
		}
		stops(t, r)
		r.drained(t)
	})
}

// results prints every result of a run.
func results(r *rig) string {
	out := fmt.Sprintf("%+v", r.net.Counters)
	for _, m := range r.net.Messages() {
		out += fmt.Sprintf("\n%+v", m)
	}
	for i := range r.net.Ports() {
		out += fmt.Sprintf("\n%+v", r.net.Port(int32(i)))
	}
	return out
}

func TestSameBytes(t *testing.T) {
	for _, scheme := range allSchemes {
		run := func() string {
			c := DefaultConfig()
			c.CongestionControl.Algorithm = scheme
			g := build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 3, Spines: 2, HostsPerLeaf: 4}},
				25*units.Gbps, 40*units.Gbps, units.Microsecond)
			for i := range g.Links {
				g.Links[i].Loss = .0001
			}
			r := newRig(t, c, g, 5)
			for i := range int32(11) {
				r.mustSend(t, i, 11, 1+uint8(i%2), 300*units.KB)
				r.mustSend(t, 11-i, (12-i)%12, 1, 100*units.KB)
			}
			r.run(t, 1e7)
			r.drained(t)
			return results(r)
		}
		if a, b := run(), run(); a != b {
			t.Errorf("%v: two runs differ", scheme)
		}
	}
}

// TestNeighboursDoNotMatter adds a busy pair of hosts with a separate switch, and an idle component; the results of the
// other hosts stay the same to the picosecond.
func TestNeighboursDoNotMatter(t *testing.T) {
	run := func(more bool) []Message {
		c := DefaultConfig()
		c.ECN.Kmin, c.ECN.Kmax = 5*units.KB, 50*units.KB
		g := star(t, 5, 10*units.Gbps, units.Microsecond)
		if more {
			first := int32(len(g.Nodes))
			g.Nodes = append(g.Nodes, topo.Node{Name: "x", Kind: topo.Host}, topo.Node{Name: "y", Kind: topo.Host},
				topo.Node{Name: "z", Kind: topo.Switch})
			for _, l := range [][2]int32{{first, first + 2}, {first + 1, first + 2}, {first + 2, 5}} {
				g.Links = append(g.Links, topo.Link{A: l[0], B: l[1], Rate: 10 * units.Gbps, Delay: units.Microsecond})
			}
		}
		r := newRig(t, c, g, 5)
		for i := range int32(4) {
			r.mustSend(t, i, 4, 1, units.MB)
		}
		if more {
			r.eng.NewComponent()
			for range 10 {
				r.mustSend(t, 6, 7, 1, units.MB)
			}
		}
		r.run(t, 1e7)
		r.drained(t)
		return r.net.Messages()[:4]
	}
	if a, b := run(false), run(true); !reflect.DeepEqual(a, b) {
		t.Errorf("without neighbours %+v, with them %+v", a, b)
	}
}

// TestNoAllocations verifies that a packet causes no allocation, whatever the congestion control.
func TestNoAllocations(t *testing.T) {
	for _, scheme := range allSchemes {
		for _, recovery := range []setting.RecoveryKind{GoBackN, SelectiveRepeat} {
			c := DefaultConfig()
			c.CongestionControl.Algorithm = scheme
			c.Recovery.Kind = recovery
			c.ECN.Kmin, c.ECN.Kmax = 20*units.KB, 80*units.KB
			r := newRig(t, c, star(t, 5, 25*units.Gbps, units.Microsecond), 1)
			for i := range int32(4) {
				r.mustSend(t, i+1, 0, 1, 2*units.GB)
			}
			r.eng.Run(8 * units.Millisecond)
			at, before := r.eng.Now(), r.net.packetHops()
			allocs := testing.AllocsPerRun(5, func() {
				at += 300 * units.Microsecond
				r.eng.Run(at)
			})
			if hops := r.net.packetHops() - before; allocs != 0 || hops < 1000 {
				t.Errorf("%v, %v: %v allocations a run, %d packet-hops in six", scheme, recovery, allocs, hops)
			}
		}
	}
}

// TestFixedPoint compares DCQCN's long run with the fluid model's fixed point. The model ignores the round trip's delay
// and treats cuts as continuous, so the tolerance is 3 % for the rate, which conservation fixes, and a factor of 2 for
// the queue.
func TestFixedPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates 60 ms")
	}
	const flows = 4
	rate := 40 * units.Gbps
	c := DefaultConfig()
	c.ECN = setting.ECN{Enabled: true, Kmin: 5 * units.KB, Kmax: 200 * units.KB, Pmax: 0.01, Rate: rate}
	r := newRig(t, c, star(t, flows+1, rate, units.Microsecond), 1)
	for i := range int32(flows) {
		r.mustSend(t, i+1, 0, 1, 4*units.GB)
	}
	want, err := cc.FixedPoint(c.CongestionControl.DCQCN,
		cc.Bottleneck{Flows: flows, Capacity: rate, Packet: c.Payload + c.Header,
			CNPInterval: c.CNP.Interval, KMin: c.ECN.Kmin, KMax: c.ECN.Kmax, PMax: c.ECN.Pmax})
	if err != nil {
		t.Fatal(err)
	}
	down := r.net.PortOf(0, false)
	sum, count := 0.0, 0
	r.eng.Run(30 * units.Millisecond)
	before := r.net.Port(down).Bytes
	for at := 30 * units.Millisecond; at < 60*units.Millisecond; at += 10 * units.Microsecond {
		r.eng.Run(at)
		sum += float64(r.net.Port(down).Queue)
		count++
	}
	got := float64(r.net.Port(down).Bytes-before) * 8 / .03 / flows
	mean := sum / float64(count)
	t.Logf("queue %.0f B, fixed point %v; rate %.3f Gbps, fixed point %v", mean, want.Queue, got/1e9, want.Rate)
	if got < .97*float64(want.Rate) || got > 1.001*float64(want.Rate) {
		t.Errorf("each flow has %v, fixed point %v", units.BitRate(got), want.Rate)
	}
	if mean < float64(want.Queue)/2 || mean > 2*float64(want.Queue) {
		t.Errorf("the queue is %.0f B in the mean, fixed point %v", mean, want.Queue)
	}
}

// TestSevered verifies that a queue pair whose only path fails for good gives up, so that the network becomes idle and
// Endless counts its messages; without a timer they hang. If the link is mended, all messages arrive, including those
// posted, and on queue pairs opened, during the failure.
func TestSevered(t *testing.T) {
	for _, kind := range []setting.RecoveryKind{GoBackN, SelectiveRepeat} {
		for _, life := range []setting.Life{Persistent, PerMessage} {
			for _, timeout := range []Timeout{{}, {Auto: true}, {Time: sim.Forever}} {
				for _, until := range []sim.Time{0, 300 * units.Microsecond} {
					c := DefaultConfig()
					c.Recovery.Kind, c.Recovery.Timeout, c.QueuePairs.Life = kind, timeout, life
					r := newRig(t, c, star(t, 3, 40*units.Gbps, units.Microsecond), 1)
					if err := r.net.Fail(0, 10*units.Microsecond, until); err != nil {
						t.Fatal(err)
					}
					r.send(post{0, 0, 1, 1, units.MB})
					r.send(post{20 * units.Microsecond, 0, 1, 1, units.MB})
					r.send(post{20 * units.Microsecond, 2, 0, 1, units.MB})
					r.send(post{20 * units.Microsecond, 2, 1, 1, units.MB})
					r.run(t, 1e6)
					want := Endless{Broken: 3}
					if !timeout.Auto {
						want = Endless{Hung: 3}
					}
					if until > 0 && !timeout.Auto { // hung if the outage took all packets in flight
						want.Hung = 4 - int(r.net.Counters.Completed)
					}
					if until > 0 && timeout.Auto {
						want = Endless{}
						r.drained(t)
					}
					if got := r.net.Endless(); got != want ||
						r.net.Counters.Completed != 4-uint64(want.Broken+want.Hung) {
						t.Errorf("%v, %v, %v, until %v: %+v never end, want %+v; %d of 4 messages ended", kind, life,
							timeout, until, got, want, r.net.Counters.Completed)
					}
					r.check(t)
				}
			}
		}
	}
}

// TestTimeEnds verifies that a queue pair that loses nearly all packets gives up at the end of time.
func TestTimeEnds(t *testing.T) {
	g := star(t, 2, 40*units.Gbps, units.Microsecond)
	g.Links[0].Loss = .999999
	c := DefaultConfig()
	c.Recovery.Timeout, c.Recovery.Retries = Timeout{Time: 1000 * units.Second}, 0
	r := newRig(t, c, g, 1)
	r.mustSend(t, 0, 1, 1, 1000)
	r.eng.Run(sim.Forever)
	if got := r.net.Endless(); got != (Endless{Hung: 1}) {
		t.Errorf("%+v at %v", got, r.eng.Now())
	}
}

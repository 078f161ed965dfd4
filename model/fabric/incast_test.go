package fabric

import (
	"fmt"
	"testing"

	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// wireTime returns the time of size bytes at a rate that divides it into whole picoseconds.
func wireTime(size units.Bytes, rate units.BitRate) sim.Time {
	return sim.Time(size) * 8 * units.Second / sim.Time(rate)
}

// TestIncastLastFCT verifies the closed form of PFC alone: N senders of k packets each fill the receiver's link without
// a gap once the first packet is in the switch, so the last ACK arrives after s + d + N*k*s + d and its return path,
// 2*(a + d).
func TestIncastLastFCT(t *testing.T) {
	for _, rate := range []units.BitRate{10 * units.Gbps, 25 * units.Gbps, 40 * units.Gbps, 100 * units.Gbps,
		400 * units.Gbps} {
		for _, senders := range []int{1, 2, 5, 16} {
			for _, delay := range []sim.Time{0, 200 * units.Nanosecond, units.Microsecond, 5 * units.Microsecond} {
				c := plain()
				c.Payload, c.Header, c.Acks.Size = 1000, 48, 60
				const packets = 120
				r := newRig(t, c, star(t, senders+1, rate, delay), 1)
				for i := range senders {
					r.mustSend(t, int32(i+1), 0, 3, packets*c.Payload)
				}
				r.run(t, 1e7)
				r.drained(t)
				last := sim.Time(0)
				for _, m := range r.net.Messages() {
					last = max(last, m.Acked)
				}
				s, a := wireTime(1048, rate), wireTime(60, rate)
				want := s + delay + sim.Time(senders)*packets*s + delay + 2*(a+delay)
				if last != want {
					t.Errorf("%d:1 at %v over %v: the last ACK came at %d ps, closed form %d ps", senders, rate,
						delay, last, want)
				}
				if hops := uint64(senders) * packets * 2 * 2; r.net.packetHops() != hops+r.net.Counters.Frames {
					t.Errorf("%d:1 at %v: %d packet-hops, want %d and %d pause frames", senders, rate,
						r.net.packetHops(), hops, r.net.Counters.Frames)
				}
				if d := r.net.Counters.DropCount(); d > 0 {
					t.Errorf("%d:1 at %v: %d packets lost", senders, rate, d)
				}
			}
		}
	}
}

// TestIncastPauses verifies that the incast of the closed form above does cause pauses.
func TestIncastPauses(t *testing.T) {
	c := plain()
	c.Buffer = 2 * units.MiB
	r := newRig(t, c, star(t, 9, 10*units.Gbps, units.Microsecond), 1)
	for i := range 8 {
		r.mustSend(t, int32(i+1), 0, 1, units.MB)
	}
	r.run(t, 1e7)
	r.drained(t)
	if r.net.Counters.Pauses < 100 {
		t.Errorf("%d pauses", r.net.Counters.Pauses)
	}
	// The senders share equally, so they finish within a few packets of each other.
	first, last := sim.Forever, sim.Time(0)
	for _, m := range r.net.Messages() {
		first, last = min(first, m.Acked), max(last, m.Acked)
	}
	if last-first > last/20 {
		t.Errorf("8 equal senders end between %v and %v", first, last)
	}
}

// TestIdeal compares the computed time of a lone message with the simulated one.
func TestIdeal(t *testing.T) {
	clos := topo.Config{Clos: &topo.Clos{Pods: 2, Leaves: 2, Tors: 2, HostsPerPod: 8, Spines: 2}}
	rate := func(g *topo.Graph, rates ...units.BitRate) *topo.Graph {
		for i := range g.Links {
			g.Links[i].Rate = rates[i%len(rates)]
			g.Links[i].Delay += sim.Time(i) * 3 * units.Nanosecond
		}
		return g
	}
	odd := 33 * units.Gbps
	graphs := map[string]*topo.Graph{
		"star":    star(t, 4, 25*units.Gbps, units.Microsecond),
		"Clos":    build(t, clos, 25*units.Gbps, 100*units.Gbps, units.Microsecond),
		"slow up": build(t, clos, 100*units.Gbps, 10*units.Gbps, 500*units.Nanosecond),
		"mixed Clos": rate(build(t, clos, 25*units.Gbps, 100*units.Gbps, units.Microsecond), 10*units.Gbps,
			100*units.Gbps, odd, 25*units.Gbps, units.Gbps),
		"dragonfly": build(t,
			topo.Config{Dragonfly: &topo.Dragonfly{Groups: 3, Routers: 2, HostsPerRouter: 2, GlobalLinks: 1}}, odd,
			40*units.Gbps, 0),
	}
	for name, g := range graphs {
		for _, payload := range []units.Bytes{1024, 16} { // at 16, ACKs are larger than packets
			for _, every := range []int{1, 4} {
				for _, size := range []units.Bytes{1, 16, 17, 1024, 1025, 10 * 1024, 100000} {
					c := plain()
					c.Payload, c.Acks.Every = payload, every
					if payload == 16 {
						c.Header = 20
						size = min(size, 3000)
					}
					if every > 1 && name == "mixed Clos" {
						continue // packets are so far apart that withheld ACKs are sent singly
					}
					for _, dst := range []int32{1, 3} {
						if g.Nodes[dst].Kind != topo.Host {
							continue
						}
						r := newRig(t, c, g, 1)
						m := r.mustSend(t, 0, dst, 1, size)
						ideal := r.net.Ideal(m)
						r.run(t, 1e7)
						r.drained(t)
						x := r.net.Messages()[m]
						if off := x.Acked - x.Posted - ideal; off != 0 {
							t.Errorf("%s: %v to %d in packets of %v, ACK every %d: took %v, ideal %v (off by %d ps)",
								name, size, dst, payload, every, x.Acked-x.Posted, ideal, off)
						}
					}
				}
			}
		}
	}
}

// TestPacketHops counts packet-hops on a longer path: each packet and its ACK pass each link once.
func TestPacketHops(t *testing.T) {
	g := build(t, topo.Config{FatTree: &topo.FatTree{K: 4}}, 10*units.Gbps, 10*units.Gbps, units.Microsecond)
	r := newRig(t, plain(), g, 1)
	want := uint64(0)
	for _, dst := range []int32{1, 3, 15} {
		m := r.mustSend(t, 0, dst, 1, 50*1024)
		s, d := r.net.Messages()[m].Src, r.net.Messages()[m].Dst
		want += 2 * 50 * uint64(g.Route(nil).Distance(s, d))
	}
	r.run(t, 1e6)
	r.drained(t)
	if got := r.net.packetHops() - r.net.Counters.Frames; got != want {
		t.Errorf("%d packet-hops, want %d", got, want)
	}
}

func Example() {
	g, err := topo.Build(topo.Config{Star: &topo.Star{Hosts: 3}}, 25*units.Gbps, 25*units.Gbps, units.Microsecond)
	if err != nil {
		panic(err)
	}
	eng := sim.New()
	net, err := New(DefaultConfig(), g, eng, nil, 1, "fabric")
	if err != nil {
		panic(err)
	}
	for src := range int32(2) {
		if _, err := net.Send(src, 2, 3, 64*units.KiB); err != nil {
			panic(err)
		}
	}
	eng.Run(sim.Forever)
	for i, m := range net.Messages() {
		fmt.Printf("message %d took %v, alone it would take %v\n", i, m.Acked-m.Posted, net.Ideal(int32(i)))
	}
	fmt.Println("lost:", net.Counters.DropCount(), "check:", net.Check())
	// Output:
	// message 0 took 49.3568us, alone it would take 27.05984us
	// message 1 took 49.71072us, alone it would take 27.05984us
	// lost: 0 check: <nil>
}

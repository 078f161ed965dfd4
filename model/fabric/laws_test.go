package fabric

import (
	"fmt"
	"math"
	"testing"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/model/fabric/topo"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// chain returns a graph of a number of switches in a row with a host at each end.
func chain(t failer, switches int) *topo.Graph {
	t.Helper()
	links := []topo.LinkSpec{{A: "h0", B: "s0"}, {A: fmt.Sprintf("s%d", switches-1), B: "h1"}}
	for i := range switches - 1 {
		links = append(links, topo.LinkSpec{A: fmt.Sprintf("s%d", i), B: fmt.Sprintf("s%d", i+1)})
	}
	return build(t, topo.Config{Links: links}, 40*units.Gbps, 40*units.Gbps, units.Microsecond)
}

// TestHandSums compares the time of a lone message over two to nine links with a sum by hand, to the picosecond: 0.2 ns
// a byte, of each packet on the first link and of the last packet on every link, a microsecond a link, and the
// switches' latency; and the same for its ACK on the return path.
func TestHandSums(t *testing.T) {
	for switches := 1; switches <= 8; switches++ {
		for _, size := range []units.Bytes{1, 1000, 1024, 1200, 10_000, 1 << 20} {
			for _, latency := range []sim.Time{0, 300 * units.Nanosecond} {
				c := plain()
				c.SwitchLatency = latency
				r := newRig(t, c, chain(t, switches), 1)
				m := r.mustSend(t, 0, r.host(t, "h1"), 3, size)
				r.eng.Run(sim.Forever)
				const perByte, delay = 200 * units.Picosecond, units.Microsecond
				full := int64(size-1) / 1024 // packets before the last
				last := sim.Time(int64(size)-full*1024+82) * perByte
				links := sim.Time(switches + 1)
				there := sim.Time(full)*1106*perByte + last + links*delay + (links-1)*latency
				// On each further link the last packet leaves once it has fully arrived and the packet before it, which
				// is as large or larger, has left.
				if full > 0 {
					there += (links - 1) * 1106 * perByte
				} else {
					there += (links - 1) * last
				}
				back := links*(86*perByte+delay) + (links-1)*latency
				x := r.net.Messages()[m]
				if x.Delivered != there || x.Acked != there+back {
					t.Errorf("%d switches of %v, %v: delivered after %v and acknowledged after %v, want %v and %v",
						switches, latency, size, x.Delivered, x.Acked, there, there+back)
				}
				if ideal := r.net.Ideal(m); ideal != x.Acked {
					t.Errorf("%d switches of %v, %v: ideal %v, alone %v", switches, latency, size, ideal, x.Acked)
				}
			}
		}
	}
}

// host returns a node by name.
func (r *rig) host(t failer, name string) int32 {
	t.Helper()
	for i := range r.graph.Nodes {
		if r.graph.Nodes[i].Name == name {
			return int32(i)
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

// TestJain verifies that 32 equal flows through one port get equal shares (Jain, Chiu and Hawe 1984) once the algorithm
// has settled.
func TestJain(t *testing.T) {
	for _, scheme := range []cc.Scheme{cc.SchemeNone, cc.SchemeDCQCN, cc.SchemeDCTCP, cc.SchemeHPCC, cc.SchemeSwift} {
		c := DefaultConfig()
		c.CongestionControl.Algorithm = scheme
		if scheme == cc.SchemeHPCC {
			c.Telemetry = Telemetry{Size: 42, AckSize: 42}
		}
		const flows = 32
		r := newRig(t, c, star(t, flows+1, 40*units.Gbps, units.Microsecond), 1)
		for i := range int32(flows) {
			r.mustSend(t, i+1, 0, 3, 100*units.MB)
		}
		taken := func() (out []float64) {
			for q := range r.net.senders {
				out = append(out, float64(r.net.senders[q].acked))
			}
			return out
		}
		r.eng.Run(4 * units.Millisecond)
		before := taken()
		r.eng.Run(12 * units.Millisecond)
		sum, squares := 0.0, 0.0
		for q, now := range taken() {
			x := now - before[q]
			sum += x
			squares += x * x
		}
		index := sum * sum / (flows * squares)
		if index < 0.95 {
			t.Errorf("%v: Jain's index %.4f", scheme, index)
		}
		if share := sum * 8 / 8e-3 / 40e9; share < 0.75 || share > 1024.0/1106+0.001 {
			t.Errorf("%v: %.3f of the link is goodput", scheme, share)
		}
		r.check(t)
	}
}

// TestGoBackNClosedForm verifies the goodput of go-back-N with a loss probability p: each loss costs the w packets sent
// until its NACK has returned, so goodput is (1-p) / (1 - p + p w) of the loss-free one (Bertsekas and Gallager, Data
// Networks, 2.4.1), provided that no retransmission is lost and no timer is needed.
func TestGoBackNClosedForm(t *testing.T) {
	const loss = 0.002
	g := star(t, 2, 40*units.Gbps, 5*units.Microsecond)
	g.Links[0].Loss = loss
	c := plain()
	var got []float64
	for seed := range uint64(8) {
		r := newRig(t, c, g, seed)
		r.net.ports[r.net.PortOf(0, false)].lossy = false // NACKs get through
		r.mustSend(t, 0, 1, 3, 64*units.MB)
		r.eng.Run(10 * units.Millisecond)
		// Full packets only, back to back.
		got = append(got, float64(r.net.Counters.Received)/float64(r.net.Counters.Sent))
		if r.net.Counters.Timeouts > 2 {
			t.Errorf("seed %d: %d timeouts", seed, r.net.Counters.Timeouts)
		}
		r.check(t)
	}
	// The round trip is 20 us of delays, plus the time of the next packet and of a NACK on two links each; a packet
	// takes 221.2 ns.
	const packet, nack = 1106 * 0.2, 86 * 0.2
	w := math.Ceil((20_000+3*packet+2*nack)/packet) - 1
	want := (1 - loss) / (1 - loss + float64(loss*w))
	mean := 0.0
	for _, x := range got {
		mean += x / float64(len(got))
	}
	if math.Abs(mean/want-1) > 0.02 {
		t.Errorf("goodput is %.4f of what is sent, want %.4f (w = %g)", mean, want, w)
	}
}

// TestLosslessNetworks draws 50 random networks whose pauses cannot deadlock, and verifies that they lose no packet,
// deliver every message, and satisfy every law at any time.
func TestLosslessNetworks(t *testing.T) {
	for seed := range uint64(50) {
		s := rng.NewStream(seed, "lossless")
		pick := func(n int) int { return int(s.Uint64() % uint64(n)) }
		leaves, spines, hosts := 2+pick(4), 1+pick(4), 1+pick(6)
		g := build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: leaves, Spines: spines, HostsPerLeaf: hosts}},
			units.BitRate(10+pick(90))*units.Gbps, units.BitRate(10+pick(190))*units.Gbps,
			sim.Time(pick(5000))*units.Nanosecond)
		c := DefaultConfig()
		c.CongestionControl.Algorithm = allSchemes[pick(len(allSchemes))]
		c.QueuePairs.Life = setting.Life(pick(2))
		c.Acks.Every = 1 + pick(3)
		c.SwitchLatency = sim.Time(pick(800)) * units.Nanosecond
		c.PFC.Threshold = Threshold{Size: units.Bytes(2000 + pick(60000))}
		if pick(2) == 0 {
			c.PFC.Threshold = Threshold{Dynamic: true}
		}
		if c.CongestionControl.Algorithm == cc.SchemeHPCC {
			c.Telemetry = Telemetry{Size: 42, AckSize: 42}
		}
		r := newRig(t, c, g, seed)
		n := leaves * hosts
		for range 40 {
			src := pick(n)
			r.send(post{sim.Time(pick(100)) * units.Microsecond, int32(src), int32((src + 1 + pick(n-1)) % n), 3,
				units.Bytes(1 + pick(200_000))})
		}
		for range 20 {
			r.eng.Run(r.eng.Now() + 10*units.Microsecond)
			r.check(t)
		}
		r.run(t, 1e7)
		r.drained(t)
		if n := r.net.Counters.DropCount(); n > 0 {
			t.Errorf("seed %d: %d packets lost", seed, n)
		}
	}
}

// TestBusy verifies that a port is busy for as long as its packets take, at any time, and never for longer than that
// time.
func TestBusy(t *testing.T) {
	for _, rounding := range []setting.Rounding{Exact, WholeNanoseconds} {
		c := plain()
		c.Rounding = rounding
		r := newRig(t, c, star(t, 2, units.BitRate(33)*units.Gbps, units.Microsecond), 1)
		r.mustSend(t, 0, 1, 3, units.MB)
		for at := sim.Time(0); at < 300*units.Microsecond; at += 777 * units.Nanosecond {
			r.eng.Run(at)
			for pi := range int32(r.net.Ports()) {
				if busy := r.net.Busy(pi, at); busy < 0 || busy > at {
					t.Fatalf("%v: port %d was busy for %v of %v", rounding, pi, busy, at)
				}
			}
			if first := r.net.Busy(0, at); at < 200*units.Microsecond && first != at {
				t.Fatalf("%v: the sender's port was busy for %v of %v", rounding, first, at)
			}
		}
	}
}

// TestFollow verifies that ACKs that follow their data are in its class on every link.
func TestFollow(t *testing.T) {
	c := DefaultConfig()
	c.Acks.Follow = true
	r := newRig(t, c, build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 2, Spines: 2, HostsPerLeaf: 2}},
		10*units.Gbps, 10*units.Gbps, units.Microsecond), 1)
	seen := map[uint8]bool{}
	r.net.OnSend = func(s Sending) {
		if s.Carries == Answer && !r.net.ports[s.Port].host {
			seen[s.Class] = true
			if want := r.net.senders[s.QP].class; s.Class != want {
				t.Errorf("an ACK in class %d of data in class %d", s.Class, want)
			}
		}
	}
	r.mustSend(t, 0, 2, 3, 100*units.KB)
	r.mustSend(t, 1, 3, 5, 100*units.KB)
	r.run(t, 1e6)
	r.drained(t)
	if len(seen) != 2 {
		t.Errorf("classes of ACKs: %v", seen)
	}
}

package fabric

import (
	"slices"
	"testing"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/numeric/units"
	"farflash/sim"
)

// Calculations by hand on a star of 10 Gbit/s and 1 us: a packet has 900 B and 100 B of headers, which take 800 ns; an
// ACK has 60 B, 48 ns.

func byHand() Config {
	c := plain()
	c.Payload, c.Header, c.Acks.Size = 900, 100, 60
	c.PFC.Enabled = false
	c.Recovery.Timeout = Timeout{}
	return c
}

// marked returns byHand with a DCQCN that does not slow down, and marks on every packet that leaves more than queue
// behind.
func marked(queue units.Bytes) Config {
	c := byHand()
	c.CongestionControl.Algorithm = cc.SchemeDCQCN
	c.CongestionControl.MinRate = 10 * units.Gbps
	c.ECN = setting.ECN{Enabled: true, Kmin: queue, Kmax: queue, Pmax: 1, Rate: 10 * units.Gbps}
	return c
}

const ns = units.Nanosecond

// TestMarksByHand: h3's packet makes the port to h0 start a packet every 800 ns from 1.8 us on; those of h1 and h2
// arrive 200 and 600 ns later, every 800 ns, 40 of each. The j-th to leave (from 0) follows 1 + 2 min(j, 40) arrivals,
// so it leaves j behind up to the 40th and 80 - j after. The 31st to the 49th leave more than 30 packets behind: 19
// marks. At 40 Gbit/s thresholds are four times as high, and no packet is marked.
func TestMarksByHand(t *testing.T) {
	for _, x := range []struct {
		rate units.BitRate // the rate that the threshold refers to
		want uint64
	}{{10 * units.Gbps, 19}, {2500 * units.Mbps, 0}, {20 * units.Gbps, 49}} {
		c := marked(30 * units.KB)
		c.ECN.Rate = x.rate
		r := newRig(t, c, star(t, 4, 10*units.Gbps, units.Microsecond), 1)
		r.send(post{0, 3, 0, 1, 900})
		r.send(post{200 * ns, 1, 0, 1, 40 * 900})
		r.send(post{600 * ns, 2, 0, 1, 40 * 900})
		r.run(t, 1e5)
		r.drained(t)
		if got := r.net.Port(r.net.PortOf(0, false)).Marks; got != x.want || r.net.Counters.Marked != x.want {
			t.Errorf("thresholds for %v: %d packets marked, %d came so; want %d", x.rate, got, r.net.Counters.Marked,
				x.want)
		}
	}
}

// TestCNPInterval: of the same packets those of h1 are all marked, and the k-th arrives at h0 at 1.8 + 0.8 (2 k + 1) +
// 0.8 + 1 = 4.4 + 1.6 k us. h0 sends h1 a CNP at the first mark and at each that arrives 10.3 us or more after the last
// CNP: every 7th, 11.2 us apart. Ticking, it sends them 10.3 us after the first packet, and every 10.3 us from there if
// a mark has arrived since; the last packet arrives at 66.8 us, so the last CNP leaves at 4.4 + 7 * 10.3 us.
func TestCNPInterval(t *testing.T) {
	for _, x := range []struct {
		ticking bool
		first   sim.Time
		apart   sim.Time
		n       int
	}{{false, 4400 * ns, 11200 * ns, 6}, {true, 14700 * ns, 10300 * ns, 7}} {
		c := marked(0)
		c.CNP.Interval, c.CNP.Ticking = 10300*ns, x.ticking
		r := newRig(t, c, star(t, 4, 10*units.Gbps, units.Microsecond), 1)
		var sent []sim.Time
		r.net.OnSend = func(s Sending) {
			if s.Carries == Congestion && s.Port == r.net.PortOf(1, false) { // the switch's port to h1
				sent = append(sent, s.Begin-units.Microsecond-(s.End-s.Begin)) // when h0 sent it
			}
		}
		r.send(post{0, 3, 0, 1, 900})
		r.send(post{200 * ns, 1, 0, 1, 40 * 900})
		r.send(post{600 * ns, 2, 0, 1, 40 * 900})
		r.run(t, 1e5)
		r.drained(t)
		var want []sim.Time
		for k := range x.n {
			want = append(want, x.first+sim.Time(k)*x.apart)
		}
		if !slices.Equal(sent, want) {
			t.Errorf("ticking %v: CNPs at %v, want %v", x.ticking, sent, want)
		}
	}
}

// TestDynamicThreshold: with alpha 1/2 a port may occupy half of the free part of 90,000 B. With 23,000 B of one host
// and 22,000 of the other that is 22,500 B: the first to have 23 packets is paused. The j-th packet starts to leave at
// 1.8 + 0.8 j us, when its space is freed; h1's are the odd ones, h2's the even ones from 2. At the k-th arrival from
// h1, at 2.0 + 0.8 k us, k + 1 have arrived and (k + 1)/2 have left, rounded down: 23 are present at k = 44, at 37.2
// us. At the k-th from h2, at 2.4 + 0.8 k, k/2 have left: 23 are present at k = 43, at 36.8 us.
func TestDynamicThreshold(t *testing.T) {
	c := byHand()
	c.PFC.Enabled, c.PFC.Reserve, c.PFC.Quanta = true, 0, 0
	c.PFC.Threshold, c.PFC.Alpha, c.PFC.AlphaByRate = Threshold{Dynamic: true}, .5, false
	c.PFC.Headroom = setting.Headroom{Kind: HeadroomFixed, Size: 10 * units.KB}
	c.Buffer = 90_000 + 4*10*units.KB
	r := newRig(t, c, star(t, 4, 10*units.Gbps, units.Microsecond), 1)
	var got []Pause
	r.net.OnSend = func(s Sending) {
		if s.Carries == PauseFrame && len(got) < 2 {
			got = append(got, Pause{At: s.Begin, Port: s.Port})
		}
	}
	r.send(post{0, 3, 0, 1, 900})
	r.send(post{200 * ns, 1, 0, 1, 400 * 900})
	r.send(post{600 * ns, 2, 0, 1, 400 * 900})
	r.run(t, 1e6)
	r.drained(t)
	want := []Pause{{At: 36800 * ns, Port: r.net.PortOf(2, false)}, {At: 37200 * ns, Port: r.net.PortOf(1, false)}}
	if !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v", got, want)
	}
}

// TestWithheldAckByHand: with an ACK for 64 packets and a window of 8 the receiver has 8 packets and no more arrive; it
// waits four times the 64 packets' time from the first of them, 204.8 us, and acknowledges them. From one ACK to the
// next it takes that, the ACK's return path and the next packet's forward path: 204.8 + 2 * 1.048 + 2 * 1.8 us. The
// last of 80 packets is acknowledged at once, seven packets after the first of its window.
func TestWithheldAckByHand(t *testing.T) {
	c := byHand()
	c.CongestionControl.Algorithm = cc.SchemeNone
	c.CongestionControl.None.Window = cc.WindowBDP
	c.Acks.Every = 64
	r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
	m := r.mustSend(t, 0, 1, 1, 80*900)
	var acks []sim.Time
	r.net.OnSend = func(s Sending) {
		if s.Carries == Answer && s.Port == r.net.PortOf(1, true) {
			acks = append(acks, s.Begin)
		}
	}
	r.run(t, 1e5)
	r.drained(t)
	var want []sim.Time
	for k := range sim.Time(9) {
		want = append(want, 3600*ns+204_800*ns+k*210_496*ns)
	}
	want = append(want, want[8]+2*1048*ns+2*1800*ns+7*800*ns)
	if !slices.Equal(acks, want) || r.net.Messages()[m].Delivered != want[9] {
		t.Errorf("ACKs at %v, the last packet at %v, want %v", acks, r.net.Messages()[m].Delivered, want)
	}
}

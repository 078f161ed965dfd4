package fabric

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
)

// TestIdealWithTelemetry verifies that the telemetry written into packets takes time on the wire too. A single message
// over two links takes, in closed form, (k-1+2) s + 2 d forward and 2 (a + d) back.
func TestIdealWithTelemetry(t *testing.T) {
	c := plain()
	c.Payload, c.Header, c.Acks.Size = 1000, 48, 60
	c.Telemetry = Telemetry{Size: 42, AckSize: 28}
	r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
	m := r.mustSend(t, 0, 1, 1, 10*c.Payload)
	r.run(t, 1e5)
	r.drained(t)
	want := 11*wireTime(1090, 10*units.Gbps) + 2*wireTime(88, 10*units.Gbps) + 4*units.Microsecond
	if got := r.net.Messages()[m]; got.Acked != want || r.net.Ideal(m) != want {
		t.Errorf("it took %v, ideally %v, want %v", got.Acked, r.net.Ideal(m), want)
	}
}

// TestDropReports verifies that OnDrop reports each lost packet with its queue pair and port; a pause frame has no
// queue pair.
func TestDropReports(t *testing.T) {
	c := plain()
	c.PFC.Quanta = 200
	c.PFC.Threshold = Threshold{Size: 5 * units.KB}
	c.Recovery.Timeout = Timeout{Time: units.Millisecond}
	g := build(t, topo.Config{Links: []topo.LinkSpec{{A: "h0", B: "s0"}, {A: "h1", B: "s0", Loss: 0.2},
		{A: "h2", B: "s0", Loss: 0.2}}},
		10*units.Gbps, 10*units.Gbps, units.Microsecond)
	r := newRig(t, c, g, 1)
	var frames, packets uint64
	ports := map[int32]uint64{}
	r.net.OnDrop = func(d Drop) {
		if d.Reason != DropCorrupted {
			return // a buffer overflow after a pause frame was lost
		}
		ports[d.Port]++
		switch to := r.net.Node(d.Port); {
		case d.QP < 0 && to == 0, d.At != r.eng.Now():
			t.Errorf("%+v: pauses go to hosts 1 and 2", d)
		case d.QP < 0:
			frames++
		default:
			packets++
			if m := r.net.Messages()[d.QP]; m.Src != 1 && m.Src != 2 || r.net.Node(d.Port) == 0 {
				t.Errorf("%+v of %d", d, m.Src)
			}
		}
	}
	for i := range int32(2) {
		r.mustSend(t, i+1, 0, 1, 200*units.KB)
	}
	r.run(t, 1e6)
	r.drained(t)
	if frames == 0 || packets == 0 || frames+packets != r.net.Counters.Drops[DropCorrupted] {
		t.Errorf("%d frames and %d packets of %d", frames, packets, r.net.Counters.Drops[DropCorrupted])
	}
}

// TestNS3RDMASettings verifies the settings that stand for ns3-rdma's code and are not in its configuration files: Zhu
// et al.'s switches have cells of 1030 B.
func TestNS3RDMASettings(t *testing.T) {
	c := NS3RDMA(DefaultConfig())
	if c.Header != 22 || c.Acks.Size != 30 || c.CNP.Size != 30 || c.PFC.Frame != 31 || c.PFC.Quanta != 0 ||
		c.Acks.Class != 0 || c.Acks.HostClass != 0 {
		t.Errorf("packets: %+v", c)
	}
	if c.Buffer != 9*units.MB || c.PFC.Headroom != (setting.Headroom{Kind: HeadroomFixed, Size: 103000}) {
		t.Errorf("buffer %v, headroom %+v", c.Buffer, c.PFC.Headroom)
	}
	if !c.CNP.Ticking || c.CNP.Echo || c.Acks.Duplicates || c.QueuePairs.Life != PerMessage ||
		c.Recovery.Timeout != (Timeout{}) || c.Watchdog.After != 0 {
		t.Errorf("%+v", c)
	}
	p := NS3RDMAPools(c)
	if p.Limit != 4120000 || p.Minimum != 2060 || p.Alpha != 16 || p.Recheck != 2*units.Microsecond ||
		p.Lasts != 5*units.Microsecond {
		t.Errorf("pools %+v", p)
	}
	c.PFC.Threshold = Threshold{Size: 50 * units.KB}
	if p := NS3RDMAPools(c); p.Alpha != 0 || p.ClassLimit != 50*units.KB || p.ClassResume != 50*units.KB-2060 {
		t.Errorf("static pools %+v", p)
	}
}

// TestTurns verifies that the ready queue pairs of a host take turns packet by packet, whatever their numbers: three
// messages of ten packets each, posted at once, complete within three packets of each other.
func TestTurns(t *testing.T) {
	c := plain()
	c.Payload, c.Header = 1000, 48
	r := newRig(t, c, star(t, 4, 10*units.Gbps, units.Microsecond), 1)
	var order []int32
	r.net.OnSend = func(s Sending) {
		if s.Carries == Payload && r.net.Node(s.Port) == 0 {
			order = append(order, int32(s.QP))
		}
	}
	for dst := range int32(3) {
		r.mustSend(t, 0, dst+1, 1, 10*c.Payload)
	}
	r.run(t, 1e5)
	r.drained(t)
	if len(order) != 30 {
		t.Fatalf("%d packets", len(order))
	}
	for i := 3; i < 30; i++ {
		if order[i] == order[i-1] || order[i] == order[i-2] || order[i] != order[i-3] {
			t.Fatalf("turns %v", order)
		}
	}
}

// TestFramesGetThrough verifies that lossy links lose no pause frames where a pause lasts until it is resumed.
func TestFramesGetThrough(t *testing.T) {
	c := plain()
	c.PFC.Quanta = 0
	c.PFC.Threshold = Threshold{Size: 5 * units.KB}
	c.Recovery.Timeout = Timeout{Time: units.Millisecond}
	g := build(t, topo.Config{Links: []topo.LinkSpec{{A: "h0", B: "s0"}, {A: "h1", B: "s0", Loss: 0.3},
		{A: "h2", B: "s0", Loss: 0.3}}},
		10*units.Gbps, 10*units.Gbps, units.Microsecond)
	r := newRig(t, c, g, 1)
	r.net.OnDrop = func(d Drop) {
		if d.QP < 0 {
			t.Errorf("a frame is lost: %+v", d)
		}
	}
	for i := range int32(2) {
		r.mustSend(t, i+1, 0, 1, 100*units.KB)
	}
	r.run(t, 1e6)
	r.drained(t)
	if r.net.Counters.Pauses == 0 || r.net.Counters.DropCount() == 0 {
		t.Errorf("%d pauses, %d drops: the run is not a test", r.net.Counters.Pauses, r.net.Counters.DropCount())
	}
}

// TestLateArrivals verifies that packets for a finished queue pair count as wasted, and that a host's set of turns does
// not grow with the queue pairs that it has had. Short timeouts retransmit packets that are merely late.
func TestLateArrivals(t *testing.T) {
	c := plain()
	c.QueuePairs.Life = PerMessage
	c.Recovery.Timeout = Timeout{Time: 20 * units.Microsecond}
	r := newRig(t, c, star(t, 3, units.Gbps, 5*units.Microsecond), 1)
	left := 2000
	r.onAcked = func(m int32) {
		r.net.Forget(m)
		if left > 0 {
			left--
			r.mustSend(t, 1+int32(left%2), 0, 1, 1500)
		}
	}
	for i := range int32(6) {
		r.mustSend(t, 1+i%2, 0, 1, 1500)
	}
	for r.eng.Pending() > 0 {
		r.eng.Run(r.eng.Now() + units.Millisecond)
		r.check(t)
	}
	if n := &r.net.Counters; n.Retransmits == 0 || n.Wasted == 0 || n.Completed != 2006 {
		t.Errorf("%d repetitions, %d bytes of no use, %d messages: the run is not a test", n.Retransmits, n.Wasted,
			n.Completed)
	}
	for i := range r.net.nics {
		if words := int(r.net.nics[i].turns[1].Size()) / 64; words > 8 {
			t.Errorf("NIC %d keeps %d words for at most 6 queue pairs", i, words)
		}
	}
}

// TestCountersAdd verifies that add covers each counter, including any added to the struct later.
func TestCountersAdd(t *testing.T) {
	var a, b Counters
	fill := func(c *Counters, from uint64) {
		v := reflect.ValueOf(c).Elem()
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Array {
				for k := range f.Len() {
					f.Index(k).SetUint(from + uint64(100*i+k))
				}
			} else {
				f.SetUint(from + uint64(100*i))
			}
		}
	}
	fill(&a, 1000)
	fill(&b, 7)
	a.Add(&b)
	v := reflect.ValueOf(a)
	for i := range v.NumField() {
		got := v.Field(i)
		if got.Kind() == reflect.Array {
			got = got.Index(0)
		}
		want := 1007 + uint64(200*i)
		if v.Type().Field(i).Name == "Reordered" {
			want = 1000 + uint64(100*i) // the maximum
		}
		if got.Uint() != want {
			t.Errorf("%s is %d, want %d", v.Type().Field(i).Name, got.Uint(), want)
		}
	}
}

// TestLongPath verifies that telemetry stops after MaxHops switches while the packet continues.
func TestLongPath(t *testing.T) {
	c := DefaultConfig()
	c.CongestionControl.Algorithm = cc.SchemeHPCC
	c.Telemetry = Telemetry{Size: 42, AckSize: 28}
	links := []topo.LinkSpec{{A: "h0", B: "s0"}, {A: "h1", B: "s10"}}
	for i := range 10 {
		links = append(links, topo.LinkSpec{A: fmt.Sprint("s", i), B: fmt.Sprint("s", i+1)})
	}
	r := newRig(t, c, build(t, topo.Config{Links: links}, 10*units.Gbps, 10*units.Gbps, units.Microsecond), 1)
	r.mustSend(t, 0, 1, 1, 100*units.KB)
	r.run(t, 1e6)
	r.drained(t)
	most := r.net.notes.Most()
	if most != cc.MaxHops {
		t.Errorf("%d switches wrote into a packet, want %d of 11", most, cc.MaxHops)
	}
}

// TestAckCounts verifies that an ACK covers Acks.Every packets, that the last packet of a message is acknowledged at
// once, and that a NACK counts as an ACK.
func TestAckCounts(t *testing.T) {
	for every, want := range map[int]uint64{1: 10, 3: 4, 4: 3, 10: 1, 64: 1} {
		c := plain()
		c.Acks.Every = every
		r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
		r.mustSend(t, 0, 1, 1, 10*c.Payload)
		r.run(t, 1e5)
		r.drained(t)
		if n := r.net.Counters; n.Acks != want || n.Nacks != 0 {
			t.Errorf("every %d: %d ACKs, %d NACKs, want %d", every, n.Acks, n.Nacks, want)
		}
	}
	c := plain()
	c.Recovery.Kind = SelectiveRepeat
	g := build(t, topo.Config{Links: []topo.LinkSpec{{A: "h0", B: "s0", Loss: 0.1}, {A: "h1", B: "s0"}}},
		10*units.Gbps, 10*units.Gbps, units.Microsecond)
	r := newRig(t, c, g, 1)
	r.mustSend(t, 0, 1, 1, 100*c.Payload)
	r.run(t, 1e6)
	r.drained(t)
	if n := r.net.Counters; n.Nacks == 0 || n.Acks <= n.Nacks || n.Drops[DropCorrupted] == 0 {
		t.Errorf("%d ACKs, %d NACKs", n.Acks, n.Nacks)
	}
}

// TestIdealWithFewAcks verifies that Ideal matches the simulated time of a lone message, also where an ACK covers
// several packets and is as long as they are.
func TestIdealWithFewAcks(t *testing.T) {
	for _, every := range []int{1, 3, 4, 7} {
		for _, ack := range []units.Bytes{60, 1000} {
			for _, packets := range []units.Bytes{1, 2, 9, 10, 13} {
				c := plain()
				c.Acks.Every, c.Acks.Size = every, ack
				r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
				m := r.mustSend(t, 0, 1, 1, packets*c.Payload)
				r.run(t, 1e5)
				r.drained(t)
				if took, ideal := r.net.Messages()[m].Acked, r.net.Ideal(m); took != ideal {
					t.Errorf("%d packets, an ACK of %v for %d: %v, ideally %v", packets, ack, every, took, ideal)
				}
			}
		}
	}
}

// TestAlphaByRate verifies that a port faster than the hosts' may occupy twice as much of the buffer for each doubling
// of its rate, and never more than the free space.
func TestAlphaByRate(t *testing.T) {
	for _, x := range []struct {
		up     units.BitRate
		byRate bool
		want   int64 // of 65536
	}{
		{10 * units.Gbps, true, 8192}, {20 * units.Gbps, true, 16384}, {40 * units.Gbps, true, 32768},
		{30 * units.Gbps, true, 32768}, {400 * units.Gbps, true, 65536}, {40 * units.Gbps, false, 8192},
	} {
		c := plain()
		c.PFC.AlphaByRate = x.byRate
		g := build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 2, Spines: 1, HostsPerLeaf: 2}}, 10*units.Gbps,
			x.up, units.Microsecond)
		n := newRig(t, c, g, 1).net
		for i, l := range g.Links {
			want := x.want
			if g.Nodes[l.A].Kind == topo.Host || g.Nodes[l.B].Kind == topo.Host {
				want = 8192
			}
			for _, atA := range []bool{true, false} {
				if p := &n.ports[n.PortOf(int32(i), atA)]; !p.host && int64(p.alpha) != want {
					t.Errorf("up %v, by rate %v: %s has %d, want %d of 65536", x.up, x.byRate,
						n.PortName(n.PortOf(int32(i), atA)), p.alpha, want)
				}
			}
		}
	}
}

// TestBytes verifies the sizes that Bytes assumes.
func TestBytes(t *testing.T) {
	pair := unsafe.Sizeof(sender{}) + unsafe.Sizeof(receiver{}) + unsafe.Sizeof(cc.Sender{}) + unsafe.Sizeof(Message{})
	if got := [...]uintptr{unsafe.Sizeof(port{}), unsafe.Sizeof(classQueue{}), 32 * unsafe.Sizeof(packet{}),
		pair}; got !=
		[...]uintptr{portBytes, laneBytes, chunkBytes, pairBytes} && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("%d, want %d", got, [...]int{portBytes, laneBytes, chunkBytes, pairBytes})
	}
}

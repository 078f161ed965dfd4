package fabric

import (
	"testing"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/numeric/units"
	"farflash/sim"
)

// repaired runs two messages of one queue pair over a star and loses the packet of the given kind and number on its way
// from its host.
func repaired(t *testing.T, kind kind, k int, recovery setting.RecoveryKind) *rig {
	t.Helper()
	c := plain()
	c.PFC.Enabled = false
	c.Recovery.Kind = recovery
	r := newRig(t, c, star(t, 3, 10*units.Gbps, units.Microsecond), 1)
	r.mustSend(t, 0, 1, 1, 20*1024)
	r.mustSend(t, 0, 1, 1, 20*1024)
	n := r.net
	lost := false
	for at := sim.Time(0); !lost && at < units.Millisecond; at += 10 * units.Nanosecond {
		r.eng.Run(at)
		for host := range int32(2) {
			p := &n.ports[n.PortOf(host, true)]
			if p.wire.N == 0 || p.wire.First().x.kind != kind || p.wire.First().x.psn != uint32(k) {
				continue
			}
			p.lossy, p.loss, lost = true, 1, true
			r.eng.Run(p.wire.First().at)
			p.lossy, p.loss = false, 0
			break
		}
	}
	if !lost {
		t.Fatalf("packet %d of kind %d was never on a wire", k, kind)
	}
	r.run(t, 1e6)
	r.drained(t)
	return r
}

func lossEverywhere(t *testing.T, recovery setting.RecoveryKind, loss float64, size units.Bytes) *rig {
	t.Helper()
	c := plain()
	c.PFC.Enabled = false
	c.Recovery.Kind = recovery
	g := star(t, 2, 10*units.Gbps, units.Microsecond)
	for i := range g.Links {
		g.Links[i].Loss = loss
	}
	r := newRig(t, c, g, 7)
	for range 20 {
		r.mustSend(t, 0, 1, 1, size)
	}
	r.run(t, 5e7)
	r.drained(t)
	if r.net.Counters.Retransmits == 0 || r.net.Counters.Drops[DropCorrupted] == 0 {
		t.Errorf("%d packets sent again, %d lost", r.net.Counters.Retransmits, r.net.Counters.DropCount())
	}
	return r
}

// TestSelectiveRepeatSendsWhatIsLost verifies that only lost packets are retransmitted. The tolerance covers rounds in
// which a retransmission was itself lost, and tails whose ACK was.
func TestSelectiveRepeatSendsWhatIsLost(t *testing.T) {
	for _, loss := range []float64{.001, .01, .05} {
		r := lossEverywhere(t, SelectiveRepeat, loss, 200*units.KB)
		lost := r.net.Counters.Lost / 1024 // nearly all packets are full
		if got := r.net.Counters.Retransmits; float64(got) > 2*float64(lost)+20 {
			t.Errorf("loss %v: %d packets lost, %d sent again", loss, lost, got)
		}
		g := lossEverywhere(t, GoBackN, loss, 200*units.KB)
		if g.net.Counters.Retransmits <= r.net.Counters.Retransmits {
			t.Errorf("loss %v: go-back-N sent %d again, selective repeat %d", loss, g.net.Counters.Retransmits,
				r.net.Counters.Retransmits)
		}
	}
}

// TestOneLost loses one packet of each kind: data in the middle and at the tail, an ACK in the middle and the last one.
func TestOneLost(t *testing.T) {
	for _, recovery := range []setting.RecoveryKind{GoBackN, SelectiveRepeat} {
		for _, x := range []struct {
			kind kind
			k    int
		}{{dataPacket, 0}, {dataPacket, 5}, {dataPacket, 39}, {ackPacket, 1}, {ackPacket, 20}, {ackPacket, 40}} {
			if r := repaired(t, x.kind, x.k, recovery); x.kind == dataPacket && r.net.Counters.Retransmits == 0 {
				t.Errorf("packet %d was lost and nothing was sent again", x.k)
			}
		}
	}
}

// TestLostTail loses all packets from some point on, by a link that fails for a while.
func TestLostTail(t *testing.T) {
	for _, recovery := range []setting.RecoveryKind{GoBackN, SelectiveRepeat} {
		for at := 2 * units.Microsecond; at < 22*units.Microsecond; at += 500 * units.Nanosecond {
			for link := range int32(2) {
				c := plain()
				c.Recovery.Kind = recovery
				r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
				r.mustSend(t, 0, 1, 1, 20*1024)
				if err := r.net.Fail(link, at, at+3*units.Microsecond); err != nil {
					t.Fatal(err)
				}
				r.run(t, 1e6)
				r.drained(t)
			}
		}
	}
}

// TestWithheldAck verifies that a window smaller than the number of packets per ACK does not stall a queue pair until
// its timer expires.
func TestWithheldAck(t *testing.T) {
	c := plain()
	c.CongestionControl.None.Window = cc.WindowBDP
	c.Acks.Every = 1024
	r := newRig(t, c, star(t, 2, 10*units.Gbps, 10), 1)
	r.mustSend(t, 0, 1, 1, 100*1024)
	r.run(t, 1e6)
	r.drained(t)
	if r.net.Counters.Timeouts > 0 {
		t.Errorf("%d timeouts", r.net.Counters.Timeouts)
	}
}

// TestSinkPostsAndOpens verifies that a sink can post and open queue pairs from its notifications.
func TestSinkPostsAndOpens(t *testing.T) {
	for _, life := range []setting.Life{Persistent, PerMessage} {
		c := DefaultConfig()
		c.QueuePairs.Life = life
		c.Recovery.Timeout = Timeout{Time: units.Millisecond}
		g := star(t, 8, 10*units.Gbps, units.Microsecond)
		for i := range g.Links {
			g.Links[i].Loss = .01
		}
		r := newRig(t, c, g, 3)
		left := 400
		again := func(m int32) {
			if left--; left < 0 {
				return
			}
			src, dst := r.net.Messages()[m].Src, r.net.Messages()[m].Dst
			r.mustSend(t, dst, (src+int32(left)%6+1)%8, 1+uint8(left%3), units.Bytes(1+left*97))
		}
		r.onDelivered = func(m int32) {
			if src, dst := r.net.Messages()[m].Src, r.net.Messages()[m].Dst; (src+int32(left-1)%6+1)%8 != dst {
				again(m)
			}
		}
		r.onAcked = r.onDelivered
		for i := range int32(7) {
			r.mustSend(t, i, i+1, 1, 30000)
		}
		r.run(t, 1e7)
		r.drained(t)
		if left > 350 {
			t.Errorf("only %d messages followed", 400-left)
		}
	}
}

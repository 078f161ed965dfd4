package fabric

import (
	"fmt"
	"testing"

	"farflash/internal/golden"
	"farflash/model/fabric/cc"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestTCPSlowStart verifies that a transfer on an idle path takes a round trip for each doubling of ten segments, and
// then runs at line rate.
func TestTCPSlowStart(t *testing.T) {
	c := TCP(DefaultConfig())
	c.Acks.Every = 1
	const rate, delay = 10 * units.Gbps, 500 * units.Microsecond
	r := newRig(t, c, star(t, 2, rate, delay), 1)
	m := r.mustSend(t, 0, 1, 3, 150*c.Payload)
	r.run(t, 1e6)
	r.drained(t)
	full := c.Payload + c.Header
	trip := 4*delay + 2*rate.TimeFor(full) + 2*rate.TimeFor(c.Acks.Size)
	// 10, 20, 40 and 80 segments: the 150th is the last of the fourth window, behind the other 79.
	want := 3*trip + 80*rate.TimeFor(full) + rate.TimeFor(full) + 2*delay
	got := r.net.Messages()[m].Delivered
	// ACKs are as far apart as their segments, so the first segment of a window leaves with the first ACK.
	if got < want-5*rate.TimeFor(full) || got > want+5*rate.TimeFor(full) {
		t.Errorf("150 segments took %v, want %v", got, want)
	}
}

// TestTCPLoss verifies that a lost segment is retransmitted at once, and a window that is lost as a whole after 200 ms.
func TestTCPLoss(t *testing.T) {
	for _, growth := range []cc.Growth{cc.GrowthCubic, cc.GrowthNewReno, cc.GrowthDCTCP} {
		c := TCP(DefaultConfig())
		c.CongestionControl.TCP.Growth = growth
		r := newRig(t, c, star(t, 2, 10*units.Gbps, 10*units.Microsecond), 1)
		r.mustSend(t, 0, 1, 3, units.MiB)
		p := &r.net.ports[r.net.PortOf(0, true)]
		r.eng.Run(100 * units.Microsecond)
		p.lossy, p.loss = true, 1
		r.eng.Run(r.eng.Now() + 3*units.Microsecond)
		p.lossy, p.loss = false, 0
		r.run(t, 1e6)
		r.drained(t)
		k := &r.net.Counters
		if k.Drops[DropCorrupted] == 0 || k.Retransmits != k.Drops[DropCorrupted] || k.Timeouts > 0 {
			t.Errorf("%v: %d lost, %d sent again, %d timeouts", growth, k.Drops[DropCorrupted], k.Retransmits,
				k.Timeouts)
		}

		r = newRig(t, c, star(t, 2, 10*units.Gbps, 10*units.Microsecond), 1)
		m := r.mustSend(t, 0, 1, 3, 5*c.Payload)
		p = &r.net.ports[r.net.PortOf(0, true)]
		p.lossy, p.loss = true, 1
		r.eng.Run(units.Millisecond)
		p.lossy, p.loss = false, 0
		r.run(t, 1e6)
		r.drained(t)
		if got := r.net.Messages()[m].Delivered; got < 200*units.Millisecond || got > 201*units.Millisecond {
			t.Errorf("%v: a window that was lost arrived after %v", growth, got)
		}
	}
}

// TestTCPShares verifies that four connections through a link with a quarter of their lines' rate, with a buffer of two
// round trips, fill it and get equal shares (Jain's index), whether they react to losses or to marks.
func TestTCPShares(t *testing.T) {
	lines := golden.Head("", ">of the line", ">Jain's index", ">packets lost after slow start", ">timeouts")
	for _, growth := range []cc.Growth{cc.GrowthCubic, cc.GrowthNewReno, cc.GrowthDCTCP} {
		c := TCP(DefaultConfig())
		c.CongestionControl.TCP.Growth = growth
		c.Buffer = 256 * units.KiB
		c.ECN.Kmin, c.ECN.Kmax, c.ECN.Pmax, c.ECN.Rate = 65*1500, 65*1500, 1, 10*units.Gbps
		c.ECN.Enabled = growth == cc.GrowthDCTCP
		g := build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 2, Spines: 1, HostsPerLeaf: 4}}, 25*units.Gbps,
			10*units.Gbps, 10*units.Microsecond)
		r := newRig(t, c, g, 1)
		for host := range int32(4) {
			r.mustSend(t, host, host+4, 3, units.GiB)
		}
		const warm, span = 50 * units.Millisecond, 250 * units.Millisecond
		var at [4]uint64
		r.eng.Run(warm)
		early := r.net.Counters.DropCount() // drops of slow start
		for q := range at {
			at[q] = r.net.senders[q].acked
		}
		r.eng.Run(warm + span)
		r.check(t)
		sum, squares := 0.0, 0.0
		for q := range at {
			x := float64(r.net.senders[q].acked - at[q])
			sum += x
			squares += float64(x * x)
		}
		jain := sum * sum / (4 * squares)
		share := sum * 8 / span.Seconds() / 10e9 * float64(c.Payload+c.Header) / float64(c.Payload)
		t.Logf("%v: %.3f of the line, Jain's index %.3f, %d lost, %d timeouts", growth, share, jain,
			r.net.Counters.DropCount(), r.net.Counters.Timeouts)
		if share < 0.9 || share > 1.001 || jain < 0.85 {
			t.Errorf("%v: %.3f of the line, Jain's index %.3f", growth, share, jain)
		}
		lines = append(lines,
			golden.Row(growth.String(), fmt.Sprintf("%.1f %%", 100*share), fmt.Sprintf("%.3f", jain),
				fmt.Sprint(r.net.Counters.DropCount()-early), fmt.Sprint(r.net.Counters.Timeouts)))
		if k := &r.net.Counters; k.Timeouts > 0 || (k.DropCount() > early) == (growth == cc.GrowthDCTCP) {
			t.Errorf("%v: %d lost, %d timeouts", growth, k.DropCount(), k.Timeouts)
		}
	}
	golden.Table(t, "../../docs/validation/nvmeof.md", "nvmeof-shares", "no random numbers", lines, *update)
}

// TestFirstTimeout is worked out by hand: the link of a connection's sender is down from the start. Without a round
// trip measured its timer is 1 s, and doubles (RFC 6298, sections 2 and 5.5): the message leaves again at 1, 3 and 7 s,
// and arrives two segments' times and links later. A connection that was established before has 200 ms instead: it
// leaves again at 0.2, 0.6, 1.4, 3 and 6.2 s. Once a message is acknowledged, a lost one is sent again after 200 ms
// either way.
func TestFirstTimeout(t *testing.T) {
	const ms, s = units.Millisecond, units.Second
	for _, x := range []struct{ first, until, again sim.Time }{
		{s, 500 * ms, s}, {s, 1500 * ms, 3 * s}, {s, 3500 * ms, 7 * s},
		{0, 500 * ms, 600 * ms}, {0, 1500 * ms, 3 * s}, {0, 3500 * ms, 6200 * ms},
	} {
		c := TCP(DefaultConfig())
		c.Recovery.FirstTimeout = x.first
		r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
		if err := r.net.Fail(0, 0, x.until); err != nil {
			t.Fatal(err)
		}
		r.eng.Run(0)
		q, err := r.net.Open(0, 1, 3)
		if err != nil {
			t.Fatal(err)
		}
		post := func(size units.Bytes) int32 {
			m, err := r.net.Post(q, size)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		m := post(1)
		r.run(t, 1e4)
		way := 2*wireTime(1+c.Header, 10*units.Gbps) + 2*units.Microsecond
		if got := r.net.Messages()[m].Delivered; got != x.again+way {
			t.Errorf("first %v, down until %v: delivered at %v, not %v", x.first, x.until, got, x.again+way)
		}
		now := r.eng.Now() + ms
		if err := r.net.Fail(0, now, now+150*ms); err != nil {
			t.Fatal(err)
		}
		r.eng.Run(now)
		m = post(1)
		r.run(t, 1e4)
		r.drained(t)
		if got := r.net.Messages()[m]; got.Delivered != got.Posted+200*ms+way {
			t.Errorf("first %v: a later message takes %v", x.first, got.Delivered-got.Posted)
		}
	}
}

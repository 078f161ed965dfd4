package fabric

import (
	"testing"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/model/fabric/spread"
	"farflash/numeric/units"
	"farflash/sim"
)

// withPulls returns a configuration with NDP and queues of a number of packets.
func withPulls(queue int) Config {
	c := trimming(queue)
	c.CongestionControl.Algorithm = cc.SchemeNDP
	c.LoadBalancing.Choice = spread.Random
	return c
}

// TestPulledIncast verifies that an incast trims packets of first windows only; from then on receivers request what
// fits, their link is never idle, and each arriving packet is pulled for once.
func TestPulledIncast(t *testing.T) {
	const senders, packets = 16, 200
	c := withPulls(8)
	r := newRig(t, c, star(t, senders+1, 100*units.Gbps, units.Microsecond), 1)
	for i := range int32(senders) {
		r.mustSend(t, i+1, 0, 1, packets*c.Payload)
	}
	r.run(t, 1e7)
	r.drained(t)
	x := &r.net.Counters
	if x.Trimmed == 0 || x.Retransmits != x.Trimmed || x.Timeouts > 0 || x.DropCount() > 0 || x.Wasted > 0 {
		t.Errorf("%d trimmed, %d sent again, %d timeouts, %d drops, %d wasted", x.Trimmed, x.Retransmits, x.Timeouts,
			x.DropCount(), x.Wasted)
	}
	first := uint64(r.net.control[0].Window / c.Payload)
	if x.Trimmed > senders*(first+1) {
		t.Errorf("%d trimmed of first windows of %d packets", x.Trimmed, senders*first)
	}
	asked := uint32(0)
	for i := range r.net.receive {
		x := &r.net.pulling[i]
		asked += x.asked
		if c := r.net.control[i].Credit; uint64(c) != first || x.owed != 0 {
			t.Errorf("queue pair %d ends with a credit of %d of %d, and %d owed", i, c, first, x.owed)
		}
	}
	if uint64(asked) != senders*packets+x.Trimmed || x.Pulls+senders*first < uint64(asked) {
		t.Errorf("%d packets pulled for, with %d pulls, where %d packets and %d headers came", asked, x.Pulls,
			senders*packets, x.Trimmed)
	}
	// All had equal turns, so they finish within a few turns of each other.
	ended, last := sim.Forever, sim.Time(0)
	for _, m := range r.net.Messages() {
		ended, last = min(ended, m.Delivered), max(last, m.Delivered)
	}
	if busy := r.net.Busy(r.net.PortOf(0, false), last).Seconds() / last.Seconds(); busy < 0.97 {
		t.Errorf("the last link is busy %.3f of the time", busy)
	}
	if turn := senders * r.net.time(&r.net.ports[0], uint16(c.Payload+c.Header)); last-ended > 8*turn {
		t.Errorf("the first ends %v before the last, a turn takes %v", last-ended, turn)
	}
}

// TestPulledAlone verifies that the first window fills an empty path, so that a message is as fast as without any
// control.
func TestPulledAlone(t *testing.T) {
	var ended [2]sim.Time
	for i, scheme := range []cc.Scheme{cc.SchemeNone, cc.SchemeNDP} {
		c := withPulls(8)
		c.CongestionControl.Algorithm = scheme
		r := newRig(t, c, star(t, 2, 100*units.Gbps, 5*units.Microsecond), 1)
		m := r.mustSend(t, 1, 0, 1, 5000*c.Payload)
		r.run(t, 1e7)
		ended[i] = r.net.Messages()[m].Delivered
	}
	if ended[1] < ended[0] || float64(ended[1]) > 1.002*float64(ended[0]) {
		t.Errorf("with pulls %v, without %v", ended[1], ended[0])
	}
}

// TestPulledLosses verifies that timeouts recover corrupted data and pulls, and that an arriving pull makes up for lost
// earlier ones.
func TestPulledLosses(t *testing.T) {
	c := withPulls(8)
	c.Recovery.Timeout, c.Recovery.ShortTimeout = Timeout{Time: 200 * units.Microsecond}, 200*units.Microsecond
	c.Recovery.Retries = 0
	g := star(t, 5, 100*units.Gbps, units.Microsecond)
	for i := range g.Links {
		g.Links[i].Loss = 0.01
	}
	r := newRig(t, c, g, 1)
	for i := range int32(4) {
		for range 20 {
			r.mustSend(t, i+1, 0, 1, 100*c.Payload)
		}
	}
	r.run(t, 1e7)
	r.drained(t)
	x := &r.net.Counters
	if x.Timeouts == 0 || x.DropCount() == 0 || x.Pulls == 0 {
		t.Errorf("%d timeouts, %d drops, %d pulls: nothing was put to the test", x.Timeouts, x.DropCount(), x.Pulls)
	}
}

// TestPulledInParts verifies that a network whose receivers pull behaves in parts as in one piece.
func TestPulledInParts(t *testing.T) {
	for _, life := range []setting.Life{Persistent, PerMessage} {
		c := withPulls(16)
		c.QueuePairs.Life = life
		sameInParts(t, c)
	}
}

// TestNDPAnswers compares pulls with trimming and spraying with the results of htsim in testdata/ndp.txt: completions
// within 3 %, trimmed packets within 15 % or four, on the mean of four seeds, as there. The two simulators differ in
// which packet of a full queue is trimmed (in half of its cases, the last in the queue), and in who chooses a path
// (its hosts, among 64 entropies).
func TestNDPAnswers(t *testing.T) {
	trimmedAnswers(t, "testdata/ndp.txt", 0.03, 4, 241, func() Config {
		c := withPulls(1)
		c.Payload, c.Header, c.Acks.Size = 4160, 64, 64
		c.Trimming.Queue = 33280
		c.CongestionControl.NDP.Window = 30
		return c
	})
}

// TestPulledToTheEnd verifies that queue pairs whose messages have arrived take no turns from one whose message is
// longer, although their first windows are still to be pulled for.
func TestPulledToTheEnd(t *testing.T) {
	const senders, short, long = 8, 100, 1000
	c := withPulls(8)
	r := newRig(t, c, star(t, senders+2, 100*units.Gbps, units.Microsecond), 1)
	m := r.mustSend(t, senders+1, 0, 1, long*c.Payload)
	for i := range int32(senders) {
		r.mustSend(t, i+1, 0, 1, short*c.Payload)
	}
	r.run(t, 1e7)
	r.drained(t)
	least := sim.Time(senders*short+long) * r.net.time(&r.net.ports[0], uint16(c.Payload+c.Header))
	if took := r.net.Messages()[m].Delivered; float64(took) > 1.06*float64(least) {
		t.Errorf("the long message takes %v, and all packets together %v", took, least)
	}
}

// TestPullsAllocateNothing checks the steady state.
func TestPullsAllocateNothing(t *testing.T) {
	r := newRig(t, withPulls(8), star(t, 5, 25*units.Gbps, units.Microsecond), 1)
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
		t.Errorf("%v allocations a run, %d packet-hops in six", allocs, hops)
	}
}

package fabric

import (
	"testing"

	"farflash/model/fabric/setting"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestOutageByHand: a packet takes 1.8 us a hop, an acknowledgement 1.048 us. A message that is posted while its
// receiver's link is down waits for the sender's timer alone: it is sent again 1, 3, 7, 15 ... timeouts after it began,
// from the seventh doubling on every 64 timeouts and with TCP up to every two minutes. The first of these that reaches
// the switch after the link's return arrives. A sender's own link, while it is down, loses packets in the same way.
func TestOutageByHand(t *testing.T) {
	const hop, ms, s = 1800 * ns, units.Millisecond, units.Second
	for _, x := range []struct {
		kind             setting.RecoveryKind
		timeout          sim.Time
		link             int32
		posted, until    sim.Time
		sent             sim.Time // the one that arrives
		timeouts, losses uint64
	}{
		{GoBackN, ms, 1, 2 * ms, 2500 * units.Microsecond, 3 * ms, 1, 1},
		{GoBackN, ms, 1, 2 * ms, 3*ms + 1799*ns, 3 * ms, 1, 1},
		{GoBackN, ms, 1, 2 * ms, 3*ms + 1801*ns, 5 * ms, 2, 2},
		{GoBackN, ms, 0, 2 * ms, 3*ms - ns, 3 * ms, 1, 1},
		{GoBackN, ms, 0, 2 * ms, 3*ms + 801*ns, 5 * ms, 2, 2},
		{SelectiveRepeat, ms, 1, 2 * ms, 10 * ms, 17 * ms, 4, 4},
		{SelectiveRepeat, ms, 1, 2 * ms, 200 * ms, 257 * ms, 9, 9},
		{SelectiveRepeat, ms, 1, 2 * ms, 260 * ms, 321 * ms, 10, 10},
		{Sack, 200 * ms, 1, 2 * ms, 6 * ms, 202 * ms, 1, 1},
		{Sack, 200 * ms, 1, 2 * ms, 1200 * ms, 1402 * ms, 3, 3},
		{Sack, 200 * ms, 0, 2 * ms, 100 * s, 102202 * ms, 9, 9},
		{Sack, 200 * ms, 1, 2 * ms, 205 * s, 324602 * ms, 11, 11},
		{Sack, 200 * ms, 1, 2 * ms, 330 * s, 444602 * ms, 12, 12},
	} {
		c := byHand()
		c.Recovery.Kind = x.kind
		c.Recovery.Timeout, c.Recovery.ShortTimeout = Timeout{Time: x.timeout}, x.timeout
		c.Recovery.Retries = 0 // no limit
		r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
		if err := r.net.Fail(x.link, ms, x.until); err != nil {
			t.Fatal(err)
		}
		r.send(post{x.posted, 0, 1, 1, 900})
		r.run(t, 1e4)
		r.drained(t)
		m := r.net.Messages()[0]
		if want := x.sent + 2*hop; m.Delivered != want || m.Acked != want+2*1048*ns {
			t.Errorf("%v, timeouts of %v, link %d down until %v: delivered at %v, acknowledged at %v; want %v and %v",
				x.kind, x.timeout, x.link, x.until, m.Delivered, m.Acked, want, want+2*1048*ns)
		}
		if k := &r.net.Counters; k.Timeouts != x.timeouts || k.DropCount() != x.losses || k.Retransmits != x.losses {
			t.Errorf("%v, until %v: %d timeouts, %d sent again, %d lost; want %d, and %d", x.kind, x.until, k.Timeouts,
				k.Retransmits, k.DropCount(), x.timeouts, x.losses)
		}
	}
}

// TestConvergence: two leaves, two spines, four hops of 1.8 us. The link from leaf0 to the spine of a queue pair's path
// is down from 1 ms on, and routing follows 10 ms later: packets sent until then are lost unless the link is back
// first.
func TestConvergence(t *testing.T) {
	const ms, trip = units.Millisecond, 4 * 1800 * ns
	for _, x := range []struct{ posted, until, sent sim.Time }{
		{2 * ms, 0, 17 * ms},                                         // again at 3, 5, 9, 17 ms
		{2*ms - ns, 0, 17*ms - ns},                                   //
		{10 * ms, 0, 11 * ms},                                        // again at 11 ms, on new routes
		{11*ms - 1801*ns, 0, 12*ms - 1801*ns},                        // reaches leaf0 just before them
		{11*ms - 1799*ns, 0, 11*ms - 1799*ns},                        // and just after
		{1500 * units.Microsecond, 3 * ms, 4500 * units.Microsecond}, // was never withdrawn
		{12 * ms, 12500 * units.Microsecond, 12 * ms},                // on the other spine
		{30 * ms, 3 * ms, 30 * ms},
	} {
		c := byHand()
		c.Recovery.Timeout, c.Convergence = Timeout{Time: ms}, 10*ms
		g := build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 2, Spines: 2, HostsPerLeaf: 2}}, 10*units.Gbps,
			10*units.Gbps, units.Microsecond)
		r := newRig(t, c, g, 1)
		r.mustSend(t, 0, 2, 1, 900)
		r.send(post{x.posted, 0, 2, 1, 900})
		up := r.net.paths[0] & stepPort // leaf0's port to the spine
		link := int32(-1)
		for l := range int32(len(g.Links)) {
			if r.net.PortOf(l, true) == up || r.net.PortOf(l, false) == up {
				link = l
			}
		}
		if err := r.net.Fail(link, ms, x.until); err != nil {
			t.Fatal(err)
		}
		r.run(t, 1e4)
		r.drained(t)
		if got := r.net.Messages()[1].Delivered; got != x.sent+trip {
			t.Errorf("posted at %v, link down until %v: delivered at %v, want %v", x.posted, x.until, got, x.sent+trip)
		}
		if want := r.net.ports[up].down || x.until == 0; r.net.failed[link] != want {
			t.Errorf("at the end routing has the link failed: %v, want %v", r.net.failed[link], want)
		}
	}
}

package fabric

import (
	"testing"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestNothingResent: where nothing is lost, nothing is sent again, whatever the round trip: from 1 us to 10 ms, on fast
// and slow links, alone and beside others that fill the queue of one host.
func TestNothingResent(t *testing.T) {
	const us, ms = units.Microsecond, units.Millisecond
	for _, kind := range []setting.RecoveryKind{GoBackN, SelectiveRepeat} {
		for _, scheme := range []cc.Scheme{cc.SchemeDCQCN, cc.SchemeDCTCP, cc.SchemeTimely} {
			for _, delay := range []sim.Time{250 * units.Nanosecond, 5 * us, 80 * us, 300 * us, 2500 * us} {
				for _, rate := range []units.BitRate{units.Gbps, 100 * units.Gbps} {
					for _, pfc := range []bool{false, true} {
						c := DefaultConfig()
						c.Recovery.Kind, c.CongestionControl.Algorithm, c.PFC.Enabled = kind, scheme, pfc
						c.Buffer = units.GiB
						r := newRig(t, c, star(t, 5, rate, delay), 1)
						for i := range 5 { // short messages, one packet, and long ones, in turns
							for k, size := range []units.Bytes{64 * units.KB, 200, 400 * units.KB} {
								r.send(post{at: sim.Time(i) * 3 * ms, src: int32(1 + (i+k)%4), dst: 0, class: 3,
									size: size})
							}
						}
						r.run(t, 1e8)
						r.drained(t)
						if x := &r.net.Counters; x.Retransmits > 0 || x.Timeouts > 0 || x.DropCount() > 0 {
							t.Errorf("%v, %v, %v a link, %v, pfc %v: %d packets sent again, %d timeouts, %d lost", kind,
								scheme, delay, rate, pfc, x.Retransmits, x.Timeouts, x.DropCount())
						}
					}
				}
			}
		}
	}
}

// TestTimeoutFollowsTrips: the last packet of a message is lost; it is sent again one timeout after the packet before
// it was acknowledged. Without a round trip measured before, that is the setting or twice the unloaded round trip,
// whichever is longer.
func TestTimeoutFollowsTrips(t *testing.T) {
	for _, delay := range []sim.Time{units.Microsecond, 400 * units.Microsecond} {
		c := plain()
		c.PFC.Enabled = false
		c.Recovery.Kind = SelectiveRepeat
		r := newRig(t, c, star(t, 2, 10*units.Gbps, delay), 1)
		m := r.mustSend(t, 0, 1, 1, 1000)
		p := &r.net.ports[r.net.PortOf(0, true)]
		p.lossy, p.loss = true, 1
		r.eng.Run(delay + units.Microsecond) // it takes 0.9 us on the wire
		p.lossy, p.loss = false, 0
		r.run(t, 1e6)
		r.drained(t)
		unloaded := r.net.control[0].BaseRTT
		want := max(4*c.Recovery.ShortTimeout, 2*unloaded) // the setting is for 40 Gbit/s
		// The first packet starts the timer as it is sent.
		data, back := wireTime(1000+82, 10*units.Gbps), wireTime(c.Acks.Size, 10*units.Gbps)
		if got := r.net.Messages()[m].Acked - (2*data + 2*back + 4*delay); got != want || r.net.Counters.Timeouts != 1 {
			t.Errorf("%v a link: sent again after %v and %d timeouts, not %v and one", delay, got,
				r.net.Counters.Timeouts,
				want)
		}
	}
}

//go:build invariants

package fabric

import (
	"fmt"
	"testing"

	"farflash/model/fabric/setting"
	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// faultRun lets three hosts send to a fourth through a small buffer, which produces data, ACKs, NACKs, pauses,
// refreshes and resumes, and loses the packets that lose selects. All messages must arrive nevertheless.
func faultRun(t *testing.T, kind setting.RecoveryKind, acks int, seed uint64,
	lose func(arrival int, x packet) bool) (arrivals, lostFrames int, counters Counters) {
	t.Helper()
	c := plain()
	c.Recovery.Retries = 0
	c.Recovery.Kind = kind
	c.Recovery.Timeout, c.Recovery.ShortTimeout = Timeout{Time: 200 * units.Microsecond}, 100*units.Microsecond
	c.Recovery.NackInterval = 20 * units.Microsecond
	c.Acks.Class, c.Acks.HostClass = acks, acks
	c.PFC.Threshold = Threshold{Size: 6 * units.KB}
	c.PFC.Quanta = 200
	r := newRig(t, c, star(t, 4, 10*units.Gbps, units.Microsecond), seed)
	r.net.fault = func(_ int32, x packet) bool {
		arrivals++
		lost := lose(arrivals, x)
		if lost && x.kind >= pauseFrame {
			lostFrames++
		}
		return lost
	}
	for i := range int32(3) {
		r.mustSend(t, i+1, 0, 1, 14*units.KB)
		r.mustSend(t, i+1, 0, 1, 1)
	}
	r.run(t, 1e6)
	r.drained(t)
	if d := r.net.Counters.Drops[DropBuffer]; d > 0 && lostFrames == 0 {
		t.Fatalf("%d packets found no room although every pause came through", d)
	}
	return arrivals, lostFrames, r.net.Counters
}

// TestEverySingleLoss loses each packet and frame in turn.
func TestEverySingleLoss(t *testing.T) {
	for _, kind := range []setting.RecoveryKind{GoBackN, SelectiveRepeat} {
		for _, acks := range []int{0, 2} {
			t.Run(fmt.Sprintf("%v, acks in class %d", kind, acks), func(t *testing.T) {
				all, _, c := faultRun(t, kind, acks, 1, func(int, packet) bool { return false })
				if c.Pauses == 0 || c.Refreshes == 0 || c.DropCount() > 0 {
					t.Fatalf("%d pauses, %d refreshes, %d drops: the run is not a test", c.Pauses, c.Refreshes,
						c.DropCount())
				}
				frames := 0
				for k := 1; k <= all; k++ {
					_, f, _ := faultRun(t, kind, acks, 1, func(arrival int, _ packet) bool { return arrival == k })
					frames += f
				}
				if all < 100 || frames < 6 {
					t.Errorf("%d arrivals, %d of them frames", all, frames)
				}
			})
		}
	}
}

// TestRandomLosses loses packets and frames at random, up to a third of them, seed by seed.
func TestRandomLosses(t *testing.T) {
	for seed := range uint64(40) {
		for _, kind := range []setting.RecoveryKind{GoBackN, SelectiveRepeat} {
			s := rng.NewStream(seed, "faults")
			chance := float64(seed%4+1) / 12
			faultRun(t, kind, int(seed%2)*2, seed, func(int, packet) bool { return s.Float64() < chance })
		}
	}
}

// TestLateAckEndsRepeating loses all ACKs until the timer sends a queue pair back to its first packet. The receiver,
// which has everything, acknowledges all of it when the first packet arrives again, and no further retransmission is
// needed: about 10 packets of 100, those of a round trip.
func TestLateAckEndsRepeating(t *testing.T) {
	c := plain()
	c.Recovery.Retries = 0
	c.Recovery.Timeout = Timeout{Time: 200 * units.Microsecond}
	r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
	r.net.fault = func(_ int32, x packet) bool { return x.kind == ackPacket && r.eng.Now() < 200*units.Microsecond }
	r.mustSend(t, 0, 1, 1, 100*c.Payload)
	r.run(t, 1e5)
	r.drained(t)
	if n := r.net.Counters; n.Timeouts != 1 || n.Retransmits < 3 || n.Retransmits > 15 {
		t.Errorf("%d timeouts, %d packets repeated", n.Timeouts, n.Retransmits)
	}
}

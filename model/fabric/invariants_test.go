//go:build invariants

package fabric

import (
	"fmt"
	"testing"

	"farflash/model/fabric/setting"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
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

// TestAnswerLostByHand loses packets of an answer without ACKs. The time of its arrival is that of the requests sent
// again: at once behind a later packet, and when the requester's timer ends otherwise.
func TestAnswerLostByHand(t *testing.T) {
	const timeout = 200 * units.Microsecond
	c := plain()
	c.Recovery.Timeout = Timeout{Time: timeout}
	tx := func(size units.Bytes) sim.Time { return (10 * units.Gbps).TimeFor(size + c.Header) }
	wire := func(size units.Bytes) sim.Time { return 2*tx(size) + 2*units.Microsecond }
	full, ask := c.Payload, wire(16)
	first := ask + wire(full) // when the answer's first packet arrives, k later ones k*tx after it
	ack := 2*(10*units.Gbps).TimeFor(c.Acks.Size) + 2*units.Microsecond
	isAnswer := func(x packet, psn uint32) bool { return x.kind == dataPacket && x.flags&asks == 0 && x.psn == psn }
	for _, k := range []struct {
		name     string
		lost     map[uint32]int // times that a packet of the answer is lost
		requests int            // repeated requests that are lost
		later    bool           // a message behind the request is acknowledged
		want     sim.Time
		timeouts uint64
	}{
		{"nothing", nil, 0, false, first + 2*tx(full), 0},
		{"the middle", map[uint32]int{1: 1}, 0, false, first + 2*tx(full) + first + tx(full), 0},
		{"the end", map[uint32]int{2: 1}, 0, false, first + tx(full) + timeout + first, 1},
		{"the end three times", map[uint32]int{2: 3}, 0, false, first + tx(full) + 7*timeout + first, 3},
		{"all", map[uint32]int{0: 1, 1: 1, 2: 1}, 0, false, timeout + first + 2*tx(full), 1},
		{"the middle, and the request", map[uint32]int{1: 1}, 1, false, first + timeout + first + tx(full), 1},
		{"all, behind an ACK", map[uint32]int{0: 1, 1: 1, 2: 1}, 0, true,
			ask + tx(full) + ack + timeout + first + 2*tx(full), 1},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
			x := newReads(t, r)
			x.answer(t, func() units.Bytes { return 3 * full })
			lost := map[uint32]int{}
			r.net.fault = func(_ int32, p packet) bool {
				if r.net.senders[p.qp&slotMask].src != 0 && p.kind == dataPacket {
					return false
				}
				for psn, times := range k.lost {
					if isAnswer(p, psn) && lost[psn] < times {
						lost[psn]++
						return true
					}
				}
				if p.kind == nackPacket && k.requests > 0 {
					k.requests--
					return true
				}
				return false
			}
			x.ask(t)
			if k.later {
				x.post(t, x.back, 100)
			}
			r.run(t, 1e4)
			r.drained(t)
			for _, m := range r.net.Messages() {
				if m.QP == x.answers && (m.Delivered != k.want || m.Acked != k.want) {
					t.Errorf("arrived at %v, acknowledged at %v, want %v", m.Delivered, m.Acked, k.want)
				}
			}
			if n := r.net.Counters; n.Timeouts != k.timeouts {
				t.Errorf("%d timeouts, want %d", n.Timeouts, k.timeouts)
			}
		})
	}
}

// TestAnswerGivenUp verifies that the requester gives up when nothing of an answer arrives for all its retries.
func TestAnswerGivenUp(t *testing.T) {
	c := plain()
	c.Recovery.Timeout, c.Recovery.Retries = Timeout{Time: 200 * units.Microsecond}, 3
	r := newRig(t, c, star(t, 2, 10*units.Gbps, units.Microsecond), 1)
	x := newReads(t, r)
	x.answer(t, func() units.Bytes { return 3 * c.Payload })
	r.net.fault = func(_ int32, p packet) bool { return p.kind == dataPacket && p.flags&asks == 0 && p.psn > 0 }
	x.ask(t)
	r.run(t, 1e4)
	// The first packet, then 1 + 2 + 4 + 8 timeouts.
	if len(r.broken) != 1 || r.broken[0] != x.back || r.net.Counters.Timeouts != 3 {
		t.Errorf("%v gave up after %d timeouts, want %v after 3", r.broken, r.net.Counters.Timeouts, x.back)
	}
	if e := r.net.Endless(); e.Hung+e.Broken == 0 {
		t.Error("the answer is not counted as endless")
	}
}

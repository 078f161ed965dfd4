// Package repair tracks, for a sender, which packets have arrived out of order and which to retransmit: selective
// repeat as in IRN (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018), and as in TCP.
//
// IRN's receiver keeps out-of-order packets and names them. The sender retransmits the packets missing below the
// highest that has arrived, each once a round, and starts a new round when the last packet of the round is acknowledged
// or the timer expires. TCP's sender retransmits within its window, in which packets that have arrived or are lost take
// no space (RFC 6675). It detects the loss of a retransmission by the arrival of packets sent after it (RFC 8985,
// without reordering on a fixed path), and probes for a tail that is lost as a whole.
//
// Its main type is Sender, a plain state machine.
//
// It leaves out timers, windows and packets, which are package fabric's.
package repair

import (
	"farflash/internal/window"
	"farflash/numeric/units"
	"farflash/sim"
)

// Sender is the out-of-order state of one queue pair.
type Sender struct {
	came  window.Set
	round bool
	until uint32 // the round ends once this is acknowledged
	turn  uint32 // where the search for the next packet to retransmit continues
	// packets before it that have not arrived count as lost; it follows the highest arrival, less slack
	beyond uint32
	cut    window.Set // packets reported trimmed, to retransmit
	cuts   uint32
	total  uint64 // packets known to have arrived
	slack  uint32 // number of packets that may overtake one

	tcp     bool
	waiting bool   // for the arrival of a packet sent after the last retransmission
	fence   uint32 // the first such packet
	probing bool   // the round retransmits only the last packet, to learn what arrived before it
	probed  bool   // a probe was sent since the last progress
	trip    sim.Time
}

// New returns a Sender for IRN or TCP. A packet counts as lost once more than reordering later ones have overtaken it:
// 0 on a fixed path, and the difference between paths where several are used (TCP's DupThresh, RFC 6675; the reordering
// window of RFC 8985, counted in packets).
func New(tcp bool, reordering int) *Sender { return &Sender{tcp: tcp, slack: uint32(reordering)} }

// probeSlack is the time that Linux adds to two round trips before it probes (TCP_TIMEOUT_MIN, two ticks of a
// millisecond).
const probeSlack = 2 * units.Millisecond

// TCP reports whether the sender recovers as TCP does.
func (r *Sender) TCP() bool { return r.tcp }

// Recovering reports whether TCP's window counts the packets in flight (Pipe) rather than the unacknowledged ones. A
// probe is sent regardless of the window.
func (r *Sender) Recovering() bool { return r.tcp && r.round }

// Probing reports whether a probe is due.
func (r *Sender) Probing() bool { return r.probing && r.Pending() }

// Probes reports whether a timer set with flight packets outstanding is a tail loss probe's (RFC 8985, section 7), and
// when the probe is due. There is at most one probe until the next progress, and none during a recovery. With one
// packet in flight the retransmission timer comes first.
func (r *Sender) Probes(flight uint32) (after sim.Time, ok bool) {
	return 2*r.trip + probeSlack, r.tcp && !r.round && !r.probed && r.trip > 0 && flight > 1
}

// Probe schedules a retransmission of the last packet.
func (r *Sender) Probe(top uint32) {
	r.round, r.turn, r.until, r.beyond = true, top-1, top, top
	r.probing, r.probed, r.waiting = true, true, false
}

// Progress records that new packets were acknowledged.
func (r *Sender) Progress() { r.probed = false }

// Measure smooths the round trip as RFC 6298 does.
func (r *Sender) Measure(t sim.Time) {
	if r.trip == 0 {
		r.trip = t
	}
	r.trip += (t - r.trip) / 8
}

// Measured reports whether a round trip was measured.
func (r *Sender) Measured() bool { return r.trip > 0 }

// Pipe returns how many of the packets from una to next are in flight: those that have neither arrived nor are to be
// retransmitted.
func (r *Sender) Pipe(una, next uint32) uint32 {
	n := next - una - r.came.Count(una, next)
	if from := r.turn; r.round && before(from, r.beyond) {
		n -= r.beyond - from - r.came.Count(from, r.beyond)
	}
	if r.cuts > 0 { // some of these may be counted above already
		return n - min(n, r.cuts)
	}
	return n
}

// Pending reports whether there is a packet to retransmit, and moves the search to it.
func (r *Sender) Pending() bool {
	if r.cuts > 0 {
		return true
	}
	if !r.round {
		return false
	}
	for before(r.turn, r.beyond) {
		if !r.came.Has(r.turn) {
			return true
		}
		r.turn++
	}
	return false
}

// Take returns the packet to retransmit. top is one past the last packet sent. Pending must have returned true.
func (r *Sender) Take(top uint32) uint32 {
	if r.cuts > 0 {
		psn, _ := r.cut.Find(r.cut.Base(), top)
		r.cut.Remove(psn)
		r.cuts--
		return psn
	}
	psn := r.turn
	r.turn++
	r.waiting, r.fence = true, top
	return psn
}

// Restart starts a round with all packets up to top that are not known to have arrived.
func (r *Sender) Restart(una, top uint32) {
	for ; r.cuts > 0; r.cuts-- {
		psn, _ := r.cut.Find(una, top)
		r.cut.Remove(psn)
	}
	r.round, r.turn, r.until, r.beyond, r.waiting, r.probing = true, una, top, top, false, false
}

// Came returns how many packets are known to have arrived since the first.
func (r *Sender) Came() uint64 { return r.total }

// forget drops the state of packets before una, all of which have arrived.
func (r *Sender) forget(una uint32) {
	if from := r.came.Base(); before(from, una) {
		r.total += uint64(una - from - r.came.Count(from, una))
		r.came.MoveTo(una)
	}
	if from := r.cut.Base(); before(from, una) {
		if r.cuts > 0 {
			r.cuts -= r.cut.Count(from, una)
		}
		r.cut.MoveTo(una)
	}
}

// Missing records, with an ACK up to una, that packet psn was lost. It is retransmitted at once, whichever other
// packets have arrived.
func (r *Sender) Missing(psn, una uint32) {
	if before(psn, una) || r.came.Has(psn) || r.cut.Has(psn) {
		return
	}
	r.cut.Add(psn)
	r.cuts++
}

// Acked records an ACK up to una.
func (r *Sender) Acked(una uint32) {
	r.forget(una)
	r.end(una)
}

// Named records an ACK up to una that names packet psn beyond it, and reports whether it is the first sign of a loss.
func (r *Sender) Named(psn, una, top uint32) (lost bool) {
	r.forget(una)
	if !before(psn, una) {
		if !r.came.Has(psn) {
			r.total++
			r.came.Add(psn)
			if r.cuts > 0 && r.cut.Has(psn) {
				r.cut.Remove(psn)
				r.cuts--
			}
		}
		psn -= r.slack
		if r.slack > 0 && !before(una, psn) {
			r.end(una)
			return false
		}
		if !r.round || r.probing {
			r.probing = false
			r.round, r.turn, r.until, r.beyond, r.waiting = true, una, top, una, false
			lost = true
		}
		if r.tcp && r.waiting && !before(psn, r.fence) {
			r.turn, r.waiting = una, false
		}
		if before(r.beyond, psn) {
			r.beyond = psn
		}
	}
	r.end(una)
	return lost
}

// end ends the round if its last packet is acknowledged.
func (r *Sender) end(una uint32) {
	switch {
	case !r.round:
	case !before(una, r.until):
		r.round, r.probing = false, false
	case before(r.turn, una):
		r.turn = una
	}
}

// before reports whether packet number a precedes b. Numbers wrap.
func before(a, b uint32) bool { return int32(a-b) < 0 }

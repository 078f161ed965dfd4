// Package repair is what a sender of packets knows of those that came out of order, and which it repeats: selective repeat as in
// IRN (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018), and as TCP has it.
//
// IRN's receiver keeps what comes out of order and names it; the sender repeats what is missing below the highest packet
// that has arrived, each once in a round, and begins a new round when the round's last packet is acknowledged or the timer
// expires. TCP's does so within its window, of which what has come or is lost takes nothing (RFC 6675); finds what is lost twice by what was sent after
// it (RFC 8985, but for reordering, which a path that does not change has not); and probes for a tail that is lost as a whole.
//
// Its main type is Sender, a plain state machine.
//
// What it leaves out: timers, windows and packets, which are package fabric's.
package repair

import (
	"farflash/internal/window"
	"farflash/sim"
	"farflash/units"
)

// Sender is a queue pair's.
type Sender struct {
	came   window.Set
	round  bool
	until  uint32 // the round ends when this is acknowledged
	turn   uint32 // where the search for the next packet to repeat goes on
	beyond uint32 // behind the highest packet that came

	tcp     bool
	waiting bool   // for what was sent after the last repetition
	fence   uint32 // which is numbered from here on
	probing bool   // the round repeats the last packet only, to learn what came before it
	probed  bool   // since the last progress
	trip    sim.Time
}

// New returns a sender that knows of nothing, IRN's or TCP's.
func New(tcp bool) *Sender { return &Sender{tcp: tcp} }

// probeSlack is what Linux adds to two round trips before it probes (TCP_TIMEOUT_MIN, two ticks of a millisecond).
const probeSlack = 2 * units.Millisecond

// TCP reports whether the sender is TCP's.
func (r *Sender) TCP() bool { return r.tcp }

// Recovering reports whether TCP's window counts what is on its way (Pipe), and not what is not acknowledged. The packet of a probe
// goes whatever the window.
func (r *Sender) Recovering() bool { return r.tcp && r.round }

// Probing reports whether a probe is due.
func (r *Sender) Probing() bool { return r.probing && r.Pending() }

// Probes reports whether the timer, of so many packets under way, is one for a tail's probe (RFC 8985, section 7), and when that is due: not in a recovery, once until there
// is progress, and with one packet under way not before the retransmission timer.
func (r *Sender) Probes(flight uint32) (after sim.Time, ok bool) {
	return 2*r.trip + probeSlack, r.tcp && !r.round && !r.probed && r.trip > 0 && flight > 1
}

// Probe repeats the last packet.
func (r *Sender) Probe(top uint32) {
	r.round, r.turn, r.until, r.beyond = true, top-1, top, top
	r.probing, r.probed, r.waiting = true, true, false
}

// Progress: something new is acknowledged.
func (r *Sender) Progress() { r.probed = false }

// Measure smooths the round trip as RFC 6298 has it.
func (r *Sender) Measure(t sim.Time) {
	if r.trip == 0 {
		r.trip = t
	}
	r.trip += (t - r.trip) / 8
}

// Pipe is how many of the packets from una to next are on their way: not those that have come, nor those that are to be sent
// again.
func (r *Sender) Pipe(una, next uint32) uint32 {
	n := next - una - r.came.Count(una, next)
	if from := r.turn; before(from, r.beyond) {
		n -= r.beyond - from - r.came.Count(from, r.beyond)
	}
	return n
}

// Pending reports whether a packet is to be repeated, and turns to it.
func (r *Sender) Pending() bool {
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

// Take returns the packet that is to be repeated. top is behind the last that was sent.
func (r *Sender) Take(top uint32) uint32 {
	psn := r.turn
	r.turn++
	r.waiting, r.fence = true, top
	return psn
}

// Restart begins a round with everything that is not known to have come, up to top.
func (r *Sender) Restart(una, top uint32) {
	r.round, r.turn, r.until, r.beyond, r.waiting, r.probing = true, una, top, top, false, false
}

// Acked takes note of an ACK up to una.
func (r *Sender) Acked(una uint32) {
	r.came.MoveTo(una)
	r.end(una)
}

// Named takes note of an ACK up to una that names a packet beyond it, and reports whether it is the first to show that packets are missing.
func (r *Sender) Named(psn, una, top uint32) (lost bool) {
	r.came.MoveTo(una)
	if !before(psn, una) {
		r.came.Add(psn)
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

// end ends a round whose last packet is acknowledged.
func (r *Sender) end(una uint32) {
	switch {
	case !r.round:
	case !before(una, r.until):
		r.round, r.probing = false, false
	case before(r.turn, una):
		r.turn = una
	}
}

// before reports whether packet number a comes before b; numbers wrap.
func before(a, b uint32) bool { return int32(a-b) < 0 }

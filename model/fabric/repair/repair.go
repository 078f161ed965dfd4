// Package repair is what a sender of packets knows of those that came out of order, and which it repeats: selective
// repeat as in IRN (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018), and as TCP has it.
//
// IRN's receiver keeps what comes out of order and names it; the sender repeats what is missing below the highest
// packet that has arrived, each once in a round, and begins a new round when the round's last packet is acknowledged
// or the timer expires. TCP's does so within its window, of which what has come or is lost takes nothing (RFC 6675);
// finds what is lost twice by what was sent after it (RFC 8985, but for reordering, which a path that does not change
// has not); and probes for a tail that is lost as a whole.
//
// Its main type is Sender, a plain state machine.
//
// What it leaves out: timers, windows and packets, which are package fabric's.
package repair

import (
	"farflash/internal/window"
	"farflash/numeric/units"
	"farflash/sim"
)

// Sender is a queue pair's.
type Sender struct {
	came   window.Set
	round  bool
	until  uint32     // the round ends when this is acknowledged
	turn   uint32     // where the search for the next packet to repeat goes on
	beyond uint32     // behind what counts as lost if it has not come: up to the highest packet that came, less slack
	cut    window.Set // packets that are known not to have come, and are to be repeated
	cuts   uint32
	total  uint64 // packets that are known to have come
	slack  uint32 // how many packets may overtake one

	tcp     bool
	waiting bool   // for what was sent after the last repetition
	fence   uint32 // which is numbered from here on
	probing bool   // the round repeats the last packet only, to learn what came before it
	probed  bool   // since the last progress
	trip    sim.Time
}

// New returns a sender that knows of nothing, IRN's or TCP's. A packet counts as lost when more than so many later
// ones have overtaken it: none on one way, and what ways differ by on several (TCP's DupThresh, RFC 6675; the
// reordering window of RFC 8985, counted in packets).
func New(tcp bool, reordering int) *Sender { return &Sender{tcp: tcp, slack: uint32(reordering)} }

// probeSlack is what Linux adds to two round trips before it probes (TCP_TIMEOUT_MIN, two ticks of a millisecond).
const probeSlack = 2 * units.Millisecond

// TCP reports whether the sender is TCP's.
func (r *Sender) TCP() bool { return r.tcp }

// Recovering reports whether TCP's window counts what is on its way (Pipe), and not what is not acknowledged. The
// packet of a probe goes whatever the window.
func (r *Sender) Recovering() bool { return r.tcp && r.round }

// Probing reports whether a probe is due.
func (r *Sender) Probing() bool { return r.probing && r.Pending() }

// Probes reports whether the timer, of so many packets under way, is one for a tail's probe (RFC 8985, section 7),
// and when that is due: not in a recovery, once until there is progress, and with one packet under way not before the
// retransmission timer.
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

// Pipe is how many of the packets from una to next are on their way: not those that have come, nor those that are to
// be sent again.
func (r *Sender) Pipe(una, next uint32) uint32 {
	n := next - una - r.came.Count(una, next)
	if from := r.turn; r.round && before(from, r.beyond) {
		n -= r.beyond - from - r.came.Count(from, r.beyond)
	}
	if r.cuts > 0 { // some of which may count among those
		return n - min(n, r.cuts)
	}
	return n
}

// Pending reports whether a packet is to be repeated, and turns to it.
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

// Take returns the packet that is to be repeated. top is behind the last that was sent.
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

// Restart begins a round with everything that is not known to have come, up to top.
func (r *Sender) Restart(una, top uint32) {
	for ; r.cuts > 0; r.cuts-- {
		psn, _ := r.cut.Find(una, top)
		r.cut.Remove(psn)
	}
	r.round, r.turn, r.until, r.beyond, r.waiting, r.probing = true, una, top, top, false, false
}

// Came is how many packets are known to have come, since the first.
func (r *Sender) Came() uint64 { return r.total }

// forget takes out what is before una, all of which has come.
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

// Missing takes note, with an ACK up to una, that a packet is known not to have come: it is to be repeated at once,
// whatever else has come.
func (r *Sender) Missing(psn, una uint32) {
	if before(psn, una) || r.came.Has(psn) || r.cut.Has(psn) {
		return
	}
	r.cut.Add(psn)
	r.cuts++
}

// Acked takes note of an ACK up to una.
func (r *Sender) Acked(una uint32) {
	r.forget(una)
	r.end(una)
}

// Named takes note of an ACK up to una that names a packet beyond it, and reports whether it is the first to show
// that packets are missing.
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

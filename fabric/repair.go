package fabric

import (
	"math/bits"

	"farflash/sim"
	"farflash/units"
)

// Selective repeat as in IRN (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM
// 2018): the receiver keeps what comes out of order and names it in NACKs; the
// sender repeats what is missing below the highest packet that has arrived, each once in
// a round, and begins a new round when the round's last packet is acknowledged or the
// timer expires.

// bitmap is a set of packet numbers in a window that moves on. Its size is a power of
// two and grows with the window.
type bitmap struct {
	words []uint64
	base  uint32 // nothing before it is in the set
}

func (b *bitmap) size() uint32 { return uint32(len(b.words)) * 64 }

// add adds a number that is not before base.
func (b *bitmap) add(psn uint32) {
	for psn-b.base >= b.size() {
		b.grow()
	}
	i := psn & (b.size() - 1)
	b.words[i/64] |= 1 << (i % 64)
}

func (b *bitmap) has(psn uint32) bool {
	if before(psn, b.base) || psn-b.base >= b.size() {
		return false
	}
	i := psn & (b.size() - 1)
	return b.words[i/64]>>(i%64)&1 != 0
}

func (b *bitmap) remove(psn uint32) {
	i := psn & (b.size() - 1)
	b.words[i/64] &^= 1 << (i % 64)
}

// find is the first number in the set that is neither before from nor behind to.
func (b *bitmap) find(from, to uint32) (uint32, bool) {
	if before(from, b.base) {
		from = b.base
	}
	if len(b.words) == 0 {
		return 0, false
	}
	for before(from, to) && from-b.base < b.size() {
		i := from & (b.size() - 1)
		if w := b.words[i/64] >> (i % 64); w != 0 {
			from += uint32(bits.TrailingZeros64(w))
			return from, before(from, to)
		}
		from += 64 - i%64
	}
	return 0, false
}

// count is how many numbers in the set are not before from and before to.
func (b *bitmap) count(from, to uint32) uint32 {
	if before(from, b.base) {
		from = b.base
	}
	n := 0
	for before(from, to) && from-b.base < b.size() {
		i := from & (b.size() - 1)
		w := b.words[i/64] >> (i % 64)
		span := min(64-i%64, to-from, b.size()-(from-b.base))
		if span < 64 {
			w &= 1<<span - 1
		}
		n += bits.OnesCount64(w)
		from += span
	}
	return uint32(n)
}

func (b *bitmap) grow() {
	was := *b
	b.words = make([]uint64, max(2, 2*len(was.words)))
	for psn := was.base; psn != was.base+was.size(); psn++ {
		if was.has(psn) {
			i := psn & (b.size() - 1)
			b.words[i/64] |= 1 << (i % 64)
		}
	}
}

// moveTo takes out everything before psn.
func (b *bitmap) moveTo(psn uint32) {
	for before(b.base, psn) {
		if len(b.words) > 0 {
			i := b.base & (b.size() - 1)
			b.words[i/64] &^= 1 << (i % 64)
		}
		b.base++
	}
}

// advance takes out everything before psn and what follows it without a gap, and
// returns the first number that is missing.
func (b *bitmap) advance(psn uint32) uint32 {
	b.moveTo(psn)
	for b.has(b.base) {
		b.moveTo(b.base + 1)
	}
	return b.base
}

// repair is what a sender knows of packets that came out of order.
type repair struct {
	came   bitmap
	round  bool
	until  uint32 // the round ends when this is acknowledged
	turn   uint32 // where the search for the next packet to repeat goes on
	beyond uint32 // behind the highest packet that came

	// TCP's: see Recovery.Kind.
	sack    bool
	waiting bool   // for what was sent after the last repetition
	fence   uint32 // which is numbered from here on
	probing bool   // the round repeats the last packet only, to learn what came before it
	probed  bool   // since the last progress
	trip    sim.Time
}

// probeSlack is what Linux adds to two round trips before it probes for the loss of a tail (TCP_TIMEOUT_MIN, two ticks of a millisecond).
const probeSlack = 2 * units.Millisecond

// probes reports whether the timer is one for a tail's probe (RFC 8985, section 7): not in a recovery, once until there is progress,
// and with one packet under way not before the retransmission timer.
func (r *repair) probes(s *sender) bool {
	return r.sack && !r.round && !r.probed && r.trip > 0 && s.top-s.una > 1
}

// probe repeats the last packet, whatever the window.
func (r *repair) probe(top uint32) {
	r.round, r.turn, r.until, r.beyond = true, top-1, top, top
	r.probing, r.probed, r.waiting = true, true, false
}

// measure smooths the round trip as RFC 6298 has it.
func (r *repair) measure(t sim.Time) {
	if r.trip == 0 {
		r.trip = t
	}
	r.trip += (t - r.trip) / 8
}

func (n *Network) newRepair() *repair { return &repair{sack: n.cfg.Recovery.Kind == Sack} }

// pipe is how many of the packets from una to next are on their way: not those that have come, nor those that are to be sent
// again.
func (r *repair) pipe(una, next uint32) uint32 {
	n := next - una - r.came.count(una, next)
	if from := r.turn; before(from, r.beyond) {
		n -= r.beyond - from - r.came.count(from, r.beyond)
	}
	return n
}

// pending reports whether a packet is to be repeated, and turns to it.
func (r *repair) pending() bool {
	if !r.round {
		return false
	}
	for before(r.turn, r.beyond) {
		if !r.came.has(r.turn) {
			return true
		}
		r.turn++
	}
	return false
}

// take returns the packet that is to be repeated.
func (r *repair) take(top uint32) uint32 {
	psn := r.turn
	r.turn++
	r.waiting, r.fence = true, top
	return psn
}

// restart begins a round with everything that is not known to have come, up to top.
func (r *repair) restart(una, top uint32) {
	r.round, r.turn, r.until, r.beyond, r.waiting, r.probing = true, una, top, top, false, false
}

// repairs takes note of an ACK, and reports whether it is the first to show that packets are missing.
func (n *Network) repairs(s *sender, x *packet) (lost bool) {
	r := s.repair
	r.came.moveTo(s.una)
	if x.flags&sacked != 0 && !before(x.sack, s.una) {
		r.came.add(x.sack)
		if !r.round || r.probing {
			r.probing = false
			r.round, r.turn, r.until, r.beyond, r.waiting = true, s.una, s.top, s.una, false
			lost = true
		}
		if r.sack && r.waiting && !before(x.sack, r.fence) {
			r.turn, r.waiting = s.una, false
		}
		if before(r.beyond, x.sack) {
			r.beyond = x.sack
		}
	}
	if r.round {
		if !before(s.una, r.until) {
			r.round, r.probing = false, false
		} else if before(r.turn, s.una) {
			r.turn = s.una
		}
	}
	return lost
}

// outOfOrder is for a packet that came before one that is missing.
func (n *Network) outOfOrder(p *port, r *receiver, x *packet) {
	if r.arrived.has(x.psn) {
		n.Counters.Duplicates++
		n.Counters.Wasted += uint64(n.payload(x))
	} else {
		n.Counters.Received += uint64(n.payload(x))
		p.taken += uint64(n.payload(x))
		if r.arrived.base != r.expected {
			r.arrived.moveTo(r.expected)
		}
		r.arrived.add(x.psn)
	}
	n.Counters.Nacks++
	n.acknowledge(r, x, nackPacket)
}

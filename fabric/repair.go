package fabric

import "farflash/internal/window"

// Selective repeat as in IRN (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM
// 2018): the receiver keeps what comes out of order and names it in NACKs; the
// sender repeats what is missing below the highest packet that has arrived, each once in
// a round, and begins a new round when the round's last packet is acknowledged or the
// timer expires.

// repair is what a sender knows of packets that came out of order.
type repair struct {
	came   window.Set
	round  bool
	until  uint32 // the round ends when this is acknowledged
	turn   uint32 // where the search for the next packet to repeat goes on
	beyond uint32 // behind the highest packet that came
}

// pending reports whether a packet is to be repeated, and turns to it.
func (r *repair) pending() bool {
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

// take returns the packet that is to be repeated.
func (r *repair) take() uint32 {
	psn := r.turn
	r.turn++
	return psn
}

// restart begins a round with everything that is not known to have come, up to top.
func (r *repair) restart(una, top uint32) {
	r.round, r.turn, r.until, r.beyond = true, una, top, top
}

// repairs takes note of an ACK.
func (n *Network) repairs(s *sender, x *packet) {
	r := s.repair
	r.came.MoveTo(s.una)
	if x.flags&sacked != 0 && !before(x.sack, s.una) {
		r.came.Add(x.sack)
		if !r.round {
			r.round, r.turn, r.until, r.beyond = true, s.una, s.top, s.una
		}
		if before(r.beyond, x.sack) {
			r.beyond = x.sack
		}
	}
	if r.round {
		if !before(s.una, r.until) {
			r.round = false
		} else if before(r.turn, s.una) {
			r.turn = s.una
		}
	}
}

// outOfOrder is for a packet that came before one that is missing.
func (n *Network) outOfOrder(p *port, r *receiver, x *packet) {
	if r.arrived.Has(x.psn) {
		n.Counters.Duplicates++
		n.Counters.Wasted += uint64(n.payload(x))
	} else {
		n.Counters.Received += uint64(n.payload(x))
		p.taken += uint64(n.payload(x))
		if r.arrived.Base() != r.expected {
			r.arrived.MoveTo(r.expected)
		}
		r.arrived.Add(x.psn)
	}
	n.Counters.Nacks++
	n.acknowledge(r, x, nackPacket)
}

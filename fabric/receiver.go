package fabric

import (
	"farflash/fabric/cc"
	"farflash/sim"
)

// receiver is a queue pair's receiving side.
type receiver struct {
	expected uint32
	nacked   uint32   // the packet of the last NACK
	message  int32    // that expected is in, -1 before the first is known
	unacked  int32    // packets since the last ACK
	quiet    sim.Time // no NACK for the same packet before
	calm     sim.Time // no CNP before
	begun    sim.Time // when the first packet came, for ticking CNPs
	port     int32
	marked   bool // a packet since the last ACK was
	arrived  *bitmap
}

// received is for a packet that has come to a host.
func (n *Network) received(pi int32, p *port, x packet) {
	switch x.kind {
	case dataPacket:
		n.accept(pi, p, x)
	case cnpPacket:
		n.Counters.CNPs++
		if n.wants.CNPs {
			q := int32(x.qp)
			s, c := &n.senders[q], &n.control[q]
			n.signal = cc.Signal{Kind: cc.CNP, Marked: true, Now: n.eng.Now()}
			n.react(q, s, c)
			if s.standing == blocked {
				n.offer(q, s)
			}
		}
	default:
		n.answered(x)
	}
}

// accept is for a data packet.
func (n *Network) accept(pi int32, p *port, x packet) {
	r := &n.receive[x.qp]
	if r.begun < 0 {
		r.begun = n.eng.Now()
	}
	if x.flags&ceMark != 0 {
		n.Counters.Marked++
		r.marked = true
		if n.wants.CNPs && !n.cfg.CNP.Echo {
			n.congested(pi, p, r, x.qp)
		}
	}
	payload := uint64(n.payload(&x))
	switch {
	case x.psn == r.expected:
		n.Counters.Received += payload
		p.taken += payload
		last := n.inOrder(r, &x)
		r.unacked++
		if int(r.unacked) < n.cfg.Acks.Every && !last {
			n.notes.give(x.note)
			return
		}
		n.acknowledge(pi, p, r, &x, ackPacket)
	case before(r.expected, x.psn):
		if r.arrived != nil {
			n.outOfOrder(pi, p, r, &x)
			return
		}
		n.Counters.Wasted += payload
		now := n.eng.Now()
		if now < r.quiet && r.nacked == r.expected {
			n.notes.give(x.note)
			return
		}
		r.quiet, r.nacked = now+n.cfg.Recovery.NackInterval, r.expected
		n.Counters.Nacks++
		n.acknowledge(pi, p, r, &x, nackPacket)
	default:
		n.Counters.Duplicates++
		n.Counters.Wasted += payload
		if !n.cfg.Acks.Duplicates {
			n.notes.give(x.note)
			return
		}
		n.acknowledge(pi, p, r, &x, ackPacket)
	}
}

// congested is for a mark that is to be answered with a CNP.
func (n *Network) congested(pi int32, p *port, r *receiver, qp uint32) {
	now := n.eng.Now()
	if n.cfg.CNP.Ticking {
		if r.calm <= now {
			since := now - r.begun
			r.calm = now - since%n.cfg.CNP.Interval + n.cfg.CNP.Interval
			n.eng.Schedule(p.inPort, n.target, r.calm, notify, qp)
		}
		return
	}
	if now >= r.calm {
		r.calm = now + n.cfg.CNP.Interval
		n.notify(pi, p, qp)
	}
}

// notify sends a CNP.
func (n *Network) notify(pi int32, p *port, qp uint32) {
	n.Counters.CNPsSent++
	n.answer(pi, p, packet{qp: qp, kind: cnpPacket, size: uint16(n.cfg.CNP.Size), flags: answers})
}

// inOrder moves on behind a packet that was expected, and behind those that came before
// it, and reports whether a message is now complete.
func (n *Network) inOrder(r *receiver, x *packet) bool {
	to := x.psn + 1
	if r.arrived != nil {
		to = r.arrived.advance(to)
	} else if x.flags&lastOf == 0 {
		r.expected = to
		return false
	}
	r.expected = to
	return n.deliver(x.qp)
}

// deliver ends the messages that have arrived as a whole and reports whether there was one.
func (n *Network) deliver(qp uint32) bool {
	any := false
	for {
		r := &n.receive[qp]
		if r.message < 0 {
			return any
		}
		m := &n.messages[r.message]
		if before(r.expected, m.first+m.packets) {
			return any
		}
		any = true
		done := r.message
		m.Delivered = n.eng.Now()
		r.message = m.next
		if n.sink != nil {
			n.sink.Delivered(done)
		}
	}
}

// acknowledge answers a data packet.
func (n *Network) acknowledge(pi int32, p *port, r *receiver, x *packet, k kind) {
	r = &n.receive[x.qp] // the sink may have opened queue pairs
	a := packet{qp: x.qp, psn: r.expected, note: x.note, sack: x.psn, kind: k, flags: answers, class: uint8(n.cfg.Acks.Class),
		size: uint16(n.cfg.Acks.Size + n.cfg.Telemetry.AckSize)}
	if r.marked {
		a.flags |= ceMark
	}
	if k == nackPacket {
		a.flags |= sacked
	}
	r.unacked, r.marked = 0, false
	n.Counters.Acks++
	n.answer(pi, p, a)
}

// answer puts a packet before the data of the host's port.
func (n *Network) answer(pi int32, p *port, x packet) {
	l := n.lane(pi, 0)
	l.out += int64(x.size)
	l.waiting.push(x)
	n.kick(pi, p)
}

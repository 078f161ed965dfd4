package fabric

import (
	"farflash/internal/window"
	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/sim"
)

// receiver is a queue pair's receiving side.
type receiver struct {
	expected  uint32
	nacked    uint32   // the packet of the last NACK
	opening   int32    // the queue pair's first message, -1 until known
	message   int32    // the last message that has fully arrived, -1 before the first
	unacked   int32    // packets received since the last ACK; without ACKs, the answers that are due
	answers   int32    // stream at this host that answers the RDMA Reads among this receiver's data, -1 if none
	quiet     sim.Time // no NACK for the same packet before this time
	calm      sim.Time // no CNP before this time
	begun     sim.Time // arrival of the first packet, for ticking CNPs
	port      int32
	patience  sim.Timer
	patient   bool // the patience timer exists
	marked    bool // a packet since the last ACK carried a mark
	listening bool // the requester's timer for answers without ACKs runs
	done      bool // the queue pair's one message has fully arrived
	tag       uint32
	note      uint32 // telemetry of the last packet whose ACK is withheld, 0 if none
	asker     int32  // stream at this host whose RDMA Reads this receiver's data answers, -1 if none
	arrived   *window.Set
}

// received handles a packet that arrived at a host.
func (n *Network) received(p *port, x packet) {
	if n.late(&x) {
		if x.kind == dataPacket {
			n.Counters.Wasted += uint64(n.payload(&x))
		}
		n.notes.Give(x.note)
		return
	}
	switch x.kind {
	case dataPacket:
		asker := n.receive[x.qp&slotMask].asker
		n.accept(p, x)
		if asker >= 0 && !n.senders[x.qp&slotMask].silent {
			n.replied(asker, &x)
		}
	case cnpPacket:
		q := int32(x.qp & slotMask)
		q, s := n.lead(q, &n.senders[q])
		c := &n.control[q]
		if s.standing == finished || s.broken {
			return
		}
		n.Counters.CNPs++
		n.OnCNP.Fire(p.node)
		if n.wants.CNPs {
			n.signal = cc.Signal{Kind: cc.CNP, Marked: true, Now: n.eng.Now()}
			n.react(q, s, c)
			if s.standing == blocked {
				n.offer(q, s)
			}
		}
	case pullPacket:
		n.pulled(&x)
	default:
		n.answered(x)
	}
}

// late reports whether a packet belongs to a finished queue pair whose index has been reused since.
func (n *Network) late(x *packet) bool {
	if x.flags&answers != 0 {
		return n.senders[x.qp&slotMask].tag != x.qp
	}
	return n.receive[x.qp&slotMask].tag != x.qp
}

// accept handles a data packet.
func (n *Network) accept(p *port, x packet) {
	r := &n.receive[x.qp&slotMask]
	if n.buried(r) {
		n.Counters.Wasted += uint64(n.payload(&x))
		n.notes.Give(x.note)
		return
	}
	if r.begun < 0 {
		r.begun = n.eng.Now()
	}
	if n.wants.Pulls {
		n.owe(r, &x)
	}
	if x.flags&trimmed != 0 {
		n.headless(r, &x)
		return
	}
	if x.flags&ceMark != 0 {
		n.Counters.Marked++
		r.marked = true
		if n.wants.CNPs && !n.cfg.CNP.Echo {
			n.congested(r, x.qp)
		}
	}
	payload := uint64(n.payload(&x))
	switch {
	case x.psn == r.expected:
		if n.receives.Used && n.refuses(r, &x) {
			return
		}
		n.Counters.Received += payload
		p.taken += payload
		before := r.message
		// ended counts the completed messages. They are reported last, after the ACK, because the sink may post.
		ended := n.inOrder(r, &x)
		if x.flags&asks != 0 {
			n.notes.Give(x.note)
			n.reportDelivered(r, before, ended)
			return
		}
		if r.asker >= 0 && n.senders[x.qp&slotMask].silent {
			n.heard(r, &x, before, ended)
			return
		}
		r.unacked++
		if int(r.unacked) < n.cfg.Acks.Every && ended == 0 {
			n.notes.Give(r.note)
			// The next ACK carries the telemetry of the latest packet it covers.
			r.note = x.note
			n.withhold(r, x.qp)
			return
		}
		n.acknowledge(r, &x, ackPacket)
		n.reportDelivered(r, before, ended)
	case before(r.expected, x.psn):
		n.Counters.Overtaken++
		n.Counters.Reordered = max(n.Counters.Reordered, uint64(x.psn-r.expected))
		if r.arrived != nil {
			n.outOfOrder(p, r, &x)
			return
		}
		n.Counters.Wasted += payload
		now := n.eng.Now()
		// At most one NACK per missing packet and NackInterval: otherwise each later packet in flight would cause one.
		if now < r.quiet && r.nacked == r.expected {
			n.notes.Give(x.note)
			return
		}
		r.quiet, r.nacked = now+n.cfg.Recovery.NackInterval, r.expected
		n.Counters.Nacks++
		n.acknowledge(r, &x, nackPacket)
	default:
		n.Counters.Duplicates++
		n.Counters.Wasted += payload
		if n.senders[x.qp&slotMask].silent || x.flags&asks != 0 && n.answersAgain(r) || !n.cfg.Acks.Duplicates {
			n.notes.Give(x.note)
			return
		}
		n.acknowledge(r, &x, ackPacket)
	}
}

// outOfOrder handles a packet that arrived ahead of a missing one, at a receiver that keeps such packets.
func (n *Network) outOfOrder(p *port, r *receiver, x *packet) {
	if r.arrived.Has(x.psn) {
		n.Counters.Duplicates++
		n.Counters.Wasted += uint64(n.payload(x))
	} else {
		n.Counters.Received += uint64(n.payload(x))
		p.taken += uint64(n.payload(x))
		// The set is a window that starts at expected. It is moved only when needed.
		if r.arrived.Base() != r.expected {
			r.arrived.MoveTo(r.expected)
		}
		r.arrived.Add(x.psn)
	}
	n.Counters.Nacks++
	n.acknowledge(r, x, nackPacket)
}

// withhold bounds the delay of a coalesced ACK with a timer, because the sender's window may be full, so that no more
// packets arrive to trigger it. The delay is four times the time of Acks.Every full packets on the host's link, so that
// up to four senders that share the link still have their ACKs coalesced.
func (n *Network) withhold(r *receiver, qp uint32) {
	if r.unacked > 1 {
		return
	}
	p := &n.ports[r.port]
	if !r.patient {
		r.patient = true
		r.patience = n.eng.NewTimer(n.inPort(p), n.target, overdue, qp)
	}
	n.eng.Arm(r.patience,
		n.eng.Now()+4*sim.Time(n.cfg.Acks.Every)*n.time(p, uint16(n.cfg.Payload+n.cfg.Header+n.cfg.Telemetry.Size)))
}

// impatient sends an ACK that has been withheld long enough.
func (n *Network) impatient(qp uint32) {
	switch r := &n.receive[qp&slotMask]; {
	case r.unacked == 0:
	case n.senders[qp&slotMask].silent:
		if r.listening {
			n.unheard(r)
		}
	default:
		note := r.note
		r.note = 0
		n.acknowledge(r, &packet{qp: r.tag, psn: r.expected - 1, note: note}, ackPacket)
	}
}

// congested handles a congestion mark that calls for a CNP.
func (n *Network) congested(r *receiver, qp uint32) {
	now := n.eng.Now()
	if s := &n.senders[qp&slotMask]; s.responds {
		if n.cfg.CNP.Answers == setting.NoticesNone {
			return
		}
		// The interval applies to the queue pair as a whole, whichever of its streams was marked.
		r = &n.receive[s.twin]
		if r.begun < 0 {
			r.begun = now
		}
	}
	if n.cfg.CNP.Ticking {
		if r.calm <= now {
			// The next multiple of the interval after the first packet.
			since := now - r.begun
			r.calm = now - since%n.cfg.CNP.Interval + n.cfg.CNP.Interval
			n.eng.Schedule(n.inPort(&n.ports[r.port]), n.target, r.calm, notify, qp)
		}
		return
	}
	if now >= r.calm {
		r.calm = now + n.cfg.CNP.Interval
		n.notify(r, qp)
	}
}

// notify sends a CNP.
func (n *Network) notify(r *receiver, qp uint32) {
	n.Counters.CNPsSent++
	n.answer(r, packet{qp: qp, kind: cnpPacket, size: uint16(n.cfg.CNP.Size), flags: answers})
}

// inOrder advances past an expected packet and past those that had already arrived behind it. It returns the number of
// messages completed.
func (n *Network) inOrder(r *receiver, x *packet) int {
	to := x.psn + 1
	if r.arrived != nil {
		to = r.arrived.Advance(to)
	} else if x.flags&lastOf == 0 {
		r.expected = to
		return 0
	}
	r.expected = to
	if n.wants.Pulls && n.pulling[x.qp&slotMask].drained == to {
		n.refund(r, x.qp)
	}
	return n.deliver(r)
}

// deliver completes the messages that have fully arrived and returns their number. It does not touch later messages:
// their sender, in another part, may be posting them concurrently.
func (n *Network) deliver(r *receiver) int {
	for ended := 0; ; ended++ {
		if r.done {
			return ended
		}
		m := r.opening
		if r.message >= 0 {
			if last := &n.messages[r.message]; last.first+last.packets == r.expected {
				return ended
			}
			m = n.messages[r.message].next
		}
		if x := &n.messages[m]; before(r.expected, x.first+x.packets) {
			return ended
		} else {
			x.Delivered = n.eng.Now()
		}
		r.message = m
		r.done = n.cfg.QueuePairs.Life == PerMessage
	}
}

// reportDelivered notifies the sink of count messages, the ones after message m. Like reportAcked, it must come last.
func (n *Network) reportDelivered(r *receiver, m int32, count int) {
	if n.sink == nil {
		return
	}
	next := r.opening
	for ; count > 0; count-- {
		if m >= 0 {
			next = n.messages[m].next
		}
		m = next
		n.sink.Delivered(m)
	}
}

// acknowledge sends an ACK or NACK for a data packet.
func (n *Network) acknowledge(r *receiver, x *packet, k kind) {
	s := &n.senders[x.qp&slotMask] // in another part, and not in the cache: read only if there is a reason
	if r.asker >= 0 && s.silent {
		n.notes.Give(x.note)
		n.askAgain(r)
		return
	}
	a := packet{qp: x.qp, psn: r.expected, note: x.note, sack: x.psn, kind: k, flags: answers, class: n.ackClass(s),
		size: uint16(n.cfg.Acks.Size + n.cfg.Telemetry.AckSize)}
	if r.marked {
		a.flags |= ceMark
	}
	if k == nackPacket {
		// Either way sack names the packet: trimmed for one that was cut, sacked for one that arrived.
		if a.flags |= x.flags & trimmed; a.flags&trimmed == 0 {
			a.flags |= sacked
		}
	}
	n.notes.Give(r.note)
	if r.patient {
		n.eng.Disarm(r.patience)
	}
	r.note, r.unacked, r.marked = 0, 0, false
	n.Counters.Acks++
	n.answer(r, a)
}

// answer queues a packet ahead of the data of the receiver's return port, which need not be the port on which the data
// arrived.
func (n *Network) answer(r *receiver, x packet) {
	l := n.lane(r.port, 0)
	l.out += int64(x.size)
	n.chunks.Push(&l.waiting, &x)
	n.kick(r.port, &n.ports[r.port])
}

package fabric

import (
	"farflash/model/fabric/cc"
	"farflash/model/fabric/repair"
	"farflash/numeric/units"
	"farflash/sim"
)

// sender is a queue pair's sending side. Packets are numbered from 0 over all of its
// messages; a message begins with a new packet.
type sender struct {
	next     uint32 // number of the next packet to send
	una      uint32 // the first that is not acknowledged
	end      uint32 // behind the last that was posted
	stop     uint32 // behind the last that may be sent for now
	top      uint32 // behind the last that was ever sent
	port     int32
	place    int32  // in the NIC's heap
	number   uint32 // at the NIC
	oldest   int32  // message that una is in, -1 if there is none
	sending  int32  // message that next is in
	newest   int32
	last     int32 // message that was posted last, acknowledged or not
	avail    sim.Time
	pos      uint64 // of next in the stream of payload
	acked    uint64 // of una
	expire   sim.Timer
	adjust   sim.Timer
	lastSize uint16
	class    uint8
	standing standing
	timing   bool     // the retransmission timer runs
	tries    uint8    // timeouts without progress
	steered  bool     // adjust has been made
	unborn   bool     // it is planned, and its NIC does not know it yet
	closed   sim.Time // when it was finished; -1 is not yet
	repair   *repair.Sender
	src, dst int32
	tag      uint32 // what its packets have for qp
	twin     int32  // the other stream of its queue pair, -1 if there is none (responder.go)
	ended    int32  // message that was acknowledged last
	responds bool   // it is the responder's
	other    bool   // the responder's stream has had the queue pair's turn last
}

// hasMore reports whether there is a packet to send.
func (s *sender) hasMore() bool {
	return s.next != s.stop || s.repair != nil && s.repair.Pending()
}

// take makes the queue pair's next packet.
func (n *Network) take(s *sender) (packet, units.Bytes) {
	if r := s.repair; r != nil && r.Pending() {
		psn := r.Take(s.top)
		m := s.oldest
		for !before(psn, n.messages[m].first+n.messages[m].packets) {
			m = n.messages[m].next
		}
		n.Counters.Retransmits++
		return n.make(s, m, psn)
	}
	if s.next != s.top {
		n.Counters.Retransmits++
	}
	x, payload := n.make(s, s.sending, s.next)
	s.pos += uint64(payload)
	s.next++
	if before(s.top, s.next) {
		s.top = s.next
	}
	if x.flags&lastOf != 0 {
		s.sending = n.messages[s.sending].next
	}
	return x, payload
}

// make makes packet psn, which is in message m.
func (n *Network) make(s *sender, m int32, psn uint32) (packet, units.Bytes) {
	msg := &n.messages[m]
	payload := n.cfg.Payload
	x := packet{qp: s.tag, psn: psn, kind: dataPacket}
	if psn == msg.first && msg.Begun == sim.Forever {
		msg.Begun = n.eng.Now()
	}
	if psn-msg.first == msg.packets-1 {
		x.flags = lastOf
		if n.wants.Pulls && msg.next < 0 {
			x.flags |= drains
		}
		payload = msg.Size - units.Bytes(msg.packets-1)*n.cfg.Payload
	}
	if msg.reads != noRead {
		x.read(msg)
	}
	x.size = uint16(payload + n.cfg.Header + n.cfg.Telemetry.Size)
	n.Counters.Sent += uint64(payload)
	if n.notes.Used {
		x.note = n.notes.Take(n.eng.Now())
	}
	return x, payload
}

// full reports whether the window is, if there is one. What is sent again has its place in it already.
func (n *Network) full(s *sender, c *cc.Sender) bool {
	if n.wants.Pulls {
		return c.Credit <= 0
	}
	if r := s.repair; r != nil && s.twin < 0 && (r.Recovering() || n.wants.Came) {
		if r.Probing() {
			return false
		}
		return units.Bytes(r.Pipe(s.una, s.next))*n.cfg.Payload >= c.Window
	}
	acked, next := n.progress(s)
	return units.Bytes(next-acked) >= c.Window && !n.repeats(s)
}

// answered is for an ACK or NACK that has come to its sender.
func (n *Network) answered(x packet) {
	q := int32(x.qp & slotMask)
	s := &n.senders[q]
	lead, l := n.lead(q, s)
	c := &n.control[lead]
	if l.standing == finished {
		n.notes.Give(x.note)
		return
	}
	now := n.eng.Now()
	done, ended := s.oldest, 0
	if before(s.una, x.psn) && !before(s.top, x.psn) {
		ended = n.advance(s, x.psn)
	}
	lost := false
	if x.flags&trimmed != 0 {
		n.cutOff(s, lead, l, &x)
	} else if s.repair != nil {
		if x.flags&sacked == 0 {
			s.repair.Acked(s.una)
		} else if lost = s.repair.Named(x.sack, s.una, s.top); lost && s.repair.TCP() && s.timing {
			n.await(s) // the timer was perhaps a probe's
		}
	} else if lost = x.kind == nackPacket && s.next != s.una && !before(x.psn, s.una); lost {
		n.rewind(s)
	}
	if s.una == s.end && n.cfg.QueuePairs.Life == PerMessage {
		n.close(q, s, c, done)
		n.notes.Give(x.note)
		n.reportAcked(done, ended)
		return
	}
	mark := x.flags&ceMark != 0
	if n.wants.Acks || mark && n.wants.CNPs && n.cfg.CNP.Echo {
		acked, next := n.progress(l)
		n.signal = cc.Signal{Kind: cc.CNP, Marked: mark, Now: now, Acked: acked, Next: next}
		if mark && n.wants.CNPs && n.cfg.CNP.Echo {
			n.react(lead, l, c)
		}
		if lost && n.wants.Losses {
			n.signal.Kind = cc.Loss
			n.react(lead, l, c)
		}
		if n.wants.Acks && (x.note != 0 || !n.notes.Used) {
			n.signal.Kind = cc.Ack
			n.notes.Read(x.note, &n.signal)
			if s.repair != nil {
				s.repair.Measure(n.signal.RTT)
				n.signal.Came = s.repair.Came() * uint64(n.cfg.Payload)
			}
			n.signal.Multiple = n.cfg.Telemetry.Multiple
			n.react(lead, l, c)
		}
	}
	n.notes.Give(x.note)
	if l.standing == blocked || l.standing == idle && n.more(l) {
		n.offer(lead, l)
	}
	n.reportAcked(done, ended)
}

// reportAcked calls the sink of so many messages of a queue pair from m on. It comes last: the
// sink may post, and open queue pairs, which moves all of them in memory.
func (n *Network) reportAcked(m int32, count int) {
	if n.sink == nil {
		return
	}
	for ; count > 0; count-- {
		next := n.messages[m].next
		n.supersede(m)
		n.sink.Acked(m)
		m = next
	}
}

// supersede: a message has been acknowledged, so that sender and receiver are behind the one before it. A queue pair
// that has done its one message refers to it no more.
func (n *Network) supersede(m int32) {
	if n.cfg.QueuePairs.Life == PerMessage {
		n.note(m, superseded)
		return
	}
	s := &n.senders[n.messages[m].QP]
	if s.ended >= 0 {
		n.note(s.ended, superseded)
	}
	s.ended = m
}

// advance moves una to psn, ends the messages that are thereby complete and returns how
// many these are.
func (n *Network) advance(s *sender, psn uint32) int {
	now := n.eng.Now()
	ended := 0
	s.una, s.tries = psn, 0
	n.bound(s)
	if s.repair != nil {
		s.repair.Progress()
	}
	if before(s.next, psn) {
		// An ACK of what was sent before the queue pair went back: it need not be sent
		// again.
		s.next = psn
	}
	for s.oldest >= 0 {
		m := &n.messages[s.oldest]
		if before(psn, m.first+m.packets) {
			s.acked = m.from + uint64(psn-m.first)*uint64(n.cfg.Payload)
			break
		}
		s.acked = m.from + uint64(m.Size)
		m.Acked = now
		ended++
		s.oldest = m.next
		if s.oldest < 0 {
			s.newest = -1
		}
		n.Counters.Completed++
	}
	if s.pos < s.acked {
		s.pos = s.acked
		s.sending = s.oldest
	}
	if n.timeout > 0 {
		if s.una == s.top {
			s.timing = false
			n.eng.Disarm(s.expire)
		} else if s.timing {
			n.await(s)
		}
	}
	return ended
}

// bound has a sender stop where its receiver has no more bits for what comes out of order.
func (n *Network) bound(s *sender) {
	s.stop = s.end
	if w := uint32(n.cfg.Recovery.Window); w > 0 && before(s.una+w, s.end) {
		s.stop = s.una + w
	}
}

// rewind goes back to the first packet that is not acknowledged.
func (n *Network) rewind(s *sender) {
	s.next, s.pos, s.sending = s.una, s.acked, s.oldest
}

// timeoutOf is how long a queue pair waits for progress: twice as long after each timeout, up to
// 64 times. A timeout below the round trip of a congested network would otherwise send
// everything again for ever, and congest it.
func (n *Network) timeoutOf(s *sender) sim.Time {
	if s.repair != nil {
		if after, ok := s.repair.Probes(s.top - s.una); ok {
			return min(after, n.timeout)
		}
	}
	t := n.timeout
	if s.repair != nil && int(s.top-s.una) <= n.cfg.Recovery.ShortCount {
		t = n.cfg.Recovery.ShortTimeout
	}
	if t > sim.Forever>>s.tries {
		return sim.Forever
	}
	return t << s.tries
}

// await sets the retransmission timer, unless time ends before it would expire.
func (n *Network) await(s *sender) {
	now, wait := n.eng.Now(), n.timeoutOf(s)
	if s.timing = wait < sim.Forever-now; s.timing {
		n.eng.Arm(s.expire, now+wait)
	}
}

// expired is for a retransmission timer.
func (n *Network) expired(q int32) {
	s := &n.senders[q]
	s.timing = false
	if s.una == s.top {
		return
	}
	probe := false
	if s.repair != nil {
		_, probe = s.repair.Probes(s.top - s.una)
	}
	switch {
	case probe:
		s.repair.Probe(s.top)
	case s.repair != nil:
		s.repair.Restart(s.una, s.top)
	default:
		n.rewind(s)
	}
	lead, l := n.lead(q, s)
	if !probe {
		n.Counters.Timeouts++
		s.tries = min(s.tries+1, 6)
	}
	if n.wants.Acks && !probe {
		acked, next := n.progress(l)
		n.signal = cc.Signal{Kind: cc.Timeout, Now: n.eng.Now(), Acked: acked, Next: next}
		n.react(lead, l, &n.control[lead])
	}
	n.await(s)
	if l.standing == blocked || l.standing == idle {
		// What the window counts may be lost: the first packet goes in any case.
		p := &n.ports[l.port]
		n.stand(p, &n.nics[p.nic], l)
		n.kick(l.port, p)
	}
}

// react hands n.signal to the congestion control and does what follows from it.
func (n *Network) react(q int32, s *sender, c *cc.Sender) {
	was, window := c.Rate, c.Window
	wakes := c.Wake
	n.alg.React(q, c, &n.signal)
	if c.Rate != was || c.Window != window {
		n.OnRate.Fire(RateChange{At: n.eng.Now(), RTT: n.signal.RTT, QP: QP(q), Sender: c})
		if n.wants.Repace && s.lastSize > 0 && c.Rate != was {
			p := &n.ports[s.port]
			old := cc.Sender{Rate: was}
			n.repace(q, s, s.avail+n.gap(p, c, s.lastSize)-n.gap(p, &old, s.lastSize))
		}
	}
	if c.Wake != wakes {
		n.steer(q, s, c)
	}
}

// steer sets the timer that the congestion control asked for.
func (n *Network) steer(q int32, s *sender, c *cc.Sender) {
	if c.Wake == sim.Forever {
		if s.steered {
			n.eng.Disarm(s.adjust)
		}
		return
	}
	if !s.steered {
		s.steered = true
		s.adjust = n.eng.NewTimer(n.inPort(&n.ports[s.port]), n.target, adjust, uint32(q))
	}
	n.eng.Arm(s.adjust, max(c.Wake, n.eng.Now()))
}

func (n *Network) adjusted(q int32) {
	s := &n.senders[q]
	c := &n.control[q]
	c.Wake = sim.Forever
	n.signal = cc.Signal{Kind: cc.Timer, Now: n.eng.Now()}
	n.react(q, s, c)
	if s.standing == blocked {
		n.offer(q, s)
	}
}

// close ends a queue pair that has done its one message.
func (n *Network) close(q int32, s *sender, c *cc.Sender, done int32) {
	c.Wake = sim.Forever
	n.steer(q, s, c)
	k := &n.nics[n.ports[s.port].nic]
	n.withdraw(s, s.port) // what was to be sent again has been acknowledged meanwhile
	s.standing = finished
	n.messages[done].ideal = n.Ideal(done)
	n.vacate(q)
	for int(k.oldest) < len(k.qps) && n.gone(k, k.oldest) {
		k.oldest++
	}
	for c := range k.turns {
		if k.turns[c].n > 0 || n.used>>c&1 != 0 {
			k.turns[c].waiting.MoveTo(k.oldest)
		}
	}
}

// gone reports whether the queue pair that had a number at a NIC is finished.
func (n *Network) gone(k *nic, number uint32) bool {
	s := &n.senders[k.qps[number]]
	return s.number != number || s.standing == finished
}

// unready takes a queue pair out of its turns.
func (n *Network) unready(p *port, k *nic, s *sender) {
	t := &k.turns[s.class]
	t.remove(s.number)
	if t.n == 0 {
		p.ready &^= 1 << s.class
	}
}

// enrol gives a queue pair its number at its port's NIC.
func (n *Network) enrol(q int32, s *sender) {
	k := &n.nics[n.ports[s.port].nic]
	s.number = uint32(len(k.qps))
	k.qps = append(k.qps, q)
}

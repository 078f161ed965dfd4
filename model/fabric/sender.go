package fabric

import (
	"farflash/model/fabric/cc"
	"farflash/model/fabric/repair"
	"farflash/model/fabric/setting"
	"farflash/numeric/units"
	"farflash/sim"
)

// sender is the sending side of a queue pair. Packets are numbered consecutively over all of its messages; each message
// starts a new packet.
type sender struct {
	next     uint32 // number of the next packet to send
	una      uint32 // the first unacknowledged packet
	end      uint32 // one past the last packet posted
	stop     uint32 // one past the last packet that may be sent for now
	top      uint32 // one past the last packet ever sent
	port     int32
	place    int32  // index in the NIC's heap
	number   uint32 // its number at the NIC
	oldest   int32  // the message of una, -1 if there is none
	sending  int32  // the message of next
	newest   int32
	last     int32 // the last message posted, acknowledged or not
	avail    sim.Time
	pos      uint64 // position of next in the payload stream
	acked    uint64 // position of una in it
	expire   sim.Timer
	adjust   sim.Timer
	patience sim.Time // the least timeout, by round trips
	timed    uint32   // the packet whose round trip is measured
	timeable bool     // none is
	waits    bool     // its message found no receive, and expire is the time to send it again (receives.go)
	lastSize uint16
	class    uint8
	standing standing
	timing   bool     // the retransmission timer is running
	tries    uint8    // timeouts without progress
	broken   bool     // it has given up (abandon.go)
	expires  bool     // the expire timer exists
	steered  bool     // the adjust timer exists
	planned  bool     // planned, and not yet introduced to its NIC
	closed   sim.Time // when it was finished, -1 before; accessed atomically across parts
	repair   *repair.Sender
	src, dst int32
	tag      uint32 // value of its packets' qp
	twin     int32  // the other stream of its queue pair, -1 if there is none (responder.go)
	ended    int32  // the last acknowledged message
	responds bool   // this is the responder's stream
	silent   bool   // and its packets have no ACKs
	hears    bool   // the answers to its RDMA Reads have none
	other    bool   // the responder's stream had the queue pair's last turn
}

// hasMore reports whether the stream has a packet to send.
func (s *sender) hasMore() bool {
	return s.next != s.stop || s.repair != nil && s.repair.Pending()
}

// take returns the stream's next packet and its payload: a retransmission, if one is pending, or the next in order.
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
	} else if s.timeable {
		s.timed, s.timeable = s.next, false
		n.trips[s.tag&slotMask].Since = n.eng.Now()
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

// make builds packet psn, which is in message m.
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

// full reports whether the queue pair's window, or its credit where receivers pull, is exhausted. Retransmissions
// already have their place in the window.
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

// answered handles an ACK or NACK that arrived at its sender.
func (n *Network) answered(x packet) {
	q := int32(x.qp & slotMask)
	s := &n.senders[q]
	lead, l := n.lead(q, s)
	c := &n.control[lead]
	if l.standing == finished || l.broken {
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
			n.await(s) // the timer may have been a probe's
		}
	} else if x.kind != ackPacket {
		lost = n.goBack(q, s, &x)
	}
	// A finished queue pair gets no more signals.
	if s.una == s.end && n.cfg.QueuePairs.Life == PerMessage {
		n.close(q, s, c, done)
		n.notes.Give(x.note)
		n.reportAcked(done, ended)
		return
	}
	mark := x.flags&ceMark != 0 && (!s.responds || n.cfg.CNP.Answers == setting.NoticesCNP)
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
	if s.hears {
		n.attend(uint32(n.receive[q].answers))
	}
	if l.standing == blocked || l.standing == idle && n.more(l) {
		n.offer(lead, l)
	}
	n.reportAcked(done, ended)
}

// reportAcked notifies the sink of count messages from m on. It must come last: the sink may post and open queue pairs,
// which can reallocate the slices of both.
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

// supersede records that message m has been acknowledged, so that sender and receiver no longer refer to the one before
// it. A queue pair that is finished refers to none.
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

// advance moves una to psn, completes the messages before it and returns their number.
func (n *Network) advance(s *sender, psn uint32) int {
	now := n.eng.Now()
	ended := 0
	if n.adapts && !s.timeable && before(s.timed, psn) {
		s.timeable, s.patience = true, n.trips[s.tag&slotMask].Measured(now)
	}
	s.una, s.tries = psn, 0
	if s.waits { // a copy of the message has found a receive
		s.waits = false
		n.eng.Disarm(s.expire)
	}
	n.bound(s)
	if s.repair != nil {
		s.repair.Progress()
	}
	if before(s.next, psn) {
		// An ACK of packets sent before the queue pair went back: they need no retransmission.
		s.next = psn
	}
	for s.oldest >= 0 {
		m := &n.messages[s.oldest]
		// The message is acknowledged in part. All its packets but the last are full.
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

// bound limits a sender to the receiver's window for packets out of order.
func (n *Network) bound(s *sender) {
	s.stop = s.end
	if s.broken || s.waits {
		s.stop = s.next
		return
	}
	if w := uint32(n.cfg.Recovery.Window); w > 0 && before(s.una+w, s.end) {
		s.stop = s.una + w
	}
}

// adapt begins the measurement of a queue pair's round trips. Until there is one, the timeout is at least twice that of
// a network without load.
func (n *Network) adapt(s *sender, unloaded sim.Time) {
	if n.adapts {
		n.trips[s.tag&slotMask] = repair.Trip{}
		s.patience, s.timeable = 2*unloaded, true
	}
}

// rewind goes back to the first unacknowledged packet.
func (n *Network) rewind(s *sender) {
	s.next, s.pos, s.sending = s.una, s.acked, s.oldest
}

// longestTimeout is TCP's, with which its timer stops to double (Linux' TCP_RTO_MAX).
const longestTimeout = 120 * units.Second

// timeoutOf returns how long a queue pair waits for progress. The time doubles with each timeout, up to 64 times, TCP's
// up to two minutes: a timeout shorter than the round trip of a congested network would otherwise retransmit everything
// for ever and keep it congested.
func (n *Network) timeoutOf(s *sender) sim.Time {
	if s.repair != nil {
		if after, ok := s.repair.Probes(s.top - s.una); ok {
			return min(after, n.timeout)
		}
	}
	t := n.timeout
	if s.repair != nil && int(s.top-s.una) <= n.cfg.Recovery.ShortCount {
		t = n.short
	}
	if n.adapts {
		t = max(t, s.patience)
	}
	if first := n.cfg.Recovery.FirstTimeout; first > t && s.acked == 0 && !s.repair.Measured() {
		t = first
	}
	tries, most := min(s.tries, 6), sim.Forever // 2^6 = 64
	if s.repair != nil && s.repair.TCP() {
		tries, most = min(s.tries, 62), max(t, longestTimeout)
	}
	if t > most>>tries { // the shift would overflow
		return most
	}
	return t << tries
}

// await starts the retransmission timer, unless it would expire after the end of time.
func (n *Network) await(s *sender) {
	now, wait := n.eng.Now(), n.timeoutOf(s)
	if s.timing = wait < sim.Forever-now; s.timing {
		n.eng.Arm(s.expire, now+wait)
	}
}

// expired handles a retransmission timer.
func (n *Network) expired(q int32) {
	s := &n.senders[q]
	s.timing = false
	if s.waits {
		n.goAgain(q, s)
		return
	}
	if s.una == s.top {
		return
	}
	// An acknowledgement could be that of the retransmission, so the next new packet is measured.
	s.timeable = n.adapts
	probe := false
	if s.repair != nil {
		_, probe = s.repair.Probes(s.top - s.una)
	}
	if most := n.cfg.Recovery.Retries; most > 0 && int(s.tries) >= most && !probe {
		n.giveUp(n.lead(q, s))
		return
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
		s.tries = min(s.tries+1, mostRetries)
	}
	if n.wants.Acks && !probe {
		acked, next := n.progress(l)
		n.signal = cc.Signal{Kind: cc.Timeout, Now: n.eng.Now(), Acked: acked, Next: next}
		n.react(lead, l, &n.control[lead])
	}
	n.await(s)
	if l.standing == blocked || l.standing == idle {
		// The packets that fill the window may be lost, so the first one is sent regardless.
		p := &n.ports[l.port]
		n.stand(p, &n.nics[p.nic], l)
		n.kick(l.port, p)
	}
}

// react passes n.signal to the congestion control and applies the new rate, window and timer.
func (n *Network) react(q int32, s *sender, c *cc.Sender) {
	was, window := c.Rate, c.Window
	wakes := c.Wake
	n.alg.React(q, c, &n.signal)
	if c.Rate != was || c.Window != window {
		n.OnRate.Fire(RateChange{At: n.eng.Now(), RTT: n.signal.RTT, QP: QP(q), Sender: c})
		// The gap behind the last packet is recomputed at the new rate.
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

// steer sets the timer that the congestion control requested.
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

// close finishes a queue pair whose one message has been acknowledged.
func (n *Network) close(q int32, s *sender, c *cc.Sender, done int32) {
	c.Wake = sim.Forever
	n.steer(q, s, c)
	k := &n.nics[n.ports[s.port].nic]
	n.withdraw(s, s.port) // pending retransmissions have been acknowledged by now
	s.standing = finished
	n.messages[done].ideal = n.Ideal(done)
	n.vacate(q)
	n.slide(k)
}

// slide moves a NIC's sets past the queue pairs that are finished: numbers only grow.
func (n *Network) slide(k *nic) {
	for int(k.oldest) < len(k.qps) && n.gone(k, k.oldest) {
		k.oldest++
	}
	for c := range k.turns {
		if k.turns[c].N > 0 || n.used>>c&1 != 0 {
			k.turns[c].MoveTo(k.oldest)
		}
	}
}

// gone reports whether a number at a NIC is no longer in use: its queue pair is finished, or has another number.
func (n *Network) gone(k *nic, number uint32) bool {
	s := &n.senders[k.qps[number]]
	return s.number != number || s.standing == finished
}

// unready removes a queue pair from the turns of its class.
func (n *Network) unready(p *port, k *nic, s *sender) {
	t := &k.turns[s.class]
	t.Remove(s.number)
	if t.N == 0 {
		p.ready &^= 1 << s.class
	}
}

// enrol gives a queue pair the next number at its port's NIC.
func (n *Network) enrol(q int32, s *sender) {
	k := &n.nics[n.ports[s.port].nic]
	s.number = uint32(len(k.qps))
	k.qps = append(k.qps, q)
}

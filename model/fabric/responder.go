package fabric

import (
	"fmt"

	"farflash/internal/window"
	"farflash/model/fabric/repair"
	"farflash/model/fabric/setting"
	"farflash/numeric/units"
	"farflash/sim"
)

// A queue pair of a reliable connection has two sides at each host: the requester's, whose work requests are sent in
// the order in which they were posted, and the responder's, which answers the RDMA Reads of the other host. Each side
// numbers its packets and has them acknowledged independently, and neither is ordered behind the other (InfiniBand
// specification, volume 1, chapter 9.7: a responder's packets carry the numbers of the requests that they answer). Here
// a stream in one direction is one sender and one receiver, so a queue pair that answers RDMA Reads consists of two
// streams. The NIC, its pacing and the congestion control know the pair by the requester's stream, the lead. A CNP
// slows both, since RoCEv2's annex A17 addresses it to a queue pair and not to a side. The two streams take turns,
// packet by packet.
//
// The answer of an RDMA Read acknowledges its request (same chapter): the request has no ACK of its own, and the
// answer's first packet acknowledges it. The answer is not acknowledged: its responder keeps no state, and has no
// timer. The requester notices a missing packet by a later one, or when a timer of its own ends, and asks again from
// there; a request that arrives twice is answered again. Of the requests that it would repeat, only the first is sent
// here, and the responder goes back to where the requester is. Its messages count as acknowledged when they arrive.
//
// With selective repeat both are acknowledged explicitly: IRN splits the numbers into those of requests and answers and
// adds ACKs of answers for its recovery (section 5 of its paper). So are answers under congestion control that needs
// ACKs, which no specification has for them.

// reading is a message's role in an RDMA Read.
type reading uint8

const (
	noRead      reading = iota
	asksRead            // the request of a Read, which has no ACK of its own
	answersRead         // the answer to such a request
)

// Respond opens the stream on which out's sender answers the RDMA Reads that arrive on back, one for a persistent queue
// pair.
func (n *Network) Respond(out, back QP) (QP, error) {
	for _, q := range [...]QP{out, back} {
		if q < 0 || int(q) >= len(n.senders) {
			return 0, fmt.Errorf("no queue pair %d; there are %d", q, len(n.senders))
		}
	}
	s, b := n.senders[out], n.senders[back]
	switch {
	case n.cfg.QueuePairs.Life == PerMessage:
		return 0, fmt.Errorf("queue pair %d is for one message; RDMA Reads need persistent queue pairs", out)
	case n.split != nil:
		return 0, fmt.Errorf("queue pair %d is in a divided network, which does not support RDMA Reads", out)
	case s.src != b.dst || s.dst != b.src || s.class != b.class:
		return 0, fmt.Errorf("queue pairs %d and %d are not two directions of one", out, back)
	case s.twin >= 0:
		return 0, fmt.Errorf("queue pair %d already answers RDMA Reads", out)
	}
	q, err := n.slot(s.src, n.eng.Now())
	if err != nil {
		return 0, err
	}
	t := &n.senders[q]
	was := *t
	*t = sender{src: s.src, dst: s.dst, class: s.class, oldest: -1, sending: -1, newest: -1, last: -1, ended: -1,
		tag: t.tag + 1<<slotBits, twin: int32(out), responds: true, closed: -1, expire: was.expire,
		adjust: was.adjust, steered: was.steered, expires: was.expires, silent: n.needsNoAcks(out)}
	n.receive[q] = receiver{opening: -1, message: -1, begun: -1, asker: int32(back), answers: -1, tag: t.tag}
	n.receive[back].answers, n.senders[back].hears = int32(q), t.silent
	n.keys[q] = n.keys[out]
	n.findPaths(q, n.known(s.src, s.dst))
	if n.cfg.Recovery.Kind.Keeps() {
		t.repair, n.receive[q].arrived = repair.New(n.cfg.Recovery.Kind == Sack, n.patience()), &window.Set{}
	}
	n.adapt(t, n.control[out].BaseRTT)
	n.renewTimers(n, q, t, was.port)
	n.senders[out].twin = int32(q)
	return q, nil
}

// needsNoAcks reports whether the answers on a queue pair go without ACKs.
func (n *Network) needsNoAcks(q QP) bool {
	return n.cfg.Acks.Answers == setting.AnswersAuto && !n.cfg.Recovery.Kind.Keeps() && !n.wants.Acks &&
		!n.wants.Pulls && !(n.wants.CNPs && n.cfg.CNP.Echo && n.cfg.CNP.Answers == setting.NoticesCNP) &&
		n.control[q].Window == 0
}

// Ask posts an RDMA Read's request of a size; once delivered, Answer must follow.
func (n *Network) Ask(q QP, size units.Bytes) (int32, error) {
	implicit := !n.cfg.Recovery.Kind.Keeps()
	if implicit && size > n.cfg.Payload {
		return 0, fmt.Errorf("an RDMA Read's request of %v does not fit a packet of %v", size, n.cfg.Payload)
	}
	m, err := n.plan(q, size)
	if err != nil {
		return m, err
	}
	if implicit {
		n.messages[m].reads = asksRead
		if n.senders[q].hears {
			n.receive[n.receive[q].answers].unacked++
		}
	}
	return m, n.begin(m)
}

// Answer posts the data of an RDMA Read, once for each request, from inside its Delivered.
func (n *Network) Answer(q QP, size units.Bytes, request int32) (int32, error) {
	if request < 0 || int(request) >= len(n.messages) {
		return 0, fmt.Errorf("there is no request %d; there are %d messages", request, len(n.messages))
	}
	m, err := n.plan(q, size)
	if err != nil {
		return m, err
	}
	if r := &n.messages[request]; r.reads == asksRead {
		x := &n.messages[m]
		x.reads, x.stands = answersRead, r.first+r.packets
	}
	return m, n.begin(m)
}

// replied handles a packet of an answer at the host that asked for it. The packet shows that the other side is making
// progress, so the timer restarts; the first packet of an answer acknowledges the request.
func (n *Network) replied(q int32, x *packet) {
	s := &n.senders[q]
	if x.flags&implied == 0 || !before(s.una, x.sack) || before(s.top, x.sack) {
		if s.timing {
			n.await(s)
		}
		return
	}
	done := s.oldest
	ended := n.advance(s, x.sack)
	n.goOn(n.lead(q, s))
	n.reportAcked(done, ended)
}

// heard handles a packet of an answer without ACKs that arrived in order and completed ended messages after message
// last.
func (n *Network) heard(r *receiver, x *packet, last int32, ended int) {
	n.notes.Give(x.note)
	n.senders[r.asker].tries = 0
	r.unacked -= int32(ended)
	if r.listening {
		r.listening = false
		n.eng.Disarm(r.patience)
	}
	q, asker, expected := x.qp&slotMask, r.asker, r.expected
	n.reportDelivered(r, last, ended)
	if s := &n.senders[q]; s.tag == x.qp { // the sink has not abandoned it
		done := s.oldest
		n.reportAcked(done, n.advance(s, expected))
	}
	n.replied(asker, x)
	if n.senders[q].tag == x.qp {
		n.attend(q)
	}
}

// attend starts the requester's timer if answers are due whose requests are acknowledged, by the answer's first packet
// or by the ACK of a later message. Otherwise the request's timer runs.
func (n *Network) attend(answers uint32) {
	r := &n.receive[answers]
	a := &n.senders[r.asker]
	if r.listening || r.unacked == 0 || a.timing || a.broken || n.timeout == 0 {
		return
	}
	if !r.patient {
		r.patient = true
		r.patience = n.eng.NewTimer(n.inPort(&n.ports[r.port]), n.target, overdue, r.tag)
	}
	now, wait := n.eng.Now(), n.timeoutOf(a)
	if r.listening = wait < sim.Forever-now; r.listening {
		n.eng.Arm(r.patience, now+wait)
	}
}

// unheard handles the end of the requester's timer.
func (n *Network) unheard(r *receiver) {
	a := &n.senders[r.asker]
	r.listening = false
	if a.broken {
		return
	}
	if most := n.cfg.Recovery.Retries; most > 0 && int(a.tries) >= most {
		n.giveUp(n.lead(r.asker, a))
		return
	}
	n.Counters.Timeouts++
	a.tries = min(a.tries+1, mostRetries)
	n.attend(r.tag & slotMask)
	n.askAgain(r)
}

// askAgain requests an answer again from its first missing packet on, in the class of ACKs.
func (n *Network) askAgain(r *receiver) {
	n.answer(r, packet{qp: r.tag, psn: r.expected, kind: nackPacket, flags: answers,
		class: n.ackClass(&n.senders[r.tag&slotMask]), size: uint16(n.cfg.Header + readRequest)})
}

// readRequest is the size of a Read's request, which is a header (the InfiniBand specification's RETH).
const readRequest = 16

// answersAgain handles a request that arrived twice: its answer may be lost. It reports whether answers go without
// ACKs.
func (n *Network) answersAgain(r *receiver) bool {
	if r.answers < 0 || !n.senders[r.answers].silent {
		return false
	}
	s := &n.senders[r.answers]
	if s.next != s.una && !s.broken {
		n.rewind(s)
		n.goOn(n.lead(r.answers, s))
	}
	return true
}

// awaited reports whether a timer runs that recovers what a stream's receiver lacks.
func (n *Network) awaited(q int) bool {
	r := &n.receive[q]
	if n.senders[q].silent {
		return r.listening || n.senders[r.asker].timing
	}
	return r.unacked > 0
}

// read sets the fields of a packet that concern RDMA Reads.
func (x *packet) read(m *Message) {
	switch {
	case m.reads == asksRead:
		x.flags |= asks
	case x.psn == m.first:
		x.flags |= implied
		x.sack = m.stands
	}
}

// goOn places a queue pair whose window may have opened, or which may have gained packets to send.
func (n *Network) goOn(q int32, s *sender) {
	if s.standing == blocked || s.standing == idle && n.more(s) {
		n.offer(q, s)
	}
}

// lead returns the stream by which the NIC and the congestion control know a queue pair.
func (n *Network) lead(q int32, s *sender) (int32, *sender) {
	if s.responds {
		return s.twin, &n.senders[s.twin]
	}
	return q, s
}

// more reports whether there is a packet to send on either stream of a queue pair.
func (n *Network) more(s *sender) bool {
	return s.next != s.stop || (s.repair != nil || s.twin >= 0) && n.moreElse(s)
}

// moreElse is the slow path of more, for a queue pair without new packets on its lead.
func (n *Network) moreElse(s *sender) bool {
	return s.hasMore() || s.twin >= 0 && n.senders[s.twin].hasMore()
}

// repeats reports whether a retransmission is pending on either stream.
func (n *Network) repeats(s *sender) bool {
	return s.repair != nil && (s.repair.Pending() || s.twin >= 0 && n.senders[s.twin].repair.Pending())
}

// progress returns the payload of a queue pair's streams that is acknowledged, and that precedes their next packets, in
// bytes.
func (n *Network) progress(s *sender) (acked, next uint64) {
	if s.twin < 0 {
		return s.acked, s.pos
	}
	t := &n.senders[s.twin]
	return s.acked + t.acked, s.pos + t.pos
}

// turn returns the stream that sends a queue pair's next packet: retransmissions precede new packets, and otherwise the
// streams alternate. At least one must have a packet.
func (n *Network) turn(s *sender) *sender {
	t := &n.senders[s.twin]
	switch {
	case !t.hasMore():
		s.other = false
	case !s.hasMore():
		s.other = true
	case s.repair != nil && s.repair.Pending() != t.repair.Pending():
		s.other = t.repair.Pending()
	default:
		s.other = !s.other
	}
	if s.other {
		return t
	}
	return s
}

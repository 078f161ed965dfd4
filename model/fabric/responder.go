package fabric

import (
	"fmt"

	"farflash/internal/window"
	"farflash/model/fabric/repair"
	"farflash/numeric/units"
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
// answer's first packet acknowledges it. With selective repeat the request is acknowledged explicitly. The packets of
// the answer are acknowledged explicitly in both cases: IRN splits the numbers into those of requests and answers and
// adds ACKs of answers for its recovery (section 5 of its paper).

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
		adjust: was.adjust, steered: was.steered, expires: was.expires}
	n.receive[q] = receiver{opening: -1, message: -1, begun: -1, asker: int32(back), tag: t.tag}
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

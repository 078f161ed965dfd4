package fabric

import (
	"fmt"
	"slices"

	"farflash/model/fabric/cc"
	"farflash/sim"
)

// A queue pair ends in one of two ways. After Recovery.Retries timeouts in a row its sender gives up, as a reliable
// connection does with the error "transport retry counter exceeded" (InfiniBand specification, volume 1, chapter
// 9.9.2.4) and a TCP socket with ETIMEDOUT: it sends no more, and its messages stay where they are. The receiver does
// not learn of it. Abandon then removes the queue pair from both hosts, with all messages that are not acknowledged.

// Breaker is a Sink that learns of queue pairs that have given up.
type Breaker interface {
	// Broken reports that a queue pair has given up; its messages neither arrive nor are acknowledged from now on. The
	// sink may abandon it from inside.
	Broken(q QP)
}

// giveUp ends the sending of a queue pair whose retries are exhausted.
func (n *Network) giveUp(q int32, s *sender) {
	n.Counters.Broken++
	n.withdraw(s, s.port)
	n.still(q, s)
	s.standing = idle
	if s.twin >= 0 {
		n.still(s.twin, &n.senders[s.twin])
	}
	if b, ok := n.sink.(Breaker); ok {
		b.Broken(QP(q))
	}
}

// still takes from a stream all that it could send.
func (n *Network) still(q int32, s *sender) {
	s.broken = true
	// Acknowledgements of packets past top are ignored.
	s.next, s.stop, s.top, s.pos, s.sending = s.una, s.una, s.una, s.acked, s.oldest
	if s.repair != nil {
		s.repair.Restart(s.una, s.una)
	}
	n.quiet(q, s)
}

// quiet stops a stream's timers.
func (n *Network) quiet(q int32, s *sender) {
	if s.timing {
		s.timing = false
		n.eng.Disarm(s.expire)
	}
	c := &n.control[q]
	c.Wake = sim.Forever
	n.steer(q, s, c)
}

// Broken reports whether a queue pair has given up.
func (n *Network) Broken(q QP) bool {
	exists("queue pair", int32(q), len(n.senders))
	return n.senders[q].broken
}

// Abandon ends a persistent queue pair, with the stream on which it answers RDMA Reads. The messages that are not
// acknowledged are dropped: the network neither reports them nor knows them any longer, and dropped, unless nil, is
// called with each before that. Their packets that are still in flight are discarded at the hosts, also once the queue
// pair's number is in use again. In a network in parts it must be called while no part runs.
func (n *Network) Abandon(q QP, dropped func(m int32)) error {
	switch {
	case q < 0 || int(q) >= len(n.senders):
		return fmt.Errorf("no queue pair %d; there are %d", q, len(n.senders))
	case n.cfg.QueuePairs.Life == PerMessage:
		return fmt.Errorf("queue pair %d ends with its message (queue_pairs.life: per-message)", q)
	case n.senders[q].responds:
		return fmt.Errorf("queue pair %d is the side of another that answers RDMA Reads; abandon that", q)
	case n.senders[q].standing == finished:
		return fmt.Errorf("queue pair %d was abandoned already", q)
	}
	// A stray packet reads the path of the queue pair that has its number then. From now on switches verify that the
	// path is theirs, as after a failure.
	if n.failed == nil {
		n.failed = make([]bool, len(n.graph.Links))
	}
	n.rerouted++
	n.unpair(q)
	twin := n.senders[q].twin
	n.end(int32(q), dropped)
	if twin >= 0 {
		n.end(twin, dropped)
	}
	return nil
}

// unpair removes a queue pair from those that Pair hands out.
func (n *Network) unpair(q QP) {
	s := &n.senders[q]
	key := pair{s.src, s.dst, s.class}
	if p := n.peerings[key]; p != nil {
		p.qps, p.turn = slices.DeleteFunc(p.qps, func(x QP) bool { return x == q }), 0
		if len(p.qps) > 0 {
			n.pairs[key] = p.qps[0]
			return
		}
		delete(n.peerings, key)
	}
	if first, ok := n.pairs[key]; ok && first == q {
		delete(n.pairs, key)
	}
}

// end removes a stream from both hosts.
func (n *Network) end(q int32, dropped func(m int32)) {
	s, r := &n.senders[q], &n.receive[q]
	own, peer := n.of(s.src), n.of(s.dst)
	if !s.responds { // the NIC knows the lead only
		own.withdraw(s, s.port)
	}
	own.quiet(q, s)
	first := s.oldest
	last := s.ended
	// Numbers of packets in flight have the tag of before.
	s.tag += 1 << slotBits
	s.una, s.next, s.stop, s.top = s.end, s.end, s.end, s.end
	s.oldest, s.sending, s.newest, s.last, s.ended = -1, -1, -1, -1, -1
	s.tries, s.broken, s.repair, s.twin, s.standing = 0, false, nil, -1, finished
	if r.patient {
		peer.eng.Release(r.patience)
	}
	peer.notes.give(r.note)
	*r = receiver{opening: -1, message: -1, begun: -1, asker: -1, tag: s.tag, port: r.port}
	n.control[q] = cc.Sender{Wake: sim.Forever}
	if n.wants.Pulls {
		n.pulling[q] = pulling{}
	}
	if !s.responds {
		own.slide(&own.nics[own.ports[s.port].nic])
	}
	s.responds = false
	own.vacate(q)
	if last >= 0 {
		own.note(last, superseded)
	}
	for m := first; m >= 0; {
		next := n.messages[m].next
		if dropped != nil {
			dropped(m)
		}
		own.note(m, forgotten|superseded)
		m = next
	}
}

// renewTimers gives a queue pair that begins its retransmission timer. A timer's events belong to the port that it was
// created for, so those of the index' previous queue pair serve only at the same port.
func (n *Network) renewTimers(x *Network, q QP, s *sender, was int32) {
	if was != s.port {
		if s.expires {
			x.eng.Release(s.expire)
		}
		if s.steered {
			x.eng.Release(s.adjust)
		}
		s.expires, s.steered = false, false
	}
	if n.timeout > 0 && !s.expires {
		s.expire = x.eng.NewTimer(n.inPort(&n.ports[s.port]), x.target, expire, uint32(q))
		s.expires = true
	}
}

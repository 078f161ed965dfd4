package fabric

import (
	"fmt"
	"slices"

	"farflash/model/fabric/cc"
	"farflash/sim"
)

// A queue pair ends in one of two ways. After Recovery.Retries timeouts in a row its sender gives up, as a reliable
// connection does with the error "transport retry counter exceeded" (InfiniBand specification, volume 1, chapter 9.9)
// and a TCP socket with ETIMEDOUT: it sends no more, and its messages stay where they are. The receiver is not
// informed. Abandon removes a queue pair from both hosts, with its messages.

// Breaker is a Sink that learns of queue pairs that have given up.
type Breaker interface {
	// Broken reports a queue pair that has given up. The sink may abandon it from inside.
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
	if s.timing || s.waits {
		s.timing, s.waits = false, false
		n.eng.Disarm(s.expire)
	}
	n.control[q].Wake = sim.Forever
	n.steer(q, s, &n.control[q])
}

// Abandon ends a persistent queue pair, with the stream on which it answers RDMA Reads. Messages that are not
// acknowledged are dropped: the network does not report them, and forgets them after it has called dropped, unless nil,
// with each. In a network in parts it must be called while no part runs.
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
	n.unpair(q)
	if twin := n.senders[q].twin; twin >= 0 {
		n.end(twin, dropped)
	}
	n.end(int32(q), dropped)
	return nil
}

// unpair removes a queue pair from those that Pair hands out.
func (n *Network) unpair(q QP) {
	if n.rerouted++; n.failed == nil { // a stray packet may read another's path, which switches now verify
		n.failed = make([]bool, len(n.graph.Links))
	}
	key := pair{n.senders[q].src, n.senders[q].dst, n.senders[q].class}
	if p := n.peerings[key]; p != nil {
		p.qps, p.turn = slices.DeleteFunc(p.qps, func(x QP) bool { return x == q }), 0
		if len(p.qps) > 0 {
			n.pairs[key] = p.qps[0]
		}
	}
	if first, ok := n.pairs[key]; ok && first == q {
		delete(n.pairs, key)
		delete(n.peerings, key)
	}
}

// end removes a stream from both hosts.
func (n *Network) end(q int32, dropped func(m int32)) {
	s, r := &n.senders[q], &n.receive[q]
	own, peer := n.of(s.src), n.of(s.dst)
	own.quiet(q, s)
	if !s.responds { // the NIC knows the lead only
		own.withdraw(s, s.port)
		s.standing = finished
		own.slide(&own.nics[own.ports[s.port].nic])
	}
	first, last, tag := s.oldest, s.ended, s.tag+1<<slotBits
	s.una, s.next, s.stop, s.top = s.end, s.end, s.end, s.end
	s.oldest, s.sending, s.newest, s.last, s.ended, s.tag = -1, -1, -1, -1, -1, tag
	s.tries, s.broken, s.repair, s.twin, s.standing = 0, false, nil, -1, finished
	s.responds, s.silent, s.hears = false, false, false
	if r.patient {
		peer.eng.Release(r.patience)
	}
	peer.notes.Give(r.note)
	n.leave(q, r)
	if a := r.asker; a >= 0 && n.receive[a].answers == q {
		n.receive[a].answers, n.senders[a].hears = -1, false
	}
	*r = receiver{opening: -1, message: -1, begun: -1, asker: -1, answers: -1, tag: tag, port: r.port}
	n.control[q] = cc.Sender{Wake: sim.Forever}
	if n.wants.Pulls {
		n.pulling[q] = pulling{}
	}
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
		own.Counters.Abandoned++
		m = next
	}
}

// renewTimers gives a queue pair its retransmission timer. Timers of the index' previous queue pair belong to its port.
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
	if n.timeout > 0 {
		n.makeTimer(x, q, s)
	}
}

// makeTimer makes a queue pair's retransmission timer, unless it exists.
func (n *Network) makeTimer(x *Network, q QP, s *sender) {
	if !s.expires {
		s.expire = x.eng.NewTimer(n.inPort(&n.ports[s.port]), x.target, expire, uint32(q))
		s.expires = true
	}
}

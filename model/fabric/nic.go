package fabric

import (
	"farflash/internal/heap"
	"farflash/model/fabric/cc"
	"farflash/model/fabric/turns"
	"farflash/sim"
)

// nic is the send side of a host's port: queue pairs ready to send, which take turns within their class, and those that
// wait for their rate, by time (package turns).
type nic struct {
	turns  [MaxClasses]turns.Round
	qps    []int32 // by number
	oldest uint32  // number before which all queue pairs are finished
	paced  heap.Heap[turns.Paced, *turns.Paced]
	wakeAt sim.Time
	port   int32
	pulls  pulls
	// indexes of this host's finished queue pairs, oldest first; kept at the host's first port only
	spare ring[int32]
}

// standing is a queue pair's state in its NIC.
type standing uint8

const (
	idle     standing = iota // no packet to send
	ready                    // waits for its turn
	pacing                   // waits in the heap for its rate
	blocked                  // by its window
	finished                 // its one message is acknowledged
)

// serveNIC sends a host port's next packet: pause frames first, then answers, then the data of queue pairs.
func (n *Network) serveNIC(pi int32, p *port) {
	now := n.eng.Now()
	k := &n.nics[p.nic]
	if p.urgent {
		n.transmit(pi, p, p.takeFrame())
	} else if answers := n.lane(pi, 0); answers.waiting.N > 0 && p.paused>>n.cfg.Acks.HostClass&1 == 0 {
		x := n.chunks.Pop(&answers.waiting)
		answers.out -= int64(x.size)
		n.transmit(pi, p, x)
	} else {
		// Queue pairs whose time has come join the turns.
		for k.paced.Len() > 0 && k.paced.First().At <= now {
			n.stand(p, k, &n.senders[k.paced.Pop().QP])
		}
		for {
			open := p.ready &^ p.paused
			if open == 0 {
				n.wakeLater(p, k)
				return
			}
			class := n.pick(p, open)
			t := &k.turns[class]
			q := k.qps[t.Take()]
			if t.N == 0 {
				p.ready &^= 1 << class
			}
			s := &n.senders[q]
			if c := &n.control[q]; s.avail > now || c.Window > 0 && n.full(s, c) || !n.more(s) {
				// Its rate or window has shrunk since it joined the turns, or the packets it had to retransmit have
				// been acknowledged.
				n.place(p, k, q, s)
				continue
			}
			n.send(pi, p, k, q, s, class)
			break
		}
	}
	switch {
	case p.urgent || p.ready&^p.paused != 0 || k.paced.Len() > 0 && k.paced.First().At <= p.free,
		n.lane(pi, 0).waiting.N > 0 && p.paused>>n.cfg.Acks.HostClass&1 == 0:
		n.later(pi, p)
	default:
		n.wakeLater(p, k)
	}
}

// wakeLater schedules a wake-up for when the first paced queue pair may send.
func (n *Network) wakeLater(p *port, k *nic) {
	if k.paced.Len() == 0 || k.wakeAt >= n.eng.Now() && k.wakeAt <= k.paced.First().At {
		return
	}
	k.wakeAt = k.paced.First().At
	n.eng.Schedule(n.inPort(p), n.target, k.wakeAt, wake, uint32(p.nic))
}

func (n *Network) woken(i int32) {
	k := &n.nics[i]
	if k.wakeAt == n.eng.Now() {
		k.wakeAt = -1
	}
	n.kick(k.port, &n.ports[k.port])
}

// stand adds a queue pair to the turns of its class.
func (n *Network) stand(p *port, k *nic, s *sender) {
	s.standing = ready
	k.turns[s.class].Add(s.number)
	p.ready |= 1 << s.class
}

// send sends one packet of a queue pair and decides when the next may follow.
func (n *Network) send(pi int32, p *port, k *nic, q int32, s *sender, class uint8) {
	c := &n.control[q]
	now := n.eng.Now()
	from := s
	if s.twin >= 0 {
		from = n.turn(s)
	}
	x, payload := n.take(from)
	x.class = class
	if n.rivals {
		p.deficit[class] -= int32(x.size)
	}
	n.transmit(pi, p, x)
	s.lastSize = x.size
	// Packets are paced from start to start, by their size on the wire.
	s.avail = now + n.gap(p, c, x.size)
	if n.wants.Sent {
		n.signal = cc.Signal{Kind: cc.Sent, Now: now, Payload: payload}
		n.react(q, s, c)
	}
	n.place(p, k, q, s)
	if n.timeout > 0 && !from.timing && !from.silent {
		n.await(from)
	}
}

// gap returns the time that a packet takes at a queue pair's rate, which the link's rate bounds.
func (n *Network) gap(p *port, c *cc.Sender, size uint16) sim.Time {
	if c.Rate >= p.rate {
		return n.time(p, size)
	}
	return n.onTheWire(size, c.Rate)
}

// place puts a queue pair into its standing after it has sent or may send again.
func (n *Network) place(p *port, k *nic, q int32, s *sender) {
	c := &n.control[q]
	switch {
	case !n.more(s):
		s.standing = idle
	case c.Window > 0 && n.full(s, c):
		s.standing = blocked
	case s.avail <= max(p.free, n.eng.Now()):
		n.stand(p, k, s)
	default:
		s.standing = pacing
		k.paced.Push(turns.Paced{At: s.avail, QP: q})
	}
}

// offer places a queue pair that was idle or blocked, and kicks its port if it can send.
func (n *Network) offer(q int32, s *sender) {
	p := &n.ports[s.port]
	n.place(p, &n.nics[p.nic], q, s)
	if s.standing == ready || s.standing == pacing {
		n.kick(s.port, p)
	}
}

// repace changes the time of a queue pair's next packet.
func (n *Network) repace(q int32, s *sender, at sim.Time) {
	s.avail = at
	if s.standing != pacing {
		return
	}
	p := &n.ports[s.port]
	k := &n.nics[p.nic]
	i := int(s.place)
	k.paced.At(i).At = at
	k.paced.Fix(i)
	if k.paced.First().QP == q {
		switch {
		case p.waits:
		case at <= max(p.free, n.eng.Now()):
			n.kick(s.port, p)
		default:
			n.wakeLater(p, k)
		}
	}
}

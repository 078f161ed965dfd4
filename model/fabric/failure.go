package fabric

import (
	"fmt"

	"farflash/sim"
)

// Fail takes a link down at the given time, until until if that is later. No sender is informed of either: packets sent
// into it are lost, routing follows after Config.Convergence, and senders learn of losses by acknowledgements and
// timers alone.
func (n *Network) Fail(link int32, at, until sim.Time) error {
	switch {
	case link < 0 || int(link) >= len(n.graph.Links):
		return fmt.Errorf("no link %d; there are %d", link, len(n.graph.Links))
	case at < n.eng.Now():
		return fmt.Errorf("a link cannot fail at %v; it is %v already", at, n.eng.Now())
	}
	if n.failures == nil {
		n.failures = make([]int, len(n.graph.Links))
	}
	n.eng.Schedule(n.self, n.target, at, linkDown, uint32(link))
	if until > at {
		n.eng.Schedule(n.self, n.target, until, linkUp, uint32(link))
	}
	return nil
}

// linkFails drops the packets on the link and those queued for it.
func (n *Network) linkFails(link int32) {
	n.failures[link]++
	if n.failures[link] > 1 {
		return
	}
	for _, pi := range [...]int32{n.PortOf(link, true), n.PortOf(link, false)} {
		p := &n.ports[pi]
		p.down = true
		own, other := n.of(p.node), n.of(n.ports[p.peer].node)
		for p.wire.N > 0 {
			x := p.wire.Pop().x
			other.lose(pi, p, &x)
		}
		for p.frames.N > 0 {
			p.takeFrame()
		}
		for c := range uint8(MaxClasses) {
			l := n.lane(pi, c)
			for l.waiting.N > 0 {
				x := own.chunks.Pop(&l.waiting)
				l.out -= int64(x.size)
				if !p.host && c > 0 {
					// The packet's arrival port gets its space back, which may resume that port's sender.
					own.release(&n.nodes[p.node], x.in, int64(x.size))
				}
				own.lose(pi, p, &x)
			}
			// Pauses end on both sides of the link, because neither a refresh nor a resume frame can cross it.
			if l.off {
				l.off = false
				n.Counters.Resumes++
			}
			if p.paused>>c&1 != 0 {
				own.unpause(pi, p, c)
			}
			// A NIC's bits stay: they belong to its queue pairs, which send on into the dead link.
			if !p.host {
				p.ready &^= 1 << c
			}
		}
	}
	n.changes++
	n.announce(link, withdrawn)
}

func (n *Network) lose(pi int32, p *port, x *packet) {
	if x.kind < pauseFrame {
		n.drop(pi, p, x, DropLinkDown)
	}
}

// linkMends brings a link up again.
func (n *Network) linkMends(link int32) {
	n.failures[link]--
	if n.failures[link] > 0 {
		return
	}
	ends := [...]int32{n.PortOf(link, true), n.PortOf(link, false)}
	for _, pi := range ends {
		n.ports[pi].down = false
	}
	for _, pi := range ends {
		n.beginPaused(pi, &n.ports[pi])
	}
	for _, pi := range ends {
		n.of(n.ports[pi].node).kick(pi, &n.ports[pi])
	}
	n.changes++
	n.announce(link, restored)
}

// Linked reports whether links that are up connect two hosts, whatever routing knows of it. It is slow on large
// networks.
func (n *Network) Linked(a, b int32) bool {
	if n.physical == nil || n.physicalAt != n.changes {
		down := make([]bool, len(n.graph.Links))
		for l := range down {
			down[l] = n.ports[n.PortOf(int32(l), true)].down
		}
		n.physical, n.physicalAt = n.graph.Route(down), n.changes
	}
	return n.physical.Reachable(a, b) && n.physical.Reachable(b, a)
}

// beginPaused lets the other end of a link that comes up start paused, in the classes that this port would pause.
// Packets that arrived before the failure may still fill the buffer behind the port, and without the pause there would
// be no space for those that arrive before a pause frame takes effect.
func (n *Network) beginPaused(pi int32, p *port) {
	if p.host || n.lossless == 0 || n.cfg.Pools != nil {
		return
	}
	sw := &n.nodes[p.node]
	for c := range uint8(MaxClasses) {
		l := n.lane(pi, c)
		over := max(0, l.in-int64(n.cfg.PFC.Reserve))
		if n.lossless>>c&1 == 0 || l.in == 0 && l.head == 0 || l.head == 0 && over < n.threshold(p, sw.pool-sw.shared) {
			continue
		}
		l.off = true
		n.Counters.Pauses++
		n.of(p.node).keepPaused(pi, p, c)
		other := &n.ports[p.peer]
		n.of(other.node).paused(p.peer, other, packet{kind: pauseFrame, class: c})
	}
}

// announce makes routing follow a link's change: withdrawn or restored.
func (n *Network) announce(link int32, kind uint16) {
	now, after := n.eng.Now(), n.cfg.Convergence
	switch {
	case after == 0:
		n.follow(link, kind)
	case after < sim.Forever-now:
		n.eng.Schedule(n.self, n.target, now+after, kind, uint32(link))
	}
}

// follow recomputes the paths of all queue pairs without or with a link. A queue pair left without a path keeps the one
// that it has, on which its packets are lost.
func (n *Network) follow(link int32, kind uint16) {
	if n.failed == nil {
		n.failed = make([]bool, len(n.graph.Links))
	}
	n.failed[link] = kind == withdrawn
	n.routes = n.graph.Route(n.failed)
	n.rerouted++
	for q := range n.senders {
		s := &n.senders[q]
		// Data and ACKs both need a path.
		if s.standing == finished || s.una == s.end && n.cfg.QueuePairs.Life == PerMessage || s.broken ||
			!n.Connected(s.src, s.dst) {
			continue
		}
		was := s.port
		n.findPaths(QP(q), n.routes)
		if s.port != was && !s.responds {
			n.of(s.src).move(int32(q), s, was)
		}
	}
}

// move transfers a queue pair from one of a host's ports to another.
func (n *Network) move(q int32, s *sender, was int32) {
	n.withdraw(s, was)
	s.standing = idle
	n.enrol(q, s)
	if n.more(s) {
		n.offer(q, s)
	}
}

// withdraw removes a queue pair from its NIC's turns or heap.
func (n *Network) withdraw(s *sender, port int32) {
	p := &n.ports[port]
	k := &n.nics[p.nic]
	switch s.standing {
	case pacing:
		k.paced.Remove(int(s.place))
	case ready:
		n.unready(p, k, s)
	}
}

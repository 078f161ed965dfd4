package fabric

import "farflash/sim"

// Fail takes a link down at a time and, if until is later, up again then.
func (n *Network) Fail(link int32, at, until sim.Time) {
	from := n.ports[n.PortOf(link, true)].inPort
	n.eng.Schedule(from, n.target, at, linkDown, uint32(link))
	if until > at {
		n.eng.Schedule(from, n.target, until, linkUp, uint32(link))
	}
}

// linkFails loses what is on the link and waits for it, and has queue pairs look for other
// ways.
func (n *Network) linkFails(link int32) {
	if n.failed == nil {
		n.failed = make([]bool, len(n.graph.Links))
	}
	if n.failed[link] {
		return
	}
	n.failed[link] = true
	for _, pi := range [...]int32{n.PortOf(link, true), n.PortOf(link, false)} {
		p := &n.ports[pi]
		p.down = true
		for p.wire.n > 0 {
			x := p.wire.pop().x
			n.lose(pi, p, &x)
		}
		for p.frames.n > 0 {
			p.frames.pop()
		}
		for c := range uint8(MaxClasses) {
			l := n.lane(pi, c)
			for l.waiting.n > 0 {
				x := l.waiting.pop()
				l.out -= int64(x.size)
				if !p.host && c > 0 {
					n.release(&n.nodes[p.node], x.in, int64(x.size))
				}
				n.lose(pi, p, &x)
			}
			if l.off {
				l.off = false
				n.Counters.Resumes++
			}
			if p.paused>>c&1 != 0 {
				n.unpause(pi, p, c)
			}
			if !p.host {
				p.ready &^= 1 << c
			}
		}
	}
	n.reroute()
}

func (n *Network) lose(pi int32, p *port, x *packet) {
	if x.kind < pauseFrame {
		n.drop(pi, p, x, DropLinkDown)
	}
}

// linkMends brings a link up again.
func (n *Network) linkMends(link int32) {
	if !n.failed[link] {
		return
	}
	n.failed[link] = false
	n.reroute()
	for _, pi := range [...]int32{n.PortOf(link, true), n.PortOf(link, false)} {
		p := &n.ports[pi]
		p.down = false
		n.kick(pi, p)
	}
}

// reroute finds the ways of queue pairs anew.
func (n *Network) reroute() {
	n.routes = n.graph.Route(n.failed)
	for q := range n.senders {
		s := &n.senders[q]
		if s.una == s.end && n.cfg.QueuePairs.Life == PerMessage {
			continue
		}
		was := s.port
		if err := n.findWays(QP(q)); err != nil {
			n.Counters.Stranded++
			continue
		}
		if s.port != was {
			n.move(int32(q), s, was)
		}
	}
}

// move takes a queue pair from one of a host's ports to another.
func (n *Network) move(q int32, s *sender, was int32) {
	p := &n.ports[was]
	k := &n.nics[p.nic]
	switch s.standing {
	case pacing:
		n.unpace(k, int(s.place))
	case ready:
		n.unready(p, k, s)
	}
	s.standing = idle
	n.enrol(q, s)
	if s.hasMore() {
		n.offer(q, s)
	}
}

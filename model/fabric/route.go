package fabric

import (
	"farflash/model/fabric/spread"
	"farflash/model/fabric/topo"
)

// Connected reports whether two hosts have paths in both directions.
func (n *Network) Connected(src, dst int32) bool {
	if uint(src) >= uint(len(n.nodes)) || uint(dst) >= uint(len(n.nodes)) {
		return false
	}
	return n.routes.Reachable(src, dst) && n.routes.Reachable(dst, src)
}

// known returns the routes between two hosts: those that routing has now or, where it has none, those with no link
// failed, because a path may come back.
func (n *Network) known(src, dst int32) *topo.Routes {
	if n.Connected(src, dst) {
		return n.routes
	}
	return n.intact
}

// findPaths computes a queue pair's forward and return paths, as the switches' hashes would choose them. Both must
// exist.
func (n *Network) findPaths(q QP, routes *topo.Routes) {
	s, r := &n.senders[q], &n.receive[q]
	k := n.keys[q]
	s.port = n.path(routes, int(q)*2, s.src, s.dst, k, s.class)
	r.port = n.path(routes, int(q)*2+1, s.dst, s.src, k.Back(), n.ackClass(s))
}

// path writes the steps of one direction and returns its first port. A path must exist.
func (n *Network) path(routes *topo.Routes, i int, from, to int32, k spread.Key, class uint8) int32 {
	first, hops := int32(-1), 0
	for hop, at := -1, from; at != to; hop++ {
		step, _ := n.step(routes, at, to, k, class)
		if hop < 0 {
			first = step & stepPort
		} else {
			for hop >= n.hopLimit {
				n.widen()
			}
			n.paths[i*n.hopLimit+hop] = step
			hops = hop + 1
		}
		at = n.ports[n.ports[step&stepPort].peer].node
	}
	// The steps past the end are filled with a host's port. A packet that a failed link has diverted to some switch
	// then never finds a port of that switch there.
	for hop := hops; hop < n.hopLimit; hop++ {
		n.paths[i*n.hopLimit+hop] = n.nics[0].port
	}
	return first
}

// step returns the port through which a node sends a queue pair's packets, and their class on the link behind it. The
// virtual channels of a class are the classes from it on.
func (n *Network) step(routes *topo.Routes, at, to int32, k spread.Key, class uint8) (int32, bool) {
	next := routes.Next(at, to)
	if len(next) == 0 {
		return 0, false
	}
	h := next[0]
	if len(next) > 1 {
		i := k.Hash(uint32(at)) % uint32(len(next))
		if n.cfg.Ways == Descending {
			i = uint32(len(next)) - 1 - i
		}
		h = next[i]
	}
	return n.nodes[at].first + int32(h.Port) | (int32(class)+int32(h.Channel))<<stepBits, true
}

// ackClass returns the traffic class of a queue pair's ACKs.
func (n *Network) ackClass(s *sender) uint8 {
	if n.cfg.Acks.Follow {
		return s.class
	}
	return uint8(n.cfg.Acks.Class)
}

// widen makes space for longer paths.
func (n *Network) widen() {
	was, limit := n.paths, n.hopLimit
	n.hopLimit = max(6, 2*limit)
	n.paths = make([]int32, len(n.senders)*2*n.hopLimit)
	for i := range 2 * len(n.senders) {
		row := n.paths[i*n.hopLimit : (i+1)*n.hopLimit]
		for hop := copy(row, was[min(i*limit, len(was)):min((i+1)*limit, len(was))]); hop < len(row); hop++ {
			row[hop] = n.nics[0].port
		}
	}
}

// stray returns the next step of a packet that was in flight when its queue pair was rerouted after a link failure.
func (n *Network) stray(at int32, x *packet) (int32, bool) {
	s, k := &n.senders[x.qp&slotMask], n.keys[x.qp&slotMask]
	to, class := s.dst, s.class
	if x.flags&answers != 0 {
		to, class, k = s.src, n.ackClass(s), k.Back()
	}
	return n.step(n.routes, at, to, k, class)
}

// choose returns the next step of a data packet whose path each switch chooses, if there is one.
func (n *Network) choose(at int32, x *packet) (int32, bool) {
	s := &n.senders[x.qp&slotMask]
	next := n.routes.Next(at, s.dst)
	if len(next) == 0 {
		return 0, false
	}
	i := 0
	if len(next) > 1 {
		i = n.chooseOf(at, x, s, next)
	}
	return n.nodes[at].first + int32(next[i].Port) | (int32(s.class)+int32(next[i].Channel))<<stepBits, true
}

// chooseOf returns the index in next of the hop that a packet takes.
func (n *Network) chooseOf(at int32, x *packet, s *sender, next []topo.Hop) int {
	k, hash := n.chooser, uint32(0)
	if k.Flowlets() {
		hash = n.keys[x.qp&slotMask].Hash(uint32(at))
		if port, ok := k.Again(at, hash, n.eng.Now()); ok {
			for i := range next {
				if next[i].Port == port {
					return i
				}
			}
		}
	}
	if k.Looks() {
		queues := k.Queues(at, len(next))
		for i, h := range next {
			queues[i] = n.waitAt(n.nodes[at].first+int32(h.Port), s.class+h.Channel)
		}
	}
	i := k.Choose(at, len(next))
	if k.Flowlets() {
		k.Remember(at, hash, next[i].Port)
	}
	return i
}

// waitAt ranks a port for a packet of a class by the bytes queued ahead of it. At equal queues an idle port precedes
// one that is sending; a paused port comes after all others.
func (n *Network) waitAt(pi int32, class uint8) int64 {
	p := &n.ports[pi]
	wait := n.lane(pi, class).out << 1
	if p.free > n.eng.Now() {
		wait++
	}
	if p.paused>>class&1 != 0 {
		wait += 1 << 56
	}
	return wait
}

package fabric

import (
	"math/bits"

	"farflash/model/fabric/topo"
)

// The addresses that switches hash: the IPv4 address of the host at node 256x + y is 11.x.y.1, and its queue pairs to
// another host use source ports from 10000 on. HPCC's simulator numbers them the same way, so that the choice of paths
// can be compared.
const (
	firstPort   = 10000
	servicePort = 100
)

// flowKey is the input of a switch's path hash.
type flowKey struct {
	src, dst uint32
	from, to uint16
}

// address returns the IPv4 address of a host's node.
func address(node int32) uint32 {
	return 0x0b000001 + uint32(node)/256<<16 + uint32(node)%256<<8
}

// hash is MurmurHash3 (x86, 32 bits; Appleby's public description) of the key's twelve bytes. HPCC's switches write its
// last step in each word as h + h<<2, which is h*5.
func (f flowKey) hash(seed uint32) uint32 {
	h := seed
	for _, k := range [...]uint32{f.src, f.dst, uint32(f.from) | uint32(f.to)<<16} {
		k *= 0xcc9e2d51
		k = bits.RotateLeft32(k, 15)
		k *= 0x1b873593
		h ^= k
		h = bits.RotateLeft32(h, 13)
		h = h*5 + 0xe6546b64
	}
	h ^= 12
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// back returns the key of the reverse direction.
func (f flowKey) back() flowKey { return flowKey{f.dst, f.src, f.to, f.from} }

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
	r.port = n.path(routes, int(q)*2+1, s.dst, s.src, k.back(), n.ackClass(s))
}

// path writes the steps of one direction and returns its first port. A path must exist.
func (n *Network) path(routes *topo.Routes, i int, from, to int32, k flowKey, class uint8) int32 {
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
func (n *Network) step(routes *topo.Routes, at, to int32, k flowKey, class uint8) (int32, bool) {
	next := routes.Next(at, to)
	if len(next) == 0 {
		return 0, false
	}
	h := next[0]
	if len(next) > 1 {
		i := k.hash(uint32(at)) % uint32(len(next))
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
		to, class, k = s.src, n.ackClass(s), k.back()
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
		hash = n.keys[x.qp&slotMask].hash(uint32(at))
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

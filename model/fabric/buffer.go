package fabric

import (
	"math/bits"

	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// The shared buffer. Each port and lossless class accounts for the packets that arrived through it: first against its
// reserve, then against the part shared by all, up to a threshold, then against its headroom. Exceeding the threshold
// pauses the sender; the headroom absorbs what arrives until the pause takes effect. Classes that are not lossless are
// refused when their queue would exceed the free space.

// admit charges an arriving packet to the buffer and reports whether there was space. It pauses the sender when the
// class reaches its threshold.
func (n *Network) admit(in int32, q *port, class uint8, to *classQueue, size int64) bool {
	sw := &n.nodes[q.node]
	free := sw.pool - sw.shared
	if n.lossless>>class&1 == 0 {
		if to.out+size > free {
			return false
		}
		sw.shared += size
		return true
	}
	l := n.lane(in, class)
	if n.cfg.Pools != nil {
		return n.admitPools(in, q, sw, l, class, size)
	}
	reserve := int64(n.cfg.PFC.Reserve)
	limit := n.threshold(q, free)
	over := max(0, l.in-reserve)
	if size+l.head > q.head && size+over > limit {
		return false
	}
	grown := l.in + size
	switch {
	case grown <= reserve:
		l.in = grown
	case grown-reserve > limit:
		l.head += size
	default:
		l.in = grown
		take := min(size, grown-reserve)
		sw.shared += take
		free -= take
	}
	if !l.off && (l.head > 0 || max(0, l.in-reserve) >= n.threshold(q, free)) {
		n.pause(in, q, l, class)
	}
	return true
}

// release returns the buffer space of a departing packet that was charged to from, and resumes the sender if its class
// has fallen far enough below the threshold.
func (n *Network) release(sw *node, from uint16, size int64) {
	in, class := sw.first+int32(from/MaxClasses), uint8(from%MaxClasses)
	if n.lossless>>class&1 == 0 {
		sw.shared -= size
		return
	}
	l := n.lane(in, class)
	if n.cfg.Pools != nil {
		n.releasePools(sw, l, size)
		return
	}
	reserve := int64(n.cfg.PFC.Reserve)
	head := min(l.head, size)
	shared := min(size-head, max(0, l.in-reserve))
	l.head -= head
	l.in -= size - head
	sw.shared -= shared
	if l.off {
		q := &n.ports[in]
		over := max(0, l.in-reserve)
		if l.head == 0 && (over == 0 || over+int64(n.cfg.PFC.ResumeOffset) <= n.threshold(q, sw.pool-sw.shared)) {
			n.resume(in, q, l, class)
		}
	}
}

// threshold returns how much of the shared part a port and class may occupy when free bytes of it are free.
func (n *Network) threshold(q *port, free int64) int64 {
	if n.cfg.PFC.Threshold.Dynamic {
		return min(free, free*int64(q.alpha)>>16)
	}
	return min(free, int64(n.cfg.PFC.Threshold.Size))
}

// setThreshold computes a port's alpha and headroom; nic is the rate of the hosts' links.
func (n *Network) setThreshold(p *port, nic units.BitRate, fastest map[units.BitRate]bytesIn) error {
	c := &n.cfg.PFC
	p.alpha = int32(float64(c.Alpha) * 65536)
	if c.AlphaByRate {
		for r := p.rate; r > nic && p.alpha < 65536; r /= 2 {
			p.alpha *= 2
		}
	}
	switch c.Headroom.Kind {
	case HeadroomAuto:
		x, ok := fastest[p.rate]
		if !ok {
			x = n.fastest(p)
			fastest[p.rate] = x
		}
		if x.time == 0 && !c.Enabled {
			break
		}
		if x.time == 0 {
			return units.Wrong("rounding",
				"in whole nanoseconds %d bytes take no time at %v, so no headroom suffices; use exact, or a fixed "+
					"pfc.headroom", x.bytes, p.rate)
		}
		p.head = n.headroom(p, x)
	case HeadroomHPCC:
		// In whole nanoseconds, as the reference does.
		p.head = int64(p.rate) * int64(p.delay/units.Nanosecond) / 8 / 1e9 * 3
	case HeadroomFixed:
		p.head = int64(c.Headroom.Size)
	}
	return nil
}

// bytesIn is a rate: bytes that a link carries in a time.
type bytesIn struct {
	bytes uint16
	time  sim.Time
}

// fastest returns the packet size with the highest effective rate on a port's link. Rounding down times on the wire
// makes that rate exceed the link's.
func (n *Network) fastest(p *port) bytesIn {
	most := uint16(n.largest())
	if p.perByte > 0 {
		return bytesIn{most, p.perByte * sim.Time(most)}
	}
	least := n.cfg.Header + n.cfg.Telemetry.Size + 1
	if n.cfg.Acks.Class > 0 || n.cfg.Acks.Follow {
		least = min(least, n.cfg.Acks.Size+n.cfg.Telemetry.AckSize)
	}
	best := bytesIn{uint16(least), n.onTheWire(uint16(least), p.rate)}
	for size := uint16(least); size <= most && best.time > 0; size++ {
		if t := n.onTheWire(size, p.rate); float64(size)*float64(best.time) > float64(best.bytes)*float64(t) {
			best = bytesIn{size, t}
		}
	}
	return best
}

// largest returns the size of the largest packet other than a pause frame.
func (n *Network) largest() units.Bytes {
	return max(n.cfg.Payload+n.cfg.Header+n.cfg.Telemetry.Size, n.cfg.Acks.Size+n.cfg.Telemetry.AckSize, n.cfg.CNP.Size)
}

// headroom returns the headroom with which no packet is lost: the most that can still arrive at a port after it has
// decided to pause a class.
//
//   - The pause frame waits for the packet or frame that is being sent and for one frame of each other class; then it
//     takes its own time on the wire, and the link's delay.
//   - During all that, and the delay back, the other end sends at the link's rate. The bytes already on the wire are
//     part of that, because the packet that caused the pause has just arrived in full.
//   - When the pause takes effect the other end may have just started a packet, which it finishes.
//   - The packet that caused the pause is itself charged to the headroom, which was empty before: otherwise the class
//     would already have been paused.
//
// One more packet is a margin for rounded times on the wire.
func (n *Network) headroom(p *port, fastest bytesIn) int64 {
	packet, frame := uint16(n.largest()), uint16(n.cfg.PFC.Frame)
	after := n.time(p, max(packet, frame)) + MaxClasses*n.time(p, frame) + p.delay + n.ports[p.peer].delay
	hi, lo := bits.Mul64(uint64(after), uint64(fastest.bytes))
	wire, rest := bits.Div64(hi, lo, uint64(fastest.time))
	if rest > 0 {
		wire++
	}
	return int64(wire) + 3*int64(packet)
}

// protected returns the number of lossless classes in use, each of which needs its headroom. Before any is in use,
// space is kept for the classes of one queue pair.
func (n *Network) protected() int64 {
	if n.lossless == 0 {
		return 0
	}
	return int64(max(bits.OnesCount8(n.lossless&n.used), n.graph.Channels, 1))
}

// setPools divides each switch's buffer into reserves, headroom and the shared part. It runs again whenever a class
// comes into use.
func (n *Network) setPools() error {
	var f units.Faults
	named := 3 // report at most three switches
	for i := range n.nodes {
		sw := &n.nodes[i]
		if n.graph.Nodes[i].Kind != topo.Switch {
			continue
		}
		kept, head := int64(0), int64(0)
		for pi := sw.first; pi < sw.first+sw.ports; pi++ {
			head += n.ports[pi].head * n.protected()
			kept += int64(n.cfg.PFC.Reserve) * n.protected()
		}
		sw.pool = int64(n.cfg.Buffer) - kept - head
		// A class that comes into use later takes its space from the shared part, as that is freed.
		sw.most = max(sw.pool, sw.shared)
		if sw.pool <= 0 && n.cfg.Pools == nil {
			f.Hold(false, "buffer",
				"%v is too small for %s, whose %d ports take %v for headroom and %v for reserves; use more than %v",
				n.cfg.Buffer, n.graph.Nodes[i].Name, sw.ports, units.Bytes(head), units.Bytes(kept),
				units.Bytes(head+kept))
			if named--; named == 0 {
				break
			}
		}
	}
	return f.Err()
}

// backlog returns the bytes waiting in all of a port's queues.
func (n *Network) backlog(pi int32) units.Bytes {
	sum := int64(0)
	for c := range uint8(MaxClasses) {
		if n.used>>c&1 != 0 {
			sum += n.lane(pi, c).out
		}
	}
	return units.Bytes(sum)
}

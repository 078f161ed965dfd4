package fabric

import (
	"errors"
	"fmt"
	"math/bits"

	"farflash/fabric/topo"
	"farflash/units"
)

// The shared buffer. Each port and lossless class accounts for what came in through it:
// first its reserve, then the part shared by all, up to a threshold, then its headroom. What
// goes beyond the threshold makes the port pause; the headroom takes what
// arrives until the pause has taken effect. Classes that are not lossless are
// refused where their queue would exceed what is free.

// admit accounts for a packet that comes in, or refuses it.
func (n *Network) admit(in int32, q *port, class uint8, to *lane, size int64) bool {
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

// release gives back what a packet took that came in as from says and leaves, and lets
// go on whom it makes room for.
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

// threshold is what a port and class may take of the shared part while so much of it is
// free.
func (n *Network) threshold(q *port, free int64) int64 {
	if n.cfg.PFC.Threshold.Dynamic {
		return min(free, free*q.alpha>>16)
	}
	return min(free, int64(n.cfg.PFC.Threshold.Size))
}

// setThreshold computes a port's alpha and headroom; nic is the hosts' rate.
func (n *Network) setThreshold(p *port, nic units.BitRate) {
	c := &n.cfg.PFC
	p.alpha = int64(float64(c.Alpha) * 65536)
	if c.AlphaByRate {
		for r := p.rate; r > nic && p.alpha < 65536; r /= 2 {
			p.alpha *= 2
		}
	}
	switch c.Headroom.Kind {
	case HeadroomAuto:
		p.head = n.headroom(p)
	case HeadroomHPCC:
		// In whole nanoseconds, as the reference computes it.
		p.head = int64(p.rate) * int64(p.delay/units.Nanosecond) / 8 / 1e9 * 3
	case HeadroomFixed:
		p.head = int64(c.Headroom.Size)
	}
}

// headroom is what may still arrive at a port after it has decided to pause a class, so
// that none of it is lost:
//
//   - the pause frame waits for the packet that is being sent, and for a frame of
//     each other class; then it takes its own time, and the link's delay;
//   - the other end may just have begun a packet, which it finishes;
//   - during all that, and the delay back, it sends at the link's rate;
//   - the packet that caused the pause is itself accounted to the headroom, and the one
//     behind it may be on the wire in part.
func (n *Network) headroom(p *port) int64 {
	packet := int64(max(n.cfg.Payload+n.cfg.Header+n.cfg.Telemetry.Size, n.cfg.Acks.Size+n.cfg.Telemetry.AckSize, n.cfg.CNP.Size))
	hi, lo := bits.Mul64(uint64(p.rate), uint64(2*p.delay))
	wire, rest := bits.Div64(hi, lo, 8*uint64(units.Second))
	if rest > 0 {
		wire++
	}
	return int64(wire) + 4*packet + (MaxClasses+1)*int64(n.cfg.PFC.Frame)
}

// protected is how many lossless classes are in use: each needs its headroom.
func (n *Network) protected() int64 {
	return int64(bits.OnesCount8(n.lossless & n.used))
}

// setPools divides each switch's buffer. It is done again when a class comes into use.
func (n *Network) setPools() error {
	var errs []error
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
		if sw.pool <= 0 {
			errs = append(errs, fmt.Errorf("buffer: %v is too small for %s, whose %d ports take %v for headroom and %v for reserves; use more than %v",
				n.cfg.Buffer, n.graph.Nodes[i].Name, sw.ports, units.Bytes(head), units.Bytes(kept), units.Bytes(head+kept)))
			if len(errs) == 3 {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// backlog is what waits in all of a port's queues.
func (n *Network) backlog(pi int32) units.Bytes {
	sum := int64(0)
	for c := range uint8(MaxClasses) {
		if n.used>>c&1 != 0 {
			sum += n.lane(pi, c).out
		}
	}
	return units.Bytes(sum)
}

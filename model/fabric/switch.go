package fabric

import (
	"farflash/model/fabric/cc"
	"farflash/numeric/units"
)

// A queue pair's path is a list of steps. A step has a switch's output port in its low stepBits, and above them the
// packets' class on the link behind that port.
const (
	stepBits = 26
	stepPort = 1<<stepBits - 1
)

// forward routes a packet that arrived at a switch through port in, admits it to the buffer and queues it.
func (n *Network) forward(in int32, q *port, x packet) {
	path := int(x.qp&slotMask) * 2
	if x.flags&answers != 0 {
		path++
	}
	// A diverted packet can outrun its path. The step that it reads then belongs to another node, so it is rerouted.
	step := n.paths[path*n.hopLimit+min(int(x.hop), n.hopLimit-1)]
	choose := n.chooser != nil && x.kind == dataPacket
	if choose || n.failed != nil && n.ports[step&stepPort].node != q.node {
		// The path is chosen at each switch, or a link failure changed it while the packet was in flight.
		ok := false
		if choose {
			step, ok = n.choose(q.node, &x)
		} else {
			step, ok = n.stray(q.node, &x)
		}
		if !ok {
			n.drop(in, q, &x, DropNoRoute)
			return
		}
	}
	out := step & stepPort
	o := &n.ports[out]
	if o.down {
		n.drop(in, q, &x, DropNoRoute)
		return
	}
	x.hop++
	// Class 0, control traffic and trimmed headers, does not use the buffer.
	if x.class != 0 {
		// The packet is charged to the class it arrived with, because that is the class to pause.
		x.in = uint16(in-n.nodes[q.node].first)*MaxClasses + uint16(x.class)
		class := uint8(step >> stepBits)
		if to := n.lane(out, class); !n.fits(&x, to) {
			n.trim(&x)
			class = 0
		} else if !n.admit(in, q, x.class, to, int64(x.size)) {
			if n.lossless>>x.class&1 == 0 {
				n.drop(out, o, &x, DropBuffer) // counted at the output queue, which caused it
			} else {
				n.drop(in, q, &x, DropBuffer)
			}
			return
		}
		x.class = class
	}
	l := n.lane(out, x.class)
	l.out += int64(x.size)
	l.most = max(l.most, uint32(l.out))
	n.chunks.Push(&l.waiting, &x)
	o.ready |= 1 << x.class
	switch {
	case o.waits:
	case o.free <= n.eng.Now():
		n.serveSwitch(out, o)
	case o.paused>>x.class&1 == 0: // otherwise unpause kicks the port
		n.later(out, o)
	}
}

// serveSwitch sends the next packet of a switch's port.
func (n *Network) serveSwitch(pi int32, p *port) {
	var x packet
	held := false // x occupies buffer space
	if p.urgent {
		x = p.takeFrame()
	} else {
		open := p.ready &^ p.paused
		if open == 0 {
			return
		}
		class := n.pick(p, open)
		l := n.lane(pi, class)
		x = n.chunks.Pop(&l.waiting)
		if l.waiting.N == 0 {
			p.ready &^= 1 << class
		}
		l.out -= int64(x.size)
		if n.rivals {
			p.deficit[class] -= int32(x.size)
		}
		if class != 0 {
			held = true
			// Marking happens on departure, by the queue that remains.
			if n.cfg.ECN.Enabled && x.kind == dataPacket && l.out > p.kmin && n.marks(p, l.out) {
				x.flags |= ceMark
				p.stats.marks++
			}
		}
		if x.note != 0 && x.kind == dataPacket {
			n.telemetry(pi, p, &x)
		}
	}
	// PINT's meter must see every packet. telemetry has updated it for those with a note.
	if p.meter != nil && (x.note == 0 || x.kind != dataPacket) {
		p.meter.Pass(n.eng.Now(), units.Bytes(x.size))
	}
	n.transmit(pi, p, x)
	if held {
		// Claim the wire before freeing the buffer: release may send a resume frame through this same port.
		n.release(&n.nodes[p.node], x.in, int64(x.size))
	}
	if p.urgent || p.ready&^p.paused != 0 {
		n.later(pi, p)
	}
}

// marks decides whether to mark a packet that leaves queue bytes behind it, queue > kmin: RED, linear from 0 at kmin to
// pmax at kmax.
func (n *Network) marks(p *port, queue int64) bool {
	if queue > p.kmax {
		return true
	}
	u := 0.0
	if n.draws != nil {
		u = n.draws.Next()
	} else {
		u = p.random.Float64()
	}
	return u < p.pmax*float64(queue-p.kmin)/float64(p.kmax-p.kmin)
}

// setMarking computes a port's marking thresholds.
func (n *Network) setMarking(p *port) {
	e := &n.cfg.ECN
	if !e.Enabled {
		return
	}
	// Thresholds scale with the port's rate; the entries of Ports are taken as they are.
	p.kmin = int64(float64(e.Kmin) * (float64(p.rate) / float64(e.Rate)))
	p.kmax = int64(float64(e.Kmax) * (float64(p.rate) / float64(e.Rate)))
	p.pmax = float64(e.Pmax)
	for _, x := range e.Ports {
		if x.Rate == p.rate {
			p.kmin, p.kmax, p.pmax = int64(x.Kmin), int64(x.Kmax), float64(x.Pmax)
		}
	}
}

// telemetry updates a packet's telemetry record as it leaves a switch.
func (n *Network) telemetry(pi int32, p *port, x *packet) {
	if n.wants.PINT {
		n.notes.Raise(x.note,
			p.meter.Update(n.eng.Now(), units.Bytes(x.size), n.backlog(pi), p.rate, n.longest, n.codec, &p.random))
	}
	if n.wants.INT {
		hop := cc.Hop{Time: n.eng.Now(), Bytes: p.bytes, Queue: n.backlog(pi), Rate: p.rate}
		if n.cfg.Telemetry.Multiple > 0 {
			hop = cc.Quantise(hop, n.cfg.Telemetry.Multiple)
		}
		n.notes.Add(x.note, hop, pi)
	}
}

package fabric

import (
	"fmt"
	"math"
	"math/bits"

	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// Drop is a lost packet.
type Drop struct {
	At     sim.Time
	Port   int32 // the port it arrived on, or was to leave by
	QP     QP    // -1 for a pause frame
	Reason DropReason
}

func (n *Network) drop(pi int32, p *port, x *packet, why DropReason) {
	n.Counters.Drops[why]++
	p.stats.drops++
	if x.kind == dataPacket {
		n.Counters.Lost += uint64(n.payload(x))
	}
	n.notes.Give(x.note)
	d := Drop{At: n.eng.Now(), Port: pi, QP: QP(x.qp & slotMask), Reason: why}
	if x.kind >= pauseFrame {
		d.QP = -1
	}
	n.OnDrop.Fire(d)
}

// payload returns the payload of a data packet in bytes.
func (n *Network) payload(x *packet) units.Bytes {
	if x.flags&trimmed != 0 {
		return 0
	}
	return units.Bytes(x.size) - n.cfg.Header - n.cfg.Telemetry.Size
}

// Bytes estimates the memory that a full network touches over and over.
func (n *Network) Bytes() int64 {
	lanes := int64(bits.OnesCount8(n.used | 1))
	return int64(len(n.ports))*(portBytes+lanes*laneBytes+chunkBytes) + int64(len(n.nics))*pairBytes
}

// Sizes in bytes, with 8-byte words, of a port, a class queue, a chunk of a queue, and a queue pair with its message.
const (
	portBytes, laneBytes, chunkBytes = 320, 48, 32 * 24
	pairBytes                        = 384
)

// OneSequence reports whether one random sequence prevents division.
func (n *Network) OneSequence() bool { return n.draws != nil }

// PortReport is a port's statistics.
type PortReport struct {
	Node, Peer int32
	Rate       units.BitRate
	Packets    uint64
	Bytes      uint64
	Taken      uint64 // new payload delivered to the host
	Pauses     uint64
	Paused     sim.Time // time during which at least one class was paused
	Longest    sim.Time
	Marks      uint64
	Drops      uint64
	MaxQueue   units.Bytes // maximum over the classes
	Queue      units.Bytes // currently queued, all classes
}

// Ports returns the number of ports. A link has two, its A's and its B's.
func (n *Network) Ports() int { return len(n.ports) }

// Port reports on a port.
func (n *Network) Port(pi int32) PortReport {
	exists("port", pi, len(n.ports))
	p := &n.ports[pi]
	r := PortReport{Node: p.node, Peer: n.ports[p.peer].node, Rate: p.rate, Packets: p.packets, Bytes: p.bytes,
		Taken:  p.taken,
		Pauses: p.stats.pauses, Paused: p.stats.paused, Longest: p.stats.longest, Marks: p.stats.marks,
		Drops: p.stats.drops, Queue: n.backlog(pi)}
	if p.stats.since >= 0 {
		r.Paused += n.now() - p.stats.since
		r.Longest = max(r.Longest, n.now()-p.stats.since)
	}
	for c := range uint8(MaxClasses) {
		if !p.host || c > 0 {
			r.MaxQueue = max(r.MaxQueue, units.Bytes(n.lane(pi, c).most))
		}
	}
	return r
}

// Busy returns how long a port has been sending up to at, a time that has been run to.
func (n *Network) Busy(pi int32, at sim.Time) sim.Time {
	exists("port", pi, len(n.ports))
	p := &n.ports[pi]
	return max(0, p.busy-max(0, p.free-at))
}

// LinksBusy returns how long a node's links have been sending, and receiving, up to at: the mean over its links.
func (n *Network) LinksBusy(node int32, at sim.Time) (sent, got sim.Time) {
	first, count := n.PortsOf(node)
	for pi := first; pi < first+count; pi++ {
		sent += n.Busy(pi, at)
		got += n.Busy(n.ports[pi].peer, at)
	}
	return sent / sim.Time(max(count, 1)), got / sim.Time(max(count, 1))
}

// Goodput returns the rate of full packets without headers over a node's links, each way.
func (n *Network) Goodput(node int32) (sum units.BitRate) {
	first, count := n.PortsOf(node)
	for pi := first; pi < first+count; pi++ {
		sum += units.BitRate(math.Ceil(float64(8*n.cfg.Payload) /
			n.onTheWire(uint16(n.cfg.Payload+n.cfg.Header), n.ports[pi].rate).Seconds()))
	}
	return sum
}

// LeastTrip returns a lower bound of a message's travel time between any two of the hosts, from its last byte's
// departure.
func (n *Network) LeastTrip(size units.Bytes, hosts []int32) sim.Time {
	last := uint16((max(size, 1)-1)%n.cfg.Payload + 1 + n.cfg.Header)
	up, down := sim.Forever/2, sim.Forever/2
	for _, host := range hosts {
		exists("node", host, len(n.nodes))
		for pi := n.nodes[host].first; pi < n.nodes[host].first+n.nodes[host].ports; pi++ {
			p, q := &n.ports[pi], &n.ports[n.ports[pi].peer]
			up, down = min(up, p.delay), min(down, q.delay+n.onTheWire(last, q.rate))
			if q.host {
				down = 0
			}
		}
	}
	return up + down
}

// PortOf returns the port of a link at its A or its B.
func (n *Network) PortOf(link int32, atA bool) int32 {
	exists("link", link, len(n.graph.Links))
	l := n.graph.Links[link]
	node := l.B
	if atA {
		node = l.A
	}
	return n.nodes[node].first + int32(n.routes.Ports().Number(link, atA))
}

// packetHops returns the number of packets put on wires, pause frames included.
func (n *Network) packetHops() uint64 {
	sum := uint64(0)
	for i := range n.ports {
		sum += n.ports[i].packets
	}
	return sum
}

// Check reports the first violation of a conservation law or invariant.
func (n *Network) Check() error {
	var flying, waiting uint64 // payload
	for i := range n.ports {
		p := &n.ports[i]
		for k := range p.wire.N {
			if x := p.wire.At(k).x; x.kind == dataPacket {
				flying += uint64(n.payload(&x))
			}
		}
		for c := range MaxClasses {
			l := &n.lanes[i*MaxClasses+c]
			sum := int64(0)
			n.pool(n.ports[i].node).Each(&l.waiting, func(x *packet) bool {
				sum += int64(x.size)
				if x.kind == dataPacket {
					waiting += uint64(n.payload(x))
				}
				return true
			})
			if sum != l.out {
				return fmt.Errorf("port %d class %d: %d bytes wait and %d are counted", i, c, sum, l.out)
			}
			if l.in < 0 || l.head < 0 {
				return fmt.Errorf("port %d class %d: %d bytes in the buffer, %d in the headroom", i, c, l.in, l.head)
			}
			if l.head > p.head && n.cfg.PFC.Headroom.Kind != HeadroomHPCC && n.cfg.Pools == nil {
				return fmt.Errorf("port %d class %d: %d bytes in a headroom of %d", i, c, l.head, p.head)
			}
		}
	}
	if got := n.Counters.Received + n.Counters.Wasted + n.Counters.Lost + flying + waiting; got != n.Counters.Sent {
		return fmt.Errorf("%d bytes sent, but %d received + %d of no use + %d lost + %d on wires + %d in queues = %d",
			n.Counters.Sent, n.Counters.Received, n.Counters.Wasted, n.Counters.Lost, flying, waiting, got)
	}
	for i := range n.nodes {
		sw := &n.nodes[i]
		if n.graph.Nodes[i].Kind != topo.Switch {
			continue
		}
		sum := int64(0)
		for pi := sw.first; pi < sw.first+sw.ports; pi++ {
			for c := range uint8(MaxClasses) {
				l := n.lane(pi, c)
				switch {
				case n.lossless>>c&1 == 0:
				case n.cfg.Pools != nil: // in includes the headroom there
					sum -= l.in
				default:
					sum -= l.in + l.head
				}
				if c > 0 {
					sum += l.out
				}
			}
		}
		if n.lossless == 0 {
			sum -= sw.shared
		}
		if sum != 0 {
			return fmt.Errorf("%s: the queues and the accounts of what came in differ by %d bytes",
				n.graph.Nodes[i].Name, sum)
		}
		if sw.shared < 0 || sw.shared > sw.most && n.cfg.Pools == nil {
			return fmt.Errorf("%s: %d of %d shared bytes are taken", n.graph.Nodes[i].Name, sw.shared, sw.pool)
		}
	}
	return nil
}

// Pairs returns the number of queue pairs.
func (n *Network) Pairs() int { return len(n.senders) }

// Rate returns a queue pair's rate, 0 before its first message.
func (n *Network) Rate(q QP) units.BitRate {
	exists("queue pair", int32(q), len(n.senders))
	if n.senders[q].last < 0 {
		return 0
	}
	lead, _ := n.lead(int32(q), &n.senders[q])
	return n.control[lead].Rate
}

// Progress returns a queue pair's payload acknowledged in order, and in flight.
func (n *Network) Progress(q QP) (acked, flight uint64) {
	exists("queue pair", int32(q), len(n.senders))
	_, s := n.lead(int32(q), &n.senders[q])
	acked, next := n.progress(s)
	return acked, next - acked
}

// Look sets the time that figures count up to, which has been run to.
func (n *Network) Look(at sim.Time) { n.at = at }

// Node returns the node of a port.
func (n *Network) Node(pi int32) int32 {
	exists("port", pi, len(n.ports))
	return n.ports[pi].node
}

// PortsOf returns a node's first port and their number; they are consecutive.
func (n *Network) PortsOf(node int32) (first, count int32) {
	exists("node", node, len(n.nodes))
	return n.nodes[node].first, n.nodes[node].ports
}

// PortNumber returns a port's number at its node, from 0.
func (n *Network) PortNumber(pi int32) int {
	exists("port", pi, len(n.ports))
	return int(pi - n.nodes[n.ports[pi].node].first)
}

// PausedNow returns the number of current pauses, over all ports and classes.
func (n *Network) PausedNow() uint64 {
	sum := uint64(0)
	for i := range n.ports {
		sum += uint64(bits.OnesCount8(n.ports[i].paused))
	}
	return sum
}

// Endless counts messages that never complete.
type Endless struct {
	// Broken counts those whose queue pair has given up.
	Broken int
	// Hung counts those whose queue pair has no packet to send, none in flight, and no timer running for it.
	Hung int
}

// Endless counts messages that will never be acknowledged; Hung is exact once the network is idle.
func (n *Network) Endless() Endless {
	moving := map[uint32]bool{}
	for i := range n.ports {
		w := &n.ports[i].wire
		for k := range w.N {
			moving[w.At(k).x.qp&slotMask] = true
		}
	}
	for i := range n.lanes {
		n.pool(n.ports[i/MaxClasses].node).Each(&n.lanes[i].waiting, func(x *packet) bool {
			moving[x.qp&slotMask] = true
			return true
		})
	}
	var e Endless
	for q := range n.senders {
		s := &n.senders[q]
		if s.una == s.end ||
			!s.broken && (s.timing || s.waits || s.hasMore() || moving[uint32(q)] || n.awaited(q)) {
			continue
		}
		for m := s.oldest; m >= 0; m = n.messages[m].next {
			if s.broken {
				e.Broken++
			} else {
				e.Hung++
			}
		}
	}
	return e
}

package fabric

import (
	"fmt"
	"math"
	"math/bits"

	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// Counters are sums over the whole network.
type Counters struct {
	Posted, Completed uint64 // messages
	PostedBytes       uint64
	Sent              uint64 // payload handed to links by hosts, repetitions included
	Received          uint64 // payload that came in order, or was kept for it
	Wasted            uint64 // payload that came and was of no use: repeated, or out of order
	Lost              uint64 // payload dropped on the way
	Acks, Nacks       uint64
	Duplicates        uint64
	Trimmed           uint64 // data packets whose payload was cut off
	Overtaken         uint64 // data packets that came before one that was sent earlier
	Reordered         uint64 // by how many packet numbers at most
	Marked            uint64 // data packets that arrived with a congestion mark
	CNPsSent, CNPs    uint64
	Pulls             uint64 // sent by receivers
	Retransmits       uint64 // packets
	Timeouts          uint64
	Pauses, Resumes   uint64 // decisions of switches
	Paused, Unpaused  uint64 // their effects
	Refreshes, Frames uint64
	Storms, Deadlocks uint64 // ports that stayed paused for too long, and circles of them that wait for each other
	Drops             [dropReasons]uint64
	Stranded          uint64 // queue pairs that a link failure left without a path
	Events            uint64 // handled
}

// DropReason is why a packet was lost.
type DropReason uint8

// The reasons.
const (
	DropBuffer    DropReason = iota // a switch had no room
	DropCorrupted                   // on a lossy link
	DropNoRoute                     // towards a link that is down
	DropLinkDown                    // on or before a link that went down
	dropReasons
)

var dropNames = [...]string{"no room in the buffer", "corrupted on the link", "no way to go", "the link went down"}

// String says it in words.
func (r DropReason) String() string { return dropNames[r] }

// Drop is a lost packet.
type Drop struct {
	At     sim.Time
	Port   int32 // that it came in through, or was to leave through
	QP     QP    // -1 is none: a pause frame
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

// payload is what a data packet carries of its message.
func (n *Network) payload(x *packet) units.Bytes {
	if x.flags&trimmed != 0 {
		return 0
	}
	return units.Bytes(x.size) - n.cfg.Header - n.cfg.Telemetry.Size
}

// add adds another's counts.
func (c *Counters) add(o *Counters) {
	for _, x := range [...][2]*uint64{
		{&c.Posted, &o.Posted}, {&c.Completed, &o.Completed}, {&c.PostedBytes, &o.PostedBytes}, {&c.Sent, &o.Sent},
		{&c.Received, &o.Received},
		{&c.Wasted, &o.Wasted}, {&c.Lost, &o.Lost}, {&c.Acks, &o.Acks}, {&c.Nacks, &o.Nacks},
		{&c.Duplicates, &o.Duplicates}, {&c.Marked, &o.Marked},
		{&c.CNPsSent, &o.CNPsSent}, {&c.Pulls, &o.Pulls}, {&c.CNPs, &o.CNPs}, {&c.Retransmits, &o.Retransmits},
		{&c.Timeouts, &o.Timeouts}, {&c.Pauses, &o.Pauses},
		{&c.Resumes, &o.Resumes}, {&c.Paused, &o.Paused}, {&c.Unpaused, &o.Unpaused}, {&c.Refreshes, &o.Refreshes},
		{&c.Frames, &o.Frames},
		{&c.Storms, &o.Storms}, {&c.Deadlocks, &o.Deadlocks}, {&c.Stranded, &o.Stranded},
		{&c.Overtaken, &o.Overtaken}, {&c.Trimmed, &o.Trimmed}, {&c.Events, &o.Events},
	} {
		*x[0] += *x[1]
	}
	c.Reordered = max(c.Reordered, o.Reordered)
	for i := range c.Drops {
		c.Drops[i] += o.Drops[i]
	}
}

// DropCount is how many packets were lost, for all reasons.
func (c *Counters) DropCount() uint64 {
	sum := uint64(0)
	for _, d := range c.Drops {
		sum += d
	}
	return sum
}

// Bytes is about how much memory is touched again and again while the network is full: ports, their classes in use,
// and the queue pair that each host sends on.
func (n *Network) Bytes() int64 {
	lanes := int64(bits.OnesCount8(n.used | 1))
	return int64(len(n.ports))*(portBytes+lanes*laneBytes+chunkBytes) + int64(len(n.nics))*pairBytes
}

// What a port, its class, a chunk of its queue, and a queue pair with its message take, in bytes where a word has
// eight.
const (
	portBytes, laneBytes, chunkBytes = 320, 48, 32 * 24
	pairBytes                        = 368
)

// OneSequence reports whether all random numbers are of one sequence, so that the network cannot be divided.
func (n *Network) OneSequence() bool { return n.draws != nil }

// PortReport is what a port has done.
type PortReport struct {
	Node, Peer int32
	Rate       units.BitRate
	Packets    uint64
	Bytes      uint64
	Taken      uint64 // payload that came to the host here and was new to it
	Pauses     uint64
	Paused     sim.Time // in which at least one class was paused
	Longest    sim.Time
	Marks      uint64
	Drops      uint64
	MaxQueue   units.Bytes // of any one class
	Queue      units.Bytes // now, all classes
}

// Ports is how many ports there are; a link has two, its A's and its B's.
func (n *Network) Ports() int { return len(n.ports) }

// Port reports on a port.
func (n *Network) Port(pi int32) PortReport {
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

// Busy is how long a port has been sending up to a time that the network has been run to: what it has not sent by
// then does not count.
func (n *Network) Busy(pi int32, at sim.Time) sim.Time {
	p := &n.ports[pi]
	return max(0, p.busy-max(0, p.free-at))
}

// LinksBusy is how long a node's links have been sending, and receiving, up to a time that the network has been run
// to, on average over its links.
func (n *Network) LinksBusy(node int32, at sim.Time) (sent, got sim.Time) {
	first, count := n.PortsOf(node)
	for pi := first; pi < first+count; pi++ {
		sent += n.Busy(pi, at)
		got += n.Busy(n.ports[pi].peer, at)
	}
	return sent / sim.Time(max(count, 1)), got / sim.Time(max(count, 1))
}

// Goodput is what a node's links together carry of messages at most, in each direction: full packets, without their
// headers.
func (n *Network) Goodput(node int32) (sum units.BitRate) {
	first, count := n.PortsOf(node)
	for pi := first; pi < first+count; pi++ {
		sum += units.BitRate(math.Ceil(float64(8*n.cfg.Payload) /
			n.onTheWire(uint16(n.cfg.Payload+n.cfg.Header), n.ports[pi].rate).Seconds()))
	}
	return sum
}

// LeastTrip is no longer than what a message takes between any two of some hosts beside the time in which it leaves
// the first: its last packet passes two links and a switch, or a link between hosts.
func (n *Network) LeastTrip(size units.Bytes, hosts []int32) sim.Time {
	last := uint16((max(size, 1)-1)%n.cfg.Payload + 1 + n.cfg.Header)
	up, down := sim.Forever/2, sim.Forever/2
	for _, host := range hosts {
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

// PortOf is the port of a link at its A or its B.
func (n *Network) PortOf(link int32, atA bool) int32 {
	l := n.graph.Links[link]
	node := l.B
	if atA {
		node = l.A
	}
	return n.nodes[node].first + int32(n.routes.Ports().Number(link, atA))
}

// PacketHops is how many packets, pause frames included, have been put on wires.
func (n *Network) PacketHops() uint64 {
	sum := uint64(0)
	for i := range n.ports {
		sum += n.ports[i].packets
	}
	return sum
}

// Check walks the network's invariants and laws of conservation and reports the first that
// does not hold.
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
				case n.cfg.Pools != nil: // whose headroom is a part of in
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

// Pairs is how many queue pairs there are.
func (n *Network) Pairs() int { return len(n.senders) }

// Rate is what a queue pair may send at, 0 before its first message.
func (n *Network) Rate(q QP) units.BitRate {
	if n.senders[q].last < 0 {
		return 0
	}
	lead, _ := n.lead(int32(q), &n.senders[q])
	return n.control[lead].Rate
}

// Progress is how much payload of a queue pair has been acknowledged in order since it was opened, and how much has
// been sent and has not.
func (n *Network) Progress(q QP) (acked, flight uint64) {
	_, s := n.lead(int32(q), &n.senders[q])
	acked, next := n.progress(s)
	return acked, next - acked
}

// Look has figures count up to a time that the engine has been run to, which may be later than its last
// event.
func (n *Network) Look(at sim.Time) { n.at = at }

// Node is whose a port is.
func (n *Network) Node(pi int32) int32 { return n.ports[pi].node }

// PortsOf are a node's first port and how many it has; they follow each other.
func (n *Network) PortsOf(node int32) (first, count int32) {
	return n.nodes[node].first, n.nodes[node].ports
}

// PortNumber is a port's number at its node, from 0.
func (n *Network) PortNumber(pi int32) int { return int(pi - n.nodes[n.ports[pi].node].first) }

// PausedNow is how many pauses last, over all ports and classes.
func (n *Network) PausedNow() uint64 {
	sum := uint64(0)
	for i := range n.ports {
		sum += uint64(bits.OnesCount8(n.ports[i].paused))
	}
	return sum
}

// Endless are messages that never end.
type Endless struct {
	// Severed are of queue pairs that have no way to their peer, or back, since a link failed.
	Severed int
	// Hung are of queue pairs that have nothing left to send, nothing on the way, and no timer that runs.
	Hung int
}

// Endless counts the messages that will never be acknowledged. Hung ones are counted right when a network has come to
// rest, severed ones at any time, as long as no link is mended.
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
			s.standing != stranded && (s.timing || s.hasMore() || moving[uint32(q)] || n.receive[q].unacked > 0) {
			continue
		}
		for m := s.oldest; m >= 0; m = n.messages[m].next {
			if s.standing == stranded {
				e.Severed++
			} else {
				e.Hung++
			}
		}
	}
	return e
}

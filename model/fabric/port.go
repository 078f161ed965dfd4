package fabric

import (
	"fmt"
	"math/bits"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/topo"
	"farflash/model/fabric/turns"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// port is one end of a link: it sends on the link and accounts for packets received from it. The fields that every
// packet touches come first, in two cache lines.
type port struct {
	free    sim.Time // when the wire can take the next packet
	perByte sim.Time // time of one byte on the wire, 0 if that is not a whole number of picoseconds
	delay   sim.Time // of the link, plus the switch latency if the other end is a switch
	wire    ring[flight]
	ready   uint8 // classes with packets (at a NIC: with queue pairs) ready to send
	paused  uint8 // classes that the other end has paused
	host    bool
	waits   bool // a sent event is pending, for when the wire becomes free
	down    bool
	lossy   bool // packets are corrupted at random on the link
	cross   bool // the other end is in another part
	urgent  bool // pause frames are waiting

	node    int32
	peer    int32 // the port at the other end
	nic     int32
	onWire  sim.Component // component of the arrivals; see inPort for that of all other events
	alpha   int32         // of the dynamic threshold, in 1/65536
	turn    uint8
	kmin    int64
	head    int64 // headroom of a lossless class
	packets uint64
	bytes   uint64
	busy    sim.Time // time spent sending, up to the end of the last packet

	frames   ring[packet] // pause frames to send, ahead of all packets
	kmax     int64
	meter    *cc.Meter
	taken    uint64 // new payload delivered to the host
	rate     units.BitRate
	deficit  [MaxClasses]int32
	random   rng.Stream
	corrupts rng.Stream
	pmax     float64
	loss     float64
	stats    portStats
}

// classQueue is one traffic class of a port: the queue of packets that leave through it, and the account of packets
// that came in through it and are still in the switch. It fits in a cache line.
type classQueue struct {
	waiting queue
	out     int64  // bytes waiting to leave
	in      int64  // bytes of arrivals held in the reserve and the shared part
	head    int64  // bytes of arrivals held in the headroom
	most    uint32 // maximum of out
	off     bool   // the other end has been asked to pause
}

// node is a host or a switch.
type node struct {
	first  int32 // its first port
	ports  int32
	pool   int64 // the shared part of the buffer
	shared int64 // bytes of it in use
	most   int64 // upper bound of shared: pool, or the bytes in use when a new class shrank the pool
}

// maxPorts is the number of ports that packet.in can distinguish.
const maxPorts = 1 << 16 / MaxClasses

// portStats are a port's statistics.
type portStats struct {
	pauses  uint64   // number of pauses, over all classes
	since   sim.Time // start of the current pause, -1 if there is none
	paused  sim.Time // time in which at least one class was paused
	marks   uint64
	drops   uint64
	longest sim.Time // longest pause
}

// build creates the ports, class queues and nodes of the graph.
func (n *Network) build() error {
	g := n.graph
	n.nodes = make([]node, len(g.Nodes))
	for _, l := range g.Links {
		n.nodes[l.A].ports++
		n.nodes[l.B].ports++
	}
	total := int32(0)
	for i := range n.nodes {
		if n.nodes[i].ports > maxPorts {
			return fmt.Errorf("%s has %d links; a switch has at most %d ports", g.Nodes[i].Name, n.nodes[i].ports,
				maxPorts)
		}
		n.nodes[i].first = total
		total += n.nodes[i].ports
	}
	n.ports = make([]port, total)
	n.lanes = make([]classQueue, int(total)*MaxClasses)
	at := make([]int32, len(n.nodes))
	hosts := units.BitRate(0)
	for i, l := range g.Links {
		a, b := n.nodes[l.A].first+at[l.A], n.nodes[l.B].first+at[l.B]
		at[l.A]++
		at[l.B]++
		n.ports[a].init(n, l.A, b, &g.Links[i])
		n.ports[b].init(n, l.B, a, &g.Links[i])
		if hosts == 0 && (g.Nodes[l.A].Kind == topo.Host || g.Nodes[l.B].Kind == topo.Host) {
			hosts = l.Rate
		}
	}
	twins := map[[2]int32]int{}
	heads := map[units.BitRate]bytesIn{}
	first, apart := n.eng.NewComponent(), sim.Component(2)
	for range 2*total - 1 {
		n.eng.NewComponent()
	}
	if n.inside = 1; n.cfg.Rounding == WholeNanoseconds {
		n.inside, apart = sim.Component(total), 1
	}
	for i := range n.ports {
		p := &n.ports[i]
		p.onWire = first + sim.Component(i)*apart
		name := n.streamName(int32(i), twins)
		p.random, p.corrupts = rng.NewStream(n.seed, name), rng.NewStream(n.seed, name+"/loss")
		if p.host {
			p.nic = int32(len(n.nics))
			k := nic{port: int32(i), wakeAt: -1}
			// The parts of a network share its senders, so it does not matter through which of them Placed reaches
			// them.
			k.paced.Placed = func(x *turns.Paced, at int) { n.senders[x.QP].place = int32(at) }
			n.nics = append(n.nics, k)
		}
		if n.wants.PINT && !p.host {
			p.meter = &cc.Meter{}
		}
		n.setMarking(p)
		if err := n.setThreshold(p, hosts, heads); err != nil {
			return err
		}
	}
	if n.cfg.PFC.Enabled {
		n.lossless = ^uint8(1)
		n.ends = make([]sim.Time, len(n.lanes))
		n.since = make([]sim.Time, len(n.lanes))
		n.reported = make([]sim.Time, len(n.lanes))
		n.ringed = make([]sim.Time, len(n.lanes))
		n.ignores = make([]sim.Time, len(n.lanes))
		n.looks = make([]sim.Time, len(n.lanes))
	}
	return n.setPools()
}

// streamName returns the name of a port's random stream. It consists of the port's two ends, so that adding a link
// elsewhere does not change it. twins counts parallel links.
func (n *Network) streamName(pi int32, twins map[[2]int32]int) string {
	p := &n.ports[pi]
	ends := [2]int32{p.node, n.ports[p.peer].node}
	k := twins[ends]
	twins[ends]++
	name := n.name + "/" + n.nodeName(ends[0]) + "->" + n.nodeName(ends[1])
	if k > 0 {
		name += fmt.Sprintf("[%d]", k)
	}
	return name
}

func (p *port) init(n *Network, node, peer int32, l *topo.Link) {
	p.node, p.peer, p.rate, p.delay = node, peer, l.Rate, l.Delay
	p.host = n.graph.Nodes[node].Kind == topo.Host
	if other := l.A + l.B - node; n.graph.Nodes[other].Kind == topo.Switch {
		p.delay += n.cfg.SwitchLatency
	}
	p.loss, p.lossy = l.Loss, l.Loss > 0
	if n.cfg.Rounding == Exact && 8*int64(units.Second)%int64(l.Rate) == 0 {
		p.perByte = 8 * units.Second / sim.Time(l.Rate)
	}
	p.stats.since = -1
}

// inPort returns the component that schedules all events of a port except arrivals. It follows directly the component
// of the arrivals, except with whole nanoseconds, where it comes after the arrivals of all ports: ns-3 runs events of
// one instant in the order in which they were scheduled, and a packet's arrival is scheduled when it leaves, a link's
// delay and a packet time ahead, while a port looks only a packet time ahead. Such ties are frequent there, and whether
// an ACK is handled before the packet that leaves in the same nanosecond decides where HPCC's round trips end.
func (n *Network) inPort(p *port) sim.Component { return p.onWire + n.inside }

// onTheWire returns the time that a packet of size bytes takes on a link, rounded to the nearest picosecond. ns-3
// computes it in double precision and truncates it to nanoseconds, which turns a whole number of nanoseconds into one
// less.
func (n *Network) onTheWire(size uint16, rate units.BitRate) sim.Time {
	hi, lo := bits.Mul64(uint64(size)*8, uint64(units.Second))
	if n.cfg.Rounding == WholeNanoseconds {
		hi, lo = bits.Mul64(uint64(size)*8, uint64(units.Second/units.Nanosecond))
		ns, _ := bits.Div64(hi, lo-1, uint64(rate))
		return sim.Time(ns) * units.Nanosecond
	}
	ps, rest := bits.Div64(hi, lo, uint64(rate))
	if rest >= uint64(rate)-rest {
		ps++
	}
	return sim.Time(ps)
}

func (n *Network) time(p *port, size uint16) sim.Time {
	if p.perByte > 0 {
		return p.perByte * sim.Time(size)
	}
	return n.onTheWire(size, p.rate)
}

// classQueue returns the state of a port's class.
func (n *Network) lane(pi int32, class uint8) *classQueue {
	return &n.lanes[int(pi)*MaxClasses+int(class)]
}

// transmit puts a packet on the wire, which must be free.
func (n *Network) transmit(pi int32, p *port, x packet) {
	took := n.time(p, x.size)
	p.free = n.eng.Now() + took
	p.busy += took
	p.packets++
	p.bytes += uint64(x.size)
	if n.OnSend != nil {
		n.reportSend(pi, p, &x)
	}
	at := p.free + p.delay
	if p.down {
		n.lose(pi, p, &x)
		return
	}
	if p.cross {
		n.cross(pi, at, x)
		return
	}
	n.fly(pi, at, x)
}

// fly schedules a packet's arrival at the given time. Arrivals on a wire are in order of time, so only the first needs
// an event.
func (n *Network) fly(pi int32, at sim.Time, x packet) {
	p := &n.ports[pi]
	if p.wire.N == 0 {
		n.eng.Schedule(p.onWire, n.target, at, arrive, uint32(pi))
	}
	p.wire.Push(flight{at, x})
}

// later schedules serve for when the wire becomes free, unless that is already scheduled.
func (n *Network) later(pi int32, p *port) {
	if !p.waits {
		p.waits = true
		n.eng.Schedule(n.inPort(p), n.target, p.free, sent, uint32(pi))
	}
}

// kick serves a port that may have something to send, now or as soon as its wire is free.
func (n *Network) kick(pi int32, p *port) {
	switch {
	case p.waits:
	case p.free > n.eng.Now():
		n.later(pi, p)
	default:
		n.serve(pi, p)
	}
}

// serve sends the next eligible packet, if any. The wire must be free.
func (n *Network) serve(pi int32, p *port) {
	switch {
	case p.host:
		n.serveNIC(pi, p)
	case !p.down:
		n.serveSwitch(pi, p)
	}
}

// arrived takes the first packet off a port's wire.
func (n *Network) arrived(pi int32) {
	p := &n.ports[pi]
	if p.wire.N == 0 || p.wire.First().at != n.eng.Now() {
		return // the event of a packet that was lost when the link failed
	}
	x := p.wire.Pop().x
	if p.wire.N > 0 {
		n.eng.Schedule(p.onWire, n.target, p.wire.First().at, arrive, uint32(pi))
	}
	in := p.peer
	q := &n.ports[in]
	if p.lossy && p.corrupts.Float64() < p.loss && (x.kind < pauseFrame || n.cfg.PFC.Quanta > 0) {
		// Without quanta a pause lasts until its resume frame arrives, so pause frames are never lost then: the pause
		// whose resume frame is lost would never end.
		n.drop(in, q, &x, DropCorrupted)
		return
	}
	if faults && n.loses(in, x) {
		n.drop(in, q, &x, DropCorrupted)
		return
	}
	switch {
	case x.kind >= pauseFrame:
		n.paused(in, q, x)
	case q.host:
		n.received(q, x)
	default:
		n.forward(in, q, x)
	}
}

// pick chooses which of the open classes a port serves next. open is not 0.
func (n *Network) pick(p *port, open uint8) uint8 {
	if n.cfg.Scheduler == Strict || open&1 != 0 || open&(open-1) == 0 {
		c := uint8(bits.TrailingZeros8(open))
		if n.rivals {
			p.deficit[c] = 0 // bandwidth used while no other class wants it is not charged
		}
		return c
	}
	// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995). A class keeps its turn while it has a positive
	// deficit counter.
	for {
		c := p.turn
		if open&(1<<c) != 0 {
			if p.deficit[c] > 0 {
				return c
			}
		} else {
			p.deficit[c] = 0
		}
		p.turn = (c + 1) % MaxClasses
		c = p.turn
		if open&(1<<c) != 0 {
			p.deficit[c] += int32(n.weight(c)) * int32(n.cfg.Payload+n.cfg.Header)
		}
	}
}

func (n *Network) weight(class uint8) int {
	if int(class) < len(n.cfg.Weights) {
		return n.cfg.Weights[class]
	}
	return 1
}

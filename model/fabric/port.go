package fabric

import (
	"fmt"
	"math/bits"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/topo"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// port is one end of a link: it sends on the link, and counts what came in from it. What each
// packet needs comes first, in two cache lines.
type port struct {
	free    sim.Time // when the wire can take the next packet
	perByte sim.Time // exact time of a byte on the wire, 0 if that is not whole
	delay   sim.Time // until a bit has come to the other end, and through it if that is a switch
	wire    ring[flight]
	ready   uint8 // classes with packets (a NIC's: queue pairs) that could go
	paused  uint8 // classes that the other end has paused
	host    bool
	waits   bool // an event is pending for when the wire is free
	down    bool
	lossy   bool // packets get corrupted on the way
	cross   bool // the other end is in another part
	urgent  bool // pause frames wait

	node    int32
	peer    int32 // the port at the other end
	nic     int32
	onWire  sim.Component // schedules arrivals; see inPort for what schedules everything else
	alpha   int32         // of the dynamic threshold, in 1/65536
	turn    uint8
	kmin    int64
	head    int64 // headroom of a lossless class
	packets uint64
	bytes   uint64
	busy    sim.Time // with packets, the last one to its end

	frames   ring[packet] // pause frames to send, before everything else
	kmax     int64
	meter    *cc.Meter
	taken    uint64 // payload that came to the host and was new to it
	rate     units.BitRate
	deficit  [MaxClasses]int32
	random   rng.Stream
	corrupts rng.Stream
	pmax     float64
	loss     float64
	stats    portStats
}

// lane is one traffic class of a port: the queue of what will leave through it, and the
// account of what came in through it and is still in the switch. It is a cache line.
type lane struct {
	waiting queue
	out     int64  // bytes waiting to leave
	in      int64  // bytes that came in, in the reserve and the shared part
	head    int64  // bytes that came in, in the headroom
	most    uint32 // greatest out
	off     bool   // the other end has been asked to pause
}

// node is a host or a switch.
type node struct {
	first  int32 // its first port
	ports  int32
	pool   int64 // the shared part of the buffer
	shared int64 // what of it is taken
	most   int64 // that can be: pool, or what was taken when a class came into use that made it less
}

// maxPorts is what a packet's in can tell apart.
const maxPorts = 1 << 16 / MaxClasses

// portStats is what a port has seen.
type portStats struct {
	pauses  uint64 // times that it was paused, over all classes
	since   sim.Time
	paused  sim.Time // time in which at least one class was paused
	marks   uint64
	drops   uint64
	longest sim.Time // pause
}

// build makes ports, lanes and nodes of the graph.
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
	n.lanes = make([]lane, int(total)*MaxClasses)
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
			// Parts of a network share its senders, so it makes no difference whose they are here.
			k.paced.Placed = func(x *paced, at int) { n.senders[x.qp].place = int32(at) }
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

// streamName is what a port's random stream is called: by its ends, so that a link that is
// added elsewhere leaves it as it is. twins counts links between the same two nodes.
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

// inPort is what schedules all that happens in a port but arrivals. It is next to what schedules them, but with whole
// nanoseconds, where it is behind that of all ports: ns-3 runs first what was scheduled first, and a packet's arrival
// is scheduled when it leaves, a link's delay and a packet time before, while a port looks no further ahead than a
// packet time. Such ties are frequent there, and whether an ACK comes before the packet that leaves in the same
// nanosecond decides where HPCC's round trips end.
func (n *Network) inPort(p *port) sim.Component { return p.onWire + n.inside }

// onTheWire is how long a packet takes on a link of a rate. ns-3 computes it in double
// precision and cuts it to nanoseconds, which makes even a whole number of them one
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

// lane is a port's class.
func (n *Network) lane(pi int32, class uint8) *lane {
	return &n.lanes[int(pi)*MaxClasses+int(class)]
}

// transmit puts a packet on the wire, which is free.
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
	if p.cross {
		n.cross(pi, at, x)
		return
	}
	n.fly(pi, at, x)
}

// fly has a packet arrive at a time, behind those that are on the wire.
func (n *Network) fly(pi int32, at sim.Time, x packet) {
	p := &n.ports[pi]
	if p.wire.N == 0 {
		n.eng.Schedule(p.onWire, n.target, at, arrive, uint32(pi))
	}
	p.wire.Push(flight{at, x})
}

// later has the port served when its wire is free, if it is not about to be.
func (n *Network) later(pi int32, p *port) {
	if !p.waits {
		p.waits = true
		n.eng.Schedule(n.inPort(p), n.target, p.free, sent, uint32(pi))
	}
}

// kick serves a port that may have got something to send.
func (n *Network) kick(pi int32, p *port) {
	switch {
	case p.waits:
	case p.free > n.eng.Now():
		n.later(pi, p)
	default:
		n.serve(pi, p)
	}
}

// serve sends the next packet, if there is one that may go. The wire is free.
func (n *Network) serve(pi int32, p *port) {
	switch {
	case p.down:
	case p.host:
		n.serveNIC(pi, p)
	default:
		n.serveSwitch(pi, p)
	}
}

// arrived takes the first packet off a port's wire.
func (n *Network) arrived(pi int32) {
	p := &n.ports[pi]
	if p.wire.N == 0 || p.wire.First().at != n.eng.Now() {
		return // what was on the wire when the link failed
	}
	x := p.wire.Pop().x
	if p.wire.N > 0 {
		n.eng.Schedule(p.onWire, n.target, p.wire.First().at, arrive, uint32(pi))
	}
	in := p.peer
	q := &n.ports[in]
	if p.lossy && p.corrupts.Float64() < p.loss && (x.kind < pauseFrame || n.cfg.PFC.Quanta > 0) {
		// A frame that lasts until it is taken back gets through: without quanta nothing would ever end
		// the pause whose resume frame is lost.
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

// pick chooses the class that a port serves next among those that could go.
func (n *Network) pick(p *port, open uint8) uint8 {
	if n.cfg.Scheduler == Strict || open&1 != 0 || open&(open-1) == 0 {
		c := uint8(bits.TrailingZeros8(open))
		if n.rivals {
			p.deficit[c] = 0 // what a class takes while no other wants it is not held against it
		}
		return c
	}
	// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995). A class keeps its turn
	// while its deficit lasts.
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

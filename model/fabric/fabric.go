// Package fabric models a RoCEv2 network packet by packet: NICs with queue pairs,
// store-and-forward switches with a shared buffer, and the links between them.
//
// The main types are Config, which describes NICs and switches in plain values, and
// Network, which runs on a sim.Engine. A host opens queue pairs (Open) and posts
// messages on them (Post); the network calls its Sink when a message has
// arrived and when it is acknowledged.
//
// A packet goes this way: the NIC (nic.go) takes it from a queue pair whose rate,
// window and class allow it; a link carries it (port.go); a switch (switch.go) admits
// it to its buffer (buffer.go), pauses the sender when that fills up (pfc.go), queues it and marks
// it as it leaves; the receiver (receiver.go) answers with ACK, NACK or CNP, and the sender
// (sender.go) retransmits and lets package cc set the rate.
//
// Speed decides the layout. Packets are values in rings. A link has one pending event
// however much is on it, a port one only while something waits. A queue pair's path is looked up
// once, when it is opened, and not at each switch. Rates are computed when they are asked for.
//
// It follows IEEE 802.1Qbb (PFC), RFC 3168 (ECN) and the InfiniBand specification's
// reliable connection as RoCEv2 uses it; the level of detail is that of the simulators
// HPCC (Li et al., SIGCOMM 2019) and ns3-rdma (Zhu et al., SIGCOMM 2015), whose deviations
// compat_hpcc.go and compat_ns3rdma.go alone know of.
//
// What it leaves out: the hosts' software and PCIe, cut-through switching, headers' contents,
// forwarding tables' sizes, and control traffic in the shared buffer (class 0 is never refused).
package fabric

import (
	"math/bits"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/note"
	"farflash/model/fabric/spread"
	"farflash/model/fabric/topo"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// QP is a queue pair's index, from 0.
type QP int32

// Message is one message and what became of it.
type Message struct {
	QP       QP
	Src, Dst int32  // nodes
	Port     uint16 // the UDP source port, by which switches tell queue pairs apart
	Size     units.Bytes
	// Posted is when the host asked for it, Begun when its first packet was sent, Delivered when the last
	// byte had arrived in order, Acked when the sender knew. Not yet is sim.Forever.
	Posted, Begun, Delivered, Acked sim.Time

	first   uint32 // number of its first packet
	packets uint32
	from    uint64 // position of its first byte in the queue pair's stream
	next    int32  // message after it on the queue pair, -1 if there is none
	over    ending
	reads   reading
	stands  uint32   // of an answer: the number behind its request's, which it acknowledges
	ideal   sim.Time // see Ideal; 0 is not computed yet
}

// ending is what is over about a message. When all is, its index is used again.
type ending uint8

const (
	forgotten  ending = 1 << iota // its owner will not ask for it
	superseded                    // nothing in the network refers to it
)

// Sink is called with what becomes of messages, in the network's time. It may post.
type Sink interface {
	// Delivered: all of the message has arrived at its destination.
	Delivered(m int32)
	// Acked: its sender knows so.
	Acked(m int32)
}

// Network is a simulated network. It belongs to the goroutine that runs its engine.
type Network struct {
	cfg    Config
	graph  *topo.Graph
	routes *topo.Routes
	intact *topo.Routes // with no link down
	seed   uint64
	name   string
	self   sim.Component
	eng    *sim.Engine
	target sim.Target
	sink   Sink
	alg    cc.Algorithm
	wants  cc.Wants
	codec  *cc.Codec
	draws  *rng.NS3Draws // if random is ns-3

	ports    []port
	lanes    []lane // MaxClasses for each port
	chunks   chunks // of the lanes' queues
	nodes    []node
	nics     []nic // for each host's port
	senders  []sender
	control  []cc.Sender // for each queue pair
	pulling  []pulling   // for each queue pair, where receivers pull
	receive  []receiver
	chooser  *spread.Chooser // of ways; nil is that each queue pair has one
	paths    []int32         // for each queue pair, hopLimit to and hopLimit from
	hopLimit int
	messages []Message
	spare    []int32             // messages that are over
	pairs    map[pair]QP         // the first between two hosts
	peerings map[pair]*peering   // of more than one
	pairSeen map[[2]int32]uint16 // queue pairs opened between two hosts, for their port numbers
	keys     []flowKey
	failed   []bool // links
	failures []int  // of each link, that have not been mended yet

	notes    note.Book
	ends     []sim.Time // of each lane's pause, unless it is refreshed
	since    []sim.Time // of each lane's pause
	ringed   []sim.Time // since when the lane was paused in the circle of waits that the watchdog has found last
	ignores  []sim.Time // until when each lane ignores pauses
	reported []sim.Time // since when the lane was paused that the watchdog has reported last
	looks    []sim.Time // when each lane that pauses is to refresh that
	lossless uint8      // classes that PFC protects
	used     uint8      // classes that queue pairs or ACKs use
	rivals   bool       // they are several, class 0 aside
	timeout  sim.Time
	longest  sim.Time // round trip
	bdp      units.Bytes
	signal   cc.Signal
	split    *split // the network runs in parts, or is one; nil is in one piece
	part     int32
	round    uint32      // which of the lists of crossings is written
	out      []crossings // to each part; nil is the whole
	poster   sim.Component
	planned  ring[planned] // messages, by time
	failure  error         // what ended the part
	at       sim.Time      // that figures are taken at
	reach    sim.Time      // no part runs further ahead of another
	grace    sim.Time      // after it, what is late of a queue pair that is done is of no use
	rest     sim.Time      // after it, its index is used again
	rerouted uint64        // times
	inside   sim.Component // from what schedules a port's arrivals to what schedules everything else in it
	dog      watchdog
	fault    func(in int32, x packet) bool // see invariants.go

	Counters Counters
	// OnSend is called for each packet that is put on a wire.
	OnSend sim.Probe[Sending]
	// OnPause is called for each pause and its end, as it takes effect at the paused port.
	OnPause sim.Probe[Pause]
	// OnDrop is called for each packet that is lost.
	OnDrop sim.Probe[Drop]
	// OnStuck is called for each port that stays paused for too long.
	OnStuck sim.Probe[Stuck]
	// OnRate is called for each change of a queue pair's rate or window.
	OnRate sim.Probe[RateChange]
	OnCNP  sim.Probe[int32] // called for each CNP received, with the receiving node
}

// RateChange is a queue pair's new rate or window, which hold until the call returns, and the round trip that was
// measured with it, 0 if none was.
type RateChange struct {
	At, RTT sim.Time
	QP      QP
	Sender  *cc.Sender
}

// pair is a source, a destination and a class, peering the persistent queue pairs of one.
type pair struct {
	src, dst int32
	class    uint8
}
type peering struct {
	qps  []QP
	turn int
}

// The kinds of the network's own events; arg is a port, queue pair or number.
const (
	arrive      uint16 = iota // the first flight of a port's wire has arrived
	sent                      // a port that has more to send is free
	wake                      // a NIC's paced queue pair may send
	adjust                    // a queue pair's congestion control asked to be called
	expire                    // a queue pair's retransmission timer
	refresh                   // a pause must be refreshed, or ends
	look                      // the watchdog looks
	notify                    // a CNP is due
	overdue                   // an ACK has been withheld for long enough
	pull                      // a host may pull again
	linkDown                  // a link fails
	linkUp                    // and is mended
	postPlanned               // what was planned for a part is due
)

// New makes a network of a checked graph. sink may be nil. name begins the names of its random streams.
func New(cfg Config, g *topo.Graph, eng *sim.Engine, sink Sink, seed uint64, name string) (*Network, error) {
	alg, err := cc.New(cfg.CongestionControl, seed)
	if err != nil {
		return nil, units.Within("congestion_control", err)
	}
	return NewUnder(alg, cfg, g, eng, sink, seed, name)
}

// NewUnder makes a network whose senders follow alg, which is its own, in the place of what the configuration names.
func NewUnder(alg cc.Algorithm, cfg Config, g *topo.Graph, eng *sim.Engine, sink Sink, seed uint64,
	name string) (*Network, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	routes, err := g.CheckedRoutes()
	if err != nil {
		return nil, err
	}
	n := &Network{cfg: cfg, graph: g, routes: routes, intact: routes, seed: seed, name: name, eng: eng, sink: sink,
		alg: alg, wants: alg.Wants(),
		pairs: map[pair]QP{}, peerings: map[pair]*peering{}, pairSeen: map[[2]int32]uint16{}}
	if err := n.check(); err != nil {
		return nil, err
	}
	n.target, n.self = eng.AddHandler(n), eng.NewComponent()
	n.notes = note.New(n.wants)
	if cfg.Random == NS3Random {
		n.draws = hpccDraws(seed, len(g.Links))
	}
	n.widen()
	if n.wants.PINT {
		if n.codec, err = cc.NewCodec(cfg.CongestionControl.PINT.LogBase); err != nil {
			return nil, err
		}
	}
	if cfg.Acks.Class > 0 && !cfg.Acks.Follow {
		n.use(uint8(cfg.Acks.Class))
	}
	if err := n.build(); err != nil {
		return nil, err
	}
	if cfg.LoadBalancing.Choice != spread.Hash {
		n.chooser = spread.New(cfg.LoadBalancing, len(g.Nodes), seed,
			func(i int) string { return name + "/" + n.nodeName(int32(i)) + "/ways" })
	}
	n.setTimes()
	n.setPatience()
	return n, nil
}

// channels is how many classes a queue pair goes through on its way.
func (n *Network) channels() int { return max(n.graph.Channels, 1) }

// use takes note that packets of a class will be sent and reports whether that is new.
func (n *Network) use(class uint8) bool {
	was := n.used
	n.used |= (1<<n.channels() - 1) << class
	n.rivals = bits.OnesCount8(n.used&^1) > 1
	return n.used != was
}

// check refuses what the configuration and the graph cannot do together.
func (n *Network) check() error {
	var f units.Faults
	if c, k := n.cfg.Acks.Class, n.channels(); c > 0 && c+k > MaxClasses && !n.cfg.Acks.Follow {
		f.Hold(false, "acks.class", "%d is not possible with %d virtual channels; use 0 to %d", c, k, MaxClasses-k)
	} else {
		f.Hold(1+k <= MaxClasses, "", "the network needs %d virtual channels; there are classes for %d", k,
			MaxClasses-1)
	}
	for i := range n.graph.Links {
		if l := &n.graph.Links[i]; l.Delay > maxDelay {
			f.Hold(false, "", "the link from %s to %s has a delay of %v; use at most %v", n.nodeName(l.A),
				n.nodeName(l.B), l.Delay, maxDelay)
			break
		}
	}
	return f.Err()
}

// maxDelay of a link: three times around the world.
const maxDelay = units.Second

// Handle is for the engine.
func (n *Network) Handle(e sim.Event) {
	n.Counters.Events++
	switch e.Kind {
	case arrive:
		n.arrived(int32(e.Arg))
	case sent:
		p := &n.ports[e.Arg]
		p.waits = false
		n.serve(int32(e.Arg), p)
	case wake:
		n.woken(int32(e.Arg))
	case adjust:
		n.adjusted(int32(e.Arg))
	case expire:
		n.expired(int32(e.Arg))
	case refresh:
		n.refreshed(int32(e.Arg))
	case notify:
		if r := &n.receive[e.Arg&slotMask]; r.tag == e.Arg && !n.buried(r) {
			n.notify(r, e.Arg)
		}
	case overdue:
		n.impatient(e.Arg)
	case pull:
		n.pull(int32(e.Arg))
	case look:
		n.Counters.Events-- // there is one a part
		n.looked()
	case linkDown:
		n.linkFails(int32(e.Arg))
	case linkUp:
		n.linkMends(int32(e.Arg))
	case postPlanned:
		n.Counters.Events--
		if n.failure = n.postDue(); n.failure != nil {
			n.eng.Stop()
		}
	}
	if checkEvery > 0 && n.Counters.Events%max(checkEvery, 1) == 0 {
		n.hold()
	}
}

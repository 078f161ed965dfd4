// Package fabric simulates a RoCEv2 network packet by packet: NICs with queue pairs, store-and-forward switches with a
// shared buffer, and the links between them.
//
// The main types are Config, which describes NICs and switches in plain values, and Network, which runs on a
// sim.Engine. A host opens queue pairs (Open) and posts messages on them (Post); the network calls its Sink when a
// message has arrived and when it is acknowledged.
//
// The model follows IEEE 802.1Qbb (PFC), RFC 3168 (ECN) and the InfiniBand specification's reliable connection as
// RoCEv2 uses it. Its level of detail is that of the simulators HPCC (Li et al., SIGCOMM 2019) and ns3-rdma (Zhu et
// al., SIGCOMM 2015); their deviations are confined to compat_hpcc.go and compat_ns3rdma.go.
//
// Not modelled: the hosts' software and PCIe, cut-through switching, header contents, forwarding table sizes, and
// control traffic in the shared buffer (class 0 is never refused).
package fabric

// A packet's path through the code: the NIC (nic.go) takes it from a queue pair whose rate, window and class allow it
// to send; a link carries it (port.go); a switch (switch.go) admits it to its buffer (buffer.go), pauses the upstream
// port when the buffer fills (pfc.go), queues it and marks it on departure; the receiver (receiver.go) replies with an
// ACK, NACK or CNP; the sender (sender.go) retransmits and lets package cc set the rate.
//
// The layout is chosen for speed. Packets are values in rings. A link has one pending event however many packets it
// carries, and a port has one only while packets wait. A queue pair's path is looked up once, when it is opened, rather
// than at each switch. Rates are computed on demand.

import (
	"errors"
	"math/bits"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/notes"
	"farflash/model/fabric/receives"
	"farflash/model/fabric/repair"
	"farflash/model/fabric/spread"
	"farflash/model/fabric/topo"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// QP is a queue pair's index, from 0.
type QP int32

// Message is one message and its timestamps.
type Message struct {
	QP       QP
	Src, Dst int32  // nodes
	Port     uint16 // the UDP source port, by which switches distinguish queue pairs
	Size     units.Bytes
	// Posted is when the host posted it, Begun when its first packet was sent, Delivered when its last byte had arrived
	// in order, Acked when the sender received the last ACK. sim.Forever means not yet.
	Posted, Begun, Delivered, Acked sim.Time

	first   uint32 // number of its first packet
	packets uint32
	from    uint64 // position of its first byte in the queue pair's stream
	next    int32  // the next message on the queue pair, -1 if there is none
	over    ending
	reads   reading
	stands  uint32   // of an answer: the PSN just past its request, which the answer acknowledges
	ideal   sim.Time // see Ideal; 0 until computed
}

// ending is a set of conditions on a message that is over. Once all of them hold, its index is reused.
type ending uint8

const (
	forgotten  ending = 1 << iota // its owner will not look it up again
	superseded                    // no state in the network refers to it
)

// Sink receives notifications synchronously, and may post.
type Sink interface {
	// Delivered reports that the whole message has arrived at its destination.
	Delivered(m int32)
	// Acked reports that the sender has received the acknowledgement of the whole message. An answer to an RDMA Read
	// may have none (setting.Answers), and counts as acknowledged when it is delivered.
	Acked(m int32)
}

// Network is a simulated network, for the goroutine of its engine.
type Network struct {
	cfg    Config
	graph  *topo.Graph
	routes *topo.Routes
	intact *topo.Routes // with no link failed
	// with the links that are up after that many changes
	physical            *topo.Routes
	physicalAt, changes uint64
	seed                uint64
	name                string
	self                sim.Component
	eng                 *sim.Engine
	target              sim.Target
	sink                Sink
	alg                 cc.Algorithm
	receives            receives.Book
	wants               cc.Wants
	codec               *cc.Codec
	draws               *rng.NS3Draws // shared sequence when random is ns-3

	ports    []port
	lanes    []classQueue // MaxClasses per port
	chunks   chunks       // storage of the class queues
	nodes    []node
	nics     []nic // one for each host port
	senders  []sender
	control  []cc.Sender   // one per queue pair
	pulling  []pulling     // one per queue pair, where receivers pull
	trips    []repair.Trip // one per queue pair, if timeouts follow round trips (adapts)
	receive  []receiver
	chooser  *spread.Chooser // picks a path per packet or flowlet; nil gives each queue pair a fixed path
	paths    []int32         // for each queue pair, hopLimit steps forward and hopLimit back
	hopLimit int
	messages []Message
	spare    []int32             // indexes of messages that are over, for reuse
	pairs    map[pair]QP         // the first queue pair between two hosts
	peerings map[pair]*peering   // of pairs with more than one
	pairSeen map[[2]int32]uint16 // number of queue pairs opened between two hosts, for their port numbers
	keys     []spread.Key
	failed   []bool // links that routing takes for failed; nil if it never did
	failures []int  // of each link: failures not yet mended

	notes    notes.Book
	ends     []sim.Time // of each class queue: when its pause ends unless refreshed
	since    []sim.Time // of each class queue: start of its pause
	ringed   []sim.Time // of each class queue: start of the pause last found in a cycle of waits, plus 1; 0 is none
	ignores  []sim.Time // of each class queue: until when it ignores pauses
	reported []sim.Time // of each class queue: start of the pause last reported by the watchdog, plus 1; 0 is none
	looks    []sim.Time // of each class queue that pauses its peer: when the pause is due for a refresh
	lossless uint8      // classes that PFC protects
	used     uint8      // classes that queue pairs or ACKs use
	rivals   bool       // more than one class is in use, not counting class 0
	timeout  sim.Time
	short    sim.Time // instead, with few packets in flight
	adapts   bool     // a queue pair's timeout is at least what its round trips make likely
	longest  sim.Time // the longest base round trip
	bdp      units.Bytes
	signal   cc.Signal
	split    *split // non-nil if the network is divided, in the whole and in its parts
	part     int32
	round    uint32      // which of the two crossing lists the part writes
	out      []crossings // one for each part; nil in the whole network
	poster   sim.Component
	planned  ring[planned] // messages in order of time
	failure  error         // the error that stopped the part
	at       sim.Time      // the time at which figures are taken
	reach    sim.Time      // no part runs further ahead of another than this
	grace    sim.Time      // stray packets of a finished queue pair are processed for this long
	rest     sim.Time      // the index of a finished queue pair is reused after this long
	rerouted uint64        // number of reroutes
	inside   sim.Component // offset from the component of a port's arrivals to that of its other events; see inPort
	dog      watchdog
	fault    func(in int32, x packet) bool // see invariants.go

	Counters Counters
	OnSend   sim.Probe[Sending] // OnSend is called for each packet put on a wire.
	// OnPause is called for each pause and resume, as it takes effect at the paused port.
	OnPause sim.Probe[Pause]
	OnDrop  sim.Probe[Drop] // OnDrop is called for each lost packet.
	// OnStuck is called for each port that stays paused longer than the watchdog's time.
	OnStuck sim.Probe[Stuck]
	OnRate  sim.Probe[RateChange] // OnRate is called for each change of a queue pair's rate or window.
	OnCNP   sim.Probe[int32]      // called for each CNP received, with the receiving node
}

// RateChange is a queue pair's new rate or window. Sender is valid during the call. RTT is measured, or 0.
type RateChange struct {
	At, RTT sim.Time
	QP      QP
	Sender  *cc.Sender
}

// pair identifies persistent queue pairs: source, destination and class. peering holds those of one pair.
type pair struct {
	src, dst int32
	class    uint8
}
type peering struct {
	qps  []QP
	turn int
}

// The kinds of the network's own events. The argument is a port, a queue pair or a number.
const (
	arrive      uint16 = iota // the first packet on a port's wire arrives
	sent                      // the wire of a port with more to send becomes free
	wake                      // a NIC's paced queue pair may send
	adjust                    // a queue pair's congestion control timer
	expire                    // a queue pair's retransmission timer
	refresh                   // a pause needs a refresh, or ends
	look                      // the watchdog's periodic look
	notify                    // a CNP is due
	overdue                   // an ACK has been withheld long enough
	pull                      // a host may pull again
	linkDown                  // a link fails
	linkUp                    // and comes up again
	withdrawn                 // routing has noticed that a link failed
	restored                  // and that it came up again
	postPlanned               // a planned message of a part is due
)

// New returns a network on graph g. sink may be nil. name prefixes its random streams.
func New(cfg Config, g *topo.Graph, eng *sim.Engine, sink Sink, seed uint64, name string) (*Network, error) {
	alg, err := cc.New(cfg.CongestionControl, seed)
	if err != nil {
		return nil, units.Within("congestion_control", err)
	}
	return NewUnder(alg, cfg, g, eng, sink, seed, name)
}

// NewUnder is New under alg, which the network then owns.
func NewUnder(alg cc.Algorithm, cfg Config, g *topo.Graph, eng *sim.Engine, sink Sink, seed uint64,
	name string) (*Network, error) {
	if alg == nil || g == nil || eng == nil {
		return nil, errors.New("fabric: the congestion control, the graph or the engine is nil")
	}
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
	n.notes = notes.New(n.wants)
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

// channels returns the number of classes that a queue pair's packets pass through on their path.
func (n *Network) channels() int { return max(n.graph.Channels, 1) }

// use marks a class as used and reports whether it is new.
func (n *Network) use(class uint8) bool {
	was := n.used
	n.used |= (1<<n.channels() - 1) << class
	n.rivals = bits.OnesCount8(n.used&^1) > 1
	return n.used != was
}

// check rejects combinations that the configuration and the graph do not support together.
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

// maxDelay bounds a link's delay: light in fibre goes more than three times around the world in it.
const maxDelay = units.Second

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
		n.Counters.Events-- // there is one per part
		n.looked()
	case linkDown:
		n.linkFails(int32(e.Arg))
	case linkUp:
		n.linkMends(int32(e.Arg))
	case withdrawn, restored:
		n.follow(int32(e.Arg), e.Kind)
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

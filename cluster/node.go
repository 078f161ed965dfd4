package cluster

import (
	"fmt"

	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// Cluster is all nodes of a cluster in one event loop. It belongs to the goroutine that runs its engine.
type Cluster struct {
	cfg   Config
	d     *reserve.Durations
	eng   *sim.Engine
	self  sim.Component
	here  sim.Target
	proto protocol
	rand  sim.Stream
	seed  uint64

	gateways []gateway
	targets  []target
	used     []use // by target
	chunks   []chunk
	free     []int32 // chunks that nobody uses
	parcels  []parcel
	spare    []int32 // parcels that nobody uses
	in, out  []port  // of nodes
	taking   []int32 // the parcel that a node's port is receiving
	heard    message // the message that is being handled
	control  units.Bytes

	Counters Counters
	// OnDone is told of each chunk that is done.
	OnDone sim.Probe[*Done]
	Probes
}

// Counters are sums since the start.
type Counters struct {
	Begun, Done, Aborted uint64 // chunks
	Replicas             uint64 // acknowledged
	Messages             uint64 // of control
	Frames               uint64 // of data, counted once for each receiver
	ControlBytes         uint64 // received
	DataBytes            uint64
	Bids                 Overlap // of Replicast
}

// Done is a chunk that is done.
type Done struct {
	Chunk       uint64 // counted from 1
	Gateway     int32
	Begun, Done sim.Time
	Size        units.Bytes
}

// gateway puts chunks.
type gateway struct {
	group int32 // that of the chunk before
}

// target keeps replicas.
type target struct {
	disk disk
}

// Kinds of events; arg says which gateway, node or parcel.
const (
	evBegin    uint16 = iota // a gateway takes its next chunk
	evTimer                  // a protocol's own, arg is its
	evHeld                   // a target no longer holds a message back
	evArrive                 // a parcel is at all its receivers
	evHead                   // it comes to their ports
	evSent                   // a node has sent one
	evReceived               // a node has received one
)

// message is a control message on its way.
type message struct {
	kind     uint8
	from, to int32 // of a gateway or a target, as the kind says
	chunk    int32
	id       uint64   // the chunk's
	a, b     sim.Time // what it says
	n        int32
}

// New makes a cluster that does nothing before Start.
func New(cfg Config, eng *sim.Engine, seed uint64) (*Cluster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d, err := reserve.New(cfg.durations())
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, d: d, control: d.ControlSize, eng: eng, self: eng.NewComponent(), rand: sim.NewStream(seed, "cluster"), seed: seed}
	c.here = eng.AddHandler(c)
	c.gateways, c.targets, c.used = make([]gateway, cfg.Gateways), make([]target, cfg.Targets), make([]use, cfg.Targets)
	for i := range c.gateways {
		c.gateways[i].group = -1
	}
	n := cfg.Gateways + cfg.Targets
	c.in, c.out, c.taking = make([]port, n), make([]port, n), make([]int32, n)
	switch cfg.Protocol {
	case UCH, UCHInverse:
		c.proto = newUCH(c, d)
	case ReplicastM:
		c.proto = newReplicast(c, d)
	default:
		c.proto = newHybrid(c, d)
	}
	return c, nil
}

// Start has each gateway take its first chunks.
func (c *Cluster) Start() {
	for g := range c.gateways {
		for range c.cfg.Outstanding {
			c.eng.Schedule(c.self, c.here, c.eng.Now(), evBegin, uint32(g))
		}
	}
}

// Handle implements sim.Handler.
func (c *Cluster) Handle(e sim.Event) {
	switch e.Kind {
	case evBegin:
		c.begin(int32(e.Arg))
	case evTimer:
		c.proto.timer(e.Arg)
	case evHeld:
		i := int32(e.Arg)
		c.dispatch(c.nodeOfTarget(c.parcels[i].message.from), i)
	case evArrive:
		c.arrive(int32(e.Arg))
	case evHead:
		c.heads(int32(e.Arg))
	case evSent:
		c.transmit(int32(e.Arg))
	case evReceived:
		c.received(int32(e.Arg))
	}
}

// protocol is how chunks are put: the state machines of both roles. It is told of what happens and sends.
type protocol interface {
	// begin puts a chunk.
	begin(chunk int32)
	// message: a control message has arrived. It holds until the call returns.
	message(m *message)
	// timer: a time has come that the protocol asked for.
	timer(arg uint32)
	// frame: a frame of data has arrived at a target.
	frame(arg uint32, target int32, size units.Bytes)
	// floor is how long a chunk takes that is alone.
	floor() sim.Time
}

// after asks for a call of the protocol's timer.
func (c *Cluster) after(at sim.Time, arg uint32) {
	c.eng.Schedule(c.self, c.here, max(at, c.eng.Now()), evTimer, arg)
}

// onLink is how long a control message is on a link. By itself it has the share of the link that is kept for such; where
// messages take turns it has the whole link.
func (c *Cluster) onLink(d *reserve.Durations) sim.Time {
	if c.cfg.Control.Queued {
		return d.Send(d.ControlSize, d.Effective)
	}
	return d.Control
}

// dataTime is how long it takes to send a chunk's frames at the rate for data, and the last one at the rate of its link.
func (c *Cluster) dataTime(d *reserve.Durations) sim.Time {
	full := (c.cfg.Chunk - 1) / c.cfg.Link.Frame
	rate := d.DataRate
	if c.cfg.Control.Queued {
		rate = d.Effective
	}
	return sim.Time(full)*d.Frame + d.Send(c.cfg.Chunk-full*c.cfg.Link.Frame, rate)
}

// chooseGroup draws the negotiating group of a chunk: any but that of the gateway's last one.
func (c *Cluster) chooseGroup(x *chunk) int32 {
	g := &c.gateways[x.gateway]
	n := int64(c.cfg.Targets / c.cfg.Group)
	group := int32(c.rand.IntN(n))
	if group == g.group {
		group = int32(c.rand.IntN(n))
	}
	if group == g.group {
		group = (group + 1) % int32(n)
	}
	g.group = group
	return group
}

// groupOf appends the targets of a group, in the order in which they hear of what is sent to them now.
func (c *Cluster) groupOf(group int32, dst []int32) []int32 {
	from := len(dst)
	for k := range int32(c.cfg.Group) {
		dst = append(dst, group*int32(c.cfg.Group)+k)
	}
	if c.cfg.Compat == CompatSURGE {
		c.surgeOrder(group, dst[from:])
	}
	return dst
}

// ties is where the order of bids is drawn from that begin and come in at the same time.
func (c *Cluster) ties() *sim.Stream {
	if c.cfg.Compat == CompatSURGE {
		return nil // surgeOrder has decided
	}
	return &c.rand
}

// Check walks the laws of conservation and reports the first that does not hold.
func (c *Cluster) Check() error {
	under := uint64(0)
	for i := range c.chunks {
		if c.chunks[i].live {
			under++
		}
	}
	k := &c.Counters
	if k.Begun != k.Done+k.Aborted+under {
		return fmt.Errorf("%d chunks begun, but %d done, %d given up and %d under way", k.Begun, k.Done, k.Aborted, under)
	}
	if k.Replicas < k.Done*uint64(c.cfg.Replicas) {
		return fmt.Errorf("%d chunks are done with %d replicas acknowledged, of %d each", k.Done, k.Replicas, c.cfg.Replicas)
	}
	return nil
}

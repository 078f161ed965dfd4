package cluster

import (
	"fmt"
	"slices"

	"farflash/cluster/placement"
	"farflash/cluster/reserve"
	"farflash/rng"
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
	rand  rng.Stream
	seed  uint64

	gateways   []gateway
	targets    []target
	books      books
	chunks     []chunk
	free       []int32 // chunks that nobody uses
	parcels    []parcel
	spare      []int32 // parcels that nobody uses
	casts      []cast
	spareCasts []int32 // casts that nobody uses
	in, out    []port  // of nodes
	marked     bool    // the frame that is being handled has a mark
	heard      message // the message that is being handled
	control    units.Bytes
	bytes      []NodeBytes // of nodes

	get      getter
	jobs     []job
	idle     []int32 // jobs that nobody uses
	kept     population
	load     loader
	fix      repairer
	faults   []fault
	lossy    bool        // messages may be lost, so gateways watch over chunks
	alarms   []sim.Timer // by chunk
	losses   rng.Stream
	places   placement.Placer
	copies   int         // targets of a chunk
	piece    units.Bytes // what each of them keeps
	attempts uint64      // chunks begun
	slots    rng.Stream  // places of pieces on drives
	ceiling  Ceiling     // of each drive
	net      Network     // between nodes, instead of the links here
	cargo    []cargo     // by the network's number
	err      error

	Counters Counters
	// OnDone is told of each chunk that is done.
	OnDone sim.Probe[*Done]
	Probes
	// RepairedAt is when the last piece was made again that a failure has cost.
	RepairedAt sim.Time
}

// Counters are sums since the start.
type Counters struct {
	Begun, Done, Aborted             uint64                       // chunks that are put
	Gets                             struct{ Begun, Done uint64 } // chunks that are read
	Arrived                          uint64                       // chunks that came in an open loop
	Hedged                           uint64                       // reads that asked one target more
	Stale                            uint64                       // frames of chunks that nobody waited for
	Written                          uint64                       // pieces, to disks
	Lost                             uint64                       // frames and messages, by link.loss or at targets that were down, once for each receiver
	Retried                          uint64                       // attempts that took too long
	Failed                           uint64                       // chunks that could not be put or got
	Degraded                         uint64                       // reads of chunks of which a piece was missing
	Unavailable                      uint64                       // reads of chunks of which too many pieces were missing
	PiecesLost, Repaired, Unrepaired uint64                       // of chunks that are kept
	Replicas                         uint64                       // acknowledged
	Messages                         uint64                       // of control
	Frames                           uint64                       // of data, counted once for each receiver
	ControlBytes                     uint64                       // received
	DataBytes                        uint64
	Bids                             Overlap // of Replicast
	Dings                            uint64  // that senders took to heart
	Impatient                        uint64  // times that a choosy gateway asked again
	LateRejected                     uint64  // windows that were taken back
}

// Done is a chunk that is done.
type Done struct {
	Chunk       uint64 // counted from 1, by attempts
	Gateway     int32
	Begun, Done sim.Time
	Size        units.Bytes
	Read        bool
}

// gateway puts chunks.
type gateway struct {
	group    int32    // that of the chunk before
	patience sim.Time // after which a read is hedged
	clock    clock
}

// target keeps replicas.
type target struct {
	disk   disk
	weight float64 // its capacity, relative to others
	down   bool
	fell   int32     // how often it has failed
	away   bool      // others know that it is down
	reads  []pending // that its disk has not begun
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
	evDisk                   // a target's disk is done with what it did
	evArrival                // a chunk comes to its gateway
	evFault                  // something happens to a target
	evRepair                 // a target is free to make the next piece again
	evRetry                  // a chunk is not done in time
	evHedge                  // it is time to ask another target for a chunk
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
	if !cfg.Protocol.putsReplicas() {
		return nil, units.Wrong("protocol", "%v is no protocol of this package; packages tier and traffic have it", cfg.Protocol)
	}
	d, err := reserve.New(cfg.durations())
	if err != nil {
		return nil, err
	}
	cfg.amend(d)
	c := &Cluster{cfg: cfg, d: d, control: d.ControlSize, eng: eng, self: eng.NewComponent(), rand: rng.NewStream(seed, "cluster"), slots: rng.NewStream(seed, "cluster/slots"), seed: seed}
	c.here = eng.AddHandler(c)
	c.copies, c.piece = cfg.copies(), cfg.piece()
	c.get = getter{c: c}
	c.gateways, c.targets = make([]gateway, cfg.Gateways), make([]target, cfg.Targets)
	for i := range c.gateways {
		c.gateways[i] = gateway{group: -1, patience: cfg.hedgeAfter(d)}
	}
	n := cfg.Gateways + cfg.Targets
	c.in, c.out = make([]port, n), make([]port, n)
	c.bytes = make([]NodeBytes, n)
	c.equip()
	if cfg.candidates() == 0 {
		if c.places, err = c.placer(); err != nil {
			return nil, units.Within("placement", err)
		}
		if err := c.checkPlacer(); err != nil {
			return nil, err
		}
	}
	c.fill()
	switch cfg.Protocol {
	case UCH, UCHInverse:
		c.proto = newUCH(c, d)
	case UCHAIMD:
		c.proto = newAIMD(c, d)
	case ReplicastM:
		c.proto = newReplicast(c, d)
	case ReplicastHDouble:
		c.proto = newDouble(c, d)
	case ReplicastProxy:
		c.proto = newProxied(c, d)
	case CommandWindow:
		c.proto = newCommandWindow(c, d)
	case Pull:
		c.proto = newPull(c, d)
	case Chain:
		c.proto = newChained(c, d)
	case Grants:
		c.proto = newGrants(c, d)
	case DCTCP:
		c.proto = newDCTCP(c, d)
	default:
		c.proto = newHybrid(c, d)
	}
	c.lossy = cfg.lossy()
	c.losses = rng.NewStream(seed, "cluster/losses")
	for g := range c.gateways {
		c.gateways[g].clock = clock{mean: 4 * c.Floor(), spread: 2 * c.Floor()}
	}
	c.planFailures()
	return c, nil
}

// Handle implements sim.Handler.
func (c *Cluster) Handle(e sim.Event) {
	switch e.Kind {
	case evBegin:
		c.begin(int32(e.Arg))
	case evTimer:
		c.proto.timer(e.Arg)
	case evHeld:
		c.held(int32(e.Arg))
	case evArrive:
		c.arrive(int32(e.Arg))
	case evHead:
		c.heads(int32(e.Arg))
	case evSent:
		c.transmit(int32(e.Arg))
	case evReceived:
		c.received(int32(e.Arg))
	case evDisk:
		c.worked(int32(e.Arg))
	case evArrival:
		c.arrives()
	case evFault:
		c.fault(c.faults[e.Arg])
	case evRepair:
		c.repairDone()
	case evRetry:
		c.retry(int32(e.Arg))
	case evHedge:
		c.get.hedged(int32(e.Arg))
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
	full := (c.piece - 1) / c.cfg.Link.Frame
	rate := d.DataRate
	if c.cfg.Control.Queued {
		rate = d.Effective
	}
	return sim.Time(full)*d.Frame + d.Send(c.piece-full*c.cfg.Link.Frame, rate)
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

// groups is how many negotiating groups there are.
func (c *Cluster) groups() int { return c.cfg.Targets / c.cfg.Group }

// drawGroups draws different ones of n groups.
func drawGroups(s *rng.Stream, n int, groups []int32) {
	for k := range groups {
		g := int32(s.IntN(int64(n)))
		for slices.Contains(groups[:k], g) {
			g = int32(s.IntN(int64(n)))
		}
		groups[k] = g
	}
}

// groupOf appends the targets of a group.
func (c *Cluster) groupOf(group int32, dst []int32) []int32 {
	for k := range int32(c.cfg.Group) {
		if t := group*int32(c.cfg.Group) + k; !c.targets[t].away {
			dst = append(dst, t)
		}
	}
	return dst
}

// askOrder puts the targets of a group that a gateway asks for bids now into the order in which they answer.
func (c *Cluster) askOrder(group, gateway int32, targets []int32) {
	if c.cfg.Compat != CompatNone {
		c.surgeOrder(group, gateway, targets)
	}
}

// ties is where the order of bids is drawn from that begin and come in at the same time.
func (c *Cluster) ties() *rng.Stream {
	if c.cfg.Compat != CompatNone {
		return nil // surgeOrder has decided
	}
	return &c.rand
}

// Check walks the laws of conservation and reports the first that does not hold.
func (c *Cluster) Check() error {
	under := uint64(0)
	for i := range c.chunks {
		if c.chunks[i].live && c.chunks[i].repairs == 0 {
			under++
		}
	}
	k := &c.Counters
	begun, done := k.Begun+k.Gets.Begun, k.Done+k.Gets.Done
	if begun != done+k.Aborted+k.Failed+under {
		return fmt.Errorf("%d chunks begun, but %d done, %d given up, %d failed and %d under way", begun, done, k.Aborted, k.Failed, under)
	}
	if k.Arrived > 0 {
		waiting := uint64(0)
		for g := range c.load.waiting {
			waiting += uint64(len(c.load.waiting[g].items) - c.load.waiting[g].head)
		}
		if k.Arrived != begun+waiting {
			return fmt.Errorf("%d chunks came, but %d were begun and %d wait", k.Arrived, begun, waiting)
		}
	}
	if k.Replicas < k.Done*uint64(c.copies) {
		return fmt.Errorf("%d chunks are done with %d replicas acknowledged, of %d each", k.Done, k.Replicas, c.copies)
	}
	return nil
}

// Config is what the cluster was made of.
func (c *Cluster) Config() *Config { return &c.cfg }

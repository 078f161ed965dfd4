package cluster

import (
	"fmt"

	"farflash/model/cluster/internal/learn"
	"farflash/model/cluster/internal/room"
	"farflash/model/cluster/internal/slab"
	"farflash/model/cluster/put"
	"farflash/model/cluster/reserve"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Cluster is all nodes of a cluster in one event loop. It belongs to the goroutine that runs its engine.
type Cluster struct {
	cfg  Config
	d    *reserve.Durations
	eng  *sim.Engine
	self sim.Component
	here sim.Target
	seed uint64

	bus      *put.Bus
	proto    put.Protocol
	forecast put.Forecast
	recovery put.Recovery // nil if the protocol has none

	gateways   []gateway
	targets    []target
	disks      []disk // of targets, one after the other
	books      books
	tasks      slab.Slab[task] // as bus.Chunks
	parcels    slab.Slab[parcel]
	casts      slab.Slab[cast]
	in, out    []port      // of nodes
	rooms      []room.Room // of targets, if their memory has a limit
	processors []processor // of nodes, if they take any time
	heard      put.Message // the message that is being handled
	control    units.Bytes
	bytes      []NodeBytes // of nodes

	get      getter
	renew    updater
	updates  rng.Stream // which chunks are written in part, and where
	jobs     slab.Slab[job]
	kept     population
	load     loader
	fix      repairer
	faults   []fault
	lossy    bool        // messages may be lost, so gateways watch over chunks
	alarms   []sim.Timer // by chunk
	losses   rng.Stream
	copies   int                  // targets of a chunk
	piece    units.Bytes          // what each of them keeps
	attempts uint64               // chunks begun
	wrote    [][maxReplicas]stamp // by chunk, where targets fail
	sizes    rng.Stream           // of chunks
	slots    rng.Stream           // places of pieces on drives
	ceiling  Ceiling              // of each drive
	net      Network              // between nodes, instead of the links here
	cargo    []cargo              // by the network's number
	err      error
	ahead    put.Ahead                        // nil if the protocol has none
	read     int64                            // what foresee has read, so that it reads it
	fault    func(node int32, data bool) bool // of tests: whether what arrives at a node is lost

	Counters Counters
	// OnDone is called with each chunk that is done.
	OnDone sim.Probe[*Done]
	Probes
	// RepairedAt is when the last piece was made again that a failure has cost.
	RepairedAt sim.Time
}

// Counters are sums since the start.
type Counters struct {
	Begun, Done uint64 // chunks that are put
	// attempts at putting a chunk for which there was no room
	Aborted uint64
	// chunks that were not begun again after that, which is SURGE's
	Dropped uint64
	Gets    struct{ Begun, Done uint64 } // chunks that are read
	Updates struct{ Begun, Done uint64 } // chunks of which a part is written over
	Arrived uint64                       // chunks that came in an open loop
	Hedged  uint64                       // reads that asked one target more
	Stale   uint64                       // frames of chunks that nobody waited for
	Written uint64                       // pieces, to disks
	// frames and messages, by link.loss or at targets that were down, once for each receiver
	Lost     uint64
	Retried  uint64 // attempts that took too long
	Failed   uint64 // chunks that could not be put or got
	Degraded uint64 // reads of chunks of which a piece was missing
	// reads of chunks of which too many pieces were missing
	Unavailable                      uint64
	PiecesLost, Repaired, Unrepaired uint64 // of chunks that are kept
	// lost pieces whose chunk another one has replaced, or of which too little is left
	Replaced, PiecesGone uint64
	LostChunks           uint64 // of which too little is left
	RepairRetried        uint64 // attempts at reading for a repair that took too long
	// chunks that were said to be put and of which not all pieces could be kept
	Short uint64
	// what disks write for gateways, to make pieces again, and of parts that are written over
	Put, Mended, Renewed Volume
	wholes               units.Bytes // all pieces of chunks that are put
	// of Put: of chunks that are put, and of attempts that were given up
	Kept, Wasted units.Bytes
	Replicas     uint64 // acknowledged
	Messages     uint64 // of control
	Frames       uint64 // of data, counted once for each receiver
	ControlBytes uint64 // received
	DataBytes    uint64
	put.Tally    // of what protocols do
}

// Volume is what disks have to write.
type Volume struct {
	Handed  units.Bytes // to them
	Written units.Bytes
	Dropped units.Bytes // by targets that failed
}

// Overlap counts how often a target is asked for a bid while another of its bids is still tentative.
type Overlap = put.Overlap

// Done is a chunk that is done.
type Done struct {
	Chunk       uint64 // counted from 1, by attempts
	Gateway     int32
	Begun, Done sim.Time
	Size        units.Bytes
	Read        bool
	Update      bool // of a part
}

// gateway puts chunks.
type gateway struct {
	patience learn.Patience // after which a read is hedged: 19 of 20 take no longer, unless the configuration says it
	clock    learn.Clock
	late     learn.Clock // by how much what is sent is later than targets have said, where they say it
}

// target keeps replicas.
type target struct {
	weight float64 // its capacity, relative to others
	down   bool
	fell   int32     // how often it has failed
	known  int32     // how often others know that it has
	reads  []pending // that its disk has not begun
}

// Kinds of events; arg says which gateway, node or parcel.
const (
	evBegin     uint16 = iota // a gateway takes its next chunk
	evTimer                   // a protocol's own, arg is its
	evHeld                    // a target no longer holds a message back
	evArrive                  // a parcel is at all its receivers
	evHead                    // it comes to their ports
	evSent                    // a node has sent one
	evReceived                // a node has received one
	evDisk                    // a target's disk is done with what it did
	evArrival                 // a chunk comes to its gateway
	evFault                   // something happens to a target
	evRepair                  // a target's link has room for what a repair reads
	evPump                    // another piece may be made again
	evShare                   // a disk may make pieces again
	evRetry                   // a chunk is not done in time
	evProcessed               // a node's processor is done with what it did
	evRoom                    // a target's memory may have room
	evResume                  // a gateway tries again to put a chunk for which there was no room
	evHedge                   // it is time to ask another target for a chunk
	evFreed                   // a gateway resumes after a chunk that could not be tried
)

// New makes a cluster that does nothing before Start.
func New(cfg Config, eng *sim.Engine, seed uint64) (*Cluster, error) {
	return NewUnder(cfg.Protocol.traits().New, cfg, eng, seed)
}

// NewUnder is New of a cluster whose chunks are put by a protocol of one's own, in the place of the one that the
// configuration names. It has that one's traits: how targets are found, how links are shared, what its messages are
// called.
func NewUnder(protocol func(*put.Bus) put.Protocol, cfg Config, eng *sim.Engine, seed uint64) (*Cluster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return newCluster(cfg, eng, seed, protocol)
}

// newCluster makes a cluster of a configuration that is valid.
func newCluster(cfg Config, eng *sim.Engine, seed uint64, protocol func(*put.Bus) put.Protocol) (*Cluster, error) {
	plan, err := cfg.plan(seed)
	if err != nil {
		return nil, err
	}
	d := plan.Times
	c := &Cluster{cfg: cfg, d: d, control: d.ControlSize, eng: eng, self: eng.NewComponent(),
		slots: rng.NewStream(seed, "cluster/slots"), sizes: rng.NewStream(seed, "cluster/sizes"), seed: seed}
	c.here = eng.AddHandler(c)
	c.copies, c.piece = cfg.copies(), cfg.piece()
	c.bus = c.newBus(plan)
	c.get, c.renew = getter{c: c}, updater{c: c}
	c.updates = rng.NewStream(seed, "cluster/updates")
	c.gateways, c.targets = make([]gateway, cfg.Gateways), make([]target, cfg.Targets)
	for i := range c.gateways {
		c.gateways[i] = gateway{patience: learn.Patience(cfg.hedgeAfter(d))}
	}
	n := cfg.Gateways + cfg.Targets
	c.in, c.out = make([]port, n), make([]port, n)
	c.bytes = make([]NodeBytes, n)
	if cfg.Processor != (Processor{}) {
		c.processors = make([]processor, n)
	}
	if cfg.Memory > 0 {
		c.rooms = make([]room.Room, cfg.Targets)
	}
	c.equip()
	if cfg.candidates() == 0 {
		if c.bus.Places, err = c.placer(); err != nil {
			return nil, units.Within("placement", err)
		}
		if err := c.checkPlacer(); err != nil {
			return nil, err
		}
	}
	c.fill()
	c.proto = protocol(c.bus)
	var ok bool
	if c.forecast, ok = c.proto.(put.Forecast); !ok {
		return nil, fmt.Errorf("cluster: the protocol has no forecast: it must implement put.Forecast")
	}
	c.recovery, _ = c.proto.(put.Recovery)
	c.lossy = cfg.lossy()
	c.losses = rng.NewStream(seed, "cluster/losses")
	for g := range c.gateways {
		c.gateways[g].clock = learn.Clock{Mean: 4 * c.Floor(), Spread: 2 * c.Floor()}
		c.gateways[g].late = learn.Clock{Spread: c.Floor() / 2}
	}
	c.fix = newRepairer(c)
	c.planFailures()
	if c.ahead, _ = c.proto.(put.Ahead); n >= foreseen {
		eng.Foresee(c.here, c.foresee)
	}
	return c, nil
}

// Handle implements sim.Handler.
func (c *Cluster) Handle(e sim.Event) {
	switch e.Kind {
	case evBegin:
		c.begin(int32(e.Arg))
	case evFreed:
		c.freed(int32(e.Arg))
	case evTimer:
		c.proto.Timer(e.Arg)
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
		c.mishap(c.faults[e.Arg])
	case evRepair:
		c.fix.read(int32(e.Arg))
	case evPump:
		c.fix.pump()
	case evShare:
		c.shares(int32(e.Arg))
	case evRetry:
		c.retry(int32(e.Arg))
	case evProcessed:
		c.processed(int32(e.Arg))
	case evRoom:
		c.hasRoom(int32(e.Arg))
	case evResume:
		c.resumed(int32(e.Arg))
	case evHedge:
		c.get.hedged(int32(e.Arg))
	}
	if checkEvery > 0 && c.eng.Events()%max(checkEvery, 1) == 0 {
		c.holds()
	}
}

// Config is what the cluster was made of.
func (c *Cluster) Config() *Config { return &c.cfg }

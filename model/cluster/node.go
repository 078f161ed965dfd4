package cluster

import (
	"fmt"

	"farflash/model/cluster/internal/slab"
	"farflash/model/cluster/put"
	"farflash/model/cluster/reserve"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Cluster is all nodes of a cluster in one event loop. It belongs to the goroutine that runs its engine and is not safe
// for concurrent use.
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
	disks      []disk // of all targets in order, Disk.Count each
	books      books
	tasks      slab.Slab[task] // parallel to bus.Chunks
	parcels    slab.Slab[parcel]
	casts      slab.Slab[cast]
	in, out    []port      // by node
	rooms      []room      // by target; nil if memory is unlimited
	processors []processor // by node; nil if processing takes no time
	heard      put.Message // the message being handled
	control    units.Bytes
	bytes      []NodeBytes // by node

	get      getter
	renew    updater
	updates  rng.Stream // draws the chunks that are updated, and the part of each
	jobs     slab.Slab[job]
	kept     population
	load     loader
	fix      repairer
	faults   []fault
	lossy    bool        // messages can be lost, so gateways run timeouts
	alarms   []sim.Timer // timeouts, by chunk
	losses   rng.Stream
	copies   int                  // targets of a chunk
	piece    units.Bytes          // size that each of them stores
	attempts uint64               // attempts begun; the last attempt's ID
	wrote    [][maxReplicas]stamp // by chunk; only where targets fail
	sizes    rng.Stream           // draws chunk sizes
	slots    rng.Stream           // draws the locations of pieces on drives
	ceiling  Ceiling              // of each drive
	net      Network              // replaces the links if not nil
	cargo    []cargo              // by the network's message number
	err      error
	ahead    put.Ahead                        // nil if the protocol has none
	read     int64                            // sink of foresee's loads, so that the compiler keeps them
	fault    func(node int32, data bool) bool // set by tests: whether an arrival at a node is lost

	Counters Counters
	// OnDone is called with each completed chunk.
	OnDone sim.Probe[*Done]
	Probes
	// RepairedAt is the time at which the last piece lost to a failure was rebuilt.
	RepairedAt sim.Time
}

// Counters are totals since the start.
type Counters struct {
	Begun, Done uint64 // puts of whole chunks
	// attempts at a put that found no capacity
	Aborted uint64
	// chunks not retried after that; SURGE only
	Dropped uint64
	Gets    struct{ Begun, Done uint64 } // reads
	Updates struct{ Begun, Done uint64 } // partial overwrites
	Arrived uint64                       // arrivals in an open loop
	Hedged  uint64                       // reads that asked an additional target
	Stale   uint64                       // frames of attempts that were abandoned or already complete
	Written uint64                       // pieces written to disks
	// frames and messages lost to link.loss or at targets that were down, once for each receiver
	Lost     uint64
	Retried  uint64 // attempts that timed out
	Failed   uint64 // puts and reads that failed
	Degraded uint64 // reads of chunks with a missing piece
	// reads of chunks with too many missing pieces
	Unavailable                      uint64
	PiecesLost, Repaired, Unrepaired uint64 // pieces of stored chunks
	// lost pieces whose chunk was replaced by another one, or has too few pieces left
	Replaced, PiecesGone uint64
	LostChunks           uint64 // chunks with too few pieces left
	RepairRetried        uint64 // reads for a repair that timed out
	// chunks reported as put without all their pieces stored
	Short uint64
	// disk writes: of puts, of rebuilt pieces, and of overwritten parts
	Put, Mended, Renewed Volume
	wholes               units.Bytes // all pieces of chunks that are put
	// parts of Put: of chunks that are put, and of abandoned attempts
	Kept, Wasted units.Bytes
	Replicas     uint64 // acknowledged replicas
	Messages     uint64 // control messages
	Frames       uint64 // data frames, once for each receiver
	ControlBytes uint64 // received
	DataBytes    uint64
	put.Tally    // counters of the protocol
}

// Volume is the balance of bytes to be written to disks.
type Volume struct {
	Handed  units.Bytes // given to disks
	Written units.Bytes
	Dropped units.Bytes // lost with targets that failed
}

// Overlap counts how often a target is asked for a bid while another of its bids is still tentative.
type Overlap = put.Overlap

// Done is a completed chunk.
type Done struct {
	Chunk       uint64 // the attempt's ID, from 1
	Gateway     int32
	Begun, Done sim.Time
	Size        units.Bytes
	Read        bool
	Update      bool // a partial overwrite
}

// gateway is a gateway's state.
type gateway struct {
	patience patience // 95th percentile of its read times, the hedging delay unless the configuration sets it
	clock    clock
	// how late chunks complete relative to their targets' predictions, for protocols that have these
	late clock
}

// target is a target's state.
type target struct {
	weight float64 // capacity, relative to others
	down   bool
	fell   int32     // number of failures
	known  int32     // number of failures that others know of
	reads  []pending // reads in its disks' queues
}

// Kinds of events. The argument is the number of a gateway, node, parcel, disk, chunk, target, fault or repair.
const (
	evBegin     uint16 = iota // a gateway takes its next chunk
	evTimer                   // a timer of the protocol, with the protocol's argument
	evHeld                    // a delayed message or frame leaves its target
	evArrive                  // a parcel is at all its receivers
	evHead                    // a parcel's first bit is at the receivers' ports
	evSent                    // a node has sent a parcel
	evReceived                // a node has received a parcel
	evDisk                    // a disk completes its job
	evArrival                 // a chunk arrives at its gateway
	evFault                   // a fault of a target
	evRepair                  // a target's link has capacity for the reads of a repair
	evPump                    // another piece may be rebuilt
	evShare                   // a disk may serve a throttled rebuild job
	evRetry                   // an attempt at a chunk times out
	evProcessed               // a node's processor completes its work
	evRoom                    // a target's memory may have space
	evResume                  // a gateway retries a chunk whose attempt was aborted
	evHedge                   // a hedged read asks another target
	evFreed                   // a gateway resumes after a chunk that could not be tried
)

// New returns a cluster that is idle until Start.
func New(cfg Config, eng *sim.Engine, seed uint64) (*Cluster, error) {
	return NewUnder(cfg.Protocol.traits().New, cfg, eng, seed)
}

// NewUnder is New with the caller's protocol instead of the configured one. The protocol has the traits of the
// configured one: how it finds targets, how links are shared, and the names of its messages.
func NewUnder(protocol func(*put.Bus) put.Protocol, cfg Config, eng *sim.Engine, seed uint64) (*Cluster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return newCluster(cfg, eng, seed, protocol)
}

// newCluster returns a cluster of a valid configuration.
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
	if c.bus, err = c.newBus(plan); err != nil {
		return nil, err
	}
	c.get, c.renew = getter{c: c}, updater{c: c}
	c.updates = rng.NewStream(seed, "cluster/updates")
	c.gateways, c.targets = make([]gateway, cfg.Gateways), make([]target, cfg.Targets)
	for i := range c.gateways {
		c.gateways[i] = gateway{patience: patience(cfg.hedgeAfter(d))}
	}
	n := cfg.Gateways + cfg.Targets
	c.in, c.out = make([]port, n), make([]port, n)
	c.bytes = make([]NodeBytes, n)
	if cfg.Processor != (Processor{}) {
		c.processors = make([]processor, n)
	}
	if cfg.Memory > 0 {
		c.rooms = make([]room, cfg.Targets)
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
		c.gateways[g].clock = clock{mean: 4 * c.Floor(), spread: 2 * c.Floor()}
		c.gateways[g].late = clock{spread: c.Floor() / 2}
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
		c.applyFault(c.faults[e.Arg])
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

// Config returns the configuration of the cluster.
func (c *Cluster) Config() *Config { return &c.cfg }

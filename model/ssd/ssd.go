// Package ssd models an NVMe solid-state drive, from doorbells to NAND cells.
//
// The main types are Config, which describes a drive in plain values, and Drive, a block.Device that runs on a
// sim.Engine. Any number of drives can run in one engine.
//
// The level of detail is that of MQSim (Tavakkol et al., FAST 2018) and above: die interleaving, multi-plane commands,
// program and erase suspension, mapping programs and their collection, copyback, trim, flush, priority classes with
// weighted arbitration. Config.Quirks are MQSim's deviations, which only compat_mqsim.go turns on.
//
// It leaves out the wear that makes blocks fail (the drive survives such failures), redundancy across dies, and the
// content of the data.
package ssd

// The path of a command: the host rings a doorbell; the controller fetches the entry over PCIe (host.go); reads and
// writes pass through the data cache in DRAM (cache.go, dram.go); the map, demand-paged from flash unless it is ideal
// (table.go, cmt.go), gives each page its place (access.go); the scheduler (schedule.go) sends commands to chips over
// channels (flash.go); the translation layer of package ftl decides which blocks are collected and erased (collect.go).
//
// An entry of the map covers a grain, which is a part of a page of flash or all of it. A logical page here, and a page
// in ftl, is a grain; grains.go fills pages of flash with them.

import (
	"errors"

	"farflash/block"
	"farflash/internal/divide"
	rings "farflash/internal/fifo"
	"farflash/internal/slab"
	"farflash/model/ssd/nand"
	"farflash/model/ssd/pack"
	"farflash/numeric/rng"
	"farflash/policy/ftl"
	"farflash/sim"
)

// Sink receives a drive's completions.
type Sink = block.Sink

// Drive is a simulated drive, for the goroutine that runs its engine.
type Drive struct {
	watch  //nolint:unused // counts with the build tag invariants
	cfg    Config
	eng    *sim.Engine
	self   sim.Component
	target sim.Target
	sink   Sink
	random rng.Stream

	ns           []namespace
	pools        pools
	l2p          table
	owners       owners
	programs     *hash[uint32] // programmed pages; nil unless Quirks.FillsNeedProgram
	ftl          *ftl.FTL
	caches       []cache
	tables       []mappingTable
	mapIndex     hash[uint32] // index in mapPages of mapping pages with state
	mapPages     []mappingPage
	freeMapPages []uint32
	together     bool         // transactions that waited for a mapping page, or for space, are being resumed
	waited       []uint64     // those transactions, in the order that a quirk requires
	firstOf      hash[uint32] // by entry of the map: the first of them
	used         []uint64     // entries of a mapping page being written back, by logical page
	txns         slab.Slab[transaction]
	requests     slab.Slab[request]
	queues       []queuePair
	closed       bool
	lanes        []lane
	planes       []planeAt
	planeReads   []planeRead // by plane; nil unless planes read independently
	channels     []channel
	dirty        []uint64 // channels to serve at the end of the batch, a bit each
	wanted       []uint8  // by die and queue: a bit for each plane with transactions waiting in the scheduler
	batch        int
	grains       int32 // grains in a page of flash
	packing      pack.Pages
	packed       uint64         // grains put into pages, in total
	pagesTaken   uint64         // pages filled by them, or programmed before they were full
	reading      sharedRead     // the last read of the batch, which the next can join
	heldPages    []uint32       // logical pages whose map entries are dirty; scratch space of hold
	chaining     bool           // transactions that share a page are being completed one by one
	postponed    []int32        // pools whose collection was deferred while chaining
	noData       bool           // a channel is looking for commands without data
	heldBack     bool           // some lane would have programmed during that search
	stored       *storedSectors // nil unless Quirks.SectorsLost
	asked        hash[uint32]   // by logical page: its turn when its mapping page arrives (Quirks.WaitersEvicted)
	rotates      bool           // polls advance the rotation among classes (Quirks.RotatesClasses)
	lookout      lookout
	entered      bool    // a transaction was queued since channels were last served
	foretold     bool    // whoever submits requests announces them with Expect
	gathering    int     // nesting depth of gather, under Quirks.LookUpsFirst
	gathered     []int32 // gathered transactions that have their places

	isCollecting  []bool  // by pool
	moving        []int32 // moves in flight, by pool
	paces         []pace  // by pool
	erasing       []erasing
	groups        *groups     // nil if there is only one
	divided       bool        // there are several namespaces or reclaim groups
	zones         []zoneSet   // by namespace; nil if none is zoned
	returning     []returning // superblocks of zones that are being reset
	parkedLists   []parkedList
	parkedMapping [][]int32
	parked        int

	// The link's two directions and the DRAM channel.
	up, down, memory line
	turns            *linkTurns // nil unless Quirks.MessagesInTurn
	memoryTurns      memoryTurns
	slc              slc
	governor         governor
	held             int32  // commands in the controller
	accepted         uint32 // distinct instants at which commands were accepted
	acceptedAt       sim.Time
	next             nextEvent
	handling         bool // inside one of the drive's own events
	processors       processors
	rest             rest
	touchedReset     []sim.Time // by namespace: when the filter of first touches is next emptied
	turn             [block.Classes]int
	classCredit      [3]int32

	// Constants, computed once.
	pagesPerBlock uint32
	// pages of a pool and of its blocks as the translation layer counts them, in grains
	perPool, perBlock                divide.By
	byFlashBlock                     divide.By // pages of a block of flash
	perPage                          divide.By // grains of a page of flash
	mostMoving                       int32     // limit on a pool's moves in flight; 0 is no limit
	perGrain                         divide.By // sectors of a grain
	sectorsPerGrain                  int64
	allSectors                       uint64 // of a grain
	diesPerLane, planesPerLane       int32
	canInterrupt                     bool
	entriesPerPage, entryBytes       uint32
	superpage                        int64 // sectors
	destageDepth, destageAt          int
	readCommand, programCommand      [nand.MaxPlanesPerDie + 1]sim.Time
	eraseCommand                     [nand.MaxPlanesPerDie + 1]sim.Time
	suspendTime                      [operations]sim.Time
	suspendCommand                   sim.Time
	readArray, programArray          []sim.Time // by page of a block
	bellTime, submissionTime         sim.Time
	completionTime, readRequestTime  sim.Time
	lastBytes                        int32
	lastData, lastLink, lastDRAMTime sim.Time
	lastPayload, lastDRAM            int64

	errs *errs // nil: flash does not err

	refused   rings.Ring[block.Completion] // of requests that no queue could take
	before    ftl.Stats                    // the counters at the end of preconditioning
	zoneStats ZoneStats

	counters

	// programFails reports whether the program of a page that has just ended failed; nil: none do. Only tests set it,
	// because the wear that makes blocks fail is not modelled.
	programFails func(page uint32) bool

	// OnWork receives all work of channels and dies, OnSuspend every operation that is suspended before its end.
	OnWork    sim.Probe[Work]
	OnSuspend sim.Probe[Suspension]
	// OnAccount receives the breakdown of the time of each read and write, before it completes.
	OnAccount sim.Probe[*Account]
	last      []ended // by request; empty unless OnAccount is set
}

// Kinds of events.
const (
	evNone uint16 = iota
	evDoorbell
	evFetchAsked
	evCommandArrived
	evDataAsked
	evDataArrived
	evCompleted
	evMemoryDone
	evEvicted
	evChannelFree
	evArrayDone
	evDataOut
	evPlaneRead
	evFromMemory
	evCommandTaken
	evServed
	evIdle
	evTransferred
	evPassed
	evLookAgain
	evAcknowledged
	evRefused
)

// New returns a drive in the configuration's state; name separates its random streams.
func New(cfg Config, eng *sim.Engine, sink Sink, seed uint64, name string) (*Drive, error) {
	if err := checkMaking(eng, sink); err != nil { // before the work of preconditioning
		return nil, err
	}
	m, err := Prepare(cfg, seed, name, nil)
	if err != nil {
		return nil, err
	}
	return NewOnly(m, eng, sink, seed, name)
}

// NewOnly returns the only drive of an image, which cannot be used afterwards.
func NewOnly(m *Image, eng *sim.Engine, sink Sink, seed uint64, name string) (*Drive, error) {
	if err := m.usable(eng, sink); err != nil {
		return nil, err
	}
	d := newDrive(m, eng, sink, seed, name)
	m.give(d)
	return d, nil
}

// NewFrom returns a drive that shares an image copy-on-write.
func NewFrom(m *Image, eng *sim.Engine, sink Sink, seed uint64, name string) (*Drive, error) {
	if err := m.usable(eng, sink); err != nil {
		return nil, err
	}
	d := newDrive(m, eng, sink, seed, name)
	m.clone(d)
	return d, nil
}

// checkMaking reports what a drive cannot be made with.
func checkMaking(eng *sim.Engine, sink Sink) error {
	switch {
	case eng == nil:
		return errors.New("ssd: the engine is nil; use sim.New")
	case sink == nil:
		return errors.New("ssd: the sink is nil; a drive reports its completions to one")
	}
	return nil
}

// usable reports why no drive can be made from an image.
func (m *Image) usable(eng *sim.Engine, sink Sink) error {
	if m == nil || m.ftl == nil {
		return errors.New("ssd: the image is nil, or NewOnly has used it; use Prepare")
	}
	return checkMaking(eng, sink)
}

// newDrive makes a drive that lacks only the state of its flash.
func newDrive(m *Image, eng *sim.Engine, sink Sink, seed uint64, name string) *Drive {
	cfg := m.cfg
	g := cfg.Geometry
	d := &Drive{
		cfg: cfg, eng: eng, self: eng.NewComponent(), sink: sink,
		random: rng.NewStream(seed, name+"/ftl"),
		ns:     m.ns, pools: m.pools,
		channels:      make([]channel, g.Channels),
		dirty:         make([]uint64, (g.Channels+63)/64),
		planes:        make([]planeAt, g.Planes()),
		isCollecting:  make([]bool, m.pools.count()),
		moving:        make([]int32, m.pools.count()),
		paces:         make([]pace, m.pools.count()),
		pagesPerBlock: uint32(g.PagesPerBlock), byFlashBlock: divide.New(uint64(g.PagesPerBlock)),
		perPool:  divide.New(uint64(m.pools.flash.PagesPerPlane())),
		perBlock: divide.New(uint64(m.pools.flash.PagesPerBlock)),
		grains:   int32(cfg.grainsPerPage()), perPage: divide.New(uint64(cfg.grainsPerPage())),
		sectorsPerGrain: int64(cfg.sectorsPerGrain()), perGrain: divide.New(uint64(cfg.sectorsPerGrain())),
		allSectors:     ^uint64(0) >> (64 - cfg.sectorsPerGrain()),
		entriesPerPage: uint32(cfg.entriesPerMappingPage()),
		superpage:      int64(g.Planes() * g.SectorsPerPage()),
	}
	if d.pools.size > 1 {
		d.mostMoving = max(1, int32(cfg.Collection.MovesPerPlane*float64(d.pools.size*int(d.grains))))
	}
	d.target = eng.AddHandler(d)
	d.entryBytes = uint32(int64(cfg.grainSize()) / int64(d.entriesPerPage))
	diesPerLane := 1
	if cfg.Quirks.WholeChip {
		diesPerLane = g.DiesPerChip
	}
	d.diesPerLane, d.planesPerLane = int32(diesPerLane), int32(diesPerLane*g.PlanesPerDie)
	d.layLanes()
	d.wanted = make([]uint8, g.Dies()*queues)
	s := &cfg.Scheduling
	if s.IndependentReads {
		d.planeReads = make([]planeRead, g.Planes())
	}
	d.canInterrupt = s.SuspendProgram || s.SuspendErase || s.SuspendEraseForWrite
	if d.errs = newErrs(&cfg, seed, name); d.errs != nil {
		d.errs.since = make([]sim.Time, d.pools.count()*g.BlocksPerPlane)
	}
	if c := cfg.Controller; c != nil {
		d.processors.free = make([]sim.Time, c.Processors)
	}
	d.governor = newGovernor(&cfg)
	d.rest.states, d.rest.spent = cfg.PowerStates, make([]sim.Time, len(cfg.PowerStates))
	if len(d.ns) > 1 {
		d.byNamespace = make([]NamespaceStats, len(d.ns))
	}
	d.divided = len(d.ns) > 1 || cfg.Groups() > 1
	d.laneBusy = make([]sim.Time, len(d.lanes))
	d.fewestFree = g.BlocksPerPlane
	d.computeTimes()

	d.makeCaches()
	return d
}

// layLanes makes the lanes and assigns planes to them.
func (d *Drive) layLanes() {
	g := &d.cfg.Geometry
	d.lanes = make([]lane, g.Dies()/int(d.diesPerLane))
	each := len(d.lanes) / g.Channels
	for ch := range d.channels {
		c := &d.channels[ch]
		c.lanes, c.ready = d.lanes[ch*each:(ch+1)*each], make([]uint64, (each+63)/64)
		for k := range c.lanes {
			l, n := &c.lanes[k], int32(ch*each+k)
			l.number, l.channel = n, int32(ch)
			l.firstPlane, l.wanted = n*d.planesPerLane, n*d.diesPerLane*queues
			l.ready, l.readyBit = &c.ready[k>>6], uint8(k&63)
		}
	}
	for p := range d.planes {
		die, plane := int32(p/g.PlanesPerDie), int32(p%g.PlanesPerDie)
		d.planes[p] = planeAt{lane: die / d.diesPerLane, spot: newSpot(die%d.diesPerLane, plane)}
	}
}

// translation returns the configuration of the translation layer for flash divided into pools. The streams are the
// write streams of all namespaces, then one stream of mapping pages for each.
func (c *Config) translation(ns []namespace, p *pools) ftl.Config {
	g := &p.flash
	blocks := g.BlocksPerPlane
	streams := 0
	for i := range ns {
		streams += len(ns[i].placements)
	}
	if c.FDP != nil {
		streams = c.FDP.Handles
	}
	hosts := streams + len(ns)
	survivors := make([]int, hosts, 2*hosts)
	for s := range survivors {
		switch {
		case c.Quirks.MappingProgramsVanish && s >= streams:
			survivors[s] = hosts + ns[s-streams].stream // these are never collected
		case s >= streams:
			survivors[s] = len(survivors) + s // replaced below
		case c.streamsApart():
			survivors[s] = hosts + s
		default:
			survivors[s] = hosts
		}
	}
	data := 1
	if c.streamsApart() {
		data = streams
	}
	total := hosts + data
	if !c.Quirks.MappingProgramsVanish {
		for s := streams; s < hosts; s++ {
			survivors[s] = total
		}
		total++
	}
	for s := hosts; s < total; s++ {
		survivors = append(survivors, s)
	}
	choices := c.Collection.Choices
	if choices == 0 {
		for 2<<choices <= blocks {
			choices++
		}
	}
	var order []int // for each namespace: data, mapping pages, survivors
	for i := range ns {
		for _, p := range ns[i].placements {
			order = append(order, int(p.stream))
		}
		order = append(order, ns[i].mapping)
		for _, p := range ns[i].placements {
			order = append(order, hosts+int(p.stream))
		}
	}
	if !c.Quirks.FrontiersAtOnce || len(order) != total {
		order = nil
	}
	yield := 0
	if c.Collection.Victim == ftl.RandomYield {
		yield = int(float64(c.Preconditioning.Occupancy) * float64(g.PagesPerBlock))
	}
	fast, _ := c.fast(p, streams)
	return ftl.Config{
		Pools: g.Planes(), BlocksPerPool: blocks, PagesPerBlock: g.PagesPerBlock,
		Streams: hosts, Survivors: survivors,
		Victim: c.Collection.Victim, Choices: max(choices, 1), Window: c.Collection.Window,
		Yield:       yield,
		GCStart:     max(int(float64(c.Collection.Start)*float64(blocks)), c.Collection.Reserve+1, c.Quirks.HostStop),
		GCHard:      max(int(float64(c.Collection.Hard)*float64(blocks)), 1),
		HostReserve: c.Collection.Reserve,
		Concurrent:  c.Collection.Concurrent,
		DynamicWear: c.Wear.Dynamic, StaticWear: c.Wear.Static,
		Fast: fast,
		Quirks: ftl.Quirks{OnFill: c.Quirks.CollectOnFill, HostStop: c.Quirks.HostStop,
			AnyBlock: c.Quirks.VictimsOfAll, OpenAtOnce: c.Quirks.FrontiersAtOnce},
		OpenOrder: order,
	}
}

// computeTimes fills in the constants.
func (d *Drive) computeTimes() {
	t := &d.cfg.Timing
	for n := 1; n <= nand.MaxPlanesPerDie; n++ {
		d.readCommand[n], d.programCommand[n], d.eraseCommand[n] = t.ReadCommand(n), t.ProgramCommand(n),
			t.EraseCommand(n)
	}
	d.readArray, d.programArray = make([]sim.Time, d.pagesPerBlock), make([]sim.Time, d.pagesPerBlock)
	for page := range d.readArray {
		kind := t.Cell.PageType(page)
		d.readArray[page], d.programArray[page] = t.Read[kind]+t.ReadyBusy, t.Program[kind]
	}
	d.suspendCommand = t.SuspendCommand()
	d.suspendTime[opProgram], d.suspendTime[opErase] = t.SuspendProgram, t.SuspendErase
	d.lastPayload, d.lastDRAM, d.lastBytes = -1, -1, -1 // no cached value
	d.bellTime = d.linkTime(doorbellBytes)
	d.submissionTime = d.linkTime(submissionBytes)
	d.completionTime = d.linkTime(completionBytes)
	d.readRequestTime = d.wireTime(int64(d.cfg.Host.PacketBytes) + 4)
}

// makeCaches sets up the data caches and the mapping tables: one for all namespaces, or one each.
func (d *Drive) makeCaches() {
	sets, tables := 1, 1
	if d.cfg.Cache.Partitioned {
		sets = len(d.ns)
	}
	if !d.cfg.Mapping.CMTShared {
		tables = len(d.ns)
	}
	d.caches = make([]cache, sets)
	if sets > 1 || d.cfg.Quirks.MessagesInTurn {
		d.memoryTurns.queues = make([]rings.Ring[memoryTransfer], sets)
	}
	if d.cfg.Quirks.SectorsLost && !d.cfg.Mapping.Ideal {
		d.stored = new(storedSectors)
	}
	if d.cfg.Quirks.MessagesInTurn {
		d.turns = new(linkTurns)
	}
	d.touchedReset = make([]sim.Time, len(d.ns))
	pages := int(d.cfg.Cache.Capacity/d.cfg.grainSize()) / sets
	for i := range d.caches {
		c := &d.caches[i]
		c.most, c.set = max(pages, 1), uint8(i)
		if d.cfg.Cache.Destage == DestageFirstTouch {
			c.touched = make([]hash[uint32], len(d.ns))
		}
	}
	for i := range d.ns {
		if d.cfg.Quirks.FillsNeedProgram && d.ns[i].cache >= CacheRead {
			d.programs = new(hash[uint32])
		}
	}
	d.destageAt = int(float64(d.cfg.Cache.DestageAt) * float64(pages))
	if d.destageDepth = d.cfg.Cache.DestageDepth; d.destageDepth == 0 {
		d.destageDepth = 2 * d.cfg.Geometry.Planes()
	}
	d.destageDepth *= int(d.grains)
	d.packing = pack.New(d.pools.count(), sets)
	d.tables = make([]mappingTable, tables)
	for i := range d.tables {
		d.tables[i].most = int(d.cfg.cmtEntries()) / tables
	}
}

func (d *Drive) schedule(at sim.Time, kind uint16, arg uint32) {
	d.eng.Schedule(d.self, d.target, at, kind, arg)
}

// soon schedules an event that is likely to be the next of all. The first such event of a handler is held back until
// the handler ends; if it is then the next one, it never enters the queue. Outside the drive's own events soon is the
// same as schedule.
func (d *Drive) soon(at sim.Time, kind uint16, arg uint32) {
	if !d.handling || d.next.Kind != evNone {
		d.schedule(at, kind, arg)
		return
	}
	d.next = nextEvent{sim.Event{At: at, Arg: arg, Kind: kind}, d.eng.Claim(d.self)}
}

// nextEvent is an event that may be the next one. Its place in the order of simultaneous events is claimed when it is
// made.
type nextEvent struct {
	sim.Event // evNone if there is none
	order     uint64
}

// Handle implements sim.Handler.
func (d *Drive) Handle(ev sim.Event) {
	d.handling = true
	for {
		switch ev.Kind {
		case evDoorbell:
			d.doorbell(block.QueueID(ev.Arg))
		case evFetchAsked:
			d.fetchAsked(int32(ev.Arg))
		case evCommandArrived:
			d.commandArrived(int32(ev.Arg))
		case evCommandTaken:
			d.commandTaken(int32(ev.Arg), d.requests.At(int32(ev.Arg)))
		case evServed:
			d.answer(int32(ev.Arg), d.requests.At(int32(ev.Arg)))
		case evDataAsked:
			d.dataAsked(int32(ev.Arg), d.requests.At(int32(ev.Arg)))
		case evDataArrived:
			d.accept(int32(ev.Arg), d.requests.At(int32(ev.Arg)))
		case evCompleted:
			d.complete(int32(ev.Arg))
		case evMemoryDone, evEvicted, evFromMemory:
			d.fromDRAM(ev.Kind, int32(ev.Arg))
		case evTransferred:
			d.transferred()
		case evChannelFree:
			d.channelFree(int32(ev.Arg))
		case evArrayDone:
			d.arrayDone(int32(ev.Arg))
		case evPlaneRead:
			d.planeDone(int32(ev.Arg))
		case evDataOut:
			d.dataSent(int32(ev.Arg))
		case evIdle:
			d.idle()
		case evPassed:
			d.passed(ev.Arg)
		case evLookAgain:
			d.lookAgain()
		case evRefused:
			d.completeRefused()
		}
		if d.next.Kind == evNone {
			break
		}
		ev = d.next.Event
		d.next.Kind = evNone
		// Advance succeeds only if no other event comes first.
		if !d.eng.Advance(ev.At) {
			d.eng.ScheduleAs(d.next.order, d.target, ev.At, ev.Kind, ev.Arg)
			break
		}
	}
	d.handling = false
	d.happened()
}

// EraseHistogram returns how many blocks have been erased n times, at index n.
func (d *Drive) EraseHistogram() []int64 {
	h := d.ftl.EraseHistogram()
	for n := range h {
		h[n] *= int64(d.pools.size)
	}
	return h
}

// Config returns the configuration that the drive was made from.
func (d *Drive) Config() Config { return d.cfg }

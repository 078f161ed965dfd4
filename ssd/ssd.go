// Package ssd models an NVMe solid-state drive, from doorbells to NAND cells.
//
// The main types are Config, which describes a drive in plain values, and Drive, a
// block.Device that runs on a sim.Engine. Any number of drives run in one engine.
//
// What happens to a command: the host rings a doorbell; the controller fetches the
// entry over PCIe (host.go); reads and writes pass the data cache in DRAM
// (cache.go, dram.go); the map, demand-paged from flash unless it is ideal
// (table.go, cmt.go), gives each page its place (access.go); the scheduler
// (schedule.go) sends commands to chips over channels (flash.go); the translation
// layer of package ftl decides what is collected and erased (collect.go).
//
// Level of detail: that of MQSim (Tavakkol et al., FAST 2018) and above: die
// interleaving, multi-plane commands, program and erase suspension, mapping
// programs and their collection, copyback, trim, flush, priority classes with
// weighted arbitration. compat_mqsim.go alone knows how MQSim deviates.
//
// An entry of the map is about a grain, a part of a page of flash or all of it. What is called a logical page, and what ftl calls a page, is a grain;
// grains.go fills pages of flash with them.
//
// What it leaves out: the wear that makes blocks fail (that they do is survived), redundancy over dies, and the content of the data.
package ssd

import (
	"farflash/block"
	"farflash/ftl"
	"farflash/internal/divide"
	rings "farflash/internal/fifo"
	"farflash/internal/slab"
	"farflash/rng"
	"farflash/sim"
	"farflash/ssd/nand"
	"farflash/ssd/pack"
	"farflash/units"
)

// Sink is where a drive's completions go.
type Sink = block.Sink

// Drive is one simulated drive. It belongs to the goroutine that runs its engine.
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
	mapIndex     hash[uint32] // place in mapPages of the mapping pages that something is known of
	mapPages     []mappingPage
	freeMapPages []uint32
	together     bool         // transactions that waited for a mapping page, or for space, go on
	waited       []uint64     // they, in the order that a quirk asks for
	firstOf      hash[uint32] // the first of them for each entry
	used         []uint64     // entries of a mapping page that is written back, by logical page
	txns         slab.Slab[transaction]
	requests     slab.Slab[request]
	queues       []queuePair
	closed       bool
	lanes        []lane
	planes       []planeAt
	planeReads   []planeRead // by plane; nil if planes do not read by themselves
	channels     []channel
	dirty        []uint64 // channels to be served at the end of the batch
	wanted       []uint8  // the planes of which some wait in the scheduler, a bit each, by die and queue
	batch        int
	grains       int32 // of the map that a page of flash holds
	packing      pack.Pages
	packed       uint64         // grains that were put into pages, all in all
	pagesTaken   uint64         // pages that those filled, or that were programmed before they were full
	reading      sharedRead     // the last read of the batch
	heldPages    []uint32       // logical pages whose entries hold changes
	chaining     bool           // what shares a page comes to its end, one by one
	postponed    []int32        // pools that would have been collected meanwhile
	noData       bool           // while a channel looks for commands that carry no data
	heldBack     bool           // some lane would have programmed meanwhile
	stored       *storedSectors // nil unless Quirks.SectorsLost
	asked        hash[uint32]   // by logical page: its turn when its mapping page arrives (Quirks.WaitersEvicted)
	rotates      bool           // polls advance the rotation among classes (Quirks.RotatesClasses)
	lookout      lookout
	entered      bool    // a transaction was queued since channels were served
	foretold     bool    // who submits requests tells of them before, by Expect
	gathering    int     // look-ups that came together are under way, where a quirk asks
	gathered     []int32 // those that have their places

	isCollecting  []bool  // by pool
	moving        []int32 // moves that are under way, by pool
	paces         []pace  // by pool
	erasing       []erasing
	groups        *groups     // nil if there is one
	divided       bool        // there are several namespaces or groups
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
	accepted         uint32 // distinct instants at which commands were complete
	acceptedAt       sim.Time
	next             nextEvent
	handling         bool // an event of its own
	processors       processors
	rest             rest
	touchedReset     []sim.Time // by namespace: when the filter of first touches is emptied next
	turn             [block.Classes]int
	classCredit      [3]int32

	// Constants, computed once.
	pagesPerBlock                    uint32
	perPool, perBlock                divide.By // pages of a pool and of its blocks, as the translation layer numbers them: grains
	byFlashBlock                     divide.By // pages of a block of flash
	perPage                          divide.By // grains of a page of flash
	mostMoving                       int32     // moves of a pool that are under way at once; 0 is no limit
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

	before    ftl.Stats // what preconditioning did
	zoneStats ZoneStats

	counters

	// programFails says that the program of a page that has just ended did not take; nil: all do. Only tests set it: the wear
	// that makes blocks fail is not modelled.
	programFails func(page uint32) bool

	// OnWork gets all that channels and dies do, OnSuspend what they stop doing before its end.
	OnWork    sim.Probe[Work]
	OnSuspend sim.Probe[Suspension]
	// OnAccount is told where the time of each read and write went, before it completes.
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
)

// New returns a drive on an engine, in the state that its configuration says. The
// name tells its random numbers from those of other drives.
func New(cfg Config, eng *sim.Engine, sink Sink, seed uint64, name string) (*Drive, error) {
	m, err := Prepare(cfg, seed, name, nil)
	if err != nil {
		return nil, err
	}
	return NewOnly(m, eng, sink, seed, name), nil
}

// NewOnly returns the only drive that is made from an image, which is of no use afterwards.
func NewOnly(m *Image, eng *sim.Engine, sink Sink, seed uint64, name string) *Drive {
	d := newDrive(m, eng, sink, seed, name)
	m.give(d)
	return d
}

// NewFrom returns a drive whose flash is in the state of an image, which it shares
// until it writes.
func NewFrom(m *Image, eng *sim.Engine, sink Sink, seed uint64, name string) *Drive {
	d := newDrive(m, eng, sink, seed, name)
	m.clone(d)
	return d
}

// newDrive makes a drive that lacks only its flash's state.
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
		perPool: divide.New(uint64(m.pools.flash.PagesPerPlane())), perBlock: divide.New(uint64(m.pools.flash.PagesPerBlock)),
		grains: int32(cfg.grainsPerPage()), perPage: divide.New(uint64(cfg.grainsPerPage())),
		sectorsPerGrain: int64(cfg.sectorsPerGrain()), perGrain: divide.New(uint64(cfg.sectorsPerGrain())),
		allSectors:     ^uint64(0) >> (64 - cfg.sectorsPerGrain()),
		entriesPerPage: uint32(cfg.entriesPerMappingPage()),
		superpage:      int64(g.Planes() * g.SectorsPerPage()),
	}
	if d.pools.size > 1 {
		d.mostMoving = int32(movesPerPlane*d.pools.size) * d.grains
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

// layLanes makes the lanes, and says which plane is where.
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

// translation is the configuration of the translation layer of flash in pools;
// the streams are the namespaces' write streams, then one of mapping pages each.
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
			survivors[s] = hosts + ns[s-streams].stream // they are never collected
		case s >= streams:
			survivors[s] = len(survivors) + s // settled below
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
	var order []int // of each namespace: data, mapping pages, survivors
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
		Fast:      fast,
		Quirks:    ftl.Quirks{OnFill: c.Quirks.CollectOnFill, HostStop: c.Quirks.HostStop, AnyBlock: c.Quirks.VictimsOfAll, OpenAtOnce: c.Quirks.FrontiersAtOnce},
		OpenOrder: order,
	}
}

// computeTimes fills in the constants.
func (d *Drive) computeTimes() {
	t := &d.cfg.Timing
	for n := 1; n <= nand.MaxPlanesPerDie; n++ {
		d.readCommand[n], d.programCommand[n], d.eraseCommand[n] = t.ReadCommand(n), t.ProgramCommand(n), t.EraseCommand(n)
	}
	d.readArray, d.programArray = make([]sim.Time, d.pagesPerBlock), make([]sim.Time, d.pagesPerBlock)
	for page := range d.readArray {
		kind := t.Cell.PageType(page)
		d.readArray[page], d.programArray[page] = t.Read[kind]+t.ReadyBusy, t.Program[kind]
	}
	d.suspendCommand = t.SuspendCommand()
	d.suspendTime[opProgram], d.suspendTime[opErase] = t.SuspendProgram, t.SuspendErase
	d.lastPayload, d.lastDRAM, d.lastBytes = -1, -1, -1
	d.bellTime = d.linkTime(doorbellBytes)
	d.submissionTime = d.linkTime(submissionBytes)
	d.completionTime = d.linkTime(completionBytes)
	d.readRequestTime = d.wireTime(int64(d.cfg.Host.PacketBytes) + 4)
}

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

// soon schedules an event that may well be the next of all: of the first such one in an event the drive sees at the end of that whether it is, and then it takes no
// trip through the queue. What is scheduled from outside of the drive's own events is scheduled as any other.
func (d *Drive) soon(at sim.Time, kind uint16, arg uint32) {
	if !d.handling || d.next.Kind != evNone {
		d.schedule(at, kind, arg)
		return
	}
	d.next = nextEvent{sim.Event{At: at, Arg: arg, Kind: kind}, d.eng.Claim(d.self)}
}

// nextEvent is an event that may be the next one.
type nextEvent struct {
	sim.Event // of the kind evNone: there is none
	order     uint64
}

// Handle implements sim.Handler: one event, and those after it that were the next of all and needed no trip through the queue.
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
		}
		if d.next.Kind == evNone {
			break
		}
		ev = d.next.Event
		d.next.Kind = evNone
		if !d.eng.Advance(ev.At) {
			d.eng.ScheduleAs(d.next.order, d.target, ev.At, ev.Kind, ev.Arg)
			break
		}
	}
	d.handling = false
	d.happened()
}

// EraseHistogram returns, at index n, how many blocks have been erased n times.
func (d *Drive) EraseHistogram() []int64 {
	h := d.ftl.EraseHistogram()
	for n := range h {
		h[n] *= int64(d.pools.size)
	}
	return h
}

// Config returns what the drive was made from.
func (d *Drive) Config() Config { return d.cfg }

// Namespaces is how many namespaces the drive has.
func (d *Drive) Namespaces() int { return len(d.ns) }

// LogicalSize is what the host can address altogether.
func (d *Drive) LogicalSize() units.Bytes {
	total := units.Bytes(0)
	for i := range d.ns {
		total += d.ns[i].capacity()
	}
	return total
}

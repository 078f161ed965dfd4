package ssd

import (
	"math"

	"farflash/model/ssd/nand"
	"farflash/numeric/units"
	"farflash/policy/ftl"
)

// Config describes a drive in plain values. It does not change once a Drive was made from it.
type Config struct {
	Geometry nand.Geometry
	Timing   nand.Timing

	// OverProvisioning is the share of the physical pages that the host cannot address: 1 - logical/physical (the spare
	// factor, not physical/logical - 1).
	OverProvisioning units.Fraction

	Host            Host
	DRAM            DRAM
	Cache           Cache
	Mapping         Mapping
	Scheduling      Scheduling
	Collection      Collection
	Wear            Wear
	Initial         Initial         // Initial is what reads find at addresses that were never written.
	Preconditioning Preconditioning // Preconditioning is the state of the drive at time 0.

	// Namespaces divide the drive; an empty list is one namespace over all of it.
	Namespaces []Namespace

	// FDP is data placement by reclaim unit handles. A namespace can have streams instead.
	FDP *FDP

	Zones *Zones // Zones make namespaces zoned (ZNS). By default they are conventional.

	Energy *Energy // Energy is the energy of each operation. By default it is not computed.

	// Controller is the time that the drive's processors spend on commands. The default is none.
	Controller *Controller

	// PowerStates are the power states that an idle drive enters, in this order. By default it is always awake.
	PowerStates []PowerState

	PowerLimit *PowerLimit // PowerLimit is the limit on the drive's power. The default is none.

	// SLCCache is a cache of flash written with one bit per cell. The default is none.
	SLCCache *SLCCache

	// Reliability is the model of flash errors by wear, age and reads. By default there are no errors.
	Reliability *Reliability

	// Quirks are a peer simulator's deviations from how a drive should work, for comparisons. Only a compat file sets
	// them.
	Quirks Quirks
}

// Host is the PCIe link and the NVMe controller's front end.
type Host struct {
	LaneRate units.ByteRate // LaneRate is the rate of one lane in one direction, after line coding.
	Lanes    int            // Lanes is the number of PCIe lanes.
	// PacketBytes is a TLP's overhead in the physical, data link and transaction layers.
	PacketBytes int
	MaxPayload  int // MaxPayload is the largest payload of a TLP, in bytes.
	// FetchSize is the number of commands of one queue that the controller can hold, unless the queue sets in_flight.
	FetchSize int
	// Commands is the number of commands that the controller can hold in total, beyond which queues are arbitrated. 0
	// is no limit.
	Commands int
	// Burst is the number of commands fetched from one queue in a row (Arbitration Burst, NVMe Base Specification 2.0
	// section 3.4.4).
	Burst int
	// Weights are the weights of the classes high, medium and low under weighted round robin. Equal weights are plain
	// round robin. Urgent always has strict priority.
	Weights [3]int
	// SubmissionDepth is the number of entries of each submission queue, unless the queue sets its own.
	SubmissionDepth int
}

// DRAM is the drive's memory channel.
type DRAM struct {
	RowSize   units.Bytes        // RowSize is the number of bytes that one activation opens.
	DataRate  units.TransferRate // DataRate is the rate of the data bus.
	BurstSize units.Bytes        // BurstSize is the number of bytes in a transfer, the bus's width.
	TRCD      units.Duration     // TRCD is the time from an activation to a read or write.
	TCL       units.Duration     // TCL is the time from a read or write to its data.
	TRP       units.Duration     // TRP is the time of a precharge.
}

// CacheMode is the use of the data cache.
type CacheMode uint8

const (
	CacheOff CacheMode = iota
	CacheWrite
	CacheRead
	CacheReadWrite
)

var cacheModeNames = units.Names[CacheMode]{"off", "write", "read", "read-write"}

func (m CacheMode) String() string { return cacheModeNames.Name(m) }

func (m CacheMode) MarshalText() ([]byte, error) { return cacheModeNames.Marshal(m) }

func (m *CacheMode) UnmarshalText(text []byte) error { return cacheModeNames.Unmarshal(text, m) }

// Destage is the policy by which written data leave the cache for flash.
type Destage uint8

const (
	// DestageOldest: programs the least recently written pages once more than DestageAt of the cache is dirty, at most
	// DestageDepth at a time.
	DestageOldest Destage = iota
	// DestageFirstTouch: programs a page at once on its first write in a second, and after later writes only on
	// eviction. Data in flight to flash are limited to one superpage.
	DestageFirstTouch
)

var destageNames = units.Names[Destage]{"oldest", "first-touch"}

func (p Destage) String() string { return destageNames.Name(p) }

func (p Destage) MarshalText() ([]byte, error) { return destageNames.Marshal(p) }

func (p *Destage) UnmarshalText(text []byte) error { return destageNames.Unmarshal(text, p) }

// Cache is the data cache in DRAM.
type Cache struct {
	Mode        CacheMode      // Mode is which requests the cache serves.
	Capacity    units.Bytes    // Capacity is the amount of data that the cache can hold.
	Partitioned bool           // Partitioned gives each namespace an equal share of the cache.
	Destage     Destage        // Destage is the policy for programming cached writes to flash.
	DestageAt   units.Fraction // DestageAt is the dirty share of the cache at which destaging starts.
	// DestageDepth is the largest number of pages in flight to flash. 0 is two per plane.
	DestageDepth int
}

// Scheme is the order in which consecutive logical pages are striped over channels (C), chips or ways (W), dies (D) and
// planes (P); the first letter varies fastest.
type Scheme [4]byte

// String returns the four letters.
func (s Scheme) String() string { return string(s[:]) }

// MarshalText writes the four letters.
func (s Scheme) MarshalText() ([]byte, error) { return s[:], nil }

// UnmarshalText reads one of the 24 orders of the four letters.
func (s *Scheme) UnmarshalText(text []byte) error {
	seen := 0
	for _, b := range text {
		for i, l := range []byte("CWDP") {
			if b == l {
				seen |= 1 << i
			}
		}
	}
	if len(text) != 4 || seen != 15 {
		return &units.TextError{Text: string(text), Is: "is not a plane allocation scheme",
			Use: "an order of the letters C, W, D and P, such as CWDP"}
	}
	copy(s[:], text)
	return nil
}

// Allocation is how a page that is written is assigned to a plane.
type Allocation uint8

const (
	// AllocateDynamic: writes to the next page of an open superblock, a block of every plane, regardless of the
	// address.
	AllocateDynamic Allocation = iota
	// AllocateStatic writes to the plane that the scheme assigns to the address.
	AllocateStatic
)

var allocationNames = units.Names[Allocation]{"dynamic", "static"}

func (a Allocation) String() string { return allocationNames.Name(a) }

func (a Allocation) MarshalText() ([]byte, error) { return allocationNames.Marshal(a) }

func (a *Allocation) UnmarshalText(text []byte) error { return allocationNames.Unmarshal(text, a) }

// Grain is the amount of data that an entry of the map covers; 0 is a page of flash.
type Grain units.Bytes

// String returns the size, or "page".
func (g Grain) String() string {
	if g == 0 {
		return "page"
	}
	return units.Bytes(g).String()
}

// MarshalText writes the size, or "page".
func (g Grain) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads a size, or "page".
func (g *Grain) UnmarshalText(text []byte) error {
	if string(text) == "page" {
		*g = 0
		return nil
	}
	size, err := units.ParseBytes(string(text))
	if err != nil {
		return &units.TextError{Text: string(text), Is: "is not a grain of the map",
			Use: "page, or a size such as 4KiB"}
	}
	if size <= 0 {
		return &units.TextError{Text: string(text), Is: "is not a grain of the map",
			Use: "page, or a positive size such as 4KiB"}
	}
	*g = Grain(size)
	return nil
}

// Mapping is the logical-to-physical map.
type Mapping struct {
	// Grain is the data covered by an entry of the map: page, or a size that divides a page. Grains of different
	// addresses then share a page, which is programmed when it is full.
	Grain Grain
	// Ideal holds the whole map in DRAM; otherwise it is cached on demand and stored in mapping pages on flash (DFTL,
	// Gupta et al., ASPLOS 2009).
	Ideal       bool
	CMTCapacity units.Bytes // CMTCapacity is the size of the cached mapping table.
	// CMTShared has one table for all namespaces; otherwise each has an equal share.
	CMTShared bool
	// Scheme is the order in which consecutive addresses are striped over the planes: those never written, and all of
	// them under static allocation.
	Scheme     Scheme
	Allocation Allocation // Allocation is how a written page is assigned to a plane.
}

// Scheduling is how the drive chooses commands to flash.
type Scheduling struct {
	Classes        bool // Classes makes the flash scheduler observe the queues' priority classes.
	SuspendProgram bool // SuspendProgram lets a read interrupt a running program.
	SuspendErase   bool // SuspendErase lets a read interrupt a running erase.
	// ProgramLeftForRead is the least remaining time of a program that a read interrupts.
	ProgramLeftForRead units.Duration
	// EraseLeftForRead is the least remaining time of an erase that a read interrupts.
	EraseLeftForRead     units.Duration
	SuspendEraseForWrite bool // SuspendEraseForWrite lets a write interrupt an erase.
	// EraseLeftForWrite is the least remaining time of an erase that a write interrupts.
	EraseLeftForWrite units.Duration
	// IndependentReads lets each plane of a die read pages independently. Otherwise planes read together, and only
	// pages of the same number.
	IndependentReads bool
	// ReadsInTurn makes the independent reads of a die start one at a time while a program or an erase waits for it.
	ReadsInTurn bool
}

// Collection is garbage collection.
type Collection struct {
	Victim  ftl.Victim // Victim is the policy that chooses the block to collect.
	Choices int        // Choices is d of the d-choices policy; 0 is log2 of a plane's blocks.
	// Window is the share of blocks, oldest first, that windowed greedy considers.
	Window units.Fraction
	// Start is the share of a plane's blocks that are free when collection starts.
	Start units.Fraction
	// Hard is the share of free blocks below which collection has priority over everything else.
	Hard units.Fraction
	// Preemptible gives host commands priority over collection until Hard is reached.
	Preemptible bool
	Concurrent  int // Concurrent is the number of victims that a plane collects at once.
	// MovesPerPlane is the average number of pages of flash that each plane of a superblock moves at once. Static
	// allocation has no limit.
	MovesPerPlane float64
	// Reserve is the number of a plane's free blocks that only collection can use.
	Reserve  int
	Copyback bool // Copyback moves pages within a plane without using the channel.
	Streams  bool // Streams keeps the surviving pages of each write stream apart.
}

// Wear is wear levelling and end of life.
type Wear struct {
	Dynamic bool // Dynamic writes to the free block with the fewest erases.
	// Static is the difference in erase counts within a plane at which a cold block is moved. 0 turns it off.
	Static int
	// Cycles is a block's rated number of program/erase cycles, only for the reported life used.
	Cycles int
}

// Initial is the content that reads find at addresses that were never written.
type Initial uint8

const (
	// InitialFormula: data are where the plane allocation scheme puts them when the drive is written in address order;
	// reads go to flash. They take no space.
	InitialFormula Initial = iota
	// InitialEmpty: never written; the controller answers with zeros at once.
	InitialEmpty
	// InitialOnRead: a page is allocated when it is first read.
	InitialOnRead
)

var initialNames = units.Names[Initial]{"formula", "empty", "on-read"}

func (i Initial) String() string { return initialNames.Name(i) }

func (i Initial) MarshalText() ([]byte, error) { return initialNames.Marshal(i) }

func (i *Initial) UnmarshalText(text []byte) error { return initialNames.Unmarshal(text, i) }

// Fill is how a drive was filled before time 0.
type Fill uint8

const (
	// FillNone: as it left the factory.
	FillNone Fill = iota
	// FillSequential: written once from the first address to the last.
	FillSequential
	// FillSteady: written at random until garbage collection is in steady state, computed from the mean-field
	// distribution of valid pages.
	FillSteady
	// FillReplay: written at random Passes times over, with every write replayed through the translation layer, without
	// timing.
	FillReplay
)

var fillNames = units.Names[Fill]{"none", "sequential", "steady", "replay"}

func (f Fill) String() string { return fillNames.Name(f) }

func (f Fill) MarshalText() ([]byte, error) { return fillNames.Marshal(f) }

func (f *Fill) UnmarshalText(text []byte) error { return fillNames.Unmarshal(text, f) }

// Preconditioning is how the drive was filled and used before time 0.
type Preconditioning struct {
	Fill      Fill           // Fill is how the drive was filled.
	Occupancy units.Fraction // Occupancy is the share of the logical pages that hold data.
	// Passes is the number of drive writes after the first fill, with fill: replay.
	Passes float64
	// SmallWrites makes each random write of steady and replay one grain of the map, not a page whose grains are then
	// stored together.
	SmallWrites bool
	// Free is the number of free blocks of a plane at time 0, with fill: steady.
	Free Free
}

// Free is the number of blocks of a plane that steady writes have left free.
type Free uint8

const (
	// FreeByLoad: hard if, by the mean times of programs and reads, the workload writes more than collection can keep
	// up with behind the host's requests; otherwise, and for a trace, whose rate is not known in advance, start.
	FreeByLoad Free = iota
	// FreeStart: the number at which collection starts, typical of a drive that collects faster than it is written to.
	FreeStart
	// FreeHard: the number at which collection is urgent, typical of a drive that is written to as fast as it accepts.
	// Without collection.preemptible, the same as start.
	FreeHard
)

var freeNames = units.Names[Free]{"by-load", "start", "hard"}

func (f Free) String() string { return freeNames.Name(f) }

func (f Free) MarshalText() ([]byte, error) { return freeNames.Marshal(f) }

func (f *Free) UnmarshalText(text []byte) error { return freeNames.Unmarshal(text, f) }

// Namespace is a part of the drive with its own addresses. The lists select the channels, chips of a channel, dies of a
// chip and planes of a die that store it; an empty list is all. Namespaces share common planes equally.
type Namespace struct {
	Channels []int      // Channels are the channels that store it; an empty list is all.
	Chips    []int      // Chips are the chips of each channel; an empty list is all.
	Dies     []int      // Dies are the dies of each chip; an empty list is all.
	Planes   []int      // Planes are the planes of each die; an empty list is all.
	Cache    *CacheMode // Cache is the namespace's cache mode. The default is the drive's.
	// Streams is the number of placement hints (write streams, FDP placement handles) that the namespace distinguishes.
	// Each has its own open block in each plane.
	Streams int
	// Handles are the reclaim unit handles of its placement handles, from placement 0 on; an empty list is all, in
	// order.
	Handles      []int
	Conventional bool // Conventional makes the namespace conventional on a drive with zones.
}

// Energy is the energy of each operation and the power of the idle drive.
type Energy struct {
	// Read, Program and Erase are the array's energies for a page read, a page program and a block erase.
	Read, Program, Erase units.Energy
	TransferPerByte      units.Energy // TransferPerByte is the energy of a byte over a flash channel.
	LinkPerByte          units.Energy // LinkPerByte is the energy of a byte over the host link.
	Idle                 float64      // Idle is the power of the drive at rest, in watts.
	Source               string       // Source is the figures' source.
}

// Quirks are settings that only a compat file changes.
type Quirks struct {
	WholeChip bool // WholeChip: a command is sent only to a chip none of whose dies is busy.
	// HeadBlocks: a command at the head of a chip's queue that waits for another one blocks the whole queue.
	HeadBlocks bool
	// DataFirst: read data that wait for a channel have priority over all commands, so that chips that could work wait
	// for the data of others.
	DataFirst bool
	// MappingProgramsVanish: writing back a mapping page has no effect: it takes a page but never a program, and the
	// contents stay in DRAM forever.
	MappingProgramsVanish bool
	// MappingPagesLaidOut: all mapping pages except a last partial one are on flash at time 0 and take space.
	MappingPagesLaidOut bool
	BusCyclesTruncated  bool // BusCyclesTruncated: a channel's cycle is a whole number of nanoseconds.
	RowsHalved          bool // RowsHalved: DRAM transfers longer than a row count half the rows.
	WholeNanoseconds    bool // WholeNanoseconds: link and DRAM times are truncated to whole nanoseconds.
	// FrontiersAtOnce: every stream's open blocks are allocated from the pool at time 0.
	FrontiersAtOnce bool
	CollectOnFill   bool // CollectOnFill: collection is only considered when an open block fills up.
	// SharesSummed: a namespace is as large as the sum of its shares of all its planes, although it uses the planes
	// evenly.
	SharesSummed bool
	// CutAcross: requests are split at the page boundaries that the drive would have if its namespaces were laid out
	// one after the other, but the parts are mapped to the namespace's own pages, which start at its first sector. A
	// part can therefore extend beyond its page.
	CutAcross bool
	// DiesForPlanes: under scheme DWCP a read of a page never written chooses its plane from the namespace's list of
	// dies.
	DiesForPlanes bool
	// RotatesClasses: the rotation among classes high, medium and low advances at every poll of a chip, even one that
	// cannot start a command, and a poll may find no request although some wait.
	RotatesClasses bool
	// MessagesInTurn: queued transfers of the link and the DRAM, and array operations, are scheduled when they start,
	// not when they are queued, which decides the order of simultaneous events. Host and drive share one event order.
	MessagesInTurn bool
	// WaitersEvicted: the map cache evicts entries that transactions wait for; these transactions wait until another
	// request looks the entry up.
	WaitersEvicted bool
	// SectorsLost: writing back a mapping page stores the valid-sector bitmap of the evicted entry only.
	SectorsLost bool
	// WritesUnseen: a write that bypasses the read cache leaves stale data in it.
	WritesUnseen bool
	// UpdatesHigh: a read of the sectors that a partial write leaves valid has class high, whatever the class of the
	// write.
	UpdatesHigh bool
	// EvictedAsOwn: a page evicted from the cache for one of another namespace is written as that namespace's page of
	// the same number, and its own stays as it was.
	EvictedAsOwn bool
	// MovesUse: the map entry of a page that is moved is marked as used and changed when the page has been read.
	MovesUse bool
	// VictimsOfAll: victims are drawn from all blocks of a plane, including free and open ones, with MQSim's random
	// numbers. A search may therefore fail. A victim that the host was reading when it was selected is never erased,
	// and a block in which a page was allocated for a read of unwritten data is never collected.
	VictimsOfAll bool
	// HostStop: no host write gets a page while a plane has fewer free blocks than this.
	HostStop int
	// FillsNeedProgram: a page that no program wrote does not enter the cache when it is read.
	FillsNeedProgram bool
	// ReadHitDirties: reading a page into an existing slot marks the slot dirty.
	ReadHitDirties bool
	// WriteBackUses: an entry of the map that is written back with its mapping page counts as used at that time.
	WriteBackUses bool
	// LookUpsFirst: for transactions that arrive together, map reads and the moves that some of them need are sent
	// before any of the transactions; and transactions that waited for a map read resume before anything else that
	// follows from its completion.
	LookUpsFirst bool
	// EndsAreEvents: at the instant at which a command has been sent, its channel becomes free only when the end of the
	// command is processed, after all events scheduled earlier for that instant. The end takes its place among
	// simultaneous events when the command starts, whether or not anything waits for the channel.
	EndsAreEvents bool
	// FiltersShareClock: of the first-touch filters of all namespaces, only the one whose write comes first is emptied
	// each second.
	FiltersShareClock bool
	// ReadsThenWrites: transactions that wait for the same entry of the map resume reads first.
	ReadsThenWrites bool
}

// DefaultConfig is MQSim's distributed drive (FAST'18) without quirks and with a 4 KiB map grain: 8 channels of 4 chips
// with 2 dies of 2 planes, 2048 blocks of 256 pages of 8 KiB, 512 GiB.
func DefaultConfig() Config {
	us, ns := units.Microsecond, units.Nanosecond
	each := func(d units.Duration) [4]units.Duration { return [4]units.Duration{d, d, d, d} }
	return Config{
		Geometry: nand.Geometry{
			Channels: 8, ChipsPerChannel: 4, DiesPerChip: 2, PlanesPerDie: 2,
			BlocksPerPlane: 2048, PagesPerBlock: 256, PageSize: 8192,
		},
		Timing: nand.Timing{
			Cell: nand.MLC, Read: each(75 * us), Program: each(750 * us), Erase: 3800 * us,
			SuspendProgram: 100 * us, SuspendErase: 700 * us,
			TransferRate: 333_000_000, Width: 1,
			TCS: 20 * ns, TWC: 25 * ns, TWB: 100 * ns, TRR: 20 * ns, TDBSY: 500 * ns,
			TADL: 70 * ns, TCALS: 15 * ns, TWPST: 6 * ns, TWPSTH: 15 * ns,
			DataOutSetup: 30 * ns, ReadyBusy: 20 * ns,
		},
		OverProvisioning: 0.07,
		Host: Host{
			LaneRate: 1_000_000_000, Lanes: 4, PacketBytes: 28, MaxPayload: 128,
			FetchSize: 512, Commands: 1024, Burst: 1, Weights: [3]int{4, 2, 1}, SubmissionDepth: 65535,
		},
		DRAM: DRAM{RowSize: 8192, DataRate: 800_000_000, BurstSize: 8, TRCD: 13 * ns, TCL: 13 * ns, TRP: 13 * ns},
		Cache: Cache{
			Mode: CacheWrite, Capacity: 256 << 20,
		},
		Mapping: Mapping{Grain: Grain(4 * units.KiB), CMTCapacity: 2 << 20, CMTShared: true,
			Scheme: Scheme{'C', 'W', 'D', 'P'}},
		Scheduling: Scheduling{Classes: true, ProgramLeftForRead: 100 * us, EraseLeftForRead: 700 * us,
			EraseLeftForWrite: 700 * us},
		Collection: Collection{
			Victim: ftl.Greedy, Start: 0.01, Hard: 0.005, Preemptible: true, Concurrent: 1, Reserve: 1,
			// This keeps all dies busy without queueing a whole superblock of moves ahead of the host's pages.
			MovesPerPlane: 4,
		},
		Wear:            Wear{Dynamic: true, Static: 100, Cycles: 10000},
		Preconditioning: Preconditioning{Occupancy: 1},
	}
}

// maxNamespaces is the largest number of namespaces of a drive.
const maxNamespaces = 128

// maxStreams is the largest number of placement hints of a namespace.
const maxStreams = 128

// namespaces returns the list with the default filled in.
func (c *Config) namespaces() []Namespace {
	if len(c.Namespaces) == 0 {
		return []Namespace{{}}
	}
	return c.Namespaces
}

// grainSize returns the amount of data that an entry of the map covers.
func (c *Config) grainSize() units.Bytes {
	if g := units.Bytes(c.Mapping.Grain); g > 0 && g < c.Geometry.PageSize {
		return g
	}
	return c.Geometry.PageSize
}

// grainsPerPage returns the number of grains in a page of flash.
func (c *Config) grainsPerPage() int { return int(c.Geometry.PageSize / c.grainSize()) }

// sectorsPerGrain returns the number of sectors in a grain.
func (c *Config) sectorsPerGrain() int { return int(c.grainSize() / nand.SectorSize) }

// grains returns the number of grains that the flash can hold.
func (c *Config) grains() int64 { return c.Geometry.Pages() * int64(c.grainsPerPage()) }

// cmtEntryBytes returns the size of a cached mapping entry: logical and physical grain number and one bit a sector.
func (c *Config) cmtEntryBytes() int64 {
	bits := 2*math.Log2(float64(c.grains())) + float64(c.sectorsPerGrain())
	return int64(math.Ceil(bits / 8))
}

// cmtEntries returns the number of entries that the cached mapping table can hold.
func (c *Config) cmtEntries() int64 { return int64(c.Mapping.CMTCapacity) / c.cmtEntryBytes() }

// entriesPerMappingPage returns the number of entries in a mapping page on flash, which is as large as a grain. On
// flash an entry needs no logical number.
func (c *Config) entriesPerMappingPage() int64 {
	bits := math.Log2(float64(c.grains())) + float64(c.sectorsPerGrain())
	return int64(c.grainSize()) / int64(math.Ceil(bits/8))
}

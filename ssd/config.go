package ssd

import (
	"math"

	"farflash/ftl"
	"farflash/ssd/nand"
	"farflash/units"
)

// Config describes a drive. Every field is a plain value; a Config does not
// change once a Drive was made from it.
type Config struct {
	Geometry nand.Geometry
	Timing   nand.Timing

	// OverProvisioning is the share of the physical pages that the host cannot address: 1 - logical/physical (the spare factor, not physical/logical - 1).
	OverProvisioning units.Fraction

	Host       Host
	DRAM       DRAM
	Cache      Cache
	Mapping    Mapping
	Scheduling Scheduling
	Collection Collection
	Wear       Wear
	// Initial is what reads find at addresses that were never written.
	Initial Initial
	// Preconditioning is the state of the drive at time 0.
	Preconditioning Preconditioning

	// Namespaces divide the drive; an empty list is one namespace over all of it.
	Namespaces []Namespace

	// FDP is data placement by reclaim unit handles. Without the section a namespace may have streams.
	FDP *FDP

	// Zones make namespaces zoned (ZNS); without the section they are conventional.
	Zones *Zones

	// Energy is how much energy each operation uses. Without the section it is not computed.
	Energy *Energy

	// Controller is the time that the drive's processors take for commands. Without the section they take no time.
	Controller *Controller

	// PowerStates are the power states that an idle drive enters, in this order. Without any it is always awake.
	PowerStates []PowerState

	// PowerLimit is how much power the drive may draw. Without the section there is no limit.
	PowerLimit *PowerLimit

	// SLCCache is flash that is written with one bit a cell. Without the section there is none.
	SLCCache *SLCCache

	// Reliability is how flash errs with wear, age and reads. Without the section it never does.
	Reliability *Reliability

	// Quirks are deviations from how a drive should work that a peer has and a
	// comparison needs. Only a compat file sets them.
	Quirks Quirks
}

// Host is the PCIe link and the NVMe controller's front end.
type Host struct {
	// LaneRate is the rate of one lane in one direction, after line coding.
	LaneRate units.ByteRate
	// Lanes is how many PCIe lanes there are.
	Lanes int
	// PacketBytes is what a TLP has beside its payload: physical, data link and transaction layers.
	PacketBytes int
	// MaxPayload is how many bytes of payload a TLP has at most.
	MaxPayload int
	// FetchSize is how many commands of one queue the controller holds, unless the queue has its own in_flight.
	FetchSize int
	// Commands is how many commands the controller holds in all. 0 is no limit. When it is reached, queues are arbitrated.
	Commands int
	// Burst is how many commands are fetched from one queue in a row (Arbitration
	// Burst, NVMe Base Specification 2.0 section 3.4.4).
	Burst int
	// Weights of the classes high, medium and low under weighted round robin.
	// All equal is plain round robin. Urgent is always strict.
	Weights [3]int
	// SubmissionDepth is the size of each submission queue unless the queue says
	// otherwise.
	SubmissionDepth int
}

// DRAM is the drive's memory channel.
type DRAM struct {
	// RowSize is how many bytes one activation opens.
	RowSize units.Bytes
	// DataRate is the rate of the data bus.
	DataRate units.TransferRate
	// BurstSize is how many bytes move at each transfer: the width of the bus.
	BurstSize units.Bytes
	// TRCD is from an activation to a read or write.
	TRCD units.Duration
	// TCL is from a read or write to the data.
	TCL units.Duration
	// TRP is a precharge.
	TRP units.Duration
}

// CacheMode is what the data cache is used for.
type CacheMode uint8

// The modes.
const (
	CacheOff CacheMode = iota
	CacheWrite
	CacheRead
	CacheReadWrite
)

var cacheModeNames = units.Names[CacheMode]{"off", "write", "read", "read-write"}

// String is the name used in scenarios.
func (m CacheMode) String() string { return cacheModeNames.Name(m) }

// MarshalText writes the mode's name.
func (m CacheMode) MarshalText() ([]byte, error) { return cacheModeNames.Marshal(m) }

// UnmarshalText reads a mode's name.
func (m *CacheMode) UnmarshalText(text []byte) error { return cacheModeNames.Unmarshal(text, m) }

// Destage is when written data leaves the cache for flash.
type Destage uint8

// The destaging policies.
const (
	// DestageOldest programs the least recently written pages once more than
	// DestageAt of the cache is dirty, at most DestageDepth at a time.
	DestageOldest Destage = iota
	// DestageFirstTouch programs a page at once when it is written for the first
	// time in a second, and later writes of it only when it is evicted. Data on
	// its way to flash is limited to one superpage.
	DestageFirstTouch
)

var destageNames = units.Names[Destage]{"oldest", "first-touch"}

// String is the name used in scenarios.
func (p Destage) String() string { return destageNames.Name(p) }

// MarshalText writes the policy's name.
func (p Destage) MarshalText() ([]byte, error) { return destageNames.Marshal(p) }

// UnmarshalText reads a policy's name.
func (p *Destage) UnmarshalText(text []byte) error { return destageNames.Unmarshal(text, p) }

// Cache is the data cache in DRAM.
type Cache struct {
	// Mode is what the cache is used for.
	Mode CacheMode
	// Capacity is how much data it holds.
	Capacity units.Bytes
	// Partitioned gives each namespace an equal share of its own.
	Partitioned bool
	// Destage is when written data leaves for flash.
	Destage Destage
	// DestageAt is the share of the cache that is dirty when destaging starts.
	DestageAt units.Fraction
	// DestageDepth is how many pages may be on their way to flash at once. 0 is two a plane.
	DestageDepth int
}

// Scheme is the order in which consecutive logical pages go round channels (C),
// chips or ways (W), dies (D) and planes (P); the first letter changes fastest.
type Scheme [4]byte

// String is the four letters.
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
		return &units.TextError{Text: string(text), Is: "is not a plane allocation scheme", Use: "an order of the letters C, W, D and P, such as CWDP"}
	}
	copy(s[:], text)
	return nil
}

// Allocation is how a page that is written gets its plane.
type Allocation uint8

// The ways.
const (
	// AllocateDynamic writes to the next page of an open superblock, a block of every plane, whatever the address.
	AllocateDynamic Allocation = iota
	// AllocateStatic writes to the plane that the address belongs to by the scheme.
	AllocateStatic
)

var allocationNames = units.Names[Allocation]{"dynamic", "static"}

// String is the name used in scenarios.
func (a Allocation) String() string { return allocationNames.Name(a) }

// MarshalText writes the way's name.
func (a Allocation) MarshalText() ([]byte, error) { return allocationNames.Marshal(a) }

// UnmarshalText reads a way's name.
func (a *Allocation) UnmarshalText(text []byte) error { return allocationNames.Unmarshal(text, a) }

// Grain is how much an entry of the map is about; 0 is a page of flash.
type Grain units.Bytes

// String is the size, or "page".
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
		return &units.TextError{Text: string(text), Is: "is not a grain of the map", Use: "page, or a size such as 4KiB"}
	}
	if size <= 0 {
		return &units.TextError{Text: string(text), Is: "is not a grain of the map", Use: "page, or a size such as 4KiB, more than nothing"}
	}
	*g = Grain(size)
	return nil
}

// Mapping is the logical-to-physical map.
type Mapping struct {
	// Grain is the unit of an entry of the map: page, or a size that divides a page. Grains of different addresses share a page, which is programmed when it is
	// full.
	Grain Grain
	// Ideal holds the whole map in DRAM; otherwise it is cached on demand and kept
	// in mapping pages on flash (DFTL, Gupta et al., ASPLOS 2009).
	Ideal bool
	// CMTCapacity is how large the cached mapping table is.
	CMTCapacity units.Bytes
	// CMTShared has one table for all namespaces; otherwise each has an equal share.
	CMTShared bool
	// Scheme is the order in which consecutive addresses go round the planes: of what nobody wrote, and under static allocation of all.
	Scheme Scheme
	// Allocation is how a page that is written gets its plane.
	Allocation Allocation
}

// Scheduling is how commands to flash are chosen.
type Scheduling struct {
	// Classes makes the flash scheduler respect the queues' priority classes.
	Classes bool
	// SuspendProgram lets a read interrupt a running program.
	SuspendProgram bool
	// SuspendErase lets a read interrupt a running erase.
	SuspendErase bool
	// ProgramLeftForRead is how long a program must have to go to be interrupted for a read.
	ProgramLeftForRead units.Duration
	// EraseLeftForRead is how long an erase must have to go to be interrupted for a read.
	EraseLeftForRead units.Duration
	// SuspendEraseForWrite lets a write interrupt an erase.
	SuspendEraseForWrite bool
	// EraseLeftForWrite is how long an erase must have to go to be interrupted for a write.
	EraseLeftForWrite units.Duration
	// IndependentReads lets each plane of a die read pages on its own. Otherwise planes read together, and only pages of the same number.
	IndependentReads bool
}

// Collection is garbage collection.
type Collection struct {
	// Victim is how the block to collect is chosen.
	Victim ftl.Victim
	// Choices is d of the d-choices policy; 0 is log2 of the blocks in a plane.
	Choices int
	// Window is the share of the oldest blocks that windowed greedy looks at.
	Window units.Fraction
	// Start is the share of a plane's blocks that are free when collection starts.
	Start units.Fraction
	// Hard is the share of free blocks below which collection goes before everything else.
	Hard units.Fraction
	// Preemptible lets host commands go before collection until Hard is reached.
	Preemptible bool
	// Concurrent is how many victims a plane collects at once.
	Concurrent int
	// Reserve is how many free blocks of a plane are for collection only.
	Reserve int
	// Copyback moves pages inside the plane without the channel.
	Copyback bool
	// Streams keeps the surviving pages of each write stream apart.
	Streams bool
}

// Wear is wear levelling and end of life.
type Wear struct {
	// Dynamic writes to the least worn free block.
	Dynamic bool
	// Static is the difference in erase counts within a plane at which a cold block is moved. 0 turns it off.
	Static int
	// Cycles is the rated number of program/erase cycles of a block. It only serves to report the life used.
	Cycles int
}

// Initial is what reads of addresses nobody has written find.
type Initial uint8

// The initial states.
const (
	// InitialFormula: the data lies where the plane allocation scheme puts it when
	// the drive is written in address order; reading it reads flash. It takes no
	// space.
	InitialFormula Initial = iota
	// InitialEmpty: never written; the controller answers with zeros at once.
	InitialEmpty
	// InitialOnRead: a page is allocated when it is first read.
	InitialOnRead
)

var initialNames = units.Names[Initial]{"formula", "empty", "on-read"}

// String is the name used in scenarios.
func (i Initial) String() string { return initialNames.Name(i) }

// MarshalText writes the state's name.
func (i Initial) MarshalText() ([]byte, error) { return initialNames.Marshal(i) }

// UnmarshalText reads a state's name.
func (i *Initial) UnmarshalText(text []byte) error { return initialNames.Unmarshal(text, i) }

// Fill is how a drive was filled before time 0.
type Fill uint8

// The fills.
const (
	// FillNone: as it left the factory.
	FillNone Fill = iota
	// FillSequential: written once from the first address to the last.
	FillSequential
	// FillSteady: written at random until garbage collection is in steady state,
	// computed from the mean-field distribution of valid pages.
	FillSteady
	// FillReplay: written at random Passes times over, every write played through
	// the translation layer without its timing.
	FillReplay
)

var fillNames = units.Names[Fill]{"none", "sequential", "steady", "replay"}

// String is the name used in scenarios.
func (f Fill) String() string { return fillNames.Name(f) }

// MarshalText writes the fill's name.
func (f Fill) MarshalText() ([]byte, error) { return fillNames.Marshal(f) }

// UnmarshalText reads a fill's name.
func (f *Fill) UnmarshalText(text []byte) error { return fillNames.Unmarshal(text, f) }

// Preconditioning is how the drive was filled and used before time 0.
type Preconditioning struct {
	// Fill is how the drive was filled.
	Fill Fill
	// Occupancy is the share of the logical pages that hold data.
	Occupancy units.Fraction
	// Passes is how many drive writes follow the first fill, with fill: replay.
	Passes float64
	// SmallWrites: the random writes of steady and replay were of a grain of the map each; otherwise of a page of flash, whose grains then lie together.
	SmallWrites bool
	// Free is how many blocks of a plane are free at time 0, with fill: steady.
	Free Free
}

// Free is how many blocks of a plane steady writes have left free.
type Free uint8

// The levels.
const (
	// FreeByLoad: hard if the workload writes more than collection keeps up with behind the host's requests, by what programs and reads take on average; otherwise
	// start, also of a trace, whose rate is not known before.
	FreeByLoad Free = iota
	// FreeStart: as many as when collection starts, where a drive stays that collects faster than it is written to.
	FreeStart
	// FreeHard: as many as when collection is urgent, where a drive stays that is written to as fast as it takes it. Without collection.preemptible, which
	// has no such level, it is start.
	FreeHard
)

var freeNames = units.Names[Free]{"by-load", "start", "hard"}

// String is the name used in scenarios.
func (f Free) String() string { return freeNames.Name(f) }

// MarshalText writes the level's name.
func (f Free) MarshalText() ([]byte, error) { return freeNames.Marshal(f) }

// UnmarshalText reads a level's name.
func (f *Free) UnmarshalText(text []byte) error { return freeNames.Unmarshal(text, f) }

// Namespace is a part of the drive with its own addresses. The lists say which
// channels, chips of a channel, dies of a chip and planes of a die it lives on;
// an empty list is all of them. Planes that several namespaces use are shared
// equally.
type Namespace struct {
	// Channels are the numbers of the channels whose flash it has; none named are all.
	Channels []int
	// Chips are the chips of each channel; none named are all.
	Chips []int
	// Dies are the dies of each chip; none named are all.
	Dies []int
	// Planes are the planes of each die; none named are all.
	Planes []int
	// Cache is what the namespace uses the cache for; without the key, what the drive does.
	Cache *CacheMode
	// Streams is how many placement hints (write streams, FDP placement handles) the namespace tells apart. Each has its own open block in each plane.
	Streams int
	// Handles are the reclaim unit handles that its placement handles stand for, from placement 0 on; none named are all, in order.
	Handles []int
	// Conventional: it is not zoned, although the drive has zones.
	Conventional bool
}

// Energy is what each operation takes and what the idle drive draws.
type Energy struct {
	// Read, Program and Erase are what the array takes for a page, a page and a block.
	Read, Program, Erase units.Energy
	// TransferPerByte is what a byte over a flash channel takes.
	TransferPerByte units.Energy
	// LinkPerByte is what a byte over the host link takes.
	LinkPerByte units.Energy
	// Idle is what the drive draws at rest, in watts.
	Idle float64
	// Source says where the figures come from.
	Source string
}

// Quirks are knobs that only a compat file turns.
type Quirks struct {
	// WholeChip: a command goes only to a chip none of whose dies is busy.
	WholeChip bool
	// HeadBlocks: a command that waits for another one blocks its whole chip's
	// queue when it is at the head.
	HeadBlocks bool
	// DataFirst: read data that wait for a channel go before all commands, so that chips which could work wait for others' data.
	DataFirst bool
	// MappingProgramsVanish: mapping pages are written for nothing: they take a
	// page but never a program, and what was written back stays in DRAM for ever.
	MappingProgramsVanish bool
	// MappingPagesLaidOut: all mapping pages but a last partial one are on flash
	// at time 0 and take space.
	MappingPagesLaidOut bool
	// BusCyclesTruncated: a channel's cycle is a whole number of nanoseconds.
	BusCyclesTruncated bool
	// RowsHalved: DRAM transfers longer than a row count half the rows.
	RowsHalved bool
	// WholeNanoseconds: link and DRAM times are cut to whole nanoseconds.
	WholeNanoseconds bool
	// FrontiersAtOnce: every stream's open blocks are taken from the pool at time 0.
	FrontiersAtOnce bool
	// CollectOnFill: collection is only considered when an open block fills up.
	CollectOnFill bool
	// SharesSummed: a namespace is as large as its shares of all its planes together,
	// although it uses the planes evenly.
	SharesSummed bool
	// CutAcross: requests are cut where the drive's pages would begin if its namespaces lay behind each other, and the parts are of the namespace's own pages,
	// which begin at its first sector: a part may reach beyond its page.
	CutAcross bool
	// DiesForPlanes: under scheme DWCP a read of a page never written picks its plane from the namespace's list of dies.
	DiesForPlanes bool
	// RotatesClasses: the rotation among classes high, medium and low advances at every poll of a chip, even of one that cannot start a command, and a poll
	// may come up empty although requests wait.
	RotatesClasses bool
	// MessagesInTurn: queued transfers of the link and the DRAM, and array operations, are scheduled when they start and not when they are queued, which
	// decides ties in time; host and drive share one event order.
	MessagesInTurn bool
	// WaitersEvicted: the map cache evicts entries that transactions wait for; those wait until another request asks for the entry.
	WaitersEvicted bool
	// SectorsLost: writing back a mapping page stores the valid-sector bitmap of the evicted entry only.
	SectorsLost bool
	// WritesUnseen: a write that bypasses the read cache leaves stale data in it.
	WritesUnseen bool
	// UpdatesHigh: a read of what a partial write leaves standing is of class high, whatever class the write is of.
	UpdatesHigh bool
	// EvictedAsOwn: a page of the cache that gives way to one of another namespace is written as that namespace's page of the same number, and its own stays as it was.
	EvictedAsOwn bool
	// MovesUse: the map's entry of a page that is moved is used and changed when the page has been read.
	MovesUse bool
	// VictimsOfAll: victims are picked from all blocks of a plane, those that are free or written to as well, with MQSim's numbers, so a look may find none; one that is
	// found while the host reads it is never erased, and a block of which a read took a page that was never written is never found.
	VictimsOfAll bool
	// HostStop: no host write gets a page while a plane has fewer free blocks.
	HostStop int
	// FillsNeedProgram: a page that no program wrote does not enter the cache when it
	// is read.
	FillsNeedProgram bool
	// ReadHitDirties: reading a page into a slot that exists makes it dirty.
	ReadHitDirties bool
	// WriteBackUses: an entry of the map that is written back with its mapping page counts as used then.
	WriteBackUses bool
	// LookUpsFirst: of transactions that come together, the map's reads and the moves that some need are sent at once, before any of the others; and what waited for
	// a read of the map before anything else that follows from its end.
	LookUpsFirst bool
	// EndsAreEvents: at the very time at which a command has been sent its channel is not free before that has been taken note of, which is after
	// all that was to happen then already. The end of a command has its place among what happens at once from its beginning on, whether anybody waits for it or not.
	EndsAreEvents bool
	// FiltersShareClock: of all namespaces' filters of first touches, the one whose write comes first is emptied each second, and the others are not.
	FiltersShareClock bool
	// ReadsThenWrites: transactions that wait for the same entry of the map go on reads first.
	ReadsThenWrites bool
}

// DefaultConfig is a drive like the one in MQSim's distributed configuration
// (FAST'18), with none of its quirks and a map of 4 KiB, as drives of today have it: 8 channels of 4 chips with 2 dies of 2 planes,
// 2048 blocks of 256 pages of 8 KiB, 512 GiB of raw flash.
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
		Mapping:    Mapping{Grain: Grain(4 * units.KiB), CMTCapacity: 2 << 20, CMTShared: true, Scheme: Scheme{'C', 'W', 'D', 'P'}},
		Scheduling: Scheduling{Classes: true, ProgramLeftForRead: 100 * us, EraseLeftForRead: 700 * us, EraseLeftForWrite: 700 * us},
		Collection: Collection{
			Victim: ftl.Greedy, Start: 0.01, Hard: 0.005, Preemptible: true, Concurrent: 1, Reserve: 1,
		},
		Wear:            Wear{Dynamic: true, Static: 100, Cycles: 10000},
		Preconditioning: Preconditioning{Occupancy: 1},
	}
}

// MaxNamespaces bounds the namespaces of a drive.
const MaxNamespaces = 128

// MaxStreams bounds the placement hints of a namespace.
const MaxStreams = 128

// namespaces is the list with the default filled in.
func (c *Config) namespaces() []Namespace {
	if len(c.Namespaces) == 0 {
		return []Namespace{{}}
	}
	return c.Namespaces
}

// grainSize is how much an entry of the map is about.
func (c *Config) grainSize() units.Bytes {
	if g := units.Bytes(c.Mapping.Grain); g > 0 && g < c.Geometry.PageSize {
		return g
	}
	return c.Geometry.PageSize
}

// grainsPerPage is how many grains a page of flash holds.
func (c *Config) grainsPerPage() int { return int(c.Geometry.PageSize / c.grainSize()) }

// sectorsPerGrain is the grain in sectors.
func (c *Config) sectorsPerGrain() int { return int(c.grainSize() / nand.SectorSize) }

// grains is how many the flash has room for.
func (c *Config) grains() int64 { return c.Geometry.Pages() * int64(c.grainsPerPage()) }

// cmtEntryBytes is the size of a cached mapping entry: logical and physical grain
// number and one bit a sector.
func (c *Config) cmtEntryBytes() int64 {
	bits := 2*math.Log2(float64(c.grains())) + float64(c.sectorsPerGrain())
	return int64(math.Ceil(bits / 8))
}

// cmtEntries is how many entries the cached mapping table holds.
func (c *Config) cmtEntries() int64 { return int64(c.Mapping.CMTCapacity) / c.cmtEntryBytes() }

// entriesPerMappingPage is how many entries a mapping page on flash holds, which is as large as a grain; there
// an entry needs no logical number.
func (c *Config) entriesPerMappingPage() int64 {
	bits := math.Log2(float64(c.grains())) + float64(c.sectorsPerGrain())
	return int64(c.grainSize()) / int64(math.Ceil(bits/8))
}

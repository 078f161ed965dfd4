package ftl

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"farflash/numeric/units"
)

// Victim names the policy by which a pool chooses the next block to collect. Only blocks that are fully programmed and
// not already being collected are candidates.
type Victim uint8

// The victim policies.
const (
	Greedy Victim = iota // fewest valid pages; among equals the block that lost a page longest ago
	// fewest valid pages among choices blocks drawn at random with replacement (RGA in MQSim)
	DChoices
	Random         // any block, with equal chances
	FIFO           // the block that was filled first
	WindowedGreedy // fewest valid pages among the oldest blocks, a share given by window (Hu et al. 2009)
	// greatest (1-u)*age/(2u), with age since a page was last invalidated (Rosenblum and Ousterhout 1992)
	CostBenefit
	CostAge // greatest (1-u)*age/u, with age since the block was filled, in erases of the pool
	// any full block, with equal chances, as random does; under compat: mqsim, random also draws free blocks and then
	// finds no victim, and random-full draws again (RANDOM_P in MQSim)
	RandomFull
	// any full block of which at least the share preconditioning.occupancy of the pages is invalid, or the last block
	// drawn if as many draws as there are blocks find none (RANDOM_PP in MQSim)
	RandomYield
	victims
)

var victimNames = units.Names[Victim]{"greedy", "d-choices", "random", "fifo", "windowed-greedy", "cost-benefit",
	"cost-age", "random-full", "random-yield"}

// String is the policy's name in scenarios.
func (v Victim) String() string { return victimNames.Name(v) }

// MarshalText writes the policy's name.
func (v Victim) MarshalText() ([]byte, error) { return victimNames.Marshal(v) }

// UnmarshalText reads a policy's name; "rga" is d-choices.
func (v *Victim) UnmarshalText(text []byte) error {
	if string(text) == "rga" {
		*v = DChoices
		return nil
	}
	err := victimNames.Unmarshal(text, v)
	if wrong, ok := err.(*units.TextError); ok {
		wrong.Use = strings.Replace(wrong.Use, "d-choices", "d-choices (rga)", 1)
	}
	return err
}

// Config is the geometry of the flash and the choice of policies.
type Config struct {
	Pools         int // independent sets of blocks: planes in a simulated drive
	BlocksPerPool int // erase blocks of a pool
	PagesPerBlock int // pages of an erase block

	Streams int // streams that the host side writes, 1 to 255: data classes, mapping pages

	// Survivors lists, for every stream, the stream that receives the pages moved out of its blocks. Its length is the
	// total number of streams; those from Streams on are written by collection alone. nil means Separate(Streams).
	Survivors []int

	Victim  Victim
	Choices int            // DChoices: blocks drawn, at least 1
	Window  units.Fraction // WindowedGreedy: share of the pool's blocks, oldest first, that is considered
	Yield   int            // RandomYield: invalid pages that a block must have

	// GCStart: a pool starts victims whenever fewer blocks than this are free, one for each missing block that is not
	// already being collected; more than HostReserve.
	GCStart int
	GCHard  int // collection is urgent while fewer blocks than this are free; 0: never
	// HostReserve: a host stream gets a new block only while more blocks than this are free; at least 1. With
	// Concurrent+1, a block is free even in the middle of collection. A controller that may crash there needs it,
	// because programs lost in flight leave less space than the survivors had.
	HostReserve int
	Concurrent  int // victims that a pool collects at once

	DynamicWear bool // open the free block with the fewest erases, else the one free for longest
	StaticWear  int  // erases by which a block must lag behind the most worn for its data to be moved; 0: off
	EraseLimit  int  // a block is retired when it has been erased this often; 0: never

	Fast Fast // a cache of blocks with one bit a cell; off unless it has streams

	// Counts keeps no bitmap of valid pages, only their number by block: the map must be a Validity, which knows more.
	// There is one pool, no fast block, and no program fails of a page that was invalidated before.
	Counts bool

	Quirks Quirks
	// OpenOrder is the order in which Quirks.OpenAtOnce opens frontiers, survivors' included; nil is by number.
	OpenOrder []int
}

// Quirks are behaviours that no controller should have but that a comparison with MQSim needs. A controller leaves them
// zero.
type Quirks struct {
	// OnFill decides whether to collect only when a write frontier's block is full and the frontier has opened its next
	// block, and then starts at most one victim. To keep the pool from stalling, a host write that finds no page makes
	// the same decision, and so does an erase that leaves fewer free blocks than HostStop.
	OnFill bool
	// HostStop: no host write gets a page while fewer blocks than this are free (MQSim: 10); 0 is off.
	HostStop int
	// AnyBlock selects victims as MQSim does, with MQSim's random numbers. The search covers all blocks of a pool and
	// finds no victim if it ends at a free one. A block that was being read when it was selected is never erased. See
	// peer.go.
	AnyBlock bool
	// OpenAtOnce opens a block for every frontier of a pool when the pool is first used, instead of when the frontier's
	// first page is needed.
	OpenAtOnce bool
}

// DefaultConfig is one pool of 2048 blocks of 256 pages, with one host stream whose survivors are kept apart and greedy
// collection below two free blocks.
func DefaultConfig() Config {
	return Config{
		Pools: 1, BlocksPerPool: 2048, PagesPerBlock: 256,
		Streams: 1, Victim: Greedy, Choices: 10, Window: 0.1,
		GCStart: 2, GCHard: 2, HostReserve: 1, Concurrent: 1,
		DynamicWear: true,
	}
}

// Separate returns a Survivors table for n host streams in which each has a stream of its own for survivors: stream s's
// pages move to stream n+s and stay there. MQSim does this.
func Separate(n int) []int {
	streams(n)
	s := make([]int, 2*n)
	for i := range n {
		s[i], s[n+i] = n+i, n+i
	}
	return s
}

// Pooled returns a Survivors table for n host streams that share stream n for survivors.
func Pooled(n int) []int { return Generations(n, 1) }

// Generations returns a Survivors table for n host streams and k further ones: pages that survived one collection are
// written to stream n, those that survived two to n+1, and so on up to n+k-1. Rarely overwritten data thus collects in
// blocks of its own without any classification of hot and cold data.
func Generations(n, k int) []int {
	streams(n)
	streams(k)
	s := make([]int, n+k)
	for i := range s {
		s[i] = min(max(i+1, n), n+k-1)
	}
	return s
}

// Mixed returns a Survivors table for n host streams in which survivors are written among the host's own pages: one
// write frontier for both, as the closed forms assume.
func Mixed(n int) []int {
	streams(n)
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// streams refuses a number of streams for a table of survivors.
func streams(n int) {
	if n < 1 || n > 255 {
		broken("%d streams are not possible; use 1 to 255", n)
	}
}

// survivors returns the table in force: c.Survivors or its default.
func (c Config) survivors() []int {
	if c.Survivors == nil {
		return Separate(c.Streams)
	}
	return c.Survivors
}

// Validate returns an error that lists every invalid field of c by its key.
func (c Config) Validate() error {
	var bad units.Faults
	bad.Hold(c.Pools >= 1 && c.Pools <= 1<<26, "pools", "%d is not possible; use 1 to %d", c.Pools, 1<<26)
	bad.Hold(c.PagesPerBlock >= 2 && c.PagesPerBlock <= 1<<24, "pages_per_block", "%d is not possible; use 2 to %d",
		c.PagesPerBlock, 1<<24)
	bad.Hold(c.BlocksPerPool >= 2 && c.BlocksPerPool <= 1<<30, "blocks_per_pool", "%d is not possible; use 2 to %d",
		c.BlocksPerPool, 1<<30)
	bad.Hold(c.Streams >= 1 && c.Streams <= 255, "streams", "%d is not possible; use 1 to 255", c.Streams)
	bad.Hold(c.Victim < victims, "victim", "unknown policy %v", c.Victim)
	bad.Hold(c.Victim != DChoices || c.Choices >= 1 && c.Choices <= 1<<30, "choices",
		"%d is not possible with d-choices; use 1 to %d", c.Choices, 1<<30)
	bad.Hold(c.Victim != WindowedGreedy || c.Window >= 0 && c.Window <= 1,
		"window", "%v is not possible; use 0%% to 100%% of the blocks", c.Window)
	bad.Hold(c.Yield >= 0 && c.Yield <= c.PagesPerBlock, "yield", "%d pages are not possible; use 0 to %d, the pages of a block",
		c.Yield, c.PagesPerBlock)
	bad.Hold(c.HostReserve >= 1, "host_reserve", "%d blocks are not possible; collection needs at least 1",
		c.HostReserve)
	bad.Hold(c.GCStart <= 1<<30, "gc_start", "%d free blocks are not possible; use at most %d", c.GCStart, 1<<30)
	bad.Hold(c.GCStart > c.HostReserve,
		"gc_start", "collection starts below %d free blocks, but the host stops at %d; use a higher start",
		c.GCStart, c.HostReserve)
	bad.Hold(c.GCHard >= 0, "gc_hard", "%d free blocks are not possible; use 0 or more", c.GCHard)
	bad.Hold(c.Concurrent >= 1 && c.Concurrent <= 1<<16, "concurrent",
		"%d concurrent victims are not possible; use 1 to %d", c.Concurrent, 1<<16)
	bad.Hold(c.StaticWear >= 0 && c.StaticWear <= maxErases, "static_wear",
		"%d erases are not possible; use 1 to %d, or 0 for off", c.StaticWear, maxErases)
	bad.Hold(c.EraseLimit >= 0 && c.EraseLimit <= maxErases, "erase_limit", "%d erases are not possible; use 0 to %d",
		c.EraseLimit, maxErases)
	bad.Hold(c.Quirks.HostStop >= 0 && c.Quirks.HostStop <= c.GCStart,
		"quirks.host_stop", "%d free blocks are not possible; use 0 to gc_start, %d",
		c.Quirks.HostStop, c.GCStart)
	bad.Hold(!c.Counts || c.Pools == 1 && c.Fast.Streams == 0, "counts",
		"a bitmap is needed with %d pools and %d fast streams; use one pool and no fast stream", c.Pools, c.Fast.Streams)
	if bad.Err() == nil {
		c.validateStreams(&bad)
	}
	if bad.Err() == nil {
		c.validateFast(&bad)
	}
	return bad.Err()
}

// validateStreams checks the streams, and that blocks and page numbers suffice for all of them.
func (c Config) validateStreams(bad *units.Faults) {
	s := c.survivors()
	bad.Hold(len(s) >= c.Streams && len(s) <= 255, "survivors", "the table has %d streams; use %d to 255",
		len(s), c.Streams)
	for from, to := range s {
		bad.Hold(to >= 0 && to < len(s), fmt.Sprintf("survivors[%d]", from),
			"survivors join stream %d, which does not exist; use 0 to %d", to, len(s)-1)
	}
	if c.OpenOrder != nil {
		order := slices.Sorted(slices.Values(c.OpenOrder))
		all := len(order) == len(s)
		for i, stream := range order {
			all = all && stream == i
		}
		bad.Hold(all, "open_order", "%v does not name each of the streams 0 to %d once", c.OpenOrder, len(s)-1)
	}
	frontiers := len(s)
	if c.StaticWear > 0 {
		frontiers *= 2
	}
	least := frontiers + c.GCStart + 1
	bad.Hold(c.BlocksPerPool >= least,
		"blocks_per_pool", "%d blocks are too few; %d write frontiers and a reserve of %d need at least %d", c.BlocksPerPool,
		frontiers, c.GCStart, least)
	// Division by multiplication is exact while total * divisor < 2^64.
	poolPages := uint64(c.BlocksPerPool) * uint64(c.PagesPerBlock)
	hi, lo := bits.Mul64(poolPages*uint64(c.Pools), poolPages)
	bad.Hold(hi == 0 && lo>>63 == 0 && uint64(c.Pools) <= 1<<40,
		"", "%d pools of %d blocks of %d pages exceed the page numbers", c.Pools, c.BlocksPerPool, c.PagesPerBlock)
}

package ftl

import (
	"fmt"
	"math/bits"
	"slices"

	"farflash/units"
)

// Victim names how a pool chooses the block to collect next. Only blocks whose
// every page has been programmed, and that are not being collected, are eligible.
type Victim uint8

// The victim policies.
const (
	Greedy         Victim = iota // fewest valid pages; the one that lost a page longest ago among equals
	DChoices                     // fewest valid pages of Config.Choices blocks drawn at random with replacement (MQSim's RGA)
	Random                       // any block, all alike
	FIFO                         // the block that was filled first
	WindowedGreedy               // fewest valid pages of the Config.Window oldest blocks (Hu et al. 2009)
	CostBenefit                  // greatest (1-u)*age/(2u); age is the time since a page was last invalidated (Rosenblum, Ousterhout 1992)
	victims
)

var victimNames = [victims]string{"greedy", "d-choices", "random", "fifo", "windowed-greedy", "cost-benefit"}

// String is the policy's name in scenarios.
func (v Victim) String() string {
	if v < victims {
		return victimNames[v]
	}
	return fmt.Sprintf("victim(%d)", uint8(v))
}

// MarshalText writes the policy's name.
func (v Victim) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a policy's name; "rga" is d-choices.
func (v *Victim) UnmarshalText(text []byte) error {
	name := string(text)
	if name == "rga" {
		name = victimNames[DChoices]
	}
	if i := slices.Index(victimNames[:], name); i >= 0 {
		*v = Victim(i)
		return nil
	}
	return fmt.Errorf("%q is no victim policy; use greedy, d-choices (rga), random, fifo, windowed-greedy or cost-benefit", text)
}

// Trigger names when a pool looks whether it must collect.
type Trigger uint8

// The triggers.
const (
	// WhileBelow starts victims whenever fewer than GCStart blocks are free, one
	// for each block that is missing and not on its way already.
	WhileBelow Trigger = iota
	// OnFill looks only when a write frontier's block is full, after the frontier
	// has taken its next block, and then starts at most one victim: what MQSim
	// does. A host write that finds no page looks as well, lest the pool stop, and
	// so does an erase that leaves fewer free blocks than HostStop.
	OnFill
	triggers
)

var triggerNames = [triggers]string{"while-below", "on-fill"}

// String is the trigger's name in scenarios.
func (t Trigger) String() string {
	if t < triggers {
		return triggerNames[t]
	}
	return fmt.Sprintf("trigger(%d)", uint8(t))
}

// MarshalText writes the trigger's name.
func (t Trigger) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a trigger's name.
func (t *Trigger) UnmarshalText(text []byte) error {
	if i := slices.Index(triggerNames[:], string(text)); i >= 0 {
		*t = Trigger(i)
		return nil
	}
	return fmt.Errorf("%q is no collection trigger; use while-below or on-fill", text)
}

// Config is the shape of the flash and the policies.
type Config struct {
	Pools         int // independent sets of blocks: planes in a simulated drive
	BlocksPerPool int // erase blocks of a pool
	PagesPerBlock int // pages of an erase block

	Streams int // streams the host side writes, 1 to 255: data classes, mapping pages

	// Survivors says, for every stream, which stream the pages join that are moved
	// out of its blocks. Its length is the number of streams in all; those from
	// Streams on are written by collection alone. nil means Separate(Streams).
	Survivors []int

	Victim  Victim
	Choices int            // DChoices: blocks drawn, at least 1
	Window  units.Fraction // WindowedGreedy: the part of the pool's blocks, oldest first, that is looked at

	Trigger Trigger
	GCStart int // a pool collects while fewer blocks than this are free; more than HostReserve
	GCHard  int // collection is urgent while fewer blocks than this are free; 0: never
	// HostReserve: a host stream gets a new block only while more blocks than this are
	// free; at least 1. With Concurrent+1 a block is free even in the midst of
	// collection: a controller that may crash there needs it, because programs that
	// were lost in flight leave less room than the survivors had.
	HostReserve int
	HostStop    int // no host write gets a page at all while fewer blocks than this are free (MQSim: 10); 0: off
	Concurrent  int // victims that a pool collects at once

	// OpenAtOnce gives every frontier of a pool its first block when the pool is first
	// used, needed or not (MQSim), not when the first page is wanted.
	OpenAtOnce bool

	DynamicWear bool // take the free block with the fewest erases, else the one free for longest
	StaticWear  int  // erases by which a block must lag behind the most worn for its data to be moved; 0: off
	EraseLimit  int  // a block is retired when it has been erased this often; 0: never
}

// DefaultConfig is one pool of 2048 blocks of 256 pages, one host stream whose
// survivors are kept apart, greedy collection at two free blocks.
func DefaultConfig() Config {
	return Config{
		Pools: 1, BlocksPerPool: 2048, PagesPerBlock: 256,
		Streams: 1, Victim: Greedy, Choices: 10, Window: 0.1,
		GCStart: 2, GCHard: 2, HostReserve: 1, Concurrent: 1,
		DynamicWear: true,
	}
}

// Separate is the Survivors of n host streams whose survivors each have a stream
// of their own: stream s's pages move to stream n+s and stay there. MQSim does this.
func Separate(n int) []int {
	s := make([]int, 2*n)
	for i := range n {
		s[i], s[n+i] = n+i, n+i
	}
	return s
}

// Pooled is the Survivors of n host streams whose survivors share stream n.
func Pooled(n int) []int { return Generations(n, 1) }

// Generations is the Survivors of n host streams and k more: pages that survived
// one collection are written to stream n, those that survived two to n+1, and so
// on up to n+k-1. What is overwritten seldom ends up in blocks of its own without
// anybody telling hot data from cold.
func Generations(n, k int) []int {
	s := make([]int, n+k)
	for i := range s {
		s[i] = min(max(i+1, n), n+k-1)
	}
	return s
}

// Mixed is the Survivors of n host streams whose survivors are written among the
// host's own pages: one write frontier for both, as the closed forms assume.
func Mixed(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// survivors is the table in force: c.Survivors or its default.
func (c Config) survivors() []int {
	if c.Survivors == nil {
		return Separate(c.Streams)
	}
	return c.Survivors
}

// Validate says what is wrong with c, if anything.
func (c Config) Validate() error {
	switch {
	case c.Pools < 1:
		return fmt.Errorf("ftl: %d pools; there must be at least one", c.Pools)
	case c.PagesPerBlock < 2 || c.PagesPerBlock > 1<<24:
		return fmt.Errorf("ftl: %d pages per block; it must be 2 to %d", c.PagesPerBlock, 1<<24)
	case c.BlocksPerPool < 2 || c.BlocksPerPool > 1<<30:
		return fmt.Errorf("ftl: %d blocks per pool; it must be 2 to %d", c.BlocksPerPool, 1<<30)
	case c.Streams < 1 || c.Streams > 255:
		return fmt.Errorf("ftl: %d streams; it must be 1 to 255", c.Streams)
	case c.Victim >= victims:
		return fmt.Errorf("ftl: unknown victim policy %v", c.Victim)
	case c.Victim == DChoices && c.Choices < 1:
		return fmt.Errorf("ftl: d-choices with %d choices; it must be at least 1", c.Choices)
	case c.Victim == WindowedGreedy && !(c.Window >= 0 && c.Window <= 1):
		return fmt.Errorf("ftl: a window of %v of the blocks; it must be 0%% to 100%%", float64(c.Window))
	case c.Trigger >= triggers:
		return fmt.Errorf("ftl: unknown collection trigger %v", c.Trigger)
	case c.HostReserve < 1:
		return fmt.Errorf("ftl: host reserve of %d blocks; collection needs at least one", c.HostReserve)
	case c.GCStart <= c.HostReserve:
		return fmt.Errorf("ftl: collection starts below %d free blocks, but the host must stop at %d; the start must be higher", c.GCStart, c.HostReserve)
	case c.HostStop < 0 || c.HostStop > c.GCStart:
		return fmt.Errorf("ftl: the host stops below %d free blocks; it must be 0 to where collection starts, %d", c.HostStop, c.GCStart)
	case c.GCHard < 0:
		return fmt.Errorf("ftl: collection is urgent below %d free blocks; it cannot be negative", c.GCHard)
	case c.Concurrent < 1 || c.Concurrent > 1<<16:
		return fmt.Errorf("ftl: %d victims at once; it must be 1 to %d", c.Concurrent, 1<<16)
	case c.StaticWear < 0 || c.EraseLimit < 0:
		return fmt.Errorf("ftl: a negative erase count (static wear %d, limit %d)", c.StaticWear, c.EraseLimit)
	case c.EraseLimit > maxErases:
		return fmt.Errorf("ftl: erase limit %d; it must be at most %d", c.EraseLimit, maxErases)
	}
	s := c.survivors()
	if len(s) < c.Streams || len(s) > 255 {
		return fmt.Errorf("ftl: survivors of %d streams are named; it must be %d to 255", len(s), c.Streams)
	}
	for from, to := range s {
		if to < 0 || to >= len(s) {
			return fmt.Errorf("ftl: survivors of stream %d join stream %d; there are streams 0 to %d", from, to, len(s)-1)
		}
	}
	frontiers := len(s)
	if c.StaticWear > 0 {
		frontiers *= 2
	}
	if least := frontiers + c.GCStart + 1; c.BlocksPerPool < least {
		return fmt.Errorf("ftl: %d blocks per pool; %d write frontiers and a reserve of %d need at least %d", c.BlocksPerPool, frontiers, c.GCStart, least)
	}
	// Division by multiplication is exact while total * divisor < 2^64.
	poolPages := uint64(c.BlocksPerPool) * uint64(c.PagesPerBlock)
	if hi, lo := bits.Mul64(poolPages*uint64(c.Pools), poolPages); hi != 0 || lo>>63 != 0 || uint64(c.Pools) > 1<<40 {
		return fmt.Errorf("ftl: %d pools of %d blocks of %d pages are too many pages", c.Pools, c.BlocksPerPool, c.PagesPerBlock)
	}
	return nil
}

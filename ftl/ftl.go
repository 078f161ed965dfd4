// Package ftl is a flash translation layer as a plain state machine: it decides
// where data is written, which block is collected next, what is moved and what is
// erased, and counts what that costs. It has no goroutine, no clock and does no
// I/O, so a simulated drive and a real flash controller drive the same code, each
// in its own time.
//
// The main types are [FTL], [Config], [Map] (supplied by the driver: the logical
// to physical map and its inverse) and [Action] (what collection wants done).
//
// # The driver's side
//
// A host write is Allocate, program, then, in one step, the map's entry for the
// page is set to the new place, Programmed is called with it and Invalidate with
// the place the entry held before. (A driver that sets the entry earlier, when it
// allocates, may do so.) A trim is the map's entry cleared and Invalidate. After
// any call that might have given collection something to do the driver pulls
// Next until it says false; this costs next to nothing while there is nothing.
//
// A Move means: read Source, call Relocate, program the page it returns, call
// Moved (or Held, when the data are safe before they are programmed), pull Next. An Erase means: erase, call Erased (or Retire when it failed),
// pull Next, and let host writes that found no page try again. Moves and erases
// may be done at any time and in any order, many at once; nothing waits for the
// driver but the space.
//
// A program that fails is reported by ProgramFailed or MoveFailed, in place of Programmed or
// Moved; the data go elsewhere, by Allocate or Relocate again. Its block, as
// any that Fail says to be failing, is written no more, its valid pages are moved, and it is retired without an
// erase. A source that cannot be read any more is lost: the driver treats it as trimmed.
//
// A page is valid from Allocate or Relocate until Invalidate (or until Moved
// invalidates it). A block is a candidate for collection once each of its pages
// is programmed. It is erased only when none of its pages is valid, no move out
// of it is in flight and no reader has it pinned. Survivors get blocks that the
// host cannot take: a victim is started only when the free blocks suffice for the
// pages of all victims in progress, so a move never lacks a page and the host and
// collection cannot deadlock, as long as no pool is asked to keep more than
// Capacity pages valid.
//
// # Streams
//
// A stream is a write frontier per pool: pages of one stream share blocks, pages
// of different streams never do. Streams 0 to Config.Streams-1 are the host
// side's: classes of data, mapping pages. Config.Survivors says which stream the
// pages join that survive collection; [Separate], [Pooled], [Generations] and [Mixed]
// make the usual tables. Action.Stream is the stream of the block that is collected: with
// Separate(n), n+s holds the survivors of s.
//
// # Given blocks
//
// A driver may also take whole blocks (Give), fill them page by page (Fill) and give them back when nothing in them is valid (Return): zones of
// a zoned namespace are such. No collection looks at them.
//
// # Cost
//
// Allocate, Programmed and Invalidate touch no map and allocate no memory in
// steady state. A pool that was never touched costs a pointer. A touched pool
// costs some 600 bytes and, for every block used so far, 40 bytes and one bit a
// page. Clone shares pools until either side touches them.
//
// # Threads
//
// Pools share nothing that changes but three things: the driver's Map; the random stream, which policies that draw blocks
// draw from; and, from RestoreBlock, Clone and Rebind, the pools themselves. So calls that name different pools, by number,
// page or block, may run side by side if the driver holds a lock for each pool, its Map
// bears it, and the policy is another. Config, PPA, BlockOf and PoolOf need no lock. All others (Clone, Rebind, Stats,
// ValidPages, Check, EraseHistogram) need every pool's.
//
// # What it leaves out
//
// Hybrid and block mapping, the mapping table itself and its cache (the driver's),
// multi-plane grouping of moves (the driver may group them, it sees them all), what makes data
// go bad (the driver's, which says Renew). Policies follow Rosenblum and Ousterhout (1992), Hu
// et al. (SYSTOR 2009), Desnoyers (SYSTOR 2012), Van Houdt (SIGMETRICS 2013) and
// MQSim (FAST 2018). Package waf has the closed forms that hold it to account.
package ftl

import (
	"fmt"

	"farflash/internal/divide"
	"farflash/rng"
)

// Tick is a point in the driver's time: picoseconds of a simulation, nanoseconds or seconds of a clock, or a count of
// writes. Only order and differences mean anything (CostBenefit compares ages), and it never runs backwards. A real
// controller takes one so coarse that it does not end: of picoseconds there are 106 days, of microseconds 292,000 years.
type Tick int64

// LPA is a logical page number, as the driver numbers them.
type LPA int64

// PPA is a physical page: (pool*BlocksPerPool + block)*PagesPerBlock + page.
type PPA int64

// NoPPA is no physical page.
const NoPPA PPA = -1

// Block is an erase block: pool*BlocksPerPool + block.
type Block int64

// Map is the logical to physical map, supplied by the driver, which alone gives pages their first place and trims them. FTL calls it
// from Relocate, Moved, Next and Check only, for pages of the pool that the call is about, never on the way of a host write. Package
// ftltest has one in memory, and what every one must do.
type Map interface {
	// Lookup returns where lpa's data is, or NoPPA: nothing was written, or it was trimmed.
	Lookup(lpa LPA) PPA
	// CompareAndSwap sets lpa's entry to new if it is old, and says whether it was. Both are pages.
	CompareAndSwap(lpa LPA, old, new PPA) bool
	// Owner returns the page whose data ppa was programmed with last. It is asked from the
	// time the page was programmed until its block is erased.
	Owner(ppa PPA) LPA
}

// Kind is what an Action wants done.
type Kind uint8

// The kinds of action.
const (
	Move  Kind = iota // read Source, Relocate, program, Moved
	Erase             // erase Block, Erased
)

// Reason is why a block is collected.
type Reason uint8

// The reasons.
const (
	GC            Reason = iota // for its space
	WearLevelling               // because it is worn least
	Failure                     // because it fails: it will be retired
	Renewal                     // because the driver asked for it: its data are getting old
	Folding                     // because it is fast: others hold more
	Returned                    // because the driver, whose it was, gave it back
)

// Action is one thing that collection wants the driver to do.
type Action struct {
	Source PPA   // Move: the page to move
	LPA    LPA   // Move: its owner
	Block  Block // the block that is being collected, or is to be erased
	Task
}

// Task is what kind of thing an Action is. It is a type of its own because the
// compiler keeps only small structs with few fields in registers.
type Task struct {
	Stream int32 // the stream that wrote the block
	Kind   Kind
	Why    Reason
}

// FTL is the translation layer of one drive. It is not safe for concurrent use.
type FTL struct {
	cfg       Config
	survivors []uint8 // by stream
	drv       Map
	random    *rng.Stream

	pageDiv, poolDiv divide.By // by pages of a block, of a pool
	pages, blocks    int32     // of a block, of a pool
	words            int32     // of a block's validity bitmap
	chunk, chunks    int32     // words of a part of it that is copied at once, and how many of those it has
	hostStop         int32
	window           int32 // WindowedGreedy: blocks
	order            order // how candidates are kept
	mixed            bool  // some host stream takes survivors
	slow             bool  // the host's blocks are not opened fast

	picker Picker     // in the place of cfg.Victim; nil: none
	peer   rng.MQSim  // what Quirks.AnyBlock draws blocks with
	peers  []peerPool // by pool; nil without it

	owner *owner
	blank *pool // stands for every pool that was never touched
	pools []*pool
}

// owner's address tells whose a pool is; see touch.
type owner struct{ _ byte }

// New returns the translation layer of an erased drive. The driver's map is
// consulted only during collection. random is drawn from by policies that draw blocks
// only and may be nil for the other policies.
func New(cfg Config, m Map, random *rng.Stream) (*FTL, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ftl: %w", err)
	}
	if m == nil {
		return nil, fmt.Errorf("ftl: no map")
	}
	if random == nil && orderOf(cfg.Victim) == byArray {
		return nil, fmt.Errorf("ftl: %v needs a random stream", cfg.Victim)
	}
	words := int32((cfg.PagesPerBlock + 63) / 64)
	chunk := min(words, chunkWords)
	f := &FTL{
		cfg: cfg, drv: m, random: random,
		pageDiv: divide.New(uint64(cfg.PagesPerBlock)), poolDiv: divide.New(uint64(cfg.PagesPerBlock * cfg.BlocksPerPool)),
		pages: int32(cfg.PagesPerBlock), blocks: int32(cfg.BlocksPerPool),
		words: words, chunk: chunk, chunks: (words + chunk - 1) / chunk,
		hostStop: int32(cfg.Quirks.HostStop),
		order:    orderOf(cfg.Victim),
		owner:    new(owner),
		pools:    make([]*pool, cfg.Pools),
	}
	for _, to := range cfg.survivors() {
		f.survivors = append(f.survivors, uint8(to))
		f.mixed = f.mixed || to < cfg.Streams
	}
	f.window = f.blocks
	if cfg.Victim == WindowedGreedy {
		f.window = max(1, int32(float64(float64(cfg.Window)*float64(cfg.BlocksPerPool))+0.5))
	}
	if cfg.Quirks.AnyBlock {
		f.peer, f.peers = rng.NewMQSim(peerSeed), make([]peerPool, cfg.Pools)
	}
	f.blank = f.newPool()
	for i := range f.pools {
		f.pools[i] = f.blank
	}
	return f, nil
}

// Config returns what the FTL was made with.
func (f *FTL) Config() Config { return f.cfg }

// Allocate returns the next page of a host stream (0 to Config.Streams-1) in a
// pool. It reports false while the pool has no page for the host: the driver
// tries again after Erased. The page counts as programmed by the host from now on.
func (f *FTL) Allocate(pool, stream int, now Tick) (PPA, bool) {
	p := f.touch(pool)
	w := &p.frontiers[stream]
	if w.left <= 1 || p.guarded || p.free < f.hostStop {
		return f.allocateSlow(p, pool, stream, now)
	}
	ppa := w.next
	w.next++
	w.left--
	w.host++
	return ppa, true
}

// Skip gives up the pages of an open or given block that lie before end, in the same block, and were not handed out: a driver that programs several
// pages at once, of one that would end there, has no data for them. They count as programmed and hold nothing. It returns how many they are.
func (f *FTL) Skip(end PPA, now Tick) int {
	pool, b, last := f.split(end - 1)
	p := f.touch(pool)
	at := f.frontierOf(p, b)
	if at < 0 {
		if m := &p.blocks[b]; m.state == given && last >= m.pending {
			n := last + 1 - m.pending
			p.counts.skipped += int64(n)
			m.pending = last + 1
			return int(n)
		}
		return 0 // all were handed out, or given up because the block fails
	}
	w, m := &p.frontiers[at], &p.blocks[b]
	first := f.size(m) - w.left
	last = min(last, f.size(m)-1)
	n := last + 1 - first
	if n <= 0 {
		return 0
	}
	f.clearRange(p, b, first, last+1)
	m.valid -= n
	m.pending -= n
	p.counts.skipped += int64(n)
	w.next += PPA(n - 1)
	w.left -= n - 1
	f.take(p, pool, at, now)
	if m.pending == 0 {
		f.close(p, b)
	}
	f.changed(pool, p)
	return int(n)
}

// Align is Skip of each of a pool's open blocks, up to the next page whose number can be divided by n, which divides the pages of a block.
func (f *FTL) Align(pool, n int, now Tick) {
	if f.pools[pool] == f.blank {
		return
	}
	for at := range f.touch(pool).frontiers {
		if w := f.touch(pool).frontiers[at]; w.left > 0 && w.next%PPA(n) != 0 {
			f.Skip((w.next/PPA(n)+1)*PPA(n), now)
		}
	}
}

// Programmed says that a page which Allocate returned has been programmed, and
// that the map's entry and Owner hold for it. Until every page of a block is
// programmed the block is no candidate for collection.
func (f *FTL) Programmed(ppa PPA) {
	pool, b, _ := f.split(ppa)
	f.ProgrammedIn(pool, int(b))
}

// ProgrammedIn is Programmed of a page of a block of a pool, for a driver that knows them.
func (f *FTL) ProgrammedIn(pool, block int) {
	p := f.touch(pool)
	f.programmed(p, int32(block))
	f.changed(pool, p)
}

// Invalidate says that a valid page holds data no longer: it was overwritten or
// trimmed, or the write it was allocated for was given up. now never runs backwards.
func (f *FTL) Invalidate(ppa PPA, now Tick) {
	pool, b, page := f.split(ppa)
	p := f.touch(pool)
	m := &p.blocks[b]
	word := f.ownWord(p, b, page>>6)
	bit := uint64(1) << (page & 63)
	if *word&bit == 0 {
		broken("page %d invalidated, but it is not valid", ppa)
	}
	*word &^= bit
	m.valid--
	m.stamp = now
	switch m.state {
	case ranked:
		p.validSum--
		p.wake = p.wake || p.starved || p.short
		p.rerank(b, m)
	case closed:
		p.validSum--
		p.wake = p.wake || p.starved || p.short
	case victim, failing:
		if m.valid == 0 {
			p.wake = true
		}
	}
	f.changed(pool, p)
}

// ReadStarted pins ppa's block: it will not be erased before a ReadDone for each
// ReadStarted. Drivers whose reads cannot be overtaken by an erase need neither.
func (f *FTL) ReadStarted(ppa PPA) {
	pool, b, _ := f.split(ppa)
	f.ReadStartedIn(pool, int(b))
}

// ReadStartedIn is ReadStarted of a page of a block of a pool, for a driver that knows them.
func (f *FTL) ReadStartedIn(pool, block int) { f.touch(pool).blocks[block].reads++ }

// ReadDone undoes one ReadStarted.
func (f *FTL) ReadDone(ppa PPA) {
	pool, b, _ := f.split(ppa)
	f.ReadDoneIn(pool, int(b))
}

// ReadDoneIn undoes one ReadStartedIn.
func (f *FTL) ReadDoneIn(pool, block int) {
	p := f.touch(pool)
	m := &p.blocks[block]
	if m.reads == 0 {
		broken("a read of pool %d block %d ended that never started", pool, block)
	}
	if m.reads--; m.reads == 0 && (m.state == victim || m.state == failing) {
		p.wake = true
	}
}

// Free returns how many blocks of a pool are erased and in no frontier.
func (f *FTL) Free(pool int) int { return int(f.pools[pool].free) }

// Urgent reports whether a pool has fewer free blocks than Config.GCHard.
func (f *FTL) Urgent(pool int) bool { return int(f.pools[pool].free) < f.cfg.GCHard }

// Collecting reports whether a pool has a victim in progress.
func (f *FTL) Collecting(pool int) bool { return f.pools[pool].collecting() }

// Wear returns how often a block has been erased.
func (f *FTL) Wear(b Block) int {
	pool := int(b) / int(f.blocks)
	if i, p := int(b)%int(f.blocks), f.pools[pool]; i < len(p.blocks) {
		return int(p.blocks[i].erases)
	}
	return 0
}

// Capacity returns how many pages of a pool may be valid at once with collection
// still certain to gain space: all but its reserve, one block a frontier, and what
// is retired or fails.
func (f *FTL) Capacity(pool int) int {
	p := f.pools[pool]
	blocks := int(f.blocks) - int(p.retired) - len(p.failing) - f.cfg.HostReserve - len(p.frontiers)
	return max(0, blocks*int(f.pages)-1)
}

// Spare returns how many more blocks a pool can lose before it may hold only as many pages as
// are valid now; below 0 it has lost too many for that.
func (f *FTL) Spare(pool int) int {
	p := f.pools[pool]
	lost := int(p.retired) + len(p.failing) + f.cfg.HostReserve + len(p.frontiers)
	needed := (f.Valid(pool) + int64(f.pages)) / int64(f.pages) // a page more, as in Capacity
	return int(f.blocks) - lost - int(needed)
}

// StreamOf returns the stream that wrote a block that was used.
func (f *FTL) StreamOf(b Block) int {
	return int(f.pools[f.poolOf(b)].blocks[int(b)%int(f.blocks)].stream)
}

// Yield returns how many pages of a block hold nothing, so that erasing it gains as many.
func (f *FTL) Yield(b Block) int {
	p, i := f.pools[f.poolOf(b)], int(b)%int(f.blocks)
	if i >= len(p.blocks) {
		return int(f.pages)
	}
	return int(f.pages - p.blocks[i].valid)
}

// Retired returns how many blocks of a pool are used no more, Failing how many will not be once
// their pages have been moved.
func (f *FTL) Retired(pool int) int { return int(f.pools[pool].retired) }

// Failing returns how many blocks of a pool fail and are not retired yet.
func (f *FTL) Failing(pool int) int { return len(f.pools[pool].failing) }

// PPA returns a block's page.
func (f *FTL) PPA(b Block, page int) PPA { return PPA(int64(b)*int64(f.pages) + int64(page)) }

// BlockOf returns the block that ppa lies in.
func (f *FTL) BlockOf(ppa PPA) Block { return Block(f.pageDiv.Of(uint64(ppa))) }

// PoolOf returns the pool that ppa lies in.
func (f *FTL) PoolOf(ppa PPA) int { return int(f.poolDiv.Of(uint64(ppa))) }

// split takes a page number apart: pool, block within it, page within that.
func (f *FTL) split(ppa PPA) (pool int, b, page int32) {
	q, rest := f.poolDiv.Split(uint64(ppa))
	r, in := f.pageDiv.Split(rest)
	return int(q), int32(r), int32(in)
}

// broken stops the program: the driver or the FTL broke a contract, and going on
// would lose data.
//
//go:noinline
func broken(format string, args ...any) { panic("ftl: " + fmt.Sprintf(format, args...)) }

// Package ftl is a flash translation layer as a plain state machine. It decides where data is written, which block is
// collected next, which pages are moved and which blocks are erased, and counts the cost. It has no goroutine, no clock
// and does no I/O, so a simulated drive and a real flash controller drive the same code, each in its own time.
//
// The main types are [FTL], [Config], [Map] (supplied by the driver: the logical
// to physical map and its inverse) and [Action] (what collection wants done).
//
// # The driver's side
//
// For a host write the driver calls Allocate and programs the page. Then, in one step, it sets the map's entry for the
// page to the new place, calls Programmed with it and Invalidate with the place that the entry held before. (The driver
// can also set the entry earlier, when it allocates.) For a trim it clears the map's entry and calls Invalidate. After
// any call that might have given collection work, the driver pulls Next until it reports false, which is nearly free
// while there is no work.
//
// For a Move, read Source, call Relocate, program the page it returns, call Moved (or Held, if the data are safe before
// they are programmed), and pull Next. For an Erase, erase the block, call Erased (or Retire if the erase failed), pull
// Next, and let host writes that found no page try again. Moves and erases can be done at any time, in any order and
// many at once. Delaying them only delays the space they free.
//
// A failed program is reported by ProgramFailed or MoveFailed, in place of Programmed or Moved; the driver then places
// the data with Allocate or Relocate again. Its block, like any block passed to Fail, is no longer written: its valid
// pages are moved, and it is retired without an erase. A source that has become unreadable is lost: the driver treats
// it as trimmed.
//
// A page is valid from Allocate or Relocate until Invalidate (or until Moved invalidates it). A block is a candidate
// for collection once each of its pages has been programmed. It is erased only when none of its pages is valid, no move
// out of it is in flight and no reader has it pinned. Survivors get blocks that the host cannot take: a victim is
// started only when the free blocks suffice for the pages of all victims in progress. A move therefore always finds a
// page, and host and collection cannot deadlock, as long as no pool is asked to keep more than Capacity pages valid.
//
// # Streams
//
// A stream is a write frontier per pool: pages of one stream share blocks, pages of different streams never do. Streams
// 0 to Config.Streams-1 belong to the host side: classes of data, mapping pages. Config.Survivors lists the stream that
// receives the survivors of each stream; [Separate], [Pooled], [Generations] and [Mixed] make the usual tables.
// Action.Stream is the stream of the collected block: with Separate(n), n+s holds the survivors of s.
//
// # Given blocks
//
// A driver can also claim whole blocks (Give), fill them page by page (Fill) and return them once they hold no valid
// page (Return), as for the zones of a zoned namespace. Collection never considers them.
//
// # Cost
//
// Allocate, Programmed and Invalidate do not access the map and allocate no memory in steady state. An untouched pool
// costs a pointer. A touched pool costs some 600 bytes and, for every block used so far, 40 bytes and one bit a page.
// Clone shares pools until either side touches them.
//
// # Threads
//
// Pools share only three kinds of mutable state: the driver's Map; the random stream that policies which draw blocks
// use; and, under RestoreBlock, Clone and Rebind, the pools themselves. Calls for different pools, by pool, page or
// block number, can therefore run concurrently if the driver holds a lock per pool, its Map is safe for such use, and
// the policy is none of those. Config, PPA, BlockOf and PoolOf need no lock. All others (Clone, Rebind, Stats,
// ValidPages, Check, EraseHistogram) need every pool's lock.
//
// # What it leaves out
//
// Hybrid and block mapping; the mapping table and its cache, which are the driver's; multi-plane grouping of moves,
// which the driver can do because it sees all of them; and the causes of data decay, which the driver models and
// answers by calling Renew. Policies follow Rosenblum and Ousterhout (1992), Hu et al. (SYSTOR 2009), Desnoyers (SYSTOR
// 2012), Van Houdt (SIGMETRICS 2013) and MQSim (FAST 2018). Package waf verifies it against closed forms.
package ftl

import (
	"fmt"

	"farflash/internal/divide"
	"farflash/numeric/rng"
)

// Tick is a point in the driver's time: picoseconds of a simulation, nanoseconds or seconds of a clock, or a count of
// writes. Only order and differences matter (CostBenefit compares ages), and it never runs backwards. A real controller
// must choose a unit coarse enough not to overflow: int64 holds 106 days of picoseconds, or 292,000 years of
// microseconds.
type Tick int64

// LPA is a logical page number; the driver chooses the numbering.
type LPA int64

// PPA is a physical page: (pool*BlocksPerPool + block)*PagesPerBlock + page.
type PPA int64

// NoPPA stands for no physical page.
const NoPPA PPA = -1

// Block is an erase block: pool*BlocksPerPool + block.
type Block int64

// Map is the logical to physical map, supplied by the driver, which alone enters first placements and trims. FTL calls
// it only from Relocate, Moved, Next and Check, for pages of the pool that the call is about, and never on the host
// write path. Package ftltest has an in-memory implementation and the conformance test for all implementations.
type Map interface {
	// Lookup returns the page that holds lpa's data, or NoPPA if lpa was never written or has been trimmed.
	Lookup(lpa LPA) PPA
	// CompareAndSwap sets lpa's entry to new if it is old, and reports whether it did. Neither is NoPPA.
	CompareAndSwap(lpa LPA, old, new PPA) bool
	// Owner returns the logical page whose data ppa was last programmed with. It can be called from the time the page
	// was programmed until its block is erased.
	Owner(ppa PPA) LPA
}

// Validity is a Map whose driver also knows which pages of a block are valid, as Config.Counts requires.
type Validity interface {
	Map
	// NextValid returns the first page of a block, from page on, that the map refers to, or the number of pages of a
	// block. FTL asks only about blocks of which every page has been programmed or has failed, and from Check.
	NextValid(b Block, page int) int
}

// Kind is the operation that an Action asks for.
type Kind uint8

// The kinds of action.
const (
	Move  Kind = iota // read Source, Relocate, program, Moved
	Erase             // erase Block, Erased
)

// Reason is why a block is being collected.
type Reason uint8

// The reasons.
const (
	GC            Reason = iota // to reclaim its space
	WearLevelling               // because it is among the least worn
	Failure                     // because it is failing and will be retired
	Renewal                     // because the driver called Renew: its data are aging
	Folding                     // because it is fast, and normal blocks hold more
	Returned                    // because the driver returned it with Return
)

// Action is one operation that collection asks of the driver.
type Action struct {
	Source PPA   // Move: the page to move
	LPA    LPA   // Move: its owner
	Block  Block // the block being collected, or the one to erase
	Task
}

// Task classifies an Action. It is a separate type because the compiler keeps only small structs with few fields in
// registers.
type Task struct {
	Stream int32 // the stream that wrote the block
	Kind   Kind
	Why    Reason
}

// FTL is the translation layer of one drive. It is not safe for concurrent use.
type FTL struct {
	cfg       Config
	survivors []uint8 // by stream: the stream that receives its survivors
	drv       Map
	valids    Validity // drv, with Config.Counts; else nil
	random    *rng.Stream

	pageDiv, poolDiv divide.By // by the pages of a block, and of a pool
	total            uint64    // pages
	pages, blocks    int32     // pages of a block, blocks of a pool
	words            int32     // 64-bit words of a block's validity bitmap
	chunk, chunks    int32     // words of a copy-on-write chunk of the bitmap, and chunks of a block
	hostStop         int32
	window           int32 // WindowedGreedy: the window, in blocks
	order            order // data structure that candidates are kept in
	mixed            bool  // some host stream receives survivors
	slow             bool  // the host's blocks are not opened fast

	picker Picker     // replaces cfg.Victim; nil: none
	peer   rng.MQSim  // draws blocks under Quirks.AnyBlock
	peers  []peerPool // by pool; nil without it

	owner *owner
	blank *pool // shared by all pools that were never touched
	pools []*pool
}

// owner's address identifies the FTL that may change a pool; see touch. The struct has a size because zero-size
// allocations can share an address.
type owner struct{ _ byte }

// New returns the translation layer of an erased drive. It consults the driver's map only during collection. Only
// policies that draw blocks use random, which may be nil for the other policies.
func New(cfg Config, m Map, random *rng.Stream) (*FTL, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ftl: %w", err)
	}
	if m == nil {
		return nil, fmt.Errorf("ftl: the map is nil")
	}
	if random == nil && orderOf(cfg.Victim) == byArray {
		return nil, fmt.Errorf("ftl: %v needs a random stream", cfg.Victim)
	}
	words := int32((cfg.PagesPerBlock + 63) / 64)
	if cfg.Counts {
		if _, ok := m.(Validity); !ok {
			return nil, fmt.Errorf("ftl: counts: the map does not know which pages are valid")
		}
		words = 0
	}
	chunk := max(1, min(words, chunkWords))
	f := &FTL{
		cfg: cfg, drv: m, random: random,
		pageDiv: divide.New(uint64(cfg.PagesPerBlock)),
		poolDiv: divide.New(uint64(cfg.PagesPerBlock * cfg.BlocksPerPool)),
		total:   uint64(cfg.Pools) * uint64(cfg.BlocksPerPool) * uint64(cfg.PagesPerBlock),
		pages:   int32(cfg.PagesPerBlock), blocks: int32(cfg.BlocksPerPool),
		words: words, chunk: chunk, chunks: (words + chunk - 1) / chunk,
		hostStop: int32(cfg.Quirks.HostStop),
		order:    orderOf(cfg.Victim),
		owner:    new(owner),
		pools:    make([]*pool, cfg.Pools),
	}
	f.rely(m)
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

// Config returns the configuration the FTL was created with.
func (f *FTL) Config() Config { return f.cfg }

// Allocate returns the next page of a host stream (0 to Config.Streams-1) in a pool. It reports false while the pool
// has no page for the host; the driver tries again after Erased. The page counts as a host program from now on.
func (f *FTL) Allocate(pool, stream int, now Tick) (PPA, bool) {
	p := f.touch(pool)
	if uint(stream) >= uint(f.cfg.Streams) || stream >= len(p.frontiers) {
		panic(noStream)
	}
	w := &p.frontiers[stream]
	// The last page of a block, guarded pools and HostStop need the checks of the slow path.
	if w.left <= 1 || p.guarded || p.free < f.hostStop {
		return f.allocateSlow(p, pool, stream, now)
	}
	ppa := w.next
	w.next++
	w.left--
	w.host++
	return ppa, true
}

// Skip gives up the pages before end, in the same open or given block, that have not been handed out. A driver that
// programs several pages at once calls it to close a partial program for which it has no more data. The skipped pages
// count as programmed and hold no data. Skip returns their number.
func (f *FTL) Skip(end PPA, now Tick) int {
	pool, b, last := f.split(end - 1)
	p := f.touch(pool)
	p.known(b)
	at := f.frontierOf(p, b)
	if at < 0 {
		if m := &p.blocks[b]; m.state == given && last >= m.pending {
			n := last + 1 - m.pending
			p.counts.skipped += int64(n)
			m.pending = last + 1
			return int(n)
		}
		return 0 // all were handed out, or abandoned because the block is failing
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

// Align skips in each of a pool's open blocks to the next page number that is a multiple of n. n must divide
// PagesPerBlock.
func (f *FTL) Align(pool, n int, now Tick) {
	if n < 1 || int(f.pages)%n != 0 {
		broken("Align to %d pages, which do not divide a block of %d", n, f.pages)
	}
	if f.at(pool) == f.blank {
		return
	}
	for at := range f.touch(pool).frontiers {
		if w := f.touch(pool).frontiers[at]; w.left > 0 && w.next%PPA(n) != 0 {
			f.Skip((w.next/PPA(n)+1)*PPA(n), now)
		}
	}
}

// Programmed reports that a page which Allocate returned has been programmed, and that the map's entry and Owner hold
// for it. A block becomes a candidate for collection only when all its pages are programmed.
func (f *FTL) Programmed(ppa PPA) {
	pool, b, _ := f.split(ppa)
	f.ProgrammedIn(pool, int(b))
}

// ProgrammedIn is Programmed by pool and block, for a driver that knows them.
func (f *FTL) ProgrammedIn(pool, block int) {
	p := f.touch(pool)
	f.programmed(p, narrow(block))
	f.changed(pool, p)
}

// Invalidate reports that a valid page no longer holds data: it was overwritten or trimmed, or the write it was
// allocated for was given up. now never runs backwards.
func (f *FTL) Invalidate(ppa PPA, now Tick) {
	pool, b, page := f.split(ppa)
	p := f.touch(pool)
	m := p.known(b)
	f.drop(p, b, page)
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

// ReadStarted pins ppa's block: it is not erased until each ReadStarted has been matched by a ReadDone. Drivers whose
// reads cannot be overtaken by an erase need neither.
func (f *FTL) ReadStarted(ppa PPA) {
	pool, b, _ := f.split(ppa)
	f.ReadStartedIn(pool, int(b))
}

// ReadStartedIn is ReadStarted by pool and block, for a driver that knows them.
func (f *FTL) ReadStartedIn(pool, block int) { f.touch(pool).known(narrow(block)).reads++ }

// ReadDone undoes one ReadStarted.
func (f *FTL) ReadDone(ppa PPA) {
	pool, b, _ := f.split(ppa)
	f.ReadDoneIn(pool, int(b))
}

// ReadDoneIn undoes one ReadStartedIn.
func (f *FTL) ReadDoneIn(pool, block int) {
	p := f.touch(pool)
	m := p.known(narrow(block))
	if m.reads == 0 {
		broken("ReadDone of pool %d block %d without ReadStarted", pool, block)
	}
	if m.reads--; m.reads == 0 && (m.state == victim || m.state == failing) {
		p.wake = true
	}
}

// Free returns the number of a pool's erased blocks that belong to no frontier.
func (f *FTL) Free(pool int) int { return int(f.at(pool).free) }

// Urgent reports whether a pool has fewer free blocks than Config.GCHard.
func (f *FTL) Urgent(pool int) bool { return int(f.at(pool).free) < f.cfg.GCHard }

// Collecting reports whether a pool has a victim in progress.
func (f *FTL) Collecting(pool int) bool { return f.at(pool).collecting() }

// Wear returns the erase count of a block.
func (f *FTL) Wear(b Block) int {
	pool := f.poolOf(b)
	if i, p := int(b)%int(f.blocks), f.at(pool); i < len(p.blocks) {
		return int(p.blocks[i].erases)
	}
	return 0
}

// Capacity returns the number of pages of a pool that can be valid at once while collection is still guaranteed to gain
// space: all but the reserve, one block a frontier, and retired or failing blocks.
func (f *FTL) Capacity(pool int) int {
	p := f.at(pool)
	blocks := int(f.blocks) - int(p.retired) - len(p.failing) - f.cfg.HostReserve - len(p.frontiers)
	return max(0, blocks*int(f.pages)-1)
}

// Spare returns the number of further blocks that a pool can lose and still keep its currently valid pages within
// Capacity. It is negative once too many are lost.
func (f *FTL) Spare(pool int) int {
	p := f.at(pool)
	lost := int(p.retired) + len(p.failing) + f.cfg.HostReserve + len(p.frontiers)
	needed := (f.Valid(pool) + int64(f.pages)) / int64(f.pages) // one page more, as in Capacity
	return int(f.blocks) - lost - int(needed)
}

// StreamOf returns the stream that wrote a block. The block must have been used.
func (f *FTL) StreamOf(b Block) int {
	return int(f.at(f.poolOf(b)).known(int32(b % Block(f.blocks))).stream)
}

// Yield returns the number of pages of a block without valid data, which an erase would gain.
func (f *FTL) Yield(b Block) int {
	p, i := f.at(f.poolOf(b)), int(b)%int(f.blocks)
	if i >= len(p.blocks) {
		return int(f.pages)
	}
	return int(f.pages - p.blocks[i].valid)
}

// Retired returns the number of retired blocks of a pool. Failing counts those that will follow once their pages have
// been moved.
func (f *FTL) Retired(pool int) int { return int(f.at(pool).retired) }

// Failing returns the number of failing blocks of a pool that are not retired yet.
func (f *FTL) Failing(pool int) int { return len(f.at(pool).failing) }

// PPA returns the physical page number of a page of a block.
func (f *FTL) PPA(b Block, page int) PPA { return PPA(int64(b)*int64(f.pages) + int64(page)) }

// BlockOf returns the block that ppa lies in.
func (f *FTL) BlockOf(ppa PPA) Block {
	if uint64(ppa) >= f.total {
		panic(noPool)
	}
	return Block(f.pageDiv.Of(uint64(ppa)))
}

// PoolOf returns the pool that ppa lies in.
func (f *FTL) PoolOf(ppa PPA) int {
	if uint64(ppa) >= f.total {
		panic(noPool)
	}
	return int(f.poolDiv.Of(uint64(ppa)))
}

// split returns the pool of a page, the block within the pool and the page within the block.
func (f *FTL) split(ppa PPA) (pool int, b, page int32) {
	if uint64(ppa) >= f.total {
		panic(noPool)
	}
	q, rest := f.poolDiv.Split(uint64(ppa))
	r, in := f.pageDiv.Split(rest)
	return int(q), int32(r), int32(in)
}

// broken panics because the driver or the FTL violated the contract; continuing would lose data.
//
//go:noinline
func broken(format string, args ...any) { panic("ftl: " + fmt.Sprintf(format, args...)) }

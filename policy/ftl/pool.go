package ftl

import (
	"slices"

	"farflash/numeric/rng"
)

// maxErases is the highest erase count: free blocks are ordered by 24 bits of it.
const maxErases = 1<<24 - 1

// state is the role of a block.
type state uint8

const (
	unknown state = iota // not yet restored; becomes free
	free                 // erased, in pool.heap
	open                 // handed out page by page, or full with programs in flight
	closed               // a candidate, in the list by age or the array
	ranked               // a candidate, in the bucket of its valid pages
	victim               // being collected
	erasing              // pulled as an Erase action
	failing              // failing and not being collected yet: no candidate
	retired              // never used again
	given                // filled and emptied by the driver: no candidate
)

var stateNames = [...]string{"unknown", "free", "open", "closed", "ranked", "victim", "erasing", "failing", "retired",
	"given"}

func (s state) String() string { return stateNames[s] }

// none terminates a list of blocks.
const none int32 = -1

// block is the state of an erase block: 40 bytes.
type block struct {
	stamp  Tick // when a page was last invalidated, or the last one handed out
	erases uint32
	// valid counts the bits set in the validity bitmap. Opening a block sets them all, so that a page not yet handed
	// out counts as valid and Allocate need not access the bitmap.
	valid int32
	// pending depends on the state. Open: pages not programmed yet, including those not handed out. Candidate: the
	// pool's erases when it became one. Victim: moves in flight. Given: pages taken or skipped.
	pending int32
	// Candidates: links of the list that the block is in; in byArray order, next is its index in the array. Victims:
	// next is the number of moves that may still ask for a page, prev the Reason.
	next, prev int32
	reads      uint32
	stream     uint8
	state      state
	fast       bool
	held       bool // AnyBlock: the block is never collected, or, if already a victim, never erased
}

// frontier is the write position of a stream.
type frontier struct {
	next  PPA
	host  int64 // pages ever handed out to the host
	left  int32 // pages of block not yet handed out
	block int32 // none while left is 0
}

// freeBlock is an entry of the heap of free blocks.
type freeBlock struct {
	order uint64 // erases (24 bits, 0 without DynamicWear), then arrival (40 bits)
	block int32
}

// slot is a victim in progress.
type slot struct {
	block  int32
	cursor int32 // pages below it have been offered for moving
}

// list is a queue of blocks linked by block.next and block.prev.
type list struct{ head, tail int32 }

// pool is the state of one pool. Never used blocks are opened in numerical order, so the slices grow with the blocks
// used; blocks beyond their length have never been written.
type pool struct {
	watch //nolint:unused // counts with the build tag invariants

	// Fields that nearly every call reads share one cache line; those that a write adds lie in the next.
	owner     *owner
	frontiers []frontier // by stream; with StaticWear, a second set for data moved by wear levelling
	blocks    []block
	free      int32 // free blocks, including those never used
	wake      bool  // Next may have an action
	starved   bool  // no victim was found only because every candidate is wholly valid
	short     bool  // a failure took space that victims in progress may need
	guarded   bool  // a host stream receives survivors and space may be short: check each host page

	bits     []uint64 // validity, f.words of them a block
	loan     *loan    // nil if bits covers all blocks, in order
	buckets  []list   // order byValid: candidates by valid pages; nil before the first collection
	validSum int64    // valid pages of candidates

	heap     []freeBlock // free blocks that have been used before
	victims  []slot      // in the order they were started
	failing  []int32     // failing blocks that are not retired, in any state
	renewals []int32     // blocks named by Renew; candidates at that time
	fast     *fastBlocks // nil: no SLC cache
	again    []PPA       // pages of victims that found no destination and must be offered again
	array    []int32     // order byArray: the candidates
	young    list        // the other candidates, first filled first
	arrivals uint64      // entries ever pushed onto heap

	restoring *owner // set while RestoreBlock fills the pool

	counts counts

	candidates int32
	inBuckets  int32
	least      int32 // no bucket below this has a block
	due        int32 // OnFill: victims yet to start
	retired    int32

	erases     uint32 // of this pool since New or RestoreBlock
	mostErases uint32 // highest erase count of a block
	wearAt     uint32 // value of erases before which not to look for a block to relocate
	wearDue    bool
	must       bool // AnyBlock: a victim is due because the pool would stop; see Rescue
}

func (f *FTL) newPool() *pool {
	p := &pool{
		frontiers: make([]frontier, len(f.survivors)),
		young:     list{none, none},
		free:      f.blocks,
	}
	if f.cfg.Fast.Streams > 0 {
		p.fast = new(fastBlocks)
	}
	if f.cfg.StaticWear > 0 {
		p.frontiers = make([]frontier, 2*len(f.survivors))
	}
	for i := range p.frontiers {
		p.frontiers[i].block = none
	}
	return p
}

// touch returns a pool that f may change. A pool shared with another FTL, or the blank one, is copied first.
func (f *FTL) touch(pool int) *pool {
	if uint(pool) >= uint(len(f.pools)) {
		panic(noPool)
	}
	p := f.pools[pool]
	if p.owner != f.owner {
		return f.own(pool)
	}
	return p
}

// own makes pool i f's own: it finishes its restoring, or replaces it by a copy.
//
//go:noinline
func (f *FTL) own(i int) *pool {
	p := f.pools[i]
	if p.restoring == f.owner {
		f.finishRestoring(p)
		f.openAll(p, i)
		return p
	}
	fresh := p == f.blank
	p = f.clonePool(p)
	p.owner = f.owner
	f.pools[i] = p
	if fresh {
		f.openAll(p, i)
	}
	return p
}

// openAll implements Quirks.OpenAtOnce: it opens a block for every frontier that lacks one. A restored pool keeps its
// reserve.
func (f *FTL) openAll(p *pool, i int) {
	if !f.cfg.Quirks.OpenAtOnce {
		return
	}
	for k := range f.survivors {
		s := k
		if o := f.cfg.OpenOrder; o != nil {
			s = o[k]
		}
		if p.frontiers[s].left == 0 && int(p.free) > f.cfg.HostReserve {
			f.openBlock(p, i, s)
		}
	}
}

func (f *FTL) clonePool(p *pool) *pool {
	c := *p
	c.frontiers = slices.Clone(p.frontiers)
	c.blocks = slices.Clone(p.blocks)
	f.lendBitmaps(p, &c)
	c.heap = slices.Clone(p.heap)
	c.victims = slices.Clone(p.victims)
	c.failing = slices.Clone(p.failing)
	c.again = slices.Clone(p.again)
	c.renewals = slices.Clone(p.renewals)
	if p.fast != nil {
		c.fast = p.fast.clone()
	}
	c.array = slices.Clone(p.array)
	c.buckets = slices.Clone(p.buckets)
	return &c
}

// Clone returns an independent copy with its own map and random stream (nil where New takes nil). Pools are shared
// until either side touches them, so copies of one preconditioned drive are cheap. Clone must not run concurrently with
// any other call on f; afterwards f and the copy can be used from different goroutines.
func (f *FTL) Clone(m Map, random *rng.Stream) *FTL {
	f.bindable(m, random)
	for i, p := range f.pools {
		if p.restoring != nil && p.restoring == f.owner {
			f.finishRestoring(p)
			f.openAll(p, i)
		}
	}
	c := *f
	c.drv, c.random = m, random
	c.rely(m)
	c.pools = slices.Clone(f.pools)
	c.peers = clonePeers(f.peers)
	// Both sides get a new owner, because neither owns the shared pools any longer.
	f.owner, c.owner = new(owner), new(owner)
	return &c
}

// Rebind gives f another map with the same content and another random stream, for a driver that takes over a drive
// prepared by a preconditioning tool.
func (f *FTL) Rebind(m Map, random *rng.Stream) {
	f.bindable(m, random)
	f.drv, f.random = m, random
	f.rely(m)
}

// materialise extends the pool's slices to include block b; new blocks are in state unknown.
func (f *FTL) materialise(p *pool, b int32) {
	n := int(b) + 1
	if n <= len(p.blocks) {
		return
	}
	if p.loan != nil {
		f.lengthen(p, n)
		p.blocks = append(p.blocks, make([]block, n-len(p.blocks))...)
		return
	}
	if n > cap(p.blocks) || n*int(f.words) > cap(p.bits) {
		// Double while small, then grow by a quarter, never beyond the pool.
		size := max(n, 2*len(p.blocks))
		if len(p.blocks) >= 64 {
			size = max(n, len(p.blocks)+len(p.blocks)/4)
		}
		size = min(size, int(f.blocks))
		p.blocks = append(make([]block, 0, size), p.blocks...)
		p.bits = append(make([]uint64, 0, size*int(f.words)), p.bits...)
	}
	p.blocks = p.blocks[:n]
	p.bits = p.bits[:n*int(f.words)]
}

// takeFree removes and returns the next free block to use. Never used blocks go before blocks that have been erased.
func (f *FTL) takeFree(p *pool) int32 {
	p.free--
	fresh := int32(len(p.blocks)) < f.blocks
	if fresh && (len(p.heap) == 0 || !f.cfg.DynamicWear || p.heap[0].order>>40 > 0) {
		b := int32(len(p.blocks))
		f.materialise(p, b)
		return b
	}
	return p.pop(0)
}

// takeWorn removes and returns the free block with the most erases, for data that is expected to stay.
func (f *FTL) takeWorn(p *pool) int32 {
	if len(p.heap) == 0 {
		return f.takeFree(p)
	}
	p.free--
	worn := 0
	for i := range p.heap {
		if p.blocks[p.heap[i].block].erases > p.blocks[p.heap[worn].block].erases {
			worn = i
		}
	}
	return p.pop(worn)
}

// addFree adds an erased block to the heap, behind those with no more erases. It leaves p.free to the caller, because
// p.free includes blocks that were never used.
func (f *FTL) addFree(p *pool, b int32) {
	m := &p.blocks[b]
	m.state = free
	order := p.arrivals
	p.arrivals++
	if f.cfg.DynamicWear {
		order |= uint64(m.erases) << 40
	}
	p.push(freeBlock{order, b})
}

// push adds an entry to the heap of free blocks.
func (p *pool) push(e freeBlock) {
	p.heap = append(p.heap, e)
	p.rise(len(p.heap)-1, e)
}

// rise places e at index i of the heap or above.
func (p *pool) rise(i int, e freeBlock) {
	h := p.heap
	for i > 0 {
		up := (i - 1) / 2
		if h[up].order <= e.order {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

// pop removes the entry at index i of the heap and returns its block.
func (p *pool) pop(i int) int32 {
	h := p.heap
	b, e := h[i].block, h[len(h)-1]
	h = h[:len(h)-1]
	p.heap = h
	if i == len(h) {
		return b
	}
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].order < h[down].order {
			down++
		}
		if e.order <= h[down].order {
			break
		}
		h[i] = h[down]
		i = down
	}
	p.rise(i, e)
	return b
}

// openBlock gives a frontier its next block. The caller has checked that there is one.
func (f *FTL) openBlock(p *pool, pool int, to int) {
	if p.free == 0 {
		broken("pool %d has no block for frontier %d", pool, to)
	}
	var b int32
	stream, fast := to, f.opensFast(p, to)
	if to < len(f.survivors) {
		b = f.takeFree(p)
	} else {
		b = f.takeWorn(p)
		stream -= len(f.survivors)
	}
	m := &p.blocks[b]
	f.setAll(p, b)
	if fast {
		f.makeFast(p, b)
	}
	size := f.size(m)
	m.state, m.stream, m.valid, m.pending = open, uint8(stream), size, size
	m.held = false
	if f.peers != nil {
		f.noteTaken(pool, b)
	}
	w := &p.frontiers[to]
	w.block, w.left = b, size
	w.next = PPA((int64(pool)*int64(f.blocks) + int64(b)) * int64(f.pages))
	p.wake = true
	f.guard(p)
}

// allocateSlow is Allocate for the cases where a block must be opened, its last page is taken, or the host may not
// write.
//
//go:noinline
func (f *FTL) allocateSlow(p *pool, pool, stream int, now Tick) (PPA, bool) {
	w := &p.frontiers[stream]
	switch {
	case p.free < f.hostStop,
		w.left == 0 && !f.hostMayOpen(p),
		w.left > 0 && p.guarded && !f.hostMayTake(p, w):
		if f.cfg.Quirks.OnFill && f.peers == nil && p.due == 0 && len(p.victims) == 0 {
			p.due = 1
		}
		p.wake = true
		return NoPPA, false
	}
	if w.left == 0 {
		if f.waitsForFast(p, stream) {
			p.fast.pressed, p.wake = true, true
			return NoPPA, false
		}
		f.openBlock(p, pool, stream)
	}
	ppa := f.take(p, pool, stream, now)
	w.host++
	return ppa, true
}

// hostMayOpen reports whether a host stream can take a free block without touching the reserve or the survivors'
// blocks.
func (f *FTL) hostMayOpen(p *pool) bool {
	return int(p.free) > f.cfg.HostReserve && f.reservedFor(p, nil, GC) < p.free
}

// guard updates p.guarded: whether each host page must be checked because a host stream also receives survivors and
// either there are victims or, as after a crash during collection, no block is free.
func (f *FTL) guard(p *pool) {
	p.guarded = f.mixed && (len(p.victims) > 0 || p.free == 0)
}

// hostMayTake reports whether the host can have a page of a stream that also receives survivors: the survivors must not
// need another block because of it, unless the reserve remains.
func (f *FTL) hostMayTake(p *pool, w *frontier) bool {
	if len(p.victims) == 0 || p.short {
		return false // the next victim's survivors have no other space
	}
	before := f.reservedFor(p, nil, GC)
	w.left--
	after := f.reservedFor(p, nil, GC)
	w.left++
	return after == before || int(p.free-after) >= f.cfg.HostReserve
}

// take hands out a frontier's next page, and closes the frontier's block if that was the last one.
func (f *FTL) take(p *pool, pool, from int, now Tick) PPA {
	w := &p.frontiers[from]
	ppa := w.next
	w.next++
	if w.left--; w.left > 0 {
		return ppa
	}
	p.blocks[w.block].stamp = now
	w.block = none
	if f.cfg.Quirks.OnFill {
		f.filled(p, pool, from)
	}
	return ppa
}

// filled is OnFill's decision: the frontier opens its next block if enough remain for survivors, and then a victim
// becomes due if blocks are short.
func (f *FTL) filled(p *pool, pool, full int) {
	host := full < f.cfg.Streams
	if host && f.hostMayOpen(p) || !host && f.reservedFor(p, nil, GC) < p.free {
		f.openBlock(p, pool, full)
	}
	if int(p.free) < f.cfg.GCStart {
		f.look(p, pool)
	}
}

// look makes a victim due under OnFill. With AnyBlock it has no effect while Concurrent victims are in progress,
// including those that MQSim waits for forever.
func (f *FTL) look(p *pool, pool int) {
	if f.peers == nil || len(p.victims)+f.peers[pool].lost < f.cfg.Concurrent {
		p.due = min(p.due+1, int32(f.cfg.Concurrent))
		p.wake = true
	}
}

// programmed counts a page of an open block as programmed.
func (f *FTL) programmed(p *pool, b int32) {
	m := p.known(b)
	if m.state != open || m.pending == 0 {
		m.programmedGiven(b)
		return
	}
	if m.pending--; m.pending == 0 {
		f.close(p, b)
	}
}

// programmedGiven handles a program in a block that is not open. In a given block there is no count to update; in any
// other state the program is a contract violation.
//
//go:noinline
func (m *block) programmedGiven(b int32) {
	if m.state != given {
		broken("page programmed in %v block %d", m.state, b)
	}
}

// close makes a fully programmed block a candidate, unless it is failing.
//
//go:noinline
func (f *FTL) close(p *pool, b int32) {
	if len(p.failing) > 0 && slices.Contains(p.failing, b) {
		p.blocks[b].state = failing
	} else {
		p.addCandidate(f, b)
	}
	p.wake = true
}

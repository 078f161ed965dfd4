package ftl

import (
	"slices"

	"farflash/rng"
)

// maxErases is the highest erase count: free blocks are ordered by 24 bits of it.
const maxErases = 1<<24 - 1

// state is what a block is used for.
type state uint8

const (
	unknown state = iota // not yet restored; becomes free
	free                 // erased, in pool.free
	open                 // handed out page by page, or full with programs in flight
	closed               // a candidate, by age or in the array
	ranked               // a candidate, by valid pages
	victim               // being collected
	erasing              // offered for erasing
	failing              // fails and is not being collected yet: no candidate
	retired              // never used again
	given                // the driver fills and empties it: no candidate
)

var stateNames = [...]string{"unknown", "free", "open", "closed", "ranked", "victim", "erasing", "failing", "retired", "given"}

func (s state) String() string { return stateNames[s] }

// none ends a list of blocks.
const none int32 = -1

// block is what is kept of an erase block: 40 bytes.
type block struct {
	stamp  Tick // when a page was last invalidated, or the last one handed out
	erases uint32
	// valid counts the bits set in the validity bitmap. Opening a block sets them
	// all: a page not handed out yet counts as valid, which spares Allocate the visit.
	valid int32
	// pending is, while open, the pages not programmed yet (those not handed out
	// included); while a candidate, the pool's erases when it became one; while
	// collected, the moves in flight; while given, the pages taken or given up.
	pending int32
	// Candidates: links of the list the block is in, or next is its place in the
	// array. Victims: next is the moves that may yet ask for a page, prev the reason.
	next, prev int32
	reads      uint32
	stream     uint8
	state      state
	fast       bool
	held       bool // AnyBlock: not picked, or, of a victim, never erased
}

// frontier is where a stream writes.
type frontier struct {
	next  PPA
	host  int64 // pages that it ever gave the host
	left  int32 // pages of block not handed out
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

// pool is the state of one pool. Blocks are taken into use in their order, so the
// slices grow with the blocks used; what lies beyond has never been written.
type pool struct {
	watch //nolint:unused // counts with the build tag invariants

	// What nearly every call looks at lies in one cache line, and what a write does besides in the next.
	owner     *owner
	frontiers []frontier // by stream; with StaticWear, then again for what wear levelling moves
	blocks    []block
	free      int32 // blocks, those never used included
	wake      bool  // Next may have something
	starved   bool  // it has nothing only because every candidate is wholly valid
	short     bool  // a failure took room that victims in progress may need
	guarded   bool  // a host stream takes survivors and room may be short: each host page needs a look

	bits     []uint64 // validity, words of them a block
	loan     *loan    // nil if bits are of all blocks, in order
	buckets  []list   // order byValid: candidates by valid pages; nil before the first collection
	validSum int64    // valid pages of candidates

	heap     []freeBlock // free blocks that were used before
	victims  []slot      // in the order they were started
	failing  []int32     // blocks that fail and are not retired, in any state
	renewals []int32     // blocks whose data are to be moved, candidates when that was asked
	fast     *fastBlocks // nil: there are none
	again    []PPA       // pages of victims that found no room and are to be offered once more
	array    []int32     // order byArray: the candidates
	young    list        // the other candidates, first filled first
	arrivals uint64      // entries ever made in heap

	restoring *owner // set while RestoreBlock fills the pool

	counts counts

	candidates int32
	inBuckets  int32
	least      int32 // no bucket below this has a block
	due        int32 // OnFill: victims to start
	retired    int32

	erases     uint32 // of this pool since New or RestoreBlock
	mostErases uint32 // of a block
	wearAt     uint32 // look for a block to relocate from so many erases on
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

// touch returns a pool that f may change. A pool that another FTL shares, or that
// stands for an untouched one, is copied first.
func (f *FTL) touch(pool int) *pool {
	p := f.pools[pool]
	if p.owner != f.owner {
		return f.own(pool)
	}
	return p
}

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

// openAll gives every frontier without a block one, if that is wanted at once. A
// restored pool keeps its reserve.
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

// Clone returns an independent copy with its own map and random stream (nil where
// New takes nil). Pools are shared until either side touches them, so copies of
// one preconditioned drive cost little. Clone itself must not run beside any other
// call on f; afterwards f and the copy may be used from different goroutines.
func (f *FTL) Clone(m Map, random *rng.Stream) *FTL {
	for i, p := range f.pools {
		if p.restoring != nil && p.restoring == f.owner {
			f.finishRestoring(p)
			f.openAll(p, i)
		}
	}
	c := *f
	c.drv, c.random = m, random
	c.pools = slices.Clone(f.pools)
	c.peers = clonePeers(f.peers)
	// Both sides get a new name: neither owns the shared pools any longer.
	f.owner, c.owner = new(owner), new(owner)
	return &c
}

// Rebind gives f another map with the same content and another random stream, for a
// driver that takes over what a preconditioning tool has prepared.
func (f *FTL) Rebind(m Map, random *rng.Stream) { f.drv, f.random = m, random }

// materialise makes blocks up to and including b exist, in state unknown.
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

// takeFree removes the free block that is to be used next.
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

// takeWorn removes the free block with the most erases, for data that will stay.
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

// addFree puts an erased block behind those with no more erases. It does not
// count it: p.free includes blocks that were never used.
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

func (p *pool) push(e freeBlock) {
	p.heap = append(p.heap, e)
	p.rise(len(p.heap)-1, e)
}

// rise puts e at place i of the heap or above.
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

// pop removes place i of the heap.
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

// openBlock gives a frontier its next block. The caller has made sure there is one.
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

// allocateSlow is Allocate where a block is opened or filled, or the host may not write.
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

// hostMayOpen reports whether a host stream may take a free block.
func (f *FTL) hostMayOpen(p *pool) bool {
	return int(p.free) > f.cfg.HostReserve && f.owed(p, nil, GC) < p.free
}

// guard notes whether host pages need a look: a host stream also takes survivors, and
// there are some, or no block is free for any, as after a crash during collection.
func (f *FTL) guard(p *pool) {
	p.guarded = f.mixed && (len(p.victims) > 0 || p.free == 0)
}

// hostMayTake reports whether a page of a stream that also takes survivors can be
// spared: survivors must not need another block for it unless the reserve remains.
func (f *FTL) hostMayTake(p *pool, w *frontier) bool {
	if len(p.victims) == 0 || p.short {
		return false // the next victim's survivors have no other room
	}
	before := f.owed(p, nil, GC)
	w.left--
	after := f.owed(p, nil, GC)
	w.left++
	return after == before || int(p.free-after) >= f.cfg.HostReserve
}

// take hands out a frontier's next page and sees to a block that is now full.
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

// filled is OnFill's look at the pool: the frontier takes its next block if that
// leaves survivors theirs, and then a victim is due if blocks are short.
func (f *FTL) filled(p *pool, pool, full int) {
	host := full < f.cfg.Streams
	if host && f.hostMayOpen(p) || !host && f.owed(p, nil, GC) < p.free {
		f.openBlock(p, pool, full)
	}
	if int(p.free) < f.cfg.GCStart {
		f.look(p, pool)
	}
}

// look is OnFill's look for a victim, which comes to nothing while there are enough.
func (f *FTL) look(p *pool, pool int) {
	if f.peers == nil || len(p.victims)+f.peers[pool].lost < f.cfg.Concurrent {
		p.due = min(p.due+1, int32(f.cfg.Concurrent))
		p.wake = true
	}
}

// programmed counts a page of an open block as programmed.
func (f *FTL) programmed(p *pool, b int32) {
	m := &p.blocks[b]
	if m.state != open || m.pending == 0 {
		m.programmedGiven(b)
		return
	}
	if m.pending--; m.pending == 0 {
		f.close(p, b)
	}
}

// programmedGiven is programmed of a block that a stream was given, of which no more is to be counted; no other may be.
//
//go:noinline
func (m *block) programmedGiven(b int32) {
	if m.state != given {
		broken("a page of %v block %d was programmed", m.state, b)
	}
}

// close makes a block whose every page is programmed a candidate, unless it fails.
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

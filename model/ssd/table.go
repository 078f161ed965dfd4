package ssd

// table is the logical-to-physical map, with the sectors of a page that hold data where those are not all. What was
// not written since time 0 is not in it: a drive starts with an empty table, whatever its size, beside the filling
// that it was prepared with. While little is written the entries are in a hash table; when more than one page in
// sparseShare is, in chunks of plain arrays, four bytes an entry, and as many for sectors where there is anything to
// say of them.
type table struct {
	pages  int64
	sparse hash[place]
	filled *filling     // where what is not in sparse lies; nil: nowhere
	chunks []*chunk     // nil while sparse; of a physical page plus one, 0: never written
	parts  []*chunk     // of sectors; nil where all pages are whole
	shared []bool       // chunks that a snapshot also uses: copied before they are written
	long   bool         // pages have more than 32 sectors, so that
	wide   hash[uint64] // holds the sectors of those that are not whole
}

// place is what the map has of a logical page.
type place struct {
	page    uint32 // the physical one
	sectors uint32 // those that hold data, a bit a sector; 0: all of them
}

const (
	chunkBits   = 12
	sparseShare = 8
)

type chunk [1 << chunkBits]uint32

// newTable returns an empty map of pages of which so many sectors are told apart.
func newTable(pages int64, sectors int) table { return table{pages: pages, long: sectors > 32} }

// get returns the physical page of logical page l, or noPage.
func (t *table) get(l uint32) uint32 {
	if t.chunks != nil {
		return t.chunks[l>>chunkBits][l&(1<<chunkBits-1)] - 1
	}
	if p, ok := t.sparse.get(l); ok {
		return p.page
	}
	return t.fresh(l)
}

// fresh is the place of a page that was not written since time 0.
func (t *table) fresh(l uint32) uint32 {
	if t.filled != nil {
		return t.filled.place(l)
	}
	return noPage
}

// look returns the physical page of logical page l, or noPage, and which of its sectors hold data if not all do; 0
// says that all do.
func (t *table) look(l uint32) (page uint32, sectors uint64) {
	if t.long || t.parts != nil {
		return t.lookApart(l)
	}
	if t.chunks != nil {
		return t.chunks[l>>chunkBits][l&(1<<chunkBits-1)] - 1, 0
	}
	if p, ok := t.sparse.get(l); ok {
		return p.page, uint64(p.sectors)
	}
	return t.fresh(l), 0
}

// lookApart is look where the sectors are not beside the place.
//
//go:noinline
func (t *table) lookApart(l uint32) (page uint32, sectors uint64) {
	if t.long {
		sectors, _ = t.wide.get(l)
	} else if part := t.parts[l>>chunkBits]; part != nil {
		sectors = uint64(part[l&(1<<chunkBits-1)])
	}
	return t.get(l), sectors
}

// expect says that page l's entry will be looked at soon.
func (t *table) expect(l uint32) {
	if t.chunks != nil {
		prefetch(&t.chunks[l>>chunkBits][l&(1<<chunkBits-1)])
	} else {
		t.sparse.expect(l)
	}
	if t.long {
		t.wide.expect(l)
	}
}

// set makes p the physical page of logical page l, with the sectors that it has.
func (t *table) set(l, p uint32) {
	if t.chunks == nil {
		t.sparse.at(l).page = p
		t.thicken()
		return
	}
	t.setEntry(l, p)
}

func (t *table) setEntry(l, p uint32) {
	k := l >> chunkBits
	if t.shared != nil {
		t.unshare(k)
	}
	t.chunks[k][l&(1<<chunkBits-1)] = p + 1
}

// unshare sees to it that a chunk is no snapshot's.
//
//go:noinline
func (t *table) unshare(k uint32) {
	if t.shared[k] {
		own := *t.chunks[k]
		t.chunks[k], t.shared[k] = &own, false
	}
}

// put makes p the physical page of logical page l, and tells which sectors of it hold data; 0 says that all do.
func (t *table) put(l, p uint32, sectors uint64) {
	switch {
	case t.long:
		t.putWide(l, p, sectors)
	case t.chunks != nil:
		t.setEntry(l, p)
		if sectors != 0 || t.parts != nil {
			t.setSectors(l, uint32(sectors))
		}
	default:
		*t.sparse.at(l) = place{p, uint32(sectors)}
		t.thicken()
	}
}

//go:noinline
func (t *table) putWide(l, p uint32, sectors uint64) {
	if t.set(l, p); sectors != 0 {
		t.wide.set(l, sectors)
	} else {
		t.wide.remove(l)
	}
}

//go:noinline
func (t *table) setSectors(l, sectors uint32) {
	k := l >> chunkBits
	if t.parts == nil || t.parts[k] == nil {
		if sectors == 0 {
			return
		}
		if t.parts == nil {
			t.parts = make([]*chunk, len(t.chunks))
		}
		t.parts[k] = new(chunk)
	}
	t.parts[k][l&(1<<chunkBits-1)] = sectors
}

// thicken goes over to arrays if more than one page in sparseShare is in the hash table.
func (t *table) thicken() {
	if int64(t.sparse.n)*sparseShare > t.pages {
		t.toArrays()
	}
}

// toArrays goes over to arrays.
//
//go:noinline
func (t *table) toArrays() {
	t.chunks = make([]*chunk, (t.pages+1<<chunkBits-1)>>chunkBits)
	for i := range t.chunks {
		t.chunks[i] = new(chunk)
	}
	if t.filled != nil {
		t.filled.each(func(l, page uint32) { t.chunks[l>>chunkBits][l&(1<<chunkBits-1)] = page + 1 })
	}
	for _, c := range t.sparse.cells {
		if c.key != 0 {
			t.setEntry(c.key-1, c.val.page)
			t.setSectors(c.key-1, c.val.sectors)
		}
	}
	t.sparse = hash[place]{}
}

// pairs is of the pages that were written since time 0, or of all where the table is of arrays, which have a place.
func (t *table) pairs() (all pairs) {
	for i := range t.sparse.cells {
		if c := &t.sparse.cells[i]; c.key != 0 && c.val.page < trimmed {
			all.add(c.key-1, c.val.page)
		}
	}
	for k, c := range t.chunks {
		for i, v := range c {
			if page := v - 1; page < trimmed {
				all.add(uint32(k)<<chunkBits|uint32(i), page)
			}
		}
	}
	return all
}

// clone returns a table with the same content. Arrays are shared; both sides copy
// one before they write to it from now on.
func (t *table) clone() table {
	c := *t
	c.sparse, c.wide = t.sparse.clone(), t.wide.clone()
	c.chunks, c.parts = append([]*chunk(nil), t.chunks...), append([]*chunk(nil), t.parts...)
	for i, p := range c.parts {
		if p != nil {
			own := *p
			c.parts[i] = &own
		}
	}
	if t.chunks != nil {
		t.shared, c.shared = make([]bool, len(t.chunks)), make([]bool, len(t.chunks))
		for i := range t.shared {
			t.shared[i], c.shared[i] = true, true
		}
	}
	return c
}

// noPage stands for no physical page. It wraps to 0 when one is added.
const noPage = ^uint32(0)

// arena hands out equal runs of 32-bit words without moving those it has handed
// out. Runs can be given back.
type arena struct {
	run    uint32 // words in a run
	chunks [][]uint32
	used   uint32
	free   []uint32
	shift  uint8
	mask   uint32 // of the run within its chunk
}

const arenaChunkWords = 1 << 14 // 64 KiB

func newArena(run int) arena {
	a := arena{run: uint32(run)}
	for a.run<<(a.shift+1) <= arenaChunkWords {
		a.shift++
	}
	a.mask = 1<<a.shift - 1
	return a
}

// at is a run.
func (a *arena) at(n uint32) []uint32 {
	i := (n & a.mask) * a.run
	return a.chunks[n>>(a.shift&31)][i : i+a.run : i+a.run]
}

// word is one of a run's words.
func (a *arena) word(n, i uint32) *uint32 {
	return &a.chunks[n>>(a.shift&31)][(n&a.mask)*a.run+i]
}

// grow returns the number of a run of zeros.
func (a *arena) grow() uint32 {
	if k := len(a.free); k > 0 {
		n := a.free[k-1]
		a.free = a.free[:k-1]
		clear(a.at(n))
		return n
	}
	if a.used>>a.shift == uint32(len(a.chunks)) {
		a.chunks = append(a.chunks, make([]uint32, a.run<<a.shift))
	}
	a.used++
	return a.used - 1
}

// release gives a run back.
func (a *arena) release(n uint32) { a.free = append(a.free, n) }

// clone returns an arena over the same chunks. Runs handed out before must no
// longer be written through either, nor released.
func (a *arena) clone() arena {
	c := *a
	// New runs go into chunks of their own, so the last, partly used chunk is closed.
	c.used = uint32(len(a.chunks)) << a.shift
	a.used = c.used
	c.chunks = append([][]uint32(nil), a.chunks...)
	c.free = nil
	a.free = nil
	return c
}

// owners is the physical-to-logical map: for each block that was written since time 0, a
// run of logical page numbers, as a real drive keeps them in the spare area.
type owners struct {
	runs   arena
	block  [][]uint32 // by plane, by block: run number plus one, 0: none
	recent []recent   // by plane
	shared uint32     // runs up to this number belong to a snapshot
	filled *filling   // whose the pages of blocks without a run are
}

// recent is the block of a plane that was written last, or none, and its run, which may be written to.
type recent struct {
	block int32
	run   uint32
}

func newOwners(planes, pagesPerBlock int) owners {
	return owners{runs: newArena(pagesPerBlock), block: make([][]uint32, planes), recent: noneRecent(planes)}
}

func noneRecent(planes int) []recent {
	r := make([]recent, planes)
	for i := range r {
		r[i].block = -1
	}
	return r
}

// get is the logical page last written to a page of a block.
func (o *owners) get(plane, block, page int) uint32 {
	if w := o.word(plane, block, page); w != nil || o.filled == nil {
		return *w
	}
	return o.filled.owner(plane, uint32(block)*o.runs.run+uint32(page))
}

// word is where that is kept; nil if the block was not written since time 0. It holds until the block is erased, or
// another copy of the map is made.
func (o *owners) word(plane, block, page int) *uint32 {
	if b := o.block[plane]; block < len(b) && b[block] != 0 {
		return o.runs.word(b[block]-1, uint32(page))
	}
	return nil
}

// run is the owners of a block's pages; nil if it was not written since time 0.
func (o *owners) run(plane, block int) []uint32 {
	if b := o.block[plane]; block < len(b) && b[block] != 0 {
		return o.runs.at(b[block] - 1)
	}
	return nil
}

// set makes logical page l the owner of a page of a block.
func (o *owners) set(plane, block, page int, l uint32) {
	if r := o.recent[plane]; int(r.block) == block {
		*o.runs.word(r.run, uint32(page)) = l
		return
	}
	o.setOther(plane, block, page, l)
}

// setOther is set in another block than the one that was written last.
//
//go:noinline
func (o *owners) setOther(plane, block, page int, l uint32) {
	b := o.block[plane]
	if block >= len(b) || b[block] <= o.shared {
		o.begin(plane, block, page)
		b = o.block[plane]
	}
	o.recent[plane] = recent{int32(block), b[block] - 1}
	*o.runs.word(b[block]-1, uint32(page)) = l
}

// begin gives a block a run whose page is to be written, as it was not written since time 0, or its run belongs to a
// snapshot.
func (o *owners) begin(plane, block, page int) {
	b := o.block[plane]
	if block >= len(b) {
		b = append(b, make([]uint32, block+1-len(b))...)
		o.block[plane] = b
	}
	n := b[block]
	m := o.runs.grow() + 1
	if n != 0 {
		copy(o.runs.at(m-1), o.runs.at(n-1))
	} else if o.filled != nil {
		// A block that is erased is written from its first page on; this one had been written so far.
		for k, run := 0, o.runs.at(m-1); k < page; k++ {
			run[k] = o.filled.owner(plane, uint32(block)*o.runs.run+uint32(k))
		}
	}
	b[block] = m
}

// forget drops an erased block's run.
func (o *owners) forget(plane, block int) {
	if b := o.block[plane]; block < len(b) && b[block] != 0 {
		n := b[block]
		if n > o.shared {
			o.runs.release(n - 1)
		}
		o.block[plane][block] = 0
		if r := &o.recent[plane]; int(r.block) == block {
			r.block = -1
		}
	}
}

func (o *owners) clone() owners {
	c := owners{block: make([][]uint32, len(o.block)), runs: o.runs.clone(), recent: noneRecent(len(o.block)),
		filled: o.filled}
	o.recent = noneRecent(len(o.block))
	for i, b := range o.block {
		c.block[i] = append([]uint32(nil), b...)
	}
	c.shared, o.shared = c.runs.used, o.runs.used
	return c
}

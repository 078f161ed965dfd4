package ssd

// table is the logical-to-physical map, including the valid sectors of pages that are partly valid. Pages not written
// since time 0 are not stored: a drive starts with an empty table, whatever its size, on top of the filling it was
// prepared with. While few pages have been written, entries are in a hash table. Once more than one page in sparseShare
// has been written, they move to chunks of plain arrays, with four bytes an entry, plus four more for sectors in chunks
// with partly valid pages.
type table struct {
	pages  int64
	sparse hash[place]
	filled *filling     // places of pages not in sparse; nil: none
	chunks []*chunk     // nil while sparse; physical page plus one, 0: never written
	parts  []*chunk     // valid sectors; nil where all pages are whole
	shared []bool       // chunks shared with a snapshot: copied before they are written
	long   bool         // pages have more than 32 sectors; wide then holds
	wide   hash[uint64] // the valid sectors of pages that are not whole
}

// place is the map's entry of a logical page.
type place struct {
	page    uint32 // physical page
	sectors uint32 // valid sectors, a bit each; 0: all of them
}

const (
	chunkBits   = 12
	sparseShare = 8
)

type chunk [1 << chunkBits]uint32

// newTable returns an empty map of the given number of pages, each with the given number of sectors.
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

// fresh returns the place of a page that was not written since time 0.
func (t *table) fresh(l uint32) uint32 {
	if t.filled != nil {
		return t.filled.place(l)
	}
	return noPage
}

// look returns the physical page of logical page l, or noPage, and its valid sectors; 0 means that all are valid.
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

// lookApart is look for tables that store sectors apart from the place.
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

// expect prefetches the entry of page l, for a look-up that is about to follow.
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

// set makes p the physical page of logical page l and keeps its valid sectors.
func (t *table) set(l, p uint32) {
	if t.chunks == nil {
		t.sparse.at(l).page = p
		t.thicken()
		return
	}
	t.setEntry(l, p)
}

// setEntry is set for a table of arrays.
func (t *table) setEntry(l, p uint32) {
	k := l >> chunkBits
	if t.shared != nil {
		t.unshare(k)
	}
	t.chunks[k][l&(1<<chunkBits-1)] = p + 1
}

// unshare makes sure that a chunk is not shared with a snapshot.
//
//go:noinline
func (t *table) unshare(k uint32) {
	if t.shared[k] {
		own := *t.chunks[k]
		t.chunks[k], t.shared[k] = &own, false
	}
}

// put makes p the physical page of logical page l, with the given valid sectors; 0 means all.
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

// putWide is put for pages with more than 32 sectors.
//
//go:noinline
func (t *table) putWide(l, p uint32, sectors uint64) {
	if t.set(l, p); sectors != 0 {
		t.wide.set(l, sectors)
	} else {
		t.wide.remove(l)
	}
}

// setSectors sets the valid sectors of a page in a table of arrays. Chunks of sectors are created on demand.
//
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

// thicken switches to arrays once more than one page in sparseShare is in the hash table.
func (t *table) thicken() {
	if int64(t.sparse.n)*sparseShare > t.pages {
		t.toArrays()
	}
}

// toArrays switches to arrays.
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

// pairs returns the located pages among those written since time 0, or among all pages if the table uses arrays.
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

// clone returns a table with the same content. Arrays are shared; from now on both sides copy one before they write to
// it.
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

// noPage stands for no physical page. Adding one wraps it to 0.
const noPage = ^uint32(0)

// arena allocates equal runs of 32-bit words, which never move. Runs can be released.
type arena struct {
	run    uint32 // words in a run
	chunks [][]uint32
	used   uint32
	free   []uint32
	shift  uint8
	mask   uint32 // index of the run within its chunk
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

// at returns run n.
func (a *arena) at(n uint32) []uint32 {
	i := (n & a.mask) * a.run
	return a.chunks[n>>(a.shift&31)][i : i+a.run : i+a.run]
}

// word returns a pointer to word i of run n.
func (a *arena) word(n, i uint32) *uint32 {
	return &a.chunks[n>>(a.shift&31)][(n&a.mask)*a.run+i]
}

// grow returns the number of a zeroed run.
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

// release frees a run for reuse.
func (a *arena) release(n uint32) { a.free = append(a.free, n) }

// clone returns an arena over the same chunks. Runs allocated before must no longer be written or released through
// either arena.
func (a *arena) clone() arena {
	c := *a
	// New runs must not share a chunk with old ones, so the last, partly used chunk is closed.
	c.used = uint32(len(a.chunks)) << a.shift
	a.used = c.used
	c.chunks = append([][]uint32(nil), a.chunks...)
	c.free = nil
	a.free = nil
	return c
}

// owners is the physical-to-logical map: for each block written since time 0, a run of logical page numbers, which a
// real drive stores in the spare area.
type owners struct {
	runs   arena
	block  [][]uint32 // by plane, then block: run number plus one, 0: none
	recent []recent   // by plane
	shared uint32     // runs up to this number are shared with a snapshot
	filled *filling   // owners of pages in blocks without a run
}

// recent is the block of a plane that was written last, or none, and its run, which can be written.
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

// get returns the logical page last written to a page of a block.
func (o *owners) get(plane, block, page int) uint32 {
	if w := o.word(plane, block, page); w != nil || o.filled == nil {
		return *w
	}
	return o.filled.owner(plane, uint32(block)*o.runs.run+uint32(page))
}

// word returns a pointer to that entry, or nil if the block was not written since time 0. It is valid until the block
// is erased or the map is cloned.
func (o *owners) word(plane, block, page int) *uint32 {
	if b := o.block[plane]; block < len(b) && b[block] != 0 {
		return o.runs.word(b[block]-1, uint32(page))
	}
	return nil
}

// run returns the owners of a block's pages, or nil if the block was not written since time 0.
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

// setOther is set for a block other than the one written last.
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

// begin gives a block a new run before one of its pages is written, because it has not been written since time 0 or its
// run is shared with a snapshot.
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
		// An erased block is written from its first page on, so the pages before this one are still the filling's.
		for k, run := 0, o.runs.at(m-1); k < page; k++ {
			run[k] = o.filled.owner(plane, uint32(block)*o.runs.run+uint32(k))
		}
	}
	b[block] = m
}

// forget releases an erased block's run.
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

// clone returns a copy with the same owners. Existing runs become read-only on both sides.
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

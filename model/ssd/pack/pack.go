// Package pack gathers the grains of a drive's map into pages of flash: which pages are being filled, which grains
// wait in them, and for whom. A grain is what an entry of the map is about, a sector or more; a page of flash holds
// several, is programmed as one, and only once. The translation layer hands out grains' places in order, so that a
// page is filled from its first place to its last.
//
// The main types are Pages, those being filled, and Page, one of them, whose grains are a chain of the driver's
// transactions. A page is queued when its program has been handed to the scheduler, which may be before it is full:
// until it is taken out, more grains may join.
//
// What it leaves out: when a page is queued, and what becomes of its grains (ssd). It is a plain state machine
// without a clock and allocates only while it grows.
package pack

// Kind is who knows that a grain waits for its page to fill.
type Kind uint8

// The kinds.
const (
	Other Kind = iota // nobody, or the page is queued for it anyway
	Cache             // data that leave a cache
	Move              // a move of collection
)

// Page is a page that is being filled.
type Page struct {
	Number      uint32 // over all of the drive, in pages
	First, Last int32  // transactions of its grains
	Grains      int32  // how many have joined
	Cached      int32  // of them, while it is not queued: data that leave cache Set
	Moves       int32  // the same of collection's
	Set         uint8
	Queued      bool
}

// Pages are those that are being filled, at most one for each place that a pool is written at.
type Pages struct {
	open   [][]Page // by pool, in no order that anything depends on but its history
	moves  []int32  // by pool: grains of collection in pages that are not queued
	cached []int32  // by cache: its grains in such pages
	grains int64    // in all pages
}

// New returns none, of so many pools and caches.
func New(pools, caches int) Pages {
	return Pages{open: make([][]Page, pools), moves: make([]int32, pools), cached: make([]int32, caches)}
}

// Find is the page of a pool with a number, or nil. It holds until the next Add or Take.
func (p *Pages) Find(pool int, number uint32) *Page {
	for i := range p.open[pool] {
		if g := &p.open[pool][i]; g.Number == number {
			return g
		}
	}
	return nil
}

// Add has a transaction's grain join its page, which is begun if it is the first there.
func (p *Pages) Add(pool int, number uint32, t int32, kind Kind, set uint8) *Page {
	g := p.Find(pool, number)
	if g == nil {
		p.open[pool] = append(p.open[pool], Page{Number: number, First: t})
		g = &p.open[pool][len(p.open[pool])-1]
	}
	g.Last = t
	g.Grains++
	p.grains++
	switch {
	case g.Queued:
	case kind == Cache:
		g.Set = set
		g.Cached++
		p.cached[set]++
	case kind == Move:
		g.Moves++
		p.moves[pool]++
	}
	return g
}

// Queue notes that a page's program has been handed on: nobody waits for it to fill any more.
func (p *Pages) Queue(pool int, g *Page) {
	g.Queued = true
	p.cached[g.Set] -= g.Cached
	g.Cached = 0
	p.Released(pool, g)
}

// Released notes that collection does not wait for a page's grains any more.
func (p *Pages) Released(pool int, g *Page) {
	p.moves[pool] -= g.Moves
	g.Moves = 0
}

// Take takes a page out that no grain can join any more.
func (p *Pages) Take(pool int, number uint32) (Page, bool) {
	l := p.open[pool]
	for i := range l {
		if g := l[i]; g.Number == number {
			l[i] = l[len(l)-1]
			p.open[pool] = l[:len(l)-1]
			p.grains -= int64(g.Grains)
			return g, true
		}
	}
	return Page{}, false
}

// Open are a pool's pages, for looking and for Released.
func (p *Pages) Open(pool int) []Page { return p.open[pool] }

// Moves is how many of a pool's moves wait in pages that are not queued.
func (p *Pages) Moves(pool int) int32 { return p.moves[pool] }

// Cached is how many grains of a cache wait in such pages.
func (p *Pages) Cached(set uint8) int32 { return p.cached[set] }

// Grains is how many wait in all pages, those that are queued and not taken out included.
func (p *Pages) Grains() int64 { return p.grains }

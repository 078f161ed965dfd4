// Package pack gathers the grains of a drive's map into pages of flash. It tracks which pages are being filled, which
// grains wait in them, and on whose behalf. A grain is the unit of a map entry, a sector or more; a page of flash holds
// several, is programmed as a whole, and only once. The translation layer hands out places for grains in order, so a
// page is filled from its first place to its last.
//
// The main types are Pages, the set of pages being filled, and Page, one of them, whose grains are a chain of the
// driver's transactions. A page is queued when its program has been handed to the scheduler, which can happen before it
// is full: more grains can join until it is taken out.
//
// It leaves out the decision when to queue a page, and the further handling of its grains (ssd). It is a plain state
// machine without a clock, and allocates only while it grows.
package pack

// Kind is the reason why the wait of a grain for its page to fill is tracked.
type Kind uint8

// The kinds.
const (
	Other Kind = iota // not tracked: no waiter, or the page is queued for it anyway
	Cache             // data leaving a cache
	Move              // a move of collection
)

// Page is a page that is being filled.
type Page struct {
	Number      uint32 // in pages, over the whole drive
	First, Last int32  // first and last transaction of the chain
	Grains      int32  // grains that have joined
	Cached      int32  // while not queued: grains leaving cache Set
	Moves       int32  // while not queued: grains of collection
	Set         uint8
	Queued      bool
}

// Pages is the set of pages being filled, at most one for each write position of a pool.
type Pages struct {
	open   [][]Page // by pool; the order depends only on the history of calls
	moves  []int32  // by pool: grains of collection in pages that are not queued
	cached []int32  // by cache: its grains in such pages
	grains int64    // in all pages
}

// New returns an empty set for the given numbers of pools and caches.
func New(pools, caches int) Pages {
	return Pages{open: make([][]Page, pools), moves: make([]int32, pools), cached: make([]int32, caches)}
}

// Find returns the page of a pool with a number, or nil. The pointer is valid until the next Add or Take.
func (p *Pages) Find(pool int, number uint32) *Page {
	for i := range p.open[pool] {
		if g := &p.open[pool][i]; g.Number == number {
			return g
		}
	}
	return nil
}

// Add adds a transaction's grain to its page, and creates the page if it is the first.
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

// Queue records that a page's program has been handed to the scheduler: its grains no longer wait for it to fill.
func (p *Pages) Queue(pool int, g *Page) {
	g.Queued = true
	p.cached[g.Set] -= g.Cached
	g.Cached = 0
	p.Released(pool, g)
}

// Released records that collection no longer waits for a page's grains.
func (p *Pages) Released(pool int, g *Page) {
	p.moves[pool] -= g.Moves
	g.Moves = 0
}

// Take removes a page that no more grains can join.
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

// Open returns a pool's pages, for reading and for Released.
func (p *Pages) Open(pool int) []Page { return p.open[pool] }

// Moves returns the number of a pool's moves that wait in pages that are not queued.
func (p *Pages) Moves(pool int) int32 { return p.moves[pool] }

// Cached returns the number of a cache's grains that wait in such pages.
func (p *Pages) Cached(set uint8) int32 { return p.cached[set] }

// Grains returns the number of grains in all pages, including those queued but not yet taken out.
func (p *Pages) Grains() int64 { return p.grains }

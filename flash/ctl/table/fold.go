package table

import (
	"sort"
	"sync/atomic"

	"farflash/policy/ftl"
)

// run is pages in the order of their places: page is at place, and so on up to the page of the next run. Pages of a run
// without a place were never used. They share one write history.
type run struct {
	page  uint64
	place ftl.PPA // or ftl.NoPPA
	heat  uint64
}

// mostRuns is the number of runs above which a leaf is packed.
const mostRuns = fan / 8

// at returns the word and the write history of a page of a leaf without a slot.
func (t *Table) at(l *leaf, page uint64) (Word, uint64) {
	switch {
	case l.packed != nil:
		return t.wordOf(l.packed.entries[page&(fan-1)].Load()), l.packed.heat(page)
	case l.away:
		if entry, heat, ok := l.delta.entry(page); ok {
			return t.wordOf(entry), heat
		}
		return awayBit, 0
	}
	n := len(l.runs)
	for i := range l.runs {
		if i == 4 {
			n = sort.Search(len(l.runs), func(i int) bool { return l.runs[i].page > page })
			break
		}
		if l.runs[i].page > page {
			n = i
			break
		}
	}
	if n == 0 || l.runs[n-1].place == ftl.NoPPA {
		return 0, 0
	}
	r := &l.runs[n-1]
	return At(r.place + ftl.PPA(page-r.page)), r.heat
}

// follows reports whether a page and its place continue a run.
func (r *run) follows(page uint64, place ftl.PPA) bool {
	if place == ftl.NoPPA || r.place == ftl.NoPPA {
		return place == r.place
	}
	return place-r.place == ftl.PPA(page-r.page)
}

// Loose returns the memory, in bytes, of what Fold may be able to replace.
func (t *Table) Loose() int64 { return t.loose.Load() }

// Bounds of the work of one call of Fold.
const (
	foldLooks = 256
	foldTries = 4
)

// Fold looks at some leaves, after those of the last call, and replaces the slots of pages that are in no frame by
// runs, or packs them, where that takes less memory. It forgets how often they were read, and all pages of a run get
// the write history of the first. It reports false if another call would gain little.
func (t *Table) Fold() bool {
	if t.loose.Load() <= t.rest {
		return false
	}
	looks, tries := foldLooks, foldTries
	done := true
	t.leaves(t.hand, 1<<52-1, func(base uint64, e *atomic.Pointer[leaf]) bool {
		if t.hand = base; looks == 0 || tries == 0 {
			done = false
			return false
		}
		looks--
		if l := e.Load(); l != nil && l.groups != nil {
			tries--
			t.gained += t.fold(base, e)
		}
		return true
	})
	if !done {
		return true
	}
	// The end of a pass. The next one can wait, unless this one gained an eighth of what there is to gain.
	t.rest = 0
	if all := t.loose.Load(); t.gained < all/8 {
		t.rest = all + all/8
	}
	t.hand, t.gained = 0, 0
	return t.rest == 0
}

// runsOf returns the number of runs that a leaf would have, and of its groups without a page in a frame.
func (t *Table) runsOf(l *leaf, base uint64) (n, idle int) {
	last := run{page: 1 << 63}
	for i := range l.groups {
		g := l.groups[i].Load()
		busy := false
		for k := range uint64(grouped) {
			page := base + uint64(i*grouped) + k
			var w Word
			if g == nil || g == t.frozen {
				w, _ = t.at(l, page)
			} else if w = g[k].Load(); w.State() > OnMedium {
				busy = true
				continue
			}
			if r := runFrom(page, w, 0); last.page == 1<<63 || !last.follows(page, r.place) {
				n, last = n+1, r
			}
		}
		if g != nil && !busy {
			idle++
		}
	}
	return n, idle
}

// runFrom returns a run that begins with a page that is in no frame.
func runFrom(page uint64, w Word, heat uint64) run {
	if w.State() == OnMedium {
		return run{page, w.Place(), heat}
	}
	return run{page, ftl.NoPPA, 0}
}

// leastPacked is the number of groups without a page in a frame from which on a leaf is packed.
const leastPacked = packedBytes/groupBytes + 2

// fold replaces the slots of one leaf as far as it can, and returns the memory that it freed. Other threads may use
// them meanwhile: a slot that is replaced is Gone, and a leaf that is replaced gets no further groups.
func (t *Table) fold(base uint64, e *atomic.Pointer[leaf]) int64 {
	l := e.Load()
	if l == nil || l.groups == nil {
		return 0
	}
	if l.away {
		return t.foldAway(base, e, l)
	}
	n, idle := t.runsOf(l, base)
	p := l.packed
	switch {
	case idle == 0, p == nil && n > mostRuns && idle < leastPacked:
		return 0
	case p != nil && n <= mostRuns/2:
		p = nil
	case p == nil && n > mostRuns:
		p = t.pack(l, base)
	}
	for i := range l.groups {
		l.groups[i].CompareAndSwap(nil, t.frozen)
	}
	var runs []run
	add := func(page uint64, w Word, heat uint64) {
		if p != nil {
			return
		}
		r := runFrom(page, w, heat)
		if n := len(runs); n == 0 || !runs[n-1].follows(page, r.place) {
			runs = append(runs, r)
		}
	}
	var kept *[fan / grouped]atomic.Pointer[group]
	freed := int64(0)
	for i := range l.groups {
		first := base + uint64(i*grouped)
		switch g := l.groups[i].Load(); {
		case g == t.frozen:
			for k := range uint64(grouped) {
				w, heat := t.at(l, first+k)
				add(first+k, w, heat)
			}
		case g.leave():
			freed += groupBytes
			for k := range uint64(grouped) {
				w, heat := g[k].Load().was(), g[k].Heat()
				if add(first+k, w, heat); p == nil {
					continue
				}
				// Those who still have the leaf as it was look into the group.
				if at := &p.entries[(first+k)&(fan-1)]; !t.same(at.Load(), t.bare(w)) {
					at.Store(t.bare(w))
					p.soil(first + k)
				}
				if taken := p.setHeat(first+k, heat); p == l.packed {
					t.warmed(taken)
				}
			}
		default:
			if kept == nil {
				kept = new([fan / grouped]atomic.Pointer[group])
			}
			kept[i].Store(g)
		}
	}
	next := &leaf{runs: runs[:len(runs):len(runs)], packed: p, groups: kept}
	if kept == nil {
		freed += slotsBytes
		switch {
		case p != nil || len(runs) > 1:
		case runs[0].place == ftl.NoPPA:
			next = nil
		default:
			next = t.shared(base, next)
		}
	}
	t.set(e, next)
	t.loose.Add(-freed)
	return freed
}

// leave marks all slots of a group as gone, unless one of its pages is in a frame.
func (g *group) leave() bool {
	for i := range g {
		w := g[i].Load()
		if w.State() <= OnMedium && g[i].Swap(w, w.gone()) {
			continue
		}
		for k := range i { // no other thread changes a slot that is gone
			g[k].Store(g[k].Load().was())
		}
		return false
	}
	return true
}

// shared returns the leaf of a neighbour that is of the same run as n, or n.
func (t *Table) shared(base uint64, n *leaf) *leaf {
	for _, page := range []uint64{base - fan, base + fan} {
		if page >= 1<<52 {
			continue
		}
		if e := t.entry(page); e != nil {
			if l := e.Load(); l != nil && l.groups == nil && len(l.runs) == 1 && l.runs[0].place != ftl.NoPPA &&
				l.runs[0].page <= base && l.runs[0].follows(base, n.runs[0].place) {
				return l
			}
		}
	}
	return n
}

// Put maps pages that have no place yet to consecutive places, with the checksums of their contents. It may only be
// called before the pool is open.
func (t *Table) Put(page uint64, place ftl.PPA, pages int, sum func(ftl.PPA) uint32) {
	for n := 0; pages > 0; page, place, pages = page+uint64(n), place+ftl.PPA(n), pages-n {
		base := page &^ (fan - 1)
		n = min(pages, int(base+fan-page))
		e := t.made(page)
		l := e.Load()
		if l == nil && n == fan {
			t.set(e, t.shared(base, &leaf{runs: []run{{page, place, 0}}}))
			continue
		}
		if l == nil {
			l = &leaf{runs: []run{{base, ftl.NoPPA, 0}}}
		}
		if l.groups != nil {
			for i := range uint64(n) {
				t.Make(page + i).Store(At(place + ftl.PPA(i)))
			}
			continue
		}
		if l.packed == nil && len(l.runs) >= mostRuns {
			l = &leaf{packed: t.pack(l, base)}
			t.set(e, l)
		}
		if l.packed != nil {
			for i := range n {
				p := place + ftl.PPA(i)
				l.packed.entries[int(page&(fan-1))+i].Store(t.Entry(p, sum(p)))
			}
			continue
		}
		runs := make([]run, 0, len(l.runs)+2)
		for i, r := range l.runs { // the range lies within one of them
			last := i+1 == len(l.runs)
			if r.page > page || !last && l.runs[i+1].page <= page {
				runs = append(runs, r)
				continue
			}
			if r.page < page {
				runs = append(runs, r)
			}
			if k := len(runs); k == 0 || !runs[k-1].follows(page, place) {
				runs = append(runs, run{page, place, 0})
			}
			if end := page + uint64(n); last && end < base+fan || !last && end < l.runs[i+1].page {
				runs = append(runs, run{end, ftl.NoPPA, 0})
			}
		}
		t.set(e, &leaf{runs: runs})
	}
}

// Runs iterates over the places of pages from one on, in order, as runs: of a page, its place, and the number of pages
// in the order of their places. in returns the place of a page in a frame. It leaves out leaves for which elsewhere
// reports true, and reports whether all others were in memory.
func (t *Table) Runs(from uint64, in func(frame int32) ftl.PPA, elsewhere func(leaf uint64) bool,
	yield func(page uint64, place ftl.PPA, n int) bool) bool {
	complete := true
	t.leaves(from, 1<<52-1, func(base uint64, e *atomic.Pointer[leaf]) bool {
		l := e.Load()
		switch first := max(base, from); {
		case elsewhere(LeafOf(base)):
		case l.away:
			complete = false
			return false
		case l.packed == nil && l.groups == nil:
			for i := range l.runs {
				r, end := l.runs[i], base+fan
				if r.page = max(r.page, base); i+1 < len(l.runs) {
					end = l.runs[i+1].page
				}
				if at := max(r.page, first); r.place != ftl.NoPPA && at < end &&
					!yield(at, l.runs[i].place+ftl.PPA(at-l.runs[i].page), int(end-at)) {
					return false
				}
			}
		default:
			for page := first; page < base+fan; page++ {
				w, _ := t.Peek(page)
				if at := placeOf(w, in); at != ftl.NoPPA && !yield(page, at, 1) {
					return false
				}
			}
		}
		return true
	})
	return complete
}

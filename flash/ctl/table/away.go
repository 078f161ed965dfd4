package table

import (
	"slices"
	"sort"
	"sync/atomic"

	"farflash/flash/ctl/heat"
	"farflash/policy/ftl"
)

// A leaf without order can be stored on the medium, and then be away: of its pages, only those in groups and those that
// have changed since are in memory. Arrive brings it back.

// delta has the entries of some pages of a leaf, in order. It does not change.
type delta struct {
	pages   []uint16
	heats   []heat.Short
	entries []uint64
}

func (d *delta) bytes() int64 { return 96 + 12*int64(len(d.pages)) }

// entry returns the entry and the write history of a page, and whether there is one.
func (d *delta) entry(page uint64) (entry, history uint64, ok bool) {
	if d == nil {
		return 0, 0, false
	}
	in := uint16(page & (fan - 1))
	i := sort.Search(len(d.pages), func(i int) bool { return d.pages[i] >= in })
	if i == len(d.pages) || d.pages[i] != in {
		return 0, 0, false
	}
	return d.entries[i], uint64(d.heats[i].Page()), true
}

// with returns d with the entry of one more page, or another one.
func (d *delta) with(page uint64, entry, history uint64) *delta {
	if d == nil {
		d = &delta{}
	}
	in, short := uint16(page&(fan-1)), heat.Page(history).Short()
	next := &delta{slices.Clone(d.pages), slices.Clone(d.heats), slices.Clone(d.entries)}
	i, found := slices.BinarySearch(next.pages, in)
	if !found {
		next.pages, next.heats = slices.Insert(next.pages, i, in), slices.Insert(next.heats, i, 0)
		next.entries = slices.Insert(next.entries, i, 0)
	}
	next.heats[i], next.entries[i] = short, entry
	return next
}

// LeafPages is the number of pages of a leaf.
const LeafPages = fan

// LeafOf returns the number of a page's leaf, and FirstOf the first page of a leaf.
func LeafOf(page uint64) uint64  { return page >> fanBits }
func FirstOf(leaf uint64) uint64 { return leaf << fanBits }

// Away reports whether a page's leaf is away, and the page in no group.
func (t *Table) Away(page uint64) bool {
	e := t.entry(page)
	if e == nil {
		return false
	}
	l := e.Load()
	return l != nil && l.away && (l.groups == nil || l.group(page).Load() == nil)
}

// Storable reports whether a leaf is one to be stored: it has no order, or is away.
func (t *Table) Storable(number uint64) bool {
	e := t.entry(FirstOf(number))
	if e == nil {
		return false
	}
	l := e.Load()
	return l != nil && (l.packed != nil || l.away)
}

// IsAway reports whether a leaf is away.
func (t *Table) IsAway(number uint64) bool {
	e := t.entry(FirstOf(number))
	return e != nil && e.Load() != nil && e.Load().away
}

// AwayLeaves iterates over the leaves of pages first to last that are away, in order, by number.
func (t *Table) AwayLeaves(first, last uint64) func(yield func(leaf uint64) bool) {
	return func(yield func(uint64) bool) {
		t.leaves(first, last, func(base uint64, e *atomic.Pointer[leaf]) bool {
			return !e.Load().away || yield(LeafOf(base))
		})
	}
}

// Leave makes a leaf that is not there be away. It may only be called before the pool is open.
func (t *Table) Leave(number uint64) { t.set(t.made(FirstOf(number)), t.stored) }

// Change sets the place and the checksum of a page whose leaf is away, or ftl.NoPPA. It may only be called before the
// pool is open.
func (t *Table) Change(page uint64, place ftl.PPA, sum uint32) {
	e := t.entry(page)
	t.set(e, &leaf{away: true, delta: e.Load().delta.with(page, t.Entry(place, sum), 0)})
}

// Arrive brings a leaf back that is away: entries has those of its pages as they were stored.
func (t *Table) Arrive(number uint64, entries *[fan]uint64) {
	e := t.entry(FirstOf(number))
	l := e.Load()
	p := newPacked()
	for i, entry := range entries {
		p.entries[i].Store(entry)
	}
	if d := l.delta; d != nil {
		for i, in := range d.pages {
			p.entries[in].Store(d.entries[i])
			p.setHeat(uint64(in), uint64(d.heats[i].Page()))
			p.soil(uint64(in))
		}
	}
	next := &leaf{packed: p, groups: l.groups}
	next.used.Store(true)
	t.set(e, next)
}

// Unstored calls fn for each leaf that could be stored and has changed since it was, in order from one on, by number,
// until it returns false. place returns the place of a page in a frame.
func (t *Table) Unstored(from uint64, place func(frame int32) ftl.PPA, fn func(leaf uint64) bool) {
	t.leaves(FirstOf(from), 1<<52-1, func(base uint64, e *atomic.Pointer[leaf]) bool {
		l := e.Load()
		return l.packed == nil && !l.away || !t.changed(base, l, place) || fn(LeafOf(base))
	})
}

// Changed reports whether a leaf has changed since it was stored.
func (t *Table) Changed(number uint64, place func(frame int32) ftl.PPA) bool {
	e := t.entry(FirstOf(number))
	if e == nil {
		return true
	}
	l := e.Load()
	return l == nil || l.packed == nil && !l.away || t.changed(FirstOf(number), l, place)
}

func (t *Table) changed(base uint64, l *leaf, place func(frame int32) ftl.PPA) bool {
	if l.packed != nil && l.packed.isDirty() || l.delta != nil || l.away && l.groups != nil {
		return true
	}
	for i := 0; l.groups != nil && i < len(l.groups); i++ {
		g := l.groups[i].Load()
		for k := 0; g != nil && k < len(g); k++ {
			w, _ := t.at(l, base+uint64(i*grouped+k))
			was := ftl.NoPPA
			if w.State() == OnMedium {
				was = w.Place()
			}
			if placeOf(g[k].Load(), place) != was {
				return true
			}
		}
	}
	return false
}

// placeOf returns the place of a page by its word.
func placeOf(w Word, place func(frame int32) ftl.PPA) ftl.PPA {
	switch w.State() {
	case OnMedium:
		return w.Place()
	case Invalid:
		return ftl.NoPPA
	}
	return place(w.Frame())
}

// packedOf returns the packed form of a leaf, or nil.
func (t *Table) packedOf(number uint64) *packed {
	e := t.entry(FirstOf(number))
	if e == nil || e.Load() == nil {
		return nil
	}
	return e.Load().packed
}

// Store takes down the entries of a leaf's pages, to be stored, and counts it as stored. place returns that of a page
// in a frame, and sum the checksum of the content of a place, or 0. It reports false if the leaf is away, or is no
// longer one to be stored.
func (t *Table) Store(number uint64, entries *[fan]uint64, place func(frame int32) ftl.PPA,
	sum func(ftl.PPA) uint32) bool {
	p := t.packedOf(number)
	if p == nil {
		return false
	}
	for i := range entries {
		w, h := t.Peek(FirstOf(number) + uint64(i))
		at := placeOf(w, place)
		entry := p.entries[i].Load()
		switch {
		case at == ftl.NoPPA:
			entry = 0
		case t.lacks(entry, at):
			entry = t.Entry(at, sum(at))
		}
		// Later changes are compared with the entries as stored.
		entries[i] = entry
		p.entries[i].Store(entry)
		t.warmed(p.setHeat(uint64(i), h))
	}
	clear(p.dirty[:])
	return true
}

// lacks reports whether an entry is not that of a page at a place with its checksum.
func (t *Table) lacks(entry uint64, place ftl.PPA) bool {
	return t.place(entry) != place || entry>>t.bits == 0
}

// Lacking calls fn for the places of a leaf's pages whose checksums Store will need.
func (t *Table) Lacking(number uint64, place func(frame int32) ftl.PPA, fn func(ftl.PPA)) {
	p := t.packedOf(number)
	for i := uint64(0); p != nil && i < fan; i++ {
		w, _ := t.Peek(FirstOf(number) + i)
		if at := placeOf(w, place); at != ftl.NoPPA && t.lacks(p.entries[i].Load(), at) {
			fn(at)
		}
	}
}

// Soil makes a leaf one that was never stored.
func (t *Table) Soil(number uint64) {
	if p := t.packedOf(number); p != nil {
		p.soilAll()
	}
}

// Bounds of what a leaf that is away keeps in memory, and of the work of one call of Drop.
const (
	mostDelta  = 256
	mostGroups = 4
	dropLooks  = 64
	dropTries  = 8
)

// Drop lets leaves be away for which may reports true, those that were not used for longest first, until it has freed
// enough. It looks at some after those of the last call. may returns whether the leaf is stored as it was when Store
// was called last.
func (t *Table) Drop(enough int64, may func(leaf uint64) bool) {
	looks, tries, freed := dropLooks, dropTries, int64(0)
	done := true
	t.leaves(t.clock, 1<<52-1, func(base uint64, e *atomic.Pointer[leaf]) bool {
		if t.clock = base; looks == 0 || tries == 0 || freed >= enough {
			done = false
			return false
		}
		looks--
		l := e.Load()
		switch {
		case l.packed == nil:
		case l.used.Load():
			l.used.Store(false)
		case may(LeafOf(base)):
			tries--
			was := t.Bytes()
			if l.groups != nil { // that of pages that are in no frame any more
				_ = t.fold(base, e)
				l = e.Load()
			}
			if l != nil && l.packed != nil {
				t.drop(e, l)
			}
			freed += was - t.Bytes()
		}
		return true
	})
	if done {
		t.clock = 0
	}
}

// drop lets a packed leaf be away, unless that gains little.
func (t *Table) drop(e *atomic.Pointer[leaf], l *leaf) {
	if l.groups != nil {
		n := 0
		for i := range l.groups {
			if l.groups[i].Load() != nil {
				n++
			}
		}
		if n > mostGroups {
			return
		}
	}
	var d, under *delta
	for i := 0; l.groups != nil && i < len(l.groups); i++ {
		for k := range grouped {
			if at := i*grouped + k; l.groups[i].Load() != nil {
				under = under.with(uint64(at), l.packed.entries[at].Load(), 0)
			}
		}
	}
	if p := l.packed; p.isDirty() {
		d = &delta{}
		for i := range p.entries {
			if p.dirty[i>>6]>>(i&63)&1 != 0 {
				if len(d.pages) == mostDelta {
					return
				}
				d.pages, d.entries = append(d.pages, uint16(i)), append(d.entries, p.entries[i].Load())
				d.heats = append(d.heats, heat.Page(p.heat(uint64(i))).Short())
			}
		}
		d.pages, d.heats, d.entries = slices.Clone(d.pages), slices.Clone(d.heats), slices.Clone(d.entries)
	}
	next := t.stored
	if d != nil || l.groups != nil {
		next = &leaf{away: true, delta: d, under: under, groups: l.groups}
	}
	if e.CompareAndSwap(l, next) { // or a lane has just made a group
		t.replaced(l, next)
	}
}

// foldAway is fold for a leaf that is away.
func (t *Table) foldAway(base uint64, e *atomic.Pointer[leaf], l *leaf) int64 {
	for i := range l.groups {
		l.groups[i].CompareAndSwap(nil, t.frozen)
	}
	d := l.delta
	var kept *[fan / grouped]atomic.Pointer[group]
	freed := int64(0)
	for i := range l.groups {
		switch g := l.groups[i].Load(); {
		case g == t.frozen:
		case g.leave():
			freed += groupBytes
			for k := range g {
				page, entry := base+uint64(i*grouped+k), t.bare(g[k].Load().was())
				was, _, before := l.under.entry(page)
				is, _, changed := d.entry(page)
				if changed && t.same(is, entry) {
					entry = is
				}
				if changed || !before || !t.same(was, entry) {
					d = d.with(page, entry, g[k].Heat())
				}
			}
		default:
			if kept == nil {
				kept = new([fan / grouped]atomic.Pointer[group])
			}
			kept[i].Store(g)
		}
	}
	if kept == nil {
		freed += slotsBytes
	}
	next := &leaf{away: true, delta: d, under: l.under, groups: kept}
	if kept == nil {
		next.under = nil
	}
	if d == nil && kept == nil {
		next = t.stored
	}
	t.set(e, next)
	t.loose.Add(-freed)
	return freed
}

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
	entries []uint64
}

func (d *delta) bytes() int64 { return 64 + 10*int64(len(d.pages)) }

// entry returns the entry of a page, and whether there is one.
func (d *delta) entry(page uint64) (uint64, bool) {
	if d == nil {
		return 0, false
	}
	in := uint16(page & (fan - 1))
	i := sort.Search(len(d.pages), func(i int) bool { return d.pages[i] >= in })
	if i == len(d.pages) || d.pages[i] != in {
		return 0, false
	}
	return d.entries[i], true
}

// at returns the word and the write history of a page.
func (d *delta) at(page uint64) (Word, uint64) {
	if e, ok := d.entry(page); ok {
		return wordOf(e)
	}
	return awayBit, 0
}

// with returns d with the entry of one more page, or another one.
func (d *delta) with(page uint64, entry uint64) *delta {
	if d == nil {
		d = &delta{}
	}
	in := uint16(page & (fan - 1))
	next := &delta{slices.Clone(d.pages), slices.Clone(d.entries)}
	i, found := slices.BinarySearch(next.pages, in)
	if found {
		next.entries[i] = entry
		return next
	}
	next.pages, next.entries = slices.Insert(next.pages, i, in), slices.Insert(next.entries, i, entry)
	return next
}

func wordOf(entry uint64) (Word, uint64) {
	if entry == 0 {
		return 0, 0
	}
	return At(ftl.PPA(entry&(1<<placeBits-1)) - 1), uint64(heat.Short(entry >> placeBits).Page())
}

func everyPage() *[fan / 64]uint64 {
	var all [fan / 64]uint64
	for i := range all {
		all[i] = ^uint64(0)
	}
	return &all
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

// Change sets the place of a page whose leaf is away, or ftl.NoPPA. It may only be called before the pool is open.
func (t *Table) Change(page uint64, place ftl.PPA) {
	e := t.entry(page)
	entry := uint64(0)
	if place != ftl.NoPPA {
		entry = entryOf(At(place), 0)
	}
	t.set(e, &leaf{away: true, delta: e.Load().delta.with(page, entry)})
}

// Arrive brings a leaf back that is away: places has the places of its pages as they were stored, or ftl.NoPPA.
func (t *Table) Arrive(number uint64, places *[fan]ftl.PPA) {
	e := t.entry(FirstOf(number))
	l := e.Load()
	p := new(packed)
	for i, place := range places {
		if place != ftl.NoPPA {
			p[i].Store(entryOf(At(place), 0))
		}
	}
	next := &leaf{packed: p, groups: l.groups}
	if d := l.delta; d != nil {
		next.dirty = new([fan / 64]uint64)
		for i, in := range d.pages {
			p[in].Store(d.entries[i])
			next.dirty[in>>6] |= 1 << (in & 63)
		}
	}
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
	if l.dirty != nil || l.delta != nil || l.away && l.groups != nil {
		return true
	}
	for i := 0; l.groups != nil && i < len(l.groups); i++ {
		g := l.groups[i].Load()
		for k := 0; g != nil && k < len(g); k++ {
			w, _ := l.at(base + uint64(i*grouped+k))
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

// Store takes down the places of a leaf's pages, to be stored, and counts it as stored. place returns that of a page in
// a frame. It reports false if the leaf is away, or is no longer one to be stored.
func (t *Table) Store(number uint64, places *[fan]ftl.PPA, place func(frame int32) ftl.PPA) bool {
	e := t.entry(FirstOf(number))
	if e == nil {
		return false
	}
	l := e.Load()
	if l == nil || l.packed == nil {
		return false
	}
	for i := range places {
		w, h := t.Peek(FirstOf(number) + uint64(i))
		places[i] = placeOf(w, place)
		// Later changes are compared with the entries as stored.
		entry := uint64(0)
		if places[i] != ftl.NoPPA {
			entry = entryOf(At(places[i]), h)
		}
		l.packed[i].Store(entry)
	}
	if l.dirty != nil {
		t.bytes.Add(-fan / 8)
		l.dirty = nil
	}
	return true
}

// Soil makes a leaf one that was never stored.
func (t *Table) Soil(number uint64) {
	if e := t.entry(FirstOf(number)); e != nil {
		if l := e.Load(); l != nil && l.packed != nil {
			t.set(e, &leaf{packed: l.packed, groups: l.groups, dirty: everyPage()})
		}
	}
}

// Bounds of what a leaf that is away keeps in memory, and of the work of one call of Drop.
const (
	mostDelta  = 256
	mostGroups = 4
	dropLooks  = 64
	dropTries  = 8
)

// Drop lets leaves be away for which may reports true, those that were not used for longest first. It looks at some
// after those of the last call, and returns the memory that it freed. may returns whether the leaf is stored as it was
// when Store was called last.
func (t *Table) Drop(may func(leaf uint64) bool) int64 {
	looks, tries, freed := dropLooks, dropTries, int64(0)
	done := true
	t.leaves(t.clock, 1<<52-1, func(base uint64, e *atomic.Pointer[leaf]) bool {
		if t.clock = base; looks == 0 || tries == 0 {
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
			was := t.bytes.Load()
			t.drop(e, l)
			freed += was - t.bytes.Load()
		}
		return true
	})
	if done {
		t.clock = 0
	}
	return freed
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
				under = under.with(uint64(at), l.packed[at].Load())
			}
		}
	}
	if l.dirty != nil {
		d = &delta{}
		for i := range l.packed {
			if l.dirty[i>>6]>>(i&63)&1 != 0 {
				if len(d.pages) == mostDelta {
					return
				}
				d.pages, d.entries = append(d.pages, uint16(i)), append(d.entries, l.packed[i].Load())
			}
		}
		d.pages, d.entries = slices.Clone(d.pages), slices.Clone(d.entries)
	}
	if d == nil && l.groups == nil {
		t.set(e, t.stored)
		return
	}
	t.set(e, &leaf{away: true, delta: d, under: under, groups: l.groups})
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
				page, entry := base+uint64(i*grouped+k), entryOf(g[k].Load().was(), g[k].Heat())
				was, before := l.under.entry(page)
				if _, changed := d.entry(page); changed || !before || (was^entry)<<(64-placeBits) != 0 {
					d = d.with(page, entry)
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

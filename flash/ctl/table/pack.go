package table

import (
	"sync/atomic"

	"farflash/flash/ctl/heat"
	"farflash/policy/ftl"
)

// packed has the entries of a leaf's pages that are in no group: a third of the memory of slots, or two
// fifths with write histories, for pages without order. A page in a group has an entry too, whose checksum counts if
// the page is still at that place.
type packed struct {
	entries *[fan]atomic.Uint64       // apart, because they are what an allocation of 4 KiB holds
	heats   atomic.Pointer[histories] // nil: there are none
	// pages that changed since the leaf was stored. It is here, because a lane can replace the leaf at any time.
	dirty [fan / 64]uint64
}

func newPacked() *packed { return &packed{entries: new([fan]atomic.Uint64)} }

// histories has a heat.Short for each page.
type histories [fan / 4]atomic.Uint64

// An entry is a page's place plus 1 in the low bits of the table (New), and the checksum of its content in those above,
// as much of it as they hold; 0 if it is not known. An entry of 0 is a page without a place.

// Entry returns the entry of a page at a place, which may be ftl.NoPPA. A checksum of 0 is unknown.
func (t *Table) Entry(place ftl.PPA, sum uint32) uint64 {
	if place == ftl.NoPPA {
		return 0
	}
	return uint64(place) + 1 | uint64(sum)<<t.bits
}

// bare returns the entry of a page with a word, without a checksum.
func (t *Table) bare(w Word) uint64 {
	if w.State() != OnMedium {
		return 0
	}
	return uint64(w.Place()) + 1
}

// wordOf returns the word of a page with an entry.
func (t *Table) wordOf(entry uint64) Word {
	if entry == 0 {
		return 0
	}
	return At(t.place(entry))
}

// place returns the place of an entry, or ftl.NoPPA.
func (t *Table) place(entry uint64) ftl.PPA { return ftl.PPA(entry&(1<<t.bits-1)) - 1 }

// same reports whether two entries have one place.
func (t *Table) same(a, b uint64) bool { return (a^b)<<(64-t.bits) == 0 }

// Sum returns what the table has of the checksum of a page's content, if the page is at a place. It takes no lock. A
// page's entry is never about content that it had at that place before: Note replaces it.
func (t *Table) Sum(page uint64, place ftl.PPA) (sum uint32, known bool) {
	e := t.entry(page)
	if e == nil {
		return 0, false
	}
	l := e.Load()
	if l == nil {
		return 0, false
	}
	entry := uint64(0)
	switch {
	case l.packed != nil:
		entry = l.packed.entries[page&(fan-1)].Load()
	case l.away:
		var ok bool
		if entry, _, ok = l.delta.entry(page); !ok {
			entry, _, _ = l.under.entry(page)
		}
	}
	return uint32(entry >> t.bits), entry>>t.bits != 0 && t.place(entry) == place
}

// Matches reports whether a checksum is the one that Sum has returned.
func (t *Table) Matches(sum, known uint32) bool { return uint64(sum)<<t.bits == uint64(known)<<t.bits }

// Note records that a page has a place now, with the checksum of its content, or 0. It is called whenever a page of a
// leaf in memory gets a place, also if that has been its place before.
func (t *Table) Note(page uint64, place ftl.PPA, sum uint32) {
	e := t.entry(page)
	if e == nil {
		return
	}
	l := e.Load()
	switch {
	case l == nil:
	case l.packed != nil:
		l.packed.entries[page&(fan-1)].Store(t.Entry(place, sum))
		l.packed.soil(page)
	case l.away:
		_, heat := t.at(l, page)
		t.set(e, &leaf{away: true, delta: l.delta.with(page, t.Entry(place, sum), heat), under: l.under,
			groups: l.groups})
	}
}

func (p *packed) soil(page uint64) { p.dirty[page&(fan-1)>>6] |= 1 << (page & 63) }

func (p *packed) isDirty() bool { return p.dirty != [fan / 64]uint64{} }

// soilAll marks all pages as changed.
func (p *packed) soilAll() {
	for i := range p.dirty {
		p.dirty[i] = ^uint64(0)
	}
}

// heat returns the write history of a page.
func (p *packed) heat(page uint64) uint64 {
	h := p.heats.Load()
	if h == nil {
		return 0
	}
	return uint64(heat.Short(h[page&(fan-1)>>2].Load() >> (page & 3 * 16)).Page())
}

// setHeat sets the write history of a page, and returns the memory that it took.
func (p *packed) setHeat(page, history uint64) int64 {
	short, taken := heat.Page(history).Short(), int64(0)
	h := p.heats.Load()
	if h == nil {
		if short == 0 {
			return 0
		}
		h, taken = new(histories), heatBytes
		p.heats.Store(h)
	}
	word, shift := &h[page&(fan-1)>>2], page&3*16
	word.Store(word.Load()&^(0xffff<<shift) | uint64(short)<<shift)
	return taken
}

// pack returns the packed form of a leaf's runs, all of whose pages count as changed.
func (t *Table) pack(l *leaf, base uint64) *packed {
	p := newPacked()
	p.soilAll()
	for k := range uint64(fan) {
		w, heat := t.at(l, base+k)
		p.entries[k].Store(t.bare(w))
		p.setHeat(k, heat)
	}
	return p
}

// The memory that parts of the table take, in bytes.
const (
	slotsBytes  = fan/grouped*8 + 64 // of a leaf with groups, besides them
	groupBytes  = grouped * 24
	heatBytes   = fan * 2
	packedBytes = fan*8 + 16 + fan/8
	nodeBytes   = fan*8 + 16
	leafBytes   = int64(80)
	runBytes    = int64(24)
)

// bytes returns the memory of a leaf without its groups.
func (l *leaf) bytes() int64 {
	if l == nil {
		return 0
	}
	n := leafBytes + int64(cap(l.runs))*runBytes + l.random()
	if l.under != nil {
		n += l.under.bytes()
	}
	return n
}

// random returns the memory of what can be stored of a leaf.
func (l *leaf) random() (n int64) {
	if l.packed != nil {
		if n = packedBytes; l.packed.heats.Load() != nil {
			n += heatBytes
		}
	}
	if l.delta != nil {
		n += l.delta.bytes()
	}
	return n
}

// warmed accounts for histories of a leaf in the table.
func (t *Table) warmed(taken int64) {
	if taken > 0 {
		t.bytes.Add(taken)
		t.random.Add(taken)
	}
}

// Random returns the memory of leaves without order, in bytes.
func (t *Table) Random() int64 { return t.random.Load() }

// Bytes returns the memory of the table, in bytes. A leaf that several entries share counts once.
func (t *Table) Bytes() int64 { return t.bytes.Load() + t.loose.Load() }

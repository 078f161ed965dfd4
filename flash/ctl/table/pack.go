package table

import (
	"sync/atomic"

	"farflash/flash/ctl/heat"
)

// packed has the places of a leaf's pages that are in no group, and their write histories in 16 bits: a third of the
// memory of slots, for pages without order.
type packed [fan]atomic.Uint64

// An entry is the place plus 1 in the low 48 bits, and a heat.Short above. 0 is a page without a place.
const placeBits = 48

func entryOf(w Word, h uint64) uint64 {
	if w.State() != OnMedium {
		return 0
	}
	return uint64(w.Place()) + 1 | uint64(heat.Page(h).Short())<<placeBits
}

// at returns the word and the write history of a page.
func (p *packed) at(page uint64) (Word, uint64) {
	return wordOf(p[page&(fan-1)].Load())
}

// pack returns the packed form of a leaf's runs.
func (l *leaf) pack(base uint64) *packed {
	p := new(packed)
	for k := range p {
		p[k].Store(entryOf(l.at(base + uint64(k))))
	}
	return p
}

// The memory that parts of the table take, in bytes.
const (
	slotsBytes  = fan/grouped*8 + 64 // of a leaf with groups, besides them
	groupBytes  = grouped * 24
	packedBytes = fan * 8
	nodeBytes   = fan*8 + 16
	leafBytes   = int64(80)
	runBytes    = int64(24)
)

// bytes returns the memory of a leaf without its groups.
func (l *leaf) bytes() int64 {
	if l == nil {
		return 0
	}
	n := leafBytes + int64(cap(l.runs))*runBytes
	if l.packed != nil {
		n += packedBytes
	}
	if l.dirty != nil {
		n += fan / 8
	}
	for _, d := range []*delta{l.delta, l.under} {
		if d != nil {
			n += d.bytes()
		}
	}
	return n
}

// random returns the memory of what can be stored of a leaf.
func (l *leaf) random() (n int64) {
	if l.packed != nil {
		n = packedBytes
	}
	if l.delta != nil {
		n += l.delta.bytes()
	}
	return n
}

// Random returns the memory of leaves without order, in bytes.
func (t *Table) Random() int64 { return t.random.Load() }

// Bytes returns the memory of the table, in bytes. A leaf that several entries share counts once.
func (t *Table) Bytes() int64 { return t.bytes.Load() + t.loose.Load() }

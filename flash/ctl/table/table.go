package table

import (
	"iter"
	"sync/atomic"
)

const (
	fanBits = 9
	fan     = 1 << fanBits // of a node, and slots of a leaf
	levels  = 5            // nodes above a leaf: with it 54 bits, of which 52 are used
)

// Slot is a page's word and what is counted of it.
type Slot struct {
	word  atomic.Uint64
	heat  atomic.Uint64 // heat.Page
	reads atomic.Uint32 // gets that did not write
}

// Load is the page's word.
func (s *Slot) Load() Word { return Word(s.word.Load()) }

// Swap changes the word if it is old.
func (s *Slot) Swap(old, next Word) bool { return s.word.CompareAndSwap(uint64(old), uint64(next)) }

// Store changes a word that nobody else changes: before the pool is open, or of a page that is not Resident, under
// the controller's lock.
func (s *Slot) Store(w Word) { s.word.Store(uint64(w)) }

// Heat is what is known of the page's writes.
func (s *Slot) Heat() uint64 { return s.heat.Load() }

// SetHeat notes a write, under the controller's lock.
func (s *Slot) SetHeat(h uint64) { s.heat.Store(h) }

// Follow takes over what is counted of a page that is moved here.
func (s *Slot) Follow(from *Slot) {
	s.heat.Store(from.heat.Load())
	s.reads.Store(from.reads.Load())
	from.heat.Store(0)
	from.reads.Store(0)
}

// CountRead notes a read.
func (s *Slot) CountRead() { s.reads.Add(1) }

// Reads is how often the page was read.
func (s *Slot) Reads() uint32 { return s.reads.Load() }

// node has nodes below it, or, at the lowest level, leaves: one of the two arrays is in use.
type node struct {
	down   *[fan]atomic.Pointer[node]
	leaves *[fan]atomic.Pointer[leaf]
}

type leaf [fan]Slot

// Table holds the slots of pages, by 52-bit number, as far as they were ever used: a radix tree that only grows. Find
// runs beside everything, Make under the controller's lock.
type Table struct {
	root  *node
	count int64 // leaves
}

// New returns an empty table.
func New() *Table { return &Table{root: newNode(levels)} }

// newNode makes a node that is so many levels above leaves.
func newNode(level int) *node {
	if level == 1 {
		return &node{leaves: new([fan]atomic.Pointer[leaf])}
	}
	return &node{down: new([fan]atomic.Pointer[node])}
}

// Find is a page's slot, or nil if it was never used.
func (t *Table) Find(page uint64) *Slot {
	n := t.root
	for level := uint(levels); level > 1; level-- {
		if n = n.down[page>>(level*fanBits)&(fan-1)].Load(); n == nil {
			return nil
		}
	}
	l := n.leaves[page>>fanBits&(fan-1)].Load()
	if l == nil {
		return nil
	}
	return &l[page&(fan-1)]
}

// Make is a page's slot, which is made if it is not there.
func (t *Table) Make(page uint64) *Slot {
	n := t.root
	for level := uint(levels); level > 1; level-- {
		at := &n.down[page>>(level*fanBits)&(fan-1)]
		next := at.Load()
		if next == nil {
			next = newNode(int(level) - 1)
			at.Store(next)
		}
		n = next
	}
	at := &n.leaves[page>>fanBits&(fan-1)]
	l := at.Load()
	if l == nil {
		l = new(leaf)
		t.count++
		at.Store(l)
	}
	return &l[page&(fan-1)]
}

// Used visits the slots of pages from first to last that were made, in order.
func (t *Table) Used(first, last uint64) iter.Seq2[uint64, *Slot] {
	return func(yield func(uint64, *Slot) bool) { t.root.used(levels, 0, first, last, yield) }
}

func (n *node) used(level uint, base, first, last uint64, yield func(uint64, *Slot) bool) bool {
	span := uint64(1) << (level * fanBits) // pages below each entry
	begin, end := uint64(0), min(fan-1, (last-base)/span)
	if first > base {
		begin = (first - base) / span
	}
	for i := begin; i <= end; i++ {
		from := base + i*span
		if level > 1 {
			if down := n.down[i].Load(); down != nil && !down.used(level-1, from, first, last, yield) {
				return false
			}
			continue
		}
		l := n.leaves[i].Load()
		if l == nil {
			continue
		}
		for k := max(first, from) - from; k <= min(last-from, fan-1); k++ {
			if !yield(from+k, &l[k]) {
				return false
			}
		}
	}
	return true
}

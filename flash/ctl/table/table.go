package table

import (
	"iter"
	"sync/atomic"
)

const (
	fanBits = 9
	fan     = 1 << fanBits // of a node, and slots of a leaf
	levels  = 5            // levels of nodes above the leaves: 54 bits with the leaf, of which 52 are used
)

// Slot is a page's word with its counters.
type Slot struct {
	word  atomic.Uint64
	heat  atomic.Uint64 // heat.Page
	reads atomic.Uint32 // gets for reading
}

// Load returns the page's word.
func (s *Slot) Load() Word { return Word(s.word.Load()) }

// Swap replaces the word if it equals old, and reports whether it did.
func (s *Slot) Swap(old, next Word) bool { return s.word.CompareAndSwap(uint64(old), uint64(next)) }

// Store sets a word that cannot change concurrently: before the pool is open, or of a page that is not Resident. After
// opening, the caller holds the controller's lock.
func (s *Slot) Store(w Word) { s.word.Store(uint64(w)) }

// Heat returns the page's write history.
func (s *Slot) Heat() uint64 { return s.heat.Load() }

// SetHeat stores the page's write history. The caller holds the controller's lock.
func (s *Slot) SetHeat(h uint64) { s.heat.Store(h) }

// Follow takes over the counters of the page that moves here.
func (s *Slot) Follow(from *Slot) {
	s.heat.Store(from.heat.Load())
	s.reads.Store(from.reads.Load())
	from.heat.Store(0)
	from.reads.Store(0)
}

// CountRead counts a read.
func (s *Slot) CountRead() { s.reads.Add(1) }

// Reads returns the number of reads of the page.
func (s *Slot) Reads() uint32 { return s.reads.Load() }

// node has child nodes or, at the lowest level, leaves: exactly one of the two arrays is set.
type node struct {
	down   *[fan]atomic.Pointer[node]
	leaves *[fan]atomic.Pointer[leaf]
}

type leaf [fan]Slot

// Table holds the slots of all pages ever used, by 52-bit page number. It is a radix tree that only grows. Find is
// lock-free and safe for concurrent use; Make requires the controller's lock.
type Table struct {
	root  *node
	count int64 // leaves
}

// New returns an empty table.
func New() *Table { return &Table{root: newNode(levels)} }

// newNode returns a node that is level levels above the leaves.
func newNode(level int) *node {
	if level == 1 {
		return &node{leaves: new([fan]atomic.Pointer[leaf])}
	}
	return &node{down: new([fan]atomic.Pointer[node])}
}

// Find returns a page's slot, or nil if it was never made.
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

// Make returns a page's slot, creating it if necessary.
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

// Used iterates over the existing slots of pages first to last, in order.
func (t *Table) Used(first, last uint64) iter.Seq2[uint64, *Slot] {
	return func(yield func(uint64, *Slot) bool) { t.root.used(levels, 0, first, last, yield) }
}

func (n *node) used(level uint, base, first, last uint64, yield func(uint64, *Slot) bool) bool {
	span := uint64(1) << (level * fanBits) // pages per entry
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

package table

import (
	"iter"
	"sync/atomic"
)

const (
	fanBits = 9
	fan     = 1 << fanBits // of a node, and pages of a leaf
	levels  = 5            // levels of nodes above the leaves: 54 bits with the leaf, of which 52 are used

	groupBits = 4
	grouped   = 1 << groupBits // slots of a group
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

// leaf has the words of fan pages: by groups of slots, and where there is no group, by runs or packed. A leaf of one
// run without groups does not change, so several can be one: a long run has one for all of its pages.
type leaf struct {
	runs   []run
	packed *packed      // or nil
	delta  *delta       // of a leaf that is away: what has changed since it was stored; or nil
	under  *delta       // of a leaf that is away: the entries that its groups began with
	shares atomic.Int32 // entries that have it
	away   bool         // all else is only where it was stored
	used   atomic.Bool  // since the last look of Drop
	groups *[fan / grouped]atomic.Pointer[group]
}

// group has the slots of grouped pages. Once there is one for a page, the rest of the leaf no longer counts.
type group [grouped]Slot

// Table holds the words of all pages ever used, by 52-bit page number. It is a radix tree whose nodes only grow. Peek,
// Slot and Find are lock-free and safe for concurrent use; all other methods require the controller's lock.
type Table struct {
	root   *node
	bits   uint         // of a place in an entry
	frozen *group       // stands for a group in a leaf that is being folded
	loose  atomic.Int64 // bytes of slots
	bytes  atomic.Int64 // of all else
	random atomic.Int64 // of these, of what can be stored
	stored *leaf        // of all pages of a leaf that is away and has not changed
	hand   uint64       // the page where Fold resumes
	clock  uint64       // the page where Drop resumes
	gained int64        // bytes, by Fold since it began at the first page
	rest   int64        // bytes up to which Fold does not look again
}

// New returns an empty table for places that take bits bits with 1 added, 32 to 48.
func New(bits uint) *Table {
	return &Table{root: newNode(levels), bits: bits, frozen: new(group), stored: &leaf{away: true}}
}

// newNode returns a node that is level levels above the leaves.
func newNode(level int) *node {
	if level == 1 {
		return &node{leaves: new([fan]atomic.Pointer[leaf])}
	}
	return &node{down: new([fan]atomic.Pointer[node])}
}

// entry returns the pointer to a page's leaf, or nil.
func (t *Table) entry(page uint64) *atomic.Pointer[leaf] {
	n := t.root
	for level := uint(levels); level > 1; level-- {
		if n = n.down[page>>(level*fanBits)&(fan-1)].Load(); n == nil {
			return nil
		}
	}
	return &n.leaves[page>>fanBits&(fan-1)]
}

// made is entry, and makes the nodes above it.
func (t *Table) made(page uint64) *atomic.Pointer[leaf] {
	n := t.root
	for level := uint(levels); level > 1; level-- {
		at := &n.down[page>>(level*fanBits)&(fan-1)]
		next := at.Load()
		if next == nil {
			next = newNode(int(level) - 1)
			at.Store(next)
			t.bytes.Add(nodeBytes)
		}
		n = next
	}
	return &n.leaves[page>>fanBits&(fan-1)]
}

// group returns the pointer to a page's group in a leaf that has groups.
func (l *leaf) group(page uint64) *atomic.Pointer[group] {
	return &l.groups[page>>groupBits&(fan/grouped-1)]
}

// Peek returns a page's word and its write history.
func (t *Table) Peek(page uint64) (Word, uint64) {
	e := t.entry(page)
	if e == nil {
		return 0, 0
	}
	l := e.Load()
	if l == nil {
		return 0, 0
	}
	if l.groups != nil {
		if g := l.group(page).Load(); g != nil && g != t.frozen {
			s := &g[page&(grouped-1)]
			heat := s.Heat()
			return s.Load().was(), heat
		}
	}
	return t.at(l, page)
}

// Slot returns a page's slot, or nil if it has none: then the page is not in a frame.
func (t *Table) Slot(page uint64) *Slot {
	e := t.entry(page)
	if e == nil {
		return nil
	}
	l := e.Load()
	if l == nil || l.groups == nil {
		return nil
	}
	g := l.group(page).Load()
	if g == nil || g == t.frozen {
		return nil
	}
	return &g[page&(grouped-1)]
}

// Find returns a page's slot, and makes it if the page has a place. It returns nil if the page was never used or is
// Away, or at worst, without the controller's lock, if its slot is just being folded; a word of a slot that was is
// Gone.
func (t *Table) Find(page uint64) *Slot {
	e := t.entry(page)
	if e == nil {
		return nil
	}
	return t.slot(e, page)
}

// Make returns a page's slot, creating it if necessary. The page must not be Away.
func (t *Table) Make(page uint64) *Slot {
	e := t.made(page)
	if e.Load() == nil {
		t.set(e, &leaf{})
	}
	return t.slot(e, page)
}

// set replaces the leaf of an entry.
func (t *Table) set(e *atomic.Pointer[leaf], l *leaf) {
	was := e.Load()
	e.Store(l)
	t.replaced(was, l)
}

// replaced accounts for the memory of a leaf that an entry had, and of the one that it has now.
func (t *Table) replaced(was, is *leaf) {
	if is != nil && is.shares.Add(1) == 1 {
		t.bytes.Add(is.bytes())
		t.random.Add(is.random())
	}
	if was != nil && was.shares.Add(-1) == 0 {
		t.bytes.Add(-was.bytes())
		t.random.Add(-was.random())
	}
}

// slot returns a page's slot by the pointer to its leaf. It makes the slot from what the leaf has of the page.
func (t *Table) slot(e *atomic.Pointer[leaf], page uint64) *Slot {
	for {
		l := e.Load()
		if l == nil {
			return nil
		}
		if !l.used.Load() {
			l.used.Store(true)
		}
		if l.away && (l.groups == nil || l.group(page).Load() == nil) {
			return nil
		}
		if l.groups == nil {
			own := &leaf{runs: l.runs, packed: l.packed, groups: new([fan / grouped]atomic.Pointer[group])}
			if !e.CompareAndSwap(l, own) {
				continue
			}
			t.replaced(l, own)
			t.loose.Add(slotsBytes)
			l = own
		}
		at := l.group(page)
		g := at.Load()
		if g == nil {
			g = new(group)
			for i := range g {
				w, heat := t.at(l, page&^(grouped-1)+uint64(i))
				g[i].word.Store(uint64(w))
				g[i].heat.Store(heat)
			}
			if !at.CompareAndSwap(nil, g) {
				continue
			}
			t.loose.Add(groupBytes)
		}
		if g == t.frozen {
			return nil
		}
		return &g[page&(grouped-1)]
	}
}

// Used iterates over the slots of pages first to last that were used, in order. Those of pages in runs are made, and
// folded again. Those that are Away are left out.
func (t *Table) Used(first, last uint64) iter.Seq2[uint64, *Slot] {
	return func(yield func(uint64, *Slot) bool) {
		t.leaves(first, last, func(base uint64, e *atomic.Pointer[leaf]) bool {
			was := t.loose.Load()
			for page := max(base, first); page <= min(base+fan-1, last); page++ {
				l := e.Load()
				if l == nil {
					break
				}
				if l.groups == nil || l.group(page).Load() == nil {
					if w, _ := t.at(l, page); w == 0 || l.away {
						continue
					}
				}
				if !yield(page, t.slot(e, page)) {
					return false
				}
			}
			if t.loose.Load() > was {
				_ = t.fold(base, e)
			}
			return true
		})
	}
}

// Each is Words with the pages that are Away.
func (t *Table) Each(first, last uint64) iter.Seq2[uint64, Word] {
	return func(yield func(uint64, Word) bool) {
		t.leaves(first, last, func(base uint64, _ *atomic.Pointer[leaf]) bool {
			for page := max(base, first); page <= min(base+fan-1, last); page++ {
				if w, _ := t.Peek(page); w != 0 && !yield(page, w) {
					return false
				}
			}
			return true
		})
	}
}

// Words iterates over the words of pages first to last that are not zero, in order, and makes no slots. Those
// that are Away are left out.
func (t *Table) Words(first, last uint64) iter.Seq2[uint64, Word] {
	return func(yield func(uint64, Word) bool) {
		for page, w := range t.Each(first, last) {
			if !w.Away() && !yield(page, w) {
				return
			}
		}
	}
}

// leaves calls fn for each leaf of the pages first to last, with its first page, until it returns false.
func (t *Table) leaves(first, last uint64, fn func(base uint64, e *atomic.Pointer[leaf]) bool) {
	t.root.leavesOf(levels, 0, first, last, fn)
}

func (n *node) leavesOf(level uint, base, first, last uint64,
	fn func(base uint64, e *atomic.Pointer[leaf]) bool) bool {
	span := uint64(1) << (level * fanBits) // pages per entry
	begin, end := uint64(0), min(fan-1, (last-base)/span)
	if first > base {
		begin = (first - base) / span
	}
	for i := begin; i <= end; i++ {
		from := base + i*span
		if level > 1 {
			if down := n.down[i].Load(); down != nil && !down.leavesOf(level-1, from, first, last, fn) {
				return false
			}
		} else if e := &n.leaves[i]; e.Load() != nil && !fn(from, e) {
			return false
		}
	}
	return true
}

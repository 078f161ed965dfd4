// Package buddy is a buddy allocator over a space of 2^52 pages. It hands out aligned blocks of 2^k pages, in which
// ContigFS places its files.
//
// Its main type is Space: Alloc, Free, Reserve of a given block, and Extend and Shrink in place. It is a plain state
// machine whose results depend only on the sequence of calls. Of the blocks that fit it allocates the lowest, so that
// addresses, and the memory for mapping them, stay close together.
//
// It leaves out the use of a block and its durability: the free space is what no file occupies. After Knuth, The Art of
// Computer Programming, volume 1, section 2.5.
package buddy

import (
	"container/heap"
	"fmt"
	"slices"
)

// orders is the number of orders. A block of order k has 2^k pages; the largest is half of the space.
const orders = 52

// Space tracks the free blocks.
type Space struct {
	free [orders]list
}

// list is the free blocks of one order: a set, and a heap that can also contain blocks no longer free.
type list struct {
	set  map[uint64]bool
	heap lowest
}

type lowest []uint64

func (h lowest) Len() int           { return len(h) }
func (h lowest) Less(i, j int) bool { return h[i] < h[j] }
func (h lowest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *lowest) Push(x any) { *h = append(*h, x.(uint64)) }

// Pop implements heap.Interface.
func (h *lowest) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

func (l *list) add(base uint64) {
	if l.set == nil {
		l.set = map[uint64]bool{}
	}
	l.set[base] = true
	heap.Push(&l.heap, base)
	if len(l.heap) > 2*len(l.set)+64 { // drop stale entries, of blocks removed from the set but not the heap
		l.heap = l.heap[:0]
		for b := range l.set {
			l.heap = append(l.heap, b)
		}
		slices.Sort(l.heap) // a sorted slice is a heap, and deterministic
	}
}

func (l *list) has(base uint64) bool { return l.set[base] }
func (l *list) remove(base uint64)   { delete(l.set, base) }

// takeLowest removes and returns the lowest free block.
func (l *list) takeLowest() uint64 {
	for {
		if b := heap.Pop(&l.heap).(uint64); l.set[b] {
			delete(l.set, b)
			return b
		}
	}
}

// New returns a space that is free except for the pages below 2^low.
func New(low int) *Space {
	s := &Space{}
	for k := low; k < orders; k++ {
		s.free[k].add(1 << k)
	}
	return s
}

// Order returns the order of the smallest block with at least pages pages. pages is at least 1.
func Order(pages uint64) int {
	k := 0
	for uint64(1)<<k < pages {
		k++
	}
	return k
}

// Alloc allocates a block of the given order.
func (s *Space) Alloc(order int) (base uint64, ok bool) {
	k := order
	for ; k < orders && len(s.free[k].set) == 0; k++ {
	}
	if k >= orders {
		return 0, false
	}
	base = s.free[k].takeLowest()
	for ; k > order; k-- {
		s.free[k-1].add(base + 1<<(k-1))
	}
	return base, true
}

// Free frees a block and merges it with its free buddies.
func (s *Space) Free(base uint64, order int) {
	for ; order < orders-1; order++ {
		buddy := base ^ 1<<order
		if !s.free[order].has(buddy) {
			break
		}
		s.free[order].remove(buddy)
		base &^= 1 << order
	}
	s.free[order].add(base)
}

// Reserve allocates a given block. It reports false if part of it is not free.
func (s *Space) Reserve(base uint64, order int) bool {
	if order < 0 || order >= orders || base&(1<<order-1) != 0 || base >= 1<<orders {
		return false
	}
	k := order
	for ; k < orders && !s.free[k].has(base&^(1<<k-1)); k++ {
	}
	if k == orders {
		return false
	}
	s.free[k].remove(base &^ (1<<k - 1))
	for ; k > order; k-- {
		s.free[k-1].add(base&^(1<<(k-1)-1) ^ 1<<(k-1))
	}
	return true
}

// Extend doubles a block in place. It reports false if the block's buddy is not free, or the block is the upper half of
// a larger one.
func (s *Space) Extend(base uint64, order int) bool {
	if order >= orders-1 || base&(1<<order) != 0 || !s.free[order].has(base+1<<order) {
		return false
	}
	s.free[order].remove(base + 1<<order)
	return true
}

// Shrink frees the part of a block beyond its first 2^to pages.
func (s *Space) Shrink(base uint64, order, to int) {
	for ; order > to; order-- {
		s.Free(base+1<<(order-1), order-1)
	}
}

// Pages returns the number of free pages.
func (s *Space) Pages() uint64 {
	n := uint64(0)
	for k := range s.free {
		n += uint64(len(s.free[k].set)) << k
	}
	return n
}

// Check reports every inconsistency of the lists: blocks that overlap, are misaligned or should have been merged with
// their buddy.
func (s *Space) Check() (problems []error) {
	type block struct {
		base  uint64
		order int
	}
	var all []block
	for k := range s.free {
		for b := range s.free[k].set {
			all = append(all, block{b, k})
		}
	}
	slices.SortFunc(all, func(a, b block) int {
		if a.base != b.base {
			return int(int64(a.base - b.base))
		}
		return a.order - b.order
	})
	for i, b := range all {
		if b.base&(1<<b.order-1) != 0 || b.base+1<<b.order > 1<<orders {
			problems = append(problems, fmt.Errorf("free block of 2^%d pages at %d is misaligned or out of range", b.order, b.base))
		}
		if s.free[b.order].has(b.base^1<<b.order) && b.base&(1<<b.order) == 0 {
			problems = append(problems,
				fmt.Errorf("free block of 2^%d pages at %d is not merged with its buddy", b.order, b.base))
		}
		if i > 0 && all[i-1].base+1<<all[i-1].order > b.base {
			problems = append(problems, fmt.Errorf("free blocks at %d and %d overlap", all[i-1].base, b.base))
		}
	}
	return problems
}

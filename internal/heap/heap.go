// Package heap is a binary heap of values, by type and without boxing: what a priority queue is made of where package
// sim's queue of events, which knows time, is not what is wanted.
//
// Its type is Heap; the zero one is empty. Who needs to know where an element is, so that it can be moved or taken
// out, sets Placed. It allocates only as it grows.
//
// What it leaves out: stability (a Before that has no ties decides) and heaps of more than two children a node, which
// benchmarks of those who use it did not favour.
package heap

// Item is what a heap holds, by its pointer: it knows whether it comes before another.
type Item[T any] interface {
	*T
	Before(other *T) bool
}

// Heap has the first of its elements at hand.
type Heap[T any, P Item[T]] struct {
	items []T
	// Placed is told where an element is whenever it has been put or moved.
	Placed func(x *T, at int)
}

// Len is how many elements there are.
func (h *Heap[T, P]) Len() int { return len(h.items) }

// First is the first element. There is one. What orders it may be changed only with Fix after that.
func (h *Heap[T, P]) First() *T { return &h.items[0] }

// At is the element at a place, from 0 to Len-1, in no order but that the first is at 0. The same holds for changes.
func (h *Heap[T, P]) At(i int) *T { return &h.items[i] }

// Push adds an element.
func (h *Heap[T, P]) Push(x T) {
	h.items = append(h.items, x)
	h.up(len(h.items) - 1)
}

// Pop takes the first element out. There is one.
func (h *Heap[T, P]) Pop() T {
	x := h.items[0]
	h.Remove(0)
	return x
}

// Remove takes the element at a place out.
func (h *Heap[T, P]) Remove(i int) {
	last := len(h.items) - 1
	x := h.items[last]
	var none T
	h.items[last] = none // what it refers to is not kept
	h.items = h.items[:last]
	if i < last {
		h.items[i] = x
		h.Fix(i)
	}
}

// Clear takes all elements out.
func (h *Heap[T, P]) Clear() {
	clear(h.items)
	h.items = h.items[:0]
}

// Fix puts the element at a place where it belongs since it changed.
func (h *Heap[T, P]) Fix(i int) { h.down(h.up(i)) }

// up and down swap in place: an element in a variable of its own would be on Go's heap, for a method of a type
// parameter is called by a table.
func (h *Heap[T, P]) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if !P(&h.items[i]).Before(&h.items[parent]) {
			break
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		h.placed(i)
		i = parent
	}
	h.placed(i)
	return i
}

func (h *Heap[T, P]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if child+1 < len(h.items) && P(&h.items[child+1]).Before(&h.items[child]) {
			child++
		}
		if !P(&h.items[child]).Before(&h.items[i]) {
			break
		}
		h.items[i], h.items[child] = h.items[child], h.items[i]
		h.placed(i)
		i = child
	}
	h.placed(i)
}

func (h *Heap[T, P]) placed(i int) {
	if h.Placed != nil {
		h.Placed(&h.items[i], i)
	}
}

// Package heap is a binary heap of values, generic and without boxing, for priority queues other than package sim's
// event queue, which is ordered by time.
//
// Its type is Heap; its zero value is empty. A caller that needs to know an element's position, in order to move or
// remove it, sets Placed. The heap allocates only as it grows.
//
// It leaves out stability (a Before without ties gives a total order) and heaps with more than two children per node,
// which were not faster in benchmarks of the callers.
package heap

// Item is the constraint on a heap's elements, through their pointers: an element can report whether it precedes
// another.
type Item[T any] interface {
	*T
	Before(other *T) bool
}

// Heap gives access to the first of its elements.
type Heap[T any, P Item[T]] struct {
	items []T
	// Placed, if set, is called with an element's position whenever the element is placed or moved.
	Placed func(x *T, at int)
}

// Len returns the number of elements.
func (h *Heap[T, P]) Len() int { return len(h.items) }

// First returns the first element. The heap must not be empty. A caller that changes the element's order must then call
// Fix.
func (h *Heap[T, P]) First() *T { return &h.items[0] }

// At returns the element at a position from 0 to Len-1. Positions have no order, except that the first element is at 0.
// A caller that changes the element's order must then call Fix.
func (h *Heap[T, P]) At(i int) *T { return &h.items[i] }

// Push adds an element.
func (h *Heap[T, P]) Push(x T) {
	h.items = append(h.items, x)
	h.up(len(h.items) - 1)
}

// Pop removes the first element. The heap must not be empty.
func (h *Heap[T, P]) Pop() T {
	x := h.items[0]
	h.Remove(0)
	return x
}

// Remove removes the element at a position.
func (h *Heap[T, P]) Remove(i int) {
	last := len(h.items) - 1
	x := h.items[last]
	var none T
	h.items[last] = none // drop its references
	h.items = h.items[:last]
	if i < last {
		h.items[i] = x
		h.Fix(i)
	}
}

// Clear removes all elements.
func (h *Heap[T, P]) Clear() {
	clear(h.items)
	h.items = h.items[:0]
}

// Fix restores the order after the element at a position has changed.
func (h *Heap[T, P]) Fix(i int) { h.down(h.up(i)) }

// up and down swap in place: a local copy of an element would escape to Go's heap, because a method of a type parameter
// is called through a dictionary.
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

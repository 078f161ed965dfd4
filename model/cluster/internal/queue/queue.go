// Package queue has a first-in first-out queue for hot paths of cluster models: Queue, which reuses its space, so that
// one that has reached its maximum length does not allocate. It leaves out priorities, and releasing space.
package queue

// Queue is a first-in first-out queue. The zero value is empty. The length is stored separately from the slice, so that
// Empty reads a single word.
type Queue[T any] struct {
	waiting, head int32
	items         []T
}

// Empty reports whether the queue is empty.
func (q *Queue[T]) Empty() bool { return q.waiting == 0 }

// Len returns the number of elements.
func (q *Queue[T]) Len() int { return int(q.waiting) }

// All returns the elements in order. It is valid until the queue changes.
func (q *Queue[T]) All() []T { return q.items[q.head:] }

// Push appends an element. If more than half of a full slice has been popped, the rest moves down, so that a queue that
// is never empty does not grow forever.
func (q *Queue[T]) Push(x T) {
	if len(q.items) == cap(q.items) && int(q.head) > len(q.items)/2 {
		q.items, q.head = q.items[:copy(q.items, q.items[q.head:])], 0
	}
	q.items = append(q.items, x)
	q.waiting++
}

// Remove removes element k of All.
func (q *Queue[T]) Remove(k int) {
	if k == 0 {
		q.Pop()
		return
	}
	k += int(q.head)
	q.items = append(q.items[:k], q.items[k+1:]...)
	q.waiting--
}

// Pop removes and returns the first element. The queue must not be empty.
func (q *Queue[T]) Pop() T {
	x := q.items[q.head]
	q.head++
	if q.waiting--; q.waiting == 0 {
		q.items, q.head = q.items[:0], 0
	}
	return x
}

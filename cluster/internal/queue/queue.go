// Package queue has first-in first-out queues for hot paths of cluster models: Queue, whose room is used again, so that one which has
// reached its greatest length allocates nothing. It leaves out priorities, and giving room back.
package queue

// Queue is a first-in first-out queue. The zero one is empty.
type Queue[T any] struct {
	items []T
	head  int
}

// Empty reports whether nothing waits.
func (q *Queue[T]) Empty() bool { return q.head == len(q.items) }

// Len is how many wait.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// All are those that wait, the next first, until the queue changes.
func (q *Queue[T]) All() []T { return q.items[q.head:] }

// Push adds one at the end. Where half of a full list has gone, the rest moves down: a queue that is never empty does not grow for ever.
func (q *Queue[T]) Push(x T) {
	if len(q.items) == cap(q.items) && q.head > len(q.items)/2 {
		q.items, q.head = q.items[:copy(q.items, q.items[q.head:])], 0
	}
	q.items = append(q.items, x)
}

// Remove removes number k of those that wait.
func (q *Queue[T]) Remove(k int) {
	if k == 0 {
		q.Pop()
		return
	}
	q.items = append(q.items[:q.head+k], q.items[q.head+k+1:]...)
}

// Pop takes the next one; there must be one.
func (q *Queue[T]) Pop() T {
	x := q.items[q.head]
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return x
}

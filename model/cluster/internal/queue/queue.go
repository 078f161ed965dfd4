// Package queue has first-in first-out queues for hot paths of cluster models: Queue, whose room is used again, so
// that one which has reached its greatest length allocates nothing. It leaves out priorities, and giving room back.
package queue

// Queue is a first-in first-out queue. The zero one is empty. How many wait is beside the list and not in it, so that
// who asks whether any do reads one word.
type Queue[T any] struct {
	waiting, head int32
	items         []T
}

// Empty reports whether nothing waits.
func (q *Queue[T]) Empty() bool { return q.waiting == 0 }

// Len is how many wait.
func (q *Queue[T]) Len() int { return int(q.waiting) }

// All are those that wait, the next first, until the queue changes.
func (q *Queue[T]) All() []T { return q.items[q.head:] }

// Push adds one at the end. Where half of a full list has gone, the rest moves down: a queue that is never empty does
// not grow for ever.
func (q *Queue[T]) Push(x T) {
	if len(q.items) == cap(q.items) && int(q.head) > len(q.items)/2 {
		q.items, q.head = q.items[:copy(q.items, q.items[q.head:])], 0
	}
	q.items = append(q.items, x)
	q.waiting++
}

// Remove removes number k of those that wait.
func (q *Queue[T]) Remove(k int) {
	if k == 0 {
		q.Pop()
		return
	}
	k += int(q.head)
	q.items = append(q.items[:k], q.items[k+1:]...)
	q.waiting--
}

// Pop takes the next one; there must be one.
func (q *Queue[T]) Pop() T {
	x := q.items[q.head]
	q.head++
	if q.waiting--; q.waiting == 0 {
		q.items, q.head = q.items[:0], 0
	}
	return x
}

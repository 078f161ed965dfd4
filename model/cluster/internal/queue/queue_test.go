package queue

import "testing"

// TestQueue verifies that a queue that is never empty keeps its order and does not grow with the number of elements
// that have passed through it.
func TestQueue(t *testing.T) {
	var q Queue[int32]
	next := int32(0)
	for i := range int32(100_000) {
		q.Push(i)
		if i < 10 {
			continue
		}
		if got := q.Pop(); got != next {
			t.Fatalf("%d came out, not %d", got, next)
		}
		next++
	}
	if q.Len() != 10 || q.Empty() || cap(q.items) > 64 {
		t.Errorf("%d of 10 are left, in room for %d", q.Len(), cap(q.items))
	}
	for i, x := range q.All() {
		if x != next+int32(i) {
			t.Errorf("number %d is %d", i, x)
		}
	}
}

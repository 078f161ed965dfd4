package cluster

import "testing"

// TestRing: a queue that is never empty keeps its order and does not grow with what has gone through it.
func TestRing(t *testing.T) {
	var r ring
	next := int32(0)
	for i := range int32(100_000) {
		r.push(i)
		if i < 10 {
			continue
		}
		if got := r.pop(); got != next {
			t.Fatalf("%d came out, not %d", got, next)
		}
		next++
	}
	if r.len() != 10 || cap(r.items) > 64 {
		t.Errorf("%d of 10 are left, in room for %d", r.len(), cap(r.items))
	}
}

package turns

import (
	"slices"
	"testing"
)

// TestRound verifies that numbers are served in increasing order after the last one served, and from the least one on
// again.
func TestRound(t *testing.T) {
	var r Round
	for _, n := range []uint32{7, 3, 100} {
		r.Add(n)
	}
	got := []uint32{r.Take(), r.Take()}
	r.Add(4)
	r.Add(8)
	r.Remove(8)
	for r.N > 0 {
		got = append(got, r.Take())
	}
	if want := []uint32{3, 7, 100, 4}; !slices.Equal(got, want) {
		t.Errorf("served %v, not %v", got, want)
	}
}

// TestPaced verifies that the earlier queue pair is first, and of two at the same time the lower number.
func TestPaced(t *testing.T) {
	a, b, c := Paced{1, 5}, Paced{2, 3}, Paced{2, 4}
	if !a.Before(&b) || b.Before(&a) || !b.Before(&c) || c.Before(&b) {
		t.Error("the order is wrong")
	}
}

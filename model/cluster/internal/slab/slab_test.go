package slab

import "testing"

// TestSlab verifies that slots in use are distinct, and that the slot freed last is reused first.
func TestSlab(t *testing.T) {
	var s Slab[string]
	a, b := s.Take(), s.Take()
	s.Items[a], s.Items[b] = "a", "b"
	if a == b || s.Used() != 2 {
		t.Fatalf("places %d and %d, %d used", a, b, s.Used())
	}
	s.Give(a)
	s.Give(b)
	if c := s.Take(); c != b || s.Items[c] != "b" || s.Used() != 1 {
		t.Errorf("place %d with %q, %d used", c, s.Items[c], s.Used())
	}
	if c := s.Take(); c != a || s.Take() == c {
		t.Errorf("place %d, not %d", c, a)
	}
}

// Package slab has numbered slots that are reused, for values that cluster models create and drop millions of times:
// Slab. It leaves out detection of double frees.
package slab

// Slab is a set of slots for values of a type. The zero value has none. Pointers into Items are valid until the next
// Take.
type Slab[T any] struct {
	Items []T
	free  []int32
}

// Take returns the number of a free slot, the most recently freed one. The slot still has its old value.
func (s *Slab[T]) Take() int32 {
	if k := len(s.free) - 1; k >= 0 {
		i := s.free[k]
		s.free = s.free[:k]
		return i
	}
	var zero T
	s.Items = append(s.Items, zero)
	return int32(len(s.Items) - 1)
}

// Give frees a slot.
func (s *Slab[T]) Give(i int32) { s.free = append(s.free, i) }

// Used returns the number of slots in use.
func (s *Slab[T]) Used() int { return len(s.Items) - len(s.free) }

// Package slab has numbered places that are used again, for what cluster models make and forget millions of times:
// Slab. It leaves out checks that a place is not given back twice.
package slab

// Slab is places for values of a type. The zero one has none. Pointers into Items hold until the next Take.
type Slab[T any] struct {
	Items []T
	free  []int32
}

// Take returns the number of a place that nobody uses, the one that was given back last. It has what was left there.
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

// Give gives a place back.
func (s *Slab[T]) Give(i int32) { s.free = append(s.free, i) }

// Used is how many places are taken.
func (s *Slab[T]) Used() int { return len(s.Items) - len(s.free) }

// Package slab stores many values of a type contiguously and names them by number, for models whose requests, commands
// and transactions are allocated and freed by the million.
//
// Its one type is Slab. Numbers start at 1, so that 0 can mean none, and fit in 32 bits, half a pointer. The number
// freed last is the next to be allocated, while its value is still in the processor's cache. Memory is never returned
// to the runtime.
//
// It leaves out detection of uses after a free, and concurrent use.
package slab

import "slices"

// Slab is a growing array of values. Its zero value is empty. A pointer from At is valid until the next Take.
type Slab[T any] struct {
	all   []T
	spare []int32 // free numbers; the last is the next to be allocated
}

// Take allocates a number. Its value is zero if the number is new, and otherwise as it was when it was freed.
func (s *Slab[T]) Take() int32 {
	if n := len(s.spare) - 1; n >= 0 {
		i := s.spare[n]
		s.spare = s.spare[:n]
		return i
	}
	return s.grow()
}

// grow adds a value. It is a separate function so that Take can be inlined.
func (s *Slab[T]) grow() int32 {
	var zero T
	if len(s.all) == 0 {
		s.all = append(make([]T, 0, 64), zero) // number 0 is never allocated
	}
	s.all = append(s.all, zero)
	if cap(s.spare) < len(s.all) { // so that Give never has to allocate
		s.spare = slices.Grow(s.spare, cap(s.all)-len(s.spare))
	}
	return int32(len(s.all) - 1)
}

// Bound returns a number above all that were ever allocated.
func (s *Slab[T]) Bound() int { return len(s.all) }

// At returns the value of a number.
func (s *Slab[T]) At(i int32) *T { return &s.all[i] }

// Give frees a number. The caller must not use it afterwards.
func (s *Slab[T]) Give(i int32) {
	n := len(s.spare)
	s.spare = s.spare[:n+1]
	s.spare[n] = i
}

// Len returns the number of values in use.
func (s *Slab[T]) Len() int { return max(0, len(s.all)-1) - len(s.spare) }

// Each visits the values in use, in order of their numbers. It allocates, and scans the whole slab.
func (s *Slab[T]) Each(visit func(i int32, v *T)) {
	given := make([]bool, len(s.all))
	for _, i := range s.spare {
		given[i] = true
	}
	for i := 1; i < len(s.all); i++ {
		if !given[i] {
			visit(int32(i), &s.all[i])
		}
	}
}

// Package slab keeps many values of a type side by side and names them by number, for models whose requests, commands
// and transactions come and go by the million.
//
// Its one type is Slab. Numbers begin at 1, so that 0 can mean none, and fit in 32 bits, half a pointer; a number
// that was given back is the next to be taken, while what it names is still in the processor's cache. Nothing is ever
// freed.
//
// What it leaves out: finding uses after a value was given back, and use from several goroutines.
package slab

import "slices"

// Slab is a growing array of values. The zero one is empty. A pointer from At holds until the next Take.
type Slab[T any] struct {
	all   []T
	spare []int32 // numbers that were given back
}

// Take returns the number of a value that nobody has. It is as it was when it was given back; a new one is zero.
func (s *Slab[T]) Take() int32 {
	if n := len(s.spare) - 1; n >= 0 {
		i := s.spare[n]
		s.spare = s.spare[:n]
		return i
	}
	return s.grow()
}

// grow adds a value. It is apart so that Take can be inlined.
func (s *Slab[T]) grow() int32 {
	var zero T
	if len(s.all) == 0 {
		s.all = append(make([]T, 0, 64), zero) // number 0 is nobody's
	}
	s.all = append(s.all, zero)
	if cap(s.spare) < len(s.all) { // so that giving back never has to make room
		s.spare = slices.Grow(s.spare, cap(s.all)-len(s.spare))
	}
	return int32(len(s.all) - 1)
}

// At is the value of a number.
func (s *Slab[T]) At(i int32) *T { return &s.all[i] }

// Give gives a number back. Nobody may use it any more.
func (s *Slab[T]) Give(i int32) {
	n := len(s.spare)
	s.spare = s.spare[:n+1]
	s.spare[n] = i
}

// Len is how many numbers are taken.
func (s *Slab[T]) Len() int { return max(0, len(s.all)-1) - len(s.spare) }

// Each visits what is taken, in order of numbers. It takes time and memory for a walk over everything.
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

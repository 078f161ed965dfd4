// Package interleave merges sources of timed items, such as block requests and flows, into one source in order of time.
//
// [Merge] is its only function. It does not sort within a source: each source must already be ordered.
package interleave

import (
	"io"

	"farflash/numeric/units"
)

// Source yields items in order of time. Next fills in the caller's item and returns nil, or returns an error, io.EOF
// at the end, and leaves it undefined; every further call then returns the same error.
type Source[T any] interface {
	Next(*T) error
}

// merged interleaves sources by time.
type merged[T any] struct {
	time  func(*T) units.Duration
	heads []head[T] // binary heap by (time, index)
	begun bool
	err   error
}

type head[T any] struct {
	item  T
	src   Source[T]
	index int
}

// Merge returns a Source that interleaves the given ones by the times of their items. Items with equal times are
// ordered by source. The times of all sources count from a common start.
func Merge[T any, S Source[T]](time func(*T) units.Duration, sources ...S) Source[T] {
	m := &merged[T]{time: time, heads: make([]head[T], 0, len(sources))}
	for i, s := range sources {
		m.heads = append(m.heads, head[T]{src: s, index: i})
	}
	return m
}

func (m *merged[T]) Next(x *T) error {
	if !m.begun {
		m.begin()
	}
	if m.err != nil {
		return m.err
	}
	if len(m.heads) == 0 {
		return io.EOF
	}
	top := &m.heads[0]
	*x = top.item
	m.refill(0)
	return nil
}

// begin reads the first item of every source and builds the heap.
func (m *merged[T]) begin() {
	m.begun = true
	live := m.heads[:0]
	for _, h := range m.heads {
		switch err := h.src.Next(&h.item); {
		case err == io.EOF:
		case err != nil:
			m.err = err
			return
		default:
			live = append(live, h)
		}
	}
	m.heads = live
	for i := len(live)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
}

// refill replaces the item at heap position i with its source's next one. An error is kept for the following call,
// because the item just returned is valid.
func (m *merged[T]) refill(i int) {
	h := &m.heads[i]
	if err := h.src.Next(&h.item); err != nil {
		if err != io.EOF {
			m.err = err
			return
		}
		last := len(m.heads) - 1
		m.heads[i] = m.heads[last]
		m.heads = m.heads[:last]
	}
	m.down(i)
}

func (m *merged[T]) less(a, b int) bool {
	x, y := &m.heads[a], &m.heads[b]
	if s, t := m.time(&x.item), m.time(&y.item); s != t {
		return s < t
	}
	return x.index < y.index
}

func (m *merged[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(m.heads) {
			return
		}
		if child+1 < len(m.heads) && m.less(child+1, child) {
			child++
		}
		if !m.less(child, i) {
			return
		}
		m.heads[i], m.heads[child] = m.heads[child], m.heads[i]
		i = child
	}
}

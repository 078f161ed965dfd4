package flows

import (
	"cmp"
	"io"
	"slices"
)

// Sort orders flows by their starts; those of equal starts stay as they are.
func Sort(flows []Flow) {
	slices.SortStableFunc(flows, func(a, b Flow) int { return cmp.Compare(a.Start, b.Start) })
}

// merged interleaves sources by time.
type merged struct {
	heads []head // binary heap by (start, index)
	begun bool
	err   error
}

type head struct {
	flow  Flow
	src   Source
	index int
}

// Merge returns a Source that interleaves the given ones by their flows' starts. Of flows with equal starts, the one of the earlier
// source comes first.
func Merge(sources ...Source) Source {
	m := &merged{heads: make([]head, 0, len(sources))}
	for i, s := range sources {
		m.heads = append(m.heads, head{src: s, index: i})
	}
	return m
}

func (m *merged) Next(f *Flow) error {
	if !m.begun {
		m.begin()
	}
	if m.err != nil {
		return m.err
	}
	if len(m.heads) == 0 {
		m.err = io.EOF
		return m.err
	}
	h := &m.heads[0]
	*f = h.flow
	switch err := h.src.Next(&h.flow); err {
	case nil:
		m.down(0)
	case io.EOF:
		last := len(m.heads) - 1
		m.heads[0] = m.heads[last]
		m.heads = m.heads[:last]
		m.down(0)
	default:
		m.err = err // the flow that is returned now was good
	}
	return nil
}

// begin reads the first flow of every source and makes the heap.
func (m *merged) begin() {
	m.begun = true
	live := m.heads[:0]
	for _, h := range m.heads {
		switch err := h.src.Next(&h.flow); {
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

func (m *merged) less(a, b int) bool {
	x, y := &m.heads[a], &m.heads[b]
	if x.flow.Start != y.flow.Start {
		return x.flow.Start < y.flow.Start
	}
	return x.index < y.index
}

func (m *merged) down(i int) {
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

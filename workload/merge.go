package workload

import "io"

// merged interleaves sources by time.
type merged struct {
	heads []head // binary heap by (time, index)
	begun bool
	err   error
}

type head struct {
	record Record
	src    Source
	index  int
}

// Merge returns a Source that interleaves the given ones by time. Of records with equal times, the one of the earlier source
// comes first. Each source's times count from a common start.
func Merge(sources ...Source) Source {
	m := &merged{heads: make([]head, 0, len(sources))}
	for i, s := range sources {
		m.heads = append(m.heads, head{src: s, index: i})
	}
	return m
}

func (m *merged) Next(r *Record) error {
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
	*r = top.record
	m.refill(0)
	return nil
}

// begin reads the first record of every source and makes the heap.
func (m *merged) begin() {
	m.begun = true
	live := m.heads[:0]
	for _, h := range m.heads {
		switch err := h.src.Next(&h.record); {
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

// refill replaces the record at heap position i by its source's next. An error is kept for the following call, because the
// record just returned was good.
func (m *merged) refill(i int) {
	h := &m.heads[i]
	if err := h.src.Next(&h.record); err != nil {
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

func (m *merged) less(a, b int) bool {
	x, y := &m.heads[a], &m.heads[b]
	if x.record.Time != y.record.Time {
		return x.record.Time < y.record.Time
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

package ssd

// hash maps logical page numbers to values: open addressing with linear probing and backward-shift deletion, at most
// 5/8 full, with key and value in one cell so that a look-up touches one cache line. It allocates only when it grows.
// The zero hash is empty.
type hash[V any] struct {
	cells []cell[V]
	n     int
	most  int // largest n before it grows
	shift uint8
}

type cell[V any] struct {
	key uint32 // page number plus one; 0 is empty
	val V
}

func (h *hash[V]) slot(key uint32) uint32 { return key * 0x9e3779b1 >> (h.shift & 31) }

// get returns the value of key.
func (h *hash[V]) get(key uint32) (v V, ok bool) {
	if h.n == 0 {
		return v, false
	}
	mask := uint32(len(h.cells) - 1)
	for i := h.slot(key); ; i = (i + 1) & mask {
		switch c := &h.cells[i]; c.key {
		case key + 1:
			return c.val, true
		case 0:
			return v, false
		}
	}
}

// set makes v the value of key.
func (h *hash[V]) set(key uint32, v V) { *h.at(key) = v }

// at returns a pointer to the value of key, inserting a zero value if there was none. It is valid until the next
// change.
func (h *hash[V]) at(key uint32) *V {
	if h.n >= h.most {
		h.grow()
	}
	mask := uint32(len(h.cells) - 1)
	for i := h.slot(key); ; i = (i + 1) & mask {
		switch c := &h.cells[i]; c.key {
		case 0:
			c.key = key + 1
			h.n++
			return &c.val
		case key + 1:
			return &c.val
		}
	}
}

// remove deletes key.
func (h *hash[V]) remove(key uint32) {
	if h.n > 0 {
		h.removeFilled(key)
	}
}

// removeFilled is remove for a table that is not empty.
//
//go:noinline
func (h *hash[V]) removeFilled(key uint32) {
	mask := uint32(len(h.cells) - 1)
	i := h.slot(key)
	for h.cells[i].key != key+1 {
		if h.cells[i].key == 0 {
			return
		}
		i = (i + 1) & mask
	}
	h.n--
	// Move back every entry that would otherwise be unreachable across the gap.
	for j := (i + 1) & mask; h.cells[j].key != 0; j = (j + 1) & mask {
		if home := h.slot(h.cells[j].key - 1); (j-home)&mask >= (j-i)&mask {
			h.cells[i] = h.cells[j]
			i = j
		}
	}
	h.cells[i] = cell[V]{}
}

func (h *hash[V]) grow() {
	old := h.cells
	size := max(16, 2*len(old))
	h.cells = make([]cell[V], size)
	h.shift = 32
	for s := size; s > 1; s >>= 1 {
		h.shift--
	}
	h.most = 5 * size / 8
	mask := uint32(size - 1)
	for _, c := range old {
		if c.key == 0 {
			continue
		}
		i := h.slot(c.key - 1)
		for h.cells[i&mask].key != 0 {
			i++
		}
		h.cells[i&mask] = c
	}
}

// expect prefetches the cell of key, for a look-up that is about to follow.
func (h *hash[V]) expect(key uint32) {
	if h.n > 0 {
		prefetch(&h.cells[h.slot(key)].key)
	}
}

// reset empties the table but keeps its memory.
func (h *hash[V]) reset() {
	clear(h.cells)
	h.n = 0
}

// clone returns an independent copy.
func (h *hash[V]) clone() hash[V] {
	c := *h
	c.cells = append([]cell[V](nil), h.cells...)
	return c
}

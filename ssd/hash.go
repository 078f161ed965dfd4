package ssd

// hash maps logical page numbers to values: open addressing with linear probing
// and backward-shift deletion, at most 5/8 full. It allocates only when it grows.
// The zero hash is empty.
type hash[V uint32 | uint64] struct {
	keys  []uint32 // page number plus one; 0 is empty
	vals  []V
	n     int
	shift uint8
}

func (h *hash[V]) slot(key uint32) uint32 { return key * 0x9e3779b1 >> h.shift }

// get returns the value of key.
func (h *hash[V]) get(key uint32) (V, bool) {
	if h.n == 0 {
		return 0, false
	}
	mask := uint32(len(h.keys) - 1)
	for i := h.slot(key); ; i = (i + 1) & mask {
		switch h.keys[i] {
		case key + 1:
			return h.vals[i], true
		case 0:
			return 0, false
		}
	}
}

// set makes v the value of key.
func (h *hash[V]) set(key uint32, v V) {
	if 8*(h.n+1) > 5*len(h.keys) {
		h.grow()
	}
	mask := uint32(len(h.keys) - 1)
	for i := h.slot(key); ; i = (i + 1) & mask {
		switch h.keys[i] {
		case 0:
			h.keys[i] = key + 1
			h.n++
			h.vals[i] = v
			return
		case key + 1:
			h.vals[i] = v
			return
		}
	}
}

// remove forgets key.
func (h *hash[V]) remove(key uint32) {
	if h.n == 0 {
		return
	}
	mask := uint32(len(h.keys) - 1)
	i := h.slot(key)
	for h.keys[i] != key+1 {
		if h.keys[i] == 0 {
			return
		}
		i = (i + 1) & mask
	}
	h.n--
	// Move back whatever would no longer be found across the gap.
	for j := (i + 1) & mask; h.keys[j] != 0; j = (j + 1) & mask {
		if home := h.slot(h.keys[j] - 1); (j-home)&mask >= (j-i)&mask {
			h.keys[i], h.vals[i] = h.keys[j], h.vals[j]
			i = j
		}
	}
	h.keys[i] = 0
}

func (h *hash[V]) grow() {
	old, vals := h.keys, h.vals
	size := max(16, 2*len(old))
	h.keys, h.vals = make([]uint32, size), make([]V, size)
	h.shift = 32
	for s := size; s > 1; s >>= 1 {
		h.shift--
	}
	h.n = 0
	for i, k := range old {
		if k != 0 {
			h.set(k-1, vals[i])
		}
	}
}

// reset empties the table and keeps its memory.
func (h *hash[V]) reset() {
	clear(h.keys)
	h.n = 0
}

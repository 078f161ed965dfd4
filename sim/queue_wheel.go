package sim

import "math/bits"

const (
	digitBits = 8
	radix     = 1 << digitBits
	digits    = 64 / digitBits // of a time or an order key
	levels    = 2 * digits
	chunkLen  = 16 // entries, a power of two
)

// wheel holds entries by the digits of their keys. An entry is filed at the level of the highest digit in which its key
// differs from cursor, in the slot of its own digit at that level. The upper levels, from digits on, are the time's;
// the others are the order key's. A slot of level digits+l spans 256^l ps. No entry is before cursor, so the first
// occupied slot of the first occupied level holds the first entries.
//
// Slots are lists of chunks rather than of entries: in a list of entries scattered over memory, each would cost a cache
// miss.
type wheel struct {
	cursor   key
	n        int
	occupied uint32                     // one bit per level with occupied slots
	words    [levels]uint8              // one bit per nonzero word of slots
	slots    [levels][radix / 64]uint64 // one bit per occupied slot
	// ends has the index in entries after the last entry of each slot, 0 if the slot is empty. All chunks of a slot are
	// full except the last one filled.
	ends    [levels][radix]uint32
	entries []entry  // in chunks of chunkLen
	links   []uint32 // for each chunk, the end of the rest of its list, 0 if none
	free    uint32   // the end of the list of free chunks
}

// topDigit returns the index of the highest nonzero digit, or 0.
func topDigit(x uint64) uint { return uint(bits.Len64(x|1)-1) / digitBits }

// belowTop returns a mask of the bits below the highest one of x, which must not be zero.
func belowTop(x uint64) uint64 { return 1<<(bits.Len64(x)-1) - 1 }

// place returns the level and the slot of a key that is not before cursor.
func (w *wheel) place(k key) (l, s uint) {
	if x := k.at ^ w.cursor.at; x != 0 {
		d := topDigit(x)
		return digits + d, uint(k.at>>(d*digitBits)) % radix
	}
	l = topDigit(k.order ^ w.cursor.order)
	return l, uint(k.order>>(l*digitBits)) % radix
}

// file adds an entry.
func (w *wheel) file(x entry) {
	l, s := w.place(x.key)
	end := w.ends[l%levels][s]
	if end%chunkLen == 0 {
		end = w.grow(end)
		w.slots[l%levels][s/64] |= 1 << (s % 64)
		w.words[l%levels] |= 1 << (s / 64)
		w.occupied |= 1 << l
	}
	w.entries[end] = x
	w.ends[l%levels][s] = end + 1
	w.n++
}

// grow prepends an empty chunk to a list and returns the index of its start.
func (w *wheel) grow(rest uint32) uint32 {
	end := w.free
	if end == 0 {
		if len(w.entries) == 0 {
			w.entries = make([]entry, 0, 32*chunkLen)
			w.links = make([]uint32, 0, 32)
		}
		w.entries = append(w.entries, make([]entry, chunkLen)...)
		w.links = append(w.links, rest)
		return uint32(len(w.entries) - chunkLen)
	}
	c := (end - 1) / chunkLen
	w.free = w.links[c]
	w.links[c] = rest
	return c * chunkLen
}

// chunk returns the first chunk of a list, and its entries.
func (w *wheel) chunk(end uint32) (c uint32, entries []entry) {
	c = (end - 1) / chunkLen
	return c, w.entries[c*chunkLen : end]
}

// release frees the first chunk of a list that is in no slot, and returns the rest.
func (w *wheel) release(end uint32) uint32 {
	c := (end - 1) / chunkLen
	rest := w.links[c]
	w.links[c], w.free = w.free, end
	return rest
}

// first returns the slot with the first entries. The wheel must not be empty.
func (w *wheel) first() (l, s uint) {
	l = uint(bits.TrailingZeros32(w.occupied))
	return l, w.firstSlot(l)
}

func (w *wheel) firstSlot(l uint) uint {
	i := uint(bits.TrailingZeros8(w.words[l%levels]))
	return i*64 + uint(bits.TrailingZeros64(w.slots[l%levels][i%(radix/64)]))
}

// span returns the first and the last key of a slot.
func (w *wheel) span(l, s uint) (first, last key) {
	shift := l % digits * digitBits
	inside := uint64(1)<<shift - 1
	if l >= digits {
		at := w.cursor.at>>shift&^(radix-1)<<shift | uint64(s)<<shift
		return key{at, 0}, key{at | inside, ^uint64(0)}
	}
	order := w.cursor.order>>shift&^(radix-1)<<shift | uint64(s)<<shift
	return key{w.cursor.at, order}, key{w.cursor.at, order | inside}
}

// count returns the number of entries in a slot, or any number above most.
func (w *wheel) count(l, s, most uint) uint {
	end := w.ends[l%levels][s]
	n := uint(end-1)%chunkLen + 1
	for n <= most {
		end = w.links[(end-1)/chunkLen]
		if end == 0 {
			break
		}
		n += chunkLen
	}
	return n
}

// take empties a slot and returns its list.
func (w *wheel) take(l, s uint) uint32 {
	l %= levels
	end := w.ends[l][s]
	w.ends[l][s] = 0
	w.slots[l][s/64] &^= 1 << (s % 64)
	if w.slots[l][s/64] == 0 {
		w.words[l] &^= 1 << (s / 64)
		if w.words[l] == 0 {
			w.occupied &^= 1 << l
		}
	}
	return end
}

// split files the entries of a list again, relative to the current cursor.
func (w *wheel) split(end uint32) {
	for end != 0 {
		_, entries := w.chunk(end)
		w.n -= len(entries)
		for _, x := range entries {
			w.file(x)
		}
		end = w.release(end)
	}
}

// rebase moves cursor back to k, or anywhere if the wheel is empty. Entries filed at levels finer than the one at which
// the two differ move to that level.
func (w *wheel) rebase(k key) {
	coarse, _ := w.place(k)
	finer := w.occupied & (1<<coarse - 1)
	w.cursor = k
	for ; finer != 0; finer &= finer - 1 {
		l := uint(bits.TrailingZeros32(finer))
		for w.occupied&(1<<l) != 0 {
			w.split(w.take(l, w.firstSlot(l)))
		}
	}
}

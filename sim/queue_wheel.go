package sim

import "math/bits"

const (
	digitBits = 8
	radix     = 1 << digitBits
	digits    = 64 / digitBits // of a time or an order key
	levels    = 2 * digits
	chunkLen  = 16 // entries, a power of two
)

// wheel holds entries by the digits of their keys. An entry is filed at the level
// of the highest digit in which its key differs from cursor, in the slot of its
// own digit there. Levels digits and up are the time's, the others the order
// key's; a slot of level digits+l spans 256^l ps. No entry is before cursor, so the
// first occupied slot of the first occupied level holds the first entries.
//
// Slots are lists of chunks rather than of entries: a list of entries scattered
// over memory costs a cache miss each.
type wheel struct {
	cursor   key
	n        int
	occupied uint32                     // a bit for each level with occupied slots
	words    [levels]uint8              // a bit for each word of slots that is not 0
	slots    [levels][radix / 64]uint64 // a bit for each occupied slot
	// ends has the index after the last entry of each slot in entries, 0 if the
	// slot is empty. All chunks of a slot but the last filled are full.
	ends    [levels][radix]uint32
	entries []entry  // in chunks of chunkLen
	links   []uint32 // for each chunk, the end of the rest of its list, 0 if there is none
	free    uint32   // the end of the list of unused chunks
}

// topDigit is the index of the highest digit that is not zero, or 0.
func topDigit(x uint64) uint { return uint(bits.Len64(x|1)-1) / digitBits }

// belowTop has the bits below the highest one of x, which is not zero.
func belowTop(x uint64) uint64 { return 1<<(bits.Len64(x)-1) - 1 }

// place is the level and the slot of a key that is not before cursor.
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

// grow puts an empty chunk before a list and returns the index of its start.
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

// chunk is the first chunk of a list, and its entries.
func (w *wheel) chunk(end uint32) (c uint32, entries []entry) {
	c = (end - 1) / chunkLen
	return c, w.entries[c*chunkLen : end]
}

// release takes the first chunk off a list that is in no slot and returns the rest.
func (w *wheel) release(end uint32) uint32 {
	c := (end - 1) / chunkLen
	rest := w.links[c]
	w.links[c], w.free = w.free, end
	return rest
}

// first is the slot with the first entries. The wheel is not empty.
func (w *wheel) first() (l, s uint) {
	l = uint(bits.TrailingZeros32(w.occupied))
	return l, w.firstSlot(l)
}

func (w *wheel) firstSlot(l uint) uint {
	i := uint(bits.TrailingZeros8(w.words[l%levels]))
	return i*64 + uint(bits.TrailingZeros64(w.slots[l%levels][i%(radix/64)]))
}

// span is the first and the last key of a slot.
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

// count is the number of entries in a slot, or some number above most.
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

// split files the entries of a list anew.
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

// rebase moves cursor back to k, or anywhere if the wheel is empty. What was filed
// at finer levels than the one at which the two differ now belongs at that one.
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

package repair

import "math/bits"

// Set is a set of packet numbers in a window that moves on. Its size is a power of
// two and grows with the window.
type Set struct {
	words []uint64
	Base  uint32 // nothing before it is in the set; only MoveTo and Advance change it
}

// Size is how wide the window is that the set has room for.
func (b *Set) Size() uint32 { return uint32(len(b.words)) * 64 }

// Add adds a number that is not before base.
func (b *Set) Add(psn uint32) {
	for psn-b.Base >= b.Size() {
		b.grow()
	}
	i := psn & (b.Size() - 1)
	b.words[i/64] |= 1 << (i % 64)
}

// Has reports whether a number is in the set.
func (b *Set) Has(psn uint32) bool {
	if before(psn, b.Base) || psn-b.Base >= b.Size() {
		return false
	}
	i := psn & (b.Size() - 1)
	return b.words[i/64]>>(i%64)&1 != 0
}

// Remove takes out a number that is in the set.
func (b *Set) Remove(psn uint32) {
	i := psn & (b.Size() - 1)
	b.words[i/64] &^= 1 << (i % 64)
}

// Find is the first number in the set that is neither before from nor behind to.
func (b *Set) Find(from, to uint32) (uint32, bool) {
	if before(from, b.Base) {
		from = b.Base
	}
	if len(b.words) == 0 {
		return 0, false
	}
	if before(b.Base+b.Size(), to) {
		to = b.Base + b.Size() // the words beyond are the first again
	}
	for before(from, to) {
		i := from & (b.Size() - 1)
		if w := b.words[i/64] >> (i % 64); w != 0 {
			from += uint32(bits.TrailingZeros64(w))
			return from, before(from, to)
		}
		from += 64 - i%64
	}
	return 0, false
}

// Count is how many numbers in the set are not before from and before to.
func (b *Set) Count(from, to uint32) uint32 {
	if before(from, b.Base) {
		from = b.Base
	}
	n := 0
	for before(from, to) && from-b.Base < b.Size() {
		i := from & (b.Size() - 1)
		w := b.words[i/64] >> (i % 64)
		span := min(64-i%64, to-from, b.Size()-(from-b.Base))
		if span < 64 {
			w &= 1<<span - 1
		}
		n += bits.OnesCount64(w)
		from += span
	}
	return uint32(n)
}

func (b *Set) grow() {
	was := *b
	b.words = make([]uint64, max(2, 2*len(was.words)))
	for psn := was.Base; psn != was.Base+was.Size(); psn++ {
		if was.Has(psn) {
			i := psn & (b.Size() - 1)
			b.words[i/64] |= 1 << (i % 64)
		}
	}
}

// MoveTo takes out everything before psn.
func (b *Set) MoveTo(psn uint32) {
	for before(b.Base, psn) {
		if len(b.words) > 0 {
			i := b.Base & (b.Size() - 1)
			b.words[i/64] &^= 1 << (i % 64)
		}
		b.Base++
	}
}

// Advance takes out everything before psn and what follows it without a gap, and
// returns the first number that is missing.
func (b *Set) Advance(psn uint32) uint32 {
	b.MoveTo(psn)
	for b.Has(b.Base) {
		b.MoveTo(b.Base + 1)
	}
	return b.Base
}

// before reports whether packet number a comes before b; numbers wrap.
func before(a, b uint32) bool { return int32(a-b) < 0 }

// Package window is sets of numbers that wrap around, such as packets', in a window that moves on: a bit each.
//
// Its one type is Set. It is what a sender knows of packets that came out of order (RFC 1982's serial numbers, of 32
// bits), and whose turn it is.
//
// What it leaves out: numbers further apart than 2^31, and windows that go back.
package window

import "math/bits"

// before reports whether number a comes before b; numbers wrap.
func before(a, b uint32) bool { return int32(a-b) < 0 }

// Set is a set of numbers of which none is before its base. The zero one is empty, from 0 on. Its size is a power of
// two and grows with the window.
type Set struct {
	words []uint64
	base  uint32 // nothing before it is in the set
}

// Base is the number before which there is none.
func (b *Set) Base() uint32 { return b.base }

// Size is how many numbers from its base on there is room for.
func (b *Set) Size() uint32 { return uint32(len(b.words)) * 64 }

// Add adds a number that is not before base.
func (b *Set) Add(psn uint32) {
	for psn-b.base >= b.Size() {
		b.grow()
	}
	i := psn & (b.Size() - 1)
	b.words[i/64] |= 1 << (i % 64)
}

// Has reports whether a number is in the set.
func (b *Set) Has(psn uint32) bool {
	if before(psn, b.base) || psn-b.base >= b.Size() {
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
	if before(from, b.base) {
		from = b.base
	}
	if len(b.words) == 0 {
		return 0, false
	}
	if before(b.base+b.Size(), to) {
		to = b.base + b.Size() // what is beyond shares bits with what is within
	}
	for before(from, to) && from-b.base < b.Size() {
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
	if before(from, b.base) {
		from = b.base
	}
	n := 0
	for before(from, to) && from-b.base < b.Size() {
		i := from & (b.Size() - 1)
		w := b.words[i/64] >> (i % 64)
		span := min(64-i%64, to-from, b.Size()-(from-b.base))
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
	for psn := was.base; psn != was.base+was.Size(); psn++ {
		if was.Has(psn) {
			i := psn & (b.Size() - 1)
			b.words[i/64] |= 1 << (i % 64)
		}
	}
}

// MoveTo takes out everything before psn.
func (b *Set) MoveTo(psn uint32) {
	if before(b.base, psn) && psn-b.base >= b.Size() {
		clear(b.words)
		b.base = psn
	}
	for before(b.base, psn) {
		if len(b.words) > 0 {
			i := b.base & (b.Size() - 1)
			b.words[i/64] &^= 1 << (i % 64)
		}
		b.base++
	}
}

// Advance takes out everything before psn and what follows it without a gap, and
// returns the first number that is missing.
func (b *Set) Advance(psn uint32) uint32 {
	b.MoveTo(psn)
	for b.Has(b.base) {
		b.MoveTo(b.base + 1)
	}
	return b.base
}

// Package window is sets of wrapping numbers, such as packet sequence numbers, in a window that advances, with one bit
// for each number.
//
// Its one type is Set. Senders and receivers keep in it the packets that arrived out of order (serial numbers of 32
// bits, RFC 1982), and network interfaces the queue pairs that wait to send.
//
// It leaves out numbers further apart than 2^31, and windows that move backwards.
package window

import "math/bits"

// before reports whether number a precedes b; numbers wrap.
func before(a, b uint32) bool { return int32(a-b) < 0 }

// Set is a set of numbers, none of which precedes its base. The zero Set is empty, with base 0. Its size is a power of
// two and grows with the window.
type Set struct {
	words []uint64
	base  uint32 // no number before it is in the set
}

// Base returns the lower bound of the set's numbers.
func (b *Set) Base() uint32 { return b.base }

// Size returns the number of bits allocated, for the numbers from the base onwards.
func (b *Set) Size() uint32 { return uint32(len(b.words)) * 64 }

// Add adds a number, which must not precede the base.
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

// Remove removes a number, which must be in the set.
func (b *Set) Remove(psn uint32) {
	i := psn & (b.Size() - 1)
	b.words[i/64] &^= 1 << (i % 64)
}

// Find returns the first number of the set in the range [from, to).
func (b *Set) Find(from, to uint32) (uint32, bool) {
	if before(from, b.base) {
		from = b.base
	}
	if len(b.words) == 0 {
		return 0, false
	}
	if before(b.base+b.Size(), to) {
		to = b.base + b.Size() // numbers beyond share bits with those within
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

// Count returns how many numbers of the set are in the range [from, to).
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

// MoveTo moves the base forward to psn and removes the numbers before it.
func (b *Set) MoveTo(psn uint32) {
	if before(b.base, psn) && psn-b.base >= b.Size() { // always of a set without words
		clear(b.words)
		b.base = psn
	}
	for before(b.base, psn) {
		i := b.base & (b.Size() - 1)
		b.words[i/64] &^= 1 << (i % 64)
		b.base++
	}
}

// Advance moves the base forward to psn and then past the numbers in the set that follow without a gap. It returns the
// new base, which is the first missing number.
func (b *Set) Advance(psn uint32) uint32 {
	b.MoveTo(psn)
	for b.Has(b.base) {
		b.MoveTo(b.base + 1)
	}
	return b.base
}
